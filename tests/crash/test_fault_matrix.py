"""The fault matrix: every fault × every write request × some dialects.

After apply the report is true (compared with the store of the server), nothing is duplicated, and the exit code is 0
or 3. A further apply without faults reaches the desired state, after which nothing is left to do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from msauto.model.result import Result
from msauto.plugins.simulator.embedded import SimDialect, Simulator
from tests.conftest import COUNTED
from tests.crash.faulty import (
    DIALECTS,
    KINDS,
    PATIENCE,
    WRITES,
    Write,
    initial_state,
    twins,
    until_late_work_is_done,
)
from tests.stage import Stage

pytestmark = pytest.mark.scale

MATRIX = [(kind, write, dialect) for kind in KINDS for write in WRITES for dialect in DIALECTS]
UNKNOWABLE = {"swallow"}
"""Faults that look like success where reading shows nothing: the value is written once (dialect, «What is assumed»)."""


@pytest.fixture(scope="module")
def sim() -> Iterator[Simulator]:
    with Simulator(state=initial_state()) as simulator:
        yield simulator


def test_the_matrix_is_whole(record_property: Callable[[str, object], None]) -> None:
    assert len(MATRIX) == 17 * 23 * 4
    each = f"{len(KINDS)} kinds × {len(WRITES)} requests × {len(DIALECTS)} dialects"
    record_property(COUNTED, f"fault matrix: {each} = {len(MATRIX)}")


@pytest.mark.parametrize(("kind", "name", "dialect"), MATRIX)
def test_what_is_told_is_true_and_the_next_run_mends(
    sim: Simulator, tmp_path: Path, kind: str, name: str, dialect: str
) -> None:
    write, theirs = WRITES[name], DIALECTS[dialect]
    sim.state = initial_state()
    sim.dialect = SimDialect.parse(theirs.switches)
    sim.clear_log()
    stage = Stage(sim, tmp_path, dialect={**theirs.ours, **write.ours}, policy=PATIENCE)
    assert not write.is_there(sim)
    sim.faults.clear()
    sim.faults.add(f"{kind}@{write.strikes}*1")
    result = stage.apply(write.task)
    blind = write.hidden_by == dialect
    check_told(result, write, sim, blind=blind and kind in UNKNOWABLE)
    if kind.startswith("late"):
        until_late_work_is_done(sim)
    check_once(sim, doubled=kind in write.doubled_by)
    sim.faults.clear()
    if blind and kind in UNKNOWABLE:
        return
    if twins(sim.state):
        (refused,) = stage.apply(write.task).targets
        assert "remove them all in a run before" in refused.message
        return
    check_mended(stage, write, sim, forget=kind in UNKNOWABLE)


def check_told(result: Result, write: Write, sim: Simulator, *, blind: bool) -> None:
    assert result.plan.errors == 0
    (target,) = result.targets
    told = (target.outcome, target.message, target.requests, target.differences)
    there = write.is_there(sim)
    assert target.outcome in {"changed", "failed", "unverified"}, told
    if not blind:
        assert target.outcome != "changed" or there, told
    assert target.outcome != "failed" or not there, told
    assert result.ok == (target.outcome == "changed")


def check_once(sim: Simulator, *, doubled: bool) -> None:
    assert doubled or twins(sim.state) == []
    done = Counter((entry.line, entry.body) for entry in sim.writes() if entry.done)
    assert [line for line, count in done.items() if count > 1] == []


def check_mended(stage: Stage, write: Write, sim: Simulator, *, forget: bool) -> None:
    """One more run reaches the desired state; what was accepted and not done must be forgotten for that."""
    again = stage.apply(write.task, forget_pending=forget)
    assert again.ok, [
        (each.outcome, each.message, each.target.error, each.differences) for each in again.targets
    ]
    assert write.is_there(sim)
    assert twins(sim.state) == []
    assert stage.plan(write.task).requests == 0
