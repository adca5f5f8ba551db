r"""Equality, shared by planning and verification: the only place that decides what counts as the same.

Texts are compared after Unicode NFC and line ends to ``\n``, numbers as numbers, positions in frames. Only the
attributes that are named are compared: a mapping of names to JSON values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msauto.model.fields import NUMBERS, track_named
from msauto.model.identity import plain, same_folder, same_text
from msauto.model.live import Entry, Folder, Marker
from msauto.model.snapshot import Json
from msauto.primitives.decimals import read_whole

Attributes = Mapping[str, Json]
Item = dict[str, Json]
"""An item of a list by its attributes."""
Items = Mapping[str, Item]
"""Items by their keys."""


def mapping(value: Json) -> Attributes:
    """Return a JSON object as a mapping; anything else has no attributes."""
    return value if isinstance(value, dict) else {}


def texts(value: Json) -> tuple[str, ...]:
    """Return a JSON list as texts."""
    return tuple(map(str, value)) if isinstance(value, list) else ()


def text_of(value: Json) -> str:
    """Return a JSON value as text; ``None`` is empty."""
    return "" if value is None else str(value)


def same_value(name: str, one: str | None, other: str | None) -> bool:
    """Return whether two values of a field are the same: as numbers where the field is one, else as texts."""
    if name in NUMBERS:
        numbers = read_whole(one), read_whole(other)
        if None not in numbers:
            return numbers[0] == numbers[1]
    return same_text(one, other)


def same_list(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether two lists of values are the same, in order; a list of one empty text is empty.

    Blanks around a value do not count: answers are indented, and lists written with a blank after the separator.
    """
    return _values(one) == _values(other)


def _values(values: Sequence[str]) -> list[str]:
    texts = [plain(value).strip() for value in values]
    return [] if texts == [""] else texts


# Markers -------------------------------------------------------------------------------------------------------


def track_of(marker: Marker) -> str:
    """Return the marker's track as the interface spells it; one that shows none is General.

    >>> track_of(Marker(1, 0, {"track": "cue point"}))
    'Cue Point'
    """
    return track_named(marker.track)


# Links ---------------------------------------------------------------------------------------------------------


def entries_called(entries: Sequence[Entry], folder: Folder, title: str) -> list[Entry]:
    """Return the entries of exactly that title in that folder, else those whose title is equal after NFC."""
    alike = [
        entry
        for entry in entries
        if same_text(entry.title, title) and same_folder(entry.folder, folder)
    ]
    return [entry for entry in alike if entry.title == title] or alike


def entry_called(entries: Sequence[Entry], folder: Folder, title: str) -> Entry | None:
    """Return the first entry of that title in that folder."""
    return next(iter(entries_called(entries, folder, title)), None)
