"""Places that a worker may leave, and work that an alarm cuts short."""

import asyncio
from collections.abc import Iterator

import pytest

from msauto.concurrency import ConcurrencySlot, in_turns, run_each, run_unless


def test_limit_order_and_lazy_drawing() -> None:
    drawn: list[int] = []
    begun: list[int] = []
    busiest = 0

    def source() -> Iterator[int]:
        for number in range(20):
            drawn.append(number)
            yield number

    async def work(number: int, place: ConcurrencySlot) -> None:
        nonlocal busiest
        begun.append(number)
        assert len(drawn) - number <= 4  # one is taken ahead of the next free slot
        busy.add(number)
        busiest = max(busiest, len(busy))
        await asyncio.sleep(0)
        busy.discard(number)

    busy: set[int] = set()
    asyncio.run(run_each(work, in_turns(source()), limit=3))
    assert begun == list(range(20))
    assert busiest == 3


def test_a_slot_is_entered_again_even_after_the_last_item() -> None:
    ended: list[int] = []

    async def work(number: int, place: ConcurrencySlot) -> None:
        if number == 0:
            place.leave()
            place.leave()
            await asyncio.sleep(0.01)
            await place.enter()
            await place.enter()
        ended.append(number)

    asyncio.run(asyncio.wait_for(run_each(work, in_turns(range(3)), limit=1), 5))
    assert ended == [1, 2, 0]


def test_the_first_exception_ends_it() -> None:
    async def work(number: int, place: ConcurrencySlot) -> None:
        if number == 2:
            raise KeyError(number)
        await asyncio.sleep(10)

    with pytest.raises(ExceptionGroup) as caught:
        asyncio.run(run_each(work, in_turns(range(9)), limit=3))
    assert caught.group_contains(KeyError)


def test_a_limit_below_one_is_an_error() -> None:
    async def work(number: int, place: ConcurrencySlot) -> None:
        raise AssertionError

    with pytest.raises(ValueError, match="at least 1"):
        asyncio.run(run_each(work, in_turns([1]), limit=0))


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
