"""Random worlds that change while msauto works: never the wrong clip, nothing lost, and verified is verified.

The oracle of ``tests/worlds`` knows the contract and nothing of the planner. A seed makes one world, always the same:
``MSAUTO_WORLD=4711 pytest -m worlds tests/properties/test_changing_worlds.py`` begins there, and `random` anywhere.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import SystemRandom

import pytest

from msauto.concurrency import SystemClock
from msauto.simulator import Simulator
from tests.cli.command_line import Desk
from tests.conftest import COUNTED
from tests.worlds.run import Stand
from tests.worlds.scenario import scenario

FEW, MANY, SHARES = 60, 2000, 8
GIVEN = os.environ.get("MSAUTO_WORLD", "0")
FIRST = SystemRandom().randrange(10**9) if GIVEN == "random" else int(GIVEN)


@pytest.fixture
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    """One server for many worlds; pauses between requests and reads are fifty times as short."""

    async def sleep(_: object, seconds: float) -> None:
        await asyncio.sleep(seconds / 50)

    monkeypatch.setattr(SystemClock, "sleep", sleep)
    with Simulator("empty") as sim:
        stand = Stand(sim, Desk(tmp_path, sim.url))
        monkeypatch.setattr(SystemClock, "now", lambda _: datetime.now(UTC) + stand.passed)
        yield stand


def check(stand: Stand, seeds: range, count: Callable[[str, object], None]) -> None:
    for seed in seeds:
        world = scenario(seed)
        wrong = stand.wrong(world)
        assert not wrong, "\n".join([str(world), *wrong])
    count(COUNTED, f"changing worlds from seed {seeds[0]}: {len(seeds)}")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("share", range(2))
def test_few_worlds(stand: Stand, record_property: Callable[[str, object], None], share: int) -> None:
    check(stand, range(share * FEW // 2, (share + 1) * FEW // 2), record_property)


@pytest.mark.scale
@pytest.mark.worlds
@pytest.mark.parametrize("share", range(SHARES))
def test_many_worlds_slow(stand: Stand, record_property: Callable[[str, object], None], share: int) -> None:
    first = FIRST + share * MANY // SHARES
    check(stand, range(first, first + MANY // SHARES), record_property)
