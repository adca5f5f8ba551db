"""Writing a file in one step: the part file grows beside the destination, is synced, then renamed.

The part file (``.film.mp4.msauto.part``) is locked while it is open. An existing one is continued only if it is, byte
for byte, what we wrote. A link, a folder, or a file of another user is not touched.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import os
import secrets
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msauto.errors import DownloadError
from msauto.model.ports import PartialDownload
from msauto.server.downloads.truncation import breaks_off

_PIECE: Final = 2**20
_LONGEST_NAME: Final = 200  # bytes, of the 255 that most systems allow
_REMEDIES = {
    errno.ENOSPC: "free some space on that disk",
    errno.EDQUOT: "free some space: the quota is used up",
    errno.EACCES: "give this user the right to write there",
    errno.EPERM: "give this user the right to write there",
    errno.EROFS: "choose a writable folder",
    errno.ENOTDIR: "choose another path: a part of it is a file, not a folder",
    errno.EISDIR: "choose another path: this one is a folder",
}


class PartFile:
    """The part file of ``dest``. Thread-safe.

    All methods raise :class:`DownloadError`. Created by :func:`open_part`.
    """

    def __init__(self, dest: Path, path: Path, descriptor: int) -> None:
        self.dest = dest
        self.path = path
        self.size = 0
        self._descriptor = descriptor
        self._hash = hashlib.sha256()
        self._open = True
        self._lock = threading.Lock()  # the thread of a cancelled task may still be writing

    @property
    def is_found_again(self) -> bool:
        """Whether :func:`open_part` opens this file again: not if another name had to be used."""
        return self.path.name == part_name(self.dest.name)

    def append(self, data: bytes, at: int) -> None:
        """Write the bytes at the end, if that is still ``at``: a cancelled task may have written them already."""
        with self._held():
            if self.size != at:
                return
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
            self._hash.update(data)
            self.size += len(data)

    def restart(self) -> None:
        """Remove all content."""
        with self._held():
            self._cut(0, hashlib.sha256())

    def sync(self) -> str:
        """Flush the bytes to disk; return their SHA-256 in hex."""
        with self._held():
            os.fsync(self._descriptor)
            return self._hash.hexdigest()

    def breaks_off(self) -> bool:
        """Return whether the content is incomplete (:mod:`msauto.server.downloads.truncation`)."""
        with self._held():
            return breaks_off(lambda place, count: os.pread(self._descriptor, count, place), self.size)

    def finish(self) -> str:
        """Rename the file to its destination, and return its SHA-256 in hex."""
        with self._held():
            os.fsync(self._descriptor)
            if not _is_at(self.path, self._descriptor):
                raise DownloadError(
                    f"{self.dest} could not be written: another process moved its part file {self.path.name}",
                    remedy="check which process writes there",
                )
            self.path.replace(self.dest)
            _sync_folder(self.dest.parent)
            self._close()
            return self._hash.hexdigest()

    def leave(self) -> None:
        """Close the file and keep it."""
        with self._lock:
            self._close()

    def drop(self) -> None:
        """Close and delete the file, unless it was renamed."""
        with self._lock:
            if self._open:
                with contextlib.suppress(OSError):
                    if _is_at(self.path, self._descriptor):
                        self.path.unlink()
            self._close()

    def take_up(self, left: PartialDownload) -> bool:
        """Continue the part of an earlier run; return false if it is not what that run wrote.

        Of a complete file the last byte is requested again, so that the server confirms that the file is the same.
        """
        with self._held():
            if self.path.name != left.name or os.fstat(self._descriptor).st_size < left.size or left.size < 1:
                return False
            before, whole = _hashes(self._descriptor, left.size)
            if whole.hexdigest() != left.sha256:
                return False
            if left.size == left.total:
                self._cut(left.size - 1, before)
            else:
                self._cut(left.size, whole)
            return True

    def _cut(self, size: int, content: hashlib._Hash) -> None:
        os.ftruncate(self._descriptor, size)
        os.lseek(self._descriptor, size, os.SEEK_SET)
        self.size, self._hash = size, content

    def _close(self) -> None:
        if self._open:
            self._open = False
            os.close(self._descriptor)

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        with self._lock, _download_errors(self.dest):
            if not self._open:
                raise DownloadError(f"{self.dest} could not be written: the download was cancelled")
            yield


def open_part(dest: Path, left: PartialDownload | None = None) -> PartFile:
    """Open or create the part file of ``dest``; ``left`` is the part of an earlier run."""
    with _download_errors(dest):
        dest.parent.mkdir(parents=True, exist_ok=True)
        usual = dest.with_name(part_name(dest.name))
        descriptor = _open_ours(usual)
        if descriptor is None:  # of another user or process: it is not touched
            usual = usual.with_name(f"{usual.name.removesuffix('.part')}.{secrets.token_hex(6)}.part")
            descriptor = _locked(usual, os.O_EXCL)
        file = PartFile(dest, usual, descriptor)
    try:
        if left is None or not file.take_up(left):
            file.restart()
    except BaseException:
        file.leave()
        raise
    return file


async def hash_file(path: str) -> str | None:
    """Return the SHA-256 of a file in hex; ``None`` for a missing or unreadable file."""

    def read() -> str | None:
        try:
            with Path(path).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return None

    return await asyncio.to_thread(read)


def part_name(name: str) -> str:
    """Return the name of a part file: hidden, and within the limit of file names."""
    raw = os.fsencode(name)
    if len(raw) > _LONGEST_NAME:
        digest = hashlib.sha256(raw).hexdigest()[:8]
        name = f"{raw[: _LONGEST_NAME - 9].decode('utf-8', 'ignore')}.{digest}"
    return f".{name}.msauto.part"


def _open_ours(path: Path) -> int | None:
    """Open and lock a part file of ours, or a new one; ``None`` if the existing one is not ours."""
    try:
        descriptor = _locked(path)
    except BlockingIOError:
        return None
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.EISDIR, errno.EACCES, errno.EPERM, errno.ENXIO, errno.EMLINK}:
            return None
        raise
    try:
        about = os.fstat(descriptor)
        ours = stat.S_ISREG(about.st_mode) and about.st_nlink == 1 and about.st_uid == os.geteuid()
        if ours and _is_at(path, descriptor):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def _locked(path: Path, more: int = 0) -> int:
    """Open and lock a file, or a new one. Raises ``BlockingIOError`` for one that another process has locked."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover - Windows
        raise DownloadError(
            "downloads work on Linux and macOS only: they need file locks that this system does not have",
            remedy="run msauto there, for example in WSL or a container",
        ) from None
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_CREAT
    descriptor = os.open(path, flags | more, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _is_at(path: Path, descriptor: int) -> bool:
    """Return whether a path still leads to the open file: it may have been moved before we locked it."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _hashes(descriptor: int, size: int) -> tuple[hashlib._Hash, hashlib._Hash]:
    """Return the SHA-256 of the first ``size`` bytes without the last one, and with it."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    before, left = hashlib.sha256(), size - 1
    while left and (piece := os.read(descriptor, min(left, _PIECE))):
        before.update(piece)
        left -= len(piece)
    whole = before.copy()
    whole.update(os.read(descriptor, 1))
    return before, whole


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not every system can sync a folder
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def _download_errors(dest: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, "choose another place for the file")
        raise DownloadError(f"{dest} could not be written: {error.strerror or error}", remedy=remedy) from error
