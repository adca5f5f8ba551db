"""Saving an answer as a file: in a temporary file, whose length is checked, then renamed.

A file appears under its name only when it is complete. How it works for users: ``docs/how-to/restore-and-download.md``.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from msauto.errors import DownloadError, InDoubtError
from msauto.file_access import open_regular, why_not_in_place
from msauto.file_writing import NewFile
from msauto.model.ports import DownloadObserver
from msauto.server.media import HEAD, why_not_media
from msauto.server.xml import unreadable

_PIECE: Final = 2**20
# Seconds: a download writes each megabyte, so an older temporary file is of a killed run.
_ABANDONED: Final = 24 * 3600
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
    read: Callable[[], Awaitable[bytes]],
    dest: Path,
    total: int | None,
    watch: DownloadObserver | None,
    planned: Path | None = None,
) -> FetchResult:
    """Save what ``read`` returns until it returns nothing; ``dest`` stays as it is unless all of it arrives.

    ``total`` is the length that the server announces. ``planned`` is the path of a plan: its ending decides how the
    file must begin, and no folder on the way of ``dest`` may have become a link. Raises ``InDoubtError`` for another
    length, ``UnreadableError`` for an empty file, and ``DownloadError``.
    """
    size = 0
    digest = hashlib.sha256()
    waiting = bytearray()
    head = bytearray()
    with _download_errors(dest):
        _check_place(dest, planned)
        file = await asyncio.to_thread(_new_file, dest)
    try:
        while chunk := await read():
            waiting += chunk
            digest.update(chunk)
            head += chunk[: HEAD - len(head)]
            size += len(chunk)
            if watch is not None:
                watch.received(size, total)
            if len(waiting) >= _PIECE:
                await _write(file, dest, bytes(waiting))
                waiting.clear()
        if total is not None and size != total:
            raise InDoubtError(
                f"the download was interrupted: {size} of {total} bytes arrived",
                remedy="check the server's log and the network",
            )
        if not size:
            raise unreadable("the answer is an empty file", "check the server: it created no media")
        _check_content(dest, planned, bytes(head))
        await _write(file, dest, bytes(waiting))
        with _download_errors(dest):
            _check_place(dest, planned)
            await asyncio.to_thread(file.keep)
    finally:
        with suppress(OSError):
            file.drop()
    return FetchResult(size, digest.hexdigest())


async def hash_file(path: str) -> str | None:
    """Return the SHA-256 of a file in hex; ``None`` for a missing file, empty for what cannot be read."""

    def read() -> str | None:
        try:
            with open_regular(Path(path)) as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return "" if os.path.lexists(path) else None

    return await asyncio.to_thread(read)


def _check_place(dest: Path, planned: Path | None) -> None:
    if dest != planned:
        return
    why = why_not_in_place(dest)
    if why:
        raise DownloadError(
            f"{dest} is not written: {why}", remedy="remove the link, or name its folder in `dest`"
        )


def _check_content(dest: Path, planned: Path | None, head: bytes) -> None:
    if planned is None:
        return
    why = why_not_media(planned.suffix, head)
    if why:
        raise DownloadError(
            f"{dest} is not written: {why}",
            remedy="let `dest` end as the server's format: see `profile`, and its log",
        )


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
        raise DownloadError(
            f"{dest} could not be written: {error.strerror or error}", remedy=remedy
        ) from error
