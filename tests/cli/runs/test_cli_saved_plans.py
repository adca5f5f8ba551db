"""A plan that is kept and applied later: it is made again, and applied as it was shown, or not at all; and --target."""

from __future__ import annotations

import json
import shlex
from datetime import datetime
from typing import Any

import pytest

from msauto.plugins.simulator.embedded import Simulator
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
    {
        "rss": {
            "channel": "ticker",
            "items": [{"guid": "n-9", "file": "n-9.txt", "text": "Новости"}],
        }
    },
    {"asset": {"title": "Master Film", "state": "absent"}},
)


@pytest.fixture
def plan(desk: Desk, sim: Simulator) -> str:
    desk.play(*TASKS)
    sourced = desk.run("plan", *INV, "play.yml", "--out", "tonight.plan")
    assert sourced.code == 0, sourced
    assert sourced.err.endswith(
        "Saved the plan to tonight.plan; apply it with: msauto apply tonight.plan\n"
    )
    sim.clear_log()
    return "tonight.plan"


ALLOWED = ("--yes", "--allow-delete", "1")


def test_the_command_for_a_plan_with_errors_works(desk: Desk) -> None:
    desk.play({"asset": EPISODE}, {"asset": {"title": "Nobody", "fields": {"comment": "x"}}})
    own = ("--state-dir", "my state")
    planned = desk.run("plan", *INV, "play.yml", "--out", "a.plan", "--keep-going", *own)
    _, _, command = planned.err.partition("apply it with: msauto ")
    arguments = shlex.split(command.splitlines()[0])
    assert arguments == ["apply", "a.plan", "--keep-going", *own]
    assert desk.run(*arguments, "--yes").code == 3


def test_what_was_shown_is_what_is_sent(desk: Desk, sim: Simulator, plan: str) -> None:
    kept = json.loads((desk.folder / plan).read_text())
    sourced = desk.run("apply", *ALLOWED, plan)  # the plan names its playbook and its inventory
    assert sourced.code == 0, sourced
    shown = [
        f"{request['method']} {request['path']}"
        for t in kept["targets"]
        for request in t["requests"]
    ]
    assert sorted(entry.line for entry in sim.writes()) == sorted(shown)
    first_write = next(n for n, entry in enumerate(sim.log) if entry.method not in {"GET", "HEAD"})
    read = {entry.target for entry in sim.log[:first_write]}
    assert {
        f"/storage/NEWS@Promo%20{n}" for n in (1, 2)
    } < read  # every target is read before the first write
    assert desk.run("plan", *INV, "play.yml", "--detailed-exitcode").code == 0


def test_a_key_that_stands_twice_is_refused(desk: Desk, sim: Simulator, plan: str) -> None:
    text = (desk.folder / plan).read_text(encoding="utf-8")
    # A reader may see the first one, and msauto the last.
    desk.write(plan, text.replace('"msauto":', '"targets": [], "msauto":', 1))
    sourced = desk.run("apply", *ALLOWED, *INV, plan)
    sourced.one_error("duplicate key 'targets'")
    assert (sourced.code, sim.writes()) == (1, [])


def test_a_server_that_is_away_when_the_plan_is_applied(desk: Desk) -> None:
    with Simulator() as away:
        desk.inventory({"studio-a": {"server": {"url": away.url}, "database": "NEWS"}})
        desk.comment("new")
        assert desk.run("plan", *INV, "play.yml", "--out", "tonight.plan").code == 0
    sourced = desk.run("apply", *ALLOWED, *INV, "tonight.plan")
    assert sourced.code == 1
    sourced.one_error("no connection")


# What it was made from -------------------------------------------------------------------------------------------


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
    flags = (
        "-e",
        "@more.yml",
        "-e",
        "word=today",
        "-t",
        "a",
        "--target",
        "EP00[12]",
        "-l",
        "studio-a",
    )
    assert (
        desk.run("plan", *INV, "play.yml", *flags, "--out", "sub/kept.plan").code == 1
    )  # no such folder
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
    assert (
        sim.state.clip("EP001").home.fields["comment"]
        == f"from a file today {datetime.fromisoformat(now)}"
    )


# ``--target``: the plan of some targets, as if the others were not in the playbook


def comment(title: str, **more: Any) -> dict[str, Any]:
    return {"asset": {"title": title, "fields": {"comment": f"new {title}"}}, **more}
