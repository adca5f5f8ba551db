"""Rows: each story on a plain server, and by turns on servers of the pairwise set of dialects.

Which rows a story gets hangs on its name, so that it keeps them; other stories get others. Those that kill a process
take seconds: they are played on other servers among the slow tests only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from zlib import crc32

import pytest

from msauto.simulator import Simulator, empty_state
from tests.dialects.fitting import rows
from tests.dialects.keeping_switches import kept_by
from tests.stage import Stage

EVERYDAY = 0
SLOWLY = 3
PLAIN = pytest.param({}, id="plain")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "row" in metafunc.fixturenames:
        metafunc.parametrize("row", [PLAIN, *_rows(metafunc.function)])


def _rows(story: Callable[..., object]) -> list[object]:
    name, kept = story.__name__, kept_by(story)
    known = rows()
    first = crc32(name.encode()) % len(known)
    step = len(known) // (EVERYDAY + SLOWLY)
    numbers = [(first + turn * step) % len(known) for turn in range(EVERYDAY + SLOWLY)]
    everyday = 0 if "killed" in name else EVERYDAY
    marks = [()] * everyday + [pytest.mark.scale] * (len(numbers) - everyday)
    return [
        pytest.param(known[number] | kept, id=f"row{number}", marks=mark)
        for number, mark in zip(numbers, marks, strict=True)
    ]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A server with a clip and a folder."""
    state = empty_state()
    state.databases["NEWS"].add_clip("Film", "Raw", frames=50_000)
    state.databases["NEWS"].make_folder("Playout")
    with Simulator(state=state) as sim:
        yield Stage(sim, tmp_path)
