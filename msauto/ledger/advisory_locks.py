"""The locks of a shared ledger: advisory locks of PostgreSQL, which end with the session.

The key of a lock is made from its name. Who holds it is written into the table ``holder``, for messages; whether it is
held is known by the server alone. A session could take its own lock again, so a process remembers what it holds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import UTC, datetime

from msauto.errors import LedgerError
from msauto.ledger.locks import Holder, LockScope, this_process
from msauto.ledger.postgres_store import PostgresStore
from msauto.model.ledger_url import LedgerUrl

_HELD = """
    SELECT h.run, h.pid, h.host, h.since, h."user" FROM pg_locks l
    JOIN holder h ON h.session = l.pid AND h.lock = ?
    WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND l.classid::bigint = ? AND l.objid::bigint = ?
    ORDER BY h.since, l.pid LIMIT 1"""
_HOLDERS = 'SELECT lock, session, run, pid, host, since, "user" FROM holder ORDER BY lock, since'
_ALL = """
    SELECT l.classid::bigint, l.objid::bigint, l.pid FROM pg_locks l
    WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"""


class AdvisoryLock:
    """A lock of a shared ledger; ``shared``: any number of sessions hold it at once, or one that is exclusive."""

    def __init__(self, store: PostgresStore, name: str, *, shared: bool = False) -> None:
        self._store = store
        self.name = name
        self._shared = shared
        self._held = False

    def try_hold(self, holder: Holder) -> bool:
        """Take the lock if it is free, and record the holder; raises ``LedgerError``."""
        store = self._store
        if store.held[self.name] and not self._shared:
            return False
        if not store.try_lock(key_of(self.name), shared=self._shared):
            return False
        self._held = True
        store.held[self.name] += 1
        try:
            with store.together():
                if not self._shared:  # rows of sessions that ended
                    store.write("DELETE FROM holder WHERE lock = ?", (self.name,))
                store.write(
                    "INSERT INTO holder VALUES (?, pg_backend_pid(), ?, ?, ?, ?, ?) ON CONFLICT (lock, session)"
                    ' DO UPDATE SET run = excluded.run, pid = excluded.pid, "user" = excluded."user",'
                    " host = excluded.host, since = excluded.since",
                    (self.name, holder.run, holder.pid, holder.user, holder.host, holder.since),
                )
        except BaseException:
            self.release()
            raise
        return True

    def holder(self) -> str:
        """Return who holds the lock, as a text; the holder may not have recorded it yet."""
        rows = self._store.read(_HELD, (self.name, *_halves(key_of(self.name))))
        return str(Holder(*rows[0])) if rows else "another run"

    def release(self) -> None:
        """Release the lock if it is held; a lost session has released it."""
        if not self._held:
            return
        store, self._held = self._store, False
        store.held[self.name] -= 1
        with suppress(LedgerError):
            try:
                if not store.held[self.name]:
                    store.write("DELETE FROM holder WHERE lock = ? AND session = pg_backend_pid()", (self.name,))
            finally:
                store.unlock(key_of(self.name), shared=self._shared)


class AdvisoryLocks:
    """The locks of a shared ledger."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    @property
    def url(self) -> LedgerUrl:
        """Where the ledger is."""
        return self._store.url

    def scope(self, scope: LockScope) -> AdvisoryLock:
        """Return the lock of a run that writes to a server and database."""
        return AdvisoryLock(self._store, f"scope {scope.normalized().exact}")

    def senders(self, scope: LockScope, *, shared: bool = False) -> AdvisoryLock:
        """Return the lock that is free once no worker of any run may still send to a server and database."""
        return AdvisoryLock(self._store, f"senders {scope.normalized().exact}", shared=shared)

    def run(self, run: str) -> AdvisoryLock:
        """Return the lock that a run holds while its process is alive."""
        return AdvisoryLock(self._store, _run(run))

    def workers(self, run: str, *, shared: bool = False) -> AdvisoryLock:
        """Return the lock that is free once no worker of a run may still write to its record."""
        return AdvisoryLock(self._store, _workers(run), shared=shared)

    def stopping(self, run: str) -> AdvisoryLock:
        """Return the lock that a run holds once its workers may start no further target."""
        return AdvisoryLock(self._store, f"stopping {run}")

    def batch(self, batch: str) -> AdvisoryLock:
        """Return the lock that one run of a batch holds."""
        return AdvisoryLock(self._store, f"batch {batch}")

    def slice(self, run: str, name: str) -> AdvisoryLock:
        """Return the lock of a slice of a run, which only one worker at a time may hold."""
        return AdvisoryLock(self._store, f"slice {run} {name}")

    def alive(self, runs: Collection[str]) -> set[str]:
        """Return those of the runs whose process, or a worker of them, is alive. Writes nothing."""
        held = self._sessions() if runs else {}
        return {run for run in runs if key_of(_run(run)) in held or key_of(_workers(run)) in held}

    def held(self) -> list[tuple[str, str]]:
        """Return the locks of scopes and batches that are held now, and by whom. Writes nothing."""
        held = self._sessions()
        found = []
        for lock, session, *holder in self._store.read(_HOLDERS):
            kind, _, name = lock.partition(" ")
            if kind in {"scope", "senders", "batch"} and session in held.get(key_of(lock), ()):
                shown = name if kind == "batch" else str(LockScope(*json.loads(name)))
                found.append((f"{'' if kind == 'scope' else f'{kind} '}{shown}", str(Holder(*holder))))
        return found

    def hold_shared(self, run: str, scopes: Iterable[LockScope]) -> list[AdvisoryLock]:
        """Take part in a run of another process: hold its scopes as a worker; raises ``LedgerError`` if it has ended.

        It is looked for after the locks are taken. So either the run still holds its scopes then, and a later run finds
        these locks; or it does not, and nothing may be sent.
        """
        scopes = sorted(set(scopes))
        me = this_process(run, datetime.now(UTC).isoformat(timespec="seconds"))
        locks = [*(self.senders(each, shared=True) for each in scopes), self.workers(run, shared=True)]
        taken: list[AdvisoryLock] = []
        try:
            for lock in locks:
                if not lock.try_hold(me):
                    raise LedgerError(f"a worker of run {run} cannot begin: {lock.name} is held by {lock.holder()}")
                taken.append(lock)
            held = self._sessions()
            coordinator = held.get(key_of(_run(run)), set())
            if not coordinator or not all(held.get(key_of(self.scope(each).name)) == coordinator for each in scopes):
                raise LedgerError(f"run {run} has ended, or its session is lost: its workers send nothing more")
        except BaseException:
            for lock in taken:
                lock.release()
            raise
        return taken

    def is_alive(self, run: str) -> bool:
        """Return whether the process that started the run is alive: its session holds the lock of the run."""
        return key_of(_run(run)) in self._sessions()

    def is_stopping(self, run: str) -> bool:
        """Return whether the workers of a run may start no further target."""
        return key_of(self.stopping(run).name) in self._sessions()

    def has_workers(self, run: str) -> bool:
        """Return whether a worker takes part in a run now."""
        return key_of(_workers(run)) in self._sessions()

    def _sessions(self) -> dict[int, set[int]]:
        """Return the keys of all locks that are held, with the sessions that hold them."""
        found: dict[int, set[int]] = {}
        for high, low, session in self._store.read(_ALL):
            found.setdefault(_signed(high << 32 | low), set()).add(session)
        return found


def key_of(name: str) -> int:
    """Return the key of a lock: a signed number of 64 bits."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)


def _run(run: str) -> str:
    return f"run {run}"


def _workers(run: str) -> str:
    return f"workers {run}"


def _halves(key: int) -> tuple[int, int]:
    unsigned = key & 0xFFFF_FFFF_FFFF_FFFF
    return unsigned >> 32, unsigned & 0xFFFF_FFFF


def _signed(unsigned: int) -> int:
    return unsigned - (1 << 64) if unsigned >> 63 else unsigned
