"""The history holds every attempt to apply: also those that wrote nothing, with who made them and why."""

from __future__ import annotations

import asyncio
import getpass
import socket
from typing import Any

import pytest

from msauto.concurrency import SystemClock
from msauto.ledger.ledger import Ledger
from msauto.ledger.locks import LockScope
from msauto.simulator import Simulator
from tests.cli.command_line import Desk, Said
from tests.cli.test_cli_documents import document

STATE = ("--state-dir", "state")
INV = ("-i", "inventory.yml", *STATE)
JSON = (*INV, "--format", "json")
CONTRACT = ("run", "started", "ended", "status", "playbooks", "summary")


def history(desk: Desk) -> Any:
    return desk.run("history", *STATE, "--format", "json").json


def the_only(desk: Desk, sourced: Said, code: int, status: str) -> Any:
    if code == 130:  # a result of nothing
        assert (sourced.code, sourced.out) == (130, "")
    else:
        document(sourced, code)
    (entry,) = history(desk)
    assert tuple(entry)[:6] == CONTRACT
    assert (entry["status"], entry["code"]) == (status, code)
    assert (entry["user"], entry["host"], entry["folder"]) == (
        getpass.getuser(),
        socket.gethostname(),
        str(desk.folder),
    )
    assert entry["started"] <= entry["ended"]
    return entry


def test_no_consent(desk: Desk) -> None:
    entry = the_only(desk, desk.run("apply", desk.comment("new"), *JSON), 4, "refused")
    assert entry["playbooks"] == ["play.yml"]
    assert "no consent" in entry["reason"]
    assert (entry["summary"]["change"], entry["summary"]["requests"]) == (1, 1)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("play.yml", "- hosts: [", "play.yml:1"),
        ("inventory.yml", "all: {hosts: {a: {server: {}}}}", "inventory.yml:1"),
        ("msauto.toml", "forks = 0", "msauto.toml:1"),
    ],
)
def test_bad_input(desk: Desk, name: str, content: str, reason: str) -> None:
    desk.comment("new")
    desk.write(name, content)
    sourced = desk.run("apply", "play.yml", *JSON, "--yes")
    desk.write("msauto.toml", "")
    assert the_only(desk, sourced, 1, "error")["reason"].startswith(reason)


def test_a_target_that_cannot_be_planned(desk: Desk) -> None:
    entry = the_only(desk, desk.run("apply", desk.comment("new", "Nobody"), *JSON, "--yes"), 1, "error")
    assert entry["reason"].startswith("cannot plan 1 target: Nobody: ")
    assert entry["summary"]["errors"] == 1


def test_stale(desk: Desk, sim: Simulator) -> None:
    assert desk.run("plan", desk.comment("new"), *INV, "--out", "plan.json").code == 0
    sim.state.clip("EP001").home.fields["comment"] = "by hand"
    entry = the_only(desk, desk.run("apply", "plan.json", *JSON, "--yes"), 4, "refused")
    assert (entry["playbooks"], "stale" in entry["reason"]) == (["plan.json"], True)


def test_locked(desk: Desk, sim: Simulator) -> None:
    async def locked() -> Said:
        with Ledger.open(desk.state) as ledger:
            async with ledger.hold([LockScope(sim.url, "NEWS")], SystemClock()):
                return await asyncio.to_thread(desk.run, "apply", "play.yml", *JSON, "--yes")

    desk.comment("new")
    assert "is locked by" in the_only(desk, asyncio.run(locked()), 5, "locked")["reason"]


def test_interrupted_while_it_plans(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("msauto.api.loading.make_plan", interrupt)
    entry = the_only(desk, desk.run("apply", desk.comment("new"), *JSON, "--yes"), 130, "interrupted")
    assert entry["reason"] == "nothing was sent"


def test_what_became_a_run(desk: Desk, sim: Simulator) -> None:
    assert the_only(desk, desk.run("apply", desk.comment("new"), *JSON, "--yes"), 0, "ok")["reason"] == ""
    sim.faults.add("status:403@POST*1")
    assert desk.run("apply", desk.comment("newer"), *INV, "--yes").code == 3
    entry = history(desk)[0]
    assert (entry["status"], entry["code"], entry["user"]) == ("failed", 3, getpass.getuser())


def test_only_looking_is_no_attempt(desk: Desk) -> None:
    desk.comment("new")
    assert desk.run("plan", "play.yml", *INV).code == 0
    assert desk.run("apply", "play.yml", *INV, "--check").code == 0
    assert desk.run("apply", "none.yml", *INV, "--check").code == 1
    assert history(desk) == []


def test_newest_first_in_the_table_and_by_the_beginning_of_a_name(desk: Desk) -> None:
    assert desk.run("apply", desk.comment("new"), *INV, "--yes").code == 0
    assert desk.run("apply", desk.comment("newer"), *INV).code == 4
    newest, run = history(desk)
    lines = desk.run("history", *STATE).out.splitlines()
    assert (newest["run"] in lines[1], run["run"] in lines[2]) == (True, True)
    assert "refused" in lines[1]
    assert "no consent" in lines[1]
    for name in (newest["run"], newest["run"][:-1], "last"):
        shown = desk.run("history", name, *STATE)
        assert (shown.code, "no consent" in shown.out, getpass.getuser() in shown.out) == (0, True, True)
    assert desk.run("history", run["run"][:-1], *STATE, "--format", "json").json["run"] == run["run"]
    both = desk.run("history", "20", *STATE)
    both.one_error("20 matches 2 runs", newest["run"], run["run"], "give more characters")
    assert desk.run("undo", run["run"][:-1], *INV, "--yes").code == 0
    assert desk.run("undo", "2", *INV, "--yes").code == 1


def test_last_skips_what_wrote_nothing(desk: Desk, sim: Simulator) -> None:
    sourced = desk.run("undo", "last", *INV, "--yes")
    assert (sourced.code, "contains no runs" in sourced.err) == (1, True)
    assert desk.run("apply", desk.comment("new"), *INV, "--yes").code == 0
    assert desk.run("apply", desk.comment("newer"), *INV).code == 4
    refused, run, *_ = history(desk)
    sourced = desk.run("undo", "last", *INV, "--yes")
    assert (sourced.code, sim.state.clip("EP001").home.fields["comment"]) == (0, "")
    assert f"the last attempt, {refused['run']}, wrote nothing (refused: no consent" in sourced.err
    assert f"the last run is {run['run']}" in sourced.err
    for command in (("undo", refused["run"]), ("apply", "--resume", refused["run"])):
        sourced = desk.run(*command, *INV, "--yes")
        sourced.one_error(f"{refused['run']} wrote nothing: no consent", "→")
        assert sourced.code == 4


def test_a_required_ledger_is_not_begun_by_an_attempt(desk: Desk, sim: Simulator) -> None:
    desk.write("msauto.toml", "[state]\nrequire = true\n")
    desk.comment("new")
    for _ in range(2):
        assert desk.run("apply", "play.yml", *INV, "--yes").code == 4
        assert desk.run("apply", "none.yml", *INV, "--yes").code == 1
    assert not desk.state.exists()
    assert desk.run("apply", "--config", desk.write("first.toml", ""), "none.yml", *INV, "--yes").code == 1
    assert desk.run("apply", "play.yml", *INV, "--yes").code == 4, "attempts alone are no ledger"
    assert (len(history(desk)), sim.writes()) == (2, [])


@pytest.mark.parametrize("bad", ["file", "spoilt"])
def test_a_history_that_cannot_be_written_changes_no_exit_code(desk: Desk, bad: str) -> None:
    desk.comment("new")
    desk.write(*(("state", "a file") if bad == "file" else ("state/ledger.sqlite", "no ledger")))
    sourced = desk.run("apply", "none.yml", *INV, "--yes")
    sourced.one_error("none.yml", "Warning: this attempt is missing from the history: the ledger")
    assert sourced.code == 1
    sourced = desk.run("apply", "play.yml", *INV, "--yes")
    sourced.one_error("the ledger")
    assert (sourced.code, "Warning" in sourced.err) == (1, False)


def test_old_attempts_are_forgotten_with_old_runs(desk: Desk) -> None:
    desk.write("msauto.toml", "[state]\nkeep_runs = 2\n")
    for _ in range(4):
        assert desk.run("apply", desk.comment("x"), *INV).code == 4
    for text in ("1", "2", "3"):
        assert desk.run("apply", desk.comment(text), *INV, "--yes").code == 0
    assert [each["status"] for each in history(desk)] == ["ok", "ok", "refused", "refused"]


def test_a_window_that_closes_before_the_first_target_is_refused_in_the_history(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msauto.cli.plan_and_apply.ask", lambda *_, **__: desk.write("late", ""))
    now = SystemClock().now().replace(hour=12, minute=0)
    late = now.replace(hour=14)
    monkeypatch.setattr(SystemClock, "now", lambda _: late if (desk.folder / "late").exists() else now)
    desk.write("msauto.toml", 'tz = "UTC"\n')
    sourced = desk.run("apply", desk.comment("new"), *JSON, "--yes", "--window", "11:00-13:00")
    entry = the_only(desk, sourced, 4, "refused")
    assert "outside the window 11:00-13:00" in entry["reason"]
