"""Places that a worker may leave, and work that an alarm cuts short."""

import asyncio

import pytest

from msauto.concurrency import ConcurrencySlot, run_unless


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
