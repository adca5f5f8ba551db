"""Writes files completely or not at all, and never through a link that was planted beside them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path


class NewFile:
    """A file that takes the place of ``path`` once it is complete (:meth:`keep`).

    It has a random name in the same folder and is created exclusively, so that no link there can lead elsewhere.
    ``mode`` is its permissions, else those of the umask. What is not a regular file, such as a pipe, is written as it
    is: there is nothing to replace. Everything raises ``OSError``.
    """

    def __init__(self, path: Path, mode: int | None = None) -> None:
        self._path = path
        self._mode = mode
        self._part: Path | None = None
        if path.exists() and not path.is_file():
            self._file = path.open("wb")
            return
        self._part = path.with_name(f".msauto-{secrets.token_hex(8)}.part")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        number = os.open(self._part, flags, 0o666 if mode is None else mode)
        self._file = os.fdopen(number, "wb")

    def write(self, pieces: Iterable[str | bytes]) -> None:
        """Add bytes, or texts in UTF-8."""
        self._file.writelines(_bytes(each) for each in pieces)

    def keep(self) -> None:
        """Move the complete file into its place."""
        self._file.flush()
        if self._part is None:
            self._file.close()
            return
        os.fsync(self._file.fileno())
        self._file.close()
        if self._mode is not None:
            self._part.chmod(self._mode)
        self._part.replace(self._path)

    def drop(self) -> None:
        """Remove what was written; after :meth:`keep`, this does nothing."""
        self._file.close()
        if self._part is not None:
            self._part.unlink(missing_ok=True)


def write_file(path: Path, pieces: Iterable[str | bytes], mode: int | None = None) -> None:
    """Write a whole file as a :class:`NewFile`."""
    file = NewFile(path, mode)
    try:
        file.write(pieces)
        file.keep()
    finally:
        file.drop()


def _bytes(piece: str | bytes) -> bytes:
    return piece.encode("utf-8", "surrogateescape") if isinstance(piece, str) else piece
