"""The functions of :mod:`msauto.aio` for code without asyncio: they block until the work is done.

Each call works in an event loop of its own, in a thread of its own. So it can be made in any thread, after a fork, and
also where an event loop is running, such as a notebook (whose loop waits meanwhile: await :mod:`msauto.aio` there).
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, Generic, ParamSpec, Protocol, TypeVar, cast, overload

from msauto import aio
from msauto.api.keywords import File
from msauto.model.result import RunDetails, RunSummary

P = ParamSpec("P")
R = TypeVar("R")


def blocking(function: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, R]:
    """Return a function that awaits another one: the same parameters, result, errors and documentation."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return BlockingCall(function(*args, **kwargs)).result()

    return call


class BlockingCall(Generic[R]):
    """One coroutine in a thread. Whatever interrupts the caller, such as Ctrl-C, cancels it, and is raised at its end.

    So the requests in flight are finished and recorded first; a second Ctrl-C stops at once.
    """

    def __init__(self, work: Coroutine[Any, Any, R]) -> None:
        self._work = work
        self._ended: Future[R] = Future()
        self._cancel: Callable[[], object] | None = None
        self._cancelled = False

    def result(self) -> R:
        """Run to the end, and return the result."""
        run = functools.partial(contextvars.copy_context().run, self._run)
        thread, interruption = threading.Thread(target=run, name="msauto"), None
        while not self._ended.done():
            try:
                if thread.ident is None:
                    thread.start()
                wait([self._ended])
            except BaseException as stop:  # noqa: BLE001 - what a signal handler raises: raised below
                interruption, self._cancelled = stop, True
                if self._cancel is not None:
                    self._cancel()
        thread.join()
        if interruption is not None:
            raise interruption
        return self._ended.result()

    def _run(self) -> None:
        try:
            result = asyncio.run(self._main())
        except BaseException as error:  # noqa: BLE001 - raised in the thread of the caller
            self._ended.set_exception(error)
        else:
            self._ended.set_result(result)

    async def _main(self) -> R:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def cancel() -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(task.cancel)

        self._cancel = cancel
        if self._cancelled:  # before there was a task
            cancel()
        return await self._work


class BlockingHistory(Protocol):
    """The two forms of :func:`history`."""

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
    def __call__(self, run: str, *, config: File | None = None, state_dir: File | None = None) -> RunDetails: ...


load = blocking(aio.load)
plan = blocking(aio.plan)
apply = blocking(aio.apply)
undo = blocking(aio.undo)
export = blocking(aio.export)
history: Final = cast("BlockingHistory", blocking(aio.history))
