"""The keys of the ``asset`` module (interface, «Asset commands»)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import create_model

from msauto.documents import key_rules as rule
from msauto.documents import value_types as types
from msauto.documents.strict_model import Model, key, need
from msauto.documents.value_types import (
    TEMPLATED,
    Else,
    Flag,
    Name,
    Opt,
    Plain,
    Pos,
    Read,
    Text,
    Then,
    Value,
    invalid,
)
from msauto.interface import fields as registry

State = Literal["present", "absent"]
M = TypeVar("M", bound=Model)
_TYPES: Mapping[registry.Kind, Any] = {"text": Text, "number": Text, "integer": types.Rating, "position": Pos}


def with_attributes(attributes: Iterable[registry.Attribute]) -> Callable[[type[M]], type[M]]:
    """Return a decorator that adds attributes of the registry to the keys of a model, after its own."""

    def add(model: type[M]) -> type[M]:
        kinds: dict[str, Any] = {
            each.name: types.ClearablePos if each.clearable else _TYPES[each.kind] for each in attributes
        }
        fields: dict[str, Any] = {
            each.name: (Annotated[kinds[each.name] | None, TEMPLATED], key(each.description)) for each in attributes
        }
        return create_model(
            model.__name__, __base__=model, __doc__=model.__doc__, __module__=model.__module__, **fields
        )

    return add


class ExpectedCount(Model):
    """How many assets a selection may find. Any other number is a planning error."""

    min: Opt[types.Count] = key("minimum number of assets")
    max: Opt[types.Count] = key("maximum number of assets")


_MimeTypes = Annotated[Then[list[Value[registry.MimeType]]] | Else[registry.MimeType], types.IF_LIST]


class SelectArgs(Model):
    """Selects assets of a listing."""

    folder: Opt[types.FolderText] = key(
        "folder to search, such as Raw/2026; an unknown folder is an error; default: the root"
    )
    recursive: Opt[Flag] = key("search subfolders too; default false")
    created_after: Opt[types.When] = key(
        "only assets created after this date or time; without a zone, in the time zone of the server"
    )
    created_before: Opt[types.When] = key(
        "only assets created before this date or time; without a zone, in the time zone of the server"
    )
    created_within: Opt[types.Span] = key("only assets created within this duration before now: 90s, 30m, 2h, 3d")
    mimetype: Opt[_MimeTypes] = key("one or more types of assets")
    where: Plain[types.Expressions] = key("condition on asset, an expression without braces: asset.frames > 250")
    expect: Opt[ExpectedCount] = key("how many assets may be found")


@with_attributes(registry.LINK_FIELDS)
class FieldsArgs(Model):
    """Link fields, set by SETFIELD. clip_name is not among them: that is title and was."""

    hints: ClassVar = {
        "clip_name": ("clip_name cannot be set here", "use title: (the new name) and was: (the old name)")
    }


_SEGMENT_IS_NAMED = rule.any_of(
    (("number",), ("start", "duration"), ("title",)),
    "the absent segment is not identified",
    "add number, or start and duration, or title",
)


@with_attributes(registry.SEGMENT_ATTRIBUTES)
class SegmentKeys(Model):
    """What a segment is and has."""

    number: Opt[types.Count] = key("the segment's number; a list numbers all of its segments or none")
    start: Opt[Pos] = key("where it starts: a time code or frames")
    duration: Opt[Pos] = key("how long it is: a time code or frames")


class SegmentArgs(SegmentKeys):
    """A segment, identified by its number, or by its start and duration."""

    rules: ClassVar = (
        rule.when_value("state", "present", rule.all_of(("start", "duration"), "the segment has no"), default=True),
        rule.when_value("state", "absent", _SEGMENT_IS_NAMED),
    )

    state: Opt[State] = key("present (default) or absent: not there")


class SegmentationArgs(Model):
    """Segments of equal duration over the whole asset."""

    duration: Value[Pos] = need("duration of each segment: a time code or frames")
    title: Opt[Text] = key("title of the segments")


_MARKER_KEYS = frozenset({*registry.names(registry.MARKER_ATTRIBUTES), "track"})
_MARKER_PARAMETERS = frozenset({"uid", "frame", "pos", "command"})


def _attribute_name(value: Any) -> str:
    """Read the name of a further attribute of a marker: none that the command or the marker has already."""
    name = types.reportable(value) if isinstance(value, str) else ""
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


@with_attributes(registry.MARKER_ATTRIBUTES)
class MarkerKeys(Model):
    """What a marker is and has."""

    uid: Opt[types.Count] = key("the marker's identifier; without it, the marker of the same track and position")
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
    state: Opt[State] = key("present (default) or absent: not there")


class LinkArgs(FieldsArgs):
    """A shortcut to the asset in a folder. Its own link fields need a title that is not the asset's."""

    hints: ClassVar = {"clip_name": ("clip_name cannot be set here", "use title:")}

    folder: Value[types.FolderText] = need("the folder of the link")
    title: Opt[Name] = key("the link's title; default: the asset's")
    state: Opt[State] = key("present (default) or absent: not there")


class MarkersExactly(Model):
    """The types of markers of which the list is complete."""

    tracks: Value[list[Value[registry.Track]]] = need("only markers of these types are removed")


class ExactlyArgs(Model):
    """The lists that are complete: items that they do not name are removed."""

    segments: Opt[Flag] = key("remove other segments")
    markers: Opt[Annotated[Then[MarkersExactly] | Else[Flag], types.IF_MAP]] = key(
        "remove other markers; {tracks: [...]} limits it to these types"
    )
    links: Opt[Flag] = key("remove other links")


_Exactly = Annotated[Else[list[Value[Literal["segments", "markers", "links"]]]] | Then[ExactlyArgs], types.IF_MAP]


class RestoreArgs(Model):
    """How long to wait for a file from the archive."""

    wait: Opt[types.Span] = key("how long verification waits for the file: 90s, 30m, 2h; default 30m")


TARGET_NAMES = ("title", "id", "select")
TWO_TARGETS = ("has both {0} and {1}", "name exactly one of title, id and select")
ONE_TARGET = rule.one_of(TARGET_NAMES, TWO_TARGETS, ("does not name an asset", "add title, id or select"))
_CONTENT = ("fields", "xmp", "segments", "segmentation", "markers", "links", "exactly", "restore", "was")


class TargetKeys(Model):
    """The keys that name an asset."""

    rules: ClassVar[tuple[rule.KeyRule, ...]] = (ONE_TARGET,)

    title: Opt[Name] = key("title of the asset")
    id: Opt[types.KeyId] = key("key field and value, NS:ID, instead of a title")
    select: Opt[SelectArgs] = key("all assets of a listing, instead of a title")


class AssetArgs(TargetKeys):
    """The desired state of an asset. Keys that are not named are not managed; an empty value clears."""

    rules: ClassVar = (
        ONE_TARGET,
        rule.needs("was", ("title",), "was requires title", "name the asset by its new title"),
        rule.excludes("segments", ("segmentation",), "{key} and {other} cannot be used together", "keep one of them"),
        rule.complete("segments", ("segments", "segmentation")),
        rule.complete("markers", ("markers",)),
        rule.complete("links", ("links",)),
        rule.all_or_none(
            "segments", "number", "this segment has no number, but others do", "number all segments or none"
        ),
        rule.absent_has_none(_CONTENT),
    )

    was: Opt[types.Texts] = key("former titles: an asset found under one of them is renamed to title")
    folder: Opt[types.FolderText] = key("guard: the home folder of the clip must be this folder")
    fields: Opt[FieldsArgs] = key("link fields")
    xmp: Opt[dict[types.NsName, Value[types.Texts]]] = key("XMP fields by ns:name; text, or a list of texts")
    segments: Opt[list[Value[SegmentArgs]]] = key("segments")
    segmentation: Opt[SegmentationArgs] = key("segments of equal duration over the whole asset")
    markers: Opt[list[Value[MarkerArgs]]] = key("key frame markers")
    links: Opt[list[Value[LinkArgs]]] = key("links to the asset in folders")
    exactly: Opt[_Exactly] = key("lists that are complete: items that they do not name are removed")
    origin: Opt[Pos] = key("time code of the first frame of the clip, for all time codes of this task; default 0")
    restore: Opt[Annotated[Then[RestoreArgs] | Else[Flag], types.IF_MAP]] = key(
        "the high-resolution file is on disk; if not, restore it from the archive"
    )
    missing: Opt[Literal["error", "skip"]] = key("how to handle an unknown title; default error")
    unfinalized: Opt[Literal["error", "skip", "allow"]] = key(
        "how to handle a clip that is still being recorded; default error"
    )
    lossy: Opt[Flag] = key("allow changes that lose data that the interface cannot write back")
    state: Opt[State] = key("present (default) or absent: the asset is deleted")
    with_links: Opt[Flag] = key("delete the asset with state: absent even if links show it; default false")
