"""Locks that end with their process: one run at a time for each server and database, and one that each run holds.

Of a local ledger they are files: ``flock`` belongs to the open file, and the kernel releases it however the process
ends. The files remain; a file that is not locked means nothing. Its text names the holder, for messages alone.

Of a shared ledger they are advisory locks of PostgreSQL, which end with the session. The key of a lock is made from its
name. Who holds it is written into the table ``holder``, for messages; whether it is held is known by the server alone.
A session could take its own lock again, so a process remembers what it holds.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import re
import socket
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from msauto.concurrency import is_over
from msauto.errors import LedgerError, LockedError
from msauto.ledger.own_files import require_own_file, require_own_folder
from msauto.ledger.store import Upsert
from msauto.model.ports import Clock
from msauto.model.result import user_at
from msauto.model.server import server_key

if TYPE_CHECKING:
    from msauto.ledger.postgres_store import PostgresStore

_POLL = 0.2  # seconds between tries to take a lock


class LockScope(Struct, frozen=True, order=True):
    """What only one run at a time may write to: a database of a server, identified by its URL.

    The RSS channels of a server are the scope with an empty database.
    """

    server: str
    database: str

    def __str__(self) -> str:
        return f"{self.server} {self.database}".strip()

    def normalized(self) -> LockScope:
        """Return the scope with a text that is the same for all URLs of one server."""
        return structs.replace(self, server=server_key(self.server))

    @property
    def exact(self) -> str:
        """A text that no two scopes share."""
        return json.dumps([self.server, self.database])


class Holder(Struct, frozen=True):
    """Who holds a lock, for messages; ``run`` is empty if the holder is not a run."""

    run: str
    pid: int
    host: str
    since: str
    user: str = ""

    def __str__(self) -> str:
        run = f"run {self.run}, " if self.run else ""
        user = f"{self.user}@" if self.user else ""
        return f"{run}process {self.pid} on {user}{self.host}, since {self.since}"


# Of a local ledger ----------------------------------------------------------------------------------------------------


class FileLock:
    """An exclusive lock on a file; ``once``: the file belongs to one run, and is removed with it."""

    def __init__(self, path: Path, *, once: bool = False) -> None:
        self.path = path
        self._once = once
        self._file: int | None = None

    def try_hold(self, holder: Holder) -> bool:
        """Take the lock if it is free, and write the holder into the file; raises ``LedgerError``."""
        with _lock_errors(self.path), ExitStack() as unless_held:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = _open(self.path, os.O_RDWR | os.O_CREAT)
            unless_held.callback(os.close, file)
            if not _flock(file):
                return False
            os.ftruncate(file, 0)
            shown = structs.replace(holder, user="")  # the folder is the user's own
            os.pwrite(file, json.dumps(structs.asdict(shown)).encode(), 0)
            unless_held.pop_all()
        self._file = file
        return True

    def holder(self) -> str:
        """Return who holds the lock, as a text; the holder may not have written it yet."""
        try:
            return str(Holder(**json.loads(self.path.read_bytes())))
        except (OSError, ValueError, TypeError):
            return "another run"

    def release(self) -> None:
        """Release the lock if it is held."""
        file, self._file = self._file, None
        if file is None:
            return
        if self._once:
            self.path.unlink(missing_ok=True)
        os.ftruncate(file, 0)
        os.close(file)


class FileLocks:
    """The locks of a local ledger: files in its folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def scope(self, scope: LockScope) -> FileLock:
        """Return the lock of a run that writes to a server and database."""
        scope = scope.normalized()
        exact = hashlib.sha256(scope.exact.encode()).hexdigest()[:16]  # no two scopes share a file
        readable = re.sub(r"[^A-Za-z0-9.-]+", "-", str(scope)).strip("-")[:60]
        return FileLock(self._folder / "locks" / f"{readable}.{exact}.lock")

    def run(self, run: str) -> FileLock:
        """Return the lock that a run holds while its process is alive."""
        return FileLock(self._folder / "runs" / f"{run}.alive", once=True)

    def batch(self, batch: str) -> FileLock:
        """Return the lock that one run of a batch holds."""
        return FileLock(self._folder / "locks" / f"batch-{batch}.lock")

    def alive(self, runs: Collection[str]) -> set[str]:
        """Return those of the runs whose process is alive. Writes nothing."""
        return {run for run in runs if is_held(self.run(run).path)}

    def held(self) -> list[tuple[str, str]]:
        """Return the locks of scopes and batches that are held now, and by whom. Writes nothing."""
        paths = sorted((self._folder / "locks").glob("*.lock"))
        held = [FileLock(path) for path in paths if is_held(path)]
        return [
            (lock.path.name.removesuffix(".lock").rpartition(".")[0] or lock.path.stem, lock.holder()) for lock in held
        ]


def is_held(path: Path) -> bool:
    """Return whether a process holds the lock now; writes nothing. Raises ``LedgerError``."""
    with _lock_errors(path), ExitStack() as opened:
        try:
            file = _open(path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        opened.callback(os.close, file)
        return not _flock(file, shared=True)


@contextmanager
def _lock_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        remedy = "check that this user may write there, or choose another --state-dir"
        raise LedgerError(f"the lock {path} cannot be used: {error.strerror}", remedy=remedy) from error


def require_file_locks() -> None:
    """Raise ``LedgerError`` on a system without file locks."""
    try:
        import fcntl  # noqa: F401 - Windows does not have it, and only a run that writes needs it
    except ImportError as error:
        raise LedgerError(
            "this system has no file locks (Python module `fcntl`), so msauto cannot write to a server safely",
            remedy="run `apply` and `undo` on Linux or macOS; here, use the Python client, `validate` and `plan`",
        ) from error


def this_process(run: str, since: str) -> Holder:
    """Return this process as the holder of a lock."""
    return Holder(run, os.getpid(), socket.gethostname(), since, user_name())


def user_name() -> str:
    """Return the name of the user, or the number: in a container, it may have no name. Windows may have neither."""
    try:
        return getpass.getuser()
    except (AttributeError, ImportError, KeyError, OSError):
        return str(os.getuid()) if hasattr(os, "getuid") else "unknown"


def this_user() -> str:
    """Return the user and the machine of this process, as ``user@host``."""
    return user_at(user_name(), socket.gethostname())


@asynccontextmanager
async def hold(
    locks: Locks, scopes: Iterable[LockScope], clock: Clock, *, run: str, lock_timeout: float = 0.0
) -> AsyncIterator[None]:
    """Hold the locks of all scopes; raise ``LockedError`` with the holder if one is not free in time.

    Every run takes them in the same order, so that no two runs wait for each other.
    """
    until = clock.monotonic() + lock_timeout
    async with AsyncExitStack() as held:
        for scope in sorted(set(scopes)):
            lock = locks.scope(scope)
            if not await take(lock, clock, run, until):
                raise LockedError(
                    f"{scope} is locked by {lock.holder()}",
                    remedy="wait until that run has ended, or give --lock-timeout SECONDS",
                )
            held.callback(lock.release)
        yield


async def take(lock: Lock, clock: Clock, run: str, until: float) -> bool:
    """Take a lock for a run as soon as it is free; return whether it was before ``until``."""
    holder = this_process(run, clock.now().isoformat(timespec="seconds"))
    while not lock.try_hold(holder):
        left = until - clock.monotonic()
        if is_over(left):
            return False
        await clock.sleep(min(_POLL, left))
    return True


def _open(path: Path, access: int) -> int:
    """Open the file of a lock, whose text is replaced: never another file to which a link leads."""
    require_own_folder(path.parent)
    require_own_file(path)
    return os.open(path, access | getattr(os, "O_NOFOLLOW", 0), 0o600)


def _flock(file: int, *, shared: bool = False) -> bool:
    import fcntl

    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# Of a shared ledger ---------------------------------------------------------------------------------------------------

HOLDER = Upsert.of("holder", "lock, session", 'run, pid, "user", host, since')
_HOLDERS = 'SELECT lock, session, run, pid, host, since, "user" FROM holder ORDER BY lock, since, session'
_ALL = """
    SELECT l.classid::bigint << 32 | l.objid::bigint, l.pid FROM pg_locks l
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
                shown = (holder.run, holder.pid, holder.user, holder.host, holder.since)
                store.put(HOLDER, ((self.name, store.session), shown))
        except BaseException:
            self.release()
            raise
        return True

    def holder(self) -> str:
        """Return who holds the lock, as a text; the holder may not have recorded it yet."""
        return next((str(holder) for lock, holder in _holders(self._store) if lock == self.name), "another run")

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

    def scope(self, scope: LockScope, *, joins: bool = False) -> AdvisoryLock:
        """Return the lock of a run that writes to a server and database."""
        name = f"scope {scope.normalized().exact}"
        return AdvisoryLock(self.store, name, admits=self.admits and not joins, joins=joins)

    def run(self, run: str, *, joins: bool = False) -> AdvisoryLock:
        """Return the lock that a run holds while its process is alive."""
        return AdvisoryLock(self.store, f"run {run}", admits=self.admits and not joins, joins=joins)

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
                shown = f"batch {name}" if kind == "batch" else str(LockScope(*json.loads(name)))
                locks.append((shown, str(holder)))
        return locks

    def join(self, run: str, session: int, scopes: Iterable[LockScope]) -> ExitStack:
        """Take part in a run of another process, whose session holds the scopes; raise ``LedgerError`` if it ended.

        It is looked for after the locks are taken. So either it still holds its own then, and no later run gets them
        before these are released; or it does not, and nothing may be sent.
        """
        of_run = self.run(run, joins=True)
        with ExitStack() as taken:
            for lock in (of_run, *(self.scope(each, joins=True) for each in sorted(set(scopes)))):
                if not lock.try_hold(this_process(run, datetime.now(UTC).isoformat(timespec="seconds"))):
                    raise LedgerError(f"a worker of run {run} cannot begin: {lock.name} is held by {lock.holder()}")
                taken.callback(lock.release)
            if session not in _sessions(self.store)[key_of(of_run.name)]:
                raise LedgerError(f"run {run} has ended, or its session is lost: its workers send nothing more")
            return taken.pop_all()


Lock = FileLock | AdvisoryLock
Locks = FileLocks | AdvisoryLocks


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
