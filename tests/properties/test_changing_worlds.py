"""Random worlds that change while msauto works: never the wrong clip, nothing lost, and verified is verified.

The oracle of ``tests/worlds`` knows the contract and nothing of the planner. A seed and kinds of trouble make one
world, always the same: ``MSAUTO_WORLD=4711 pytest -m worlds tests/properties/test_changing_worlds.py`` begins there,
and `random` anywhere. The many worlds have no trouble of an open kind: close it in ``troubles.OPEN``.
``python -m tests.worlds.show 4711 twins`` prints what happens in a world.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random, SystemRandom

import pytest

from tests.conftest import COUNTED
from tests.worlds.run import Stand, a_stand
from tests.worlds.scenario import Scenario, scenario
from tests.worlds.troubles import ALONE, KINDS, OPEN

FEW, MANY, SHARES = 3, 1200, 8
MORE = {
    "equal_things_of_others": (6, 10),
    "renumbering": (3, 6),
    "what_holds_already": (3, 4),
    "moved_before_its_deletion": (3, 10),
    "titles_of_links_that_lead_elsewhere": (3, 9, 13, 37),
    "renamed_between_nights": (8,),
    "shows_after_the_run": (4,),
    "items_that_resemble": (31, 236806287, 236806453),
}
"""Seeds beside the first few, so that each kind finds what it found while it was open."""
GIVEN = os.environ.get("MSAUTO_WORLD", "0")
FIRST = SystemRandom().randrange(10**9) if GIVEN == "random" else int(GIVEN)
CLOSED = sorted(KINDS.keys() - OPEN)


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    """One server for many worlds."""
    with a_stand(tmp_path) as stand:
        yield stand


def some_kinds(random: Random) -> list[str]:
    """One kind of those that are closed, or two that go together."""
    kinds = random.sample(CLOSED, random.randint(1, 2))
    return kinds[:1] if ALONE & set(kinds) else kinds


def check(stand: Stand, worlds: Iterable[Scenario]) -> None:
    for world in worlds:
        wrong = stand.wrong(world)
        assert not wrong, "\n".join([str(world), *wrong])


@pytest.mark.parametrize("kind", KINDS)
def test_few_worlds(stand: Stand, kind: str) -> None:
    check(stand, (scenario(seed, kind) for seed in (*range(FEW), *MORE.get(kind, ()))))


@pytest.mark.scale
@pytest.mark.worlds
@pytest.mark.parametrize("share", range(SHARES))
def test_many_worlds_slow(
    stand: Stand, record_property: Callable[[str, object], None], share: int
) -> None:
    """One kind of trouble, or two at once."""
    first, count = FIRST + share * MANY // SHARES, MANY // SHARES
    seeds = range(first, first + count)
    check(stand, (scenario(seed, *some_kinds(Random(seed))) for seed in seeds))
    record_property(COUNTED, f"changing worlds from seed {first}: {count}")
