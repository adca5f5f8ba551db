"""``python -m msauto``."""

import sys

from msauto.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
