"""The functions of :mod:`msauto.aio` for code without asyncio: they block until the work is done.

Each call works in an event loop of its own, in a thread of its own. So it can be made in any thread, after a fork, and
also where an event loop is running, such as a notebook (whose loop waits meanwhile: await :mod:`msauto.aio` there).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from contextlib import closing
from datetime import timedelta
from typing import Any, Final, ParamSpec, Protocol, TypeVar, cast, overload

from msauto import aio
from msauto.api.keywords import File
from msauto.model.result import PastTarget, RunDetails, RunSummary
from msauto.server.sync import Portal

P = ParamSpec("P")
R = TypeVar("R")


def blocking(function: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, R]:
    """Return a function that awaits another one: the same parameters, result, errors and documentation."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with closing(Portal()) as portal:
            return portal.run(function(*args, **kwargs))

    return call


class BlockingHistory(Protocol):
    """The three forms of :func:`history`."""

    @overload
    def __call__(
        self,
        run: None = None,
        *,
        batch: str | None = None,
        since: timedelta | None = None,
        all: bool = False,
        config: File | None = None,
        state_dir: File | None = None,
    ) -> tuple[RunSummary, ...]: ...
    @overload
    def __call__(
        self,
        run: None = None,
        *,
        title: str,
        limit: str | None = None,
        since: timedelta | None = None,
        all: bool = False,
        config: File | None = None,
        state_dir: File | None = None,
    ) -> tuple[PastTarget, ...]: ...
    @overload
    def __call__(
        self, run: str, *, config: File | None = None, state_dir: File | None = None
    ) -> RunDetails: ...


load = blocking(aio.load)
plan = blocking(aio.plan)
apply = blocking(aio.apply)
rehearse = blocking(aio.rehearse)
undo = blocking(aio.undo)
export = blocking(aio.export)
history: Final = cast("BlockingHistory", blocking(aio.history))
