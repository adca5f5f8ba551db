"""What /storage shows: one asset, its XMP fields, its pictures and films, and listings.

Sources: interface, «Asset», «XMP field values», «List databases», «List assets and folders», «PNG thumbnail» and «Web
proxy». It does not define the position of the requested folder in a listing: here it is the top Folder, unnamed.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping

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
from msauto.plugins.simulator.embedded.wire import (
    GARBAGE,
    FolderPath,
    HttpAnswer,
    HttpRequest,
    RefusalError,
    ResourceNotFoundError,
    attr_element,
    element,
    escape_attribute,
    escape_text,
    folder_text,
    format_frames,
    format_length,
    frame_time,
    text_answer,
    xml_answer,
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
        for name in LINK_FIELDS:
            text = entry.fields.get(name, "")
            if text or dialect.link_fields == "reported":
                values[name] = text
    if dialect.orig_name == "hidden":
        del values["orig_name"]
    lines = []
    for name, value in values.items():
        if name not in clip.omitted:
            content = escape_text(str(instead.get(name, value)))
            lines.append(f'<Attr name="{name}">{content}</Attr>\n')
    return "".join(lines)


def _finalized(clip: SimClip, dialect: SimDialect, instead: Mapping[str, str]) -> str:
    text = "true"
    if not clip.finalized:
        text = dialect.unfinalized.replace("empty", "")
    return escape_attribute(instead.get("finalized", text))


def clip_xml(entry: SimEntry, dialect: SimDialect) -> str:
    """Return the detailed asset shape, root `Clip`."""
    clip = entry.clip
    origin = entry.first_frame if dialect.position_origin == "in" else 0
    folder = entry.folder if dialect.link_folder == "own" else clip.home.folder
    path = folder_text(folder)
    parts = [
        f'<Clip folder="{escape_attribute(path)}" hires="{escape_attribute(clip.hires)}" ',
        f'proxy="{escape_attribute(clip.proxy)}" archive="{escape_attribute(clip.archive)}" ',
        f'link_id="{entry.link_id}" finalized="{_finalized(clip, dialect, clip.shown)}">\n',
    ]
    for marker in clip.markers:
        parts.append(_marker(marker, origin))
    for segment in clip.segments:
        parts.append(_segment(segment, origin, dialect))
    parts.append(attributes_xml(entry, dialect, clip.shown))
    for name in clip.params:
        parts.append(f'<Param name="{escape_attribute(name)}"/>\n')
    return "".join([*parts, "</Clip>"])


def xmp_answer(clip: SimClip, desired: list[str], dialect: SimDialect) -> HttpAnswer:
    """GETUSERFIELDS in the shape of the dialect: the interface does not specify one."""
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
        lines = [
            f"{name}={dialect.list_separator.join(values)}\n" for name, values in fields.items()
        ]
        return text_answer("".join(lines))
    elements = "".join(_xmp_elements(fields, dialect.xmp_shape))
    return xml_answer(f"<UserFields>\n{elements}</UserFields>", dialect)


def _xmp_elements(fields: Mapping[str, list[str]], shape: str) -> Iterator[str]:
    for name, values in fields.items():
        if shape == "nested":
            bag = "".join([element("li", value) for value in values])
            yield f'<Field name="{escape_attribute(name)}"><Bag>{bag}</Bag></Field>\n'
            continue
        for value in values:
            text = _one_element(name, value) if shape == "element" else attr_element(name, value)
            yield f"{text}\n"


def _one_element(field: str, value: str) -> str:
    prefix, colon, local = field.partition(":")
    prefix, local = _NOT_IN_NAMES.sub("_", prefix), _NOT_IN_NAMES.sub("_", local)
    if not colon:
        return element(prefix, value)
    return f'<{prefix}:{local} xmlns:{prefix}="urn:xmp:{prefix}">{escape_text(value)}</{prefix}:{local}>'


def _marker(marker: SimMarker, origin: int) -> str:
    fields = [attr_element(name, value) for name, value in marker.fields.items()]
    return f'<Marker uid="{marker.uid}" pos="{marker.pos - origin}">{"".join(fields)}</Marker>\n'


def _segment(segment: SimSegment, origin: int, dialect: SimDialect) -> str:
    children = "".join([element("title", title) for title in segment.titles])
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


def databases_parts(state: ServerState, dialect: SimDialect) -> Iterator[str]:
    """GET /storage: every database with its content."""
    yield "<Databases>\n"
    for database in list(state.databases.values()):
        yield f'<Database name="{escape_attribute(database.name)}">\n'
        yield from _stored_tree(database.root, (), lambda _: True, dialect)
        yield "</Database>\n"
    yield "</Databases>"


def folder_parts(
    database: SimDatabase, path: FolderPath, request: HttpRequest, dialect: SimDialect
) -> Iterator[str]:
    """GET /storage/NAME/FOLDER...: StoredTree, mam or folderlist."""
    folder = database.folder(path)
    if folder is None:
        raise ResourceNotFoundError
    keep = _filter(request, dialect)
    match request.param("format") or "StoredTree":
        case "StoredTree":
            return _stored_tree(folder, path, keep, dialect)
        case "folderlist":
            return _stored_tree(folder, path, None, dialect)
        case "mam":
            return _mam(folder, keep)
        case unknown:
            raise RefusalError(400, f"unknown format {unknown}")


def _stored_tree(
    folder: Folder, path: FolderPath, keep: _Keep | None, dialect: SimDialect
) -> Iterator[str]:
    yield f'<StoredTree query_root="{escape_attribute(folder_text(path))}">\n<Folder name="">\n'
    yield from _content(folder, keep, dialect)
    yield "</Folder>\n</StoredTree>"


def _content(folder: Folder, keep: _Keep | None, dialect: SimDialect) -> Iterator[str]:
    # Copies: a long listing is sent in pieces, and other requests can change the folder in between.
    for child in list(folder.folders.values()):
        yield f'<Folder name="{escape_attribute(child.name)}">\n'
        if dialect.listing_depth == "deep":
            yield from _content(child, keep, dialect)
        yield "</Folder>\n"
    if keep is None:
        return
    for entry in list(folder.entries.values()):
        if keep(entry):
            yield _clip(entry, dialect)


def _clip(entry: SimEntry, dialect: SimDialect) -> str:
    instead = entry.clip.shown | entry.clip.listed
    start = (
        f'<Clip link_id="{entry.link_id}" finalized="{_finalized(entry.clip, dialect, instead)}">\n'
    )
    return f"{start}{attributes_xml(entry, dialect, instead)}</Clip>\n"


def _mam(folder: Folder, keep: _Keep) -> Iterator[str]:
    yield "<mam>\n"
    for entry in folder.walk():
        if keep(entry):
            clip = entry.clip
            yield "<asset>"
            yield element("id", entry.title)
            yield element("dir", folder_text(entry.folder))
            yield element("length", format_length(clip.length, clip.rate))
            yield element("hires", clip.hires)
            if clip.proxy:
                yield element("proxy", clip.proxy)
            yield "</asset>\n"
    yield "</mam>"


def _filter(request: HttpRequest, dialect: SimDialect) -> _Keep:
    kind, after = request.param("mimetype"), request.param("datetime")
    if after is None or dialect.datetime_filter == "ignored":
        after = ""
    elif _DATE.fullmatch(after) is None:
        raise RefusalError(400, f"not a valid date-time: {after}")
    elif "T" not in after:
        after = f"{after}T00:00:00"  # times of one format without a zone compare like texts
    if kind is not None and kind not in MIME_TYPES:
        raise RefusalError(400, f"unknown mimetype {kind}")
    number = kind and MIME_TYPES[kind]
    return lambda entry: number in {None, entry.clip.mime_type} and entry.clip.create_time > after


_SIZE_LIMIT = 4096


def thumbnail_answer(request: HttpRequest, entry: SimEntry) -> HttpAnswer:
    """GET .../GETICON: a picture of one color, which depends on the texts in its text chunks."""
    clip = entry.clip
    try:
        pos, _ = _number(request, "pos", 0), _number(request, "dur", 0)
        size = (_size(request, "w", clip.width or 640), _size(request, "h", clip.height or 360))
        params = [_parameter(value, clip) for value in request.all_params("param")]
    except RefusalError as refusal:
        return text_answer(f"Error: {refusal.text}", refusal.status, done=False)
    # The position counts from the IN point (interface, «PNG thumbnail»).
    code = format_frames(entry.first_frame + pos, clip.rate)
    png = draw_png({"Title": entry.title, "TimeCode": code, "Params": "\n".join(params)}, size)
    return HttpAnswer(200, png, "image/png")


def proxy_answer(
    request: HttpRequest, database: SimDatabase, entry: SimEntry, profile: str
) -> HttpAnswer:
    """GET .../[PVW/]WPN: the proxy, made for each request; an unknown profile is a 500 in any dialect."""
    if profile not in database.profiles:
        return text_answer(f"Error: the profile {profile} is not configured", 500, done=False)
    disposition = f'attachment; filename="{entry.link_id}-{profile}.mp4"'
    if "/PVW/" in request.target:
        disposition = "inline"
    film = make_film(f"{entry.title} in {profile}", entry.clip.length)
    return HttpAnswer(200, film, "video/mp4", {"Content-Disposition": disposition})


def draw_png(texts: Mapping[str, str], size: tuple[int, int]) -> bytes:
    """Return a PNG of one color that depends on the texts, which its text chunks contain."""
    width, height = size
    color = zlib.crc32("\0".join(texts.values()).encode()).to_bytes(4)[:3]
    header = struct.pack(">IIBBBBB", width, height, 1, 3, 0, 0, 0)  # a bit for each pixel
    row = bytes(1 + -(-width // 8))
    picture = b"\x89PNG\r\n\x1a\n"
    picture += _chunk(b"IHDR", header)
    picture += _chunk(b"PLTE", color)
    for name, text in texts.items():
        picture += _chunk(b"iTXt", f"{name}\0\0\0\0\0{text}".encode())
    picture += _chunk(b"IDAT", zlib.compress(row * height, 1))
    return picture + _chunk(b"IEND", b"")


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return len(content).to_bytes(4) + kind + content + checksum.to_bytes(4)


def make_film(title: str, frames: int) -> bytes:
    """Return bytes that begin as an MP4 does, with a line for each of at most 1,000 frames; no player shows them."""
    lines = [f"{title}, frame {number}\n" for number in range(min(frames, 1000))]
    return _box("ftyp", b"isom\0\0\2\0isomiso2mp41") + _box("mdat", "".join(lines).encode())


def _box(kind: str, content: bytes) -> bytes:
    return (8 + len(content)).to_bytes(4) + kind.encode() + content


def _parameter(value: str, clip: SimClip) -> str:
    name, colon, content = value.partition(":")
    if not colon:
        raise RefusalError(400, f"param is NAME:VAL, not {value}")
    if clip.params and name not in clip.params:
        raise RefusalError(400, f"unknown graphic element {name}")
    return f"{name}: {content}"


def _size(request: HttpRequest, name: str, default: int) -> int:
    size = _number(request, name, default)
    if not 1 <= size <= _SIZE_LIMIT:
        raise RefusalError(400, f"{name} is out of range: {size}")
    return size


def _number(request: HttpRequest, name: str, default: int) -> int:
    value = request.param(name)
    if value is None:
        return default
    if not value.isascii() or not value.isdigit():
        raise RefusalError(400, f"{name} is not a number: {value}")
    return int(value)
