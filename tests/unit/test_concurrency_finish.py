"""What must be done to its end: stopped once it goes on, stopped twice it ends."""

from __future__ import annotations

import asyncio

import pytest

from msauto.concurrency import finish


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
