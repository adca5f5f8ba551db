r"""Equality, shared by the diff and the proof: what counts as the same is said once, here.

Texts are compared after Unicode NFC and line ends to ``\n``, numbers as numbers, positions in frames. Only the
attributes that a want names are compared; a want is a mapping of attributes to JSON values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from msauto.interface.vocabulary import track_named
from msauto.model.identity import plain as plain
from msauto.model.identity import same_folder as same_folder
from msauto.model.identity import same_text as same_text
from msauto.model.live import Entry, Folder, Marker, RssItem, Segment
from msauto.model.plan import Json

NUMBERS = frozenset({"layer", "first_frame", "last_frame", "icon_pos", "rating"})
"""Fields whose texts are numbers (interface, «Link» and «Resources and their fields»)."""

RUN_ASPECTS = frozenset({"command", "thumbnail", "proxy", "xmp_batch"})
"""What is run rather than compared: reading cannot show it."""

Want = Mapping[str, Json]


def same_value(name: str, one: str | None, other: str | None) -> bool:
    """Tell whether two values of a field are the same: as numbers where the field is one, else as texts."""
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
    """Tell whether two lists of values are the same, in order; a list of one empty text is empty.

    Blanks around a value do not count: answers are indented, and lists written with a blank after the separator.
    """
    return _values(one) == _values(other)


def _values(values: Sequence[str]) -> list[str]:
    texts = [plain(value).strip() for value in values]
    return [] if texts == [""] else texts


# Segments ------------------------------------------------------------------------------------------------------


def segment_matches(want: Want, segment: Segment, keywords: str | None = None) -> bool:
    """Tell whether a segment has every attribute that ``want`` names.

    ``keywords`` is what the ledger holds, for the server does not show them; unknown to both, they do not match.
    """
    for name, value in want.items():
        if name == "start" and value != segment.start:
            return False
        if name == "duration" and value != segment.duration:
            return False
        if name == "title" and not same_text(str(value), segment.title):
            return False
        if name == "keywords" and not _keywords_match(str(value), segment, keywords):
            return False
    return True


def _keywords_match(value: str, segment: Segment, remembered: str | None) -> bool:
    known = segment.keywords if segment.keywords is not None else remembered
    return known is not None and same_text(value, known)


def piece_matches(want: Want, segment: Segment) -> bool:
    """Tell whether a segment is one of CREATESEGMENTATION: its title is the wanted one, or begins with it."""
    title = want.get("title")
    fits = want["start"] == segment.start and want["duration"] == segment.duration
    return fits and (title is None or plain(segment.title).startswith(plain(str(title))))


# Markers -------------------------------------------------------------------------------------------------------


def track_of(marker: Marker) -> str:
    """Return the marker's track as the interface spells it; one that shows none is General.

    >>> track_of(Marker(1, 0, {"track": "cue point"}))
    'Cue Point'
    """
    return track_named(marker.track)


def marker_matches(want: Want, marker: Marker) -> bool:
    """Tell whether a marker has every attribute that ``want`` names; ``frame`` is as the server counts."""
    return not marker_misses(want, marker)


def marker_misses(want: Want, marker: Marker) -> tuple[str, ...]:
    """Return the names of the attributes in which a marker is not as wanted."""
    return tuple(name for name, value in want.items() if not _marker_has(marker, name, value))


def _marker_has(marker: Marker, name: str, value: Json) -> bool:
    if name == "uid":
        return True
    if name == "frame":
        return value == marker.frame
    if name == "track":
        return same_text(str(value), track_of(marker))
    if name == "rating" and not as_number(marker.fields.get("rating")):
        return not as_number(str(value)) and not (as_number(str(value)) is None and str(value).strip())
    return same_value(name, str(value), marker.fields.get(name))


# Links ---------------------------------------------------------------------------------------------------------


def entry_called(entries: Sequence[Entry], folder: Folder, title: str) -> Entry | None:
    """Return the entry of that title in that very folder."""
    for entry in entries:
        if same_text(entry.title, title) and same_folder(entry.folder, folder):
            return entry
    return None


# RSS items -----------------------------------------------------------------------------------------------------


def item_matches(want: Want, item: RssItem, remembered: Want | None = None) -> bool:
    """Tell whether an item of a channel says what is wanted.

    ``want`` holds ``text``, or ``item`` with named fields. What the channel does not show is compared with
    ``remembered``, the content that we last wrote; where that is unknown too, it does not match.
    """
    if "text" in want:
        return _text_matches(str(want["text"]), item)
    fields = want.get("item")
    earlier = remembered.get("item") if remembered else None
    earlier = earlier if isinstance(earlier, dict) else {}
    if not isinstance(fields, dict):
        return False
    return all(_item_has(item, name, str(value), earlier.get(name)) for name, value in fields.items())


def _text_matches(text: str, item: RssItem) -> bool:
    title, description = item.title or "", item.description or ""
    forms = {title, description, f"{title}\n{description}"}
    return plain(text).strip() in {plain(form).strip() for form in forms}


def _item_has(item: RssItem, name: str, value: str, earlier: Json) -> bool:
    shown = item_field(item, name)
    if shown is None:
        return not value if earlier is None else same_text(value, str(earlier))
    if name.lower() == "pubdate":
        return same_instant(value, shown)
    return plain(value).strip() == plain(shown).strip()


def item_field(item: RssItem, name: str) -> str | None:
    """Return a field of an item by the name that RSS gives it; ``None`` where the channel does not show it."""
    known = {"title": item.title, "description": item.description, "link": item.link, "pubDate": item.pub_date}
    return known[name] if name in known else item.extra.get(name)


def same_instant(one: str, other: str) -> bool:
    """Tell whether two times, ISO 8601 or RFC 2822, are the same instant; as texts where one is no time."""
    times = instant(one), instant(other)
    if times[0] is None or times[1] is None:
        return same_text(one.strip(), other.strip())
    return times[0] == times[1]


def instant(text: str) -> datetime | None:
    """Read a time, ISO 8601 or RFC 2822; one without a zone is taken as UTC, ``None`` if it is no time."""
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            time = read(text.strip())
        except (ValueError, TypeError, IndexError):
            continue
        return time if time.tzinfo else time.replace(tzinfo=UTC)
    return None
