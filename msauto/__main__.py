"""``python -m msauto``, and the console script ``msauto``.

``msauto.cli`` is imported inside the ``try``: Ctrl-C during the first imports also ends with one line and 130.
"""

import sys
from contextlib import suppress

from msauto.version import __version__


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        if sys.argv[1:] == ["--version"]:
            with suppress(OSError):  # click reports it
                print(f"msauto, version {__version__}", flush=True)  # noqa: T201 - importing click triples the time
                return 0
        from msauto.cli.interrupts import importing

        with importing():
            from msauto.cli.main import main as run
        return run()
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
