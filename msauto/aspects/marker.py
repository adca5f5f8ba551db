"""Markers: the uid is the identity; without one, the live marker of the same track and position.

No other marker is ever moved or reused: what ``exactly`` removes is deleted, and what is new is created.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from sys import intern
from typing import Any, NamedTuple

from msgspec import Struct, structs

from msauto.aspects.aspect import (
    EXACTLY,
    AppliedChange,
    Aspect,
    Item,
    Span,
    TimelineItem,
    TimelinePlace,
    UndoContext,
    frames_of,
    titles_of_item,
)
from msauto.aspects.comparison import (
    Attributes,
    mapping,
    marker_matches,
    marker_misses,
    same_shown,
    same_value,
    texts,
    track_of,
)
from msauto.aspects.marker_arguments import (
    MARKER_KEYS,
    MARKERS_EXACTLY,
    DesiredMarker,
    DesiredMarkers,
    check_markers,
    declare_markers,
    export_markers,
    merge_markers,
)
from msauto.aspects.plan_builder import Phase, PlanContext, left_alone, refuse
from msauto.aspects.positions import (
    check_in_point_stays,
    frames_if_valid,
    in_point,
    position_at,
    to_frames,
    to_point,
    to_wire,
)
from msauto.documents import key_rules as rule
from msauto.model import requests
from msauto.model.desired import ABSENT, Absent, Sourced, TaskSource
from msauto.model.fields import DEFAULT_TRACK
from msauto.model.identity import same_text
from msauto.model.live import Asset, Marker
from msauto.model.plan import Change, Expectation, Json, ShownMarker, Target
from msauto.model.ports import LiveTarget

_RESERVED = frozenset({"command", "uid", "frame", "pos", "track"})


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

    def reported(self, origin: int) -> dict[str, Json]:
        """Return what is named as the server reports it, which counts from ``origin``."""
        return self.named | ({} if self.frame is None else {"frame": self.frame - origin})

    def at(self, marker: Marker) -> bool:
        """Return whether a live marker is at the desired track and position."""
        return self.frame == marker.frame and same_text(self.track, track_of(marker))


def plan_markers(context: PlanContext, desired: DesiredMarkers) -> None:
    """Make the markers as desired; with ``exactly`` nothing else stays (in its tracks)."""
    exactly = desired.exactly
    if not desired.items and not exactly:
        return
    check_in_point_stays(context)
    context.builder.look("markers")
    origin = in_point(context.asset, context.server.dialect)
    live = {m.uid: structs.replace(m, frame=m.frame + origin) for m in context.asset.markers}
    present = [_resolve(context, sourced) for sourced in desired.items if sourced.value.present]
    absent = [_resolve(context, sourced) for sourced in desired.items if not sourced.value.present]
    for item in present:
        if item.uid is not None and item.uid not in live:
            known = ", ".join(map(str, live)) or "none"
            raise refuse(
                f"the asset has no marker of uid {item.uid} (it has: {known})",
                item.source,
                "leave the uid out to make a new marker: the server gives it its uid",
            )
    covered = [uid for uid, marker in live.items() if exactly and _covers(desired, marker)]
    found = _match(_merge_positions(present, live), absent, live, covered)
    _delete(context, live, found.removed)
    if exactly:
        _delete(context, live, dict.fromkeys(found.surplus, exactly), exactly=True)
    for item, marker in found.pairs:
        if marker_misses(item.named, marker):
            _change(context, item, marker, origin)
        else:
            context.builder.holding.append(Expectation("marker", item.key, item.reported(origin)))
    staying = tuple(uid for uid in live if uid not in found.removed and uid not in found.surplus)
    for item in found.created:
        _create(context, item, origin, staying)
    if exactly:
        only: dict[str, Json] = {} if desired.tracks is None else {"tracks": [*sorted(desired.tracks)]}
        only["new"] = [{"frame": item.reported(origin)["frame"], "track": item.track} for item in found.created]
        context.builder.holding.append(Expectation("marker", EXACTLY, only, not_uids=tuple(live)))
        added = [item for item in found.created if desired.tracks is None or item.track in desired.tracks]
        if covered and len(found.surplus) == len(covered) and not added:
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


def _covers(desired: DesiredMarkers, marker: Marker) -> bool:
    return desired.tracks is None or track_of(marker) in desired.tracks


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


class _MatchedMarkers(NamedTuple):
    """Desired markers and live ones.

    ``pairs`` are both, ``created`` only desired. Of the only live, tasks name the uids ``removed`` as absent,
    and ``exactly`` removes the uids ``surplus``.
    """

    pairs: list[tuple[_MarkerInFrames, Marker]]
    created: list[_MarkerInFrames]
    removed: dict[int, TaskSource]
    surplus: list[int]


def _match(
    present: Sequence[_MarkerInFrames],
    absent: Sequence[_MarkerInFrames],
    live: Mapping[int, Marker],
    covered: Sequence[int],
) -> _MatchedMarkers:
    """Pair each desired marker with its live one; of several at one place, with the one that needs no change.

    ``covered`` are the uids that ``exactly`` concerns.
    """
    matched = [(item, live[item.uid]) for item in present if item.uid is not None]
    going = {item.uid for item in absent}
    claimed = {marker.uid for _, marker in matched} | {uid for uid in live if uid in going}
    for item in (item for item in present if item.uid is None and not item.anew):
        there = [marker for uid, marker in live.items() if uid not in claimed and item.at(marker)]
        if there:
            best = min(there, key=lambda marker: (len(marker_misses(item.named, marker)), marker.uid))
            claimed.add(best.uid)
            matched.append((item, best))
    paired, desired_there = {marker.uid for _, marker in matched}, {id(item) for item, _ in matched}
    removed = _gone(absent, present, live, paired)
    return _MatchedMarkers(
        matched,
        [item for item in present if id(item) not in desired_there],
        removed,
        [uid for uid in covered if uid not in paired and uid not in removed],
    )


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


# Changes -------------------------------------------------------------------------------------------------------


def _change(context: PlanContext, item: _MarkerInFrames, marker: Marker, origin: int) -> None:
    """Change the marker of that uid, or of that track and position; what no task names stays as it is."""
    fields = item.fields
    requests.require(context.server, requests.Feature.CREATE_MARKER)
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
    expect = Expectation("marker", f"uid {marker.uid}", place | {"frame": wire} | dict(fields), preserved=kept)
    context.builder.send(Phase.MARKER_CHANGE, request, [number], expect)


def _create(context: PlanContext, item: _MarkerInFrames, origin: int, staying: tuple[int, ...]) -> None:
    """Create a new marker; the server may give it the uid of a marker that was deleted just before."""
    requests.require(context.server, requests.Feature.CREATE_MARKER)
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
        requests.require(context.server, requests.Feature.DELETE_MARKER)
        shown: Json = show_marker(live[uid])
        number = context.builder.change("delete", "marker", f"uid {uid}", shown, None, source, losses=int(exactly))
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


def _alike(expect: Expectation, live: LiveTarget) -> list[str]:
    if expect.key.startswith("uid "):
        return []
    markers, expected = live.asset.markers if live.asset else (), mapping(expect.desired)
    new = (marker for marker in markers if marker.uid not in expect.not_uids)
    return [f"uid {marker.uid}" for marker in new if marker_matches(expected, marker)]


def _strangers(expect: Expectation, live: LiveTarget) -> list[Json]:
    """Return the markers of a list with ``exactly`` that did not exist when planned, and that no task asks for."""
    only = mapping(expect.desired)
    new = only["new"] if isinstance(only["new"], list) else []
    return [
        show_marker(marker)
        for marker in (live.asset.markers if live.asset else ())
        if marker.uid not in expect.not_uids
        and ("tracks" not in only or track_of(marker) in texts(only["tracks"]))
        and not any(marker_matches(mapping(place), marker) for place in new)
    ]


def _holds(expect: Expectation, live: LiveTarget) -> bool | None:
    if expect.key == EXACTLY:
        return not _strangers(expect, live)
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


def _show(expect: Expectation, live: LiveTarget) -> Json:
    if expect.key == EXACTLY:
        return _strangers(expect, live)
    marker = marker_expected(expect, live)
    return show_marker(marker) if marker else None


def _show_desired(expect: Expectation, live: LiveTarget) -> Json:
    if expect.key == EXACTLY:
        return None
    if expect.desired is None or not expect.preserved:
        return expect.desired
    marker = marker_expected(expect, live)
    return {**mapping(expect.desired), **(_cleared(expect, marker) if marker else {})}


def _learn(expect: Expectation, live: LiveTarget) -> Iterator[Item]:
    """Keep a marker as it was after our write: undo finds a new one by its uid, and sees what others changed since."""
    marker = marker_expected(expect, live)
    if marker is not None and _holds(expect, live):
        yield f"marker:{expect.key}", show_marker(marker)


# Undo ----------------------------------------------------------------------------------------------------------


def _undo(context: UndoContext) -> DesiredMarkers:
    """Return the markers as they were, of those that are still as the run left them; ``notes`` name the others."""
    made = context.of("marker")
    origin = in_point(context.asset, context.spec.dialect)
    live = {marker.uid: structs.replace(marker, frame=marker.frame + origin) for marker in context.asset.markers}
    past = _MarkerUndo(live, origin, context.record.learned, context.notes)
    order = {"change": 0, "add": 1, "delete": 2}
    deleted = frozenset(_uid(one) for one in made if one.change.action == "delete")
    former = [past.undo(one, deleted) for one in sorted(made, key=lambda one: order[one.change.action])]
    for uid, wrote in past.changed.items():
        if uid in past.live:
            context.notes.append(left_alone(f"marker uid {uid}", show_marker(past.live[uid]), dict(wrote)))
    return DesiredMarkers(tuple(context.sourced(marker) for marker in former if marker is not None))


def _uid(one: AppliedChange) -> int:
    return int(str(mapping(one.change.before).get("uid", -1)))


@dataclass(slots=True)
class _MarkerUndo:
    """Live markers, of which each is taken for one of the run's at most; ``learned`` is how the run left them.

    ``changed`` is what the run wrote of new markers that are no longer as it left them.
    """

    live: dict[int, Marker]
    origin: int
    learned: Mapping[str, Json]
    notes: list[str]
    anew: int = 0
    changed: dict[int, Attributes] = field(default_factory=dict)

    def undo(self, one: AppliedChange, deleted: frozenset[int]) -> DesiredMarker | None:
        before, uid = mapping(one.change.before), _uid(one)
        there = frozenset(uid for expect in one.expects for uid in expect.not_uids)
        if one.change.action == "delete":
            if self._find(before, there - deleted) is not None:
                return None  # it is back already, or was never deleted
            self.anew += 1
            return _former(before, anew=self.anew)
        new = one.change.action == "add"
        wrote = mapping(one.change.after)
        left = mapping(self.learned.get(f"marker:{one.change.key}" if new else f"marker:uid {uid}"))
        if new:
            uid = int(str(left.get("uid", -1)))
        marker = self.live.pop(uid, None) if left or not new else self._find(wrote, there)
        if marker is None:
            self.notes += [] if new else [f"marker uid {uid} is left alone: it no longer exists"]
        elif self._is_as_left(marker, left, one):
            return DesiredMarker(uid=marker.uid, present=False) if new else _former(before, uid=uid)
        elif new:
            self.live[marker.uid] = marker  # its uid may be that of a marker that is back already
            self.changed[marker.uid] = wrote
        elif not marker_matches(before, marker):
            self.notes.append(left_alone(f"marker uid {marker.uid}", show_marker(marker), dict(wrote)))
        return None

    def _is_as_left(self, marker: Marker, left: Attributes, one: AppliedChange) -> bool:
        """Return whether a marker is as verification read it after the write; if it read none, as it was written.

        In the second case nothing may be there that the run did not write, because it is not known whose that is.
        """
        if left:
            return same_shown(left, show_marker(marker, marker.frame - self.origin))
        kept = {name: text for expect in one.expects for name, text in expect.preserved.items()}
        known = {**kept, **mapping(one.change.after)}
        return marker_matches({**dict.fromkeys(marker.fields, ""), "track": track_of(marker), **known}, marker)

    def _find(self, expected: Attributes, strangers: frozenset[int]) -> Marker | None:
        """Return a marker with these attributes that did not exist when the run was planned."""
        found = (uid for uid, marker in self.live.items() if uid not in strangers and marker_matches(expected, marker))
        uid = next(found, None)
        return None if uid is None else self.live.pop(uid)


def _former(shown: Attributes, uid: int | Absent = ABSENT, anew: int = 0) -> DesiredMarker:
    fields = {name: str(value) for name, value in shown.items() if name not in _RESERVED}
    return DesiredMarker(uid, position_at(shown["frame"]), str(shown["track"]), fields, anew=anew)


# Editorial warnings --------------------------------------------------------------------------------------------

_START, _END = "Profanity Start", "Profanity End"


def _spans(context: PlanContext, desired: DesiredMarkers) -> Iterator[Span]:
    for sourced in desired.items:
        value = sourced.value
        frame = frames_if_valid(value.at, context.asset) if value.present else None
        if frame is not None:
            track = DEFAULT_TRACK if value.track is ABSENT else value.track
            name = f"marker {track}@{frame}" if value.uid is ABSENT else f"marker uid {value.uid} (frame {frame})"
            yield name, frame, frame, sourced.source


def _leaves(live: LiveTarget, expect: Expectation) -> LiveTarget:
    """A new marker gets any free uid."""
    if live.asset is None:
        return live
    markers, after = {marker.uid: marker for marker in live.asset.markers}, mapping(expect.desired)
    if expect.desired is None:
        markers.pop(int(expect.key.removeprefix("uid ")), None)
    else:
        uid = int(str(after["uid"])) if "uid" in after else max(markers, default=0) + 1
        had = markers[uid].fields if uid in markers else {}
        named = {name: str(value) for name, value in after.items() if name not in {"uid", "frame"}}
        markers[uid] = Marker(uid, int(str(after["frame"])), {**had, **named})
    return structs.replace(live, asset=structs.replace(live.asset, markers=tuple(markers.values())))


def _warn(context: PlanContext, _: DesiredMarkers, after: Callable[[], LiveTarget]) -> Iterator[str]:
    """Yield the profanity starts without an end, and ends without a start, that the run makes."""
    touched = [change for change in context.builder.changes if change.aspect == ASPECT.name]
    sides = (mapping(side) for change in touched for side in (change.before, change.after))
    if not any(str(side.get("track")) in {_START, _END} for side in sides):
        return
    before = {(marker.uid, track_of(marker)) for marker in _alone(context.asset.markers)}
    live = {marker.uid: marker for marker in context.asset.markers}
    origin = in_point(context.asset, context.server.dialect)
    left = after().asset
    for marker in _alone(left.markers if left else ()):
        if (marker.uid, track_of(marker)) in before and live[marker.uid].frame == marker.frame:
            continue
        other = _END if track_of(marker) == _START else _START
        place = touched[0].source.place
        yield f"{track_of(marker)} at frame {marker.frame + origin} has no {other} ({place})"


def _alone(markers: Sequence[Marker]) -> Iterator[Marker]:
    """Yield the starts that no end follows before the next start, and the ends that follow no start."""
    begun: Marker | None = None
    marked = [marker for marker in markers if track_of(marker) in {_START, _END}]
    for marker in sorted(marked, key=lambda marker: (marker.frame, track_of(marker) == _START)):
        if track_of(marker) == _END and begun is not None:
            begun = None
        elif track_of(marker) == _END:
            yield marker
        else:
            if begun is not None:
                yield begun
            begun = marker
    if begun is not None:
        yield begun


# Shown ---------------------------------------------------------------------------------------------------------


def _subject(change: Change) -> str:
    """Return the track that the values of a marker name; empty if they name none."""
    return str(mapping(change.after).get("track") or mapping(change.before).get("track") or "")


def _label(change: Change) -> str:
    """Return its track, and its uid if it has one: its position is a value."""
    if not (track := _subject(change)):
        return change.key
    return f"{track} {change.key}" if change.key.startswith("uid ") else track


def _displayed(change: Change) -> Change:
    """Leave out the track where it does not change: the label shows it."""
    before, after = dict(mapping(change.before)), dict(mapping(change.after))
    if change.action == "change" and before.get("track") != after.get("track"):
        return change
    before.pop("track", None)
    after.pop("track", None)
    return structs.replace(change, before=change.before and before, after=change.after and after)


def _timeline(change: Change, target: Target) -> Iterator[TimelineItem]:
    before, after = mapping(change.before), mapping(change.after)
    uid = before.get("uid")
    # The texts that no task names: verification expects them to stay.
    expects = (expect for request in target.requests for expect in request.expect if expect.aspect == change.aspect)
    kept = (each.preserved for each in expects if uid and mapping(each.desired).get("uid") == uid)
    before = {**next(kept, {}), **before}
    name = f"uid {uid}" if "uid" in before else change.key
    yield TimelineItem(change.action, name, _place(before), _place(after and {**before, **after}))


def _place(shown: Attributes) -> TimelinePlace | None:
    frame = frames_of(shown.get("frame"))
    track, title = str(shown.get("track") or DEFAULT_TRACK), str(shown.get("title") or "")
    return None if frame is None else TimelinePlace(track, frame, 0, title)


def _staying(asset: Asset, origin: int, changes: Sequence[Change]) -> Mapping[str, Any]:
    uids = {mapping(change.before).get("uid") for change in changes if change.aspect == "marker"}
    return {
        "markers": tuple(
            ShownMarker(each.uid, each.frame + origin, track_of(each), each.fields.get("title", ""))
            for each in asset.markers
            if each.uid not in uids
        )
    }


ASPECT = Aspect(
    name="marker",
    keys=MARKER_KEYS,
    rules=(rule.complete("markers", ("markers",)),),
    exactly=("markers", MARKERS_EXACTLY),
    check=check_markers,
    declare=declare_markers,
    export=export_markers,
    merge=merge_markers,
    plan=plan_markers,
    looks={
        "markers": lambda asset, *_: [
            {"uid": marker.uid, "frame": marker.frame, **marker.fields}
            for marker in sorted(asset.markers, key=attrgetter("uid"))
        ]
    },
    holds=_holds,
    alike=_alike,
    show=_show,
    show_desired=_show_desired,
    learn=_learn,
    leaves=_leaves,
    spans=_spans,
    titles=titles_of_item,
    warn=_warn,
    undo=_undo,
    label=_label,
    subject=_subject,
    is_called_by_subject=True,
    displayed=_displayed,
    in_frames=True,
    is_on_timeline=True,
    timeline=_timeline,
    staying=_staying,
    dialect=("marker_update",),
)
