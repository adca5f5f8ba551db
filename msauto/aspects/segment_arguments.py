"""What a playbook may write of segments, one by one or as a segmentation, and what it comes to."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from msgspec import Struct, field

from msauto.aspects import arguments
from msauto.aspects.merging import Merging, exactly_of
from msauto.documents import key_rules as rule
from msauto.documents.document import SourceNode
from msauto.documents.strict_model import Model, key, need
from msauto.documents.value_types import Count, Opt, Pos, Text, Value
from msauto.documents.writer import FlowStyle
from msauto.errors import Problem
from msauto.model.desired import ABSENT, Absent, DesiredList, Position, Sourced
from msauto.model.fields import SEGMENT_ATTRIBUTES, SEGMENT_NAMES
from msauto.model.identity import plain
from msauto.model.live import AssetSnapshot, Segment
from msauto.model.server import Dialect
from msauto.model.timecode import Timecode

_SEGMENT_IS_NAMED = rule.any_of(
    (("number",), ("start", "duration"), ("title",)),
    "the absent segment is not identified",
    "add number, or start and duration, or title",
)


@arguments.with_attributes(SEGMENT_ATTRIBUTES)
class SegmentKeys(Model):
    """What a segment is and has."""

    number: Opt[Count] = key("the segment's number; a list numbers all of its segments or none")
    start: Opt[Pos] = key("where it starts: a time code or frames")
    duration: Opt[Pos] = key("how long it is: a time code or frames")


class SegmentArgs(SegmentKeys):
    """A segment, identified by its number, or by its start and duration."""

    rules: ClassVar = (
        rule.when_value("state", "present", rule.all_of(("start", "duration"), "the segment has no"), default=True),
        rule.when_value("state", "absent", _SEGMENT_IS_NAMED),
    )

    state: Opt[arguments.State] = key("present (default) or absent: not there")


class SegmentationArgs(Model):
    """Segments of equal duration over the whole asset."""

    duration: Value[Pos] = need("duration of each segment: a time code or frames")
    title: Opt[Text] = key("title of the segments")


SEGMENT_KEYS = {
    "segments": arguments.asset_key(list[Value[SegmentArgs]], "segments"),
    "segmentation": arguments.asset_key(SegmentationArgs, "segments of equal duration over the whole asset"),
}
SEGMENT_RULES = (
    rule.excludes("segments", ("segmentation",), "{key} and {other} cannot be used together", "keep one of them"),
    rule.complete("segments", ("segments", "segmentation")),
    rule.all_or_none("segments", "number", "this segment has no number, but others do", "number all segments or none"),
)
SEGMENTS_EXACTLY = arguments.asset_key(bool, "remove other segments")


def check_segments(args: Any, node: SourceNode) -> Iterator[Problem]:
    """Yield what is wrong with a list of segments."""
    segments, here = arguments.known_items(args.segments, SegmentArgs), node.child("segments")
    for index, item in segments:
        if item.state != "absent" and _is_zero(item.duration):
            yield here.child(index, "duration").problem(
                "the duration of a segment cannot be 0", "write at least one frame, or state: absent"
            )
    yield from arguments.duplicates(segments, here, lambda item: item.number, "number", "segment number")


def _is_zero(position: Any) -> bool:
    return isinstance(position, Timecode) and not (position.frames or position.seconds or position.fraction)


# Desired state -----------------------------------------------------------------------------------------------------


class DesiredSegment(Struct, frozen=True, gc=False):
    """A segment. ``number`` ABSENT: matched by start and duration, else title. ``present`` false removes it.

    ``fields``: title and keywords as texts, only those named.
    """

    number: int | Absent = ABSENT
    start: Position | Absent = ABSENT
    duration: Position | Absent = ABSENT
    fields: Mapping[str, str] = field(default_factory=dict)
    present: bool = True


class DesiredSegmentation(Struct, frozen=True, gc=False):
    """The whole asset in segments of equal duration (CREATESEGMENTATION)."""

    duration: Position
    title: str | Absent = ABSENT

    def __str__(self) -> str:
        return f"pieces of {self.duration}"


class DesiredSegments(DesiredList[DesiredSegment], frozen=True, gc=False):
    """Segments, one by one or as a segmentation."""

    segmentation: Sourced[DesiredSegmentation] | None = None


def declare_segments(task: arguments.TaskArguments) -> DesiredSegments | None:
    """Return what a task declares of segments."""

    def segment(item: SegmentArgs) -> DesiredSegment:
        return DesiredSegment(
            number=arguments.or_absent(item.number),
            start=task.position(item.start),
            duration=ABSENT if item.duration is None else Position(item.duration),
            fields=arguments.named_texts(item, SEGMENT_ATTRIBUTES),
            present=item.state != "absent",
        )

    items, exactly, equal = task.each("segments", segment), task.complete("segments"), task.args.segmentation
    whole = None
    if equal is not None:
        parts = DesiredSegmentation(Position(equal.duration), arguments.or_absent(equal.title))
        whole = Sourced(parts, task.source("segmentation"))
    return DesiredSegments(items, exactly, whole) if items or exactly or whole else None


def merge_segments(merging: Merging, declared: Sequence[DesiredSegments]) -> DesiredSegments:
    """Merge the segments of several tasks."""

    def identity(value: DesiredSegment) -> Hashable:
        if value.number is not ABSENT:
            return value.number
        place = (merging.comparable(value.start), merging.comparable(value.duration))
        title = value.fields.get("title")
        return (*place, plain(title)) if value.start is ABSENT and title is not None else place

    def called(value: DesiredSegment) -> str:
        if value.number is not ABSENT:
            return f"segment {value.number}"
        return f"segment {value.fields.get('title')!r}" if value.start is ABSENT else f"the segment at {value.start}"

    whole = [each.segmentation for each in declared if each.segmentation is not None]
    for other in whole[1:]:
        one, another = whole[0].value, other.value
        if not (merging.same(one.duration, another.duration) and merging.same(one.title, another.title)):
            merging.differ("the segmentation", whole[0], other)
    items = merging.items(declared, identity, called, ("start", "duration"))
    return DesiredSegments(items, exactly_of(declared), whole[0] if whole else None)


# Export ------------------------------------------------------------------------------------------------------------


def export_segments(snapshot: AssetSnapshot, _: Dialect) -> arguments.ExportedPart:
    """Return the live segments as a task writes them."""
    part = arguments.ExportedPart()
    asset = snapshot.asset
    twins = arguments.repeated(segment.number for segment in asset.segments)
    for number in sorted(twins):
        part.leave_out(f"several segments have the number {number}: none of them can be named")
    for segment in sorted(asset.segments, key=lambda segment: segment.number):
        if segment.number in twins:
            continue
        start = segment.start + snapshot.origin
        why = _unfit_segment(segment.number, start, segment.duration, asset.frames)
        if why is not None:
            part.leave_out(f"segment {segment.number} is left out: {why}")
            continue
        sourced: dict[str, Any] = {
            "number": segment.number,
            "start": arguments.exported_position(start, asset.rate),
            "duration": arguments.exported_position(segment.duration, asset.rate),
        }
        sourced |= {name: text for name in SEGMENT_NAMES if (text := segment.text(name))}
        part.add(FlowStyle(sourced), tuple(_lossy(segment)))
    return part


def _unfit_segment(number: int, start: int, duration: int, frames: int | None) -> str | None:
    if number < 0:
        return "its number is negative"
    if start < 0 or duration <= 0:
        return f"it starts at frame {start} and is {duration} frames long"
    if frames is not None and start + duration > frames:
        return f"it ends at frame {start + duration}, beyond the end of the clip ({frames} frames)"
    return None


def _lossy(segment: Segment) -> Iterator[str]:
    """Yield the parts of a segment that the interface cannot write (interface, «Asset commands»: CREATESEGMENT)."""
    if segment.track:
        yield f"track of segment {segment.number}, which no task can set: {segment.track}"
    if segment.rating and segment.rating.strip() != "0":
        yield f"rating of segment {segment.number}, which no task can set: {segment.rating}"
    for title in segment.titles[1:]:
        yield f"further title of segment {segment.number}, which no task can set: {title}"
