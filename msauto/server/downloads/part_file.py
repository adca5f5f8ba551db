"""A file that is there whole, or not at all: it grows beside its place, is synced, then renamed in one step.

What it grows in (``.film.mp4.msauto.part``) is locked as long as it is open. What lies there already is taken up
only where it is, byte for byte, what we wrote; a link, a folder, or a file of somebody else's is left alone.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
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
_OPEN: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_REMEDIES = {
    errno.ENOSPC: "free some space on that disk",
    errno.EDQUOT: "free some space: the quota is used up",
    errno.EACCES: "give this user the right to write there",
    errno.EPERM: "give this user the right to write there",
    errno.EROFS: "choose a place that can be written to",
    errno.ENOTDIR: "choose another path: a file stands where a folder is needed",
    errno.EISDIR: "choose another path: a folder stands where the file is to go",
}


class PartFile:
    """The beginning of a file that is to be ``dest``. May be used by one thread after the other.

    All methods raise :class:`DownloadError`. Made by :func:`open_part`.
    """

    def __init__(self, dest: Path, path: Path, descriptor: int) -> None:
        self.dest = dest
        self.path = path
        self.size = 0
        self._descriptor = descriptor
        self._hash = hashlib.sha256()
        self._open = True
        self._lock = threading.Lock()  # who is cancelled may still be writing

    @property
    def is_found_again(self) -> bool:
        """Whether :func:`open_part` opens this very file another time: not where the usual one was not to be had."""
        return self.path.name == part_name(self.dest.name)

    def append(self, data: bytes, at: int) -> None:
        """Write the bytes at the end, which is ``at``; where it is no more, somebody who was cancelled wrote them."""
        with self._held():
            if self.size != at:
                return
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
            self._hash.update(data)
            self.size += len(data)

    def restart(self) -> None:
        """Forget what came so far."""
        with self._held():
            self._cut(0, hashlib.sha256())

    def sync(self) -> str:
        """Make sure that the bytes outlast a loss of power; return their SHA-256 in hex."""
        with self._held():
            os.fsync(self._descriptor)
            return self._hash.hexdigest()

    def breaks_off(self) -> bool:
        """Tell whether what came says that there is more of it (:mod:`msauto.server.downloads.truncation`)."""
        with self._held():
            return breaks_off(lambda place, count: os.pread(self._descriptor, count, place), self.size)

    def finish(self) -> str:
        """Put the file in its place, and return its SHA-256 in hex."""
        with self._held():
            os.fsync(self._descriptor)
            if not _is_at(self.path, self._descriptor):
                raise DownloadError(
                    f"{self.dest} could not be written: somebody has moved {self.path.name}, in which it was growing",
                    remedy="look who else writes there",
                )
            self.path.replace(self.dest)
            _sync_folder(self.dest.parent)
            self._close()
            return self._hash.hexdigest()

    def leave(self) -> None:
        """Close it; what came so far stays."""
        with self._lock:
            self._close()

    def drop(self) -> None:
        """Close it and take it away, unless it was put in its place."""
        with self._lock:
            if self._open:
                with contextlib.suppress(OSError):
                    if _is_at(self.path, self._descriptor):
                        self.path.unlink()
            self._close()

    def take_up(self, left: PartialDownload) -> bool:
        """Go on with what an earlier run left, if it is what that run wrote; else it is as new.

        Where that was all of the file, its last byte is asked for again: only so the server says that it is the same.
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
        with self._lock, _told(self.dest):
            if not self._open:
                raise DownloadError(f"{self.dest} could not be written: it was given up")
            yield


def open_part(dest: Path, left: PartialDownload | None = None) -> PartFile:
    """Open, or make, the file in which ``dest`` grows; ``left`` is what is known of an earlier beginning."""
    with _told(dest):
        dest.parent.mkdir(parents=True, exist_ok=True)
        usual = dest.with_name(part_name(dest.name))
        descriptor = _take(usual)
        if descriptor is None:  # somebody else's, or at work: it stays as it is
            usual = usual.with_name(f"{usual.name.removesuffix('.part')}.{secrets.token_hex(6)}.part")
            descriptor = os.open(usual, _OPEN | os.O_CREAT | os.O_EXCL, 0o666)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file = PartFile(dest, usual, descriptor)
    try:
        if left is None or not file.take_up(left):
            file.restart()
    except BaseException:
        file.leave()
        raise
    return file


def part_name(name: str) -> str:
    """Return what the beginning of a file is called: hidden, and no longer than a name may be."""
    raw = os.fsencode(name)
    if len(raw) > _LONGEST_NAME:
        digest = hashlib.sha256(raw).hexdigest()[:8]
        name = f"{raw[: _LONGEST_NAME - 9].decode('utf-8', 'ignore')}.{digest}"
    return f".{name}.msauto.part"


def _take(path: Path) -> int | None:
    """Open and lock a file of ours, or a new one; ``None`` where what is there is not ours to write on."""
    try:
        descriptor = os.open(path, _OPEN | os.O_CREAT, 0o666)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.EISDIR, errno.EACCES, errno.EPERM, errno.ENXIO, errno.EMLINK}:
            return None
        raise
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        about = os.fstat(descriptor)
        ours = stat.S_ISREG(about.st_mode) and about.st_nlink == 1 and about.st_uid == os.geteuid()
        if ours and _is_at(path, descriptor):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def _is_at(path: Path, descriptor: int) -> bool:
    """Tell whether a name still leads to the file that is open: who waited for its lock may hold one that was moved."""
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
    with contextlib.suppress(OSError):  # not every system lets a folder be synced
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def _told(dest: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, "choose another place for the file")
        raise DownloadError(f"{dest} could not be written: {error.strerror or error}", remedy=remedy) from error
