"""The history holds who attempted to apply, and why nothing was written: a lock, or Ctrl-C while planning."""

from __future__ import annotations

import asyncio
import getpass
import socket

import pytest

from msauto.concurrency import SystemClock
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
        monkeypatch.setattr("msauto.api.loading.make_plan", interrupt)
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
