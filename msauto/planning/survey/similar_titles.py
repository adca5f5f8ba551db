"""Live titles that are similar to one that was not found, for the message of that error."""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Final

from msauto.errors import MsautoError
from msauto.model.desired import SelectRef
from msauto.model.ports import Reader

_MOST_TITLES: Final = 10
"""For how many titles of a run similar ones are looked for: more are hardly misspelled one by one."""
_SECONDS: Final = 10.0
"""How long an error may wait for the listing of a large database."""
_MOST_COMPARED: Final = 20_000
_SHOWN: Final = 3
_NOT_COMPARED: Final = re.compile(r"[\W_]+|(?<!\d)0+(?=\d)")
"""Signs between words, and zeros before a number."""


class SimilarTitles:
    """Looks for similar titles in a listing of the database, which is read once, and only after an error."""

    def __init__(self) -> None:
        self._left = _MOST_TITLES

    async def near(self, reader: Reader, database: str, title: str) -> tuple[str, ...]:
        """Return the live titles nearest to a title, best first; none if the listing cannot be read in time."""
        self._left -= 1
        if self._left < 0:
            return ()
        try:
            async with asyncio.timeout(_SECONDS):
                entries = await reader.read_select(SelectRef(database, recursive=True))
        except (MsautoError, TimeoutError):
            self._left = 0  # the next one would wait as long
            return ()
        return nearest_titles(title, (entry.title for entry in entries or ()))


def nearest_titles(title: str, titles: Iterable[str]) -> tuple[str, ...]:
    """Return up to three similar titles: those that differ in case, signs and zeros first.

    >>> nearest_titles("EP1", ["EP001", "EP002", "Film"])
    ('EP001',)
    """
    folded = _folded(title)
    found: dict[str, list[str]] = {}
    near = (each for each in titles if each != title and _may_be_similar(folded, _folded(each)))
    for each in islice(near, _MOST_COMPARED):
        found.setdefault(_folded(each), []).append(each)
    best = [folded] if folded in found else get_close_matches(folded, found, _SHOWN, 0.75)
    return tuple(dict.fromkeys(each for key in best for each in found[key]))[:_SHOWN]


def _folded(title: str) -> str:
    return _NOT_COMPARED.sub("", unicodedata.normalize("NFKC", title).casefold())


def _may_be_similar(one: str, other: str) -> bool:
    """Return whether a comparison is worth its time: similar length, and the same beginning or end."""
    if abs(len(one) - len(other)) > 2 + len(one) // 4:
        return False
    return one[:2] == other[:2] or one[-2:] == other[-2:]
