"""``python -m msauto``, and the ``msauto`` of the console script.

Next to nothing is imported before the ``try``: a Ctrl-C while the rest is loaded ends with 130 and one line as well.
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
