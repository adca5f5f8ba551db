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
    """A lock of a shared ledger, which one session holds.

    ``admits``: it is held together with the workers of a run, whose locks ``join``; no other run gets it before all of
    them have released it.
    """

    def __init__(self, store: PostgresStore, name: str, *, admits: bool = False, joins: bool = False) -> None:
        self._store = store
        self.name = name
        self._admits = admits
        self._joins = joins
        self._held = False

    def try_hold(self, holder: Holder) -> bool:
        """Take the lock if it is free, and record the holder; raises ``LedgerError``."""
        store, key = self._store, key_of(self.name)
        if store.held[self.name] or not store.try_lock(key, shared=self._joins):
            return False
        if self._admits:  # from exclusive to shared, held all the time
            store.try_lock(key, shared=True)
            store.unlock(key, shared=False)
        self._held = True
        store.held[self.name] += 1
        try:
            with store.together():
                if not self._joins:  # rows of sessions that ended
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
                store.unlock(key_of(self.name), shared=self._admits or self._joins)


class AdvisoryLocks:
    """The locks of a shared ledger. ``admits``: workers on other machines may take part in the runs of this process."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self.admits = False

    @property
    def url(self) -> LedgerUrl:
        """Where the ledger is."""
        return self._store.url

    @property
    def session(self) -> int:
        """The process of the database server that this session has."""
        return int(self._store.read("SELECT pg_backend_pid()")[0][0])

    def scope(self, scope: LockScope, *, joins: bool = False) -> AdvisoryLock:
        """Return the lock of a run that writes to a server and database."""
        name = f"scope {scope.normalized().exact}"
        return AdvisoryLock(self._store, name, admits=self.admits and not joins, joins=joins)

    def run(self, run: str, *, joins: bool = False) -> AdvisoryLock:
        """Return the lock that a run holds while its process is alive."""
        return AdvisoryLock(self._store, f"run {run}", admits=self.admits and not joins, joins=joins)

    def worker(self, run: str, server: str) -> AdvisoryLock:
        """Return the lock that the only worker holds which applies a server in a run."""
        return AdvisoryLock(self._store, f"worker {run} {server}")

    def batch(self, batch: str) -> AdvisoryLock:
        """Return the lock that one run of a batch holds."""
        return AdvisoryLock(self._store, f"batch {batch}")

    def alive(self, runs: Collection[str]) -> set[str]:
        """Return those of the runs whose process, or a worker of them, is alive. Writes nothing."""
        held = self._sessions() if runs else {}
        return {run for run in runs if key_of(self.run(run).name) in held}

    def held(self) -> list[tuple[str, str]]:
        """Return the locks of scopes and batches that are held now, and by whom. Writes nothing."""
        held = self._sessions()
        found = []
        for lock, session, *holder in self._store.read(_HOLDERS):
            kind, _, name = lock.partition(" ")
            if kind in {"scope", "batch"} and session in held.get(key_of(lock), ()):
                shown = f"batch {name}" if kind == "batch" else str(LockScope(*json.loads(name)))
                found.append((shown, str(Holder(*holder))))
        return found

    def join(self, run: str, session: int, scopes: Iterable[LockScope]) -> list[AdvisoryLock]:
        """Take part in a run of another process, whose session holds the scopes; raise ``LedgerError`` if it ended.

        It is looked for after the locks are taken. So either it still holds its own then, and no later run gets them
        before these are released; or it does not, and nothing may be sent.
        """
        taken: list[AdvisoryLock] = []
        try:
            for lock in (self.run(run, joins=True), *(self.scope(each, joins=True) for each in sorted(set(scopes)))):
                if not lock.try_hold(this_process(run, datetime.now(UTC).isoformat(timespec="seconds"))):
                    raise LedgerError(f"a worker of run {run} cannot begin: {lock.name} is held by {lock.holder()}")
                taken.append(lock)
            if session not in self._sessions().get(key_of(taken[0].name), ()):
                raise LedgerError(f"run {run} has ended, or its session is lost: its workers send nothing more")
        except BaseException:
            for lock in taken:
                lock.release()
            raise
        return taken

    def _sessions(self) -> dict[int, set[int]]:
        """Return the keys of all locks that are held, with the sessions that hold them."""
        found: dict[int, set[int]] = {}
        for high, low, session in self._store.read(_ALL):
            found.setdefault(_signed(high << 32 | low), set()).add(session)
        return found


def key_of(name: str) -> int:
    """Return the key of a lock: a signed number of 64 bits."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)


def _halves(key: int) -> tuple[int, int]:
    unsigned = key & 0xFFFF_FFFF_FFFF_FFFF
    return unsigned >> 32, unsigned & 0xFFFF_FFFF


def _signed(unsigned: int) -> int:
    return unsigned - (1 << 64) if unsigned >> 63 else unsigned
