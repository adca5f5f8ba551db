"""``--target``: the plan of some targets, as if the others were not in the playbook."""

from __future__ import annotations

from typing import Any

import pytest

from msauto.simulator import Simulator
from tests.cli.command_line import Desk

pytestmark = pytest.mark.usefixtures("hurried")
INV = ("-i", "inventory.yml")


def comment(title: str, **more: Any) -> dict[str, Any]:
    return {"asset": {"title": title, "fields": {"comment": f"new {title}"}}, **more}


def changed(desk: Desk, *arguments: str) -> list[str]:
    said = desk.run("plan", *INV, "play.yml", "--format", "json", *arguments)
    assert said.code == 0, said
    return [target["name"] for target in said.json["targets"]]


def test_only_what_a_glob_matches_is_planned_and_read(desk: Desk, sim: Simulator) -> None:
    desk.play(
        comment("EP001"),
        comment("EP002"),
        comment("Long Film"),
        {"rss": {"channel": "ticker", "items": [{"guid": "n-9", "file": "n-9.txt", "text": "x"}]}},
    )
    assert changed(desk, "--target", "EP*") == ["EP001", "EP002"]
    assert not any("Long%20Film" in entry.target or "rss" in entry.target for entry in sim.log)
    assert changed(desk, "--target", "EP001", "--target", "tick?r") == ["EP001", "ticker"]


def test_apply_and_undo_leave_the_rest_alone(desk: Desk) -> None:
    desk.play(comment("EP001"), comment("EP002"), comment("Long Film"))
    said = desk.run("apply", "--yes", *INV, "play.yml", "--target", "EP00?")
    assert said.code == 0, said
    assert "--target narrows this plan to 'EP00?'" in said.out
    assert changed(desk) == ["Long Film"]
    assert desk.run("undo", "last", "--yes", *INV, "--target", "EP002").code == 0
    assert changed(desk) == ["EP002", "Long Film"]


def test_handlers_and_refusals_are_those_of_the_narrowed_plan(desk: Desk) -> None:
    tasks = [comment("EP001", notify="Export"), {"asset": {"title": "Promo 1", "state": "absent", "with_links": True}}]
    handler = {"name": "Export", "command": {"name": "PARTNER_EXPORT_VERSION"}}
    desk.write("play.yml", [{"hosts": "all", "tasks": tasks, "handlers": [handler]}])
    plan = desk.run("plan", *INV, "play.yml", "--format", "json", "--target", "EP001").json
    assert plan["refusals"] == []
    assert [change["aspect"] for change in plan["targets"][0]["changes"]] == ["field", "command"]
    assert desk.run("apply", "--yes", *INV, "play.yml", "--target", "Promo 1").code == 4


def test_a_title_that_looks_like_a_glob_is_that_title_alone(desk: Desk, sim: Simulator) -> None:
    for title in ("News [a]", "News a", "News b", "News *"):
        sim.state.databases["NEWS"].add_clip(title, "Raw", frames=100)
    desk.play(*map(comment, ("News a", "News [a]", "News b", "News *")))
    assert changed(desk, "--target", "News [a]") == ["News [a]"]
    assert changed(desk, "--target", "News *") == ["News *"]
    assert changed(desk, "--target", "News [ab]", "--target", "News [a]") == ["News a", "News [a]", "News b"]


def test_what_another_name_of_the_clip_wants_is_not_removed(desk: Desk, sim: Simulator) -> None:
    sim.state.clip("Long Film").markers.clear()
    keep = {"at": 100, "track": "General", "title": "Keep"}
    desk.play({"asset": {"title": "Long Film", "markers": [keep], "links": [{"folder": "Playout", "title": "Short"}]}})
    assert desk.run("apply", "--yes", *INV, "play.yml").code == 0
    desk.play(
        {"asset": {"title": "Long Film", "markers": [{"at": 5, "track": "General"}], "exactly": ["markers"]}},
        {"asset": {"title": "Short", "markers": [keep]}},
    )
    said = desk.run("plan", *INV, "play.yml", "--target", "Long Film")
    assert said.code == 1
    assert "the marker at 100 (General) is removed by the task 'Task 1'" in said.out


@pytest.mark.parametrize(("glob", "hint"), [("EP01", "did you mean 'EP001'"), ("nothing", "name a title")])
def test_a_glob_that_matches_nothing_is_an_error(desk: Desk, sim: Simulator, glob: str, hint: str) -> None:
    desk.play(comment("EP001"))
    said = desk.run("apply", "--yes", *INV, "play.yml", "--target", glob)
    assert said.code == 1
    said.one_error(f"--target '{glob}' matches no target of the playbooks", hint)
    assert not sim.writes()
