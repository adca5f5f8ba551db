"""``history`` shows the last 20 runs; ``simulate --state`` keeps what a content file became."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from msauto.playbook.settings import load_settings
from tests.cli.command_line import Desk

STATE = ("--state-dir", "state")


def test_the_last_20_runs_and_how_to_see_more(away: Desk) -> None:
    away.write("bad.yml", "- {hosts: nowhere, tasks: []}\n")
    for _ in range(22):
        assert away.run("apply", "bad.yml", "-i", "inventory.yml", "--yes", *STATE).code == 1
    said = away.run("history", "--format", "json", *STATE)
    assert len(said.json) == 20
    assert "2 earlier runs not shown" in said.err
    assert "msauto history -n 40" in said.err
    more = away.run("history", "--format", "json", "-n", "40", *STATE)
    assert (len(more.json), more.err) == (22, "")
    assert more.json[:20] == said.json


@pytest.mark.parametrize(
    ("state", "days"),
    [("", 400), ("[state]\nkeep_runs = 3\n", None), ("[state]\nkeep_days = 7\n", 7)],
)
def test_how_long_runs_are_kept(tmp_path: Path, state: str, days: int | None) -> None:
    path = tmp_path / "msauto.toml"
    path.write_text(state, encoding="utf-8")
    assert load_settings(str(path)).keep_days == days


@pytest.mark.scale
def test_what_a_content_file_became_is_kept(away: Desk) -> None:
    content = "databases: {NEWS: [{title: Film, frames: 250}]}\n"
    away.write("studio.yml", content)
    for comment in ("one", "two"):
        with away.start("simulate", "--port", "0", "--state", "studio.yml") as simulator:
            assert simulator.stderr is not None
            lines = iter(simulator.stderr.readline, "")
            url = next(line for line in lines if "listens at" in line).split()[5]
            away.url = url
            away.inventory({"studio-a": {"server": {"url": url}, "database": "NEWS"}})
            away.comment(comment, "Film")
            applied = away.run("apply", "play.yml", "-i", "inventory.yml", "--yes", *STATE)
            assert applied.code == 0, applied
            assert ('"one" → "two"' in applied.out) is (comment == "two")
            simulator.send_signal(signal.SIGINT)
            simulator.wait(30)
    assert (away.folder / "studio.yml").read_text(encoding="utf-8") == content
