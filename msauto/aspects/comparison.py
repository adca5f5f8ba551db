r"""Equality, shared by planning and verification: the only place that decides what counts as the same.

Texts are compared after Unicode NFC and line ends to ``\n``, numbers as numbers, positions in frames. Only the
attributes that are named are compared: a mapping of names to JSON values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from msauto.model.fields import NUMBERS, track_named
from msauto.model.identity import plain, same_folder, same_text
from msauto.model.live import Entry, Folder, Marker, RssItem
from msauto.model.plan import Json

Attributes = Mapping[str, Json]


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
        numbers = as_number(one), as_number(other)
        if None not in numbers:
            return numbers[0] == numbers[1]
    return same_text(one, other)


def as_number(text: str | None) -> int | None:
    """Read an integer, however it is padded; ``None`` for anything else."""
    try:
        return int((text or "").strip())
    except ValueError:
        return None


def same_list(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether two lists of values are the same, in order; a list of one empty text is empty.

    Blanks around a value do not count: answers are indented, and lists written with a blank after the separator.
    """
    return _values(one) == _values(other)


def _values(values: Sequence[str]) -> list[str]:
    texts = [plain(value).strip() for value in values]
    return [] if texts == [""] else texts


def same_shown(one: Attributes, other: Attributes) -> bool:
    """Return whether two readings of an item show the same, attribute by attribute."""
    return {n: plain(str(v)) for n, v in one.items()} == {n: plain(str(v)) for n, v in other.items()}


def is_as_left(shown: Attributes, left: Attributes, *, as_written: bool) -> bool:
    """Return whether undo finds an item as verification read it after the write; if it read none, as it was written.

    In the second case nothing may be there that the run did not write, because it is not known whose that is.
    """
    return same_shown(left, shown) if left else as_written


# Markers -------------------------------------------------------------------------------------------------------


def track_of(marker: Marker) -> str:
    """Return the marker's track as the interface spells it; one that shows none is General.

    >>> track_of(Marker(1, 0, {"track": "cue point"}))
    'Cue Point'
    """
    return track_named(marker.track)


def marker_matches(desired: Attributes, marker: Marker) -> bool:
    """Return whether a marker has every attribute that ``desired`` names; ``frame`` is as the server counts."""
    return all(_marker_has(marker, name, value) for name, value in desired.items())


def marker_misses(desired: Attributes, marker: Marker) -> tuple[str, ...]:
    """Return the names of the attributes in which a marker is not as desired."""
    return tuple(name for name, value in desired.items() if not _marker_has(marker, name, value))


def _marker_has(marker: Marker, name: str, value: Json) -> bool:
    if name == "uid":
        return True
    if name == "frame":
        return value == marker.frame
    if name == "track":
        return same_text(str(value), track_of(marker))
    if name in NUMBERS and not as_number(marker.fields.get(name)):
        return not as_number(str(value)) and not (as_number(str(value)) is None and str(value).strip())
    return same_value(name, str(value), marker.fields.get(name))


# Links ---------------------------------------------------------------------------------------------------------


def entry_called(entries: Sequence[Entry], folder: Folder, title: str) -> Entry | None:
    """Return the entry of that title in that folder: of exactly that one, else of one that is equal after NFC."""
    found = [entry for entry in entries if same_text(entry.title, title) and same_folder(entry.folder, folder)]
    return next((entry for entry in found if entry.title == title), next(iter(found), None))


# RSS items -----------------------------------------------------------------------------------------------------


def item_matches(desired: Attributes, item: RssItem, remembered: Attributes | None = None) -> bool:
    """Return whether an item of a channel has the desired content.

    ``desired`` holds ``text``, or ``item`` with named fields. What the channel does not show is compared with
    ``remembered``, the content that we last wrote; where that is unknown too, it does not match.
    """
    if "text" in desired:
        title, description = item.title or "", item.description or ""
        forms = {title, description, f"{title}\n{description}"}
        return plain(str(desired["text"])).strip() in {plain(form).strip() for form in forms}
    fields, earlier = desired.get("item"), mapping((remembered or {}).get("item"))
    return isinstance(fields, dict) and all(
        _item_has(item, name, str(value), earlier.get(name)) for name, value in fields.items()
    )


def _item_has(item: RssItem, name: str, value: str, earlier: Json) -> bool:
    shown = item_field(item, name)
    if shown is None:
        return not value if earlier is None else same_text(value, str(earlier))
    if name.lower() == "pubdate":
        times = instant(value), instant(shown)
        return times[0] == times[1] if None not in times else same_text(value.strip(), shown.strip())
    return plain(value).strip() == plain(shown).strip()


def item_field(item: RssItem, name: str) -> str | None:
    """Return a field of an item by the name that RSS gives it; ``None`` where the channel does not show it."""
    known = {"title": item.title, "description": item.description, "link": item.link, "pubDate": item.pub_date}
    return known[name] if name in known else item.extra.get(name)


def instant(text: str) -> datetime | None:
    """Read a time, ISO 8601 or RFC 2822; one without a zone is taken as UTC, ``None`` if it is not a time."""
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            time = read(text.strip())
        except (ValueError, TypeError, IndexError):
            continue
        return time if time.tzinfo else time.replace(tzinfo=UTC)
    return None
