"""A trial that fails at any of its requests: the asset is as before, or what is left is reported."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from msauto.errors import MsautoError
from msauto.model.server import Dialect, ServerSpec
from msauto.plugins.probe.probe import TrialOptions, probe_by_trial
from msauto.plugins.simulator.embedded import SimDialect, Simulator
from tests.unit.server.test_probe import FIELD, TITLE, Still, let_all, shown, state

pytestmark = pytest.mark.scale

REQUESTS = 70
"""More than a trial with everything takes: the last ones meet no trouble."""

FAULTS = ("cut_before", "cut_after", "swallow", "status:500", "status:503", "html")
TRIAL = TrialOptions(TITLE, FIELD)


@pytest.fixture(scope="module")
def running() -> Iterator[Simulator]:
    with Simulator(state()) as simulator:
        yield simulator


@pytest.fixture
def sim(running: Simulator) -> Simulator:
    running.state, running.dialect = state(), SimDialect.parse(["line_limit=1200"])
    running.faults.clear()
    running.clear_log()
    return running


async def trial(sim: Simulator, told: list[str]) -> tuple[str, ...] | None:
    spec = ServerSpec("sim", sim.url, dialect=Dialect())
    found = await probe_by_trial(
        spec, "NEWS", TRIAL, clock=Still(), report=told.append, refuse=let_all
    )
    return found.left


def meet(sim: Simulator, fault: str, number: int) -> None:
    """Meet the fault at one request, once."""
    before, told = shown(sim), list[str]()
    sim.faults.add(f"{fault}@ /*1+{number}")
    try:
        left = asyncio.run(trial(sim, told))
    except MsautoError as error:
        left, told = (
            (),
            [*told, str(error)],
        )  # the trial was not begun, or it is told where it ended
    if not left:
        assert shown(sim) == before, (fault, number, told)


def test_a_trial_takes_fewer_requests(sim: Simulator) -> None:
    asyncio.run(trial(sim, []))
    assert 30 < len(sim.log) < REQUESTS


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("number", [*range(0, REQUESTS, 3)])
def test_trouble_at_one_request(sim: Simulator, fault: str, number: int) -> None:
    meet(sim, fault, number)


async def interrupted(sim: Simulator, number: int, told: list[str], *, times: int = 1) -> bool:
    """Cancel the trial as soon as the server has seen ``number`` requests; return whether it was still running."""
    task = asyncio.ensure_future(trial(sim, told))
    while len(sim.log) <= number and not task.done():  # noqa: ASYNC110 - of another thread
        await asyncio.sleep(0)
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
    await asyncio.gather(task, return_exceptions=True)
    return task.cancelled()


@pytest.mark.parametrize("number", range(REQUESTS))
def test_an_interruption_at_every_request(sim: Simulator, number: int) -> None:
    before, told = shown(sim), list[str]()
    asyncio.run(interrupted(sim, number, told))
    assert shown(sim) == before, told


@pytest.mark.parametrize("number", range(0, REQUESTS, 3))
def test_who_stops_again_and_again_is_told_what_to_look_for(sim: Simulator, number: int) -> None:
    before, told = shown(sim), list[str]()
    asyncio.run(interrupted(sim, number, told, times=5))
    if shown(sim) != before:
        assert told[-1].startswith(
            "Stopped while undoing: it is not known what is left. Look for segment 5"
        )


def test_a_field_that_had_no_value_stays_empty_and_is_told(sim: Simulator) -> None:
    sim.state.clip(TITLE).xmp.pop(FIELD)
    told: list[str] = []
    assert asyncio.run(trial(sim, told)) == ()
    assert sim.state.clip(TITLE).xmp.get(FIELD) in (None, [], [""])
    assert [line for line in told if FIELD in line and "empty" in line]
