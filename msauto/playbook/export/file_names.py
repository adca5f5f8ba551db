"""Names of exported files: safe on every file system, and the same for the same thing each time."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

_LONGEST = 100
"""Bytes of one part of a path: some file systems take no more than 143, and names grow by endings."""

_FORBIDDEN = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]')
_DEVICES = re.compile(r"(?i)(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?")
_OURS = frozenset({"group_vars", "host_vars"})


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
    safe = "".join(sign if sign.isprintable() else "_" for sign in unicodedata.normalize("NFC", name))
    safe = _FORBIDDEN.sub("_", safe).rstrip(". ").lstrip(" ")
    if not safe or safe[0] in ".~-" or _DEVICES.fullmatch(safe) or safe.casefold() in _OURS:
        safe = f"_{safe}"
    safe = safe.encode("utf-8", "replace")[:_LONGEST].decode("utf-8", "ignore").rstrip(". ")
    return safe if safe == unicodedata.normalize("NFC", name) else f"{safe}~{_digest(name)}"


def _folded(path: Path) -> str:
    return unicodedata.normalize("NFC", str(path)).casefold()


def _digest(*names: str) -> str:
    return hashlib.sha256("\x00".join(names).encode("utf-8", "surrogatepass")).hexdigest()[:8]
