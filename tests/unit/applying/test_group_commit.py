"""Group commit: events during a commit come after it, and no event is published before it is durable."""

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future

import pytest

from msauto.applying.apply_context import GroupCommit
from msauto.errors import LedgerError
from tests.unit.applying.applying_world import DictJournal, Stage, fields_target

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


def in_loop(test: Callable[[SlowDisk, GroupCommit], Coroutine[object, object, None]]) -> Callable[[], None]:
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
async def test_calls_during_a_commit_are_one_later_commit(disk: SlowDisk, commits: GroupCommit) -> None:
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
async def test_an_error_of_another_kind_is_one_of_the_ledger(disk: SlowDisk, commits: GroupCommit) -> None:
    write = asyncio.ensure_future(commits.write(disk.note("a")))
    await transitions()
    disk.commits[0].set_exception(ZeroDivisionError("a mistake"))
    with pytest.raises(LedgerError, match="cannot be written: a mistake"):
        await write


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
