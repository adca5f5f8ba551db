"""Markers: the uid is the identity; without one, the live marker of the same track and position.

No other marker is ever moved or reused, but one that a run made and others have moved: what ``exactly`` removes is
deleted, and what is new is created.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from sys import intern
from typing import Annotated, Any, ClassVar

from msgspec import Struct, field, structs
from pydantic import TypeAdapter

from msauto.aspects import arguments
from msauto.aspects.aspect import Live, Shown, TimelineItem, TimelinePlace, frames_of, part_of
from msauto.aspects.comparison import Attributes, mapping, same_value, text_of, track_of
from msauto.aspects.list_aspect import Item, ListAspect, by_key, each_of, unread_items
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
from msauto.model.live import AssetSnapshot, Marker
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


_ATTRIBUTE_NAMES = {"pattern": r"^\S(.*\S)?$", "not": {"enum": sorted(_MARKER_KEYS | _MARKER_PARAMETERS)}}
AttributeName = Annotated[str, Read(_attribute_name, type="string", **_ATTRIBUTE_NAMES)]


@arguments.with_attributes(registry.MARKER_ATTRIBUTES)
class MarkerKeys(Model):
    """What a marker is and has."""

    uid: Opt[Identifier] = key("the marker's identifier; without it, the marker of the same track and position")
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

    attributes: Opt[dict[AttributeName, Value[Text]]] = key("further attributes by name, as texts; an empty one clears")
    state: Opt[arguments.State] = key("present (default) or absent: not there")


class MarkersExactly(Model):
    """The types of markers of which the list is complete."""

    tracks: Value[list[Value[registry.Track]]] = need("only markers of these types are removed")


# Desired state -----------------------------------------------------------------------------------------------------


class DesiredMarker(Struct, frozen=True, gc=False):
    """A marker. ``fields``: title, comment, user, keywords, rating as texts, only those named.

    ``besides`` (undo): the run deleted it; it is created again, beside the live markers of these uids.
    """

    uid: int | Absent = ABSENT
    at: Position | Absent = ABSENT
    track: str | Absent = ABSENT
    fields: Mapping[str, str] = field(default_factory=dict)
    present: bool = True
    besides: frozenset[str] | None = None


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

    def check(self, args: Any, node: SourceNode, dialect: Dialect | None = None) -> Iterator[Problem]:
        """Yield what is wrong with a list of markers."""
        if dialect is not None:
            return
        markers, here = arguments.known_items(args.markers, MarkerArgs), node.child("markers")
        yield from arguments.duplicates(markers, here, lambda item: item.uid, "uid", "marker uid")
        without = [(index, item) for index, item in markers if item.uid is None and item.at is not None]
        what = "marker with this track and position"
        yield from arguments.duplicates(without, here, lambda item: (item.track, item.at), "at", what)
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
                fields=arguments.named_texts(item, registry.MARKER_ATTRIBUTES) | (item.attributes or {}),
                present=item.state != "absent",
            )

        items, exactly = task.each("markers", marker), task.complete("markers")
        narrowed = getattr(task.args.exactly, "markers", None)
        tracks = frozenset(narrowed.tracks) if isinstance(narrowed, MarkersExactly) else None
        return DesiredMarkers(items, exactly, tracks) if items or exactly else None

    def merge(self, merging: Merging, parts: Sequence[DesiredMarkers]) -> DesiredMarkers:
        """Merge the markers of several tasks."""

        def identity(value: DesiredMarker) -> Hashable:
            if value.uid is not ABSENT:
                return value.uid, value.besides
            return (registry.DEFAULT_TRACK if value.track is ABSENT else value.track, merging.comparable(value.at))

        def called(value: DesiredMarker) -> str:
            if value.uid is not ABSENT:
                return f"marker {value.uid}"
            return f"the marker at {value.at} ({registry.DEFAULT_TRACK if value.track is ABSENT else value.track})"

        def covers(one: DesiredMarkers, value: DesiredMarker) -> bool:
            """Return whether a marker has one of the tracks: its own, that of its uid, General."""
            live = (m for m in (merging.asset.markers if merging.asset else ()) if m.uid == value.uid)
            track = next(map(track_of, live), registry.DEFAULT_TRACK) if value.track is ABSENT else value.track
            return one.tracks is None or track in one.tracks

        narrowed = [each.tracks for each in parts if each.exactly]
        tracks = frozenset[str]().union(*(each for each in narrowed if each is not None))
        return DesiredMarkers(
            merging.items(parts, identity, called, ("at", "track"), covers),
            exactly_of(parts),
            tracks if narrowed and None not in narrowed else None,
        )

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
        single = [marker for marker in asset.markers if marker.uid not in twins]
        for marker in sorted(single, key=lambda marker: (marker.frame, track_of(marker), marker.uid)):
            frame, track = marker.frame, track_of(marker)
            inside, known = frame >= 0 and (asset.frames is None or frame < asset.frames), track in registry.TRACKS
            by_uid = not inside or not known or places[marker.frame, track] > 1
            if by_uid and marker.uid < 0:
                part.leave_out(f"marker {marker.uid} at frame {frame} is left out: its uid is negative")
                continue
            sourced: dict[str, Any] = {"uid": marker.uid} if by_uid else {}
            sourced |= {"at": arguments.exported_position(frame, asset.rate)} if inside else {}
            sourced |= {"track": track} if known else {}
            notes = [] if inside else [f"marker {marker.uid} lies outside the clip, at frame {frame}"]
            notes += [] if known else [f"track of marker {marker.uid}, which no task can set: {marker.track}"]
            part.add(FlowStyle(sourced | _exported_texts(marker, notes)), notes)
        return part

    # Comparing -------------------------------------------------------------------------------------------------------

    def things(self, live: LiveTarget) -> Part | None:
        """Return the markers; a track is as the interface spells it."""
        items: list[tuple[str, Item]] = []
        for marker in live.asset.markers if live.asset else ():
            texts = {name: text for name, text in marker.fields.items() if name not in _RESERVED}
            items.append((str(marker.uid), {"frame": marker.frame, "track": track_of(marker), **texts}))
        for uid, shown in unread_items(live.asset, self.name):
            items.append((uid, {**shown, "track": registry.track_named(text_of(shown.get("track")))}))
        return by_key(items) if live.asset else None

    def place(self, value: Json) -> Hashable:
        """Return frame and track."""
        at = mapping(value)
        return at.get("frame"), at.get("track")

    def same(self, name: str, one: Json, other: Json) -> bool:
        """Compare texts; a rating without a number counts as absent."""
        if one == other:
            return True
        texts = text_of(one), text_of(other)
        return (name in registry.NUMBERS and not any(map(read_whole, texts))) or same_value(name, *texts)

    def covered(self, desired: DesiredMarkers) -> Sequence[Item]:
        """Return the tracks of which the list is complete."""
        return ({},) if desired.tracks is None else [{"track": track} for track in sorted(desired.tracks)]

    # Planning --------------------------------------------------------------------------------------------------------

    def about_twins(self, context: PlanContext, key: str, count: int, named: ListItem | None) -> tuple[bool, str]:
        """Return whether a task consents to remove all markers of one uid; what replaces them cannot have that uid."""
        consents, remedy = super().about_twins(context, key, count, named)
        return consents and not (named is not None and named.present), remedy

    def resolve(self, context: PlanContext, sourced: Sourced[DesiredMarker], live: Mapping[str, Item]) -> ListItem:
        """Return a marker in frames; its handle is the place that it will have, of one to be removed that it has."""
        value, source = sourced.value, sourced.source
        key = None if value.uid is ABSENT or value.besides is not None else str(value.uid)
        if key is None and value.at is ABSENT:
            raise refuse("a marker needs its position or its uid", source, "name `at` or `uid`")
        if key is not None and key not in live and value.present and f"{self.name}:{key}" not in context.still:
            raise refuse(
                f"the asset has no marker of uid {key} (it has: {', '.join(live) or 'none'})",
                source,
                "leave the uid out to make a new marker: the server gives it its uid",
            )
        named: dict[str, Json] = {}
        if value.at is not ABSENT:
            # A marker to be removed may be beyond the end of a clip that became shorter.
            find = to_point if value.present else to_frames
            named["frame"] = frame = find(value.at, context.asset, source)
        if value.track is not ABSENT or key is None:
            named["track"] = registry.DEFAULT_TRACK if value.track is ABSENT else value.track
        there = live.get(key or "", {})
        place = self.place({**there, **named} if value.present or key is None else there)
        label = f"{self.prefix}{key}" if key is not None else f"{named['track']}@{named['frame']}"
        if value.present and value.at is not ABSENT:
            what = f"marker {label}" if value.uid is ABSENT else f"marker uid {value.uid} (frame {frame})"
            context.builder.placed.append((what, frame, frame, source))
        return ListItem(key, intern(label), {**named, **value.fields}, source, (place,), value.present, value.besides)

    def unite(self, items: Sequence[ListItem]) -> Sequence[ListItem]:
        """Merge what tasks name by uid with what they name by the place where that marker will be."""
        united = sorted(items, key=lambda item: item.key is None)
        by_uid = {
            item.handles: i for i, item in reversed([*enumerate(united)]) if item.present and item.key is not None
        }
        for item in items if by_uid else ():
            index = by_uid.get(item.handles) if item.present and item.key is None and item.besides is None else None
            if index is None:
                continue
            one, fields = united[index], _texts(item.named)
            for name, value in fields.items():
                if name in one.named and not self.same(name, one.named[name], value):
                    raise refuse(
                        f"{one.label} and {item.label} are one marker: two tasks want different values for its {name}: "
                        f"{one.named[name]!r} ({one.source.place}) and {value!r} ({item.source.place})",
                        item.source,
                        "use one value in both",
                    )
            united[index] = structs.replace(one, named={**one.named, **fields})
            united.remove(item)
        return united

    def create(self, context: PlanContext, item: ListItem) -> None:
        """Create a marker; the server may give it the uid of one that was deleted just before."""
        requests.require(context.server, requests.Feature.CREATE_MARKER)
        named, texts = dict(item.named), _texts(item.named)
        wire = to_wire(int(str(named["frame"])), context.origin, item.source)
        number = context.builder.change("add", self.name, item.label, None, named, item.source)
        request = requests.create_marker(context.path, requests.NEW_MARKER, wire, str(named["track"]), texts)
        effect = self.effect(self.new_key(context), None, named)
        context.builder.send(Phase.MARKER_CREATE, request, [number], effect)
        context.builder.warn_of_blanks(f"the title of marker {item.label!r}", "", texts.get("title", ""), item.source)

    def change(self, context: PlanContext, item: ListItem, key: str, live: Item, basis: Basis) -> None:
        """Change a marker; what no task names stays as it is.

        Texts that are not sent may or may not be kept by the server (`marker_update`: dialect, «Keys»).
        """
        requests.require(context.server, requests.Feature.CREATE_MARKER)
        texts = _texts(item.named)
        before: Item = {"uid": int(key), "frame": live["frame"], "track": live["track"]}
        after = {**before, **item.named}
        shown = before | {name: live.get(name, "") for name in texts}
        number = context.builder.change("change", self.name, item.label, shown, after, item.source, basis=basis)
        frame = int(str(after["frame"]))
        wire = frame - context.origin
        if "frame" in item.named:
            wire = to_wire(frame, context.origin, item.source)
        if context.server.dialect.marker_update == "full":
            sent = _texts(live) | texts
        else:
            sent = {name: text for name, text in texts.items() if not same_value(name, text, text_of(live.get(name)))}
        request = requests.create_marker(context.path, int(key), wire, str(after["track"]), sent)
        named: Item = {"frame": frame, "track": after["track"], **texts}
        effect = self.effect(key, live, named)
        context.builder.send(Phase.MARKER_CHANGE, request, [number], effect)
        was, now = text_of(live.get("title")), texts.get("title", "")
        context.builder.warn_of_blanks(f"the title of marker {item.label!r}", was, now, item.source)

    def delete(self, context: PlanContext, key: str, live: Item, source: TaskSource, *, exactly: bool) -> None:
        """Delete a marker; of those that share a uid, each takes a request."""
        requests.require(context.server, requests.Feature.DELETE_MARKER)
        for each in each_of(live):
            shown = {"uid": int(key)} | {name: value for name, value in each.items() if value != ""}
            number = context.builder.change("delete", self.name, f"uid {key}", shown, None, source, losses=int(exactly))
            request = requests.delete_marker(context.path, int(key))
            context.builder.send(Phase.MARKER_DELETE, request, [number], self.effect(key, live, None))

    # Undo ------------------------------------------------------------------------------------------------------------

    def former(self, key: str, value: Attributes, besides: frozenset[str] | None) -> DesiredMarker:
        """Return a marker as it was; the server gives one that the run deleted another uid."""
        texts = {name: text for name, text in _texts(value).items() if text or besides is None}
        return DesiredMarker(int(key), position_at(value["frame"]), str(value["track"]), texts, besides=besides)

    def absent(self, key: str) -> DesiredMarker:
        """Return the marker of a uid as one to be removed."""
        return DesiredMarker(uid=int(key), present=False)

    def plan(self, context: PlanContext, part: DesiredMarkers) -> None:
        """Make the markers as desired."""
        super().plan(context, part)
        context.builder.checks.append(self._unpaired)

    def write(
        self,
        context: PlanContext,
        matching: Matching[Item],
        live: Mapping[str, Item],
        surplus: Mapping[str, TaskSource],
    ) -> None:
        """Add the changes and requests, and warn of new markers that others may only have moved."""
        others: dict[tuple[str, str], list[tuple[int, str]]] = {}
        for uid in matching.others if matching.created else ():
            if uid not in surplus:
                others.setdefault(_called(live[uid]), []).append((int(str(live[uid]["frame"])), uid))
        for each in others.values():
            each.sort()
        for item in matching.created:
            frame, alike = int(str(item.named["frame"])), others.get(_called(item.named), ())
            at = bisect(alike, (frame, ""))
            for other, uid in alike[max(0, at - 1) : at + 1] if item.named.get("title") else ():
                if (rate := context.asset.rate) and abs(other - frame) <= 10 * rate:
                    context.builder.warnings.append(
                        f"{context.title}: marker {item.label} is new, and uid {uid} at frame {other} has its "
                        f"track and title ({item.source.place})\n"
                        f"if others have moved that one, name `uid: {uid}` to move it back"
                    )
                    break
        super().write(context, matching, live, surplus)

    def _unpaired(self, context: PlanContext, after: Callable[[], Snapshot]) -> Iterator[str]:
        """Yield the profanity starts without an end, and ends without a start, that the run makes."""
        touched = [change for change in context.builder.changes if change.aspect == self.name]
        has_profanity = False
        for change in touched:
            has_profanity = has_profanity or _is_profanity(change.before) or _is_profanity(change.after)
        if not has_profanity:
            return
        before = {*_alone(part_of(self, context.live) or {})}
        for frame, track, uid in _alone(after()[self.name]):
            if (frame, track, uid) not in before:
                other = _END if track == _START else _START
                yield f"{track} at frame {frame} has no {other} ({touched[0].source.place})"

    def shown(self, change: Change) -> Shown:
        """Return a change by its track, and its uid if it has one: its position is a value."""
        before, after = dict(mapping(change.before)), dict(mapping(change.after))
        track = str(after.get("track") or before.get("track") or "")
        label = f"{track} {change.key}" if change.key.startswith("uid ") else track
        if change.action != "change" or before.get("track") == after.get("track"):
            for side in (before, after):  # the label shows it
                side.pop("track", None)
            change = structs.replace(change, before=change.before and before, after=change.after and after)
        return Shown(label if track else change.key, track, change)

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
        track, title = str(value.get("track") or registry.DEFAULT_TRACK), str(value.get("title") or "")
        return None if frame is None else TimelinePlace(track, frame, 0, title)


def _texts(value: Attributes) -> dict[str, str]:
    """Return all attributes but its place."""
    return {name: text for name, text in value.items() if isinstance(text, str) and name not in _PLACE}


def _is_profanity(marker: Json) -> bool:
    return isinstance(marker, dict) and marker.get("track") in (_START, _END)


def _called(value: Attributes) -> tuple[str, str]:
    """Return track and title, as they are compared."""
    return text_of(value.get("track")), plain(text_of(value.get("title")))


def _alone(part: Part) -> Iterator[tuple[int, str, str]]:
    """Yield the starts that no end follows before the next start, and the ends that follow no start."""
    begun: tuple[int, str, str] | None = None
    every = [(key, each) for key, value in part.items() for each in each_of(value)]
    marked = [(int(str(each["frame"])), str(each["track"]), key) for key, each in every if "frame" in each]
    marked = [each for each in marked if each[1] in {_START, _END}]
    for marker in sorted(marked, key=lambda each: (each[0], each[1] == _START)):
        if marker[1] == _END and begun is not None:
            begun = None
        elif marker[1] == _END:
            yield marker
        else:
            if begun is not None:
                yield begun
            begun = marker
    if begun is not None:
        yield begun


def _exported_texts(marker: Marker, notes: list[str]) -> dict[str, Any]:
    """Return the attributes of a marker besides its place; ``notes`` takes what no task can write."""
    sourced: dict[str, Any] = {}
    further: dict[str, str] = {}
    for name, text in marker.fields.items():
        if text and name not in _MARKER_KEYS and arguments.is_valid(_NAME, name):
            further[name] = text
        elif text and name not in _MARKER_KEYS:
            notes.append(f"attribute of marker {marker.uid}, which no task can name: {name!r}")
    for attribute in registry.MARKER_ATTRIBUTES:
        text = marker.fields.get(attribute.name, "")
        value = read_whole(text) if attribute.kind == "integer" else text
        if value:
            sourced[attribute.name] = value
        elif value is None and text.strip():
            notes.append(f"{attribute.name} of marker {marker.uid}, which no task can set: {text.strip()[:80]}")
    return sourced | ({"attributes": further} if further else {})
