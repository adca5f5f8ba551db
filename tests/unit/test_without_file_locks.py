"""Without ``fcntl`` (Windows) the client, ``validate`` and ``plan`` work; ``apply`` names what it needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from msauto.plugins.simulator.embedded import Simulator, empty_state

_CODE = """
import os, sys

import aiohttp  # asyncio on this system needs what is removed below

sys.modules["fcntl"] = None
for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "geteuid", "getuid", "pwrite"):
    delattr(os, name)

import msauto
from msauto.__main__ import main

with msauto.MediaServer(sys.argv[1]) as server:
    print("client", server.asset("NEWS", "Film").frames)
for command in (["validate"], ["plan"], ["apply", "--yes"]):
    sys.argv = ["msauto", *command, "play.yml", "-i", "inventory.yml", "--state-dir", "state"]
    print(command[0], main())
"""
PLAYBOOK = """
- hosts: studio-a
  tasks:
    - name: Comment
      asset: {title: Film, fields: {comment: Ready}}
"""


@pytest.mark.scale
def test_what_works_without_file_locks(tmp_path: Path) -> None:
    house = empty_state()
    house.add_clip("Film", frames=100)
    (tmp_path / "play.yml").write_text(PLAYBOOK)
    with Simulator(state=house) as sim:
        (tmp_path / "inventory.yml").write_text(
            f"all: {{hosts: {{studio-a: {{server: {{url: '{sim.url}'}}, database: NEWS}}}}}}\n"
        )
        command = [sys.executable, "-c", _CODE, sim.url]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    codes = [
        line
        for line in done.stdout.splitlines()
        if line.startswith(("client ", "validate ", "plan ", "apply "))
    ]
    assert codes == ["client 100", "validate 0", "plan 0", "apply 1"], done.stdout + done.stderr
    assert "this system has no file locks (Python module `fcntl`)" in done.stderr
    assert "run `apply` and `undo` on Linux or macOS" in done.stderr
    assert not (tmp_path / "state").exists()
