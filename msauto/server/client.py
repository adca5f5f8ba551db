"""The client of one media server, usable as a library: a method for each call (interface, «Endpoints» and «Commands»).

::

    async with AsyncMediaServer("http://studio-a:7901") as server:
        clip = await server.asset("NEWS", "Evening News")
        await server.set_field("NEWS", "Evening News", "comment", "Ready")

Reads are tried again after transient errors. A write is sent once; if its answer is lost, only reading again shows
whether it was done (:class:`msauto.errors.InDoubtError`). For scripts without asyncio: :class:`msauto.MediaServer`.
An asset is given by its title, or as an ``Address`` with a namespace; a folder as ``Raw/2026`` or as a tuple of names.

A position or duration is given as in a playbook: frames, ``HH:MM:SS:FF``, ``HH:MM:SS;FF`` (drop frame) or
``HH:MM:SS.ss``. Frames go to the server; for a time code the clip is read first, because only it shows the rate.
Where the dialect is ``position_origin: in``, positions count from the IN point, as that server counts.

Names and values that no server accepts raise :class:`msauto.AddressError` before anything is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TypeVar, get_args

from msgspec import structs

from msauto.errors import AddressError, nearest
from msauto.model import requests
from msauto.model.fields import (
    LINK_FIELD,
    MARKER_ATTRIBUTES,
    TRACKS,
    Attribute,
    MimeType,
    unreportable,
)
from msauto.model.live import (
    Asset,
    Database,
    Folder,
    Listing,
    MamAsset,
    RssChannel,
    Xmp,
    parse_folder,
    why_no_rate,
)
from msauto.model.plan import Address, Body, Request
from msauto.model.ports import Answer, Clock
from msauto.model.requests import Feature, require
from msauto.model.server import Auth, ServerSpec, Timeouts, Tls, Transport, zone_of
from msauto.model.timecode import Timecode, TimecodeError
from msauto.primitives.decimals import read_whole
from msauto.primitives.feed_times import with_zone
from msauto.server.access import spec_with
from msauto.server.error_answers import RawAnswer, judge_body
from msauto.server.http_client import HttpClient
from msauto.server.listing import ListingReading, parse_databases, parse_mam
from msauto.server.parsers import parse_channel, parse_channels, parse_clip, parse_xmp
from msauto.server.xml import unreadable

T = TypeVar("T")
AssetName = str | Address
"""A title, or an address with a namespace."""
Position = int | str
"""Frames, or a time code in any form that a playbook takes."""
_PNG = b"\x89PNG\r\n\x1a\n"
_TEXT = Attribute("text")
_FIELDS = {**LINK_FIELD, "clip_name": _TEXT}
_MARKER_FIELDS = {attribute.name: attribute for attribute in MARKER_ATTRIBUTES}


class AsyncMediaServer(HttpClient):
    """One media server, asynchronously, by its address or as a :class:`msauto.ServerSpec`.

    An address is ``http://host:port``; without a scheme it is http, and without a port 7901. ``auth`` is a user name
    and password, or an :class:`msauto.Auth`. ``timeout`` is in seconds, for connecting, between two bytes, and for slow
    answers, or a :class:`msauto.Timeouts`. ``verify`` is the PEM file of a certificate authority, an
    :class:`msauto.Tls`, or ``False`` for any certificate. ``transport`` is any transport of httpx2, in place of the
    network; who made it closes it. ``read_only`` refuses everything but GET and HEAD before anything is sent.

    ``reads`` counts the reads, without further attempts. ``clock``, ``admit`` and ``gives_up`` are those of a run
    (:class:`msauto.server.http_client.HttpClient`).

    All methods raise :class:`msauto.ServerError`, or :class:`msauto.AddressError` for what no server accepts.
    """

    def __init__(
        self,
        server: ServerSpec | str,
        *,
        auth: Auth | tuple[str, str] | None = None,
        timeout: Timeouts | float | None = None,
        verify: Tls | bool | str | Path = True,
        transport: Transport | None = None,
        read_only: bool = False,
        clock: Clock | None = None,
        admit: Callable[[], None] = lambda: None,
        gives_up: bool = False,
    ) -> None:
        spec = spec_with(server, auth=auth, timeout=timeout, verify=verify, transport=transport)
        super().__init__(spec, read_only=read_only, clock=clock, admit=admit, gives_up=gives_up)

    # Databases, folders, assets --------------------------------------------------------------------------------

    async def databases(self) -> tuple[Database, ...]:
        """List the databases. The server describes all its content, so this may take long."""
        request = requests.get_databases()
        return await self.read(
            request, lambda reply: parse_databases(reply.data, reply.charset), listing=True
        )

    async def list(
        self,
        database: str,
        folder: str | Folder = (),
        *,
        recursive: bool | None = None,
        created_after: datetime | date | str | None = None,
        mimetype: str | None = None,
    ) -> Listing:
        """List the whole database, or a folder, with absolute folders.

        ``recursive``: with what is below, as deep as the server shows it; by default only without a folder.
        ``created_after`` without a zone is the server's own time; one with a zone must be converted first.
        """
        asked = _folder(folder)
        request = requests.get_listing(
            database, asked, datetime=_iso(created_after), mimetype=_mimetype(mimetype)
        )
        return await self._listed(request, database, asked, recursive)

    async def list_folders(
        self, database: str, folder: str | Folder = (), *, recursive: bool | None = None
    ) -> Listing:
        """List folders only (format=folderlist); ``recursive`` as for :meth:`list`."""
        require(self.spec, Feature.FOLDERLIST)
        asked = _folder(folder)
        return await self._listed(
            requests.get_listing(database, asked, format="folderlist"), database, asked, recursive
        )

    async def list_mam(
        self,
        database: str,
        folder: str | Folder = (),
        *,
        recursive: bool | None = None,
        created_after: datetime | date | str | None = None,
        mimetype: str | None = None,
    ) -> tuple[MamAsset, ...]:
        """List assets as a plain list (format=mam); ``recursive`` as for :meth:`list`."""
        asked = _folder(folder)
        moment = _iso(created_after)
        request = requests.get_listing(
            database, asked, format="mam", datetime=moment, mimetype=_mimetype(mimetype)
        )
        assets = await self.read(
            request, lambda reply: parse_mam(reply.data, reply.charset), listing=True
        )
        if _is_deep(asked, recursive):
            return assets
        folders = (asked, (database, *asked))
        return tuple(asset for asset in assets if asset.folder in folders)

    async def asset(self, database: str, asset: AssetName) -> Asset:
        """Describe one asset; raises ``NotFoundError``."""
        request = requests.get_asset(self.path(database, asset))
        clip = await self.read(
            request, lambda reply: parse_clip(reply.data, reply.charset, database=database)
        )
        rates = self.spec.frame_rates
        return structs.replace(clip, frame_rates=rates) if rates else clip

    async def xmp(self, database: str, asset: AssetName, field: str | None = None) -> Xmp | None:
        """Read XMP fields, or one; ``None`` if the answer cannot be read."""
        require(self.spec, Feature.GET_USER_FIELDS)
        request = requests.get_user_fields(self.path(database, asset), field)
        return await self.read(request, partial(self._parse_xmp, field=field))

    async def thumbnail(
        self,
        database: str,
        asset: AssetName,
        *,
        pos: Position | None = None,
        dur: Position | None = None,
        w: int | None = None,
        h: int | None = None,
        params: Mapping[str, str] | None = None,
    ) -> bytes:
        """Return a PNG; ``w`` and ``h`` in pixels, ``pos`` from the IN point."""
        require(self.spec, Feature.THUMBNAIL)
        path = self.path(database, asset)
        at = await self._frame(database, asset, pos)
        length = await self._frame(database, asset, dur)
        request = requests.get_thumbnail(
            path, pos=at, dur=length, w=w, h=h, params=_mapping("params", params)
        )
        return await self.read(request, _png_of)

    async def download_proxy(
        self,
        database: str,
        asset: AssetName,
        profile: str,
        dest: str | Path,
        *,
        preview: bool = False,
    ) -> int:
        """Save a web proxy, which the server may first have to create; return its size in bytes."""
        request = requests.get_proxy(self.path(database, asset), profile, preview=preview)
        return await self.download(request, Path(dest), seconds=self.spec.timeouts.proxy)

    async def delete(self, database: str, asset: AssetName) -> Answer:
        """Delete the asset."""
        return await self.send(requests.delete_asset(self.path(database, asset)))

    async def load_xmp(
        self, database: str, connector: str, content: bytes, media_type: str = "text/xml"
    ) -> Answer:
        """Load a batch of XMP metadata through a connector."""
        require(self.spec, Feature.LOAD_XMP)
        return await self.send(requests.load_xmp(database, connector, Body.of(content, media_type)))

    # Commands --------------------------------------------------------------------------------------------------

    async def command(
        self, database: str, asset: AssetName, name: str, params: Mapping[str, str] | None = None
    ) -> Answer:
        """Run any command, also one that the interface does not list."""
        feature = requests.feature_of_command(name)
        if feature is not None:
            require(self.spec, feature)
        path = self.path(database, asset)
        return await self.send(requests.command(path, name, _mapping("params", params).items()))

    async def restore(self, database: str, asset: AssetName) -> Answer:
        """Start restoring the high-resolution file from the archive; it is available later."""
        require(self.spec, Feature.RESTORE)
        return await self.send(requests.restore(self.path(database, asset)))

    async def copy_link(
        self, database: str, asset: AssetName, title: str, folder: str | Folder
    ) -> Answer:
        """Create a new link to the asset."""
        path = self.path(database, asset)
        return await self.send(requests.copy_link(path, title, _folder(folder)))

    async def set_field(
        self, database: str, asset: AssetName, name: str, value: str | int
    ) -> Answer:
        """Change a link field, or the title (``clip_name``); an empty value clears it.

        ``first_frame``, ``last_frame`` and ``icon_pos`` take positions, ``layer`` a number.
        """
        text = _value(name, value, _FIELDS, "link field")
        requests.require_field(self.spec, name)
        path = self.path(database, asset)
        if text and _FIELDS[name].kind == "position":
            (frame,) = await self._frames(database, asset, text)
            text = str(frame)
        return await self.send(requests.set_field(path, name, text))

    async def set_user_fields(
        self, database: str, asset: AssetName, fields: Mapping[str, str | Sequence[str]]
    ) -> Answer:
        """Change XMP fields, named ``ns:name``, each to a text or a list of texts; an empty list clears it."""
        require(self.spec, Feature.SET_USER_FIELDS)
        separator = self.spec.dialect.list_separator
        values = {}
        for name, texts in _mapping("fields", fields).items():
            values[name] = _xmp_values(name, texts, separator)
        return await self.send(
            requests.set_user_fields(self.path(database, asset), values, separator)
        )

    async def create_segment(
        self,
        database: str,
        asset: AssetName,
        number: int,
        start: Position,
        duration: Position,
        *,
        title: str | None = None,
        keywords: str | None = None,
    ) -> Answer:
        """Add a segment."""
        path = self.path(database, asset)
        fields = {}
        for name, text in (("title", title), ("keywords", keywords)):
            if text is not None:
                fields[name] = _text(name, text)
        first, length = await self._frames(database, asset, start, duration)
        return await self.send(
            requests.create_segment(path, _number("number", number), first, length, fields)
        )

    async def create_segmentation(
        self, database: str, asset: AssetName, duration: Position, *, title: str | None = None
    ) -> Answer:
        """Divide the whole asset into segments of this duration."""
        path = self.path(database, asset)
        (length,) = await self._frames(database, asset, duration)
        return await self.send(
            requests.create_segmentation(path, length, title and _text("title", title))
        )

    async def delete_segment(self, database: str, asset: AssetName, number: int) -> Answer:
        """Delete a segment."""
        return await self.send(
            requests.delete_segment(self.path(database, asset), _number("number", number))
        )

    async def create_marker(
        self,
        database: str,
        asset: AssetName,
        uid: int = requests.NEW_MARKER,
        *,
        frame: Position | None = None,
        track: str | None = None,
        fields: Mapping[str, str | int] | None = None,
    ) -> Answer:
        """Add a marker, or change the one with this uid.

        ``fields`` are title, comment, user, keywords and rating; a new marker needs a ``frame``.
        """
        require(self.spec, Feature.CREATE_MARKER)
        path = self.path(database, asset)
        if uid == requests.NEW_MARKER and frame is None:
            raise AddressError(
                "a new marker needs a position", remedy="give frame=, or the uid of a marker"
            )
        if track is not None:
            _known(track, TRACKS, "marker type")
        texts = {}
        for name, value in _mapping("fields", fields).items():
            texts[name] = _value(name, value, _MARKER_FIELDS, "marker field")
        at = await self._frame(database, asset, frame)
        return await self.send(requests.create_marker(path, _number("uid", uid), at, track, texts))

    async def delete_marker(self, database: str, asset: AssetName, uid: int) -> Answer:
        """Delete a marker."""
        require(self.spec, Feature.DELETE_MARKER)
        return await self.send(
            requests.delete_marker(self.path(database, asset), _number("uid", uid))
        )

    async def export_version(
        self, database: str, asset: AssetName, *, ns: str | None = None, id: str | None = None
    ) -> Answer:
        """PARTNER_EXPORT_VERSION: export the version's description to the partner system."""
        return await self.command(
            database, asset, "PARTNER_EXPORT_VERSION", dict(requests.given(ns=ns, id=id))
        )

    async def copy_program_fields(
        self, database: str, asset: AssetName, *, ns: str | None = None, id: str | None = None
    ) -> Answer:
        """PARTNER_COPY_PROGRAM_FIELDS: copy XMP fields from the program card."""
        return await self.command(
            database, asset, "PARTNER_COPY_PROGRAM_FIELDS", dict(requests.given(ns=ns, id=id))
        )

    async def move_to_asset(
        self, database: str, asset: AssetName, asset_id: str, *, house_number: str | None = None
    ) -> Answer:
        """PARTNER_MOVE_TO_ASSET: move the media file to the folder linked with the card."""
        params = dict(requests.given(asset_id=asset_id, house_number=house_number))
        return await self.command(database, asset, "PARTNER_MOVE_TO_ASSET", params)

    # RSS -------------------------------------------------------------------------------------------------------

    async def channels(self) -> tuple[str, ...]:
        """List the names of the RSS channels."""
        return await self.read(
            requests.get_channels(), lambda reply: parse_channels(reply.data, reply.charset)
        )

    async def channel(self, name: str) -> RssChannel:
        """Read a channel, its dates with a time zone; raises ``NotFoundError``."""
        request = requests.get_channel(name)
        dated = partial(with_zone, zone=zone_of(self.spec))
        return await self.read(
            request, lambda reply: parse_channel(reply.data, name, reply.charset, dated=dated)
        )

    async def put_rss(
        self, channel: str, file: str, content: bytes | str, media_type: str | None = None
    ) -> Answer:
        """Add data to a channel."""
        if isinstance(content, str):
            content = content.encode()
        usual_type = "text/xml" if file.lower().endswith(".xml") else "text/plain; charset=utf-8"
        return await self.send(
            requests.put_rss(channel, file, Body.of(content, media_type or usual_type))
        )

    async def delete_rss(self, channel: str, guid: str) -> Answer:
        """Delete an item of a channel."""
        return await self.send(requests.delete_rss(channel, guid))

    # Shared ----------------------------------------------------------------------------------------------------

    def path(self, database: str, asset: AssetName) -> str:
        """Return the escaped path of an asset; ``NS:ID`` needs a product version that knows it."""
        if isinstance(asset, str):
            asset = Address(asset)
        if not isinstance(asset, Address):
            raise AddressError(
                f"an asset cannot be named by {asset!r}", remedy="give its title, or an Address"
            )
        return requests.asset_path(database, requests.wire_address(self.spec, asset))

    async def _frame(
        self, database: str, asset: AssetName, position: Position | None
    ) -> int | None:
        if position is None:
            return None
        (frame,) = await self._frames(database, asset, position)
        return frame

    async def _frames(
        self, database: str, asset: AssetName, *positions: Position
    ) -> tuple[int, ...]:
        """Return positions in frames; the clip is read if one is a time code, because only it shows the rate."""
        try:
            codes = [Timecode.parse(_position(position)) for position in positions]
            rate = Fraction(1)
            if any(code.kind != "frames" for code in codes):
                clip = await self.asset(database, asset)
                if clip.rate is None:
                    raise TimecodeError(f"a time code needs a frame rate, and {why_no_rate(clip)}")
                rate = clip.rate
            return tuple(code.to_frames(rate) for code in codes)
        except TimecodeError as error:
            raise AddressError(
                f"{error}", remedy="correct the position, or give a number of frames"
            ) from None

    async def _listed(
        self, request: Request, database: str, folder: Folder, recursive: bool | None
    ) -> Listing:
        """Return the listing, without what is below the folder unless that is asked for."""
        listing = await self.read_listing(request, partial(ListingReading, database, folder))
        rates = self.spec.frame_rates
        if rates:
            known = [structs.replace(entry, frame_rates=rates) for entry in listing.entries]
            listing = structs.replace(listing, entries=tuple(known))
        if _is_deep(folder, recursive):
            return listing
        entries = tuple(entry for entry in listing.entries if entry.folder == folder)
        folders = tuple(child for child in listing.folders if child[:-1] == folder)
        return Listing(folder, entries, folders)

    def _parse_xmp(self, reply: RawAnswer, field: str | None) -> Xmp | None:
        fields = parse_xmp(reply.data, self.spec.dialect.list_separator, reply.charset, asked=field)
        if not fields:  # it may be an error text
            judge_body(reply, self.spec.dialect)
        return fields


def _png_of(reply: RawAnswer) -> bytes:
    if not reply.data.startswith(_PNG):
        raise unreadable(
            f"the answer is not a PNG image but {reply.media_type or 'something else'}"
        )
    return reply.data


# What callers give: refused before anything is sent -----------------------------------------------------------


def _folder(folder: object) -> Folder:
    if isinstance(folder, str):
        return parse_folder(folder)
    if not isinstance(folder, Sequence) or not all(isinstance(name, str) for name in folder):
        raise AddressError(
            f"a folder cannot be {folder!r}", remedy='give a text, such as "Raw/2026", or its names'
        )
    return tuple(folder)


def _is_deep(folder: Folder, recursive: bool | None) -> bool:
    return not folder if recursive is None else recursive


def _iso(moment: datetime | date | str | None) -> str | None:
    if moment is None or isinstance(moment, str):
        return moment
    if isinstance(moment, datetime):
        if moment.tzinfo is not None:
            raise AddressError(
                "created_after has a time zone, but the times of the server have none",
                remedy="convert it to the server's time, and remove the zone",
            )
        return moment.isoformat(timespec="seconds")
    if isinstance(moment, date):
        return moment.isoformat()
    raise AddressError(
        f"created_after cannot be {moment!r}", remedy="give a date, a datetime, or such a text"
    )


def _mimetype(name: str | None) -> str | None:
    return name if name is None else _known(name, get_args(MimeType), "MIME type of the interface")


def _known(name: str, names: Iterable[str], what: str) -> str:
    """Return the name; raises ``AddressError`` with the nearest one if it is unknown."""
    if name not in names:
        raise AddressError(f"{name!r} is not a {what}", remedy=nearest(str(name), names))
    return name


def _value(name: str, value: str | int, known: Mapping[str, Attribute], what: str) -> str:
    """Return the value of an attribute as its text on the wire."""
    attribute = known[_known(name, known, what)]
    if attribute.is_number and isinstance(value, int):
        return str(_number(name, value))
    text = _text(name, value)
    if attribute.is_number and attribute.kind != "position" and text and read_whole(text) is None:
        raise AddressError(f"{name} is a number, not {text[:60]!r}", remedy="give a whole number")
    return text


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise AddressError(f"{name} must be a text, not {value!r}", remedy="give a str")
    if why := unreportable(value):
        raise AddressError(f"{name} {why}", remedy="remove the character")
    return value


def _position(value: object) -> Position:
    if not isinstance(value, int | str) or isinstance(value, bool):
        raise AddressError(
            f"a position cannot be {value!r}", remedy="give frames, or a time code as a text"
        )
    return value


def _mapping(name: str, value: Mapping[str, T] | None) -> Mapping[str, T]:
    if not isinstance(value, Mapping | None):
        raise AddressError(
            f"{name} must be a mapping, not of type {type(value).__name__}", remedy="give a dict"
        )
    return value or {}


def _number(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise AddressError(f"{name} must be a whole number, not {value!r}", remedy="give an int")
    return value


def _xmp_values(name: str, values: str | Sequence[str], separator: str) -> tuple[str, ...]:
    """Return the values of an XMP field; one empty text clears it, as in a playbook."""
    if not all(_text("the name of an XMP field", name).partition(":")):
        raise AddressError(
            f"{name!r} is not the name of an XMP field", remedy="write ns:name, such as dc:subject"
        )
    if not isinstance(values, Sequence):
        raise AddressError(
            f"{name} must be a text or a list of texts, not {values!r}",
            remedy="give a str or a list",
        )
    given = [values] if isinstance(values, str) else values
    texts = tuple(_text(name, value) for value in given)
    for text in texts:
        if separator in text:
            raise AddressError(
                f"the value {text!r} of {name} contains {separator!r}, which separates values on this server",
                remedy="remove it, or set `list_separator` in the dialect if the server separates otherwise",
            )
    return () if texts == ("",) else texts
