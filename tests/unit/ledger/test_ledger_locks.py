"""One run at a time: between ledgers, between processes, and never longer than the process lives."""

import asyncio
import functools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path

import pytest

from msauto.errors import LedgerError, LockedError
from msauto.ledger import Ledger, LockScope

NEWS = LockScope("http://studio-a:7901", "NEWS")
OLD = LockScope("http://studio-a:7901", "OLD")


def in_loop(test: Callable[[Path], Coroutine[object, object, None]]) -> Callable[[Path], None]:
    @functools.wraps(test)
    def run(tmp_path: Path) -> None:
        asyncio.run(test(tmp_path))

    return run


class Clock:
    """A clock that only sleeping advances."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.at: dict[int, object] = {}

    def now(self) -> datetime:
        return datetime(2026, 11, 20, 10, 15, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


async def take(folder: Path, *scopes: LockScope, wait: float = 0.0, clock: Clock | None = None) -> None:
    with Ledger.open(folder) as ledger:
        async with ledger.hold(scopes, clock or Clock(), lock_timeout=wait):
            pass


@in_loop
async def test_held_and_free_again(tmp_path: Path) -> None:
    clock = Clock()
    with Ledger.open(tmp_path) as ledger:
        async with ledger.hold([NEWS], clock):
            await take(tmp_path, OLD)
            with pytest.raises(LockedError) as caught:
                await take(tmp_path, OLD, NEWS, wait=3, clock=clock)
            await take(tmp_path, OLD)
        await take(tmp_path, OLD, NEWS)
    assert clock.seconds == pytest.approx(3)
    assert f"http://studio-a:7901 NEWS is locked by run {ledger.journal.next_run}" in caught.value.message
    assert f"process {os.getpid()} on " in caught.value.message
    assert "since 2026-11-20T10:15:00+00:00" in caught.value.message
    assert "--lock-timeout" in caught.value.remedy


@in_loop
async def test_waiting_until_it_is_free(tmp_path: Path) -> None:
    held, free = Ledger.open(tmp_path), asyncio.Event()

    async def other() -> None:
        async with held.hold([NEWS], Clock()):
            await free.wait()

    class Waiting(Clock):
        async def sleep(self, seconds: float) -> None:
            await super().sleep(seconds)
            if self.seconds > 1:
                free.set()
            await asyncio.sleep(0.01)

    task = asyncio.ensure_future(other())
    await asyncio.sleep(0)
    clock = Waiting()
    await take(tmp_path, NEWS, wait=60, clock=clock)
    await task
    held.close()
    assert 1 < clock.seconds < 60


@in_loop
async def test_no_lock_for_nothing(tmp_path: Path) -> None:
    await take(tmp_path)
    assert not (tmp_path / "locks").exists()


@in_loop
async def test_names_that_look_alike_are_different_locks(tmp_path: Path) -> None:
    with Ledger.open(tmp_path) as ledger:
        async with ledger.hold([LockScope("a", "b c")], Clock()):
            await take(tmp_path, LockScope("a", "b-c"), LockScope("a b", "c"))


@in_loop
async def test_a_lock_dies_with_its_process(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys; from msauto.ledger import Ledger; from tests.unit.ledger.test_ledger_locks import *\n"
        "async def main():\n"
        "    async with Ledger.open(sys.argv[1]).hold([NEWS], Clock()):\n"
        "        print('held', flush=True); sys.stdin.read()\n"
        "asyncio.run(main())"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    process = subprocess.Popen(command, stdout=-1, stdin=-1)  # noqa: ASYNC220 - nothing else runs in this loop
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(LockedError, match=f"process {process.pid} on"):
            await take(tmp_path, NEWS)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        process.stdin.close()
    await take(tmp_path, NEWS)


@in_loop
async def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    with Ledger.open(tmp_path) as ledger:
        (tmp_path / "locks").write_text("a file where the folder should be")
        with pytest.raises(LedgerError, match="cannot be used") as caught:
            async with ledger.hold([NEWS], Clock()):
                pass
    assert "--state-dir" in caught.value.remedy


@pytest.mark.parametrize(
    "other",
    [
        "http://127.0.0.1:7901",
        "http://[::1]:7901",
        "http://localhost:7901",
        "http://LocalHost.:7901",
        "https://127.0.0.1:7901",
    ],
)
def test_names_of_this_host_are_one(tmp_path: Path, other: str) -> None:
    async def both() -> None:
        with Ledger.open(tmp_path) as ledger:
            async with ledger.hold([LockScope("http://localhost:7901", "NEWS")], Clock()):
                await take(tmp_path, LockScope("http://127.0.0.1:7902", "NEWS"))
                await take(tmp_path, LockScope("http://127.0.0.12:7901", "NEWS"))
                with pytest.raises(LockedError):
                    await take(tmp_path, LockScope(other, "NEWS"))

    asyncio.run(both())
