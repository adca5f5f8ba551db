"""``python -m msauto``, and the console script ``msauto``.

``msauto.cli`` is imported inside the ``try``: Ctrl-C during the first imports also ends with one line and 130.
"""

import sys


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        from msauto.cli.interrupts import exit_on_interrupt

        with exit_on_interrupt():
            from msauto.cli.main import main as run
        return run()
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
