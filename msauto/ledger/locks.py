"""Locks that end with their process: one run at a time for each server and database, and one that each run holds.

Of a local ledger they are files: ``flock`` belongs to the open file, and the kernel releases it however the process
ends. The files remain; a file that is not locked means nothing. Its text names the holder, for messages alone. The
locks of a shared ledger come with its store.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import re
import socket
from collections.abc import Collection, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from msgspec import Struct, structs

from msauto.concurrency import is_over
from msauto.errors import LedgerError
from msauto.ledger.own_files import require_own_files
from msauto.ledger.store import Upsert
from msauto.model.ledger_url import LedgerUrl
from msauto.model.ports import Clock
from msauto.model.result import user_at
from msauto.model.server import server_key

_POLL = 0.2  # seconds between tries to take a lock


class LockScope(Struct, frozen=True, order=True):
    """What only one run at a time may write to: a database of a server, identified by its URL.

    The RSS channels of a server are the scope with an empty database.
    """

    server: str
    database: str

    def __str__(self) -> str:
        return f"{self.server} {self.database}".strip()

    @property
    def key(self) -> tuple[str, str]:
        """What no two scopes share: texts that are the same for all URLs of one server."""
        return server_key(self.server), self.database


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


# Of any ledger --------------------------------------------------------------------------------------------------------


class Lock(Protocol):
    """A lock that ends with the process, or the session, that holds it."""

    def try_hold(self, holder: Holder) -> bool:
        """Take the lock if it is free, and record the holder; raises ``LedgerError``."""

    def holder(self) -> str:
        """Return who holds the lock, as a text."""

    def release(self) -> None:
        """Release the lock if it is held."""


class SharedLocks(Protocol):
    """The locks of a shared ledger. ``admits``: workers on other machines may take part in the runs of this process."""

    admits: bool

    @property
    def session(self) -> tuple[LedgerUrl, int]:
        """Where the ledger is opened, and the session that holds these locks."""

    def scope(self, scope: LockScope) -> Lock:
        """Return the lock of a run that writes to a server and database."""

    def run(self, run: str) -> Lock:
        """Return the lock that a run holds while its process is alive."""

    def worker(self, run: str, server: str) -> Lock:
        """Return the lock that the only worker holds which applies a server in a run."""

    def batch(self, batch: str) -> Lock:
        """Return the lock that one run of a batch holds."""

    def alive(self, runs: Collection[str]) -> set[str]:
        """Return those of the runs whose process, or a worker of them, is alive. Writes nothing."""

    def held(self) -> list[tuple[str, str]]:
        """Return the locks of scopes and batches that are held now, and by whom. Writes nothing."""

    def join(self, run: str, session: int, scopes: Iterable[LockScope]) -> ExitStack:
        """Take part in a run of another process, whose session holds the scopes; raise ``LedgerError`` if it ended."""


HOLDER = Upsert.of("holder", "lock, session", 'run, pid, "user", host, since')


# Of a local ledger ----------------------------------------------------------------------------------------------------


class FileLock(Struct):
    """An exclusive lock on a file; ``once``: the file belongs to one run, and is removed with it."""

    path: Path
    once: bool = False
    _file: int | None = None

    def try_hold(self, holder: Holder) -> bool:
        """Take the lock if it is free, and write the holder into the file; raises ``LedgerError``."""
        with ExitStack() as unless_held:
            try:
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                file = _lock(self.path, os.O_RDWR | os.O_CREAT)
                if file is None:
                    return False
                unless_held.callback(os.close, file)
                os.ftruncate(file, 0)
                shown = structs.replace(holder, user="")  # the folder is the user's own
                os.pwrite(file, json.dumps(structs.asdict(shown)).encode(), 0)
            except OSError as error:
                raise _unusable(self.path, error) from error
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
        if self.once:
            self.path.unlink(missing_ok=True)
        os.ftruncate(file, 0)
        os.close(file)


class FileLocks(Struct, frozen=True):
    """The locks of a local ledger: files in its folder."""

    folder: Path

    def scope(self, scope: LockScope) -> FileLock:
        """Return the lock of a run that writes to a server and database."""
        key = scope.key
        exact = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:16]
        readable = re.sub(r"[^A-Za-z0-9.-]+", "-", " ".join(key)).strip("-")[:60]
        return FileLock(self.folder / "locks" / f"{readable}.{exact}.lock")

    def run(self, run: str) -> FileLock:
        """Return the lock that a run holds while its process is alive."""
        return FileLock(self.folder / "runs" / f"{run}.alive", once=True)

    def batch(self, batch: str) -> FileLock:
        """Return the lock that one run of a batch holds."""
        return FileLock(self.folder / "locks" / f"batch-{batch}.lock")

    def alive(self, runs: Collection[str]) -> set[str]:
        """Return those of the runs whose process is alive. Writes nothing."""
        return {run for run in runs if is_held(self.run(run).path)}

    def held(self) -> list[tuple[str, str]]:
        """Return the locks of scopes and batches that are held now, and by whom. Writes nothing."""
        paths = sorted((self.folder / "locks").glob("*.lock"))
        held = [FileLock(path) for path in paths if is_held(path)]
        return [(_shown(lock.path), lock.holder()) for lock in held]


def _shown(path: Path) -> str:
    """Return what the file of a lock is for, without what distinguishes like names."""
    return path.stem.rpartition(".")[0] or path.stem


def is_held(path: Path) -> bool:
    """Return whether a process holds the lock now; writes nothing. Raises ``LedgerError``."""
    try:
        file = _lock(path, os.O_RDONLY, shared=True)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unusable(path, error) from error
    if file is not None:
        os.close(file)
    return file is None


def _lock(path: Path, access: int, *, shared: bool = False) -> int | None:
    """Open and lock a file, never another one to which a link leads; ``None`` if another process has locked it."""
    import fcntl

    require_own_files(path.parent, path.name)
    file = os.open(path, access | getattr(os, "O_NOFOLLOW", 0), 0o600)
    with ExitStack() as unless_locked:
        unless_locked.callback(os.close, file)
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        unless_locked.pop_all()
    return file


def _unusable(path: Path, error: OSError) -> LedgerError:
    return LedgerError(
        f"the lock {path} cannot be used: {error.strerror}",
        remedy="check that this user may write there, or choose another --state-dir",
    )


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


Locks = FileLocks | SharedLocks


async def take(lock: Lock, clock: Clock, run: str, until: float) -> bool:
    """Take a lock for a run as soon as it is free; return whether it was before ``until``."""
    holder = this_process(run, clock.now().isoformat(timespec="seconds"))
    while not lock.try_hold(holder):
        left = until - clock.monotonic()
        if is_over(left):
            return False
        await clock.sleep(min(_POLL, left))
    return True
