"""Secrets in what is recorded beside a plan: reasons, attempts that wrote nothing, and unexpected exceptions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msauto.api import stages
from msauto.api.attempts import Attempt
from msauto.api.inputs import Inputs
from msauto.api.loading import Loaded
from msauto.api.run import RunOptions
from msauto.api.workplace import StageContext
from msauto.cli.flags import Flags
from msauto.cli.plan_and_apply import RunDialog
from msauto.cli.watch import RunWatch
from msauto.concurrency import SystemClock
from msauto.errors import MsautoError
from msauto.ledger.ledger import Ledger
from msauto.model.desired import ResolvedPlaybooks
from msauto.model.events import ignore
from msauto.model.plan import Limits, Plan, PlanOptions
from msauto.playbook.settings import Settings
from msauto.plugins.simulator.embedded import Simulator
from msauto.secrets.redaction import Secrets
from tests.cli.command_line import Desk
from tests.security.marked import ENV, INV, TOKEN, comment
from tests.security.security_desk import leaks

STATE = ("--state-dir", "state")


@pytest.fixture
def sim() -> Iterator[Simulator]:
    with Simulator() as simulator:
        yield simulator


@pytest.fixture
def desk(sim: Simulator, tmp_path: Path) -> Desk:
    desk = Desk(tmp_path, sim.url, ENV)
    desk.inventory({"studio-a": {"server": {"url": sim.url}, "database": "NEWS"}})
    return desk


def test_the_reason_to_override_a_freeze_is_recorded_without_a_secret(desk: Desk) -> None:
    comment(desk, "{{ token }}")
    sourced = [
        desk.run("apply", "play.yml", *INV, "--yes", "--override-freeze", f"urgent {TOKEN}"),
        desk.run("history", "last", *STATE),
        desk.run("history", "last", *STATE, "--format", "json"),
    ]
    assert [each.code for each in sourced] == [0, 0, 0], sourced[0]
    assert sourced[2].json["notes"]["override_freeze"] == "urgent ***"
    assert leaks(desk, sourced, TOKEN) == []


def test_the_message_of_an_unexpected_exception_shows_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a message is printed, and recorded as the reason of the attempt."""

    async def plan(*_: object, **__: object) -> None:
        raise ValueError(f"cannot encode {TOKEN}")

    monkeypatch.setattr("msauto.api.run.make_plan", plan)
    inputs = Inputs(PlanOptions(), Settings(), tmp_path, tmp_path)
    loaded = Loaded(inputs, ResolvedPlaybooks((), secrets=Secrets([TOKEN])))
    for check in (True, False):
        with pytest.raises(MsautoError, match="msauto itself failed: ValueError") as failure:
            RunDialog(
                Flags(inputs=inputs), RunOptions(), Attempt(None, ()), RunWatch(), check=check
            ).run(loaded)
        assert TOKEN not in str(failure.value)


class ClosedWorkplace:
    """Can neither plan nor apply; the reason contains a secret."""

    def planning(self, *_: object) -> Any:
        """Raise."""
        raise MsautoError(f"no way to {TOKEN}", remedy="wait")

    applying = planning


def test_no_stage_raises_a_secret_whoever_calls_it(tmp_path: Path) -> None:
    resolved = ResolvedPlaybooks((), secrets=Secrets([TOKEN]))
    with Ledger.open(tmp_path) as ledger:
        workplace: Any = ClosedWorkplace()
        stage = StageContext(ledger, resolved, SystemClock(), workplace=workplace)
        for work in (
            stages.make_plan(stage, Limits()),
            stages.apply_plan(Plan("", ""), stage, ignore),
        ):
            with pytest.raises(MsautoError, match=r"no way to \*\*\*"):
                asyncio.run(work)
