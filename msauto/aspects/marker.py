"""Markers: the uid is the identity; without one, the live marker of the same track and position.

A new marker takes over one that ``exactly`` would remove, or goes back to where the ledger knows that we made it:
one request instead of two. What is moved otherwise keeps its uid and nothing else is touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from msauto.diffing.assignment import pair
from msauto.diffing.builder import PlanBuilder, PlanContext, refuse
from msauto.diffing.comparison import marker_misses, plain, same_text, same_value, track_of
from msauto.diffing.order import Phase
from msauto.diffing.positions import in_point, to_frames, to_point, to_wire
from msauto.interface import requests, versions
from msauto.interface.vocabulary import DEFAULT_TRACK
from msauto.model.desired import ABSENT, CompleteLists, DesiredMarker, Sourced, TaskSource
from msauto.model.live import Marker
from msauto.model.plan import Expectation, Json
from msauto.verification.expectations import show_marker

_RESERVED = frozenset({"command", "uid", "frame", "pos", "track"})
_DEFAULT_FIELDS = ("title", "comment", "user", "keywords")


@dataclass(frozen=True, slots=True, eq=False)
class _MarkerInFrames:
    """A wanted marker; ``frame`` counts from the first frame of the file, ``None`` is not named."""

    uid: int | None
    frame: int | None
    track: str | None
    fields: Mapping[str, str]
    source: TaskSource
    anew: bool = False

    @property
    def key(self) -> str:
        return f"uid {self.uid}" if self.uid is not None else f"{self.track}@{self.frame}"

    @property
    def want(self) -> dict[str, Json]:
        """What is named, as the plan shows it and as it is compared with a live marker in frames of the file."""
        named: dict[str, Json] = {"frame": self.frame, "track": self.track}
        want: dict[str, Json] = {name: value for name, value in named.items() if value is not None}
        return want | dict(self.fields)

    def at(self, marker: Marker) -> bool:
        """Tell whether a live marker is at the wanted track and position."""
        return self.frame == marker.frame and same_text(self.track, track_of(marker))


def plan_markers(
    context: PlanContext, desired: Sequence[Sourced[DesiredMarker]], exactly: CompleteLists, builder: PlanBuilder
) -> None:
    """Bring the markers to what is wanted; with ``exactly`` nothing else stays (in its tracks)."""
    builder.look("markers")
    origin = in_point(context.asset, context.server.dialect)
    live = {m.uid: structs.replace(m, frame=m.frame + origin) for m in context.asset.markers}
    present = [_resolve(context, sourced) for sourced in desired if sourced.value.present]
    absent = [_resolve(context, sourced) for sourced in desired if not sourced.value.present]
    _check_uids(present, live)
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
    _delete(context, live, gone, builder)
    _delete(context, live, left, builder, exactly=True)
    for item, marker in matched:
        _change(context, item, marker, origin, builder)
    for item, marker in moved:
        _move(context, item, marker, origin, builder)
    moving = {id(item) for item, _ in moved}
    staying = tuple(uid for uid in live if uid not in gone and uid not in left)
    for item in (item for item in new if id(item) not in moving):
        _create(context, item, origin, staying, builder)
    covered = [m for m in live.values() if _covers(exactly, m)]
    if left and len(left) == len(covered) and not any(exactly.tracks is None or p.track in exactly.tracks for p in new):
        builder.emptied.append(("marker", len(covered)))


def _resolve(context: PlanContext, sourced: Sourced[DesiredMarker]) -> _MarkerInFrames:
    value = sourced.value
    uid = None if value.uid is ABSENT else value.uid
    frame = None
    if value.at is not ABSENT:
        # What is to go may lie beyond a clip that became shorter.
        find = to_point if value.present else to_frames
        frame = find(value.at, context.asset, sourced.source)
    track = None if value.track is ABSENT else value.track
    if uid is None:
        if frame is None:
            raise refuse("a marker needs its position or its uid", sourced.source, "name `at` or `uid`")
        track = track or DEFAULT_TRACK
    return _MarkerInFrames(uid, frame, track, value.fields, sourced.source, value.anew > 0)


def _covers(exactly: CompleteLists, marker: Marker) -> bool:
    return exactly.tracks is None or track_of(marker) in exactly.tracks


# Identity ------------------------------------------------------------------------------------------------------


def _check_uids(present: Sequence[_MarkerInFrames], live: Mapping[int, Marker]) -> None:
    for item in present:
        if item.uid is not None and item.uid not in live:
            known = ", ".join(map(str, live)) or "none"
            raise refuse(
                f"the asset has no marker of uid {item.uid} (it has: {known})",
                item.source,
                "leave the uid out to make a new marker: the server gives it its uid",
            )


def _merge_positions(present: Sequence[_MarkerInFrames], live: Mapping[int, Marker]) -> list[_MarkerInFrames]:
    """Unite what is said of a marker by uid with what is said of the place where it will be: that is one marker."""
    united = [item for item in present if item.uid is not None]
    for item in (item for item in present if item.uid is None):
        same = [i for i, other in enumerate(united) if other.uid is not None and item.at(_final(other, live))]
        if same and not item.anew:
            united[same[0]] = _merge_markers(united[same[0]], item)
        else:
            united.append(item)
    return united


def _final(item: _MarkerInFrames, live: Mapping[int, Marker]) -> Marker:
    """Return where a wanted marker will be."""
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
                "let both say the same",
            )
    return replace(one, fields={**one.fields, **other.fields})


def _match(
    present: Sequence[_MarkerInFrames], absent: Sequence[_MarkerInFrames], live: Mapping[int, Marker]
) -> list[tuple[_MarkerInFrames, Marker]]:
    """Pair each wanted marker with the live one that it is; of several at one place the one needing no change."""
    matched = [(item, live[item.uid]) for item in present if item.uid is not None]
    going = {item.uid for item in absent}
    claimed = {marker.uid for _, marker in matched} | {uid for uid in live if uid in going}
    for item in (item for item in present if item.uid is None and not item.anew):
        there = [marker for uid, marker in live.items() if uid not in claimed and item.at(marker)]
        if there:
            best = min(there, key=lambda marker: (len(marker_misses(item.want, marker)), marker.uid))
            claimed.add(best.uid)
            matched.append((item, best))
    return matched


def _gone(
    absent: Sequence[_MarkerInFrames], present: Sequence[_MarkerInFrames], live: Mapping[int, Marker], claimed: set[int]
) -> dict[int, TaskSource]:
    """Return the markers that the playbook names as absent; what another task wants there is a conflict."""
    gone: dict[int, TaskSource] = {}
    for item in absent:
        there = [marker for uid, marker in live.items() if uid == item.uid or (item.uid is None and item.at(marker))]
        for desired in present:
            at_place = item.at(_final(desired, live)) if item.uid is None else _is_only(desired, there, live)
            if at_place or (item.uid is not None and desired.uid == item.uid):
                raise refuse(
                    f"marker {item.key} is removed here and wanted at {desired.source.place}",
                    item.source,
                    "let one of the two go",
                )
        # One that another task moves away from the place by its uid is not there any more.
        gone |= {marker.uid: item.source for marker in there if marker.uid not in claimed}
    return gone


def _is_only(desired: _MarkerInFrames, there: Sequence[Marker], live: Mapping[int, Marker]) -> bool:
    """Tell whether a marker wanted by its place could only be the one that is removed by its uid."""
    return (
        desired.uid is None
        and not desired.anew
        and any(desired.at(marker) and _only(marker.uid, marker, live) for marker in there)
    )


def _only(uid: int, marker: Marker, live: Mapping[int, Marker]) -> bool:
    place = (marker.frame, plain(track_of(marker)))
    return not any(u != uid and (m.frame, plain(track_of(m))) == place for u, m in live.items())


# Taking over ---------------------------------------------------------------------------------------------------


def _take_over(
    context: PlanContext, new: Sequence[_MarkerInFrames], surplus: Sequence[Marker], free: Mapping[int, Marker]
) -> list[tuple[_MarkerInFrames, Marker]]:
    """Pair new markers with live ones: those made for this very place first, then those that would be removed."""
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


def _change(context: PlanContext, item: _MarkerInFrames, marker: Marker, origin: int, builder: PlanBuilder) -> None:
    if marker_misses(item.want, marker):
        _rewrite(context, item, marker, item.fields, origin, builder, word=f"uid {marker.uid}")


def _move(context: PlanContext, item: _MarkerInFrames, marker: Marker, origin: int, builder: PlanBuilder) -> None:
    fields = dict(item.fields)
    if not same_text(fields.get("title"), marker.fields.get("title")):
        # Another marker's body is reused: what it said must not shine through the new one.
        fields |= {name: "" for name in _DEFAULT_FIELDS if name not in fields and marker.fields.get(name)}
    _rewrite(context, item, marker, fields, origin, builder, word=item.key)


def _rewrite(
    context: PlanContext,
    item: _MarkerInFrames,
    marker: Marker,
    fields: Mapping[str, str],
    origin: int,
    builder: PlanBuilder,
    *,
    word: str,
) -> None:
    versions.require(context.server, versions.Feature.CREATE_MARKER)
    frame = marker.frame if item.frame is None else item.frame
    track = track_of(marker) if item.track is None else item.track
    wire = marker.frame - origin if item.frame is None else to_wire(frame, origin, item.source)
    place: dict[str, Json] = {"uid": marker.uid, "frame": frame, "track": track}
    live: dict[str, Json] = {"uid": marker.uid, "frame": marker.frame, "track": track_of(marker)}
    live |= {name: marker.fields.get(name, "") for name in fields}
    number = builder.change("change", "marker", item.key, before=live, after=place | dict(fields), source=item.source)
    sent = _sent(context, marker, fields)
    request = requests.create_marker(context.path, marker.uid, wire, track, sent)
    want = place | {"frame": wire} | dict(fields)
    builder.send(
        Phase.MARKER_CHANGE, request, [number], Expectation("marker", word, want, preserved=_kept(marker, fields))
    )


def _kept(marker: Marker, fields: Mapping[str, str]) -> dict[str, str]:
    """Return what nobody names of a marker that is written: a server may clear it all the same (field notes).

    It must not be gone. It may say something else: a server may stamp its own user or time on what it changes.
    """
    unnamed = ((name, text) for name, text in marker.fields.items() if name not in fields and name not in _RESERVED)
    return {name: text for name, text in unnamed if marker_misses({name: ""}, marker)}


def _sent(context: PlanContext, marker: Marker, fields: Mapping[str, str]) -> dict[str, str]:
    """Return the fields that a change sends: unsent ones may or may not be kept by the server (field notes)."""
    if context.server.dialect.marker_update == "full":
        known = {name: value for name, value in marker.fields.items() if name not in _RESERVED}
        return known | dict(fields)
    return {name: value for name, value in fields.items() if not same_value(name, value, marker.fields.get(name))}


def _create(
    context: PlanContext, item: _MarkerInFrames, origin: int, staying: tuple[int, ...], builder: PlanBuilder
) -> None:
    """Make a new marker; the server may well give it the uid of one that was deleted just before."""
    versions.require(context.server, versions.Feature.CREATE_MARKER)
    wire = to_wire(item.frame or 0, origin, item.source)
    number = builder.change("add", "marker", item.key, before=None, after=item.want, source=item.source)
    request = requests.create_marker(context.path, requests.NEW_MARKER, wire, item.track, item.fields)
    expect = Expectation("marker", item.key, item.want | {"frame": wire}, not_uids=staying)
    builder.send(Phase.MARKER_CREATE, request, [number], expect)


def _delete(
    context: PlanContext,
    live: Mapping[int, Marker],
    gone: Mapping[int, TaskSource],
    builder: PlanBuilder,
    *,
    exactly: bool = False,
) -> None:
    for uid, source in gone.items():
        versions.require(context.server, versions.Feature.DELETE_MARKER)
        shown: Json = show_marker(live[uid])
        number = builder.change(
            "delete", "marker", f"uid {uid}", before=shown, after=None, source=source, exactly=exactly
        )
        request = requests.delete_marker(context.path, uid)
        expect = Expectation("marker", f"uid {uid}", None, not_uids=tuple(live))
        builder.send(Phase.MARKER_DELETE, request, [number], expect)
