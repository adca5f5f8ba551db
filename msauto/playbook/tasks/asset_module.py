"""The ``asset`` module: validated arguments to a reference and to :class:`DesiredAsset`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar

from msauto.aspects.link import DesiredLink, Links
from msauto.aspects.marker import DesiredMarker, DesiredMarkers
from msauto.aspects.segment_frames import DesiredSegment, DesiredSegmentation, DesiredSegments
from msauto.aspects.xmp import DesiredXmp
from msauto.documents.document import SourceNode
from msauto.documents.value_types import as_list
from msauto.interface.fields import LINK_FIELDS, MARKER_ATTRIBUTES, SEGMENT_ATTRIBUTES, Attribute, names
from msauto.model import desired
from msauto.model.timecode import Timecode
from msauto.playbook.schema import asset as schema
from msauto.playbook.templates.conditions import Where

S = TypeVar("S")
T = TypeVar("T")
DEFAULT_WAIT = 1800.0
"""Seconds that verification waits for a file from the archive, by default."""
_NOTHING = (DesiredSegments(), DesiredMarkers(), Links())


def asset_ref(args: schema.TargetKeys, database: str, where: Where | None) -> desired.Ref:
    """Return which assets the arguments name; title, id, select and was are rendered."""
    if args.title is not None:
        was = as_list(args.was) if isinstance(args, schema.AssetArgs) and args.was is not None else ()
        return desired.TitleRef(database, args.title, tuple(was))
    if args.id is not None:
        namespace, _, identifier = args.id.partition(":")
        return desired.IdRef(database, namespace, identifier)
    if args.select is None:
        raise TypeError("validated arguments name one target")
    select = args.select
    return desired.SelectRef(
        database=database,
        folder=select.folder or (),
        recursive=bool(select.recursive),
        created_after=select.created_after,
        created_before=select.created_before,
        created_within=select.created_within,
        mimetypes=() if select.mimetype is None else tuple(as_list(select.mimetype)),
        where=where,
        expect_min=select.expect.min if select.expect else None,
        expect_max=select.expect.max if select.expect else None,
    )


def desired_asset(args: schema.AssetArgs, node: SourceNode, task: str) -> desired.DesiredAsset:
    """Return the desired state of an asset, each value with its place."""
    return _AssetConverter(args, node, task).build()


class _AssetConverter:
    """Converts one task's arguments, each value with its place."""

    def __init__(self, args: schema.AssetArgs, node: SourceNode, task: str) -> None:
        self._args = args
        self._spot = node
        self._task = task

    def build(self) -> desired.DesiredAsset:
        args = self._args
        return desired.DesiredAsset(
            self._source(),
            self._parts(),
            present=args.state != "absent",
            missing=args.missing or "error",
            unfinalized=args.unfinalized or "error",
            lossy=bool(args.lossy),
            with_links=bool(args.with_links),
            folder=None if args.folder is None else desired.Sourced(args.folder, self._source("folder")),
        )

    def _parts(self) -> dict[str, Any]:
        """Return the part of each aspect that the task names."""
        args, exactly = self._args, self._exactly
        fields = self._link_fields(args.fields) if args.fields else {}
        named = args.exactly.markers if isinstance(args.exactly, schema.ExactlyArgs) else None
        tracks = frozenset(named.tracks) if isinstance(named, schema.MarkersExactly) else None
        parts = {
            "title": None if args.title is None else desired.Sourced(args.title, self._source("title")),
            "field": {name: desired.Sourced(value, self._source("fields", name)) for name, value in fields.items()},
            "xmp": {
                name: desired.Sourced(DesiredXmp(_values(texts), isinstance(texts, list)), self._source("xmp", name))
                for name, texts in (args.xmp or {}).items()
            },
            "segment": DesiredSegments(
                self._each("segments", args.segments, self._segment), exactly("segments"), self._segmentation()
            ),
            "marker": DesiredMarkers(self._each("markers", args.markers, self._marker), exactly("markers"), tracks),
            "link": Links(self._each("links", args.links, self._link), exactly("links")),
            "restore": self._restore(),
        }
        return {name: part for name, part in parts.items() if part and part not in _NOTHING}

    def _source(self, *path: str | int) -> desired.TaskSource:
        """Return the place of a value: its key in a mapping, as in the plan of the contract, or the item of a list."""
        node = self._spot.child(*path)
        has_key = bool(path) and isinstance(path[-1], str)
        return desired.TaskSource.at(node.key_place if has_key else node.place, self._task)

    def _each(self, name: str, items: list[S] | None, convert: Callable[[S], T]) -> tuple[desired.Sourced[T], ...]:
        numbered = enumerate(items or [])
        return tuple(desired.Sourced(convert(item), self._source(name, index)) for index, item in numbered)

    def _position(self, timecode: Timecode | None) -> desired.Position | desired.Absent:
        return desired.ABSENT if timecode is None else desired.Position(timecode, self._args.origin)

    def _link_fields(self, keys: schema.FieldsArgs) -> dict[str, str | desired.Position]:
        named = ((name, getattr(keys, name)) for name in sorted(names(LINK_FIELDS)))
        return {
            name: desired.Position(value, self._args.origin) if isinstance(value, Timecode) else value
            for name, value in named
            if value is not None
        }

    def _segment(self, item: schema.SegmentArgs) -> DesiredSegment:
        return DesiredSegment(
            number=_or_absent(item.number),
            start=self._position(item.start),
            duration=desired.ABSENT if item.duration is None else desired.Position(item.duration),
            fields=_named_texts(item, SEGMENT_ATTRIBUTES),
            present=item.state != "absent",
        )

    def _segmentation(self) -> desired.Sourced[DesiredSegmentation] | None:
        args = self._args.segmentation
        if args is None:
            return None
        equal = DesiredSegmentation(desired.Position(args.duration), _or_absent(args.title))
        return desired.Sourced(equal, self._source("segmentation"))

    def _marker(self, item: schema.MarkerArgs) -> DesiredMarker:
        return DesiredMarker(
            uid=_or_absent(item.uid),
            at=self._position(item.at),
            track=_or_absent(item.track),
            fields=_named_texts(item, MARKER_ATTRIBUTES) | (item.attributes or {}),
            present=item.state != "absent",
        )

    def _link(self, item: schema.LinkArgs) -> DesiredLink:
        fields, present = self._link_fields(item), item.state != "absent"
        return DesiredLink(item.folder, _or_absent(item.title), present=present, fields=fields)

    def _exactly(self, name: Literal["segments", "markers", "links"]) -> desired.TaskSource | None:
        """Return where a list is named as complete."""
        exactly = self._args.exactly
        if isinstance(exactly, list):
            return self._source("exactly", exactly.index(name)) if name in exactly else None
        return self._source("exactly", name) if getattr(exactly, name, None) else None

    def _restore(self) -> desired.Sourced[float] | None:
        args = self._args.restore
        if args is None or args is False:
            return None
        wait = args.wait if isinstance(args, schema.RestoreArgs) else None
        return desired.Sourced(DEFAULT_WAIT if wait is None else wait.total_seconds(), self._source("restore"))


def _named_texts(item: object, attributes: Iterable[Attribute]) -> dict[str, str]:
    """Return the attributes that an item names, as texts; one that is secret stays a ``MarkedText``."""
    values = ((name, getattr(item, name)) for name in names(attributes))
    return {name: str(value) if isinstance(value, int) else value for name, value in values if value is not None}


def _values(texts: list[str] | str) -> tuple[str, ...]:
    """One empty text clears the field, as an empty list does."""
    found = tuple(as_list(texts))
    return () if found == ("",) else found


def _or_absent(value: Any) -> Any:
    return desired.ABSENT if value is None else value
