"""A file that is there whole, or not at all: a temporary file beside it, fsync, then an atomic rename."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from msauto.errors import DownloadError

_PIECE: Final = 2**20
_REMEDIES = {
    errno.ENOSPC: "free some space on that disk",
    errno.EDQUOT: "free some space: the quota is used up",
    errno.EACCES: "give this user the right to write there",
    errno.EPERM: "give this user the right to write there",
    errno.EROFS: "choose a place that can be written to",
    errno.ENOTDIR: "choose another path: a file stands where a folder is needed",
    errno.EISDIR: "choose another path: a folder stands where the file is to go",
}


async def save(chunks: AsyncIterator[bytes], dest: Path) -> int:
    """Write the chunks to ``dest`` and return how many bytes; raises :class:`DownloadError`.

    What ``chunks`` raises is passed on. In either case no half file is left, and an older ``dest`` stays as it was.
    """
    temporary = dest.with_name(f".{dest.name[:100]}.{secrets.token_hex(6)}.part")
    try:
        descriptor = await asyncio.to_thread(_create, temporary)
        try:
            size = await _write_all(descriptor, chunks, dest)
            await asyncio.to_thread(os.fsync, descriptor)
        finally:
            os.close(descriptor)
        await asyncio.to_thread(_rename, temporary, dest)
    except OSError as error:
        raise _failed(dest, error) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    return size


async def _write_all(descriptor: int, chunks: AsyncIterator[bytes], dest: Path) -> int:
    size = 0
    waiting = bytearray()
    async for chunk in chunks:
        waiting += chunk
        if len(waiting) >= _PIECE:
            size += await asyncio.to_thread(_write, descriptor, bytes(waiting), dest)
            waiting.clear()
    return size + await asyncio.to_thread(_write, descriptor, bytes(waiting), dest)


def _write(descriptor: int, data: bytes, dest: Path) -> int:
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    except OSError as error:
        raise _failed(dest, error) from error
    return len(data)


def _create(temporary: Path) -> int:
    temporary.parent.mkdir(parents=True, exist_ok=True)
    return os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o666)


def _rename(temporary: Path, dest: Path) -> None:
    temporary.replace(dest)
    with contextlib.suppress(OSError):  # not every system lets a folder be synced
        folder = os.open(dest.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _failed(dest: Path, error: OSError) -> DownloadError:
    remedy = _REMEDIES.get(error.errno or 0, "choose another place for the file")
    return DownloadError(f"{dest} could not be written: {error.strerror or error}", remedy=remedy)
