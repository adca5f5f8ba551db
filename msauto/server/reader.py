"""Live state of one server, each answer read once: the ``Reader`` port over the client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence
from datetime import UTC, date, datetime, time
from functools import partial
from itertools import chain
from typing import Any, TypeVar, cast
from zoneinfo import ZoneInfo

from msgspec import Struct, structs

from msauto.circuit_breaker import UNINFORMATIVE_STATUSES
from msauto.concurrency import SystemClock, concurrent_list, in_turns
from msauto.errors import MsautoError, NotFoundError, RejectedError, UnreadableError
from msauto.model.clip_entries import LinkIndex, index_links, settle_home
from msauto.model.desired import SelectRef
from msauto.model.identity import ClipEntries, same_text
from msauto.model.live import (
    Asset,
    ClipAttributes,
    Entry,
    Folder,
    Link,
    Listing,
    RssChannel,
    Xmp,
    show_folder,
)
from msauto.model.plan import Address
from msauto.model.ports import Clock, NamedKind
from msauto.model.requests import Feature, supports
from msauto.model.server import zone_of
from msauto.server.client import AsyncMediaServer

T = TypeVar("T")
ReadKey = tuple[Hashable, ...]
"""What is read: its kind (asset, xmp, list, there, links, channel, names), and the arguments."""

_TITLE_KEYS = frozenset({"", "title"})
_KEPT = 1024
"""The number of asset answers kept, because 300,000 clips must not be held in memory."""


class ServerReader:
    """Reads one server. Concurrent reads of one answer share one request. ``fresh()`` forgets all answers."""

    def __init__(self, client: AsyncMediaServer, *, clock: Clock | None = None) -> None:
        self._client = client
        self._clock = clock or SystemClock()
        self._answers: dict[ReadKey, asyncio.Future[object]] = {}
        self.reads = 0  # requests sent so far, without repetitions
        self.whole: dict[str, None] = {}  # databases of which all entries were read
        self._now: datetime | None = None
        self._one_by_one = False  # GETUSERFIELDS must be asked by name
        self._deep = False  # listings show what is below their sub-folders
        self._settles = True  # an ambiguous folder of a clip is resolved

    def fresh(self, *, homes: bool = False) -> ServerReader:
        """Return a reader of the same server without any answers; ``homes``: it resolves ambiguous folders."""
        reader = ServerReader(self._client, clock=self._clock)
        reader._one_by_one = self._one_by_one
        reader._deep = self._deep
        reader._settles = homes  # verification does not compare folders
        return reader

    # Assets ----------------------------------------------------------------------------------------------------

    def read_asset(self, database: str, address: Address) -> Coroutine[Any, Any, Asset | None]:
        """Return the asset, or ``None`` if it does not exist; one that bears no title has the one asked for.

        Raises ``UnreadableError`` if the answer has another title than the one asked for: never the wrong clip.
        """

        async def read() -> Asset | None:
            self.reads += 1
            try:
                asset = await self._client.asset(database, address)
            except NotFoundError:
                return None
            if self._client.spec.dialect.counts_from_in:
                asset = counted_from_the_file(asset)
            by_title = address.namespace in _TITLE_KEYS
            if by_title and asset.title is None:
                asset = structs.replace(asset, title=address.name)
            if by_title and not same_text(asset.title, address.name):
                raise UnreadableError(
                    f"asked for {address.name!r}, the server answered with {asset.title!r}",
                    server=self._client.spec.name,
                    remedy="use the title as the server writes it, letter by letter",
                )
            if not self._settles or asset.folder_otherwise is None:
                return asset
            return await settle_home(
                asset,
                database,
                partial(self._has_folder, database),
                partial(self.read_folder, database),
            )

        return self._once(("asset", database, address), read)

    async def read_xmp(self, database: str, address: Address, names: frozenset[str]) -> Xmp | None:
        """Return the XMP fields: by one request for all, or one for each name if the server needs that."""
        if self._client.spec.dialect.xmp_read == "never":
            return None
        if self._one_by_one and names:
            return await self._each_field(database, address, names)
        fields = await self._once(
            ("xmp", database, address), lambda: self._field(database, address, None)
        )
        if fields:
            return _with_names(fields, names)
        if not names:
            return fields
        named = await self._each_field(database, address, names)
        # An asset may have no fields. Only an error, or a field shown only by name, shows what the server needs.
        if named is not None and (fields is None or any(named.values())):
            self._one_by_one = True
        return named

    async def _each_field(
        self, database: str, address: Address, names: frozenset[str]
    ) -> Xmp | None:
        fields: dict[str, tuple[str, ...]] = {}
        for name in sorted(names):
            ask = partial(self._field, database, address, name)
            shown = await self._once(("xmp", database, address, name), ask)
            if shown is None:
                return None
            fields.update(shown)
        return fields

    async def _field(self, database: str, address: Address, name: str | None) -> Xmp | None:
        """Return all fields, or one; ``None`` if the answer does not show them."""
        try:
            self.reads += 1
            return await self._client.xmp(database, address, name)
        except NotFoundError:
            return {} if name is not None else None  # the asset exists, the field does not
        except UnreadableError:
            return None
        except RejectedError as error:
            if error.status in UNINFORMATIVE_STATUSES:
                raise
            return None

    # Folders ---------------------------------------------------------------------------------------------------

    async def read_folder(
        self, database: str, folder: Folder, after: str | None = None, mimetype: str | None = None
    ) -> Listing | None:
        """Return a folder's listing, with these filters of the interface, or ``None`` if it does not exist."""

        async def ask() -> Listing | None:
            return await self._unless_missing(
                self._client.list(
                    database, folder, recursive=True, created_after=after, mimetype=mimetype
                )
            )

        return await self._once(("list", database, folder, after, mimetype), ask)

    async def read_select(self, select: SelectRef) -> Sequence[Entry] | None:
        """Return the entries that the listing's own filters leave, ``None`` if the folder is unknown.

        One listing for each MIME type, none twice. Times are compared once more on our side.
        """
        self._now = self._now or self._clock.now()  # one moment for all of a run
        bounds = bounds_of(select, self._now, zone_of(self._client.spec))
        listed = []
        for mimetype in select.mimetypes or (None,):
            listing = await self._tree(
                select.database, select.folder, bounds.asked, mimetype, deep=select.recursive
            )
            if listing is None:
                return None
            listed.append(listing.entries)
        entries = listed[0]  # not copied if there is no other one, because it may be large
        is_unfiltered = not select.mimetypes and bounds.asked is None
        if select.recursive and not select.folder and is_unfiltered:
            self.whole[select.database] = None
        if len(listed) > 1:
            entries = list(chain.from_iterable(listed))

        def is_selected(entry: Entry) -> bool:
            is_there = select.recursive or entry.folder == select.folder
            return is_there and within(entry, bounds)

        return await pick(entries, is_selected)

    async def _tree(
        self, database: str, folder: Folder, after: str | None, mimetype: str | None, *, deep: bool
    ) -> Listing | None:
        """Return a listing with all that is below it, whatever depth the server shows at once."""
        top = await self.read_folder(database, folder, after, mimetype)
        if top is None or not deep or not self._shallow(top):
            return top

        async def below(child: Folder) -> Listing | None:
            return await self._tree(database, child, after, mimetype, deep=True)

        folders = [child for child in top.folders if len(child) == len(folder) + 1]
        entries = [entry for entry in top.entries if entry.folder == folder]
        for listing in await concurrent_list(
            below, folders, limit=max(1, self._client.spec.connections)
        ):
            if listing is not None:
                entries += listing.entries
                folders += listing.folders
        return Listing(folder, tuple(entries), tuple(folders))

    def _shallow(self, listing: Listing) -> bool:
        """Return whether the sub-folders must be listed one by one."""
        if not listing.folders:
            return False
        below = any(entry.folder != listing.folder for entry in listing.entries)
        nested = any(len(folder) > len(listing.folder) + 1 for folder in listing.folders)
        self._deep = self._deep or below or nested
        return not self._deep

    async def has_database(self, name: str) -> bool:
        """Return whether the database exists. Does not read the list of databases, which may be very long."""
        return await self._has_folder(name, ())

    async def _has_folder(self, database: str, folder: Folder) -> bool:
        async def ask() -> bool:
            if supports(self._client.spec, Feature.FOLDERLIST):
                try:
                    return (
                        await self._unless_missing(self._client.list_folders(database, folder))
                        is not None
                    )
                except (RejectedError, UnreadableError) as error:
                    if isinstance(error, RejectedError) and error.status in UNINFORMATIVE_STATUSES:
                        raise  # else an older server than was thought, which does not know the format
            return await self.read_folder(database, folder) is not None

        return await self._once(("there", database, folder), ask)

    async def read_links(self, database: str, asset: Asset) -> tuple[Link, ...]:
        """Return all links to an asset: from the clip if it lists them, else from a listing of the whole database."""
        if asset.links is not None:
            return asset.links
        return (await self.read_entries(database, asset)).links

    async def read_entries(
        self, database: str, asset: Asset, *, in_doubt: bool = False
    ) -> ClipEntries:
        """Return all entries that show an asset, its home among them, by a listing of the whole database."""

        async def index() -> LinkIndex:
            whole = await self._tree(database, (), None, None, deep=True)
            self.whole[database] = None
            return await index_links(() if whole is None else whole.entries)

        return (await self._once(("links", database), index)).entries_of(asset, in_doubt=in_doubt)

    # Channels --------------------------------------------------------------------------------------------------

    async def read_channel(self, name: str) -> RssChannel | None:
        """Return a channel, or ``None`` if it does not exist."""
        return await self._once(
            ("channel", name), lambda: self._unless_missing(self._client.channel(name))
        )

    # Names, for messages ---------------------------------------------------------------------------------------

    async def read_names(self, kind: NamedKind, database: str = "") -> tuple[str, ...] | None:
        """Return all names of a kind; ``None`` if the server has no such list, as another web server."""

        async def ask() -> tuple[str, ...] | None:
            try:
                if kind == "channel":
                    return await self._unless_missing(self._client.channels())
                if kind == "database":
                    databases = await self._unless_missing(self._client.databases())
                    return None if databases is None else tuple(found.name for found in databases)
                listing = await self._unless_missing(self._client.list_folders(database))
                return None if listing is None else tuple(map(show_folder, listing.folders))
            except UnreadableError:
                return None

        return await self._once(("names", kind, database), ask)

    # Each answer once ------------------------------------------------------------------------------------------

    async def _unless_missing(self, answer: Awaitable[T]) -> T | None:
        self.reads += 1
        try:
            return await answer
        except NotFoundError:
            return None

    async def _once(self, key: ReadKey, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the answer to ``key``; the first asker asks, the others wait. An asker that is cancelled passes on."""
        while (asked := self._answers.get(key)) is not None:
            if not asked.cancelled():
                try:
                    return cast("T", await asyncio.shield(asked))
                except asyncio.CancelledError:
                    if not asked.cancelled():
                        raise  # this task was cancelled, not the shared request
            if self._answers.get(key) is asked:
                del self._answers[key]
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._answers[key] = future
        try:
            answer = await ask()
        except MsautoError as error:
            future.set_exception(error)
            future.exception()  # retrieved, so that asyncio does not warn
            raise
        except BaseException:
            future.cancel()
            raise
        future.set_result(answer)
        if len(self._answers) > 2 * _KEPT:
            self._drop_old()
        return answer

    def _drop_old(self) -> None:
        old = [
            key
            for key, future in self._answers.items()
            if future.done() and key[0] in {"asset", "xmp"}
        ]
        for key in old[:-_KEPT]:
            del self._answers[key]


def _with_names(fields: Xmp, names: frozenset[str]) -> Xmp:
    """Return XMP fields with ``dc:subject`` where the server shows only ``subject``."""
    named = dict(fields)
    for name in names:
        bare = name.rpartition(":")[2]
        if bare in fields:
            named.setdefault(name, fields[bare])
    return named


def counted_from_the_file(asset: Asset) -> Asset:
    """Return the asset of a server that counts positions from the in point, with them in frames of the file."""
    origin = asset.first_frame or 0
    markers = [structs.replace(marker, frame=marker.frame + origin) for marker in asset.markers]
    segments = [
        structs.replace(segment, start=segment.start + origin) for segment in asset.segments
    ]
    return structs.replace(asset, markers=tuple(markers), segments=tuple(segments))


# Selecting the entries of a listing: bounds in the time of the server, and duplicates --------------------------


class Bounds(Struct, frozen=True):
    """Times without a zone, on the server's clock; both exclusive.

    ``place`` is the server's time zone; ``None`` is that of this machine.
    """

    after: datetime | None = None
    before: datetime | None = None
    place: ZoneInfo | None = None

    @property
    def asked(self) -> str | None:
        """The ``datetime`` parameter: whole seconds, rounded down, because msauto filters exactly afterwards."""
        if self.after is None:
            return None
        if self.after.time() == time():
            return self.after.date().isoformat()
        return self.after.isoformat(timespec="seconds")


def bounds_of(select: SelectRef, now: datetime, place: ZoneInfo | None) -> Bounds:
    """Return the bounds of a select: ``created_after`` or ``now - created_within``, the later, and ``created_before``.

    What is to be created within a time before now is not created later.

    ``place`` is the server's time zone; without one, the zone of this machine is used.
    """
    after = []
    before = []
    if select.created_after is not None:
        after.append(_on_server(select.created_after, place))
    if select.created_within is not None:
        after.append(_on_server(now.astimezone(UTC) - select.created_within, place))
        before.append(_on_server(now.astimezone(UTC), place))  # no later time is within it
    if select.created_before is not None:
        before.append(_on_server(select.created_before, place))
    return Bounds(max(after, default=None), min(before, default=None), place)


def within(clip: ClipAttributes, bounds: Bounds) -> bool:
    """Return whether a clip was created within the bounds; one without a time that can be read was not.

    A bound itself is outside (interface, «List assets and folders»).
    """
    if bounds.after is None and bounds.before is None:
        return True
    created = clip.create_time
    if created is None:
        return False
    try:
        created = _on_server(created, bounds.place)
    except OverflowError:  # in the first or the last hours that a calendar has
        return False
    late_enough = bounds.after is None or created > bounds.after
    return late_enough and (bounds.before is None or created < bounds.before)


async def pick(entries: Sequence[Entry], holds: Callable[[Entry], bool]) -> list[Entry]:
    """Return the entries for which ``holds`` is true, each once: by its link id, or by folder and title without one."""
    picked: dict[object, Entry] = {}
    async for entry in in_turns(entries):
        if holds(entry):
            picked.setdefault((entry.link_id, entry.folder, entry.title), entry)
    return list(picked.values())


def _on_server(moment: datetime | date, place: ZoneInfo | None) -> datetime:
    if not isinstance(moment, datetime):
        return datetime.combine(moment, time())
    if moment.tzinfo is None:
        return moment
    return moment.astimezone(place).replace(tzinfo=None)
