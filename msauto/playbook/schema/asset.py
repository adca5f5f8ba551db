"""The keys of the ``asset`` module (interface, «Asset commands»)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, PlainValidator, Tag, WithJsonSchema

from msauto.interface.vocabulary import MimeType, Track
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
from msauto.playbook.schema.values import (
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


def _list_or_map(value: Any) -> str:
    return "map" if isinstance(value, dict) else "list"


def _true_or_map(value: Any) -> str:
    return "map" if isinstance(value, dict) else "flag"


class ExpectedCount(Model):
    """How many assets a selection may find; anything else stops the run."""

    min: Opt[Count] = key("fewest assets that must be found")
    max: Opt[Count] = key("most assets that may be found")


class SelectArgs(Model):
    """Which assets of a listing are meant."""

    folder: Opt[FolderText] = key("folder to look in, such as Raw/2026; an unknown one is an error; default: the root")
    recursive: Opt[Flag] = key("look in the folders below as well; default false")
    created_after: Opt[When] = key("only assets created after this date or time (the server's own time if no zone)")
    created_before: Opt[When] = key("only assets created before this date or time")
    created_within: Opt[Span] = key("only assets created within this span before now: 90s, 30m, 2h, 3d")
    mimetype: Opt[
        Annotated[
            Annotated[list[Value[MimeType]], Tag("list")] | Annotated[MimeType, Tag("one")],
            Discriminator(one_or_list),
        ]
    ] = key("one or several kinds of assets")
    where: Plain[Expressions] = key("an expression over asset, without braces: asset.frames > 250")
    expect: Opt[ExpectedCount] = key("how many assets may be found")


class FieldsArgs(Model):
    """Link fields, set by SETFIELD. clip_name is not among them: that is title and was."""

    type: Opt[Text] = key("the type of the entry")
    comment: Opt[Text] = key("the comment")
    layer: Opt[Text] = key("the layer")
    first_frame: Opt[Pos] = key("the IN point: a time code or frames")
    last_frame: Opt[Pos] = key("the OUT point: a time code or frames")
    icon_pos: Opt[ClearablePos] = key("the position of the icon: a time code or frames; an empty text clears it")
    user_0: Opt[Text] = key("user field 0, shown as User 1")
    user_1: Opt[Text] = key("user field 1")
    user_2: Opt[Text] = key("user field 2")
    user_3: Opt[Text] = key("user field 3")
    user_4: Opt[Text] = key("user field 4")
    user_5: Opt[Text] = key("user field 5")
    user_6: Opt[Text] = key("user field 6")
    user_7: Opt[Text] = key("user field 7")

    hints: ClassVar = {
        "clip_name": ("clip_name cannot be set here", "use title: (the new name) and was: (the old name)")
    }


_SEGMENT_NAMES = (("number",), ("start", "duration"), ("title",))
_NAME_SEGMENT = "add number, or start and duration, or title"


class SegmentArgs(Model):
    """A segment: its number, or its start and duration."""

    rules: ClassVar = (
        WhenValue("state", "present", (AllOf(("start", "duration"), "the segment has no"),), default=True),
        WhenValue("state", "absent", (AnyOf(_SEGMENT_NAMES, "the absent segment is not identified", _NAME_SEGMENT),)),
    )

    number: Opt[Count] = key("the segment's number; a list numbers all of its segments or none")
    start: Opt[Pos] = key("where it starts: a time code or frames")
    duration: Opt[Pos] = key("how long it is: a time code or frames")
    title: Opt[Text] = key("its title")
    keywords: Opt[Text] = key("its keywords, as one text")
    state: Opt[State] = key("present (default) or absent: not there")


class SegmentationArgs(Model):
    """The whole asset in segments of equal duration."""

    duration: Value[Pos] = need("how long each segment is: a time code or frames")
    title: Opt[Text] = key("the title of the segments")


_MARKER_KEYS = frozenset({"title", "comment", "user", "keywords", "rating", "track"})
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


class MarkerArgs(Model):
    """A key frame marker: its uid, or its position and track."""

    rules: ClassVar = (
        AnyOf(
            (("at",), ("uid",)),
            "the marker has neither at nor uid",
            "add at: a time code, or uid: of an existing one",
        ),
    )

    uid: Opt[Count] = key("the marker's identifier; without it, the marker of the same track and position")
    at: Opt[Pos] = key("its position: a time code or frames")
    track: Opt[Track] = key("its type")
    title: Opt[Text] = key("its title")
    comment: Opt[Text] = key("its comment")
    user: Opt[Text] = key("its user")
    keywords: Opt[Text] = key("its keywords, as one text")
    rating: Opt[Rating] = key("its rating")
    attributes: Opt[dict[AttributeName, Value[Text]]] = key("further attributes by name, as texts; an empty one clears")
    state: Opt[State] = key("present (default) or absent: not there")


class LinkArgs(FieldsArgs):
    """A shortcut to the asset in a folder. Its own link fields need a title that is not the asset's."""

    hints: ClassVar = {"clip_name": ("clip_name cannot be set here", "use title:")}

    folder: Value[FolderText] = need("the folder of the link")
    title: Opt[Name] = key("the link's title; default: the asset's")
    state: Opt[State] = key("present (default) or absent: not there")


class MarkersExactly(Model):
    """Which markers are complete."""

    tracks: Value[list[Value[Track]]] = need("only markers of these types are removed")


class ExactlyArgs(Model):
    """Which lists are complete: nothing but what they name may be there."""

    segments: Opt[Flag] = key("no other segments")
    markers: Opt[
        Annotated[
            Annotated[MarkersExactly, Tag("map")] | Annotated[Flag, Tag("flag")],
            Discriminator(_true_or_map),
        ]
    ] = key("no other markers; {tracks: [...]} narrows it to these types")
    links: Opt[Flag] = key("no other links")


class RestoreArgs(Model):
    """How to wait for a file from the archive."""

    wait: Opt[Span] = key("how long the proof may wait for the file: 90s, 30m, 2h; default 30m")


ONE_TARGET = OneOf(
    ("title", "id", "select"),
    ("has both {0} and {1}", "name exactly one of title, id and select"),
    ("does not name an asset", "add title, id or select"),
)
_CONTENT = ("fields", "xmp", "segments", "segmentation", "markers", "links", "exactly", "restore", "was")
_ABSENT_HAS_NO = "{} cannot be used with state: absent"


class AssetArgs(Model):
    """An asset as it should be. What is not named is not managed; an empty value clears."""

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

    title: Opt[Name] = key("the asset's title: which asset is meant")
    id: Opt[KeyId] = key("a key field and its value, NS:ID, in place of a title")
    select: Opt[SelectArgs] = key("all assets of a listing, in place of a title")
    was: Opt[Texts] = key("former titles: one of them found instead is renamed to title")
    folder: Opt[FolderText] = key("a guard: the clip must live in this folder")
    fields: Opt[FieldsArgs] = key("link fields")
    xmp: Opt[dict[NsName, Value[Texts]]] = key("XMP fields by ns:name; a text, or a list of texts")
    segments: Opt[list[Value[SegmentArgs]]] = key("segments")
    segmentation: Opt[SegmentationArgs] = key("the whole asset in segments of equal duration")
    markers: Opt[list[Value[MarkerArgs]]] = key("key frame markers")
    links: Opt[list[Value[LinkArgs]]] = key("shortcuts to the asset in folders")
    exactly: Opt[
        Annotated[
            Annotated[list[Value[Literal["segments", "markers", "links"]]], Tag("list")]
            | Annotated[ExactlyArgs, Tag("map")],
            Discriminator(_list_or_map),
        ]
    ] = key("lists that are complete: what they do not name is removed")
    origin: Opt[Pos] = key("the time code of the clip's first frame in this task; default 0")
    restore: Opt[
        Annotated[
            Annotated[RestoreArgs, Tag("map")] | Annotated[Flag, Tag("flag")],
            Discriminator(_true_or_map),
        ]
    ] = key("the high-resolution file is on disk, brought from the archive if need be")
    missing: Opt[Literal["error", "skip"]] = key("what an unknown title means; default error")
    unfinalized: Opt[Literal["error", "skip", "allow"]] = key("what a clip still being recorded means; default error")
    lossy: Opt[Flag] = key("allow changes that lose what the interface cannot write back")
    state: Opt[State] = key("present (default) or absent: the asset is deleted")
    with_links: Opt[Flag] = key("state: absent deletes the asset although links show it; default false")


def exactly_lists(args: AssetArgs) -> list[str]:
    """Return the lists that are complete, as far as they are known yet."""
    if isinstance(args.exactly, list):
        return [str(name) for name in args.exactly if not isinstance(name, UnrenderedTemplate)]
    if isinstance(args.exactly, ExactlyArgs):
        return [name for name in ("segments", "markers", "links") if _is_on(getattr(args.exactly, name))]
    return []


def _is_on(value: Any) -> bool:
    return value is True or isinstance(value, MarkersExactly)
