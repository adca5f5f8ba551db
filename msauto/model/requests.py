r"""A constructor for each call of the interface: plain values in, a frozen :class:`Request` out.

The calls are those of interface, «Endpoints» and «Commands». Paths are relative to the server. Commands take the path
from :func:`asset_path`. The order of parameters is fixed, so that the same plan is always the same bytes. Below are the
product versions that features came with, and the names of the files of RSS items.

This is the only place that escapes, by two rules in this order (interface, «Addresses»). In folder names and asset
titles a slash becomes ``\/`` and a backslash ``\\``; then everything but the unreserved characters of RFC 3986
(letters, digits, ``- . _ ~``) is percent-encoded in UTF-8. Everywhere else in msauto names are plain text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from email.utils import format_datetime
from enum import Enum
from functools import lru_cache
from html import escape
from typing import Final, Literal
from urllib.parse import parse_qsl, quote, urlsplit

from msauto.errors import AddressError, UnsupportedError
from msauto.model.fields import LINK_FIELD
from msauto.model.identity import plain
from msauto.model.live import Folder, escape_name, show_folder
from msauto.model.plan import Address, Body, Request
from msauto.model.server import ServerSpec
from msauto.primitives.feed_times import instant_of
from msauto.primitives.normal_form import normal_form

# Paths and escaping --------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)  # an asset is read, and then written, at one path
def asset_path(database: str, address: Address) -> str:
    r"""Return the path of an asset by title or by ``NS:ID``, relative to the server.

    A title's own colon is encoded, so that it is never taken for the colon of ``NS:ID``. :func:`wire_address` makes
    the address that a server takes.

    >>> asset_path("NEWS", Address("Evening News"))
    '/storage/NEWS@Evening%20News'
    >>> asset_path("NEWS", Address("4711", namespace="handle"))
    '/storage/NEWS@handle:4711'
    """
    name = named(address.name, "an asset's title or identifier")
    before = f"{encode(address.namespace)}:" if address.namespace else ""
    database = _segment(named(database, "the database"))
    return f"/storage/{database}@{before}{encode(escape_name(name))}"


def wire_address(spec: ServerSpec, address: Address) -> Address:
    """Return an address as a server takes it: with the dialect ``title_address: ns``, a title with a colon has one.

    Only a title with a colon can be taken for ``NS:ID``: any other keeps the form that every version knows. Raises
    :class:`UnsupportedError` if the address has the form ``NS:ID`` and the product version lacks it.
    """
    if address.namespace:
        require(spec, Feature.KEY_ID)
        return address
    form = spec.dialect.title_address
    if form == "plain" or ":" not in address.name:
        return address
    need = f"the title {address.name!r} holds a colon (dialect `title_address: {form}`)"
    require(spec, Feature.KEY_ID, need=need)
    return Address(address.name, "title")


def folder_path(database: str, folder: Folder = ()) -> str:
    """Return the path of a folder's listing; the empty folder is the whole database.

    >>> folder_path("NEWS", ("Raw", "a/b"))
    '/storage/NEWS/Raw/a%5C%2Fb'
    """
    segments = [_segment(escape_name(named(name, "a folder's name"))) for name in folder]
    return "/".join(["/storage", _segment(named(database, "the database")), *segments])


def channel_path(channel: str) -> str:
    """Return the path of an RSS channel."""
    return f"/rss/{_segment(named(channel, 'an RSS channel'))}"


def rss_item_path(channel: str, file: str) -> str:
    """Return the path of a file in a channel (interface, «RSS add data»)."""
    return f"{channel_path(channel)}/{_segment(named(file, 'the file of an RSS item'))}"


def query(parameters: Iterable[tuple[str, str]]) -> str:
    """Return ``?name=value&…``, names and values percent-encoded, in the order given; empty for no parameters.

    >>> query([("name", "comment"), ("val", "50% & more")])
    '?name=comment&val=50%25%20%26%20more'
    """
    pairs = [
        f"{encode(name) or named(name, 'a parameter')}={encode(value)}"
        for name, value in parameters
    ]
    return f"?{'&'.join(pairs)}" if pairs else ""


def folder_value(folder: Folder) -> str:
    r"""Return the value of COPYLINK's ``folder`` before :func:`query` encodes it: names escaped, joined by ``/``.

    >>> query([("folder", folder_value(("Playout", "To/night")))])
    '?folder=Playout%2FTo%5C%2Fnight'
    """
    for name in folder:
        named(name, "a folder's name")
    return show_folder(tuple(folder))


# A title is in several requests of its asset, a constant value in all assets.
@lru_cache(maxsize=4096)
def encode(text: str) -> str:
    """Percent-encode everything but the unreserved characters of RFC 3986, in UTF-8.

    A new line is ``%0a``, in small letters (interface, «PNG thumbnail»); all else in capitals.
    """
    try:
        return quote(text, safe="", errors="strict").replace("%0A", "%0a")
    except UnicodeEncodeError:
        shown = text.encode("utf-8", "backslashreplace").decode()
        raise AddressError(
            f"{shown!r} is not valid Unicode: it contains half of a surrogate pair",
            remedy="correct the text where it is written; it was probably read in the wrong encoding",
        ) from None
    except TypeError:  # from a caller of the client
        raise AddressError(f"a text is needed in place of {text!r}", remedy="give a str") from None


def _segment(text: str) -> str:
    # A whole segment of dots would be a dot segment (RFC 3986, 5.2.4), which anything on the way may remove.
    encoded = encode(text)
    return encoded.replace(".", "%2E") if encoded in {".", ".."} else encoded


def named(name: object, what: str) -> str:
    """Return a name; raises :class:`AddressError` for an empty one, and for a value of another type."""
    if not isinstance(name, str):
        raise AddressError(f"the name of {what} must be a text, not {name!r}", remedy="give a str")
    if not name:
        raise AddressError(f"the name of {what} is empty", remedy="give it a name")
    return name


Format = Literal["StoredTree", "mam", "folderlist"]
PROFILES: Final = tuple(f"WP{number}" for number in range(1, 9))
NEW_MARKER: Final = -1
"""The uid that creates a new identifier (CREATEMARKER: interface, «Commands»)."""

Position = int | str
"""Frames, or a time code in the format of the interface for segments."""

# Commands on an asset ------------------------------------------------------------------------------------------


def command(asset: str, name: str, parameters: Iterable[tuple[str, str]] = ()) -> Request:
    """Build any command: ``POST <asset>?command=<name>&…``.

    >>> set_field("/storage/NEWS@Evening%20News", "comment", "Ready").path
    '/storage/NEWS@Evening%20News?command=SETFIELD&name=comment&val=Ready'
    """
    pairs = [("command", name), *parameters]
    if len(dict(pairs)) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise AddressError(
            f"{name} would have the parameter {twice!r} twice",
            remedy="the interface has no way to write a field of this name",
        )
    return Request("POST", asset + query(pairs))


def command_of(request: Request) -> Mapping[str, str]:
    """Return the parameters of a command, with its name as ``command``; empty for other requests."""
    return (
        dict(parse_qsl(urlsplit(request.path).query, keep_blank_values=True))
        if request.method == "POST"
        else {}
    )


def is_repeatable(request: Request) -> bool:
    """Return whether sending it twice does the same as once: it sets a value, and creates, deletes and moves nothing.

    >>> is_repeatable(create_marker("/storage/NEWS@Film", NEW_MARKER, 0)), is_repeatable(set_field("/x", "comment", ""))
    (False, True)
    """
    match command_of(request):
        case {"command": "SETFIELD", "name": name}:
            return name != "clip_name"
        case {"command": "CREATEMARKER", "uid": uid}:
            return uid != str(NEW_MARKER)
        case {"command": "SETUSERFIELDS"}:
            return True
    return False


def set_field(asset: str, name: str, value: str) -> Request:
    """SETFIELD: change a link field; an empty value clears it."""
    return command(asset, "SETFIELD", [("name", name), ("val", value)])


def set_user_fields(
    asset: str, fields: Mapping[str, Sequence[str]], separator: str = ","
) -> Request:
    """SETUSERFIELDS: one parameter for each XMP field, its values joined by the separator.

    The separator is encoded with the rest (``%2C``): a server decodes a parameter once, then splits it.
    """
    if not fields:
        raise AddressError("SETUSERFIELDS needs a field", remedy="name at least one field")
    return command(
        asset, "SETUSERFIELDS", [(name, separator.join(values)) for name, values in fields.items()]
    )


def create_segment(
    asset: str,
    number: int,
    start: Position,
    duration: Position,
    fields: Mapping[str, str] | None = None,
) -> Request:
    """CREATESEGMENT: add a segment; an empty text is sent, too."""
    parameters = [
        ("seg_num", str(number)),
        ("start_frame", str(start)),
        ("duration", str(duration)),
    ]
    return command(asset, "CREATESEGMENT", [*parameters, *(fields or {}).items()])


def create_segmentation(asset: str, duration: Position, title: str | None = None) -> Request:
    """CREATESEGMENTATION: divide the whole asset into segments of this duration."""
    return command(asset, "CREATESEGMENTATION", [("duration", str(duration)), *given(title=title)])


def delete_segment(asset: str, number: int) -> Request:
    """DELETESEGMENT by number."""
    return command(asset, "DELETESEGMENT", [("seg_num", str(number))])


def create_marker(
    asset: str,
    uid: int,
    frame: int | None = None,
    track: str | None = None,
    fields: Mapping[str, str] | None = None,
) -> Request:
    """CREATEMARKER: ``NEW_MARKER`` creates a marker, an existing uid changes that one. ``frame`` in frames."""
    parameters = [("uid", str(uid)), *given(frame=frame, track=track), *(fields or {}).items()]
    return command(asset, "CREATEMARKER", parameters)


def delete_marker(asset: str, uid: int) -> Request:
    """DELETEMARKER by uid."""
    return command(asset, "DELETEMARKER", [("uid", str(uid))])


def copy_link(asset: str, title: str, folder: Folder) -> Request:
    """COPYLINK: a new link to the asset, in a folder."""
    return command(
        asset,
        "COPYLINK",
        [("title", named(title, "a link's title")), ("folder", folder_value(folder))],
    )


def restore(asset: str) -> Request:
    """RESTORE: restore the high-resolution file from the archive."""
    return command(asset, "RESTORE")


def delete_asset(asset: str) -> Request:
    """DELETE the asset."""
    return Request("DELETE", asset)


# Databases and channels ----------------------------------------------------------------------------------------


def load_xmp(database: str, connector: str, body: Body) -> Request:
    """PUT a batch of XMP metadata through a connector."""
    if not connector:
        raise AddressError("the connector's name is empty", remedy="name the metadata connector")
    return Request("PUT", folder_path(database) + query([("connector", connector)]), body=body)


def put_rss(channel: str, file: str, body: Body) -> Request:
    """PUT data into a channel."""
    return Request("PUT", rss_item_path(channel, file), body=body)


def delete_rss(channel: str, guid: str) -> Request:
    """DELETE an item of a channel by its guid."""
    if not guid:
        raise AddressError("the guid is empty", remedy="name the item's guid")
    return Request("DELETE", channel_path(channel) + query([("guid", guid)]))


# Reading -------------------------------------------------------------------------------------------------------


def get_databases() -> Request:
    """GET all databases, with a description of all their content: large."""
    return Request("GET", "/storage")


def get_listing(
    database: str,
    folder: Folder = (),
    *,
    format: Format | None = None,  # noqa: A002 - the interface's word
    datetime: str | None = None,
    mimetype: str | None = None,
) -> Request:
    """GET a listing; ``datetime`` is ISO without a zone, ``None`` is not sent."""
    parameters = given(format=format, datetime=datetime, mimetype=mimetype)
    return Request("GET", folder_path(database, folder) + query(parameters))


def get_asset(asset: str) -> Request:
    """GET the Clip XML."""
    return Request("GET", asset)


def get_user_fields(asset: str, field: str | None = None) -> Request:
    """GET XMP field values: one field, or all."""
    return Request("GET", f"{asset}/GETUSERFIELDS{query(given(field=field))}")


def get_proxy(asset: str, profile: str, *, preview: bool = False) -> Request:
    """GET a web proxy, which the server creates first if needed."""
    if profile not in PROFILES:
        raise AddressError(f"{profile!r} is not a web-proxy profile", remedy="use WP1 to WP8")
    return Request("GET", f"{asset}{'/PVW' if preview else ''}/{profile}")


def get_thumbnail(
    asset: str,
    *,
    pos: int | None = None,
    dur: int | None = None,
    w: int | None = None,
    h: int | None = None,
    params: Mapping[str, str] | None = None,
) -> Request:
    """GET a PNG; ``pos`` and ``dur`` in frames, ``w`` and ``h`` in pixels.

    ``params`` are values of graphic elements. The colon of ``<NAME>:<VAL>`` stays literal, those inside are encoded.
    """
    text = query(given(pos=pos, dur=dur, w=w, h=h))
    separator = "&" if text else "?"
    for name, value in (params or {}).items():
        text += f"{separator}param={encode(name)}:{encode(value)}"
        separator = "&"
    return Request("GET", f"{asset}/GETICON{text}")


def get_channels() -> Request:
    """GET the list of RSS channels."""
    return Request("GET", "/rss")


def get_channel(channel: str) -> Request:
    """GET one channel."""
    return Request("GET", channel_path(channel))


def request_line_length(request: Request) -> int:
    """Return the length in bytes of the request line with its line end, which servers limit."""
    return len(request.method) + len(request.path) + len("  HTTP/1.1\r\n")  # a path is ASCII


def given(**values: str | int | None) -> list[tuple[str, str]]:
    """Return the parameters that have a value, as texts."""
    return [(name, str(value)) for name, value in values.items() if value is not None]


# Product versions (interface, «Versions») ------------------------------------------------------------------------


class Feature(Enum):
    """A feature of the interface: its name in messages, and the product version that introduced it.

    The name of a command's feature is the command.
    """

    LOAD_XMP = ("loading XMP metadata through a connector", (2, 0, 60))
    RESTORE = ("RESTORE", (2, 0, 160))
    THUMBNAIL = ("PNG thumbnails (GETICON)", (2, 3, 63))
    FOLDERLIST = ("format=folderlist", (2, 3, 90))
    SET_USER_FIELDS = ("SETUSERFIELDS", (2, 6, 1))
    CREATE_MARKER = ("CREATEMARKER", (2, 6, 1))
    DELETE_MARKER = ("DELETEMARKER", (2, 6, 1))
    PARTNER_EXPORT_VERSION = ("PARTNER_EXPORT_VERSION", (2, 8, 0))
    PARTNER_COPY_PROGRAM_FIELDS = ("PARTNER_COPY_PROGRAM_FIELDS", (2, 8, 23))
    PARTNER_MOVE_TO_ASSET = ("PARTNER_MOVE_TO_ASSET", (2, 8, 40))
    KEY_ID = ("NS:ID in place of a title", (2, 9, 69))
    GET_USER_FIELDS = ("reading XMP fields (GETUSERFIELDS)", (2, 9, 69))

    def __init__(self, title: str, since: tuple[int, ...]) -> None:
        self.title = title
        self.since = since


def feature_of_command(command: str) -> Feature | None:
    """Return the feature that a command of the interface needs; ``None`` for a basic or unknown command."""
    return next((feature for feature in Feature if feature.title == command), None)


def supports(spec: ServerSpec, feature: Feature) -> bool:
    """Return whether the configured product version has the feature; no version means the newest."""
    return _reaches(spec, feature.since)


def require(spec: ServerSpec, feature: Feature, *, need: str = "") -> None:
    """Raise :class:`UnsupportedError`, naming both versions, if the configured product version lacks the feature.

    ``need`` names what it is needed for, where the playbook does not show it.
    """
    title = f"{need}: {feature.title}" if need else feature.title
    _require(spec, title, feature.since)


def require_field(spec: ServerSpec, name: str) -> None:
    """Raise :class:`UnsupportedError` where the set product version cannot set this link field."""
    field = LINK_FIELD.get(name)
    if field is not None and field.since is not None:
        _require(spec, f"SETFIELD on {name}", field.since)


def _require(spec: ServerSpec, title: str, since: tuple[int, ...]) -> None:
    if spec.version is not None and not _reaches(spec, since):
        raise UnsupportedError(
            f"{title} came with version {show_version(since)}, and this server is set to {show_version(spec.version)}",
            server=spec.name,
            remedy="update the server, or correct `version` in its inventory entry",
        )


def _reaches(spec: ServerSpec, since: tuple[int, ...]) -> bool:
    return spec.version is None or _padded(spec.version) >= _padded(since)


def show_version(version: tuple[int, ...]) -> str:
    """Return a version as text: ``2.9.87``."""
    return ".".join(str(number) for number in version)


def _padded(version: tuple[int, ...]) -> tuple[int, ...]:
    return (*version, 0, 0, 0, 0)[: max(4, len(version))]


# Files of RSS items: a feed service makes a channel of them, which shows no names (interface, «RSS channel») -----

_FORBIDDEN: Final = re.compile(r'[<>:"/\\|?*]')
_DEVICE: Final = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)
_DERIVED: Final = re.compile(r".*~[0-9a-f]{16}", re.DOTALL)
_LONGEST: Final = 200
"""The limit in bytes of a guid that is used as a file name: most file systems allow 255, with the ending."""
_DROPPED: Final = re.compile("\\A\ufeff")
_ORDER: Final = ("title", "link", "description", "pubDate", "guid")
RSS_FIELDS: Final = ("title", "description", "link", "pubDate")
"""The fields of an item that a playbook may name."""
_NOT_IN_A_NAME: Final = re.compile("[\x00-\x1f\x7f\ufeff]")


def default_file(guid: str, *, text: bool) -> str:
    """Return the file name of an item without one: the guid with an ending, if that is a safe file name.

    A guid that is not a safe file name, such as a URL, gives a readable part and a digest. No two guids give the same
    name: a guid that has the form of such a name gets a digest as well.

    >>> default_file("n-1", text=True), default_file("http://example.com/4711", text=False)
    ('n-1.txt', 'http-example.com-4711~582040e373ad51a1.xml')
    """
    stem = guid
    if not is_file_name(guid):
        exact = normal_form(guid)
        readable = re.sub(r"[^\w.]+", "-", exact).strip("-._")[:40].rstrip("-._")
        stem = (
            f"{readable}~{hashlib.sha256(exact.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
        )
    return f"{stem}.txt" if text else f"{stem}.xml"


def is_file_name(guid: str) -> bool:
    """Return whether a guid can be (the stem of) a file name on every file system."""
    return (
        guid.isprintable()
        and guid == guid.strip(" .")
        and 0 < len(guid.encode()) <= _LONGEST
        and not _FORBIDDEN.search(guid)
        and not _DEVICE.fullmatch(guid)
        and not _DERIVED.fullmatch(guid)
    )


def stem_of(file: str) -> str:
    """Return a file name without its ending."""
    return file.rpartition(".")[0] or file


def shown_names(file: str, rss_guid: str) -> list[str]:
    """Return under which guids a channel may show what is in a file, by the dialect; :func:`file_key` compares them."""
    if rss_guid == "file":
        return [file]
    if rss_guid == "stem":
        return [stem_of(file)]
    return [file, stem_of(file)]


def file_key(file: str) -> str:
    """Return a key that is equal for names of one file: some file systems ignore case and Unicode normalization."""
    return normal_form(normal_form(file).casefold())


def form_of(shown: Mapping[str, object]) -> Literal["text", "item"] | None:
    """Return whether an item, as shown, came in a text or in an item document; ``None`` if it may be either.

    In a text, the description is the whole text and the title its first line. Only a document can have a link, a date,
    or a description that does not begin with the title.
    """
    title, description, link, date = _texts_of(shown)
    if link or date:
        return "item"
    if not title or not description:
        return None
    is_text = description == title or description.startswith(f"{title}\n")
    return "text" if is_text else "item"


def _texts_of(shown: Mapping[str, object]) -> list[str]:
    """Return the texts of :data:`RSS_FIELDS` as they are compared, empty where an item has none."""
    return [plain(str(shown.get(name) or "")).strip() for name in RSS_FIELDS]


def text_of(shown: Mapping[str, object]) -> str:
    """Return the text that gives this title and description: both, or the description if it begins with the title."""
    title = str(shown.get("title") or "")
    description = str(shown.get("description") or "")
    if form_of({"title": title, "description": description}) == "item":
        return f"{title}\n{description}"
    return description or title


def shows_text(text: str, shown: Mapping[str, object]) -> bool:
    """Return whether a channel may show a text so: its first line and the rest, or the whole in one place or both."""
    first, _, rest = plain(text).partition("\n")
    first = first.strip()
    rest = rest.strip()
    text = plain(text).strip()
    title, description, _, _ = _texts_of(shown)
    return (title, description) in {
        (first, rest),
        (first, text),
        (text, ""),
        ("", text),
        (text, text),
    }


def item_document(fields: Mapping[str, str]) -> Body:
    """Return an RSS ``item`` document; a date in the form of RFC 2822; ``<name>`` is an element, as XML."""
    date = instant_of(fields.get("pubDate", ""))
    texts = {name: fields[name] for name in _ORDER if name in fields} | dict(fields)
    if date is not None:
        texts["pubDate"] = format_datetime(date)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<item>"]
    for name, text in texts.items():
        element = text
        if not name.startswith("<"):
            element = f"<{name}>{escape(text, quote=False)}</{name}>"
        lines.append(f"  {element}")
    document = "\n".join([*lines, "</item>", ""])
    return Body.of(document.encode(), "application/xml; charset=utf-8")


def bad_character(text: str, *, line: bool = False) -> tuple[int, str] | None:
    """Return the place (from 1) and the name of the first character that a channel drops; ``None`` without one.

    A byte order mark at the beginning is read as the encoding of the file. ``line``: a name of one line, without tabs
    and line ends. Characters that XML cannot represent: :mod:`msauto.model.fields`.
    """
    dropped = _NOT_IN_A_NAME if line else _DROPPED
    match = dropped.search(text)
    return None if match is None else (match.start() + 1, f"U+{ord(match[0]):04X}")
