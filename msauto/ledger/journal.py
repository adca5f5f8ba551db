"""The write-ahead record of runs: every request before it is sent, and what came of it."""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path

from msgspec import structs

from msauto.errors import LedgerError
from msauto.ledger.locks import FileLock
from msauto.ledger.store import Row, Store, Value
from msauto.model.codec import dump, to_json
from msauto.model.plan import Plan, Target
from msauto.model.result import OUTCOMES, RequestResult, Result, TargetResult, key_of

_SENT = "SELECT count(*) FROM request WHERE run = ? AND tries > 0 AND state <> 'not sent'"


class LedgerJournal:
    """Implements the port ``Journal``. The plan is written whole when a run starts, so that a run can be resumed."""

    def __init__(self, store: Store, lives: Path, now: Callable[[], datetime]) -> None:
        self._store = store
        self._lives = lives
        self._now = now
        self._runs: dict[str, _JournalledRun] = {}
        self.next_run = new_run(now())
        self.notes: dict[str, str] = {}
        """What is to be recorded of the next run besides its plan: why a freeze was overridden, say."""

    def together(self) -> AbstractContextManager[None]:
        """Make the calls inside durable as one."""
        return self._store.together()

    def commit(self, calls: Sequence[Callable[[], object]]) -> Future[None]:
        """Make the calls durable as one; a thread waits for the disk."""
        return self._store.commit(calls)

    def start(self, plan: Plan, playbooks: Sequence[str]) -> str:
        """Open a run with its plan; return the run's name, which was ``next_run`` until now."""
        while self._store.read("SELECT 1 FROM run WHERE name = ?", (self.next_run,)):
            self.next_run = new_run(self._now())
        run = _JournalledRun(self.next_run, life_of(self._lives, self.next_run), plan.targets)
        try:
            with self._store.together():
                _hold(run.life)
                run.id = self._write_run(run.name, plan, playbooks)
                self._write_targets(run.id, list(enumerate(plan.targets)))
                self._write_notes(run.id)
        except BaseException:
            run.bury()
            raise
        self.next_run = new_run(self._now())
        self._runs[run.name] = run
        return run.name

    def reopen(self, run: str, targets: Sequence[Target]) -> bool:
        """Go on writing about a run that died; nobody else can until it is ended, or left."""
        life = life_of(self._lives, run)
        if not _hold(life):
            return False
        opened = _JournalledRun(run, life, targets)
        opened.id = int(str(self._store.read("SELECT id FROM run WHERE name = ?", (run,))[0][0]))
        self._runs[run] = opened
        return True

    def leave(self, run: str) -> None:
        """Let go of a run that was reopened and is not closed."""
        self._runs.pop(run).bury()

    def planned(self, run: str, target: Target) -> None:
        """Note that a target is begun; one that was not in the plan is added."""
        number, position = self._find(run, target)
        self._store.write(
            "UPDATE target SET begun = ? WHERE run = ? AND position = ?", (self._time(), number, position)
        )

    def sending(self, run: str, target: Target, index: int) -> None:
        """The request is about to leave."""
        number, position = self._find(run, target)
        changed = self._store.write(
            "UPDATE request SET state = 'sending', tries = tries + 1, sent = ?"
            " WHERE run = ? AND target = ? AND position = ?",
            (self._time(), number, position, index),
        )
        if changed != 1:
            raise LedgerError(f"the ledger {self._store.path} lacks request {index} of {target.name}")

    def settled(self, run: str, target: Target, index: int, result: RequestResult) -> None:
        """What came of the request."""
        number, position = self._find(run, target)
        self._store.write(
            "UPDATE request SET state = ?, status = ?, message = ?, settled = ?"
            " WHERE run = ? AND target = ? AND position = ?",
            (result.outcome, result.status, result.message, self._time(), number, position, index),
        )

    def finished(self, run: str, result: TargetResult) -> None:
        """What came of the target, and of its requests that nobody has settled by themselves."""
        number, position = self._find(run, result.target)
        with self._store.together():
            self._store.write(
                "UPDATE target SET outcome = ?, message = ?, differences = ? WHERE run = ? AND position = ?",
                (result.outcome, result.message, dump(result.differences), number, position),
            )
            self._store.write(
                "UPDATE request SET state = ?, message = ?"
                " WHERE run = ? AND target = ? AND position = ? AND state IN ('planned', 'sending')",
                *((each.outcome, each.message, number, position, index) for index, each in enumerate(result.requests)),
            )
            self._store.write(
                "INSERT OR REPLACE INTO learned (run, target, item, value) VALUES (?, ?, ?, ?)",
                *((number, position, item, json.dumps(value)) for item, value in result.learned.items()),
            )

    def end(self, run: str, result: Result) -> None:
        """Close the run."""
        open_run = self._runs[run]
        status = "interrupted" if result.interrupted else "ok" if result.ok else "failed"
        with self._store.together():
            for target in result.targets:
                if target.outcome == "not attempted":
                    self.finished(run, target)
            sent = {"sent": count_sent(self._store, open_run.id)}
            summary: dict[str, int] = to_json(result.plan.summary) | sent | _outcomes(result)
            self._store.write(
                "UPDATE run SET ended = ?, status = ?, summary = ? WHERE id = ?",
                (self._time(), status, json.dumps(summary), open_run.id),
            )
        open_run.bury()
        del self._runs[run]

    def close(self) -> None:
        """Let go of runs that were never ended: they are told as died."""
        for run in self._runs.values():
            run.life.release()
        self._runs.clear()

    # Rows --------------------------------------------------------------------------------------------------------

    def _write_run(self, name: str, plan: Plan, playbooks: Sequence[str]) -> int:
        texts = (json.dumps(list(playbooks), ensure_ascii=False), dump(plan.summary))
        self._store.write(
            "INSERT INTO run (name, started, status, playbooks, summary, msauto, pid, host)"
            " VALUES (?, ?, 'running', ?, ?, ?, ?, ?)",
            (name, self._time(), *texts, plan.msauto, os.getpid(), socket.gethostname()),
        )
        return int(str(self._store.read("SELECT id FROM run WHERE name = ?", (name,))[0][0]))

    def _write_targets(self, run: int, numbered: Sequence[tuple[int, Target]]) -> None:
        self._store.write(
            "INSERT INTO target (run, position, server, database, kind, name, planned) VALUES (?, ?, ?, ?, ?, ?, ?)",
            *(
                (
                    run,
                    position,
                    each.server,
                    each.database,
                    each.kind,
                    each.name,
                    dump(structs.replace(each, requests=())),
                )
                for position, each in numbered
            ),
        )
        self._store.write(
            "INSERT INTO request (run, target, position, planned) VALUES (?, ?, ?, ?)", *_request_rows(run, numbered)
        )

    def _write_notes(self, run: int) -> None:
        self._store.write(
            "INSERT INTO note (run, name, text) VALUES (?, ?, ?)", *((run, *n) for n in self.notes.items())
        )
        self.notes = {}

    def _find(self, run: str, target: Target) -> tuple[int, int]:
        """Return the numbers of a run and a target; a target is known by being the plan's very value."""
        open_run = self._runs[run]
        if id(target) not in open_run.positions:
            position = open_run.add(target)
            self._write_targets(open_run.id, [(position, target)])
        return open_run.id, open_run.positions[id(target)]

    def _time(self) -> str:
        return show_time(self._now())


class _JournalledRun:
    """A run that goes on: its number in the ledger, and the positions of its targets."""

    def __init__(self, name: str, life: FileLock, targets: Sequence[Target]) -> None:
        self.name = name
        self.life = life
        self.id = 0
        self._targets = list(targets)  # kept, so that no other value gets the id of one of them
        self.positions = {id(target): position for position, target in enumerate(self._targets)}

    def add(self, target: Target) -> int:
        """Give a target that was not in the plan its position."""
        self._targets.append(target)
        self.positions[id(target)] = len(self._targets) - 1
        return len(self._targets) - 1

    def bury(self) -> None:
        """Take away the sign of life."""
        self.life.path.unlink(missing_ok=True)
        self.life.release()


def new_run(now: datetime) -> str:
    """Return a name for a run, e.g. ``20261120T101500Z-ab12``: names sort by time."""
    return f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


def life_of(lives: Path, run: str) -> FileLock:
    """Return the lock that a run holds as long as its process lives."""
    return FileLock(lives / f"{run}.alive")


def count_sent(store: Store, run: Value) -> int:
    """Count the requests of a run that were sent, or tried to: each once. ``run`` is its number."""
    return int(str(store.read(_SENT, (run,))[0][0]))


def show_time(time: datetime) -> str:
    """Return a time as the ledger writes it, e.g. ``2026-11-20T10:15:00.123Z``."""
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _hold(life: FileLock) -> bool:
    try:
        return life.try_hold("")
    except OSError as error:
        remedy = "see that this user may write there, or choose another --state-dir"
        raise LedgerError(f"the file {life.path} cannot be used: {error.strerror}", remedy=remedy) from error


def _request_rows(run: int, numbered: Sequence[tuple[int, Target]]) -> Iterator[Row]:
    for position, target in numbered:
        for index, request in enumerate(target.requests):
            yield run, position, index, dump(request)


def _outcomes(result: Result) -> dict[str, int]:
    counts = Counter(target.outcome for target in result.targets)
    return {key_of(outcome): counts[outcome] for outcome in OUTCOMES if outcome != "unchanged"}
