"""A plan that is kept and applied later: as it was shown, or not at all."""

from __future__ import annotations

import json
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
    sim.clear_log()
    return "tonight.plan"


ALLOWED = ("--yes", "--allow-delete", "1")


def test_what_was_shown_is_what_is_sent(desk: Desk, sim: Simulator, plan: str) -> None:
    kept = json.loads((desk.folder / plan).read_text())
    (desk.folder / "play.yml").unlink()  # the plan is all that is needed
    sourced = desk.run("apply", *ALLOWED, *INV, plan)
    assert sourced.code == 0, sourced
    shown = [f"{request['method']} {request['path']}" for t in kept["targets"] for request in t["requests"]]
    assert sorted(entry.line for entry in sim.writes()) == sorted(shown)
    first_write = next(n for n, entry in enumerate(sim.log) if entry.method not in {"GET", "HEAD"})
    read = {entry.target for entry in sim.log[:first_write]}
    assert {f"/storage/NEWS@Promo%20{n}" for n in (1, 2)} < read  # every target is read before the first write
    desk.play(*TASKS)
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


def test_what_was_not_compared_is_no_drift(desk: Desk, sim: Simulator, plan: str) -> None:
    sim.state.clip("EP001").home.fields["user_7"] = "somebody was here"
    sim.state.clip("Promo 1").home.fields["comment"] = "and here"
    assert desk.run("apply", *ALLOWED, *INV, plan, "--check").code == 0


def test_a_clip_recorded_anew_is_not_deleted(desk: Desk, sim: Simulator, plan: str) -> None:
    sim.state.clip("Master Film").create_time = "2026-11-21T00:00:00"
    assert desk.run("apply", *ALLOWED, *INV, plan).code == 4
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
    # A reader may see the first one, and msauto the last, which the checksum is of.
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


def test_where_a_clip_shows_is_looked_at_anew(desk: Desk, sim: Simulator) -> None:
    desk.play({"asset": {"title": "Promo 1", "state": "absent", "with_links": True}})
    assert desk.run("plan", "--out", "promo.plan", *INV, "play.yml").code == 0
    desk.write("msauto.toml", 'protected = ["Playout/*"]')  # where it had only a link, when nothing was protected yet
    sourced = desk.run("apply", *ALLOWED, *INV, "promo.plan")
    assert (sourced.code, sim.writes()) == (4, [])
    sourced.one_error("Playout/*")


def test_a_plan_kept_elsewhere_keeps_its_settings(desk: Desk, sim: Simulator) -> None:
    desk.play({"asset": {"title": "Master Film", "state": "absent"}}, name="books/play.yml")
    desk.write("books/msauto.toml", 'protected = ["Master/*"]')
    (desk.folder / "plans").mkdir()
    assert desk.run("plan", *INV, "books/play.yml", "--out", "plans/tonight.plan").code == 0
    assert desk.run("apply", *ALLOWED, *INV, "plans/tonight.plan").code == 4
    assert not sim.writes()


def test_a_plan_made_by_format_json_will_do(desk: Desk, sim: Simulator) -> None:
    desk.comment("new")
    desk.write("tonight.plan", desk.run("plan", *INV, "play.yml", "--format", "json").out)
    assert desk.run("apply", "--yes", *INV, "tonight.plan").code == 0
    assert len(sim.writes()) == 1


def test_a_result_is_no_plan(desk: Desk, sim: Simulator) -> None:
    desk.comment("new")
    desk.write("done.json", desk.run("apply", "--yes", *INV, "play.yml", "--format", "json").out)
    sourced = desk.run("apply", "--yes", *INV, "done.json")
    assert sourced.code == 1
    assert len(sim.writes()) == 1


def spoilt(data: dict[str, Any]) -> None:
    data["targets"][0]["requests"][0]["path"] += "x"


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (spoilt, "was changed after it was made"),
        (lambda data: data.update(version=2), "version 2"),
        (lambda data: data.update(format="terraform"), "not a plan"),
        (lambda data: data.pop("targets"), "was changed after it was made"),
    ],
)
def test_a_plan_that_somebody_edited(desk: Desk, sim: Simulator, plan: str, spoil: Any, words: str) -> None:
    data = json.loads((desk.folder / plan).read_text())
    spoil(data)
    desk.write(plan, json.dumps(data))
    sourced = desk.run("apply", *ALLOWED, *INV, plan)
    assert (sourced.code, sourced.out) == (1, "")
    sourced.one_error(plan, words, "→")
    assert not sim.log


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
        (("-i", "other.yml"), "the plan is for the server 'studio-a'"),
        ((*INV, "-l", "studio-a"), "--limit"),
        ((*INV, "-t", "x"), "--tags"),
        ((*INV, "play.yml"), "applied alone"),
        ((), "no inventory"),
    ],
)
def test_what_does_not_go_with_a_plan(desk: Desk, sim: Simulator, plan: str, arguments: Any, words: str) -> None:
    desk.inventory({"studio-b": {"server": {"url": desk.url}}}, name="other.yml")
    sourced = desk.run("apply", *ALLOWED, plan, *arguments)
    assert sourced.code == 1
    sourced.one_error(words)
    assert not sim.writes()


def test_only_the_servers_of_the_plan_need_their_secrets(desk: Desk, sim: Simulator, plan: str) -> None:
    hosts = {
        "studio-a": {"server": {"url": desk.url}},
        "studio-b": {"server": {"url": "http://b", "auth": {"bearer": "{{ env.NOT_SET }}"}}},
    }
    desk.inventory(hosts)
    assert desk.run("apply", *ALLOWED, *INV, plan).code == 0
    assert sim.writes()


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


def test_history_names_the_plan_file(desk: Desk, plan: str) -> None:
    assert desk.run("apply", *ALLOWED, *INV, plan).code == 0
    (run,) = desk.run("history", "--format", "json").json
    assert run["playbooks"] == [plan]
