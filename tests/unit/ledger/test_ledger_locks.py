"""Who writes and when: one run at a time, and commits beside the event loop."""

import asyncio
import functools
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from msauto.errors import LedgerError, LockedError
from msauto.ledger.ledger import Ledger
from msauto.ledger.locks import FileLocks, LockScope, this_process, user_name
from tests.tables import table
from tests.unit.ledger.ledger_plans import plan, target

NEWS = LockScope("http://studio-a:7901", "NEWS")
OLD = LockScope("http://studio-a:7901", "OLD")


def in_loop(test: Callable[[Any], Coroutine[object, object, None]]) -> Callable[[Any], None]:
    @functools.wraps(test)
    def run(place: Path | str) -> None:
        asyncio.run(test(place))

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


async def take(
    folder: Path | str, *scopes: LockScope, wait: float = 0.0, clock: Clock | None = None
) -> None:
    with Ledger.open(folder) as ledger:
        async with ledger.hold(scopes, clock or Clock(), lock_timeout=wait):
            pass


def test_a_lock_is_taken_through_no_link(tmp_path: Path) -> None:
    """Its text is replaced: a link that was planted earlier would lead to a file elsewhere."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    asyncio.run(take(tmp_path / "state", NEWS))
    (lock,) = (tmp_path / "state" / "locks").iterdir()
    lock.unlink()
    lock.symlink_to(victim)
    with pytest.raises(LedgerError, match="it is a link") as caught:
        asyncio.run(take(tmp_path / "state", NEWS))
    assert caught.value.remedy
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("name", ["locks", "runs"])
def test_a_folder_of_locks_where_others_may_write(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name).chmod(0o777)
    lock = FileLocks(tmp_path).scope(NEWS) if name == "locks" else FileLocks(tmp_path).run("a-run")
    with pytest.raises(LedgerError, match="other users may write there"):
        lock.try_hold(this_process("a-run", "2026-11-20T10:15:00+00:00"))


@in_loop
async def test_held_and_free_again(place: Path | str) -> None:
    clock = Clock()
    with Ledger.open(place) as ledger:
        async with ledger.hold([NEWS], clock):
            await take(place, OLD)
            with pytest.raises(LockedError) as caught:
                await take(place, OLD, NEWS, wait=3, clock=clock)
            await take(place, OLD)
        await take(place, OLD, NEWS)
    assert clock.seconds == pytest.approx(3)
    assert (
        f"http://studio-a:7901 NEWS is locked by run {ledger.journal.next_run}"
        in caught.value.message
    )
    assert f"process {os.getpid()} on " in caught.value.message
    assert (
        isinstance(place, Path)
        or f" on {user_name()}@{socket.gethostname()}, since" in caught.value.message
    )
    assert "since 2026-11-20T10:15:00+00:00" in caught.value.message
    assert "--lock-timeout" in caught.value.remedy


@in_loop
async def test_waiting_until_it_is_free(place: Path | str) -> None:
    held, free = Ledger.open(place), asyncio.Event()

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
    await take(place, NEWS, wait=60, clock=clock)
    await task
    held.close()
    assert 1 < clock.seconds < 60


@in_loop
async def test_no_lock_for_nothing(place: Path | str) -> None:
    await take(place)
    if isinstance(place, Path):
        assert not (place / "locks").exists()


@in_loop
async def test_names_that_look_alike_are_different_locks(place: Path | str) -> None:
    with Ledger.open(place) as ledger:
        async with ledger.hold([LockScope("a", "b c")], Clock()):
            await take(place, LockScope("a", "b-c"), LockScope("a b", "c"))


@in_loop
async def test_a_lock_dies_with_its_process(place: Path | str) -> None:
    code = (
        "import asyncio, sys; from msauto.ledger.ledger import Ledger\n"
        "from tests.unit.ledger.test_ledger_locks import *\n"
        "async def main():\n"
        "    async with Ledger.open(sys.argv[1]).hold([NEWS], Clock()):\n"
        "        print('held', flush=True); sys.stdin.read()\n"
        "asyncio.run(main())"
    )
    command = [sys.executable, "-c", code, str(place)]
    process = subprocess.Popen(command, stdout=-1, stdin=-1)  # noqa: ASYNC220 - nothing else runs in this loop
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(LockedError, match=f"process {process.pid} on"):
            await take(place, NEWS)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        process.stdin.close()
    await take(place, NEWS)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    async def held() -> None:
        with Ledger.open(tmp_path) as ledger:
            (tmp_path / "locks").write_text("a file where the folder should be")
            async with ledger.hold([NEWS], Clock()):
                pass

    with pytest.raises(LedgerError, match="cannot be used") as caught:
        asyncio.run(held())
    assert "--state-dir" in caught.value.remedy


@table("model/names_of_a_host", "other")
def test_names_of_this_host_are_one(place: Path | str, other: str) -> None:
    async def both() -> None:
        with Ledger.open(place) as ledger:
            async with ledger.hold([LockScope("http://localhost:7901", "NEWS")], Clock()):
                await take(place, LockScope("http://127.0.0.1:7902", "NEWS"))
                await take(place, LockScope("http://127.0.0.12:7901", "NEWS"))
                with pytest.raises(LockedError):
                    await take(place, LockScope(other, "NEWS"))

    asyncio.run(both())


# Commits beside the event loop: a thread waits for the disk, and reads and writes wait for the thread


class HeldDisk:
    """Holds the thread that commits, until it is let go."""

    def __init__(self, ledger: Ledger) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()
        self.thread = ""
        self._make_durable = ledger._store._make_durable
        ledger._store._make_durable = self._held  # type: ignore[method-assign]

    def _held(self) -> None:
        if not self.reached.is_set():
            self.thread = threading.current_thread().name
            self.reached.set()
            assert self.go_on.wait(30)
        self._make_durable()


def remembering(ledger: Ledger, value: int) -> Callable[[], None]:
    return lambda: ledger.memory().remember(target().id, {"a": value})


def test_a_commit_returns_before_it_is_durable_and_a_reader_waits_for_it(place: Path | str) -> None:
    with Ledger.open(place) as ledger:
        disk = HeldDisk(ledger)
        committing = ledger.journal.commit([remembering(ledger, 1)])
        assert disk.reached.wait(30)
        assert not committing.done()
        assert disk.thread != threading.current_thread().name
        with Ledger.open(place, readonly=True) as other:
            assert other.memory().recall(target().id) == {}, "nobody else sees it yet"
        disk.go_on.set()
        assert ledger.memory().recall(target().id) == {"a": 1}
        assert committing.done()


@pytest.mark.parametrize("then", ["write", "commit", "start"])
def test_what_is_written_meanwhile_comes_after(place: Path | str, then: str) -> None:
    with Ledger.open(place) as ledger:
        disk = HeldDisk(ledger)
        first = ledger.journal.commit([remembering(ledger, 1)])
        assert disk.reached.wait(30)
        disk.go_on.set()
        if then == "write":
            remembering(ledger, 2)()
        elif then == "commit":
            ledger.journal.commit([remembering(ledger, 2)]).result()
        else:
            ledger.journal.start(plan(), [])
        assert first.done()
        assert ledger.memory().recall(target().id) == {"a": 1 if then == "start" else 2}


def test_closing_waits_for_the_commit(place: Path | str) -> None:
    ledger = Ledger.open(place)
    disk = HeldDisk(ledger)
    committing = ledger.journal.commit([remembering(ledger, 1)])
    disk.go_on.set()
    ledger.close()
    assert committing.done()
    with Ledger.open(place, readonly=True) as again:
        assert again.memory().recall(target().id) == {"a": 1}


def test_a_call_that_fails_leaves_nothing_of_the_others(place: Path | str) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with Ledger.open(place) as ledger:
        with pytest.raises(ZeroDivisionError):
            ledger.journal.commit([remembering(ledger, 1), fail])
        assert ledger.memory().recall(target().id) == {}
        ledger.journal.commit([remembering(ledger, 2)]).result()
        assert ledger.memory().recall(target().id) == {"a": 2}


def test_a_commit_that_fails_is_told_by_its_future_and_taken_back(place: Path | str) -> None:
    """A deferred foreign key is checked by COMMIT, which fails as it does where the disk is full."""
    with Ledger.open(place) as ledger:
        store = ledger._store
        store.write(
            "CREATE TABLE late (run INTEGER REFERENCES run (id) DEFERRABLE INITIALLY DEFERRED)", ()
        )
        committing = ledger.journal.commit(
            [lambda: store.write("INSERT INTO late VALUES (?)", (99,))]
        )
        with pytest.raises(LedgerError, match=r"cannot be used: (?i:.*foreign key)"):
            committing.result()
        assert store.read("SELECT * FROM late") == []
        ledger.journal.commit([remembering(ledger, 2)]).result()
        assert ledger.memory().recall(target().id) == {"a": 2}
