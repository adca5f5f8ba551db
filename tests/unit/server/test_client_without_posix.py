"""The client can be imported on a system without POSIX modules, such as Windows."""

from __future__ import annotations

import subprocess
import sys

IMPORT = """
import sys
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
from msauto import AsyncMediaServer, MediaServer
"""


def test_the_client_needs_no_posix_module_to_be_imported() -> None:
    subprocess.run([sys.executable, "-c", IMPORT], check=True)
