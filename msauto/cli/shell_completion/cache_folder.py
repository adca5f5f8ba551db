"""What completion remembers: files in the user's cache folder, which may be deleted at any time."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from msauto.file_writing import write_file

_MOST_TITLES: Final = 100_000


def cache_folder() -> Path:
    """Return ``$XDG_CACHE_HOME/msauto``, or ``~/.cache/msauto``."""
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "msauto"


def keep(name: str, text: str) -> None:
    """Write a file of the cache, completely or not at all; that it cannot be written is not an error."""
    with suppress(OSError, RuntimeError):  # without a home folder
        path = cache_folder() / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_file(path, [text], 0o600)  # readable by the owner only


def read(name: str) -> str:
    """Return the text of a file of the cache; empty if it does not exist."""
    with suppress(OSError, RuntimeError):
        return (cache_folder() / name).read_text(encoding="utf-8", errors="surrogateescape")
    return ""


def keep_titles(url: str, database: str, titles: Iterable[str]) -> None:
    """Remember the titles of a database."""
    lines = [f"{title}\n" for title, _ in zip(titles, range(_MOST_TITLES), strict=False) if title.isprintable()]
    name = hashlib.sha256(f"{url}\0{database}".encode()).hexdigest()[:16]
    keep(f"titles/{name}", "".join(lines))


def read_titles() -> Iterator[str]:
    """Yield the titles of all databases."""
    with suppress(OSError, RuntimeError):
        for path in sorted((cache_folder() / "titles").iterdir()):
            yield from read(f"titles/{path.name}").splitlines()
