"""Markers: the uid is the identity; without one, the live marker of the same track and position.

No other marker is ever moved or reused, but one that a run made and others have moved: what ``exactly`` removes is
deleted, and what is new is created.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from sys import intern
from typing import Annotated, Any, ClassVar, NamedTuple

from msgspec import Struct, structs
from pydantic import TypeAdapter

from msauto.aspects import arguments
from msauto.aspects.aspect import Live, Shown, TimelineItem, TimelinePlace, frames_of, part_of
from msauto.aspects.comparison import (
    Attributes,
    Item,
    Items,
    mapping,
    same_value,
    text_of,
    track_of,
)
from msauto.aspects.list_aspect import ListAspect, by_key, each_of, unread_items
from msauto.aspects.matching import ListItem, Matching
from msauto.aspects.merging import Merging, exactly_of
from msauto.aspects.plan_builder import Phase, PlanContext, refuse
from msauto.aspects.positions import position_at, to_frames, to_point, to_wire
from msauto.documents import key_rules as rule
from msauto.documents.document import SourceNode
from msauto.documents.strict_model import Model, key, need
from msauto.documents.value_types import (
    IF_MAP,
    Else,
    Identifier,
    Opt,
    Pos,
    Read,
    Text,
    Then,
    Value,
    invalid,
    reportable,
)
from msauto.documents.writer import FlowStyle
from msauto.errors import Problem
from msauto.model import fields as registry
from msauto.model import requests
from msauto.model.desired import ABSENT, Absent, DesiredList, Position, Sourced, TaskSource
from msauto.model.identity import plain
from msauto.model.live import Asset, AssetSnapshot, Marker
from msauto.model.plan import Basis, Change, Target
from msauto.model.ports import LiveTarget
from msauto.model.server import Dialect
from msauto.model.snapshot import TWINS, UNREAD, Json, Part, Snapshot
from msauto.primitives.decimals import read_whole

_PLACE = ("frame", "track")
_START, _END = "Profanity Start", "Profanity End"

# What a playbook may write ------------------------------------------------------------------------------------------

_MARKER_KEYS = frozenset({*registry.names(registry.MARKER_ATTRIBUTES), "track"})
_MARKER_PARAMETERS = frozenset({"uid", "frame", "pos", "command"})
_RESERVED = _MARKER_PARAMETERS | {"track", TWINS, UNREAD}


def _attribute_name(value: Any) -> str:
    """Read the name of a further attribute of a marker: none that the command or the marker has already."""
    name = reportable(value) if isinstance(value, str) else ""
    if not name.strip() or name != name.strip():
        why = f"{str(value)[:60]!r} is not a valid attribute name"
        raise invalid(why, "use a text without leading or trailing spaces")
    if name.casefold() in _MARKER_KEYS:
        remedy = f"write it next to attributes, as {name.casefold()}: …"
        raise invalid(f"{name} cannot be an additional attribute", remedy)
    if name.casefold() in _MARKER_PARAMETERS:
        raise invalid(f"{name} is a parameter of the command", "rename the attribute")
    return name


_ATTRIBUTE_NAMES = {
    "pattern": r"^\S(.*\S)?$",
    "not": {"enum": sorted(_MARKER_KEYS | _MARKER_PARAMETERS)},
}
AttributeName = Annotated[str, Read(_attribute_name, type="string", **_ATTRIBUTE_NAMES)]


@arguments.with_attributes(registry.MARKER_ATTRIBUTES)
class MarkerKeys(Model):
    """What a marker is and has."""

    uid: Opt[Identifier] = key(
        "the marker's identifier; without it, the marker of the same track and position"
    )
    at: Opt[Pos] = key("its position: a time code or frames")
    track: Opt[registry.Track] = key("its type")


class MarkerArgs(MarkerKeys):
    """A key frame marker, identified by its uid, or by its position and track."""

    rules: ClassVar = (
        rule.any_of(
            (("at",), ("uid",)),
            "the marker has neither at nor uid",
            "add at: a time code, or uid: of an existing one",
        ),
    )

    attributes: Opt[dict[AttributeName, Value[Text]]] = key(
        "further attributes by name, as texts; an empty one clears"
    )
    state: Opt[arguments.State] = key("present (default) or absent: not there")


class MarkersExactly(Model):
    """The types of markers of which the list is complete."""

    tracks: Value[list[Value[registry.Track]]] = need("only markers of these types are removed")


# Desired state -----------------------------------------------------------------------------------------------------


class DesiredMarker(Struct, frozen=True, gc=False):
    """A marker. ``fields``: title, comment, user, keywords, rating as texts, only those named.

    ``keys_before`` (undo): the run deleted it; it is created again, beside the live markers of these uids.
    """

    uid: int | Absent = ABSENT
    at: Position | Absent = ABSENT
    track: str | Absent = ABSENT
    fields: Mapping[str, str] = {}
    present: bool = True
    keys_before: frozenset[str] | None = None


class DesiredMarkers(DesiredList[DesiredMarker], frozen=True, gc=False):
    """Markers; ``tracks`` narrows ``exactly`` to those of these tracks."""

    tracks: frozenset[str] | None = None


_NAME: TypeAdapter[str] = TypeAdapter(AttributeName)


class Markers(ListAspect):
    """The markers of a clip, by their uids."""

    name = "marker"
    called = "marker"
    key_called = "uid"
    prefix = "uid "
    positions = ("frame",)
    moves = (frozenset({"frame", "user"}),)
    dialect = ("marker_update",)
    keys: ClassVar = {"markers": arguments.asset_key(list[Value[MarkerArgs]], "key frame markers")}
    exactly: ClassVar = (
        "markers",
        arguments.asset_key(
            Annotated[Then[MarkersExactly] | Else[bool], IF_MAP],
            "remove other markers; {tracks: [...]} limits it to these types",
        ),
    )

    # Playbooks -------------------------------------------------------------------------------------------------------

    def check(self, args: Any, node: SourceNode) -> Iterator[Problem]:
        """Yield what is wrong with a list of markers."""
        markers, here = arguments.known_items(args.markers, MarkerArgs), node.child("markers")
        yield from arguments.duplicates(markers, here, lambda item: item.uid, "uid", "marker uid")
        by_place = []
        for index, item in markers:
            if item.uid is None and item.at is not None:
                by_place.append((index, item))
        what = "marker with this track and position"
        yield from arguments.duplicates(
            by_place, here, lambda item: (item.track, item.at), "at", what
        )
        narrowed = getattr(args.exactly, "markers", None)
        if isinstance(narrowed, MarkersExactly) and not narrowed.tracks:
            here = node.child("exactly", "markers", "tracks")
            yield here.problem("tracks is empty, so no marker can be removed", "name a track")

    def declare(self, task: arguments.TaskArguments) -> DesiredMarkers | None:
        """Return what a task declares of markers."""

        def marker(item: MarkerArgs) -> DesiredMarker:
            return DesiredMarker(
                uid=arguments.or_absent(item.uid),
                at=task.position(item.at),
                track=arguments.or_absent(item.track),
                fields=arguments.named_texts(item, registry.MARKER_ATTRIBUTES)
                | (item.attributes or {}),
                present=item.state != "absent",
            )

        items = task.each("markers", marker)
        exactly = task.complete("markers")
        if not items and not exactly:
            return None
        tracks = None
        narrowed = getattr(task.args.exactly, "markers", None)
        if isinstance(narrowed, MarkersExactly):
            tracks = frozenset(narrowed.tracks)
        return DesiredMarkers(items, exactly, tracks)

    def merge(self, merging: Merging, parts: Sequence[DesiredMarkers]) -> DesiredMarkers:
        """Merge the markers of several tasks."""

        def identity(value: DesiredMarker) -> Hashable:
            if value.uid is not ABSENT:
                return value.uid, value.keys_before
            return _track(value), merging.comparable(value.at)

        def called(value: DesiredMarker) -> str:
            if value.uid is not ABSENT:
                return f"marker {value.uid}"
            return f"the marker at {value.at} ({_track(value)})"

        def covers(part: DesiredMarkers, value: DesiredMarker) -> bool:
            """Return whether a marker has one of the tracks: its own, that of its uid, General."""
            if part.tracks is None:
                return True
            if value.track is ABSENT and merging.asset is not None:
                for live in merging.asset.markers:
                    if live.uid == value.uid:
                        return track_of(live) in part.tracks
            return _track(value) in part.tracks

        items = merging.items(parts, identity, called, ("at", "track"), covers)
        tracks: set[str] = set()
        is_narrowed = True
        exactly = exactly_of(parts)
        for part in parts:
            if part.exactly:
                tracks.update(part.tracks or ())
                is_narrowed = is_narrowed and part.tracks is not None
        if exactly and is_narrowed:
            return DesiredMarkers(items, exactly, frozenset(tracks))
        return DesiredMarkers(items, exactly)

    def export(self, snapshot: AssetSnapshot, dialect: Dialect) -> arguments.ExportedPart:
        """Return the live markers as tasks write them: by place, or by uid where that is not valid or unique."""
        part = arguments.ExportedPart()
        asset = snapshot.asset
        twins = arguments.repeated(marker.uid for marker in asset.markers)
        for uid in twins:
            part.leave_out(f"several markers have the uid {uid}: none of them can be named")
        for _, shown in unread_items(asset, self.name):
            part.leave_out(f"a marker is left out: {shown[UNREAD]}")
        places = Counter((marker.frame, track_of(marker)) for marker in asset.markers)
        for marker in sorted(
            asset.markers, key=lambda marker: (marker.frame, track_of(marker), marker.uid)
        ):
            if marker.uid not in twins:
                is_alone = places[marker.frame, track_of(marker)] == 1
                _export(part, marker, asset, is_alone=is_alone)
        return part

    # Comparing -------------------------------------------------------------------------------------------------------

    def things(self, live: LiveTarget) -> Part | None:
        """Return the markers; a track is as the interface spells it."""
        if live.asset is None:
            return None
        items: list[tuple[str, Item]] = []
        for marker in live.asset.markers:
            item: Item = {"frame": marker.frame, "track": track_of(marker)}
            for name, text in marker.fields.items():
                if name not in _RESERVED:
                    item[name] = text
            items.append((str(marker.uid), item))
        for uid, shown in unread_items(live.asset, self.name):
            track = registry.track_named(text_of(shown.get("track")))
            items.append((uid, {**shown, "track": track}))
        return by_key(items)

    def place(self, value: Json) -> Hashable:
        """Return frame and track."""
        at = mapping(value)
        return at.get("frame"), at.get("track")

    def same(self, name: str, one: Json, other: Json) -> bool:
        """Compare texts; a rating without a number counts as absent."""
        texts = text_of(one), text_of(other)
        has_no_number = name in registry.NUMBERS and not any(map(read_whole, texts))
        return has_no_number or same_value(name, *texts)

    def covered(self, desired: DesiredMarkers) -> Sequence[Item]:
        """Return the tracks of which the list is complete."""
        if desired.tracks is None:
            return ({},)
        return [{"track": track} for track in sorted(desired.tracks)]

    # Planning --------------------------------------------------------------------------------------------------------

    def about_twins(
        self, context: PlanContext, key: str, count: int, named: ListItem | None
    ) -> tuple[bool, str]:
        """Return whether a task consents to remove all markers of one uid; what replaces them cannot have that uid."""
        consents, remedy = super().about_twins(context, key, count, named)
        return consents and not (named is not None and named.present), remedy

    def resolve(
        self, context: PlanContext, sourced: Sourced[DesiredMarker], live: Items
    ) -> ListItem:
        """Return a marker in frames; its handle is the place that it will have, of one to be removed that it has."""
        value = sourced.value
        source = sourced.source
        key = self._key(context, sourced, live)
        named: Item = {}
        if value.at is not ABSENT:
            # A marker to be removed may be beyond the end of a clip that became shorter.
            find = to_point if value.present else to_frames
            frame = find(value.at, context.asset, source)
            named["frame"] = frame
        if value.track is not ABSENT or key is None:
            named["track"] = _track(value)
        with_live = live.get(key or "", {})
        if value.present or key is None:
            with_live = {**with_live, **named}
        label = f"{self.prefix}{key}"
        if key is None:
            label = f"{named['track']}@{named['frame']}"
        if value.present and value.at is not ABSENT:
            what = f"marker {label}"
            if value.uid is not ABSENT:
                what = f"marker uid {value.uid} (frame {frame})"
            context.builder.placed.append((what, frame, frame, source))
        attributes = {**named, **value.fields}
        return ListItem(
            key,
            intern(label),
            attributes,
            source,
            (self.place(with_live),),
            value.present,
            value.keys_before,
        )

    def _key(
        self, context: PlanContext, sourced: Sourced[DesiredMarker], live: Items
    ) -> str | None:
        """Return the uid of the live marker that a task names; ``None`` where it names a place."""
        value = sourced.value
        source = sourced.source
        if value.uid is ABSENT or value.keys_before is not None:
            if value.at is ABSENT:
                raise refuse("a marker needs its position or its uid", source, "name `at` or `uid`")
            return None
        key = str(value.uid)
        is_unknown = key not in live and f"{self.name}:{key}" not in context.required_live
        if value.present and is_unknown:
            raise refuse(
                f"the asset has no marker of uid {key} (it has: {', '.join(live) or 'none'})",
                source,
                "leave the uid out to make a new marker: the server gives it its uid",
            )
        return key

    def unite(self, items: Sequence[ListItem]) -> Sequence[ListItem]:
        """Merge what tasks name by uid with what they name by the place where that marker will be."""
        united = sorted(items, key=lambda item: item.key is None)
        by_uid: dict[tuple[Hashable, ...], int] = {}
        for index, item in enumerate(united):
            if item.present and item.key is not None:
                by_uid.setdefault(item.handles, index)
        for item in items:
            if item.is_by_place and item.handles in by_uid:
                index = by_uid[item.handles]
                united[index] = self._united(united[index], item)
                united.remove(item)
        return united

    def _united(self, by_uid: ListItem, by_place: ListItem) -> ListItem:
        """Return a marker that one task names by its uid, with what another names of it by its place."""
        named = by_uid.named
        texts = _texts(by_place.named)
        for name, text in texts.items():
            if name in named and not self.same(name, named[name], text):
                raise refuse(
                    f"{by_uid.label} and {by_place.label} are one marker: two tasks want different values for its "
                    f"{name}: {named[name]!r} ({by_uid.source.place}) and {text!r} ({by_place.source.place})",
                    by_place.source,
                    "use one value in both",
                )
        return structs.replace(by_uid, named={**named, **texts})

    def create(self, context: PlanContext, item: ListItem) -> None:
        """Create a marker; the server may give it the uid of one that was deleted just before."""
        requests.require(context.server, requests.Feature.CREATE_MARKER)
        builder = context.builder
        source = item.source
        named = dict(item.named)
        texts = _texts(named)
        wire = to_wire(_frame_of(named), context.origin, source)
        track = str(named["track"])
        number = builder.change("add", self.name, item.label, None, named, source)
        request = requests.create_marker(context.path, requests.NEW_MARKER, wire, track, texts)
        effect = self.effect(self.new_key(context), None, named)
        builder.send(Phase.MARKER_CREATE, request, [number], effect)
        what = f"the title of marker {item.label!r}"
        builder.warn_of_blanks(what, "", texts.get("title", ""), source)

    def change(
        self, context: PlanContext, item: ListItem, key: str, live: Item, basis: Basis
    ) -> None:
        """Change a marker; what no task names stays as it is.

        Texts that are not sent may or may not be kept by the server (`marker_update`: dialect, «Keys»).
        """
        requests.require(context.server, requests.Feature.CREATE_MARKER)
        builder = context.builder
        source = item.source
        texts = _texts(item.named)
        before: Item = {"uid": int(key), "frame": live["frame"], "track": live["track"]}
        after = {**before, **item.named}
        shown = before | {name: live.get(name, "") for name in texts}
        number = builder.change("change", self.name, item.label, shown, after, source, basis=basis)
        frame = _frame_of(after)
        wire = frame - context.origin
        if "frame" in item.named:
            wire = to_wire(frame, context.origin, source)
        sent: dict[str, str] = {}
        if context.server.dialect.marker_update == "full":
            sent = _texts(live) | texts
        else:
            for name, text in texts.items():
                if not same_value(name, text, text_of(live.get(name))):
                    sent[name] = text
        track = after["track"]
        request = requests.create_marker(context.path, int(key), wire, str(track), sent)
        named: Item = {"frame": frame, "track": track, **texts}
        builder.send(Phase.MARKER_CHANGE, request, [number], self.effect(key, live, named))
        what = f"the title of marker {item.label!r}"
        builder.warn_of_blanks(what, text_of(live.get("title")), texts.get("title", ""), source)

    def delete(
        self, context: PlanContext, key: str, live: Item, source: TaskSource, *, exactly: bool
    ) -> None:
        """Delete a marker; of those that share a uid, each takes a request."""
        requests.require(context.server, requests.Feature.DELETE_MARKER)
        builder = context.builder
        uid = int(key)
        for marker in each_of(live):
            shown: Item = {"uid": uid}
            for name, value in marker.items():
                if value != "":
                    shown[name] = value
            number = builder.change(
                "delete", self.name, f"uid {key}", shown, None, source, losses=int(exactly)
            )
            request = requests.delete_marker(context.path, uid)
            builder.send(Phase.MARKER_DELETE, request, [number], self.effect(key, live, None))

    # Undo ------------------------------------------------------------------------------------------------------------

    def former(
        self, key: str, value: Attributes, keys_before: frozenset[str] | None
    ) -> DesiredMarker:
        """Return a marker as it was; the server gives one that the run deleted another uid."""
        texts = _texts(value)
        if keys_before is not None:
            texts = {name: text for name, text in texts.items() if text}
        return DesiredMarker(
            int(key),
            position_at(value["frame"]),
            str(value["track"]),
            texts,
            keys_before=keys_before,
        )

    def absent(self, key: str) -> DesiredMarker:
        """Return the marker of a uid as one to be removed."""
        return DesiredMarker(uid=int(key), present=False)

    def plan(self, context: PlanContext, part: DesiredMarkers) -> None:
        """Make the markers as desired."""
        super().plan(context, part)
        context.builder.checks.append(self._unpaired)

    def write(self, context: PlanContext, matching: Matching) -> None:
        """Add the changes and requests, and warn of new markers that others may only have moved."""
        others: dict[tuple[str, str], list[tuple[int, str]]] = {}
        for uid in matching.others:
            if matching.created and uid not in matching.surplus:
                marker = matching.live[uid]
                alike = others.setdefault(_called(marker), [])
                alike.append((_frame_of(marker), uid))
        for alike in others.values():
            alike.sort()
        if others:
            for item in matching.created:
                near = others.get(_called(item.named), ())
                self._warn_of_moved(context, item, near)
        super().write(context, matching)

    def _warn_of_moved(
        self, context: PlanContext, item: ListItem, alike: Sequence[tuple[int, str]]
    ) -> None:
        """Warn of a new marker near a live one of its track and title; ``alike`` are the frames and uids of such."""
        rate = context.asset.rate
        if not rate or not item.named.get("title"):
            return
        frame = _frame_of(item.named)
        at = bisect(alike, (frame, ""))
        for other, uid in alike[max(0, at - 1) : at + 1]:
            if abs(other - frame) <= 10 * rate:
                context.warn(
                    f"marker {item.label} is new, and uid {uid} at frame {other} has its "
                    f"track and title ({item.source.place})\n"
                    f"if others have moved that one, name `uid: {uid}` to move it back"
                )
                return

    def _unpaired(self, context: PlanContext, after: Callable[[], Snapshot]) -> Iterator[str]:
        """Yield the profanity starts without an end, and ends without a start, that the run makes."""
        touched: list[Change] = []
        has_profanity = False
        for change in context.builder.changes:
            if change.aspect == self.name:
                touched.append(change)
                has_profanity = (
                    has_profanity or _is_profanity(change.before) or _is_profanity(change.after)
                )
        if not has_profanity:
            return
        before = {*_unpaired(part_of(self, context.live))}
        for mark in _unpaired(after()[self.name]):
            if mark not in before:
                other = _END if mark.track == _START else _START
                yield f"{mark.track} at frame {mark.frame} has no {other} ({touched[0].source.place})"

    def shown(self, change: Change) -> Shown:
        """Return a change by its track, and its uid if it has one: its position is a value."""
        before = dict(mapping(change.before))
        after = dict(mapping(change.after))
        was = before.get("track")
        now = after.get("track")
        track = str(now or was or "")
        if not track:
            label = change.key
        elif change.key.startswith("uid "):
            label = f"{track} {change.key}"
        else:
            label = track
        if change.action != "change" or was == now:  # the label shows it
            before.pop("track", None)
            after.pop("track", None)
            change = structs.replace(
                change, before=change.before and before, after=change.after and after
            )
        return Shown(label, track, change)

    def timeline(self, change: Change, target: Target, live: Live) -> Iterator[TimelineItem]:
        """Yield the marker before and after, with the title that it keeps."""
        before = mapping(change.before)
        if "uid" in before:
            uid = str(before["uid"])
            kept = mapping(live.get((self.name, uid)))
            change = structs.replace(change, key=f"uid {uid}", before={**kept, **before})
        yield from super().timeline(change, target, live)

    def timeline_place(self, value: Attributes) -> TimelinePlace | None:
        """Return its track and frame."""
        frame = frames_of(value.get("frame"))
        if frame is None:
            return None
        track = str(value.get("track") or registry.DEFAULT_TRACK)
        return TimelinePlace(track, frame, 0, text_of(value.get("title")))


def _track(marker: DesiredMarker) -> str:
    """Return the track that a task names, or the one of a marker without."""
    return registry.DEFAULT_TRACK if marker.track is ABSENT else marker.track


def _frame_of(value: Attributes) -> int:
    return int(str(value["frame"]))


def _texts(value: Attributes) -> dict[str, str]:
    """Return all attributes but its place."""
    texts = {}
    for name, text in value.items():
        if isinstance(text, str) and name not in _PLACE:
            texts[name] = text
    return texts


def _is_profanity(marker: Json) -> bool:
    return isinstance(marker, dict) and marker.get("track") in (_START, _END)


def _called(value: Attributes) -> tuple[str, str]:
    """Return track and title, as they are compared."""
    return text_of(value.get("track")), plain(text_of(value.get("title")))


class _ProfanityMark(NamedTuple):
    frame: int
    track: str
    uid: str


def _unpaired(part: Part) -> Iterator[_ProfanityMark]:
    """Yield the starts that no end follows before the next start, and the ends that follow no start."""
    marks = []
    for uid, value in part.items():
        for marker in each_of(value):
            if _is_profanity(marker) and "frame" in marker:
                marks.append(_ProfanityMark(_frame_of(marker), str(marker["track"]), uid))
    marks.sort(key=lambda mark: (mark.frame, mark.track == _START))
    open_start: _ProfanityMark | None = None
    for mark in marks:
        if mark.track != _START:
            if open_start is None:
                yield mark
            open_start = None
            continue
        if open_start is not None:
            yield open_start
        open_start = mark
    if open_start is not None:
        yield open_start


def _export(part: arguments.ExportedPart, marker: Marker, asset: Asset, *, is_alone: bool) -> None:
    """Add a marker to an export; ``is_alone``: no other one has its track and position."""
    uid = marker.uid
    frame = marker.frame
    track = track_of(marker)
    is_inside = frame >= 0 and (asset.frames is None or frame < asset.frames)
    is_known = track in registry.TRACKS
    sourced: dict[str, Any] = {}
    notes: list[str] = []
    if not (is_inside and is_known and is_alone):
        if uid < 0:
            part.leave_out(f"marker {uid} at frame {frame} is left out: its uid is negative")
            return
        sourced["uid"] = uid
    if is_inside:
        sourced["at"] = arguments.exported_position(frame, asset.rate)
    else:
        notes.append(f"marker {uid} lies outside the clip, at frame {frame}")
    if is_known:
        sourced["track"] = track
    else:
        notes.append(f"track of marker {uid}, which no task can set: {marker.track}")
    part.add(FlowStyle(sourced | _exported_texts(marker, notes)), notes)


def _exported_texts(marker: Marker, notes: list[str]) -> dict[str, Any]:
    """Return the attributes of a marker besides its place; ``notes`` takes what no task can write."""
    sourced: dict[str, Any] = {}
    further: dict[str, str] = {}
    for name, text in marker.fields.items():
        if not text or name in _MARKER_KEYS:
            continue
        if arguments.is_valid(_NAME, name):
            further[name] = text
        else:
            notes.append(f"attribute of marker {marker.uid}, which no task can name: {name!r}")
    for attribute in registry.MARKER_ATTRIBUTES:
        text = marker.fields.get(attribute.name, "")
        value = read_whole(text) if attribute.kind == "integer" else text
        if value:
            sourced[attribute.name] = value
        elif value is None and text.strip():
            notes.append(
                f"{attribute.name} of marker {marker.uid}, which no task can set: {text.strip()[:80]}"
            )
    if further:
        sourced["attributes"] = further
    return sourced
