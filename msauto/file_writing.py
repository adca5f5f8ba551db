"""Writes files completely or not at all, and never through a link that was planted beside them."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path

from msauto.primitives.normal_form import normal_form


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
        self._part = part_beside(path)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        number = os.open(self._part, flags, 0o666 if mode is None else mode)
        self._file = os.fdopen(number, "wb")

    def write(self, pieces: Iterable[str | bytes]) -> None:
        """Add bytes, or texts in UTF-8."""
        self._file.writelines(map(_bytes, pieces))

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


def part_beside(path: Path) -> Path:
    """Return the path under which a file is written until it is complete."""
    return path.with_name(f".msauto-{secrets.token_hex(8)}.part")


def write_file(path: Path, pieces: Iterable[str | bytes], mode: int | None = None) -> None:
    """Write a whole file as a :class:`NewFile`."""
    file = NewFile(path, mode)
    try:
        file.write(pieces)
        file.keep()
    finally:
        file.drop()


def _bytes(piece: str | bytes) -> bytes:
    if isinstance(piece, str):
        return piece.encode("utf-8", "surrogateescape")
    return piece


# Names ---------------------------------------------------------------------------------------------------------

_LONGEST = 100
"""Bytes of one part of a path: some file systems take no more than 143, and names grow by endings."""

_FORBIDDEN = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]')
_DEVICES = re.compile(r"(?i)(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?")
_OURS = frozenset(
    {"group_vars", "host_vars", "roles", "vars", "inventory", "inventories", "ci", "workflows"}
)
"""Folders that msauto or CI reads."""


def is_device_name(part: str) -> bool:
    """Return whether Windows takes a part of a path for a device."""
    return _DEVICES.fullmatch(part) is not None


class FileNames:
    """Gives each thing (a database with folders, a channel) its file below one folder, none the file of another."""

    def __init__(self) -> None:
        self._taken: dict[str, tuple[str, ...]] = {}

    def path(self, parts: Sequence[str], ending: str = ".yml") -> Path:
        """Return the relative path for plain names from the outside in; ``ending`` is added to the last.

        Two paths that differ only in case, or in the composition of accents, would be one file on some file systems.
        So the second one gets a digest of its name.
        """
        exact = tuple(parts)
        safe = [safe_name(part) for part in parts]
        path = Path(*safe[:-1], safe[-1] + ending)
        if self._taken.setdefault(_folded(path), exact) != exact:
            path = path.with_name(f"{safe[-1]}~{_digest(*exact)}{ending}")
            self._taken[_folded(path)] = exact
        return path


def safe_name(name: str) -> str:
    """Return a name that every file system accepts; a changed name ends with a digest of the original.

    >>> safe_name("Raw"), safe_name("AC/DC")
    ('Raw', 'AC_DC~5a5abe39')
    """
    exact = normal_form(name)
    printable = "".join(sign if sign.isprintable() else "_" for sign in exact)
    safe = _FORBIDDEN.sub("_", printable).rstrip(". ").lstrip(" ")
    is_special = safe.startswith((".", "~", "-")) or is_device_name(safe)
    if not safe or is_special or safe.casefold() in _OURS:
        safe = f"_{safe}"
    shortened = safe.encode("utf-8", "replace")[:_LONGEST]
    safe = shortened.decode("utf-8", "ignore").rstrip(". ")
    if safe == exact:
        return safe
    return f"{safe}~{_digest(name)}"


def _folded(path: Path) -> str:
    return normal_form(str(path)).casefold()


def _digest(*names: str) -> str:
    return hashlib.sha256("\x00".join(names).encode("utf-8", "surrogatepass")).hexdigest()[:8]
