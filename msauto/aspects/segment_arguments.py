"""What a playbook may write of segments, one by one or as a segmentation, and what it comes to."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from msgspec import Struct

from msauto.aspects import arguments
from msauto.aspects.comparison import Attributes, Item, text_of
from msauto.aspects.list_aspect import ListAspect, unread_items
from msauto.aspects.merging import Merging, exactly_of
from msauto.documents import key_rules as rule
from msauto.documents.document import SourceNode, UnrenderedTemplate
from msauto.documents.strict_model import Model, key, need
from msauto.documents.value_types import Identifier, Opt, Pos, Text, Value
from msauto.documents.writer import FlowStyle
from msauto.errors import Problem
from msauto.model.desired import ABSENT, Absent, DesiredList, Position, Sourced
from msauto.model.fields import SEGMENT_ATTRIBUTES, SEGMENT_NAMES
from msauto.model.identity import plain
from msauto.model.live import AssetSnapshot, Segment
from msauto.model.server import Dialect
from msauto.model.snapshot import UNREAD
from msauto.model.timecode import Timecode
from msauto.primitives.decimals import read_whole

NEVER_WRITTEN: Final = ("track", "rating", "further_titles")
"""What CREATESEGMENT cannot set (interface, «Segment»)."""
_SEGMENT_IS_NAMED = rule.any_of(
    (("number",), ("start", "duration"), ("title",)),
    "the absent segment is not identified",
    "add number, or start and duration, or title",
)


@arguments.with_attributes(SEGMENT_ATTRIBUTES)
class SegmentKeys(Model):
    """What a segment is and has."""

    number: Opt[Identifier] = key(
        "the segment's number; a list numbers all of its segments or none"
    )
    start: Opt[Pos] = key("where it starts: a time code or frames")
    duration: Opt[Pos] = key("how long it is: a time code or frames")


class SegmentArgs(SegmentKeys):
    """A segment, identified by its number, or by its start and duration."""

    rules: ClassVar = (
        rule.when_value(
            "state",
            "present",
            rule.all_of(("start", "duration"), "the segment has no"),
            default=True,
        ),
        rule.when_value("state", "absent", _SEGMENT_IS_NAMED),
    )

    state: Opt[arguments.State] = key("present (default) or absent: not there")


class SegmentationArgs(Model):
    """Segments of equal duration over the whole asset."""

    duration: Value[Pos] = need("duration of each segment: a time code or frames")
    title: Opt[Text] = key("title of the segments")


def _empty_titles(
    args: Any, segments: Sequence[tuple[int, SegmentArgs]], here: SourceNode
) -> Iterator[Problem]:
    """Yield a problem for each segment that only its empty title names: every untitled segment would be meant."""
    asset = args.title or args.id
    if isinstance(asset, UnrenderedTemplate):
        return  # the message names the asset of a row; it is checked once that is known
    of = f" of {asset!r}" if asset else ""
    for index, item in segments:
        has_place = item.start is not None and item.duration is not None
        if item.number is not None or has_place:
            continue
        title = arguments.named_texts(item, SEGMENT_ATTRIBUTES).get("title")
        if title is not None and not title.strip():
            yield here.child(index, "title").problem(
                f"the title of item {index + 1} of segments{of} is empty, and identifies no segment",
                "write the title, or add number, or start and duration",
            )


# Desired state -----------------------------------------------------------------------------------------------------


class DesiredSegment(Struct, frozen=True, gc=False):
    """A segment. ``number`` ABSENT: matched by start and duration, else title. ``present`` false removes it.

    ``fields``: title and keywords as texts, only those named. ``keys_before`` (undo): it is one more, beside the live
    segments of these numbers.
    """

    number: int | Absent = ABSENT
    start: Position | Absent = ABSENT
    duration: Position | Absent = ABSENT
    fields: Mapping[str, str] = {}
    present: bool = True
    keys_before: frozenset[str] | None = None


class DesiredSegmentation(Struct, frozen=True, gc=False):
    """The whole asset in segments of equal duration (CREATESEGMENTATION)."""

    duration: Position
    title: str | Absent = ABSENT

    def __str__(self) -> str:
        return f"pieces of {self.duration}"


class DesiredSegments(DesiredList[DesiredSegment], frozen=True, gc=False):
    """Segments, one by one or as a segmentation."""

    segmentation: Sourced[DesiredSegmentation] | None = None


class SegmentArguments(ListAspect):
    """What a task may write of segments."""

    keys: ClassVar = {
        "segments": arguments.asset_key(list[Value[SegmentArgs]], "segments"),
        "segmentation": arguments.asset_key(
            SegmentationArgs, "segments of equal duration over the whole asset"
        ),
    }
    rules: ClassVar = (
        rule.excludes(
            "segments",
            ("segmentation",),
            "{key} and {other} cannot be used together",
            "keep one of them",
        ),
        rule.all_or_none(
            "segments",
            "number",
            "this segment has no number, but others do",
            "number all segments or none",
        ),
    )
    exactly: ClassVar = ("segments", arguments.asset_key(bool, "remove other segments"))

    def check(self, args: Any, node: SourceNode) -> Iterator[Problem]:
        """Yield what is wrong with a list of segments."""
        segments, here = arguments.known_items(args.segments, SegmentArgs), node.child("segments")
        for index, item in segments:
            length = item.duration
            is_zero = isinstance(length, Timecode) and not (
                length.frames or length.seconds or length.fraction
            )
            if item.state != "absent" and is_zero:
                yield here.child(index, "duration").problem(
                    "the duration of a segment cannot be 0",
                    "write at least one frame, or state: absent",
                )
        yield from arguments.duplicates(
            segments, here, lambda item: item.number, "number", "segment number"
        )
        yield from _empty_titles(args, segments, here)

    def declare(self, task: arguments.TaskArguments) -> DesiredSegments | None:
        """Return what a task declares of segments."""

        def segment(item: SegmentArgs) -> DesiredSegment:
            return DesiredSegment(
                number=arguments.or_absent(item.number),
                start=task.position(item.start),
                duration=ABSENT if item.duration is None else Position(item.duration),
                fields=arguments.named_texts(item, SEGMENT_ATTRIBUTES),
                present=item.state != "absent",
            )

        items = task.each("segments", segment)
        exactly = task.complete("segments")
        equal = task.args.segmentation
        whole = None
        if equal is not None:
            pieces = DesiredSegmentation(Position(equal.duration), arguments.or_absent(equal.title))
            whole = Sourced(pieces, task.source("segmentation"))
        if items or exactly or whole:
            return DesiredSegments(items, exactly, whole)
        return None

    def merge(self, merging: Merging, parts: Sequence[DesiredSegments]) -> DesiredSegments:
        """Merge the segments of several tasks."""

        def identity(value: DesiredSegment) -> Hashable:
            if value.number is not ABSENT:
                return value.number
            place = (merging.comparable(value.start), merging.comparable(value.duration))
            if value.start is ABSENT and "title" in value.fields:
                return (*place, plain(value.fields["title"]))
            return place

        def called(value: DesiredSegment) -> str:
            if value.number is not ABSENT:
                return f"segment {value.number}"
            if value.start is ABSENT:
                return f"segment {value.fields.get('title')!r}"
            return f"the segment at {value.start}"

        whole: Sourced[DesiredSegmentation] | None = None
        for part in parts:
            equal = part.segmentation
            if equal is None:
                continue
            whole = whole or equal
            one = whole.value
            other = equal.value
            if not (
                merging.same(one.duration, other.duration) and merging.same(one.title, other.title)
            ):
                merging.differ("the segmentation", whole, equal)
        items = merging.items(parts, identity, called, ("start", "duration"))
        return DesiredSegments(items, exactly_of(parts), whole)

    def export(self, snapshot: AssetSnapshot, dialect: Dialect) -> arguments.ExportedPart:
        """Return the live segments as a task writes them."""
        part = arguments.ExportedPart()
        asset = snapshot.asset
        twins = arguments.repeated(segment.number for segment in asset.segments)
        for number in sorted(twins):
            part.leave_out(f"several segments have the number {number}: none of them can be named")
        for _, shown in unread_items(asset, self.name):
            part.leave_out(f"a segment is left out: {shown[UNREAD]}")
        for segment in sorted(asset.segments, key=lambda segment: segment.number):
            number = segment.number
            if number in twins:
                continue
            why = _unfit_segment(number, segment.start, segment.duration, asset.frames)
            if why is not None:
                part.leave_out(f"segment {number} is left out: {why}")
                continue
            sourced: dict[str, Any] = {
                "number": number,
                "start": arguments.exported_position(segment.start, asset.rate),
                "duration": arguments.exported_position(segment.duration, asset.rate),
            }
            for name in SEGMENT_NAMES:
                text = segment.text(name)
                if text:
                    sourced[name] = text
            notes = []
            for name, value in cannot_write_back(attributes(segment)).items():
                what = f"{name.replace('_', ' ')} of segment {number}, which no task can set"
                texts = value if isinstance(value, list) else [value]
                notes += [f"{what}: {str(text)[:80]}" for text in texts]
            part.add(FlowStyle(sourced), notes)
        return part


def _unfit_segment(number: int, start: int, duration: int, frames: int | None) -> str | None:
    if number < 0:
        return "its number is negative"
    if start < 0 or duration <= 0:
        return f"it starts at frame {start} and is {duration} frames long"
    if frames is not None and start + duration > frames:
        return f"it ends at frame {start + duration}, beyond the end of the clip ({frames} frames)"
    return None


def attributes(segment: Segment) -> Item:
    """Return a live segment by its attributes: only what the server reports."""
    shown: Item = {"start": segment.start, "duration": segment.duration}
    for name in SEGMENT_NAMES:
        text = segment.text(name)
        if text is not None:
            shown[name] = text
    if segment.track:
        shown["track"] = segment.track
    if segment.rating:
        shown["rating"] = segment.rating
    if len(segment.titles) > 1:
        shown["further_titles"] = [*segment.titles[1:]]
    return shown


def cannot_write_back(live: Attributes) -> Item:
    """Return what the interface cannot write again; a rating of 0 does not count."""
    lost: Item = {}
    for name in NEVER_WRITTEN:
        value = live.get(name)
        is_zero = name == "rating" and read_whole(text_of(value)) == 0
        if value and not is_zero:
            lost[name] = value
    return lost
