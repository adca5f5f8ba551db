"""Markers: the uid is the identity; without one, the live marker of the same track and position.

A new marker takes over one that ``exactly`` would remove, or goes back to where the ledger knows that we made it:
one request instead of two. What is moved otherwise keeps its uid and nothing else is touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from sys import intern
from typing import Any

from msgspec import Struct, structs

from msauto.diffing.aspect_definition import AppliedChange, Aspect, Item, Parameters, UndoContext, texts_match
from msauto.diffing.assignment import pair
from msauto.diffing.comparison import Attributes, mapping, marker_matches, marker_misses, same_value, track_of
from msauto.diffing.plan_builder import Phase, PlanContext, left_alone, refuse
from msauto.diffing.positions import in_point, position_at, to_frames, to_point, to_wire
from msauto.interface import requests, versions
from msauto.interface.fields import DEFAULT_TRACK, MARKER_ATTRIBUTES, names
from msauto.model.desired import ABSENT, Absent, CompleteLists, DesiredAsset, DesiredMarker, Sourced, TaskSource
from msauto.model.identity import same_text
from msauto.model.live import Marker
from msauto.model.plan import Change, Expectation, Json
from msauto.model.ports import LiveTarget

_RESERVED = frozenset({"command", "uid", "frame", "pos", "track"})
_SIGNS_OF_OTHERS = tuple(name for name in names(MARKER_ATTRIBUTES, "text") if name != "user")
"""Attributes that show that a marker of a run was changed later. ``user`` is not one: a server may set it itself."""


class _MarkerInFrames(Struct, frozen=True, eq=False):
    """A desired marker; ``frame`` counts from the first frame of the file, ``None`` is not named."""

    uid: int | None
    frame: int | None
    track: str | None
    fields: Mapping[str, str]
    source: TaskSource
    anew: bool = False

    @property
    def key(self) -> str:
        return intern(f"uid {self.uid}" if self.uid is not None else f"{self.track}@{self.frame}")

    @property
    def named(self) -> dict[str, Json]:
        """What is named, as the plan shows it and as it is compared with a live marker in frames of the file."""
        place: dict[str, Json] = {"frame": self.frame, "track": self.track}
        named: dict[str, Json] = {name: value for name, value in place.items() if value is not None}
        return named | dict(self.fields)

    def at(self, marker: Marker) -> bool:
        """Return whether a live marker is at the desired track and position."""
        return self.frame == marker.frame and same_text(self.track, track_of(marker))


def plan_markers(context: PlanContext, desired: DesiredAsset) -> None:
    """Make the markers as desired; with ``exactly`` nothing else stays (in its tracks)."""
    exactly = desired.exactly
    if not desired.markers and not exactly.markers:
        return
    context.builder.look("markers")
    origin = in_point(context.asset, context.server.dialect)
    live = {m.uid: structs.replace(m, frame=m.frame + origin) for m in context.asset.markers}
    present = [_resolve(context, sourced) for sourced in desired.markers if sourced.value.present]
    absent = [_resolve(context, sourced) for sourced in desired.markers if not sourced.value.present]
    for item in present:
        if item.uid is not None and item.uid not in live:
            known = ", ".join(map(str, live)) or "none"
            raise refuse(
                f"the asset has no marker of uid {item.uid} (it has: {known})",
                item.source,
                "leave the uid out to make a new marker: the server gives it its uid",
            )
    present = _merge_positions(present, live)
    matched = _match(present, absent, live)
    claimed = {marker.uid for _, marker in matched}
    gone = _gone(absent, present, live, claimed)
    surplus = [
        m for uid, m in live.items() if exactly.markers and uid not in claimed | gone.keys() and _covers(exactly, m)
    ]
    there = {id(item) for item, _ in matched}
    new = [item for item in present if id(item) not in there]
    moved = _take_over(context, new, surplus, {u: m for u, m in live.items() if u not in claimed | gone.keys()})
    taken = {marker.uid for _, marker in moved}
    left = {m.uid: exactly.markers for m in surplus if m.uid not in taken and exactly.markers}
    _delete(context, live, gone)
    _delete(context, live, left, exactly=True)
    for item, marker in matched:
        if marker_misses(item.named, marker):
            _rewrite(context, item, marker, item.fields, origin, key=f"uid {marker.uid}")
    for item, marker in moved:
        _move(context, item, marker, origin)
    moving = {id(item) for item, _ in moved}
    staying = tuple(uid for uid in live if uid not in gone and uid not in left)
    for item in (item for item in new if id(item) not in moving):
        _create(context, item, origin, staying)
    covered = [m for m in live.values() if _covers(exactly, m)]
    if left and len(left) == len(covered) and not any(exactly.tracks is None or p.track in exactly.tracks for p in new):
        context.builder.emptied.append(("marker", len(covered)))


def _resolve(context: PlanContext, sourced: Sourced[DesiredMarker]) -> _MarkerInFrames:
    value = sourced.value
    uid = None if value.uid is ABSENT else value.uid
    if uid is None and value.at is ABSENT:
        raise refuse("a marker needs its position or its uid", sourced.source, "name `at` or `uid`")
    # A marker to be removed may be beyond the end of a clip that became shorter.
    find = to_point if value.present else to_frames
    frame = None if value.at is ABSENT else find(value.at, context.asset, sourced.source)
    track = (None if value.track is ABSENT else value.track) or (DEFAULT_TRACK if uid is None else None)
    return _MarkerInFrames(uid, frame, track, value.fields, sourced.source, value.anew > 0)


def _covers(exactly: CompleteLists, marker: Marker) -> bool:
    return exactly.tracks is None or track_of(marker) in exactly.tracks


# Identity ------------------------------------------------------------------------------------------------------


def _merge_positions(present: Sequence[_MarkerInFrames], live: Mapping[int, Marker]) -> list[_MarkerInFrames]:
    """Merge what tasks name by uid with what they name by the place where that marker will be."""
    united = [item for item in present if item.uid is not None]
    for item in (item for item in present if item.uid is None):
        same = [i for i, other in enumerate(united) if other.uid is not None and item.at(_final(other, live))]
        if same and not item.anew:
            united[same[0]] = _merge_markers(united[same[0]], item)
        else:
            united.append(item)
    return united


def _final(item: _MarkerInFrames, live: Mapping[int, Marker]) -> Marker:
    """Return where a desired marker will be."""
    if item.uid is None:
        return Marker(0, item.frame or 0, {"track": item.track or DEFAULT_TRACK})
    marker = live[item.uid]
    frame = marker.frame if item.frame is None else item.frame
    return Marker(marker.uid, frame, {"track": item.track or track_of(marker)})


def _merge_markers(one: _MarkerInFrames, other: _MarkerInFrames) -> _MarkerInFrames:
    for name, value in other.fields.items():
        if name in one.fields and not same_value(name, one.fields[name], value):
            raise refuse(
                f"{one.key} and {other.key} are one marker: two tasks want different values for its {name}: "
                f"{one.fields[name]!r} ({one.source.place}) and {value!r} ({other.source.place})",
                other.source,
                "use one value in both",
            )
    return structs.replace(one, fields={**one.fields, **other.fields})


def _match(
    present: Sequence[_MarkerInFrames], absent: Sequence[_MarkerInFrames], live: Mapping[int, Marker]
) -> list[tuple[_MarkerInFrames, Marker]]:
    """Pair each desired marker with its live one; of several at one place, with the one that needs no change."""
    matched = [(item, live[item.uid]) for item in present if item.uid is not None]
    going = {item.uid for item in absent}
    claimed = {marker.uid for _, marker in matched} | {uid for uid in live if uid in going}
    for item in (item for item in present if item.uid is None and not item.anew):
        there = [marker for uid, marker in live.items() if uid not in claimed and item.at(marker)]
        if there:
            best = min(there, key=lambda marker: (len(marker_misses(item.named, marker)), marker.uid))
            claimed.add(best.uid)
            matched.append((item, best))
    return matched


def _gone(
    absent: Sequence[_MarkerInFrames], present: Sequence[_MarkerInFrames], live: Mapping[int, Marker], claimed: set[int]
) -> dict[int, TaskSource]:
    """Return the markers that the playbook names as absent; a marker that another task wants there is a conflict."""
    gone: dict[int, TaskSource] = {}
    for item in absent:
        there = [marker for uid, marker in live.items() if uid == item.uid or (item.uid is None and item.at(marker))]
        for desired in present:
            at_place = item.at(_final(desired, live)) if item.uid is None else _is_only(desired, there, live)
            if at_place or (item.uid is not None and desired.uid == item.uid):
                raise refuse(
                    f"marker {item.key} is removed here and desired at {desired.source.place}",
                    item.source,
                    "remove one of the two",
                )
        # A marker that another task moves away by its uid is no longer at the place.
        gone |= {marker.uid: item.source for marker in there if marker.uid not in claimed}
    return gone


def _is_only(desired: _MarkerInFrames, there: Sequence[Marker], live: Mapping[int, Marker]) -> bool:
    """Return whether a marker desired by its place can only match the live marker that is removed by its uid."""
    here = [] if desired.uid is not None or desired.anew else [m for m in there if desired.at(m)]
    return any(
        sum(m.frame == o.frame and same_text(track_of(m), track_of(o)) for o in live.values()) == 1 for m in here
    )


# Taking over ---------------------------------------------------------------------------------------------------


def _take_over(
    context: PlanContext, new: Sequence[_MarkerInFrames], surplus: Sequence[Marker], free: Mapping[int, Marker]
) -> list[tuple[_MarkerInFrames, Marker]]:
    """Pair new markers with live ones: those made for the same place first, then those that would be removed."""
    ours: list[tuple[_MarkerInFrames, Marker]] = []
    for item in new:
        uid = None if item.anew else context.memory.get(f"marker:{item.key}")
        if isinstance(uid, int) and uid in free and uid not in {marker.uid for _, marker in ours}:
            ours.append((item, free[uid]))
    served = {id(item) for item, _ in ours}
    rest = [item for item in new if id(item) not in served]
    spare = [marker for marker in surplus if marker.uid not in {m.uid for _, m in ours}]
    cost = [[_mismatch(item, marker) for marker in spare] for item in rest]
    return ours + [(rest[row], spare[column]) for row, column in pair(cost)]


def _mismatch(item: _MarkerInFrames, marker: Marker) -> int:
    """Return how little two markers have in common: titles first, then tracks, other fields, the distance."""
    title = not same_text(item.fields.get("title"), marker.fields.get("title"))
    track = not same_text(item.track, track_of(marker))
    others = sum(not same_value(name, value, marker.fields.get(name)) for name, value in item.fields.items())
    return (title * 1000 + track * 100 + others) * 10**9 + abs((item.frame or 0) - marker.frame)


# Changes -------------------------------------------------------------------------------------------------------


def _move(context: PlanContext, item: _MarkerInFrames, marker: Marker, origin: int) -> None:
    fields = dict(item.fields)
    if not same_text(fields.get("title"), marker.fields.get("title")):
        # Another marker is reused: its own texts must not remain.
        texts = names(MARKER_ATTRIBUTES, "text")
        fields |= {name: "" for name in texts if name not in fields and marker.fields.get(name)}
    _rewrite(context, item, marker, fields, origin, key=item.key)


def _rewrite(
    context: PlanContext, item: _MarkerInFrames, marker: Marker, fields: Mapping[str, str], origin: int, *, key: str
) -> None:
    versions.require(context.server, versions.Feature.CREATE_MARKER)
    frame = marker.frame if item.frame is None else item.frame
    wire = marker.frame - origin if item.frame is None else to_wire(frame, origin, item.source)
    place: dict[str, Json] = {
        "uid": marker.uid,
        "frame": frame,
        "track": track_of(marker) if item.track is None else item.track,
    }
    live: dict[str, Json] = {"uid": marker.uid, "frame": marker.frame, "track": track_of(marker)}
    live |= {name: marker.fields.get(name, "") for name in fields}
    number = context.builder.change("change", "marker", item.key, live, place | dict(fields), item.source)
    known = {name: text for name, text in marker.fields.items() if name not in _RESERVED}
    # Unsent fields may or may not be kept by the server (field notes). They must not become empty. They may change:
    # a server may set its own user or time.
    kept = {name: text for name, text in known.items() if name not in fields and marker_misses({name: ""}, marker)}
    if context.server.dialect.marker_update == "full":
        sent = known | dict(fields)
    else:
        sent = {name: value for name, value in fields.items() if not same_value(name, value, marker.fields.get(name))}
    request = requests.create_marker(context.path, marker.uid, wire, str(place["track"]), sent)
    expect = Expectation("marker", key, place | {"frame": wire} | dict(fields), preserved=kept)
    context.builder.send(Phase.MARKER_CHANGE, request, [number], expect)


def _create(context: PlanContext, item: _MarkerInFrames, origin: int, staying: tuple[int, ...]) -> None:
    """Create a new marker; the server may give it the uid of a marker that was deleted just before."""
    versions.require(context.server, versions.Feature.CREATE_MARKER)
    wire = to_wire(item.frame or 0, origin, item.source)
    key, named = item.key, item.named
    number = context.builder.change("add", "marker", key, None, named, item.source)
    request = requests.create_marker(context.path, requests.NEW_MARKER, wire, item.track, item.fields)
    shown = named if wire == item.frame else named | {"frame": wire}
    expect = Expectation("marker", key, shown, not_uids=staying)
    context.builder.send(Phase.MARKER_CREATE, request, [number], expect)


def _delete(
    context: PlanContext, live: Mapping[int, Marker], gone: Mapping[int, TaskSource], *, exactly: bool = False
) -> None:
    for uid, source in gone.items():
        versions.require(context.server, versions.Feature.DELETE_MARKER)
        shown: Json = show_marker(live[uid])
        number = context.builder.change("delete", "marker", f"uid {uid}", shown, None, source, exactly=exactly)
        request = requests.delete_marker(context.path, uid)
        expect = Expectation("marker", f"uid {uid}", None, not_uids=tuple(live))
        context.builder.send(Phase.MARKER_DELETE, request, [number], expect)


# Verification and memory ---------------------------------------------------------------------------------------


def marker_expected(expect: Expectation, live: LiveTarget) -> Marker | None:
    """Return the expected marker: by its uid, or the new one that matches."""
    markers = live.asset.markers if live.asset else ()
    expected = mapping(expect.desired)
    uid = f"uid {expected['uid']}" if "uid" in expected else expect.key
    if uid.startswith("uid "):
        return next((marker for marker in markers if f"uid {marker.uid}" == uid), None)
    new = [marker for marker in markers if marker.uid not in expect.not_uids]
    at_place = [m for m in new if marker_matches({name: expected[name] for name in ("frame", "track")}, m)]
    return next((m for m in at_place if marker_matches(expected, m)), at_place[0] if at_place else None)


def _holds(expect: Expectation, live: LiveTarget) -> bool | None:
    marker = marker_expected(expect, live)
    if expect.desired is None or marker is None:
        return (expect.desired is None) == (marker is None)
    return marker_matches(mapping(expect.desired), marker) and not _cleared(expect, marker)


def _cleared(expect: Expectation, marker: Marker) -> dict[str, Json]:
    """Return what a marker had, no task names, and the server cleared all the same."""
    return {name: text for name, text in expect.preserved.items() if marker_matches({name: ""}, marker)}


def show_marker(marker: Marker, frame: int | None = None) -> dict[str, Json]:
    """Return a live marker as plans show it; ``frame`` replaces the server's count."""
    shown: dict[str, Json] = {"uid": marker.uid, "frame": marker.frame if frame is None else frame}
    shown["track"] = track_of(marker)
    return shown | {name: value for name, value in marker.fields.items() if value and name != "track"}


def _show_desired(expect: Expectation, live: LiveTarget) -> Json:
    if expect.desired is None or not expect.preserved:
        return expect.desired
    marker = marker_expected(expect, live)
    return {**mapping(expect.desired), **(_cleared(expect, marker) if marker else {})}


def _learn(expect: Expectation, live: LiveTarget) -> Iterator[Item]:
    """Keep the uid that the server gave to a new marker."""
    new = expect.desired is not None and not expect.key.startswith("uid ")
    marker = marker_expected(expect, live) if new else None
    if marker is not None:
        yield f"marker:{expect.key}", marker.uid


def _forget(change: Change) -> Iterator[Item]:
    if before := mapping(change.before):
        yield f"marker:{before.get('track')}@{before.get('frame')}", None


def _matches(change: Change, named: Parameters) -> bool:
    uid = str(mapping(change.before).get("uid", -1))
    return named.get("uid") == uid and texts_match(change, named, unshown=change.action == "change")


# Undo ----------------------------------------------------------------------------------------------------------


def _undo(context: UndoContext) -> Mapping[str, Any]:
    """Return the markers as they were, of those that are still as the run left them; ``notes`` name the others."""
    made = context.of("marker")
    origin = in_point(context.asset, context.spec.dialect)
    live = {marker.uid: structs.replace(marker, frame=marker.frame + origin) for marker in context.asset.markers}
    past = _MarkerUndo(live, context.record.learned, context.notes)
    order = {"change": 0, "add": 1, "delete": 2}
    deleted = frozenset(_uid(one) for one in made if one.change.action == "delete")
    former = [past.undo(one, deleted) for one in sorted(made, key=lambda one: order[one.change.action])]
    return {"markers": tuple(context.sourced(marker) for marker in former if marker is not None)}


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
        before, after = mapping(one.change.before), mapping(one.change.after)
        there = frozenset(uid for expect in one.expects for uid in expect.not_uids)
        match one.change.action:
            case "add":
                uid = self.learned.get(f"marker:{one.change.key}")
                marker = self.live.pop(uid, None) if isinstance(uid, int) else self._find(after, there)
                return self._added(after, marker) if marker is not None else None  # it is gone already
            case "change":
                return self._changed(_uid(one), before, after)
        if self._find(before, there - deleted) is not None:
            return None  # it is back already, or was never deleted
        self.anew += 1
        return _former(before, anew=self.anew)

    def _added(self, after: Attributes, marker: Marker) -> DesiredMarker | None:
        added = any(marker.fields.get(name) and name not in after for name in _SIGNS_OF_OTHERS)
        if marker_matches(after, marker) and not added:
            return DesiredMarker(uid=marker.uid, present=False)
        self._leave(marker, after)
        return None

    def _changed(self, uid: int, before: Attributes, after: Attributes) -> DesiredMarker | None:
        marker = self.live.pop(uid, None)
        if marker is None:
            self.notes.append(f"marker uid {uid} is left alone: it no longer exists")
        elif marker_matches(after, marker):
            return _former(before, uid=uid)
        elif not marker_matches(before, marker):
            self._leave(marker, after)
        return None

    def _find(self, expected: Attributes, strangers: frozenset[int]) -> Marker | None:
        """Return a marker with these attributes that did not exist when the run was planned."""
        found = (uid for uid, marker in self.live.items() if uid not in strangers and marker_matches(expected, marker))
        uid = next(found, None)
        return None if uid is None else self.live.pop(uid)

    def _leave(self, marker: Marker, wrote: Attributes) -> None:
        self.notes.append(left_alone(f"marker uid {marker.uid}", show_marker(marker), dict(wrote)))


def _former(shown: Attributes, uid: int | Absent = ABSENT, anew: int = 0) -> DesiredMarker:
    fields = {name: str(value) for name, value in shown.items() if name not in _RESERVED}
    return DesiredMarker(uid, position_at(shown["frame"]), str(shown["track"]), fields, anew=anew)


ASPECT = Aspect(
    name="marker",
    plan=plan_markers,
    looks={
        "markers": lambda asset, *_: [
            {"uid": marker.uid, "frame": marker.frame, **marker.fields}
            for marker in sorted(asset.markers, key=attrgetter("uid"))
        ]
    },
    holds=_holds,
    show=lambda expect, live: show_marker(marker) if (marker := marker_expected(expect, live)) else None,
    show_desired=_show_desired,
    remember=_learn,
    learn=_learn,
    forget=_forget,
    commands={"CREATEMARKER": frozenset({"add", "change"}), "DELETEMARKER": frozenset({"delete"})},
    matches=_matches,
    undo=_undo,
)
