"""The ``asset`` module: validated arguments to a reference and to :class:`DesiredAsset`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msauto.interface.fields import LINK_FIELDS, MARKER_ATTRIBUTES, SEGMENT_ATTRIBUTES, Attribute, names
from msauto.model.desired import (
    ABSENT,
    Absent,
    CompleteLists,
    DesiredAsset,
    DesiredLink,
    DesiredMarker,
    DesiredSegment,
    DesiredSegmentation,
    IdRef,
    Position,
    Ref,
    SelectRef,
    Sourced,
    TaskSource,
    TitleRef,
)
from msauto.model.timecode import Timecode
from msauto.playbook.schema.asset import (
    AssetArgs,
    ExactlyArgs,
    LinkArgs,
    MarkerArgs,
    MarkersExactly,
    RestoreArgs,
    SegmentArgs,
    SelectArgs,
    exactly_lists,
)
from msauto.playbook.schema.operation_keys import TargetKeys
from msauto.playbook.schema.value_types import as_list
from msauto.playbook.templates.conditions import Where
from msauto.playbook.yaml.document import SourceNode

DEFAULT_WAIT = 1800.0
"""Seconds that verification waits for a file from the archive, by default."""


def asset_ref(args: AssetArgs | TargetKeys, database: str, where: Where | None) -> Ref:
    """Return which assets the arguments name; title, id, select and was are rendered."""
    if args.title is not None:
        was = as_list(args.was) if isinstance(args, AssetArgs) and args.was is not None else ()
        return TitleRef(database, args.title, tuple(was))
    if args.id is not None:
        namespace, _, identifier = args.id.partition(":")
        return IdRef(database, namespace, identifier)
    if args.select is None:
        raise TypeError("validated arguments name one target")
    return _select(args.select, database, where)


def named_at(args: TargetKeys | AssetArgs, node: SourceNode, task: str) -> TaskSource | None:
    """Return where a task names its asset; ``None`` where it names none."""
    name = next((name for name in ("title", "id", "select") if getattr(args, name) is not None), None)
    return None if name is None else TaskSource.at(node.child(name).place, task)


def _select(args: SelectArgs, database: str, where: Where | None) -> SelectRef:
    return SelectRef(
        database=database,
        folder=args.folder or (),
        recursive=bool(args.recursive),
        created_after=args.created_after,
        created_before=args.created_before,
        created_within=args.created_within,
        mimetypes=() if args.mimetype is None else tuple(as_list(args.mimetype)),
        where=where,
        expect_min=args.expect.min if args.expect else None,
        expect_max=args.expect.max if args.expect else None,
    )


def desired_asset(args: AssetArgs, node: SourceNode, task: str) -> DesiredAsset:
    """Return the desired state of an asset, each value with its place."""
    return _AssetConverter(args, node, task).build()


class _AssetConverter:
    """Converts one task's arguments, each value with its place."""

    def __init__(self, args: AssetArgs, node: SourceNode, task: str) -> None:
        self._args = args
        self._spot = node
        self._task = task

    def build(self) -> DesiredAsset:
        args = self._args
        return DesiredAsset(
            source=self._source(),
            present=args.state != "absent",
            missing=args.missing or "error",
            unfinalized=args.unfinalized or "error",
            lossy=bool(args.lossy),
            with_links=bool(args.with_links),
            folder=None if args.folder is None else Sourced(args.folder, self._source("folder")),
            title=None if args.title is None else Sourced(args.title, self._source("title")),
            fields=self._fields(),
            xmp={name: Sourced(_values(texts), self._source("xmp", name)) for name, texts in (args.xmp or {}).items()},
            xmp_lists=frozenset(name for name, texts in (args.xmp or {}).items() if isinstance(texts, list)),
            segments=tuple(self._segments()),
            segmentation=self._segmentation(),
            markers=tuple(self._markers()),
            links=tuple(self._links()),
            exactly=self._exactly(),
            restore=self._restore(),
        )

    def _source(self, *path: str | int) -> TaskSource:
        """Return the place of a value: its key in a mapping, as in the plan of the contract, or the item of a list."""
        node = self._spot.child(*path)
        return TaskSource.at(node.key_place if path else node.place, self._task)

    def _position(self, timecode: Timecode | None) -> Position | Absent:
        return ABSENT if timecode is None else Position(timecode, self._args.origin)

    def _fields(self) -> dict[str, Sourced[str | Position]]:
        found: dict[str, Sourced[str | Position]] = {}
        fields = self._args.fields
        for name in fields.model_fields_set if fields else ():
            value = getattr(fields, name)
            sourced = Position(value, self._args.origin) if isinstance(value, Timecode) else value
            found[name] = Sourced(sourced, self._source("fields", name))
        return dict(sorted(found.items()))

    def _segments(self) -> Iterator[Sourced[DesiredSegment]]:
        for index, item in enumerate(self._args.segments or []):
            yield Sourced(self._segment(item), self._source("segments", index))

    def _segment(self, item: SegmentArgs) -> DesiredSegment:
        return DesiredSegment(
            number=_or_absent(item.number),
            start=self._position(item.start),
            duration=ABSENT if item.duration is None else Position(item.duration),
            fields=_named_texts(item, SEGMENT_ATTRIBUTES),
            present=item.state != "absent",
        )

    def _segmentation(self) -> Sourced[DesiredSegmentation] | None:
        args = self._args.segmentation
        if args is None:
            return None
        return Sourced(
            DesiredSegmentation(Position(args.duration), _or_absent(args.title)), self._source("segmentation")
        )

    def _markers(self) -> Iterator[Sourced[DesiredMarker]]:
        for index, item in enumerate(self._args.markers or []):
            yield Sourced(self._marker(item), self._source("markers", index))

    def _marker(self, item: MarkerArgs) -> DesiredMarker:
        fields = _named_texts(item, MARKER_ATTRIBUTES) | (item.attributes or {})
        return DesiredMarker(
            uid=_or_absent(item.uid),
            at=self._position(item.at),
            track=ABSENT if item.track is None else item.track,
            fields=fields,
            present=item.state != "absent",
        )

    def _links(self) -> Iterator[Sourced[DesiredLink]]:
        for index, item in enumerate(self._args.links or []):
            yield Sourced(self._link(item), self._source("links", index))

    def _link(self, item: LinkArgs) -> DesiredLink:
        named = ((name, getattr(item, name)) for name in names(LINK_FIELDS))
        fields = {
            name: Position(value, self._args.origin) if isinstance(value, Timecode) else value
            for name, value in sorted(named)
            if value is not None
        }
        return DesiredLink(item.folder, _or_absent(item.title), present=item.state != "absent", fields=fields)

    def _exactly(self) -> CompleteLists:
        args = self._args
        named = {name: self._exactly_source(name) for name in exactly_lists(args)}
        narrowed = args.exactly.markers if isinstance(args.exactly, ExactlyArgs) else None
        tracks = frozenset(narrowed.tracks) if isinstance(narrowed, MarkersExactly) else None
        return CompleteLists(named.get("segments"), named.get("markers"), named.get("links"), tracks)

    def _exactly_source(self, name: str) -> TaskSource:
        if isinstance(self._args.exactly, list):
            return self._source("exactly", [str(each) for each in self._args.exactly].index(name))
        return self._source("exactly", name)

    def _restore(self) -> Sourced[float] | None:
        args = self._args.restore
        if args is None or args is False:
            return None
        wait = args.wait.total_seconds() if isinstance(args, RestoreArgs) and args.wait is not None else DEFAULT_WAIT
        return Sourced(wait, self._source("restore"))


def _named_texts(item: object, attributes: Iterable[Attribute]) -> dict[str, str]:
    """Return the attributes that an item names, as texts; one that is secret stays a ``TaintedText``."""
    values = ((name, getattr(item, name)) for name in names(attributes))
    return {name: str(value) if isinstance(value, int) else value for name, value in values if value is not None}


def _values(texts: list[str] | str) -> tuple[str, ...]:
    """One empty text clears the field, as an empty list does."""
    found = tuple(as_list(texts))
    return () if found == ("",) else found


def _or_absent(value: Any) -> Any:
    return ABSENT if value is None else value
