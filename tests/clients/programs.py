"""Other people's programs: found on the PATH, or the test is skipped with a reason; each is given a minute."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

import pytest

HINTS = {
    "curl": "apt-get install curl",
    "ffprobe": "apt-get install ffmpeg",
    "pngcheck": "apt-get install pngcheck",
    "ansible-playbook": "make scale does it: ansible-core, in an environment of its own at the end of the PATH",
}
_ASKED_OF_THE_SYSTEM = ("PATH", "HOME", "TMPDIR", "SYSTEMROOT")


def run(program: str, *words: str, expect: Sequence[int] = (0,), **environment: str) -> bytes:
    """Run a program and return what it prints; skips the test where it is not installed."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed ({HINTS[program]})")
    asked = {name: os.environ[name] for name in _ASKED_OF_THE_SYSTEM if name in os.environ}
    # Proxies of the machine are none of the simulator's business, which is on loopback.
    done = subprocess.run(
        [found, *words],
        capture_output=True,
        timeout=60,
        check=False,
        env=asked | {"LC_ALL": "C.UTF-8", "NO_PROXY": "*"} | environment,
    )
    told = (done.stdout + done.stderr).decode(errors="replace")
    assert done.returncode in expect, f"{program} ended with {done.returncode}:\n{told}"
    return done.stdout
