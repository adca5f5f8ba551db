"""The fixture ``media_server``, in a run of pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest
from msauto import MediaServer

@pytest.mark.media_server("studio.yml", dialect={"segment_update": "overwrite"}, faults=["status:500@SETFIELD*1"])
def test_file(media_server):
    assert [clip.title for clip in media_server.state.databases["NEWS"].clips()] == ["Evening News"]
    assert media_server.dialect.segment_update == "overwrite"
    assert media_server.faults

@pytest.mark.media_server({"databases": {"NEWS": [{"title": "Film"}]}})
def test_data(media_server):
    with MediaServer(media_server.url) as server:
        assert server.asset("NEWS", "Film").frames == 250

def test_sample(media_server):
    assert media_server.state.databases["NEWS"].find("Long Film")

@pytest.mark.media_server("wrong.yml")
def test_wrong(media_server):
    pass
"""


@pytest.mark.scale
def test_the_fixture_gives_a_server_with_the_content_of_the_test(tmp_path: Path) -> None:
    (tmp_path / "test_house.py").write_text(TESTS)
    (tmp_path / "studio.yml").write_text(
        "databases:\n  NEWS:\n    - {title: Evening News, folder: Raw/2026}\n"
    )
    (tmp_path / "wrong.yml").write_text("databases:\n  NEWS:\n    - {tilte: Evening News}\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "msauto.plugins.simulator.pytest_fixture",
        "-p",
        "no:cacheprovider",
        "--strict-markers",
    ]
    done = subprocess.run(
        [*command, "."],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert "3 passed, 1 error" in done.stdout, done.stdout
    assert (
        "wrong.yml: not the content of a media server: Object contains unknown field `tilte`"
        in done.stdout
    )
