"""Selecting the entries of a listing: bounds in the server's time, and duplicates."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import overload
from zoneinfo import ZoneInfo

from msauto.concurrency import in_turns
from msauto.model.desired import SelectRef
from msauto.model.live import Entry


@dataclass(frozen=True, slots=True)
class Bounds:
    """Times without a zone, on the server's clock; both exclusive."""

    after: datetime | None = None
    before: datetime | None = None

    @property
    def asked(self) -> str | None:
        """The ``datetime`` parameter: whole seconds, rounded down, because msauto filters exactly afterwards."""
        if self.after is None:
            return None
        return (
            self.after.date().isoformat() if self.after.time() == time() else self.after.isoformat(timespec="seconds")
        )


def bounds_of(select: SelectRef, now: datetime, zone: str | None) -> Bounds:
    """Return the bounds of a select: ``created_after`` or ``now - created_within``, the later, and ``created_before``.

    ``zone`` is the server's IANA time zone; without one, the zone of this machine is used.
    """
    place = ZoneInfo(zone) if zone else None
    after = [_on_server(select.created_after, place)] if select.created_after is not None else []
    if select.created_within is not None:
        after.append(_on_server(now.astimezone(UTC) - select.created_within, place))
    before = _on_server(select.created_before, place) if select.created_before is not None else None
    return Bounds(max(after, default=None), before)


def within(entry: Entry, bounds: Bounds) -> bool:
    """Return whether the entry was created within the bounds; an unknown time passes.

    «only assets created after the value» (interface, «List assets and folders»).
    """
    created = _created(entry)
    if created is None:
        return True
    late_enough = bounds.after is None or created > bounds.after
    return late_enough and (bounds.before is None or created < bounds.before)


class Selected(Sequence[Entry]):
    """Some entries of a listing, by their numbers. Each of up to 300,000 is created when it is accessed."""

    __slots__ = ("_entries", "_numbers")

    def __init__(self, entries: Sequence[Entry], numbers: Iterable[int]) -> None:
        self._entries = entries
        self._numbers = array("L", numbers)

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | Sequence[Entry]:
        if isinstance(index, slice):
            return Selected(self._entries, self._numbers[index])
        return self._entries[self._numbers[index]]

    def __iter__(self) -> Iterator[Entry]:
        return map(self._entries.__getitem__, self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


async def pick(entries: Sequence[Entry], holds: Callable[[Entry], bool]) -> Selected:
    """Return the entries for which ``holds`` is true, each once: by its link id, or by folder and title without one."""
    seen: set[object] = set()
    numbers = array("L")
    async for number, entry in in_turns(enumerate(entries)):
        if not holds(entry):
            continue
        key: object = (
            (entry.folder, entry.title) if entry.link_id is None else (entry.link_id, entry.folder, entry.title)
        )
        if key not in seen:
            seen.add(key)
            numbers.append(number)
    return Selected(entries, numbers)


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
