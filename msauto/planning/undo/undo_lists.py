"""What takes the changes of an asset's lists back: segments, markers, links. Frames count from the file's first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec import structs

from msauto.diffing.builder import left_alone
from msauto.diffing.comparison import Want, marker_matches, piece_matches, segment_matches
from msauto.diffing.positions import in_point
from msauto.interface.dialect import Dialect
from msauto.model.desired import ABSENT, Absent, DesiredLink, DesiredMarker, DesiredSegment, Position
from msauto.model.live import Asset, Link, Marker, Segment, parse_folder
from msauto.model.plan import Json
from msauto.model.timecode import Timecode
from msauto.planning.survey.deletion import why_ambiguous
from msauto.verification.expectations import mapping, show_marker, show_segment

if TYPE_CHECKING:
    from msauto.planning.undo.undo import AppliedChange

_PLACE = frozenset({"uid", "frame", "pos", "track", "command"})


def _position(frames: Json) -> Position:
    return Position(Timecode.parse(str(frames)))


# Links ---------------------------------------------------------------------------------------------------------


def undo_links(made: Sequence[AppliedChange], live: Sequence[Link], notes: list[str]) -> Iterator[DesiredLink]:
    """Yield the links as they were, but for those whose title leads to more than one; ``notes`` tell of these."""
    for one in made:
        *folder, title = parse_folder(one.change.key)
        why = why_ambiguous(title, live) if one.change.action == "add" else None
        if why is not None:
            notes.append(f"link {one.change.key} cannot be undone: {why}")
            continue
        fields = mapping(one.change.before) if one.change.action == "change" else {}
        was = {name: "" if value is None else str(value) for name, value in fields.items()}
        yield DesiredLink(tuple(folder), title, present=one.change.action != "add", fields=was)


# Segments ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _SegmentNumbers:
    """What a run did to segments, by number: what was there, what it wrote, which numbers it may have left empty."""

    before: dict[int, Want] = field(default_factory=dict)
    after: dict[int, Want] = field(default_factory=dict)
    emptied: set[int] = field(default_factory=set)
    unknown_keywords: set[int] = field(default_factory=set)
    pieces: list[Want] = field(default_factory=list)

    def add(self, one: AppliedChange, origin: int) -> None:
        if one.change.aspect == "segmentation":
            self._add_grid(one, origin)
            return
        number = int(one.change.key)
        if one.change.before is not None:
            self.before[number] = mapping(one.change.before)
        if one.change.after is not None:
            self.after[number] = mapping(one.change.after)
        if one.change.after is None or not one.whole:
            self.emptied.add(number)
        if one.change.basis == "none":
            self.unknown_keywords.add(number)

    def _add_grid(self, one: AppliedChange, origin: int) -> None:
        for shown in map(mapping, one.change.before if isinstance(one.change.before, list) else ()):
            number = int(str(shown["number"]))
            self.before[number] = shown
            self.emptied.add(number)
        for want in (mapping(expect.desired) for expect in one.expects if expect.aspect == "segmentation"):
            for piece in map(mapping, want["pieces"] if isinstance(want["pieces"], list) else ()):
                start = int(str(piece["start"])) + origin
                self.pieces.append({"start": start, "duration": piece["duration"], "title": want.get("title")})

    def is_ours(self, segment: Segment) -> bool:
        """Tell whether a live segment is as the run left it; of one that the run made, nothing may have been added."""
        after = self.after.get(segment.number)
        if after is not None and segment.number not in self.before:
            after = {"title": "", "keywords": "", **after}
        return _same(after, segment) or any(piece_matches(p, segment) for p in self.pieces)


def undo_segments(
    made: Sequence[AppliedChange], asset: Asset, dialect: Dialect, notes: list[str]
) -> Iterator[DesiredSegment]:
    """Yield the segments as they were, of those that are still as the run left them; ``notes`` tell of the others."""
    origin = in_point(asset, dialect)
    live = {segment.number: structs.replace(segment, start=segment.start + origin) for segment in asset.segments}
    did = _SegmentNumbers()
    for one in made:
        did.add(one, origin)
    ours = {number for number, segment in live.items() if did.is_ours(segment)}
    for number in sorted({*did.before, *did.after, *ours}):
        segment, before = live.get(number), did.before.get(number)
        if segment is None and before is None:
            continue
        if segment is None and number in did.after and number not in did.emptied:
            notes.append(f"segment {number} is left alone: it is gone by now")
        elif segment is not None and number not in ours and not _same(before, segment):
            notes.append(left_alone(f"segment {number}", show_segment(segment), dict(did.after.get(number, {}))))
        else:
            yield _segment(number, before, did)


def _same(want: Want | None, segment: Segment) -> bool:
    """Tell whether a live segment is as shown; keywords that the server hides are the planner's concern."""
    if want is None:
        return False
    shown = {name: value for name, value in want.items() if name != "keywords" or segment.keywords is not None}
    return segment_matches(shown, segment)


def _segment(number: int, before: Want | None, did: _SegmentNumbers) -> DesiredSegment:
    if before is None:
        return DesiredSegment(number, present=False)
    keywords: str | Absent = str(before.get("keywords") or "")
    if not keywords and ("keywords" not in did.after.get(number, {}) or number in did.unknown_keywords):
        keywords = ABSENT
    return DesiredSegment(
        number, _position(before["start"]), _position(before["duration"]), str(before.get("title") or ""), keywords
    )


# Markers -------------------------------------------------------------------------------------------------------


def undo_markers(
    made: Sequence[AppliedChange], asset: Asset, dialect: Dialect, learned: Mapping[str, Json], notes: list[str]
) -> list[DesiredMarker]:
    """Return the markers as they were, of those that are still as the run left them; ``notes`` tell of the others."""
    origin = in_point(asset, dialect)
    live = {marker.uid: structs.replace(marker, frame=marker.frame + origin) for marker in asset.markers}
    past = _MarkerUndo(live, learned, notes)
    order = {"change": 0, "add": 1, "delete": 2}
    deleted = frozenset(_uid(one) for one in made if one.change.action == "delete")
    wants = [past.undo(one, deleted) for one in sorted(made, key=lambda one: order[one.change.action])]
    return [want for want in wants if want is not None]


def _uid(one: AppliedChange) -> int:
    return int(str(mapping(one.change.before).get("uid", -1)))


@dataclass(slots=True)
class _MarkerUndo:
    """Live markers, of which each is taken for one of the run's at most."""

    live: dict[int, Marker]
    learned: Mapping[str, Json]
    notes: list[str]
    anew: int = 0

    def undo(self, one: AppliedChange, deleted: frozenset[int]) -> DesiredMarker | None:
        if one.change.action == "add":
            return self._added(one)
        return self._changed(one) if one.change.action == "change" else self._deleted(one, deleted)

    def _added(self, one: AppliedChange) -> DesiredMarker | None:
        after = mapping(one.change.after)
        uid = self.learned.get(f"marker:{one.change.key}")
        marker = self._take(uid) if isinstance(uid, int) else self._find(after, _there_before(one))
        if marker is None:
            return None  # it is gone already
        added = any(marker.fields.get(name) and name not in after for name in ("title", "comment", "keywords"))
        if marker_matches(after, marker) and not added:
            return DesiredMarker(uid=marker.uid, present=False)
        self._leave(marker, after)
        return None

    def _changed(self, one: AppliedChange) -> DesiredMarker | None:
        before, after = mapping(one.change.before), mapping(one.change.after)
        marker = self._take(_uid(one))
        if marker is None:
            self.notes.append(f"marker uid {_uid(one)} is left alone: it is gone by now")
        elif marker_matches(after, marker):
            return DesiredMarker(marker.uid, _position(before["frame"]), str(before["track"]), _fields(before))
        elif not marker_matches(before, marker):
            self._leave(marker, after)
        return None

    def _deleted(self, one: AppliedChange, deleted: frozenset[int]) -> DesiredMarker | None:
        before = mapping(one.change.before)
        if self._find(before, _there_before(one) - deleted) is not None:
            return None  # it is back already, or was never deleted
        self.anew += 1
        at, track = _position(before["frame"]), str(before["track"])
        return DesiredMarker(at=at, track=track, fields=_fields(before), anew=self.anew)

    def _take(self, uid: int) -> Marker | None:
        return self.live.pop(uid, None)

    def _find(self, want: Want, strangers: frozenset[int]) -> Marker | None:
        """Return a marker that says just that, and was not there when the run was planned."""
        found = (uid for uid, marker in self.live.items() if uid not in strangers and marker_matches(want, marker))
        uid = next(found, None)
        return None if uid is None else self._take(uid)

    def _leave(self, marker: Marker, wrote: Want) -> None:
        self.notes.append(left_alone(f"marker uid {marker.uid}", show_marker(marker), dict(wrote)))


def _there_before(one: AppliedChange) -> frozenset[int]:
    return frozenset(uid for expect in one.expects for uid in expect.not_uids)


def _fields(shown: Want) -> dict[str, str]:
    return {name: str(value) for name, value in shown.items() if name not in _PLACE}
