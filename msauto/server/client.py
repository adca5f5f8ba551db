"""The client of one media server: a typed method for each call of the interface. Usable as a library.

::

    async with AsyncMediaServer("http://studio-a:7901") as server:
        clip = await server.asset("NEWS", "Evening News")
        await server.set_field("NEWS", "Evening News", "comment", "Ready")

Reads are tried again after transient errors. A write is sent once; if its answer is lost, only reading again shows
whether it was done (:class:`msauto.errors.InDoubtError`). For scripts without asyncio: :class:`msauto.MediaServer`.
An asset is given by its title, or as an ``Address`` with a namespace; a folder as ``Raw/2026`` or as a tuple of names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from msauto.model import requests
from msauto.model.live import Asset, Database, Folder, Listing, MamAsset, RssChannel, Xmp, parse_folder
from msauto.model.plan import Address, Body, Request
from msauto.model.ports import Answer
from msauto.model.requests import (
    Feature,
    Position,
    asset_path,
    feature_of_command,
    given,
    require,
    require_address,
    require_field,
)
from msauto.server.answers import RawAnswer, judge_body, read_reply
from msauto.server.channel import parse_channel, parse_channels
from msauto.server.clip import parse_clip
from msauto.server.http_client import HttpClient
from msauto.server.listing import ListingReading, parse_databases, parse_mam
from msauto.server.xml import unreadable
from msauto.server.xmp import parse_xmp

T = TypeVar("T")
_PNG = b"\x89PNG\r\n\x1a\n"


class AsyncMediaServer(HttpClient):
    """One media server, asynchronously. Give it a URL, or the spec of an inventory.

    ``read_only`` refuses everything but GET and HEAD before anything is sent. ``transport`` replaces the network.
    ``reads`` counts the reads, without further attempts. All methods raise :class:`msauto.errors.ServerError`.
    """

    # Databases, folders, assets --------------------------------------------------------------------------------

    async def databases(self) -> tuple[Database, ...]:
        """List the databases. The server describes all its content, so this may take long («List databases»)."""
        return await self._parsed(requests.get_databases(), parse_databases, listing=True)

    async def list(
        self,
        database: str,
        folder: str | Folder = (),
        *,
        created_after: datetime | date | str | None = None,
        mimetype: str | None = None,
    ) -> Listing:
        """List a folder as a tree, with absolute folders («List assets and folders»).

        ``created_after`` without a zone is the server's own time; one with a zone must be converted first.
        """
        asked = _folder(folder)
        request = requests.get_listing(database, asked, datetime=_iso(created_after), mimetype=mimetype)
        return await self.read_listing(request, partial(ListingReading, database, asked))

    async def list_folders(self, database: str, folder: str | Folder = ()) -> Listing:
        """List folders only (format=folderlist)."""
        require(self.spec, Feature.FOLDERLIST)
        asked = _folder(folder)
        request = requests.get_listing(database, asked, format="folderlist")
        return await self.read_listing(request, partial(ListingReading, database, asked))

    async def list_mam(
        self,
        database: str,
        folder: str | Folder = (),
        *,
        created_after: datetime | date | str | None = None,
        mimetype: str | None = None,
    ) -> tuple[MamAsset, ...]:
        """List assets as a plain list (format=mam)."""
        moment = _iso(created_after)
        request = requests.get_listing(database, _folder(folder), format="mam", datetime=moment, mimetype=mimetype)
        return await self._parsed(request, parse_mam, listing=True)

    async def asset(self, database: str, asset: str | Address) -> Asset:
        """Describe one asset; raises ``NotFoundError`` («Asset information»)."""
        parse = partial(parse_clip, database=database)
        return await self._parsed(requests.get_asset(self.path(database, asset)), parse)

    async def xmp(self, database: str, asset: str | Address, field: str | None = None) -> Xmp | None:
        """Read XMP fields, or one; ``None`` if the answer cannot be read («XMP field values»)."""
        require(self.spec, Feature.GET_USER_FIELDS)
        request = requests.get_user_fields(self.path(database, asset), field)
        return await self.read(request, partial(self._parse_xmp, field=field))

    async def thumbnail(
        self,
        database: str,
        asset: str | Address,
        *,
        pos: int | None = None,
        dur: int | None = None,
        w: int | None = None,
        h: int | None = None,
        params: Mapping[str, str] | None = None,
    ) -> bytes:
        """Return a PNG; ``pos`` and ``dur`` in frames, ``w`` and ``h`` in pixels («PNG thumbnail»)."""
        require(self.spec, Feature.THUMBNAIL)
        path = self.path(database, asset)
        request = requests.get_thumbnail(path, pos=pos, dur=dur, w=w, h=h, params=params)
        return await self.read(request, self._parse_png)

    async def download_proxy(
        self, database: str, asset: str | Address, profile: str, dest: str | Path, *, preview: bool = False
    ) -> int:
        """Save a web proxy, which the server may first have to create; return its size in bytes («Web proxy»)."""
        request = requests.get_proxy(self.path(database, asset), profile, preview=preview)
        return await self.download(request, Path(dest), seconds=self.spec.timeouts.proxy)

    async def delete(self, database: str, asset: str | Address) -> Answer:
        """Delete the asset («Delete asset»)."""
        return await self.send(requests.delete_asset(self.path(database, asset)))

    async def load_xmp(self, database: str, connector: str, content: bytes, media_type: str = "text/xml") -> Answer:
        """Load a batch of XMP metadata through a connector («Load XMP metadata in batch»)."""
        require(self.spec, Feature.LOAD_XMP)
        return await self.send(requests.load_xmp(database, connector, Body.of(content, media_type)))

    # Commands («Asset commands») -------------------------------------------------------------------------------

    async def command(
        self, database: str, asset: str | Address, name: str, params: Mapping[str, str] | None = None
    ) -> Answer:
        """Run any command, also one that the interface does not list."""
        feature = feature_of_command(name)
        if feature is not None:
            require(self.spec, feature)
        return await self.send(requests.command(self.path(database, asset), name, (params or {}).items()))

    async def restore(self, database: str, asset: str | Address) -> Answer:
        """Start restoring the high-resolution file from the archive; it is available later."""
        require(self.spec, Feature.RESTORE)
        return await self.send(requests.restore(self.path(database, asset)))

    async def copy_link(self, database: str, asset: str | Address, title: str, folder: str | Folder) -> Answer:
        """Create a new link to the asset."""
        path = self.path(database, asset)
        return await self.send(requests.copy_link(path, title, _folder(folder)))

    async def set_field(self, database: str, asset: str | Address, name: str, value: str) -> Answer:
        """Change a link field; an empty value clears it."""
        require_field(self.spec, name)
        return await self.send(requests.set_field(self.path(database, asset), name, value))

    async def set_user_fields(self, database: str, asset: str | Address, fields: Mapping[str, Sequence[str]]) -> Answer:
        """Change XMP fields, each to a list of values; an empty list clears it."""
        require(self.spec, Feature.SET_USER_FIELDS)
        separator = self.spec.dialect.list_separator
        return await self.send(requests.set_user_fields(self.path(database, asset), fields, separator))

    async def create_segment(
        self,
        database: str,
        asset: str | Address,
        number: int,
        start: Position,
        duration: Position,
        *,
        title: str | None = None,
        keywords: str | None = None,
    ) -> Answer:
        """Add a segment; positions in frames or as time codes."""
        path = self.path(database, asset)
        fields = dict(given(title=title, keywords=keywords))
        return await self.send(requests.create_segment(path, number, start, duration, fields))

    async def create_segmentation(
        self, database: str, asset: str | Address, duration: Position, *, title: str | None = None
    ) -> Answer:
        """Divide the whole asset into segments of this duration."""
        return await self.send(requests.create_segmentation(self.path(database, asset), duration, title))

    async def delete_segment(self, database: str, asset: str | Address, number: int) -> Answer:
        """Delete a segment."""
        return await self.send(requests.delete_segment(self.path(database, asset), number))

    async def create_marker(
        self,
        database: str,
        asset: str | Address,
        uid: int = requests.NEW_MARKER,
        *,
        frame: int | None = None,
        track: str | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> Answer:
        """Add a marker, or change the one with this uid."""
        require(self.spec, Feature.CREATE_MARKER)
        return await self.send(requests.create_marker(self.path(database, asset), uid, frame, track, fields))

    async def delete_marker(self, database: str, asset: str | Address, uid: int) -> Answer:
        """Delete a marker."""
        require(self.spec, Feature.DELETE_MARKER)
        return await self.send(requests.delete_marker(self.path(database, asset), uid))

    async def export_version(
        self,
        database: str,
        asset: str | Address,
        *,
        ns: str | None = None,
        id: str | None = None,  # noqa: A002
    ) -> Answer:
        """PARTNER_EXPORT_VERSION: export the version's description to the partner system."""
        return await self.command(database, asset, "PARTNER_EXPORT_VERSION", dict(given(ns=ns, id=id)))

    async def copy_program_fields(
        self,
        database: str,
        asset: str | Address,
        *,
        ns: str | None = None,
        id: str | None = None,  # noqa: A002
    ) -> Answer:
        """PARTNER_COPY_PROGRAM_FIELDS: copy XMP fields from the program card."""
        return await self.command(database, asset, "PARTNER_COPY_PROGRAM_FIELDS", dict(given(ns=ns, id=id)))

    async def move_to_asset(
        self, database: str, asset: str | Address, asset_id: str, *, house_number: str | None = None
    ) -> Answer:
        """PARTNER_MOVE_TO_ASSET: move the media file to the folder linked with the card."""
        params = dict(given(asset_id=asset_id, house_number=house_number))
        return await self.command(database, asset, "PARTNER_MOVE_TO_ASSET", params)

    # RSS -------------------------------------------------------------------------------------------------------

    async def channels(self) -> tuple[str, ...]:
        """List the names of the RSS channels («RSS channel list»)."""
        return await self._parsed(requests.get_channels(), parse_channels)

    async def channel(self, name: str) -> RssChannel:
        """Read a channel; raises ``NotFoundError`` («RSS channel»)."""
        return await self._parsed(requests.get_channel(name), lambda data, charset: parse_channel(data, name, charset))

    async def put_rss(self, channel: str, file: str, content: bytes | str, media_type: str | None = None) -> Answer:
        """Add data to a channel («RSS add data»)."""
        data = content.encode() if isinstance(content, str) else content
        kind = media_type or ("text/xml" if file.lower().endswith(".xml") else "text/plain; charset=utf-8")
        return await self.send(requests.put_rss(channel, file, Body.of(data, kind)))

    async def delete_rss(self, channel: str, guid: str) -> Answer:
        """Delete an item of a channel («RSS delete data»)."""
        return await self.send(requests.delete_rss(channel, guid))

    # Shared ----------------------------------------------------------------------------------------------------

    def path(self, database: str, asset: str | Address) -> str:
        """Return the escaped path of an asset; ``NS:ID`` needs a product version that knows it."""
        address = Address(asset) if isinstance(asset, str) else asset
        require_address(self.spec, address)
        return asset_path(database, address, dialect=self.spec.dialect)

    async def _parsed(
        self,
        request: Request,
        parse: Callable[[bytes, str | None], T],
        *,
        listing: bool = False,
    ) -> T:
        return await self.read(request, lambda reply: read_reply(reply, self.spec.dialect, parse), listing=listing)

    def _parse_xmp(self, reply: RawAnswer, field: str | None) -> Xmp | None:
        fields = parse_xmp(reply.data, self.spec.dialect.list_separator, reply.charset, asked=field)
        if not fields:  # it may be an error text
            judge_body(reply, self.spec.dialect)
        return fields

    def _parse_png(self, reply: RawAnswer) -> bytes:
        if not reply.data.startswith(_PNG):
            judge_body(reply, self.spec.dialect)
            raise unreadable(f"the answer is not a PNG image but {reply.media_type or 'something else'}")
        return reply.data


def _folder(folder: str | Folder) -> Folder:
    return parse_folder(folder) if isinstance(folder, str) else folder


def _iso(moment: datetime | date | str | None) -> str | None:
    if moment is None or isinstance(moment, str):
        return moment
    if isinstance(moment, datetime):
        if moment.tzinfo is not None:
            raise ValueError(
                "created_after has a time zone, but the times of the server have none: convert it and remove the zone"
            )
        return moment.isoformat(timespec="seconds")
    return moment.isoformat()
