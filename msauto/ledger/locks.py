"""Locks that die with their process: one run at a time for each server and database, and a sign of life of each run.

``flock`` belongs to the open file: the kernel lets go of it however the process ends. The files stay; an unlocked
file means nothing. Their text names the holder, for the message alone.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from msauto.concurrency import is_over
from msauto.errors import LedgerError, LockedError
from msauto.interface.server_url import server_key
from msauto.model.ports import Clock

_POLL = 0.2  # seconds between tries while we wait for a lock


@dataclass(frozen=True, slots=True)
class LockHolder:
    """Who holds a lock: process, host, run, and since when (ISO 8601, UTC)."""

    pid: int
    host: str
    run: str
    since: str

    def __str__(self) -> str:
        run = f"run {self.run}, " if self.run else ""
        return f"{run}process {self.pid} on {self.host}, since {self.since}"


@dataclass(frozen=True, slots=True, order=True)
class LockScope:
    """What one run at a time may write to: a server, named the same by all inventories (its URL), and a database.

    The RSS channels of a server are the scope with an empty database.
    """

    server: str
    database: str

    def __str__(self) -> str:
        return f"{self.server} {self.database}".strip()


class FileLock:
    """An exclusive lock on a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    def try_hold(self, text: str) -> bool:
        """Take the lock if it is free, and write ``text`` for others to read; tell whether it is ours."""
        file = _open(self.path)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        except BaseException:
            os.close(file)
            raise
        self._file = file
        os.ftruncate(file, 0)
        os.pwrite(file, text.encode(), 0)
        return True

    def release(self) -> None:
        """Let go; a lock that is not held is left alone."""
        file, self._file = self._file, None
        if file is not None:
            os.ftruncate(file, 0)
            os.close(file)


def is_held(path: Path) -> bool:
    """Tell whether somebody holds the lock now; writes nothing."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


@asynccontextmanager
async def hold(
    folder: Path, scopes: Iterable[LockScope], clock: Clock, *, run: str, lock_timeout: float = 0.0
) -> AsyncIterator[None]:
    """Hold the locks of all scopes; raise ``LockedError`` naming the holder if one is not free in time.

    They are taken in one order by everybody, so that no two runs wait for each other.
    """
    until = clock.monotonic() + lock_timeout
    async with AsyncExitStack() as held:
        for scope in sorted(set(scopes)):
            lock = FileLock(_path(folder, scope))
            try:
                await _take(lock, scope, clock, run, until)
            except OSError as error:
                remedy = "see that this user may write there, or choose another --state-dir"
                raise LedgerError(f"the lock {lock.path} cannot be used: {error.strerror}", remedy=remedy) from error
            held.callback(lock.release)
        yield


async def _take(lock: FileLock, scope: LockScope, clock: Clock, run: str, until: float) -> None:
    holder = LockHolder(os.getpid(), socket.gethostname(), run, clock.now().isoformat(timespec="seconds"))
    while not lock.try_hold(json.dumps(asdict(holder))):
        left = until - clock.monotonic()
        if is_over(left):
            raise LockedError(
                f"{scope} is locked by {_holder(lock.path)}",
                remedy="wait until that run has ended, or give --lock-timeout SECONDS",
            )
        await clock.sleep(min(_POLL, left))


def _holder(path: Path) -> LockHolder | str:
    """Return who holds a lock; he may be about to write his name."""
    try:
        return LockHolder(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return "another run"


def _open(path: Path) -> int:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def _path(folder: Path, scope: LockScope) -> Path:
    """Return a file name that people can read, and that no two scopes share."""
    scope = replace(scope, server=server_key(scope.server))
    exact = hashlib.sha256(json.dumps([scope.server, scope.database]).encode()).hexdigest()[:16]
    readable = re.sub(r"[^A-Za-z0-9.-]+", "-", str(scope)).strip("-")[:60]
    return folder / f"{readable}.{exact}.lock"
