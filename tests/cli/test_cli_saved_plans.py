"""A plan that is kept and applied later: it is made again, and applied as it was shown, or not at all; and --target."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from msauto.simulator import Simulator
from tests.cli.command_line import Desk

pytestmark = pytest.mark.usefixtures("hurried")
INV = ("-i", "inventory.yml")
EPISODE = {
    "title": "Evening News",
    "was": ["Evening News raw"],
    "fields": {"comment": "Ready", "first_frame": 10},
    "xmp": {"dc:subject": ["news"]},
    "segments": [{"number": 1, "start": 0, "duration": 18750, "title": "Part 1"}],
    "markers": [{"at": 250, "track": "Cue Point", "title": "Ad break"}],
    "links": [{"folder": "Playout/Tonight"}],
    "exactly": ["segments"],
}
TASKS: tuple[dict[str, Any], ...] = (
    {"asset": EPISODE},
    {"asset": {"title": "EP001", "fields": {"comment": "new"}}, "when": "asset.frames > 250"},
    {"asset": {"select": {"folder": "Promos"}, "markers": [{"at": 0, "title": "Checked"}]}},
    {"rss": {"channel": "ticker", "items": [{"guid": "n-9", "file": "n-9.txt", "text": "Новости"}]}},
    {"asset": {"title": "Master Film", "state": "absent"}},
)


@pytest.fixture
def plan(desk: Desk, sim: Simulator) -> str:
    desk.play(*TASKS)
    sourced = desk.run("plan", *INV, "play.yml", "--out", "tonight.plan")
    assert sourced.code == 0, sourced
    assert sourced.err.endswith("Saved the plan to tonight.plan; apply it with: msauto apply tonight.plan\n")
    sim.clear_log()
    return "tonight.plan"


ALLOWED = ("--yes", "--allow-delete", "1")


def test_what_was_shown_is_what_is_sent(desk: Desk, sim: Simulator, plan: str) -> None:
    kept = json.loads((desk.folder / plan).read_text())
    sourced = desk.run("apply", *ALLOWED, plan)  # the plan names its playbook and its inventory
    assert sourced.code == 0, sourced
    shown = [f"{request['method']} {request['path']}" for t in kept["targets"] for request in t["requests"]]
    assert sorted(entry.line for entry in sim.writes()) == sorted(shown)
    first_write = next(n for n, entry in enumerate(sim.log) if entry.method not in {"GET", "HEAD"})
    read = {entry.target for entry in sim.log[:first_write]}
    assert {f"/storage/NEWS@Promo%20{n}" for n in (1, 2)} < read  # every target is read before the first write
    assert desk.run("plan", *INV, "play.yml", "--detailed-exitcode").code == 0


def test_the_same_plan_twice_is_stale(desk: Desk, sim: Simulator, plan: str) -> None:
    assert desk.run("apply", *ALLOWED, *INV, plan).code == 0
    sim.clear_log()
    sourced = desk.run("apply", *ALLOWED, *INV, plan)
    assert sourced.code == 4
    sourced.one_error("the plan is stale", "make the plan again")
    assert not sim.writes()


@pytest.mark.parametrize("arguments", [(), ("--keep-going",), ("--check",)])
def test_one_drifted_target(desk: Desk, sim: Simulator, plan: str, arguments: tuple[str, ...]) -> None:
    sim.state.clip("EP001").home.fields["comment"] = "somebody was here"
    sourced = desk.run("apply", *ALLOWED, *arguments, *INV, plan)
    assert "EP001" in sourced.out
    assert "stale: it has changed since the plan was made" in sourced.out
    if "--keep-going" in arguments:
        assert sourced.code == 3
        assert sim.state.clip("EP001").home.fields["comment"] == "somebody was here"
        assert sim.state.clip("Evening News").home.fields["comment"] == "Ready"
    else:
        assert sourced.code == 4
        assert not sim.writes()


def test_a_saved_plan_is_held_to_the_limits(desk: Desk, sim: Simulator, plan: str) -> None:
    sourced = desk.run("apply", "--yes", *INV, plan)
    assert sourced.code == 4
    sourced.one_error("--allow-delete 1")
    desk.write("msauto.toml", 'protected = ["Master/*"]')
    sourced = desk.run("apply", *ALLOWED, *INV, plan)
    assert sourced.code == 4
    sourced.one_error("protected")
    assert not sim.writes()


def test_a_key_that_stands_twice_is_refused(desk: Desk, sim: Simulator, plan: str) -> None:
    text = (desk.folder / plan).read_text(encoding="utf-8")
    # A reader may see the first one, and msauto the last.
    desk.write(plan, text.replace('"msauto":', '"targets": [], "msauto":', 1))
    sourced = desk.run("apply", *ALLOWED, *INV, plan)
    sourced.one_error("duplicate key 'targets'")
    assert (sourced.code, sim.writes()) == (1, [])


def test_a_plan_is_for_the_servers_that_it_was_made_for(desk: Desk, sim: Simulator, plan: str) -> None:
    with Simulator() as other:
        desk.inventory({"studio-a": {"server": {"url": other.url}, "database": "NEWS"}}, "other.yml")
        sourced = desk.run("apply", *ALLOWED, "-i", "other.yml", plan)
        assert (sourced.code, other.log, sim.writes()) == (4, [], [])
    sourced.one_error("the plan was made for studio-a at", sim.url, other.url, "make the plan again")
    desk.inventory({"studio-a": {"server": {"url": f"{sim.url}/"}, "database": "NEWS"}}, "same.yml")
    assert desk.run("apply", *ALLOWED, "-i", "same.yml", plan).code == 0


def test_other_settings_than_those_of_the_plan(desk: Desk, sim: Simulator) -> None:
    desk.write("msauto.toml", 'inventory = "inventory.yml"')
    desk.play(TASKS[4])
    assert desk.run("plan", "play.yml", "--out", "kept.plan").code == 0
    desk.write("msauto.toml", 'inventory = "inventory.yml"\nprotected = ["Master/*"]')
    sourced = desk.run("apply", *ALLOWED, "kept.plan")
    assert (sourced.code, sim.writes()) == (4, [])
    sourced.one_error("the plan is stale: msauto.toml has changed; nothing was sent")
    sourced = desk.run("apply", *ALLOWED, "kept.plan", "--keep-going")
    assert (sourced.code, sim.writes()) == (4, [])
    sourced.one_error("protected")
    (desk.folder / "msauto.toml").unlink()
    sourced = desk.run("apply", *ALLOWED, *INV, "kept.plan")
    assert (sourced.code, sim.writes()) == (4, [])
    sourced.one_error("msauto.toml is missing")


def test_a_plan_made_by_format_json_will_do(desk: Desk, sim: Simulator) -> None:
    desk.comment("new")
    desk.write("tonight.plan", desk.run("plan", *INV, "play.yml", "--format", "json").out)
    assert desk.run("apply", "--yes", *INV, "tonight.plan").code == 0
    assert len(sim.writes()) == 1


@pytest.mark.parametrize("content", ["{", "{}", '{"format": "msauto-plan"}', "{" * 5000, '{"inputs": 7, "format": []}'])
def test_what_is_no_plan(desk: Desk, sim: Simulator, content: str) -> None:
    desk.write("tonight.plan", content)
    sourced = desk.run("apply", "--yes", *INV, "tonight.plan")
    assert (sourced.code, sourced.out) == (1, "")
    sourced.one_error("tonight.plan", "→")
    assert not sim.log


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*INV, "-l", "studio-a"), "--limit"),
        ((*INV, "-t", "x"), "--tags"),
        ((*INV, "play.yml"), "applied alone"),
        ((*INV, "--target", "EP001"), "--target"),
        ((*INV, "--forget-pending"), "--forget-pending"),
    ],
)
def test_what_does_not_go_with_a_plan(desk: Desk, sim: Simulator, plan: str, arguments: Any, words: str) -> None:
    sourced = desk.run("apply", *ALLOWED, plan, *arguments)
    assert sourced.code == 1
    sourced.one_error(words)
    assert not sim.writes()


def test_a_server_that_is_away_when_the_plan_is_applied(desk: Desk) -> None:
    with Simulator() as away:
        desk.inventory({"studio-a": {"server": {"url": away.url}, "database": "NEWS"}})
        desk.comment("new")
        assert desk.run("plan", *INV, "play.yml", "--out", "tonight.plan").code == 0
    sourced = desk.run("apply", *ALLOWED, *INV, "tonight.plan")
    assert sourced.code == 1
    sourced.one_error("no connection")


def test_it_asks_as_any_apply_does(desk: Desk, sim: Simulator, plan: str) -> None:
    assert desk.run("apply", *INV, plan).code == 4
    assert desk.run("apply", *INV, plan, typed="2\n").code == 4
    assert not sim.writes()
    assert desk.run("apply", *INV, plan, typed="1\n").code == 0


# What it was made from -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda desk: desk.play(*TASKS[1:]), "play.yml has changed"),
        (lambda desk: desk.write("play.yml", "- no: playbook"), "play.yml has changed"),
        (lambda desk: (desk.folder / "play.yml").unlink(), "play.yml cannot be read in /"),
        (lambda desk: desk.write("inventory.yml", "all: {hosts: {}}"), "inventory.yml has changed"),
    ],
)
def test_another_playbook_or_inventory(
    desk: Desk, sim: Simulator, plan: str, change: Callable[[Desk], object], words: str
) -> None:
    change(desk)
    sourced = desk.run("apply", *ALLOWED, plan)
    assert (sourced.code, sim.log) == (4, [])
    sourced.one_error(f"the plan is stale: {words}", "; nothing was sent", "→ make the plan again")


def test_what_is_the_same_of_another_playbook(desk: Desk, sim: Simulator, plan: str) -> None:
    desk.play({"asset": {"title": "EP002", "fields": {"comment": "new"}}}, *TASKS[1:4])
    sourced = desk.run("apply", *ALLOWED, plan, "--keep-going")
    assert sourced.code == 3
    assert "Warning: the plan is stale: play.yml has changed" in sourced.out
    assert sim.state.clip("EP001").home.fields["comment"] == "new"
    assert "comment" not in sim.state.clip("EP002").home.fields
    assert sim.state.clip("Evening News raw").title == "Evening News raw"
    sim.state.clip("Master Film")  # is still there
    desk.play(*TASKS)  # as it was, but for what is done by now
    assert desk.run("apply", *ALLOWED, plan, "--keep-going").code == 3
    assert sim.state.clip("Evening News").home.fields["comment"] == "Ready"


def test_the_options_of_a_plan_hold_when_it_is_applied(desk: Desk, sim: Simulator) -> None:
    desk.write("more.yml", "text: from a file\n")
    desk.play(
        {
            "asset": {"title": "EP001", "fields": {"comment": "{{ text }} {{ word }} {{ now }}"}},
            "tags": "a",
        },
        {"asset": {"title": "EP002", "fields": {"comment": "x"}}, "tags": "b"},
        {"asset": {"title": "EP003", "fields": {"comment": "x"}}, "tags": "a"},
    )
    flags = ("-e", "@more.yml", "-e", "word=today", "-t", "a", "--target", "EP00[12]", "-l", "studio-a")
    assert desk.run("plan", *INV, "play.yml", *flags, "--out", "sub/kept.plan").code == 1  # no such folder
    assert desk.run("plan", *INV, "play.yml", *flags, "--out", "kept.plan").code == 0
    data = json.loads((desk.folder / "kept.plan").read_text())
    assert [each["path"] for each in data["inputs"]] == ["more.yml", "inventory.yml", "play.yml"]
    now = data["options"].pop("now")
    assert data["options"] == {
        "playbooks": ["play.yml"],
        "inventories": ["inventory.yml"],
        "extra_vars": ["@more.yml", "word=today"],
        "tags": ["a"],
        "targets": ["EP00[12]"],
        "limit": "studio-a",
    }
    assert desk.run("apply", "--yes", "kept.plan", "-t", "a").code == 0  # the same flag again
    assert [entry.line.partition("?")[0] for entry in sim.writes()] == ["POST /storage/NEWS@EP001"]
    assert sim.state.clip("EP001").home.fields["comment"] == f"from a file today {datetime.fromisoformat(now)}"


def test_a_secret_variable_is_given_again(desk: Desk, sim: Simulator) -> None:
    desk.play({"asset": {"title": "EP001", "fields": {"comment": "{{ api_token | secret }} {{ word }}"}}})
    flags = ("-e", "api_token=kx7secret", "-e", "word=now")
    assert desk.run("plan", *INV, "play.yml", *flags, "--out", "kept.plan").code == 0
    assert "kx7secret" not in (desk.folder / "kept.plan").read_text()
    sourced = desk.run("apply", "--yes", "kept.plan")
    assert (sourced.code, sim.writes()) == (1, [])
    sourced.one_error(
        "kept.plan: the plan was made with -e api_token=***, and holds no secret",
        "give it again with -e",
    )
    assert desk.run("apply", "--yes", "kept.plan", *flags[:2]).code == 0
    assert sim.state.clip("EP001").home.fields["comment"] == "kx7secret now"


def test_a_server_by_url_is_given_again(desk: Desk, sim: Simulator) -> None:
    desk.comment("x")
    assert desk.run("plan", "--server", desk.url, "-e", "database=NEWS", "play.yml", "--out", "kept.plan").code == 0
    sourced = desk.run("apply", "--yes", "kept.plan")
    assert (sourced.code, sim.writes()) == (1, [])
    sourced.one_error(f"the plan was made for --server {desk.url}", f"give it again: --server {desk.url}")
    assert desk.run("apply", "--yes", "kept.plan", "--server", desk.url).code == 0


def test_it_is_applied_from_any_folder_of_the_repository(
    desk: Desk, sim: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write("msauto.toml", 'inventory = "inventory.yml"')
    desk.play({"asset": {"title": "EP001", "fields": {"comment": "x"}}}, name="books/play.yml")
    (desk.folder / "plans").mkdir()
    assert desk.run("plan", "books/play.yml", "--out", "plans/kept").code == 0
    again = Desk(desk.folder / "plans", desk.url)
    assert again.run("apply", "--yes", "kept").code == 0
    assert len(sim.writes()) == 1


def test_a_saved_undo_is_made_again(desk: Desk, sim: Simulator) -> None:
    desk.play({"asset": {"title": "{{ item }}", "fields": {"comment": "new"}}, "loop": ["EP001", "EP002"]})
    assert desk.run("apply", *INV, "play.yml", "--yes").code == 0
    assert desk.run("undo", "last", *INV, "--check", "--out", "undo.plan").code == 0
    assert json.loads((desk.folder / "undo.plan").read_text())["options"]["undo"]
    sim.state.clip("EP002").home.fields["comment"] = "theirs"
    sourced = desk.run("apply", "--yes", "undo.plan")
    assert (sourced.code, len(sim.writes())) == (4, 2)
    assert "stale: it is no longer in the plan" in sourced.out
    assert desk.run("apply", "--yes", "undo.plan", "--keep-going").code == 3
    assert [sim.state.clip(title).home.fields["comment"] for title in ("EP001", "EP002")] == ["", "theirs"]


# ``--target``: the plan of some targets, as if the others were not in the playbook


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
