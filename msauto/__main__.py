"""``python -m msauto``, and the console script ``msauto``.

Ctrl-C while Python still imports ends the process with one line and 130.
"""

import os
import sys

from msauto.version import __version__


def main() -> int:
    """Run the command line and return its exit code."""
    import _signal  # type: ignore[import-not-found] # the module signal makes enums, which Ctrl-C must not interrupt

    is_usual = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
    try:
        if is_usual:
            _signal.signal(_signal.SIGINT, _end)
        from contextlib import suppress

        if sys.argv[1:] == ["--version"]:
            with suppress(OSError):  # click reports it
                print(f"msauto, version {__version__}", flush=True)  # noqa: T201 - importing click triples the time
                return 0
        from msauto.cli.interrupts import importing

        if is_usual:
            _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        with importing():
            from msauto.cli.main import main as run
        return run()
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        return 130


def _end(_number: int, _frame: object) -> None:
    """End the process at once: an exception would be lost in some imports (:mod:`msauto.cli.interrupts`)."""
    try:
        os.write(2, b"Interrupted.\n")
    finally:  # stderr may be closed
        os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
