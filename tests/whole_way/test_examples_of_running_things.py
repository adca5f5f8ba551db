"""The examples of ``playbooks/`` that run things, against the sample state: plan, apply, and nothing is left."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from msauto.plugins.simulator.embedded import Simulator

PLAYBOOKS = Path(__file__).resolve().parents[2] / "playbooks"


@pytest.mark.scale
@pytest.mark.parametrize(
    ("name", "files"),
    [
        (
            "stills.yml",
            ["studio-a/long-film.png", "studio-a/lower-third.png", "studio-a/promo-1.mp4"],
        ),
        ("partner.yml", ["sold/Long Film.png"]),
        ("traffic.yml", []),
    ],
)
def test_applied_and_planned_again(name: str, files: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "playbooks"
    shutil.copytree(PLAYBOOKS, folder)
    with Simulator() as sim:
        env = {**os.environ, "STUDIO_A_URL": sim.url}

        def msauto(*words: str) -> subprocess.CompletedProcess[str]:
            command = [
                sys.executable,
                "-m",
                "msauto",
                *words,
                name,
                "--state-dir",
                str(tmp_path / "state"),
            ]
            return subprocess.run(
                command, cwd=folder, env=env, capture_output=True, text=True, check=False
            )

        applied = msauto("apply", "--yes")
        assert applied.returncode == 0, applied.stdout + applied.stderr
        again = msauto("plan", "--detailed-exitcode")
        assert again.returncode == 0, again.stdout + again.stderr
    assert (
        sorted(str(path.relative_to(folder / "out")) for path in folder.glob("out/**/*.*")) == files
    )
