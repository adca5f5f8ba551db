"""Locks that end with their process: one run at a time for each server and database, and one that each run holds.

``flock`` belongs to the open file, and the kernel releases it however the process ends. The files remain; a file that
is not locked means nothing. Its text names the holder, for messages alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from msauto.concurrency import is_over
from msauto.errors import LedgerError, LockedError
from msauto.interface.server_url import server_key
from msauto.model.ports import Clock

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


class FileLock:
    """An exclusive lock on a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    def try_hold(self, text: str) -> bool:
        """Take the lock if it is free, and write ``text`` into the file; raises ``LedgerError``."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                if not _flock(file):
                    os.close(file)
                    return False
                os.ftruncate(file, 0)
                os.pwrite(file, text.encode(), 0)
            except BaseException:
                os.close(file)
                raise
        except OSError as error:
            remedy = "check that this user may write there, or choose another --state-dir"
            raise LedgerError(f"the lock {self.path} cannot be used: {error.strerror}", remedy=remedy) from error
        self._file = file
        return True

    def holder(self) -> str:
        """Return the text that the holder wrote; it may not have written it yet."""
        try:
            return self.path.read_text(encoding="utf-8") or "another run"
        except (OSError, ValueError):
            return "another run"

    def remove(self) -> None:
        """Release the lock, and remove its file: it belongs to one run."""
        self.path.unlink(missing_ok=True)
        self.release()

    def release(self) -> None:
        """Release the lock if it is held."""
        file, self._file = self._file, None
        if file is not None:
            os.ftruncate(file, 0)
            os.close(file)


def run_lock(folder: Path, run: str) -> FileLock:
    """Return the lock that a run holds while its process is alive."""
    return FileLock(folder / f"{run}.alive")


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


@asynccontextmanager
async def hold(
    folder: Path, scopes: Iterable[LockScope], clock: Clock, *, run: str, lock_timeout: float = 0.0
) -> AsyncIterator[None]:
    """Hold the locks of all scopes; raise ``LockedError`` with the holder if one is not free in time.

    Every run takes them in the same order, so that no two runs wait for each other.
    """
    until = clock.monotonic() + lock_timeout
    async with AsyncExitStack() as held:
        for scope in sorted(set(scopes)):
            lock = FileLock(_path(folder, scope))
            await _take(lock, scope, clock, run, until)
            held.callback(lock.release)
        yield


async def _take(lock: FileLock, scope: LockScope, clock: Clock, run: str, until: float) -> None:
    since = clock.now().isoformat(timespec="seconds")
    holder = {"pid": os.getpid(), "host": socket.gethostname(), "run": run, "since": since}
    while not lock.try_hold(json.dumps(holder)):
        left = until - clock.monotonic()
        if is_over(left):
            raise LockedError(
                f"{scope} is locked by {_holder(lock.path)}",
                remedy="wait until that run has ended, or give --lock-timeout SECONDS",
            )
        await clock.sleep(min(_POLL, left))


def _holder(path: Path) -> str:
    """Return who holds a lock; the holder may not have written it yet."""
    try:
        holder = json.loads(path.read_bytes())
        run = f"run {holder['run']}, " if holder["run"] else ""
        return f"{run}process {holder['pid']} on {holder['host']}, since {holder['since']}"
    except (OSError, ValueError, TypeError, KeyError):
        return "another run"


def _flock(file: int, *, shared: bool = False) -> bool:
    import fcntl

    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _path(folder: Path, scope: LockScope) -> Path:
    """Return a readable file name that no two scopes share."""
    scope = replace(scope, server=server_key(scope.server))
    exact = hashlib.sha256(json.dumps([scope.server, scope.database]).encode()).hexdigest()[:16]
    readable = re.sub(r"[^A-Za-z0-9.-]+", "-", str(scope)).strip("-")[:60]
    return folder / f"{readable}.{exact}.lock"
