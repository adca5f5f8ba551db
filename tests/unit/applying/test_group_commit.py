"""What is shared while a plan is applied: group commits, permits to write, and readings of folders."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from msauto.applying.apply_context import Cancellation, GroupCommit, ServerConnection
from msauto.applying.verification import SharedReads
from msauto.errors import LedgerError, UnreadableError
from msauto.model.live import Folder, Listing
from msauto.model.plan import Request, Target
from msauto.model.ports import Reader
from msauto.model.result import Result
from msauto.model.server import ServerSpec
from msauto.server.pacing import Pacer, Permit
from tests.entries import listed_entry
from tests.unit.applying.applying_world import (
    DictJournal,
    Stage,
    World,
    WorldReader,
    WorldSender,
    fields_target,
)
from tests.unit.applying.virtual_time import VirtualClock, run_in_virtual_time

FULL = LedgerError("the ledger cannot grow: the disk is full")


class SlowDisk(DictJournal):
    """A journal whose commits become durable when the test allows it."""

    def __init__(self) -> None:
        super().__init__()
        self.commits: list[Future[None]] = []
        self.made: list[str] = []

    def commit(self, calls: Sequence[Callable[[], object]]) -> Future[None]:
        super().commit(calls)
        self.commits.append(Future())
        return self.commits[-1]

    def note(self, word: str) -> Callable[[], None]:
        return lambda: self.made.append(word)


def in_loop(
    test: Callable[[SlowDisk, GroupCommit], Coroutine[object, object, None]],
) -> Callable[[], None]:
    @functools.wraps(test)
    def run() -> None:
        disk = SlowDisk()
        asyncio.run(asyncio.wait_for(test(disk, GroupCommit(disk)), 30))

    del run.__dict__["__wrapped__"]  # pytest would take its parameters for fixtures
    return run


async def transitions() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@in_loop
async def test_a_write_returns_once_it_is_durable_and_the_loop_goes_on_meanwhile(
    disk: SlowDisk, commits: GroupCommit
) -> None:
    write = asyncio.ensure_future(commits.write(disk.note("a")))
    await transitions()
    assert disk.made == ["a"]
    assert not write.done()
    disk.commits[0].set_result(None)
    await write


@in_loop
async def test_calls_during_a_commit_are_one_later_commit(
    disk: SlowDisk, commits: GroupCommit
) -> None:
    first = asyncio.ensure_future(commits.write(disk.note("a")))
    await transitions()
    second = asyncio.ensure_future(commits.write(disk.note("b")))
    await transitions()
    commits.note(disk.note("c"))
    await transitions()
    assert (disk.made, len(disk.commits)) == (["a"], 1)
    disk.commits[0].set_result(None)
    await transitions()
    assert first.done()
    assert not second.done(), "its own commit is under way"
    assert (disk.made, len(disk.commits)) == (["a", "b", "c"], 2)
    disk.commits[1].set_result(None)
    await second


@in_loop
async def test_a_commit_that_fails_ends_all_writing(disk: SlowDisk, commits: GroupCommit) -> None:
    first = asyncio.ensure_future(commits.write(disk.note("a")))
    await transitions()
    second = asyncio.ensure_future(commits.write(disk.note("b")))
    await transitions()
    disk.commits[0].set_exception(FULL)
    for write in (first, second, commits.write(disk.note("c"))):
        with pytest.raises(LedgerError, match="disk is full"):
            await write
    commits.note(disk.note("d"))
    commits.flush()
    assert (disk.made, commits.failure) == (["a"], FULL)


@in_loop
async def test_an_error_of_another_kind_is_one_of_the_ledger(
    disk: SlowDisk, commits: GroupCommit
) -> None:
    write = asyncio.ensure_future(commits.write(disk.note("a")))
    await transitions()
    disk.commits[0].set_exception(ZeroDivisionError("a mistake"))
    with pytest.raises(LedgerError, match="cannot be written: a mistake"):
        await write


@in_loop
async def test_a_commit_that_is_interrupted_ends_all_writing(
    disk: SlowDisk, commits: GroupCommit
) -> None:
    """A second Ctrl-C may raise anywhere: what was to be recorded is not, so it must not count as durable."""

    def interrupted() -> None:
        raise KeyboardInterrupt

    write = commits.write(interrupted)
    with pytest.raises(KeyboardInterrupt):
        commits.flush()
    commits.note(disk.note("b"))
    await transitions()
    for commit in disk.commits:
        commit.set_result(None)
    with pytest.raises(LedgerError, match="cannot be written: KeyboardInterrupt"):
        await write
    assert disk.made == []


@in_loop
async def test_flush_waits_for_the_commit_under_way_and_makes_the_rest_durable(
    disk: SlowDisk, commits: GroupCommit
) -> None:
    write = asyncio.ensure_future(commits.write(disk.note("a")))
    await transitions()
    write.cancel()
    commits.note(disk.note("b"))
    fulfilled = threading.Thread(target=_fulfil, args=(disk,))
    fulfilled.start()
    commits.flush()
    fulfilled.join()
    assert (disk.made, commits.failure) == (["a", "b"], None)
    await transitions()
    assert len(disk.commits) == 2
    assert write.cancelled()


def _fulfil(disk: SlowDisk) -> None:
    """Make both commits durable, each once it has begun."""
    for number in range(2):
        while len(disk.commits) <= number:
            pass
        disk.commits[number].set_result(None)


def test_a_ledger_that_is_lost_after_the_commit_sends_nothing_more() -> None:
    """The request waited for a connection, and the session with the ledger was lost meanwhile."""
    stage = Stage()
    targets = [fields_target(stage.world, title, 2) for title in ("One", "Two")]

    def lost(path: str) -> None:
        if path == targets[0].requests[1].path:
            stage.journal.fails_at = stage.journal.transactions + 1
        if stage.journal.fails_at:
            raise LedgerError("the session with the ledger is lost")

    stage.world.on_send = lost
    result = stage.run(*targets, forks=1)
    assert stage.world.sent == [targets[0].requests[0].path]
    assert [each.outcome for each in result.targets] == ["failed", "not attempted"]
    assert [each.outcome for each in result.targets[0].requests] == ["done", "not sent"]
    assert not result.ok


# A write waits for its permit before it is journalled: then nothing lies between the journal and the server


@dataclass
class PacedPermit:
    sender: PacedSender
    permit: Permit

    async def send(self, request: Request) -> Any:
        self.sender.sends.append((self.sender.world.clock.monotonic(), request.path))
        return await self.sender.send(request)

    def release(self) -> None:
        self.permit.release()


@dataclass
class PacedSender(WorldSender):
    """Sends by the permits of a pacer."""

    pacer: Pacer
    sends: list[tuple[float, str]] = field(default_factory=list)

    async def permit(self) -> Any:
        return PacedPermit(self, await self.pacer.permit())


class TimedJournal(DictJournal):
    """Notes when a request is journalled."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock
        self.sendings: list[tuple[float, str]] = []

    def sending(self, run: str, target: Target, index: int) -> None:
        super().sending(run, target, index)
        self.sendings.append((self._clock.monotonic(), target.requests[index].path))


class PacedStage(Stage):
    def __init__(self, rate: float) -> None:
        clock = VirtualClock()
        super().__init__(World(clock=clock), TimedJournal(clock))
        self._spec = ServerSpec("studio-a", "http://studio-a", requests_per_second=rate)

    def server(self) -> ServerConnection:
        self.sender = PacedSender(self.world, Pacer(self._spec, self.world.clock))
        return ServerConnection(WorldReader(self.world), self.sender, asyncio.Semaphore(4))

    def run_until(self, stop: Callable[[Cancellation], Any], count: int = 6) -> Result:
        async def main() -> Result:
            stopped = Cancellation()
            stopping = asyncio.ensure_future(stop(stopped))
            targets = [fields_target(self.world, f"Film {number}", 2) for number in range(count)]
            result = await self.apply(*targets, forks=4, cancellation=stopped)
            await stopping
            return result

        return run_in_virtual_time(main())


async def never(_: Cancellation) -> None:
    """Do not stop."""


def test_each_write_is_sent_when_it_is_journalled() -> None:
    stage = PacedStage(rate=0.5)
    result = stage.run_until(never)
    assert {each.outcome for each in result.targets} == {"changed"}
    assert isinstance(stage.journal, TimedJournal)
    assert stage.journal.sendings == stage.sender.sends
    assert [at for at, _ in stage.sender.sends] == pytest.approx(
        [2.0 * number for number in range(1, 13)], abs=0.01
    )


def test_what_waits_for_its_permit_when_the_run_is_stopped_is_not_sent() -> None:
    stage = PacedStage(rate=0.5)

    async def stop(cancellation: Cancellation) -> None:
        await asyncio.sleep(5)
        cancellation()

    result = stage.run_until(stop)
    assert isinstance(stage.journal, TimedJournal)
    assert stage.journal.sendings == stage.sender.sends
    assert len(stage.sender.sends) == 2  # after 2 and 4 seconds
    assert result.interrupted
    assert (
        sum(request.outcome == "done" for each in result.targets for request in each.requests) == 2
    )


def test_a_permit_is_given_back_when_the_ledger_fails() -> None:
    stage = Stage()
    stage.journal.fails_at = 2
    result = stage.run(*(fields_target(stage.world, f"Film {number}") for number in range(6)))
    assert {each.outcome for each in result.targets} <= {"not attempted", "failed"}
    assert stage.world.permits == 0


# One reading of a folder for many verifications, none of which sees an old state


class SlowReader:
    """Answers with the number of the reading, taken when it began."""

    def __init__(self) -> None:
        self.begun = 0
        self.go = asyncio.Event()
        self.fails = False

    def fresh(self) -> SlowReader:
        return self

    async def read_folder(self, database: str, folder: Folder) -> Listing:
        self.begun += 1
        number = self.begun
        await self.go.wait()
        if self.fails:
            raise UnreadableError(f"reading {number} failed")
        return Listing(folder, (listed_entry(folder, f"reading {number}"),))


async def ask(shared: SharedReads, reader: SlowReader, folder: str = "Tonight") -> str:
    listing = await shared.read(cast("Reader", reader), "NEWS", (folder,))
    assert listing is not None
    return listing.entries[0].title


def test_a_reader_during_a_reading_shares_the_next() -> None:
    async def main() -> list[str]:
        shared, reader = SharedReads(), SlowReader()
        asks = [asyncio.ensure_future(ask(shared, reader))]
        await asyncio.sleep(0)
        asks += [asyncio.ensure_future(ask(shared, reader)) for _ in range(3)]
        await asyncio.sleep(0)
        reader.go.set()
        answers = await asyncio.gather(*asks)
        answers.append(await ask(shared, reader))
        return answers

    assert asyncio.run(main()) == ["reading 1", *["reading 2"] * 3, "reading 3"]


def test_other_folders_do_not_wait() -> None:
    async def main() -> None:
        shared, reader = SharedReads(), SlowReader()
        asks = [asyncio.ensure_future(ask(shared, reader, folder)) for folder in ("a", "b")]
        await asyncio.sleep(0)
        assert reader.begun == 2
        reader.go.set()
        await asyncio.gather(*asks)

    asyncio.run(main())


def test_an_error_reaches_all_who_share_it() -> None:
    async def main() -> None:
        shared, reader = SharedReads(), SlowReader()
        reader.fails = True
        asks = [asyncio.ensure_future(ask(shared, reader)) for _ in range(3)]
        await asyncio.sleep(0)
        reader.go.set()
        answers = await asyncio.gather(*asks, return_exceptions=True)
        assert [str(answer) for answer in answers] == [
            "reading 1 failed",
            "reading 2 failed",
            "reading 2 failed",
        ]
        reader.fails = False
        assert await ask(shared, reader) == "reading 3"

    asyncio.run(main())


def test_a_cancelled_reader_does_not_block_the_others() -> None:
    async def main() -> None:
        shared, reader = SharedReads(), SlowReader()
        first = asyncio.ensure_future(ask(shared, reader))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(ask(shared, reader))
        await asyncio.sleep(0)
        first.cancel()
        reader.go.set()
        assert await second == "reading 2"
        with pytest.raises(asyncio.CancelledError):
            await first

    asyncio.run(main())
