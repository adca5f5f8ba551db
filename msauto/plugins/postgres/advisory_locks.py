"""The locks of a shared ledger: advisory locks of PostgreSQL, which end with the session that holds them.

The key of a lock is made from its name. Who holds it is written into the table ``holder``, for messages; whether it is
held is known by the server alone. A session could take its own lock again, so a process remembers what it holds.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime

from msauto.errors import LedgerError
from msauto.ledger.locks import HOLDER, Holder, LockScope, this_process
from msauto.model.ledger_url import LedgerUrl
from msauto.plugins.postgres.postgres_store import PostgresStore


def open_shared(url: LedgerUrl, *, readonly: bool) -> tuple[PostgresStore, AdvisoryLocks]:
    """Open a shared ledger: its store and its locks, which have one session; raises ``LedgerError``."""
    store = PostgresStore(url, readonly=readonly)
    return store, AdvisoryLocks(store)


_HOLDERS = (
    'SELECT lock, session, run, pid, host, since, "user" FROM holder ORDER BY lock, since, session'
)
_ALL = """
    SELECT l.classid::bigint << 32 | l.objid::bigint, l.pid FROM pg_locks l
    WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"""


class AdvisoryLock:
    """A lock of a shared ledger, which one session holds.

    ``admits``: it is held together with the workers of a run, whose locks ``join``; no other run gets it before all of
    them have released it.
    """

    def __init__(
        self, store: PostgresStore, name: str, *, admits: bool = False, joins: bool = False
    ) -> None:
        self._store = store
        self.name = name
        self._admits = admits and not joins
        self._joins = joins
        self._held = False

    def try_hold(self, holder: Holder) -> bool:
        """Take the lock if it is free, and record the holder; raises ``LedgerError``."""
        store, key = self._store, key_of(self.name)
        is_ours = store.held[self.name]  # the session could take it again
        if is_ours or not store.try_lock(key, shared=self._joins):
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
                shown = (holder.run, holder.pid, holder.user, holder.host, holder.since)
                store.put(HOLDER, ((self.name, store.session), shown))
        except BaseException:
            self.release()
            raise
        return True

    def holder(self) -> str:
        """Return who holds the lock, as a text; the holder may not have recorded it yet."""
        for lock, holder in _holders(self._store):
            if lock == self.name:
                return str(holder)
        return "another run"

    def release(self) -> None:
        """Release the lock if it is held; a lost session has released it."""
        if not self._held:
            return
        store, self._held = self._store, False
        store.held[self.name] -= 1
        with suppress(LedgerError):
            try:
                if not store.held[self.name]:
                    store.put(HOLDER, ((self.name, store.session), None))
            finally:
                store.unlock(key_of(self.name), shared=self._admits or self._joins)


class AdvisoryLocks:
    """The locks of a shared ledger. ``admits``: workers on other machines may take part in the runs of this process."""

    def __init__(self, store: PostgresStore) -> None:
        self.store = store
        self.admits = False

    @property
    def session(self) -> tuple[LedgerUrl, int]:
        """Where the ledger is opened, and the session that holds these locks."""
        return self.store.url, self.store.session

    def scope(self, scope: LockScope, *, joins: bool = False) -> AdvisoryLock:
        """Return the lock of a run that writes to a server and database."""
        name = f"scope {json.dumps(scope.key)}"
        return AdvisoryLock(self.store, name, admits=self.admits, joins=joins)

    def run(self, run: str, *, joins: bool = False) -> AdvisoryLock:
        """Return the lock that a run holds while its process is alive."""
        return AdvisoryLock(self.store, f"run {run}", admits=self.admits, joins=joins)

    def worker(self, run: str, server: str) -> AdvisoryLock:
        """Return the lock that the only worker holds which applies a server in a run."""
        return AdvisoryLock(self.store, f"worker {run} {server}")

    def batch(self, batch: str) -> AdvisoryLock:
        """Return the lock that one run of a batch holds."""
        return AdvisoryLock(self.store, f"batch {batch}")

    def alive(self, runs: Collection[str]) -> set[str]:
        """Return those of the runs whose process, or a worker of them, is alive. Writes nothing."""
        held = _sessions(self.store) if runs else {}
        return {run for run in runs if key_of(self.run(run).name) in held}

    def held(self) -> list[tuple[str, str]]:
        """Return the locks of scopes and batches that are held now, and by whom. Writes nothing."""
        locks = []
        for lock, holder in _holders(self.store):
            kind, _, name = lock.partition(" ")
            if kind in {"scope", "batch"}:
                if kind == "scope":
                    lock = str(LockScope(*json.loads(name)))
                locks.append((lock, str(holder)))
        return locks

    def join(self, run: str, session: int, scopes: Iterable[LockScope]) -> ExitStack:
        """Take part in a run of another process, whose session holds the scopes; raise ``LedgerError`` if it ended.

        It is looked for after the locks are taken. So either it still holds its own then, and no later run gets them
        before these are released; or it does not, and nothing may be sent.
        """
        of_run = self.run(run, joins=True)
        locks = [of_run, *(self.scope(scope, joins=True) for scope in sorted(set(scopes)))]
        worker = this_process(run, datetime.now(UTC).isoformat(timespec="seconds"))
        with ExitStack() as held:
            for lock in locks:
                if not lock.try_hold(worker):
                    holder = f"{lock.name} is held by {lock.holder()}"
                    raise LedgerError(f"a worker of run {run} cannot begin: {holder}")
                held.callback(lock.release)
            if session not in _sessions(self.store)[key_of(of_run.name)]:
                raise LedgerError(
                    f"run {run} has ended, or its session is lost: its workers send nothing more"
                )
            return held.pop_all()


def _holders(store: PostgresStore) -> Iterator[tuple[str, Holder]]:
    """Yield the locks that are held now, with who holds them."""
    held = _sessions(store)
    for lock, session, *holder in store.read(_HOLDERS):
        if session in held.get(key_of(lock), ()):
            yield lock, Holder(*holder)


def _sessions(store: PostgresStore) -> dict[int, set[int]]:
    """Return the keys of all locks that are held, with the sessions that hold them."""
    sessions: dict[int, set[int]] = defaultdict(set)
    for key, session in store.read(_ALL):
        sessions[key].add(session)
    return sessions


def key_of(name: str) -> int:
    """Return the key of a lock: a signed number of 64 bits."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)
