"""Markers: the uid is the identity; without one, the live marker of the same track and position.

No other marker is ever moved or reused: what ``exactly`` removes is deleted, and what is new is created.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from operator import attrgetter
from sys import intern
from typing import Any

from msgspec import Struct, field, structs

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
    is_as_left,
    mapping,
    marker_matches,
    marker_misses,
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
from msauto.aspects.matching import ItemInFrames, Matching, match, refuse_contradiction
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
from msauto.model.live import Asset, Marker
from msauto.model.plan import Change, Expectation, Json, ShownMarker, Target
from msauto.model.ports import LiveTarget

_RESERVED = frozenset({"command", "uid", "frame", "pos", "track"})


def plan_markers(context: PlanContext, desired: DesiredMarkers) -> None:
    """Make the markers as desired; with ``exactly`` nothing else stays (in its tracks)."""
    exactly = desired.exactly
    if not desired.items and not exactly:
        return
    check_in_point_stays(context)
    context.builder.look("markers")
    origin = in_point(context.asset, context.server.dialect)
    live = {m.uid: structs.replace(m, frame=m.frame + origin) for m in context.asset.markers}
    items = _unite([_resolve(context, sourced, live) for sourced in desired.items])
    found = match(items, live, lambda marker: [_place_of(marker)], marker_misses)
    _check_contradictions(items, found)
    surplus = {uid: exactly for uid in found.others if exactly and _covers(desired, track_of(live[uid]))}
    _delete(context, live, found.removed)
    _delete(context, live, surplus, exactly=True)
    for item, marker in found.kept:
        if marker_misses(item.named, marker):
            _change(context, item, marker, origin)
        else:
            context.builder.holding.append(Expectation("marker", item.key, _reported(item, origin)))
    staying = tuple(uid for uid in live if uid not in found.removed and uid not in surplus)
    for item in found.created:
        _create(context, item, origin, staying)
    if exactly:
        _complete(context, desired, live, found.created, surplus)


def _complete(
    context: PlanContext,
    desired: DesiredMarkers,
    live: Mapping[int, Marker],
    created: Sequence[ItemInFrames],
    surplus: Collection[int],
) -> None:
    """Expect no markers but those that exist or are desired, and note a list that becomes empty."""
    origin = in_point(context.asset, context.server.dialect)
    places = [_reported(item, origin) for item in created]
    only: dict[str, Json] = {"new": [{"frame": place["frame"], "track": place["track"]} for place in places]}
    only |= {} if desired.tracks is None else {"tracks": [*sorted(desired.tracks)]}
    context.builder.holding.append(Expectation("marker", EXACTLY, only, not_uids=tuple(live)))
    left = [track_of(marker) for uid, marker in live.items() if uid not in surplus]
    left += [str(place["track"]) for place in places]
    if surplus and not any(_covers(desired, track) for track in left):
        context.builder.emptied.append(("marker", len(surplus)))


def _resolve(context: PlanContext, sourced: Sourced[DesiredMarker], live: Mapping[int, Marker]) -> ItemInFrames:
    """Return a marker in frames; its handle is the place, frame and track, that it will have."""
    value, source = sourced.value, sourced.source
    uid = None if value.uid is ABSENT else value.uid
    if uid is None and value.at is ABSENT:
        raise refuse("a marker needs its position or its uid", source, "name `at` or `uid`")
    if uid is not None and uid not in live and value.present:
        known = ", ".join(map(str, live)) or "none"
        raise refuse(
            f"the asset has no marker of uid {uid} (it has: {known})",
            source,
            "leave the uid out to make a new marker: the server gives it its uid",
        )
    named: dict[str, Json] = {}
    if value.at is not ABSENT:
        # A marker to be removed may be beyond the end of a clip that became shorter.
        find = to_point if value.present else to_frames
        named["frame"] = find(value.at, context.asset, source)
    if value.track is not ABSENT or uid is None:
        named["track"] = DEFAULT_TRACK if value.track is ABSENT else value.track
    frame, track = _place_of(live[uid]) if uid is not None and uid in live else (None, None)
    # What is removed by its uid is where it is, wherever the task has it.
    removed_by_uid = uid is not None and not value.present
    place = (frame, track) if removed_by_uid else (named.get("frame", frame), named.get("track", track))
    key = intern(f"uid {uid}" if uid is not None else f"{place[1]}@{place[0]}")
    fields = value.fields if value.present else {}
    return ItemInFrames(uid, key, {**named, **fields}, source, () if value.anew else (place,), value.present)


def _place_of(marker: Marker) -> tuple[int, str]:
    return marker.frame, track_of(marker)


def _covers(desired: DesiredMarkers, track: Json) -> bool:
    return desired.tracks is None or track in desired.tracks


def _reported(item: ItemInFrames, origin: int) -> dict[str, Json]:
    """Return what is named as the server reports it, which counts from ``origin``."""
    frame = item.named.get("frame")
    return {**item.named, **({"frame": frame - origin} if isinstance(frame, int) else {})}


def _unite(items: Sequence[ItemInFrames]) -> list[ItemInFrames]:
    """Merge what tasks name by uid with what they name by the place where that marker will be."""
    united = sorted(items, key=lambda item: item.number is None)
    by_uid = {item.handles: i for i, item in reversed([*enumerate(united)]) if item.present and item.number is not None}
    for item in items if by_uid else ():
        index = by_uid.get(item.handles) if item.present and item.number is None and item.handles else None
        if index is None:
            continue
        one, fields = united[index], _fields(item)
        for name, value in fields.items():
            if name in one.named and not same_value(name, str(one.named[name]), value):
                raise refuse(
                    f"{one.key} and {item.key} are one marker: two tasks want different values for its {name}: "
                    f"{one.named[name]!r} ({one.source.place}) and {value!r} ({item.source.place})",
                    item.source,
                    "use one value in both",
                )
        united[index] = structs.replace(one, named={**one.named, **fields})
        united.remove(item)
    return united


def _fields(item: ItemInFrames) -> dict[str, str]:
    return {name: text for name, text in item.named.items() if isinstance(text, str) and name not in ("frame", "track")}


def _check_contradictions(items: Sequence[ItemInFrames], found: Matching[Marker]) -> None:
    """Refuse a place at which one task removes a marker and another desires one.

    What is removed by its uid may be desired by its place only where another marker is at that place.
    """
    new = {item.handles for item in found.created}
    for gone in (item for item in items if not item.present):
        for desired in (item for item in items if item.present and item.handles == gone.handles):
            if gone.number is None or (desired.number is None and desired.handles in new):
                raise refuse_contradiction("marker", gone, desired)


# Changes -------------------------------------------------------------------------------------------------------


def _change(context: PlanContext, item: ItemInFrames, marker: Marker, origin: int) -> None:
    """Change the marker of that uid, or of that track and position; what no task names stays as it is."""
    fields = _fields(item)
    requests.require(context.server, requests.Feature.CREATE_MARKER)
    live: dict[str, Json] = {"uid": marker.uid, "frame": marker.frame, "track": track_of(marker)}
    desired = live | dict(item.named)
    live |= {name: marker.fields.get(name, "") for name in fields}
    number = context.builder.change("change", "marker", item.key, live, desired, item.source)
    frame = item.named.get("frame")
    wire = to_wire(frame, origin, item.source) if isinstance(frame, int) else marker.frame - origin
    known = {name: text for name, text in marker.fields.items() if name not in _RESERVED}
    # Unsent fields may or may not be kept by the server (field notes). They must not become empty. They may change:
    # a server may set its own user or time.
    kept = {name: text for name, text in known.items() if name not in fields and marker_misses({name: ""}, marker)}
    if context.server.dialect.marker_update == "full":
        sent = known | fields
    else:
        sent = {name: value for name, value in fields.items() if not same_value(name, value, marker.fields.get(name))}
    request = requests.create_marker(context.path, marker.uid, wire, str(desired["track"]), sent)
    expect = Expectation("marker", f"uid {marker.uid}", desired | {"frame": wire}, preserved=kept)
    context.builder.send(Phase.MARKER_CHANGE, request, [number], expect)


def _create(context: PlanContext, item: ItemInFrames, origin: int, staying: tuple[int, ...]) -> None:
    """Create a new marker; the server may give it the uid of a marker that was deleted just before."""
    requests.require(context.server, requests.Feature.CREATE_MARKER)
    named, frame = dict(item.named), item.named["frame"]
    wire = to_wire(frame if isinstance(frame, int) else 0, origin, item.source)
    number = context.builder.change("add", "marker", item.key, None, named, item.source)
    request = requests.create_marker(context.path, requests.NEW_MARKER, wire, str(named["track"]), _fields(item))
    expect = Expectation("marker", item.key, named | {"frame": wire}, not_uids=staying)
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
    expected = mapping(expect.desired)
    named = f"uid {expected['uid']}" if "uid" in expected else expect.key
    if named.startswith("uid "):
        uid, markers = int(named[4:]), live.asset.markers if live.asset else ()
        return next((marker for marker in markers if marker.uid == uid), None)
    place = {name: expected[name] for name in ("frame", "track")}
    new = _new_there(expect, live)
    return next((marker for wanted in (expected, place) for marker in new if marker_matches(wanted, marker)), None)


def _new_there(expect: Expectation, live: LiveTarget) -> list[Marker]:
    """Return the markers at the frame of a new one that did not exist when it was planned."""
    there = live.markers_at.get(mapping(expect.desired)["frame"], ())
    return [marker for marker in there if marker.uid not in expect.not_uids]


def _alike(expect: Expectation, live: LiveTarget) -> list[str]:
    if expect.key.startswith("uid "):
        return []
    expected = mapping(expect.desired)
    return [f"uid {marker.uid}" for marker in _new_there(expect, live) if marker_matches(expected, marker)]


def _strangers(expect: Expectation, live: LiveTarget) -> list[Json]:
    """Return the markers of a list with ``exactly`` that did not exist when planned, and that no task asks for."""
    only = mapping(expect.desired)
    asked: dict[object, list[Attributes]] = defaultdict(list)
    for place in map(mapping, only["new"] if isinstance(only["new"], list) else ()):
        asked[place["frame"]].append(place)
    return [
        show_marker(marker)
        for marker in (live.asset.markers if live.asset else ())
        if marker.uid not in expect.not_uids
        and ("tracks" not in only or track_of(marker) in texts(only["tracks"]))
        and not any(marker_matches(place, marker) for place in asked.get(marker.frame, ()))
    ]


def _holds(expect: Expectation, live: LiveTarget) -> bool | None:
    marker = marker_expected(expect, live)
    if expect.desired is None or marker is None:
        return (expect.desired is None) == (marker is None)
    return _is_as_desired(expect, marker)


def _is_as_desired(expect: Expectation, marker: Marker) -> bool:
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
    marker = marker_expected(expect, live)
    return show_marker(marker) if marker else None


def _show_desired(expect: Expectation, live: LiveTarget) -> Json:
    if expect.desired is None or not expect.preserved:
        return expect.desired
    marker = marker_expected(expect, live)
    return {**mapping(expect.desired), **(_cleared(expect, marker) if marker else {})}


def _learn(expect: Expectation, live: LiveTarget) -> Iterator[Item]:
    """Keep a marker as it was after our write: undo finds a new one by its uid, and sees what others changed since."""
    marker = marker_expected(expect, live)
    if marker is not None and expect.desired is not None and _is_as_desired(expect, marker):
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


class _MarkerUndo(Struct):
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
        elif is_as_left(show_marker(marker, marker.frame - self.origin), left, as_written=_is_as_written(marker, one)):
            return DesiredMarker(uid=marker.uid, present=False) if new else _former(before, uid=uid)
        elif new:
            self.live[marker.uid] = marker  # its uid may be that of a marker that is back already
            self.changed[marker.uid] = wrote
        elif not marker_matches(before, marker):
            self.notes.append(left_alone(f"marker uid {marker.uid}", show_marker(marker), dict(wrote)))
        return None

    def _find(self, expected: Attributes, strangers: frozenset[int]) -> Marker | None:
        """Return a marker with these attributes that did not exist when the run was planned."""
        found = (uid for uid, marker in self.live.items() if uid not in strangers and marker_matches(expected, marker))
        uid = next(found, None)
        return None if uid is None else self.live.pop(uid)


def _is_as_written(marker: Marker, one: AppliedChange) -> bool:
    kept = {name: text for expect in one.expects for name, text in expect.preserved.items()}
    known = {**kept, **mapping(one.change.after)}
    return marker_matches({**dict.fromkeys(marker.fields, ""), "track": track_of(marker), **known}, marker)


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


def _leaves(asset: Asset, expect: Expectation) -> Asset:
    """A new marker gets any free uid."""
    markers, after = {marker.uid: marker for marker in asset.markers}, mapping(expect.desired)
    if expect.desired is None:
        markers.pop(int(expect.key.removeprefix("uid ")), None)
    else:
        uid = int(str(after["uid"])) if "uid" in after else max(markers, default=0) + 1
        had = markers[uid].fields if uid in markers else {}
        named = {name: str(value) for name, value in after.items() if name not in {"uid", "frame"}}
        markers[uid] = Marker(uid, int(str(after["frame"])), {**had, **named})
    return structs.replace(asset, markers=tuple(markers.values()))


def _warn(context: PlanContext, _: DesiredMarkers, after: Callable[[], Asset]) -> Iterator[str]:
    """Yield the profanity starts without an end, and ends without a start, that the run makes."""
    touched = [change for change in context.builder.changes if change.aspect == ASPECT.name]
    sides = (mapping(side) for change in touched for side in (change.before, change.after))
    if not any(str(side.get("track")) in {_START, _END} for side in sides):
        return
    before = {(marker.uid, track_of(marker)) for marker in _alone(context.asset.markers)}
    live = {marker.uid: marker for marker in context.asset.markers}
    origin = in_point(context.asset, context.server.dialect)
    for marker in _alone(after().markers):
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
    if change.action == "change" and "uid" in before:  # verification expects texts that no task names to stay
        expects = (expect for request in target.requests for expect in request.expect if expect.aspect == change.aspect)
        kept = (each.preserved for each in expects if mapping(each.desired).get("uid") == before["uid"])
        before = {**next(kept, {}), **before}
    name = f"uid {before['uid']}" if "uid" in before else change.key
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
    strangers=_strangers,
    learn=_learn,
    leaves=_leaves,
    spans=_spans,
    titles=titles_of_item,
    warn=_warn,
    undo=_undo,
    label=_label,
    subject=_subject,
    displayed=_displayed,
    in_frames=True,
    is_on_timeline=True,
    timeline=_timeline,
    staying=_staying,
    dialect=("marker_update",),
)
