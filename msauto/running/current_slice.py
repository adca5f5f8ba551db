"""The slice that runs in this thread, for work that must know it."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, Final, NamedTuple


class CurrentSlice(NamedTuple):
    """``name`` is the same if the slice runs again after its worker was lost; ``worker``: for messages."""

    name: str
    items: Sequence[Any]
    worker: str


CURRENT_SLICE: Final = ContextVar[CurrentSlice]("the slice that runs")
