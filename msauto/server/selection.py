"""What of a listing was asked for: times on the server's clock, and entries told apart."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo

from msauto.model.live import Entry
from msauto.model.wanted import SelectRef


@dataclass(frozen=True, slots=True)
class Bounds:
    """Times without a zone, on the server's clock; both exclusive."""

    after: datetime | None = None
    before: datetime | None = None

    @property
    def asked(self) -> str | None:
        """The ``datetime`` parameter: whole seconds, rounded down, for the exact filter is on our side anyway."""
        if self.after is None:
            return None
        return (
            self.after.date().isoformat() if self.after.time() == time() else self.after.isoformat(timespec="seconds")
        )


def bounds_of(select: SelectRef, now: datetime, zone: str | None) -> Bounds:
    """Return the bounds of a select: ``created_after`` or ``now - created_within``, the later, and ``created_before``.

    ``zone`` is the server's IANA time zone; without one, the server is taken to be in the zone of this machine.
    """
    place = ZoneInfo(zone) if zone else None
    after = [_on_server(select.created_after, place)] if select.created_after is not None else []
    if select.created_within is not None:
        after.append(_on_server(now.astimezone(UTC) - select.created_within, place))
    before = _on_server(select.created_before, place) if select.created_before is not None else None
    return Bounds(max(after, default=None), before)


def within(entry: Entry, bounds: Bounds) -> bool:
    """Tell whether the entry was created after the one and before the other bound; unknown times pass.

    «only assets created after the value» (interface, «List assets and folders»).
    """
    created = _created(entry)
    if created is None:
        return True
    late_enough = bounds.after is None or created > bounds.after
    return late_enough and (bounds.before is None or created < bounds.before)


def unlike(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield each entry once: by its link id, or by folder and title where it has none."""
    seen: set[object] = set()
    for entry in entries:
        key: object = (
            (entry.folder, entry.title) if entry.link_id is None else (entry.link_id, entry.folder, entry.title)
        )
        if key not in seen:
            seen.add(key)
            yield entry


def same_text(one: str, other: str) -> bool:
    """Tell whether two texts are the same letter by letter, however their accents are composed."""
    return one == other or unicodedata.normalize("NFC", one) == unicodedata.normalize("NFC", other)


def _created(entry: Entry) -> datetime | None:
    try:
        return datetime.fromisoformat(entry.attributes["create_time"].strip()).replace(tzinfo=None)
    except (KeyError, ValueError):
        return None


def _on_server(moment: datetime | date, place: ZoneInfo | None) -> datetime:
    if not isinstance(moment, datetime):
        return datetime.combine(moment, time())
    if moment.tzinfo is None:
        return moment
    return moment.astimezone(place).replace(tzinfo=None)
