"""Commits beside the event loop: a thread waits for the disk, and reads and writes wait for the thread."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from msauto.errors import LedgerError
from msauto.ledger import Ledger
from tests.unit.ledger.ledger_plans import plan, target


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
    return lambda: ledger.memory.remember(target().id, {"a": value})


def test_a_commit_returns_before_it_is_durable_and_a_reader_waits_for_it(place: Path | str) -> None:
    with Ledger.open(place) as ledger:
        disk = HeldDisk(ledger)
        committing = ledger.journal.commit([remembering(ledger, 1)])
        assert disk.reached.wait(30)
        assert not committing.done()
        assert disk.thread != threading.current_thread().name
        with Ledger.open(place, readonly=True) as other:
            assert other.memory.recall(target().id) == {}, "nobody else sees it yet"
        disk.go_on.set()
        assert ledger.memory.recall(target().id) == {"a": 1}
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
        assert ledger.memory.recall(target().id) == {"a": 1 if then == "start" else 2}


def test_closing_waits_for_the_commit(place: Path | str) -> None:
    ledger = Ledger.open(place)
    disk = HeldDisk(ledger)
    committing = ledger.journal.commit([remembering(ledger, 1)])
    disk.go_on.set()
    ledger.close()
    assert committing.done()
    with Ledger.open(place, readonly=True) as again:
        assert again.memory.recall(target().id) == {"a": 1}


def test_a_call_that_fails_leaves_nothing_of_the_others(place: Path | str) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with Ledger.open(place) as ledger:
        with pytest.raises(ZeroDivisionError):
            ledger.journal.commit([remembering(ledger, 1), fail])
        assert ledger.memory.recall(target().id) == {}
        ledger.journal.commit([remembering(ledger, 2)]).result()
        assert ledger.memory.recall(target().id) == {"a": 2}


def test_a_commit_that_fails_is_told_by_its_future_and_taken_back(place: Path | str) -> None:
    """A deferred foreign key is checked by COMMIT, which fails as it does where the disk is full."""
    with Ledger.open(place) as ledger:
        store = ledger._store
        store.write("CREATE TABLE late (run INTEGER REFERENCES run (id) DEFERRABLE INITIALLY DEFERRED)", ())
        committing = ledger.journal.commit([lambda: store.write("INSERT INTO late VALUES (?)", (99,))])
        with pytest.raises(LedgerError, match=r"cannot be used: (?i:.*foreign key)"):
            committing.result()
        assert store.read("SELECT * FROM late") == []
        ledger.journal.commit([remembering(ledger, 2)]).result()
        assert ledger.memory.recall(target().id) == {"a": 2}
