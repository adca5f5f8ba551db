"""What a playbook may write of markers, and what it comes to."""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from msgspec import Struct, field
from pydantic import TypeAdapter

from msauto.aspects import arguments
from msauto.aspects.comparison import as_number, track_of
from msauto.aspects.list_aspect import ListAspect
from msauto.aspects.merging import Merging, exactly_of
from msauto.documents import key_rules as rule
from msauto.documents.document import SourceNode
from msauto.documents.strict_model import Model, key, need
from msauto.documents.value_types import IF_MAP, Count, Else, Opt, Pos, Read, Text, Then, Value, invalid, reportable
from msauto.documents.writer import FlowStyle
from msauto.errors import Problem
from msauto.model import fields as registry
from msauto.model.desired import ABSENT, Absent, DesiredList, Position
from msauto.model.fields import DEFAULT_TRACK
from msauto.model.live import AssetSnapshot, Marker
from msauto.model.server import Dialect

_MARKER_KEYS = frozenset({*registry.names(registry.MARKER_ATTRIBUTES), "track"})
_MARKER_PARAMETERS = frozenset({"uid", "frame", "pos", "command"})


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

    uid: Opt[Count] = key("the marker's identifier; without it, the marker of the same track and position")
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


class MarkerArguments(ListAspect):
    """What a task may write of markers."""

    keys: ClassVar = {"markers": arguments.asset_key(list[Value[MarkerArgs]], "key frame markers")}
    exactly: ClassVar = (
        "markers",
        arguments.asset_key(
            Annotated[Then[MarkersExactly] | Else[bool], IF_MAP],
            "remove other markers; {tracks: [...]} limits it to these types",
        ),
    )

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
            return (DEFAULT_TRACK if value.track is ABSENT else value.track, merging.comparable(value.at))

        def called(value: DesiredMarker) -> str:
            if value.uid is not ABSENT:
                return f"marker {value.uid}"
            return f"the marker at {value.at} ({DEFAULT_TRACK if value.track is ABSENT else value.track})"

        def covers(one: DesiredMarkers, value: DesiredMarker) -> bool:
            """Return whether a marker has one of the tracks: its own, that of its uid, General."""
            live = (m for m in (merging.asset.markers if merging.asset else ()) if m.uid == value.uid)
            track = next(map(track_of, live), DEFAULT_TRACK) if value.track is ABSENT else value.track
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
        places = Counter((marker.frame, track_of(marker)) for marker in asset.markers)
        single = [marker for marker in asset.markers if marker.uid not in twins]
        for marker in sorted(single, key=lambda marker: (marker.frame, track_of(marker), marker.uid)):
            frame, track = marker.frame + snapshot.origin, track_of(marker)
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
        value = as_number(text) if attribute.kind == "integer" else text
        if value:
            sourced[attribute.name] = value
        elif value is None and text.strip():
            notes.append(f"{attribute.name} of marker {marker.uid}, which no task can set: {text.strip()}")
    return sourced | ({"attributes": further} if further else {})
