"""Locks that end with their process: one run at a time for each server and database, and one that each run holds.

Of a local ledger they are files: ``flock`` belongs to the open file, and the kernel releases it however the process
ends. The files remain; a file that is not locked means nothing. Its text names the holder, for messages alone. Those of
a shared ledger are in :mod:`msauto.ledger.advisory_locks`.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import re
import socket
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Protocol

from msauto.concurrency import is_over
from msauto.errors import LedgerError, LockedError
from msauto.model.ports import Clock
from msauto.model.server import server_key

_POLL = 0.2  # seconds between tries to take a lock


@dataclass(frozen=True, slots=True, order=True)
class LockScope:
    """What only one run at a time may write to: a database of a server, identified by its URL.

    The RSS channels of a server are the scope with an empty database.
    """

    server: str
    database: str

    def __str__(self) -> str:
        return f"{self.server} {self.database}".strip()

    def normalized(self) -> LockScope:
        """Return the scope with a text that is the same for all URLs of one server."""
        return replace(self, server=server_key(self.server))

    @property
    def exact(self) -> str:
        """A text that no two scopes share."""
        return json.dumps([self.server, self.database])


@dataclass(frozen=True, slots=True)
class Holder:
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


class Lock(Protocol):
    """An exclusive lock, released at the latest when its process ends."""

    def try_hold(self, holder: Holder) -> bool:
        """Take the lock if it is free, and record the holder; raises ``LedgerError``."""

    def holder(self) -> str:
        """Return who holds the lock, as a text; the holder may not have recorded it yet."""

    def release(self) -> None:
        """Release the lock if it is held."""


class Locks(Protocol):
    """The locks of a ledger."""

    def scope(self, scope: LockScope) -> Lock:
        """Return the lock of a run that writes to a server and database."""

    def run(self, run: str) -> Lock:
        """Return the lock that a run holds while its process is alive."""

    def batch(self, batch: str) -> Lock:
        """Return the lock that one run of a batch holds."""

    def alive(self, runs: Collection[str]) -> set[str]:
        """Return those of the runs whose process, or a worker of them, is alive. Writes nothing."""

    def held(self) -> list[tuple[str, str]]:
        """Return the locks of scopes and batches that are held now, and by whom. Writes nothing."""


class FileLock:
    """An exclusive lock on a file; ``once``: the file belongs to one run, and is removed with it."""

    def __init__(self, path: Path, *, once: bool = False) -> None:
        self.path = path
        self._once = once
        self._file: int | None = None

    def try_hold(self, holder: Holder) -> bool:
        """Take the lock if it is free, and write the holder into the file; raises ``LedgerError``."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                if not _flock(file):
                    os.close(file)
                    return False
                os.ftruncate(file, 0)
                os.pwrite(file, json.dumps(asdict(replace(holder, user=""))).encode(), 0)  # the user's own folder
            except BaseException:
                os.close(file)
                raise
        except OSError as error:
            remedy = "check that this user may write there, or choose another --state-dir"
            raise LedgerError(f"the lock {self.path} cannot be used: {error.strerror}", remedy=remedy) from error
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
        return FileLock(_path(self._folder / "locks", scope))

    def run(self, run: str) -> FileLock:
        """Return the lock that a run holds while its process is alive."""
        return FileLock(self._run_path(run), once=True)

    def batch(self, batch: str) -> FileLock:
        """Return the lock that one run of a batch holds."""
        return FileLock(self._folder / "locks" / f"batch-{batch}.lock")

    def alive(self, runs: Collection[str]) -> set[str]:
        """Return those of the runs whose process is alive. Writes nothing."""
        return {run for run in runs if is_held(self._run_path(run))}

    def held(self) -> list[tuple[str, str]]:
        """Return the locks of scopes and batches that are held now, and by whom. Writes nothing."""
        paths = sorted((self._folder / "locks").glob("*.lock"))
        held = [FileLock(path) for path in paths if is_held(path)]
        return [
            (lock.path.name.removesuffix(".lock").rpartition(".")[0] or lock.path.stem, lock.holder()) for lock in held
        ]

    def _run_path(self, run: str) -> Path:
        return self._folder / "runs" / f"{run}.alive"


def is_held(path: Path) -> bool:
    """Return whether a process holds the lock now; writes nothing."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        return not _flock(file, shared=True)
    finally:
        os.close(file)


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
    """Return the name of the user, or the number: in a container, it may have no name."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.getuid())


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


def _flock(file: int, *, shared: bool = False) -> bool:
    import fcntl

    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _path(folder: Path, scope: LockScope) -> Path:
    """Return a readable file name that no two scopes share."""
    scope = scope.normalized()
    exact = hashlib.sha256(scope.exact.encode()).hexdigest()[:16]
    readable = re.sub(r"[^A-Za-z0-9.-]+", "-", str(scope)).strip("-")[:60]
    return folder / f"{readable}.{exact}.lock"
