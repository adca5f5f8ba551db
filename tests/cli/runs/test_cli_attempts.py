"""The history holds who attempted to apply, and why nothing was written: a lock, or Ctrl-C while planning."""

from __future__ import annotations

import asyncio
import getpass
import socket
import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pytest

from msauto.concurrency import SystemClock
from msauto.errors import LedgerError
from msauto.ledger import sqlite_store
from msauto.ledger.ledger import Ledger
from msauto.ledger.locks import LockScope
from msauto.plugins.simulator.embedded import Simulator
from tests.cli.command_line import Desk, Said

APPLY = ("apply", "play.yml", "-i", "inventory.yml", "--state-dir", "state", "--yes")


@pytest.mark.parametrize("how", ["locked", "interrupted"])
def test_an_attempt_is_kept_with_who_made_it(
    desk: Desk, sim: Simulator, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    async def locked() -> Said:
        with Ledger.open(desk.state) as ledger:
            async with ledger.hold([LockScope(sim.url, "NEWS")], SystemClock()):
                return await asyncio.to_thread(desk.run, *APPLY)

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    desk.comment("new")
    if how == "locked":
        said = asyncio.run(locked())
    else:
        monkeypatch.setattr("msauto.api.run.make_plan", interrupt)
        said = desk.run(*APPLY)
    (entry,) = desk.run("history", "--state-dir", "state", "--format", "json").json
    assert tuple(entry)[:6] == ("run", "started", "ended", "status", "playbooks", "summary")
    code, reason = {"locked": (5, "is locked by"), "interrupted": (130, "nothing was sent")}[how]
    assert (said.code, entry["code"], entry["status"], reason in entry["reason"]) == (
        code,
        code,
        how,
        True,
    )
    made = entry["user"], entry["host"], entry["folder"]
    assert made == (getpass.getuser(), socket.gethostname(), str(desk.folder))
    assert entry["started"] <= entry["ended"]


@pytest.mark.parametrize("fails", [False, True])
def test_how_a_run_ended_is_recorded_while_its_ledger_is_open_or_else_later(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, *, fails: bool
) -> None:
    """Opening a ledger checks all of it, which takes the longer the more runs it has."""
    opened: list[str] = []
    connect, note_end = sqlite_store.connect_to_write, Ledger.note_end

    def noted(ledger: Ledger, run: str, notes: Mapping[str, str]) -> None:
        if fails and len(opened) == 1:
            raise LedgerError("the disk is full")
        note_end(ledger, run, notes)

    def connected(path: Path) -> sqlite3.Connection:
        opened.append(path.name)
        return connect(path)

    monkeypatch.setattr(sqlite_store, "connect_to_write", connected)
    monkeypatch.setattr(Ledger, "note_end", noted)
    desk.comment("new")
    assert desk.run(*APPLY).code == 0
    assert len(opened) == 1 + fails
    (entry,) = desk.run("history", "--state-dir", "state", "--format", "json").json
    assert (entry["code"], entry["reason"]) == (0, "")
