"""msauto.toml is obeyed: where the ledger is, limits, and freezes, on a clock of the test."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest

from msauto.concurrency import SystemClock
from msauto.plugins.simulator.embedded import Simulator
from tests.cli.command_line import Desk

INV = ("-i", "inventory.yml")
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)  # a Friday
DELETE = {"asset": {"title": "Promo 1", "state": "absent", "with_links": True}}


# Which file ------------------------------------------------------------------------------------------------------

PROTECTED = 'inventory = "inventory.yml"\nprotected = ["Promos/*"]\nstate_dir = "ledger"\n'
DELETING = ("--yes", "--allow-delete", "1")


@pytest.fixture
def inner(desk: Desk) -> Desk:
    """A desk in `playbooks` of a repository that `msauto init` makes: the settings are in the folder above."""
    desk.write("msauto.toml", PROTECTED)
    desk.play(DELETE, name="playbooks/play.yml")
    return Desk(
        desk.folder / "playbooks", desk.url, environment={"XDG_STATE_HOME": str(desk.state)}
    )


def test_the_settings_are_named(desk: Desk, inner: Desk) -> None:
    inner.comment("new", name="comment.yml")
    named = {"path": "../msauto.toml", "sha256": sha256(PROTECTED.encode()).hexdigest()}
    plan = inner.run("plan", "comment.yml", "--format", "json").json
    assert plan["settings"] == named
    for form, shown in (
        ("text", "Settings: ../msauto.toml\n"),
        ("markdown", "`Settings: ../msauto.toml`</sub>"),
        ("html", "<span>Settings: ../msauto.toml</span>"),
    ):
        assert shown in inner.run("plan", "comment.yml", "-v", "--format", form).out
        assert shown in inner.run("apply", "--yes", "comment.yml", "-v", "--format", form).out
    assert "Settings" not in inner.run("plan", "comment.yml").out
    assert inner.run("apply", "--yes", "comment.yml", "--format", "json").json["settings"] == named
    path = str(desk.folder / "msauto.toml")
    inner.run("apply", *DELETING, "play.yml")
    runs = inner.run("history", "--format", "json").json
    assert {run["settings"] for run in runs} == {path}
    for run in runs:
        assert path in inner.run("history", run["run"]).out
    assert f"Settings: {path}" in inner.run("report", runs[1]["run"], "-v").out


def test_settings_that_are_a_link_are_one_file_and_a_broken_link_is_no_absence(
    desk: Desk, inner: Desk
) -> None:
    (desk.folder / "msauto.toml").unlink()
    inner.write("msauto.toml", "broken = ")
    (desk.folder / "msauto.toml").symlink_to("playbooks/msauto.toml")
    inner.run("plan", "play.yml").one_error("invalid TOML")
    (inner.folder / "msauto.toml").unlink()
    assert inner.run("plan", "play.yml").code == 1


# Freezes ---------------------------------------------------------------------------------------------------------


def test_a_freeze_that_begins_on_the_way(
    desk: Desk, sim: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def now(_: object) -> datetime:
        return NOON if sim.writes() else NOON - timedelta(minutes=1)

    monkeypatch.setattr(SystemClock, "now", now)
    desk.write("msauto.toml", '[[freeze]]\nfrom = "12:00"\nto = "13:00"\ntz = "UTC"\n')
    desk.play(
        *(
            {"asset": {"title": f"EP00{n}", "fields": {"comment": "new", "user_1": "x"}}}
            for n in (1, 2, 3)
        )
    )
    sourced = desk.run("apply", "--yes", "-f", "1", *INV, "play.yml", "--format", "json")
    assert sourced.code == 3
    assert [t["result"]["outcome"] for t in sourced.json["targets"]] == [
        "changed",
        "not attempted",
        "not attempted",
    ]
    assert "msauto.toml has a freeze" in sourced.json["targets"][1]["result"]["message"]
    assert len(sim.writes()) == 2  # what was begun is finished
