"""The detailed description of one asset, and its XMP fields (interface "Detailed asset shape", "XMP field values")."""

from __future__ import annotations

import re

from msauto.simulator.answers import (
    GARBAGE,
    HttpAnswer,
    attr_element,
    element,
    escape_attribute,
    escape_text,
    text_answer,
    xml_answer,
)
from msauto.simulator.dialect import SimDialect
from msauto.simulator.positions import frame_time
from msauto.simulator.state import LINK_FIELDS, SimClip, SimEntry, SimMarker, SimSegment
from msauto.simulator.wire import RefusalError, folder_text

_NOT_IN_NAMES = re.compile(r"[^\w.-]")


def attributes_xml(entry: SimEntry, dialect: SimDialect) -> str:
    """Return the Attr elements that listings and the detailed shape share."""
    clip = entry.clip
    values: dict[str, object] = {
        "bps": clip.bps,
        "channels": clip.channels,
        "derived_from": clip.derived_from,
        "frame_time": frame_time(clip.rate),
        "frames": clip.length,
        "height": clip.height,
        "width": clip.width,
        "orig_name": clip.orig_name,
        "orig_type": clip.orig_type,
        "sample_rate": clip.sample_rate,
        "first_frame": entry.first_frame,
        "last_frame": entry.last_frame,
        "title": entry.title,
        "create_time": clip.create_time,
        "rec_time": clip.rec_time,
        "mime_type": clip.mime_type,
    }
    if dialect.link_fields != "hidden":
        fields = {name: entry.fields.get(name, "") for name in LINK_FIELDS}
        values |= {name: value for name, value in fields.items() if value or dialect.link_fields == "reported"}
    if dialect.orig_name == "hidden":
        del values["orig_name"]
    shown = [(name, escape_text(str(value))) for name, value in values.items() if name not in clip.omitted]
    return "".join(f'<Attr name="{name}">{content}</Attr>\n' for name, content in shown)


def clip_xml(entry: SimEntry, dialect: SimDialect) -> str:
    """Return the detailed asset shape, root `Clip`."""
    clip = entry.clip
    origin = entry.first_frame if dialect.position_origin == "in" else 0
    path = folder_text(entry.folder if dialect.link_folder == "own" else clip.home.folder)
    return "".join(
        (
            f'<Clip folder="{escape_attribute(path)}" hires="{escape_attribute(clip.hires)}" ',
            f'proxy="{escape_attribute(clip.proxy)}" archive="{escape_attribute(clip.archive)}" ',
            f'link_id="{entry.link_id}" finalized="{str(clip.finalized).lower()}">\n',
            *(_marker(marker, origin) for marker in clip.markers),
            *(_segment(segment, origin, dialect) for segment in clip.segments),
            attributes_xml(entry, dialect),
            *(f'<Param name="{escape_attribute(name)}"/>\n' for name in clip.params),
            "</Clip>",
        )
    )


def xmp_answer(clip: SimClip, desired: list[str], dialect: SimDialect) -> HttpAnswer:
    """GETUSERFIELDS in the shape of the dialect (interface: "Response body ... not shown")."""
    fields = clip.xmp
    if desired:
        fields = {name: clip.xmp[name] for name in desired if name in clip.xmp}
    elif dialect.xmp_without_field == "error":
        raise RefusalError(400, "field is missing")
    elif dialect.xmp_without_field == "empty":
        fields = {}
    if dialect.xmp_shape == "unreadable":
        return HttpAnswer(200, GARBAGE, "application/octet-stream")
    if dialect.xmp_shape == "lines":
        lines = [f"{name}={dialect.list_separator.join(values)}\n" for name, values in fields.items()]
        return text_answer("".join(lines))
    return xml_answer(f"<UserFields>\n{_xmp_elements(fields, dialect.xmp_shape)}</UserFields>", dialect)


def _xmp_elements(fields: dict[str, list[str]], shape: str) -> str:
    if shape == "element":
        return "".join(_one_element(name, values) for name, values in fields.items())
    if shape == "nested":
        bags = {name: "".join(element("li", value) for value in values) for name, values in fields.items()}
        rows = (f'<Field name="{escape_attribute(name)}"><Bag>{bag}</Bag></Field>\n' for name, bag in bags.items())
        return "".join(rows)
    return "".join(attr_element(name, value) + "\n" for name, values in fields.items() for value in values)


def _one_element(field: str, values: list[str]) -> str:
    prefix, colon, local = field.partition(":")
    name = _NOT_IN_NAMES.sub("_", local if colon else prefix)
    if not colon:
        return "".join(element(name, value) + "\n" for value in values)
    prefix = _NOT_IN_NAMES.sub("_", prefix)
    start = f'<{prefix}:{name} xmlns:{prefix}="urn:xmp:{prefix}">'
    return "".join(f"{start}{escape_text(value)}</{prefix}:{name}>\n" for value in values)


def _marker(marker: SimMarker, origin: int) -> str:
    fields = "".join(attr_element(name, value) for name, value in marker.fields.items())
    return f'<Marker uid="{marker.uid}" pos="{marker.pos - origin}">{fields}</Marker>\n'


def _segment(segment: SimSegment, origin: int, dialect: SimDialect) -> str:
    children = "".join(element("title", title) for title in segment.titles)
    if segment.track:
        children += element("track", segment.track)
    if segment.rating:
        children += element("rating", str(segment.rating))
    if segment.keywords and dialect.segment_keywords == "reported":
        children += element("keywords", segment.keywords)
    return (
        f'<Segment seg_num="{segment.number}" seg_name="{escape_attribute(segment.name)}" '
        f'start_frame="{segment.start - origin}" duration="{segment.duration}">{children}</Segment>\n'
    )
