"""Saving an answer as a file: in a temporary file, whose length is checked, then renamed.

A file appears under its name only when it is complete. How it works for users: ``docs/how-to/restore-and-download.md``.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from msauto.errors import DownloadError, InDoubtError
from msauto.file_writing import NewFile
from msauto.model.ports import DownloadObserver
from msauto.server.xml import unreadable

_PIECE: Final = 2**20
_ABANDONED: Final = 24 * 3600  # seconds: a download writes each megabyte, so an older temporary file is of a killed run
_REMEDIES = {
    errno.ENOSPC: "free some space on that disk",
    errno.EDQUOT: "free some space: the quota is used up",
    errno.EACCES: "give this user the right to write there",
    errno.EPERM: "give this user the right to write there",
    errno.EROFS: "choose a writable folder",
    errno.ENOTDIR: "choose another path: a part of it is a file, not a folder",
}


class FetchResult(Struct, frozen=True):
    """A saved file: its size in bytes, and its SHA-256 in hex."""

    size: int
    sha256: str


async def save_body(
    read: Callable[[], Awaitable[bytes]], dest: Path, total: int | None, watch: DownloadObserver | None
) -> FetchResult:
    """Save what ``read`` returns until it returns nothing; ``dest`` stays as it is unless all of it arrives.

    ``total`` is the length that the server announces. Raises ``InDoubtError`` for
    another length, ``UnreadableError`` for an empty file, and ``DownloadError``.
    """
    size, digest, waiting = 0, hashlib.sha256(), bytearray()
    with _download_errors(dest):
        file = await asyncio.to_thread(_new_file, dest)
    try:
        while chunk := await read():
            waiting += chunk
            digest.update(chunk)
            size += len(chunk)
            if watch is not None:
                watch.received(size, total)
            if len(waiting) >= _PIECE:
                await _write(file, dest, bytes(waiting))
                waiting.clear()
        if size != (total if total is not None else size):
            raise InDoubtError(
                f"the download was interrupted: {size} of {total} bytes arrived",
                remedy="check the server's log and the network",
            )
        if not size:
            raise unreadable("the answer is an empty file", "check the server: it created no media")
        await _write(file, dest, bytes(waiting))
        with _download_errors(dest):
            await asyncio.to_thread(file.keep)
    finally:
        with suppress(OSError):
            file.drop()
    return FetchResult(size, digest.hexdigest())


async def hash_file(path: str) -> str | None:
    """Return the SHA-256 of a file in hex; ``None`` for a missing or unreadable file."""

    def read() -> str | None:
        try:
            with Path(path).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return None

    return await asyncio.to_thread(read)


def _new_file(dest: Path) -> NewFile:
    """Create the temporary file, and remove those that a killed run left."""
    if dest.exists() and not dest.is_file():
        raise DownloadError(f"{dest} is not a file", remedy="choose another path")
    dest.parent.mkdir(parents=True, exist_ok=True)
    for part in dest.parent.glob(".msauto-*.part"):
        with suppress(OSError):
            if time.time() - part.lstat().st_mtime > _ABANDONED:
                part.unlink()
    return NewFile(dest)


async def _write(file: NewFile, dest: Path, data: bytes) -> None:
    with _download_errors(dest):
        await asyncio.to_thread(file.write, [data])


@contextmanager
def _download_errors(dest: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, "choose another place for the file")
        raise DownloadError(f"{dest} could not be written: {error.strerror or error}", remedy=remedy) from error
