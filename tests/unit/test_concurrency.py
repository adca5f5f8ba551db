"""Concurrency: bounded, ordered maps; places that a worker may leave; and what must be done to its end."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Iterator

import pytest

from msauto.concurrency import (
    MAX_WAITING,
    ConcurrencySlot,
    concurrent_list,
    concurrent_map,
    finish,
    run_unless,
)


def in_loop(test: Callable[[], Coroutine[object, object, None]]) -> Callable[[], None]:
    @functools.wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


class Work:
    """Items of which some wait for ``gate``; what is drawn, under way and finished is counted."""

    def __init__(self, slow: frozenset[int] = frozenset()) -> None:
        self.slow = slow
        self.gate = asyncio.Event()
        self.drawn: list[int] = []
        self.finished: list[int] = []
        self.cancelled: list[int] = []
        self.under_way = 0
        self.busiest = 0

    def items(self, count: int) -> Iterator[int]:
        for number in range(count):
            self.drawn.append(number)
            yield number

    async def do(self, number: int) -> int:
        self.under_way += 1
        self.busiest = max(self.busiest, self.under_way)
        try:
            await asyncio.sleep(0)
            if number in self.slow:
                await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled.append(number)
            raise
        finally:
            self.under_way -= 1
        self.finished.append(number)
        return number


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@in_loop
async def test_results_come_in_order_however_long_each_takes() -> None:
    async def do(number: int) -> int:
        await turns(number * 7 % 5)
        return number

    assert await concurrent_list(do, range(100), limit=3) == list(range(100))


@in_loop
async def test_a_slow_item_delays_no_other() -> None:
    work = Work(slow=frozenset({0}))
    results = asyncio.ensure_future(concurrent_list(work.do, work.items(200), limit=4))
    await turns(1000)
    assert work.finished == list(range(1, 200)), "all but the slow one"
    assert work.busiest == 4
    work.gate.set()
    assert await results == list(range(200))


@in_loop
async def test_what_waits_for_a_slow_item_is_bounded() -> None:
    work = Work(slow=frozenset({0}))
    results = asyncio.ensure_future(concurrent_list(work.do, work.items(MAX_WAITING * 3), limit=2))
    await turns(MAX_WAITING * 6)
    assert len(work.drawn) == MAX_WAITING + 2
    work.gate.set()
    assert await results == list(range(MAX_WAITING * 3))


@in_loop
async def test_other_tasks_run_between_results_that_waited() -> None:
    work = Work(slow=frozenset({0}))
    taken: list[int] = []
    results = concurrent_map(work.do, work.items(100), limit=2)

    async def take() -> None:
        async for each in results:
            taken.append(each)

    taking = asyncio.ensure_future(take())
    await turns(1000)
    work.gate.set()
    await turns(30)
    assert 0 < len(taken) < 100
    await taking


@in_loop
async def test_after_a_failure_no_item_is_taken_and_running_calls_are_cancelled() -> None:
    work = Work(slow=frozenset({0, 1}))

    async def do(number: int) -> int:
        await work.do(number)
        if number == 5:
            raise ZeroDivisionError
        return number

    taken: list[int] = []

    async def take() -> None:
        async for each in concurrent_map(do, work.items(100), limit=4):
            taken.append(each)

    taking = asyncio.ensure_future(take())
    await turns(100)
    assert max(work.drawn) < 5 + 4
    work.gate.set()
    with pytest.raises(ZeroDivisionError):
        await taking
    assert taken == [0, 1, 2, 3, 4]
    assert work.under_way == 0


@in_loop
async def test_an_abandoned_map_cancels_its_calls() -> None:
    work = Work(slow=frozenset({1, 3}))
    results = concurrent_map(work.do, work.items(100), limit=2)
    assert await anext(results) == 0
    await results.aclose()
    assert work.under_way == 0
    assert 1 in work.cancelled


@in_loop
async def test_a_failure_of_the_items_themselves_is_raised() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ZeroDivisionError

    work = Work()
    with pytest.raises(ZeroDivisionError):
        await concurrent_list(work.do, items(), limit=2)
    assert work.under_way == 0


@in_loop
async def test_a_limit_below_one_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        await concurrent_list(Work().do, [1], limit=0)


# Places that a worker may leave, and work that an alarm cuts short


def test_a_slot_is_left_and_entered_again_once() -> None:
    async def main() -> list[bool]:
        slots = asyncio.Semaphore(1)
        await slots.acquire()
        slot, free = ConcurrencySlot(slots), []
        for change in (slot.leave, slot.leave, slot.enter, slot.enter):
            done = change()
            if done is not None:
                await asyncio.wait_for(done, 5)
            free.append(not slots.locked())
        return free

    assert asyncio.run(main()) == [True, True, False, False]


def test_a_set_event_cancels_the_work() -> None:
    async def main() -> tuple[bool, bool]:
        alarm = asyncio.Event()
        whole = await run_unless(asyncio.sleep(0), alarm)
        asyncio.get_running_loop().call_soon(alarm.set)
        return whole, await run_unless(asyncio.sleep(10), alarm)

    assert asyncio.run(main()) == (True, False)


def test_an_exception_of_the_work_is_raised() -> None:
    async def fail() -> None:
        raise KeyError

    async def main() -> None:
        with pytest.raises(KeyError):
            await run_unless(fail(), asyncio.Event())

    asyncio.run(main())


# What must be done to its end: stopped once it goes on, stopped twice it ends


@pytest.mark.parametrize("stops", [0, 1, 2])
def test_only_the_second_cancellation_ends_it(stops: int) -> None:
    told: list[str] = []
    done: list[str] = []

    async def main() -> tuple[str, bool]:
        go_on = asyncio.Event()

        async def work() -> str:
            await go_on.wait()
            done.append("done")
            return "left"

        task = asyncio.ensure_future(finish(work(), lambda: told.append("told")))
        for _ in range(stops):
            await asyncio.sleep(0)
            task.cancel()
        await asyncio.sleep(0)
        go_on.set()
        return await task

    if stops == 2:
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(main())
        assert (told, done) == (["told"], [])
    else:
        assert asyncio.run(main()) == ("left", bool(stops))
        assert (told, done) == (["told"] * stops, ["done"])


def test_an_error_of_the_work_is_the_callers() -> None:
    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        asyncio.run(finish(fail(), lambda: None))
