"""The detailed description of one asset, and its XMP fields (interface "Detailed asset shape", "XMP field values")."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msauto.simulator.commands.positions import frame_time
from msauto.simulator.dialect import SimDialect
from msauto.simulator.http.answers import HttpAnswer, RefusalError, garbage, text_answer, xml_answer
from msauto.simulator.http.wire import folder_text
from msauto.simulator.http.xml_out import attr, attribute, element, text
from msauto.simulator.state.state import SimClip, SimEntry, SimMarker, SimSegment

LINK_FIELDS = ("type", "comment", "layer", "icon_pos", *(f"user_{number}" for number in range(8)))
_NOT_IN_NAMES = re.compile(r"[^\w.-]")


def boolean(value: bool, dialect: SimDialect) -> str:
    """A boolean in the words of the dialect."""
    yes, no = dialect.finalized_word.split("/")
    return yes if value else no


def attributes_xml(entry: SimEntry, dialect: SimDialect) -> str:
    """The Attr elements that listings and the detailed shape share."""
    clip = entry.clip
    own = "".join(
        (
            f'<Attr name="bps">{clip.bps}</Attr>\n<Attr name="channels">{clip.channels}</Attr>\n',
            f'<Attr name="derived_from">{text(clip.derived_from)}</Attr>\n',
            f'<Attr name="frame_time">{frame_time(clip.rate)}</Attr>\n<Attr name="frames">{clip.length}</Attr>\n',
            f'<Attr name="height">{clip.height}</Attr>\n<Attr name="width">{clip.width}</Attr>\n',
            f'<Attr name="orig_name">{text(clip.orig_name)}</Attr>\n',
            f'<Attr name="orig_type">{text(clip.orig_type)}</Attr>\n',
            f'<Attr name="sample_rate">{clip.sample_rate}</Attr>\n',
            f'<Attr name="first_frame">{entry.first_frame}</Attr>\n',
            f'<Attr name="last_frame">{entry.last_frame}</Attr>\n',
            f'<Attr name="title">{text(entry.title)}</Attr>\n',
            f'<Attr name="create_time">{clip.create_time}</Attr>\n<Attr name="rec_time">{clip.rec_time}</Attr>\n',
            f'<Attr name="mime_type">{clip.mime_type}</Attr>\n',
        )
    )
    told = own + _link_fields(entry, dialect) + _extra_attribute(dialect)
    return _without(clip.untold, told) if clip.untold else told


def _without(names: Iterable[str], attributes: str) -> str:
    starts = tuple(f'<Attr name="{name}">' for name in names)
    return "".join(line for line in attributes.splitlines(keepends=True) if not line.startswith(starts))


def clip_xml(entry: SimEntry, dialect: SimDialect) -> str:
    """The detailed asset shape, root `Clip`."""
    clip = entry.clip
    origin = entry.first_frame if dialect.position_origin == "in" else 0
    path = folder_text(entry.folder if dialect.link_folder == "own" else clip.home.folder)
    root = "/" if dialect.folder_path == "rooted" else ""
    return "".join(
        (
            f'<Clip folder="{root}{attribute(path)}" hires="{attribute(clip.hires)}" ',
            f'proxy="{attribute(clip.proxy)}" archive="{attribute(clip.archive)}" ',
            f'link_id="{entry.link_id}" finalized="{boolean(clip.finalized, dialect)}"',
            ' vendor_hint="7">\n<Vendor><Clip title="none"/></Vendor>\n' if dialect.extra == "yes" else ">\n",
            *(_marker(marker, origin) for marker in clip.markers),
            *(_segment(segment, origin, dialect) for segment in clip.segments),
            attributes_xml(entry, dialect),
            *(f'<Param name="{attribute(name)}"/>\n' for name in clip.params),
            "</Clip>",
        )
    )


def xmp_answer(clip: SimClip, desired: list[str], dialect: SimDialect) -> HttpAnswer:
    """GETUSERFIELDS, in the shape of the dialect (interface: "Response body ... not shown")."""
    fields = clip.xmp
    if desired:
        fields = {name: clip.xmp[name] for name in desired if name in clip.xmp}
    elif dialect.xmp_without_field == "error":
        raise RefusalError(400, "field is missing")
    elif dialect.xmp_without_field == "empty":
        fields = {}
    if dialect.xmp_shape == "unreadable":
        return HttpAnswer(200, garbage(len(fields)), "application/octet-stream")
    if dialect.xmp_shape == "lines":
        lines = [f"{name}={dialect.list_separator.join(values)}\n" for name, values in fields.items()]
        return text_answer("".join(lines))
    return xml_answer(f"<UserFields>\n{_xmp_elements(fields, dialect.xmp_shape)}</UserFields>", dialect)


def _xmp_elements(fields: dict[str, list[str]], shape: str) -> str:
    if shape == "element":
        return "".join(_one_element(name, values) for name, values in fields.items())
    if shape == "nested":
        return "".join(
            f'<Field name="{attribute(name)}"><Bag>{_all("li", values)}</Bag></Field>\n'
            for name, values in fields.items()
        )
    return "".join(attr(name, value) + "\n" for name, values in fields.items() for value in values)


def _one_element(field: str, values: list[str]) -> str:
    prefix, colon, local = field.partition(":")
    name = _NOT_IN_NAMES.sub("_", local if colon else prefix)
    if not colon:
        return "".join(element(name, value) + "\n" for value in values)
    prefix = _NOT_IN_NAMES.sub("_", prefix)
    start = f'<{prefix}:{name} xmlns:{prefix}="urn:xmp:{prefix}">'
    return "".join(f"{start}{text(value)}</{prefix}:{name}>\n" for value in values)


def _all(name: str, values: Iterable[str]) -> str:
    return "".join(element(name, value) for value in values)


def _link_fields(entry: SimEntry, dialect: SimDialect) -> str:
    if dialect.link_fields == "hidden":
        return ""
    names = LINK_FIELDS
    if dialect.link_fields == "reported_when_set":
        names = tuple(name for name in LINK_FIELDS if entry.fields.get(name))
    return "".join(attr(name, entry.fields.get(name, "")) + "\n" for name in names)


def _extra_attribute(dialect: SimDialect) -> str:
    return '<Attr name="vendor_mood" unit="lumen">42</Attr>\n' if dialect.extra == "yes" else ""


def _marker(marker: SimMarker, origin: int) -> str:
    fields = "".join(attr(name, value) for name, value in marker.fields.items())
    return f'<Marker uid="{marker.uid}" pos="{marker.pos - origin}">{fields}</Marker>\n'


def _segment(segment: SimSegment, origin: int, dialect: SimDialect) -> str:
    in_name = dialect.segment_title != "child" and segment.titles
    name = segment.titles[0] if in_name else segment.name
    titles = [] if dialect.segment_title == "seg_name" else segment.titles
    children = _all("title", titles)
    if segment.track:
        children += element("track", segment.track)
    if segment.rating:
        children += element("rating", str(segment.rating))
    if segment.keywords and dialect.segment_keywords == "reported":
        children += element("keywords", segment.keywords)
    return (
        f'<Segment seg_num="{segment.number}" seg_name="{attribute(name)}" '
        f'start_frame="{segment.start - origin}" duration="{segment.duration}">{children}</Segment>\n'
    )
