"""What /storage shows: one asset, its XMP fields, its pictures and films, and listings.

Sources: interface, «Asset», «XMP field values», «List databases», «List assets and folders», «PNG thumbnail» and «Web
proxy». It does not define the position of the requested folder in a listing: here it is the top Folder, unnamed.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping

from msauto.plugins.simulator.embedded import wire
from msauto.plugins.simulator.embedded.dialect import SimDialect
from msauto.plugins.simulator.embedded.state import (
    LINK_FIELDS,
    MIME_TYPES,
    Folder,
    ServerState,
    SimClip,
    SimDatabase,
    SimEntry,
    SimMarker,
    SimSegment,
)

_DATE = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?)?")
_NOT_IN_NAMES = re.compile(r"[^\w.-]")
_Keep = Callable[[SimEntry], bool]


def attributes_xml(entry: SimEntry, dialect: SimDialect, instead: Mapping[str, str]) -> str:
    """Return the Attr elements that listings and the detailed shape share; `instead`: texts shown in place of them."""
    clip = entry.clip
    values: dict[str, object] = {
        "bps": clip.bps,
        "channels": clip.channels,
        "derived_from": clip.derived_from,
        "frame_time": wire.frame_time(clip.rate),
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
    values |= {name: text for name, text in instead.items() if name in values}
    shown = [(name, wire.escape_text(str(value))) for name, value in values.items() if name not in clip.omitted]
    return "".join(f'<Attr name="{name}">{content}</Attr>\n' for name, content in shown)


def _finalized(clip: SimClip, dialect: SimDialect, instead: Mapping[str, str]) -> str:
    text = "true" if clip.finalized else "" if dialect.unfinalized == "empty" else dialect.unfinalized
    return wire.escape_attribute(instead.get("finalized", text))


def clip_xml(entry: SimEntry, dialect: SimDialect) -> str:
    """Return the detailed asset shape, root `Clip`."""
    clip = entry.clip
    origin = entry.first_frame if dialect.position_origin == "in" else 0
    path = wire.folder_text(entry.folder if dialect.link_folder == "own" else clip.home.folder)
    return "".join(
        (
            f'<Clip folder="{wire.escape_attribute(path)}" hires="{wire.escape_attribute(clip.hires)}" ',
            f'proxy="{wire.escape_attribute(clip.proxy)}" archive="{wire.escape_attribute(clip.archive)}" ',
            f'link_id="{entry.link_id}" finalized="{_finalized(clip, dialect, clip.shown)}">\n',
            *(_marker(marker, origin) for marker in clip.markers),
            *(_segment(segment, origin, dialect) for segment in clip.segments),
            attributes_xml(entry, dialect, clip.shown),
            *(f'<Param name="{wire.escape_attribute(name)}"/>\n' for name in clip.params),
            "</Clip>",
        )
    )


def xmp_answer(clip: SimClip, desired: list[str], dialect: SimDialect) -> wire.HttpAnswer:
    """GETUSERFIELDS in the shape of the dialect: the interface does not specify one."""
    fields = clip.xmp
    if desired:
        fields = {name: clip.xmp[name] for name in desired if name in clip.xmp}
    elif dialect.xmp_without_field == "error":
        raise wire.RefusalError(400, "field is missing")
    elif dialect.xmp_without_field == "empty":
        fields = {}
    if dialect.xmp_shape == "unreadable":
        return wire.HttpAnswer(200, wire.GARBAGE, "application/octet-stream")
    if dialect.xmp_shape == "lines":
        lines = [f"{name}={dialect.list_separator.join(values)}\n" for name, values in fields.items()]
        return wire.text_answer("".join(lines))
    return wire.xml_answer(f"<UserFields>\n{_xmp_elements(fields, dialect.xmp_shape)}</UserFields>", dialect)


def _xmp_elements(fields: dict[str, list[str]], shape: str) -> str:
    if shape == "element":
        return "".join(_one_element(name, values) for name, values in fields.items())
    if shape == "nested":
        bags = {name: "".join(wire.element("li", value) for value in values) for name, values in fields.items()}
        rows = (f'<Field name="{wire.escape_attribute(name)}"><Bag>{bag}</Bag></Field>\n' for name, bag in bags.items())
        return "".join(rows)
    return "".join(wire.attr_element(name, value) + "\n" for name, values in fields.items() for value in values)


def _one_element(field: str, values: list[str]) -> str:
    prefix, colon, local = field.partition(":")
    name = _NOT_IN_NAMES.sub("_", local if colon else prefix)
    if not colon:
        return "".join(wire.element(name, value) + "\n" for value in values)
    prefix = _NOT_IN_NAMES.sub("_", prefix)
    start = f'<{prefix}:{name} xmlns:{prefix}="urn:xmp:{prefix}">'
    return "".join(f"{start}{wire.escape_text(value)}</{prefix}:{name}>\n" for value in values)


def _marker(marker: SimMarker, origin: int) -> str:
    fields = "".join(wire.attr_element(name, value) for name, value in marker.fields.items())
    return f'<Marker uid="{marker.uid}" pos="{marker.pos - origin}">{fields}</Marker>\n'


def _segment(segment: SimSegment, origin: int, dialect: SimDialect) -> str:
    children = "".join(wire.element("title", title) for title in segment.titles)
    if segment.track:
        children += wire.element("track", segment.track)
    if segment.rating:
        children += wire.element("rating", str(segment.rating))
    if segment.keywords and dialect.segment_keywords == "reported":
        children += wire.element("keywords", segment.keywords)
    return (
        f'<Segment seg_num="{segment.number}" seg_name="{wire.escape_attribute(segment.name)}" '
        f'start_frame="{segment.start - origin}" duration="{segment.duration}">{children}</Segment>\n'
    )


def databases_parts(state: ServerState, dialect: SimDialect) -> Iterator[str]:
    """GET /storage: every database with its content."""
    yield "<Databases>\n"
    for database in list(state.databases.values()):
        yield f'<Database name="{wire.escape_attribute(database.name)}">\n'
        yield from _stored_tree(database.root, (), lambda _: True, dialect)
        yield "</Database>\n"
    yield "</Databases>"


def folder_parts(
    database: SimDatabase, path: wire.FolderPath, request: wire.HttpRequest, dialect: SimDialect
) -> Iterator[str]:
    """GET /storage/NAME/FOLDER...: StoredTree, mam or folderlist."""
    folder = database.folder(path)
    if folder is None:
        raise wire.ResourceNotFoundError
    keep = _filter(request, dialect)
    match request.param("format") or "StoredTree":
        case "StoredTree":
            return _stored_tree(folder, path, keep, dialect)
        case "folderlist":
            return _stored_tree(folder, path, None, dialect)
        case "mam":
            return _mam(folder, keep)
        case unknown:
            raise wire.RefusalError(400, f"unknown format {unknown}")


def _stored_tree(folder: Folder, path: wire.FolderPath, keep: _Keep | None, dialect: SimDialect) -> Iterator[str]:
    yield f'<StoredTree query_root="{wire.escape_attribute(wire.folder_text(path))}">\n<Folder name="">\n'
    yield from _content(folder, keep, dialect)
    yield "</Folder>\n</StoredTree>"


def _content(folder: Folder, keep: _Keep | None, dialect: SimDialect) -> Iterator[str]:
    # Copies: a long listing is sent in pieces, and other requests can change the folder in between.
    for child in list(folder.folders.values()):
        yield f'<Folder name="{wire.escape_attribute(child.name)}">\n'
        if dialect.listing_depth == "deep":
            yield from _content(child, keep, dialect)
        yield "</Folder>\n"
    if keep is not None:
        yield from (_clip(entry, dialect) for entry in list(folder.entries.values()) if keep(entry))


def _clip(entry: SimEntry, dialect: SimDialect) -> str:
    instead = entry.clip.shown | entry.clip.listed
    start = f'<Clip link_id="{entry.link_id}" finalized="{_finalized(entry.clip, dialect, instead)}">\n'
    return f"{start}{attributes_xml(entry, dialect, instead)}</Clip>\n"


def _mam(folder: Folder, keep: _Keep) -> Iterator[str]:
    yield "<mam>\n"
    for entry in folder.walk():
        if keep(entry):
            clip = entry.clip
            yield "<asset>" + wire.element("id", entry.title) + wire.element("dir", wire.folder_text(entry.folder))
            yield wire.element("length", wire.format_length(clip.length, clip.rate)) + wire.element("hires", clip.hires)
            yield (wire.element("proxy", clip.proxy) if clip.proxy else "") + "</asset>\n"
    yield "</mam>"


def _filter(request: wire.HttpRequest, dialect: SimDialect) -> _Keep:
    kind, after = request.param("mimetype"), request.param("datetime")
    if after is None or dialect.datetime_filter == "ignored":
        after = ""
    elif _DATE.fullmatch(after) is None:
        raise wire.RefusalError(400, f"not a valid date-time: {after}")
    else:
        after = after if "T" in after else f"{after}T00:00:00"  # times of one format without a zone compare like texts
    if kind is not None and kind not in MIME_TYPES:
        raise wire.RefusalError(400, f"unknown mimetype {kind}")
    number = kind and MIME_TYPES[kind]
    return lambda entry: number in {None, entry.clip.mime_type} and entry.clip.create_time > after


_SIZE_LIMIT = 4096


def thumbnail_answer(request: wire.HttpRequest, entry: SimEntry) -> wire.HttpAnswer:
    """GET .../GETICON: a picture of one color, which depends on the texts in its text chunks."""
    clip = entry.clip
    try:
        pos, _ = _number(request, "pos", 0), _number(request, "dur", 0)
        size = (_size(request, "w", clip.width or 640), _size(request, "h", clip.height or 360))
        params = "\n".join(_parameter(value, clip) for value in request.all_params("param"))
    except wire.RefusalError as refusal:
        return wire.text_answer(f"Error: {refusal.text}", refusal.status, done=False)
    # The position counts from the IN point (interface, «PNG thumbnail»).
    code = wire.format_frames(entry.first_frame + pos, clip.rate)
    png = draw_png({"Title": entry.title, "TimeCode": code, "Params": params}, size)
    return wire.HttpAnswer(200, png, "image/png")


def proxy_answer(request: wire.HttpRequest, database: SimDatabase, entry: SimEntry, profile: str) -> wire.HttpAnswer:
    """GET .../[PVW/]WPN: the proxy, made for each request; an unknown profile is a 500 in any dialect."""
    if profile not in database.profiles:
        return wire.text_answer(f"Error: the profile {profile} is not configured", 500, done=False)
    view = "/PVW/" in request.target
    headers = {"Content-Disposition": "inline" if view else f'attachment; filename="{entry.link_id}-{profile}.mp4"'}
    return wire.HttpAnswer(200, make_film(f"{entry.title} in {profile}", entry.clip.length), "video/mp4", headers)


def draw_png(texts: Mapping[str, str], size: tuple[int, int]) -> bytes:
    """Return a PNG of one color that depends on the texts, which its text chunks contain."""
    width, height = size
    color = zlib.crc32("\0".join(texts.values()).encode()).to_bytes(4)[:3]
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 3, 0, 0, 0)),  # a bit for each pixel
        (b"PLTE", color),
        *((b"iTXt", f"{name}\0\0\0\0\0{text}".encode()) for name, text in texts.items()),
        (b"IDAT", zlib.compress(bytes(1 + -(-width // 8)) * height, 1)),
        (b"IEND", b""),
    ]
    packed = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def make_film(title: str, frames: int) -> bytes:
    """Return bytes that begin as an MP4 does, with a line for each of at most 1,000 frames; no player shows them."""
    lines = "".join(f"{title}, frame {number}\n" for number in range(min(frames, 1000)))
    return _box("ftyp", b"isom\0\0\2\0isomiso2mp41") + _box("mdat", lines.encode())


def _box(kind: str, content: bytes) -> bytes:
    return (8 + len(content)).to_bytes(4) + kind.encode() + content


def _parameter(value: str, clip: SimClip) -> str:
    name, colon, content = value.partition(":")
    if not colon:
        raise wire.RefusalError(400, f"param is NAME:VAL, not {value}")
    if clip.params and name not in clip.params:
        raise wire.RefusalError(400, f"unknown graphic element {name}")
    return f"{name}: {content}"


def _size(request: wire.HttpRequest, name: str, default: int) -> int:
    size = _number(request, name, default)
    if not 1 <= size <= _SIZE_LIMIT:
        raise wire.RefusalError(400, f"{name} is out of range: {size}")
    return size


def _number(request: wire.HttpRequest, name: str, default: int) -> int:
    value = request.param(name)
    if value is None:
        return default
    if not value.isascii() or not value.isdigit():
        raise wire.RefusalError(400, f"{name} is not a number: {value}")
    return int(value)
