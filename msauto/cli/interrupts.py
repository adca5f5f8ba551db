"""Ctrl-C (SIGINT), SIGTERM and SIGHUP, in each phase of a command.

While modules are imported
    Nothing has begun: the process ends at once (:func:`importing`). An exception would not do: Python 3.11
    turns one that is raised while an enum is created into a ``RuntimeError``, and swallows one in a finalizer.
While a coroutine reads
    The coroutine is cancelled (:func:`run_async`). The handler of ``asyncio.Runner`` would raise in the event loop on
    the second Ctrl-C. That can lose the wakeup of a task, and closing the loop then never ends.
While the user is asked
    The coroutine blocks, and Ctrl-C raises in it (:func:`asking`).
While a plan is applied
    The run finishes the requests that are under way. The signals are then ignored until the result is
    printed (:func:`ignore_interrupts`).

``msauto --help`` needs no event loop, so asyncio is imported only where a coroutine runs.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Final, TypeVar

from msauto.concurrency import HANG_UP, stop_signals
from msauto.exit_codes import INTERRUPTED

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
_IGNORED: Final = [number for number in (signal.SIGINT, HANG_UP) if number is not None]
_AUTHORITIES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Where OpenSSL finds the authorities of the system, if set."""


@contextmanager
def importing() -> Iterator[None]:
    """Import modules inside, without the garbage collector; SIGINT ends the process with one line and exit code 130.

    The authorities of the system are hidden: aiohttp loads them twice while it is imported, which takes a tenth of a
    small plan, and keeps them for the whole process. Without them its own contexts trust no server. Connections of
    msauto have contexts of their own, made later (:func:`msauto.server.access.tls`). Only the main thread imports so.
    """
    enabled, loaded = gc.isenabled(), len(sys.modules)
    authorities = {name: os.environ[name] for name in _AUTHORITIES if name in os.environ}
    gc.disable()
    os.environ.update(dict.fromkeys(_AUTHORITIES, os.devnull))
    try:
        with _handled_by(_exit):
            yield
    finally:
        for name in _AUTHORITIES:
            os.environ.pop(name, None)
        os.environ.update(authorities)
        if len(sys.modules) > loaded:
            gc.freeze()  # modules stay: the collector need not visit them, neither later nor at the exit
        if enabled:
            gc.enable()


@contextmanager
def restored_handler(final: signal.Handlers | None = None) -> Iterator[None]:
    """Restore the handlers of SIGINT and SIGHUP at the end, or set ``final``.

    A process that is about to exit ignores both: a Ctrl-C during shutdown would replace its exit code.
    """
    before = {number: signal.getsignal(number) for number in _IGNORED}
    try:
        yield
    finally:
        if _in_main_thread():
            for number, handler in before.items():
                signal.signal(number, final or handler)


def run_async(work: Awaitable[T]) -> T:
    """Run ``work`` to its end, in an event loop of its own; Ctrl-C cancels it.

    Raises ``KeyboardInterrupt`` after everything under way is closed, also if the signal came too late to cancel.
    """
    import asyncio

    canceller = _Canceller()
    with _handled_by(canceller):
        try:
            result = asyncio.run(canceller.guard(work))
        except asyncio.CancelledError:
            if not canceller.interrupted:
                raise
    if canceller.interrupted:
        raise KeyboardInterrupt
    return result


@contextmanager
def asking() -> Iterator[None]:
    """Let Ctrl-C raise ``KeyboardInterrupt`` inside: a coroutine blocks its event loop while the user is asked."""
    canceller = signal.getsignal(signal.SIGINT)
    if not isinstance(canceller, _Canceller):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if canceller.interrupted:
            raise KeyboardInterrupt
        yield
    finally:
        signal.signal(signal.SIGINT, canceller)


def ignore_interrupts(loop: asyncio.AbstractEventLoop) -> None:
    """Remove the loop's handlers, and ignore SIGINT and SIGHUP from now on; ``main`` restores the handlers.

    They are blocked meanwhile, because asyncio puts Python's default handler in place, which raises.
    """
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _IGNORED)
    try:
        for number in stop_signals():
            loop.remove_signal_handler(number)
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


class _Canceller:
    """A handler of SIGINT that cancels one task, once: more signals must not interrupt the closing of connections."""

    def __init__(self) -> None:
        self.interrupted = False
        self._cancel: Callable[[], object] = lambda: None

    async def guard(self, work: Awaitable[T]) -> T:
        """Await ``work`` as the task that the signal cancels."""
        import asyncio

        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        if task is not None:
            self._cancel = lambda: (
                None if loop.is_closed() else loop.call_soon_threadsafe(task.cancel)
            )
        if self.interrupted:  # before there was a task
            raise asyncio.CancelledError
        return await work

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        if not self.interrupted:
            self.interrupted = True
            self._cancel()


def _exit(_number: int, _frame: FrameType | None) -> None:
    try:
        os.write(2, b"Interrupted.\n")
    finally:  # stderr may be closed
        os._exit(INTERRUPTED)


@contextmanager
def _handled_by(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle SIGINT with ``handler``, unless the signal is ignored or has a handler other than Python's default.

    A handler that has cancelled a task stays installed, so that more signals of a burst do nothing. So does one that
    replaced it inside.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler or not _in_main_thread():
        yield
        return
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is handler and not getattr(
            handler, "interrupted", False
        ):
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _in_main_thread() -> bool:
    """Return whether this is the main thread: in no other does Python set signal handlers."""
    return threading.current_thread() is threading.main_thread()
