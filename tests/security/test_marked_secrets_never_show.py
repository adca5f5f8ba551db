"""What is marked as secret is sent, and shows nowhere: not on stdout or stderr, in no plan, file, ledger or error."""

from __future__ import annotations

import base64
import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from msauto.plugins.simulator.embedded import SimClip, Simulator
from tests.cli.command_line import Desk, Said
from tests.security.canaries import (
    OURS,
    bytes_below,
    canary,
    environment,
    leaks,
    parrot,
    write_play,
)

pytestmark = pytest.mark.scale


@pytest.fixture
def sim() -> Iterator[Simulator]:
    with Simulator() as simulator:
        yield simulator


@pytest.fixture
def desk(sim: Simulator, tmp_path: Path) -> Desk:
    return Desk(tmp_path, sim.url, environment())


@pytest.fixture
def flags(desk: Desk, sim: Simulator) -> list[str]:
    return write_play(desk.folder, sim.url)


def check(desk: Desk, *sourced: Said) -> None:
    """Neither the output nor a written file contains a canary."""
    for each in sourced:
        assert "Traceback" not in each.err
        assert "msauto itself failed" not in each.err, each.err
        assert leaks(each.out, each.err) == [], (each.out, each.err)
    kept = {name: data for name, data in bytes_below(desk.folder).items() if name not in OURS}
    assert {name: leaks(data) for name, data in kept.items() if leaks(data)} == {}


def check_lists(clip: SimClip) -> None:
    assert clip.xmp["dc:title"] == [canary("xmp")]
    assert clip.xmp["dc:subject"] == ["news", canary("xmplist")]
    (titles,) = (segment.titles for segment in clip.segments if segment.number == 1)
    assert titles == [canary("segment")]
    markers = [marker.fields for marker in clip.markers]
    assert canary("marker") in [marker["title"] for marker in markers]
    assert canary("mcomment") in [marker.get("comment") for marker in markers]


OF_FIELDS = {
    "comment": "comment",
    "user_2": "extra",
    "user_3": "host",
    "user_4": "filevar",
    "user_5": "literal",
}


def check_arrived(sim: Simulator) -> None:
    """The server has the real values."""
    clip = sim.state.clip("EP001")
    fields = clip.home.fields
    for name, about in OF_FIELDS.items():
        assert fields[name] == canary(about)
    assert fields["user_1"] == f"BEARER {canary('derived').upper()}"
    assert base64.b64decode(fields["user_6"]).decode() == canary("lookup")
    check_lists(clip)
    other = sim.state.clip("EP002").home
    assert other.fields["comment"] == f"x {canary('loop')}"
    for title, about in (("EP001", "handler"), ("EP003", "command"), ("EP004", "once")):
        sent = sim.state.clip(title).partner[-1]
        assert sent["house_number"] == canary(about)
    items = {item.title for item in sim.state.channels["ticker"].items}
    assert {canary("text"), canary("rsstitle")} <= items


@pytest.mark.parametrize("form", ["text", "json", "markdown", "html"])
def test_no_form_of_a_plan_or_a_result_shows_one(
    desk: Desk, sim: Simulator, flags: list[str], form: str
) -> None:
    sourced = [
        desk.run("plan", "play.yml", *flags, "--format", form, *more)
        for more in ([], ["-v"], ["-vv"])
    ]
    assert [each.code for each in sourced] == [0, 0, 0], sourced[0].err
    assert all("***" in each.out for each in sourced)
    applied = desk.run(
        "apply", "play.yml", *flags, "--format", form, "-vv", "--yes", "--events", "run.jsonl"
    )
    assert applied.code == 0, applied.out + applied.err
    check(desk, *sourced, applied)
    check_arrived(sim)
    again = desk.run("plan", "play.yml", *flags, "--detailed-exitcode", "--format", "json")
    assert again.code == 0, again.out
    assert again.json["targets"] == []
    check(desk, again)


def test_nothing_else_shows_one(desk: Desk, sim: Simulator, flags: list[str]) -> None:
    assert desk.run("apply", "play.yml", *flags, "--yes").code == 0
    state = flags[-2:]
    inventory = flags[:4]
    sourced = [
        desk.run("history", *state),
        desk.run("history", "last", *state),
        desk.run("history", "last", *state, "--format", "json"),
        desk.run("vars", "studio-a", *inventory),
        desk.run("vars", "studio-a", "host_token", *inventory, "--format", "json"),
        desk.run("undo", "last", "--check", *flags),
        desk.run("undo", "last", "--check", *flags, "--format", "json"),
    ]
    assert all(each.code == 0 for each in sourced), [each.err for each in sourced]
    check(desk, *sourced)
    listed = sourced[5].out + sourced[5].err
    assert "EP001: field comment cannot be undone: it is secret" in listed


def test_a_change_says_before_consent_that_it_cannot_be_undone(
    desk: Desk, flags: list[str]
) -> None:
    plan = desk.run("plan", "play.yml", *flags, "--format", "json").json
    changes = {
        (target["name"], each["aspect"], each["key"]): each
        for target in plan["targets"]
        for each in target["changes"]
    }
    comment = changes["EP001", "field", "comment"]
    assert (comment["after"], comment["secret"], comment["reversible"]) == ("***", True, False)
    assert comment["before"] in (None, "", "***")
    marker = next(each for (_, aspect, _), each in changes.items() if aspect == "marker")
    assert marker["after"]["comment"] == "***"
    assert marker["after"]["frame"] == 7
    assert "sha256" not in json.dumps(
        [request.get("body") for each in plan["targets"] for request in each["requests"]]
    )


@pytest.mark.parametrize("form", ["text", "json", "github", "gitlab"])
def test_validate_shows_none(desk: Desk, flags: list[str], form: str) -> None:
    vars_ = f"{{a: !secret '{canary('literal').replace(chr(39), '')}'}}"
    task = "{asset: {title: x, fields: {comment: [1], nope: '{{ a }}'}}}"
    desk.write("bad.yml", f"- hosts: all\n  vars: {vars_}\n  tasks: [{task}]\n")
    sourced = desk.run("validate", "bad.yml", "inventory.yml", "--format", form)
    assert sourced.code == 1
    assert leaks(sourced.out, sourced.err) == []
    check(desk, sourced, desk.run("validate", "play.yml", *flags[:4], "--format", form))


def test_a_server_that_repeats_all_it_hears_tells_nobody(desk: Desk, sim: Simulator) -> None:
    with parrot(sim.url) as server:
        flags = write_play(desk.folder, server.url)
        sourced = [
            desk.run(
                "apply", "play.yml", *flags, "--yes", "--format", form, "--events", f"{form}.jsonl"
            )
            for form in ("text", "json", "markdown", "html", "junit")
        ]
        assert [each.code for each in sourced] == [3, 3, 3, 3, 3], sourced[0].err
        assert leaks(*server.heard) != []
        history = desk.run("history", "last", *flags[-2:])
    assert "I was sent" in history.out
    check(desk, *sourced, history)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_stopped_leaves_none_behind_and_the_next_one_mends_it(
    desk: Desk, sim: Simulator, flags: list[str], number: int
) -> None:
    sim.faults.add("delay:0.4@POST .*EP001.*SETFIELD+2")
    with desk.start("apply", "play.yml", *flags, "--yes", "-f", "1") as process:
        end = time.monotonic() + 20
        while len(sim.writes()) < 4 and process.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert leaks(out, err) == []
    check(desk)
    sim.faults.clear()
    sourced = desk.run("apply", "play.yml", *flags, "--yes")
    assert sourced.code == 0, sourced.out + sourced.err
    check(desk, sourced, desk.run("history", *flags[-2:]))
    check_arrived(sim)
    again = desk.run("plan", "play.yml", *flags, "--format", "json")
    assert again.json["targets"] == []


@pytest.mark.parametrize("habit", ["", "link_fields=hidden"])
def test_a_saved_plan_sends_them_from_every_place(tmp_path: Path, habit: str) -> None:
    with Simulator(dialect=[habit] if habit else []) as sim:
        desk = Desk(tmp_path, sim.url, environment())
        flags = write_play(desk.folder, sim.url)
        saved = desk.run("plan", "play.yml", *flags, "--out", "plan.json")
        assert saved.code == 0, saved.err
        inventory = [*flags[:2], *flags[-2:]]
        checked = desk.run("apply", "plan.json", *inventory, "--check", "--out", "again.json")
        assert checked.code == 0, checked.err
        applied = desk.run(
            "apply", "plan.json", *inventory, "--yes", "-vv", "--events", "run.jsonl"
        )
        assert applied.code in {0, 3}, applied.out + applied.err
        check_arrived(sim)
        again = desk.run("plan", "play.yml", *flags, "--format", "json")
        assert again.json["targets"] == [], again.out
        check(
            desk,
            saved,
            checked,
            applied,
            again,
            desk.run("history", "last", *flags[-2:], "--format", "json"),
        )


def test_a_run_after_a_killed_one_reads_them_again(
    desk: Desk, sim: Simulator, flags: list[str]
) -> None:
    sim.faults.add("delay:5@POST .*EP001")
    with desk.start("apply", "play.yml", *flags, "--yes", "-f", "1") as process:
        while not sim.log or not any(entry.method == "POST" for entry in sim.log):
            time.sleep(0.01)
        process.kill()
        process.communicate()
    sim.faults.clear()
    sim.clear_log()
    sourced = desk.run("apply", "play.yml", *flags, "--yes")
    assert sourced.code in {0, 3}, sourced.out + sourced.err
    check_arrived(sim)
    check(desk, sourced)


@pytest.mark.parametrize(
    "habit",
    [
        "link_fields=hidden",
        "segment_keywords=hidden",
        "rss_guid=file",
        "rss_guid=stem",
        "xmp_shape=unreadable",
    ],
)
def test_whatever_the_server_does_not_report_is_known_again(tmp_path: Path, habit: str) -> None:
    with Simulator(dialect=[habit]) as sim:
        desk = Desk(tmp_path, sim.url, environment())
        told = habit.split("=")
        flags = write_play(
            desk.folder, sim.url, {"dialect": dict([told])} if told[0] == "rss_guid" else None
        )
        sourced = desk.run("apply", "play.yml", *flags, "--yes")
        assert sourced.code == 0, sourced.out + sourced.err
        check_arrived(sim)
        again = desk.run("plan", "play.yml", *flags, "--format", "json")
        assert again.json["targets"] == [], again.out
        check(desk, sourced, again)
        sim.clear_log()
        assert desk.run("apply", "play.yml", *flags, "--yes").code == 0
        assert sim.writes() == []
