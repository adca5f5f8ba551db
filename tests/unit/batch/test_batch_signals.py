"""The signals of a batch: one more at each step of another, and of a wait, is noted, and nothing waits for ever."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

import pytest

from msauto.plugins.batch.batch_job import BatchSignals

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

SECONDS = 20
"""So long may all steps of a test take."""


@contextmanager
def bounded() -> Iterator[None]:
    def give_up(*_: object) -> None:
        raise TimeoutError("a signal waits for a lock")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def interrupted(work: Callable[[], object], step: int) -> bool:
    """Do work, with a signal before its opcode of this number; return whether it has so many."""
    steps = 0

    def trace(frame: FrameType, _event: str, _value: Any) -> Any:
        nonlocal steps
        frame.f_trace_opcodes = True
        steps += 1
        if steps == step:
            signal.raise_signal(signal.SIGTERM)
        return trace

    tracing = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(tracing)
    return steps >= step


def test_a_signal_at_any_step_of_another_is_noted() -> None:
    step = 1
    more = True
    with bounded():
        while more:
            calls: list[bool] = []
            signals = BatchSignals()
            signals.react = partial(calls.append, True)
            with signals.noted():
                more = interrupted(partial(signal.raise_signal, signal.SIGINT), step)
            assert signals.requested
            assert len(calls) == 1 + more
            step += 1
    assert step > 10


def test_a_signal_at_any_step_of_a_wait_ends_it() -> None:
    step = 1
    more = True
    with bounded():
        while more:
            signals = BatchSignals()
            with signals.noted():
                more = interrupted(partial(signals.wait, 0.001), step)
            assert signals.requested == more
            step += 1
    assert step > 10


def test_a_wait_ends_with_a_signal_that_came_before() -> None:
    signals = BatchSignals()
    with bounded(), signals.noted():
        signal.raise_signal(signal.SIGTERM)
        assert signals.wait(3600)
        assert signals.wait(3600)


def test_a_hang_up_after_another_signal_is_nothing_new() -> None:
    calls: list[bool] = []
    signals = BatchSignals()
    signals.react = partial(calls.append, True)
    with signals.noted():
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGTERM)
    assert len(calls) == 2


def test_a_signal_after_the_loop_of_a_job_has_closed_is_noted() -> None:
    loop = asyncio.new_event_loop()
    signals = BatchSignals()
    signals.react = partial(loop.call_soon_threadsafe, int)
    loop.close()
    with signals.noted():
        signal.raise_signal(signal.SIGTERM)
    assert signals.requested
