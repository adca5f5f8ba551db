"""``python -m msauto``, and the ``msauto`` of the console script.

Almost nothing is imported before the ``try``: a Ctrl-C during the other imports also ends with 130 and one line.
"""

import sys


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        from msauto.cli.early_interrupt import load

        code: int = load("msauto.cli.main").main()
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        return 130
    return code


if __name__ == "__main__":
    sys.exit(main())
