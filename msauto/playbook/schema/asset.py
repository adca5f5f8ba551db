"""The keys of the ``asset`` module (interface, «Asset commands»)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import Discriminator, PlainValidator, Tag, WithJsonSchema, create_model

from msauto.interface.fields import (
    LINK_FIELDS,
    MARKER_ATTRIBUTES,
    SEGMENT_ATTRIBUTES,
    Attribute,
    Kind,
    MimeType,
    Track,
    names,
)
from msauto.playbook.schema.strict_model import (
    AllOf,
    AllOrNone,
    AnyOf,
    Complete,
    Excludes,
    Model,
    Needs,
    NoneOf,
    OneOf,
    WhenValue,
    key,
    need,
)
from msauto.playbook.schema.value_types import (
    TEMPLATED,
    ClearablePos,
    Count,
    Expressions,
    Flag,
    FolderText,
    KeyId,
    Name,
    NsName,
    Opt,
    Plain,
    Pos,
    Rating,
    Span,
    Text,
    Texts,
    UnrenderedTemplate,
    Value,
    When,
    invalid,
    one_or_list,
    reportable,
)

State = Literal["present", "absent"]
M = TypeVar("M", bound=Model)
_TYPES: Mapping[Kind, Any] = {"text": Text, "number": Text, "integer": Rating, "position": Pos}


def with_attributes(attributes: Iterable[Attribute]) -> Callable[[type[M]], type[M]]:
    """Return a decorator that adds attributes of the registry to the keys of a model, after its own."""

    def add(model: type[M]) -> type[M]:
        kinds: dict[str, Any] = {
            each.name: ClearablePos if each.clearable else _TYPES[each.kind] for each in attributes
        }
        fields: dict[str, Any] = {
            each.name: (Annotated[kinds[each.name] | None, TEMPLATED], key(each.description)) for each in attributes
        }
        return create_model(
            model.__name__, __base__=model, __doc__=model.__doc__, __module__=model.__module__, **fields
        )

    return add


def _list_or_map(value: Any) -> str:
    return "map" if isinstance(value, dict) else "list"


def _true_or_map(value: Any) -> str:
    return "map" if isinstance(value, dict) else "flag"


class ExpectedCount(Model):
    """How many assets a selection may find. Any other number is a planning error."""

    min: Opt[Count] = key("minimum number of assets")
    max: Opt[Count] = key("maximum number of assets")


class SelectArgs(Model):
    """Selects assets of a listing."""

    folder: Opt[FolderText] = key(
        "folder to search, such as Raw/2026; an unknown folder is an error; default: the root"
    )
    recursive: Opt[Flag] = key("search subfolders too; default false")
    created_after: Opt[When] = key(
        "only assets created after this date or time; without a zone, in the time zone of the server"
    )
    created_before: Opt[When] = key(
        "only assets created before this date or time; without a zone, in the time zone of the server"
    )
    created_within: Opt[Span] = key("only assets created within this duration before now: 90s, 30m, 2h, 3d")
    mimetype: Opt[
        Annotated[
            Annotated[list[Value[MimeType]], Tag("list")] | Annotated[MimeType, Tag("one")],
            Discriminator(one_or_list),
        ]
    ] = key("one or more types of assets")
    where: Plain[Expressions] = key("condition on asset, an expression without braces: asset.frames > 250")
    expect: Opt[ExpectedCount] = key("how many assets may be found")


@with_attributes(LINK_FIELDS)
class FieldsArgs(Model):
    """Link fields, set by SETFIELD. clip_name is not among them: that is title and was."""

    hints: ClassVar = {
        "clip_name": ("clip_name cannot be set here", "use title: (the new name) and was: (the old name)")
    }


_SEGMENT_NAMES = (("number",), ("start", "duration"), ("title",))
_NAME_SEGMENT = "add number, or start and duration, or title"


@with_attributes(SEGMENT_ATTRIBUTES)
class SegmentKeys(Model):
    """What a segment is and has."""

    number: Opt[Count] = key("the segment's number; a list numbers all of its segments or none")
    start: Opt[Pos] = key("where it starts: a time code or frames")
    duration: Opt[Pos] = key("how long it is: a time code or frames")


class SegmentArgs(SegmentKeys):
    """A segment, identified by its number, or by its start and duration."""

    rules: ClassVar = (
        WhenValue("state", "present", (AllOf(("start", "duration"), "the segment has no"),), default=True),
        WhenValue("state", "absent", (AnyOf(_SEGMENT_NAMES, "the absent segment is not identified", _NAME_SEGMENT),)),
    )

    state: Opt[State] = key("present (default) or absent: not there")


class SegmentationArgs(Model):
    """Segments of equal duration over the whole asset."""

    duration: Value[Pos] = need("duration of each segment: a time code or frames")
    title: Opt[Text] = key("title of the segments")


_MARKER_KEYS = frozenset({*names(MARKER_ATTRIBUTES), "track"})
_MARKER_PARAMETERS = frozenset({"uid", "frame", "pos", "command"})


def _attribute_name(value: Any) -> str:
    """Read the name of a further attribute of a marker: none that the command or the marker has already."""
    name = reportable(value) if isinstance(value, str) else ""
    if not name.strip() or name != name.strip():
        raise invalid(
            f"{str(value)[:60]!r} is not a valid attribute name", "use a text without leading or trailing spaces"
        )
    if name.casefold() in _MARKER_KEYS:
        raise invalid(
            f"{name} cannot be an additional attribute", f"write it next to attributes, as {name.casefold()}: …"
        )
    if name.casefold() in _MARKER_PARAMETERS:
        raise invalid(f"{name} is a parameter of the command", "rename the attribute")
    return name


AttributeName = Annotated[
    str,
    PlainValidator(_attribute_name),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": r"^\S(.*\S)?$",
            "not": {"enum": sorted(_MARKER_KEYS | _MARKER_PARAMETERS)},
        }
    ),
]


@with_attributes(MARKER_ATTRIBUTES)
class MarkerKeys(Model):
    """What a marker is and has."""

    uid: Opt[Count] = key("the marker's identifier; without it, the marker of the same track and position")
    at: Opt[Pos] = key("its position: a time code or frames")
    track: Opt[Track] = key("its type")


class MarkerArgs(MarkerKeys):
    """A key frame marker, identified by its uid, or by its position and track."""

    rules: ClassVar = (
        AnyOf(
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

    folder: Value[FolderText] = need("the folder of the link")
    title: Opt[Name] = key("the link's title; default: the asset's")
    state: Opt[State] = key("present (default) or absent: not there")


class MarkersExactly(Model):
    """The types of markers of which the list is complete."""

    tracks: Value[list[Value[Track]]] = need("only markers of these types are removed")


class ExactlyArgs(Model):
    """The lists that are complete: items that they do not name are removed."""

    segments: Opt[Flag] = key("remove other segments")
    markers: Opt[
        Annotated[
            Annotated[MarkersExactly, Tag("map")] | Annotated[Flag, Tag("flag")],
            Discriminator(_true_or_map),
        ]
    ] = key("remove other markers; {tracks: [...]} limits it to these types")
    links: Opt[Flag] = key("remove other links")


class RestoreArgs(Model):
    """How long to wait for a file from the archive."""

    wait: Opt[Span] = key("how long verification waits for the file: 90s, 30m, 2h; default 30m")


ONE_TARGET = OneOf(
    ("title", "id", "select"),
    ("has both {0} and {1}", "name exactly one of title, id and select"),
    ("does not name an asset", "add title, id or select"),
)
_CONTENT = ("fields", "xmp", "segments", "segmentation", "markers", "links", "exactly", "restore", "was")
_ABSENT_HAS_NO = "{} cannot be used with state: absent"


class AssetArgs(Model):
    """The desired state of an asset. Keys that are not named are not managed; an empty value clears."""

    rules: ClassVar = (
        ONE_TARGET,
        Needs("was", ("title",), "was requires title", "name the asset by its new title"),
        Excludes(
            "segments", ("segmentation",), "segments and segmentation cannot be used together", "keep one of them"
        ),
        Complete("segments", ("segments", "segmentation")),
        Complete("markers", ("markers",)),
        Complete("links", ("links",)),
        AllOrNone("segments", "number", "this segment has no number, but others do", "number all segments or none"),
        WhenValue("state", "absent", (NoneOf(_CONTENT, _ABSENT_HAS_NO, "remove one of the two"),)),
    )

    title: Opt[Name] = key("title of the asset")
    id: Opt[KeyId] = key("key field and value, NS:ID, instead of a title")
    select: Opt[SelectArgs] = key("all assets of a listing, instead of a title")
    was: Opt[Texts] = key("former titles: an asset found under one of them is renamed to title")
    folder: Opt[FolderText] = key("guard: the home folder of the clip must be this folder")
    fields: Opt[FieldsArgs] = key("link fields")
    xmp: Opt[dict[NsName, Value[Texts]]] = key("XMP fields by ns:name; text, or a list of texts")
    segments: Opt[list[Value[SegmentArgs]]] = key("segments")
    segmentation: Opt[SegmentationArgs] = key("segments of equal duration over the whole asset")
    markers: Opt[list[Value[MarkerArgs]]] = key("key frame markers")
    links: Opt[list[Value[LinkArgs]]] = key("links to the asset in folders")
    exactly: Opt[
        Annotated[
            Annotated[list[Value[Literal["segments", "markers", "links"]]], Tag("list")]
            | Annotated[ExactlyArgs, Tag("map")],
            Discriminator(_list_or_map),
        ]
    ] = key("lists that are complete: items that they do not name are removed")
    origin: Opt[Pos] = key("time code of the first frame of the clip, for all time codes of this task; default 0")
    restore: Opt[
        Annotated[
            Annotated[RestoreArgs, Tag("map")] | Annotated[Flag, Tag("flag")],
            Discriminator(_true_or_map),
        ]
    ] = key("the high-resolution file is on disk; if not, restore it from the archive")
    missing: Opt[Literal["error", "skip"]] = key("how to handle an unknown title; default error")
    unfinalized: Opt[Literal["error", "skip", "allow"]] = key(
        "how to handle a clip that is still being recorded; default error"
    )
    lossy: Opt[Flag] = key("allow changes that lose data that the interface cannot write back")
    state: Opt[State] = key("present (default) or absent: the asset is deleted")
    with_links: Opt[Flag] = key("delete the asset with state: absent even if links show it; default false")


def exactly_lists(args: AssetArgs) -> list[str]:
    """Return the names of the lists that are complete, as far as they are rendered."""
    if isinstance(args.exactly, list):
        return [str(name) for name in args.exactly if not isinstance(name, UnrenderedTemplate)]
    if isinstance(args.exactly, ExactlyArgs):
        return [name for name in ("segments", "markers", "links") if _is_on(getattr(args.exactly, name))]
    return []


def _is_on(value: Any) -> bool:
    return value is True or isinstance(value, MarkersExactly)
