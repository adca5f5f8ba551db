"""Live state for ``msauto export``: each target once, complete, in a stable order.

The listing is read first; only its folders and titles are kept. Assets are read ``forks`` at a time and dropped once
they are yielded, so that a folder of 100,000 clips is never held in memory.
"""

from __future__ import annotations

import unicodedata
from collections.abc import AsyncIterator, Sequence
from typing import Final

from msgspec import structs

from msauto.concurrency import concurrent_map
from msauto.errors import MsautoError, UnreadableError, UnsupportedError
from msauto.model.desired import SelectRef
from msauto.model.identity import same_folder
from msauto.model.live import Asset, ClipEntries, Entry, Folder, Link, Xmp, show_folder
from msauto.model.plan import Address
from msauto.model.snapshot import AssetSnapshot, ChannelSnapshot, ListedEntry, SkippedEntry, Snapshot
from msauto.server.client import AsyncMediaServer
from msauto.server.clip_identity import links_of, read_entries_of
from msauto.server.reader import ServerReader

_MANY: Final = 10
"""Fewer assets without XMP fields show nothing about the server."""


class Snapshots:
    """Takes snapshots of one database. ``links``: whether links are searched for, in a listing of all of it."""

    def __init__(self, client: AsyncMediaServer, database: str, *, links: bool = True, forks: int = 8) -> None:
        self._client = client
        self._reader = ServerReader(client)
        self._database = database
        self._find_links = links
        self._forks = forks
        self._done: set[str] = set()
        self.xmp_hidden = False
        """Whether the XMP fields of some asset could not be read."""
        self._xmp_reported = False
        self._xmp_empty = 0

    @property
    def xmp_silent(self) -> bool:
        """Whether many assets reported no XMP field: some servers report fields only by name."""
        return not self._xmp_reported and self._xmp_empty >= _MANY

    async def list(self, folder: Folder, *, recursive: bool) -> tuple[ListedEntry, ...]:
        """Return what a folder lists, by folder and title. Raises ``MsautoError`` for an unknown folder."""
        select = SelectRef(self._database, folder, recursive=recursive)
        entries = await self._reader.read_select(select)
        if entries is None:
            raise MsautoError(
                f"{self._client.spec.name} has no folder {show_folder(folder) or '/'} in {self._database}",
                remedy="`msauto show folders` lists the folders",
            )
        return tuple(sorted(ListedEntry(entry.folder, entry.title) for entry in entries))

    async def of_titles(self, titles: Sequence[str]) -> AsyncIterator[Snapshot]:
        """Yield the assets of these titles; raises ``MsautoError`` for an unknown one."""
        async for title, asset in concurrent_map(self._read_titled, titles, limit=self._forks):
            if asset is None:
                raise MsautoError(
                    f"{self._client.spec.name} has no asset {title!r} in {self._database}",
                    remedy="`msauto show assets` lists the assets",
                )
            snapshot = await self._snapshot(title, asset)
            if not self._seen(snapshot):
                yield snapshot

    async def of_listed(self, found: Sequence[ListedEntry]) -> AsyncIterator[Snapshot]:
        """Yield what was listed, in that order: assets in their own folders, and skipped entries with a reason."""
        async for snapshot in concurrent_map(self._listed, found, limit=self._forks):
            if isinstance(snapshot, AssetSnapshot) and self._seen(snapshot):
                home = snapshot.asset.folder or ()
                why = "two assets have this title, and only one of them can be read by it"
                yield SkippedEntry(self._database, home, snapshot.title, why, broken=True)
            else:
                yield snapshot

    def _seen(self, snapshot: AssetSnapshot) -> bool:
        """Return whether an asset of this title (after Unicode NFC) was yielded before."""
        name = unicodedata.normalize("NFC", snapshot.title)
        seen = name in self._done
        self._done.add(name)
        return seen

    async def _read_titled(self, title: str) -> tuple[str, Asset | None]:
        return title, await self._reader.fresh().read_asset(self._database, Address(title))

    async def _listed(self, found: ListedEntry) -> Snapshot:
        """Read the listed targets. A link is not a target: its clip is exported in its own folder."""

        def skipped(why: str, *, broken: bool = False) -> SkippedEntry:
            return SkippedEntry(self._database, found.folder, found.title, why, broken=broken)

        if not found.title.strip():
            return skipped("an asset without a title cannot be read", broken=True)
        try:
            asset = await self._reader.fresh().read_asset(self._database, Address(found.title))
        except UnreadableError as error:
            return skipped(f"it cannot be read: {error.message}", broken=True)
        if asset is None:
            return skipped("it is listed, but not found by its title", broken=True)
        if asset.folder is not None and not same_folder(asset.folder, found.folder):
            return skipped(f"a link: its clip lives in {show_folder(asset.folder) or '/'}")
        clip = await self._clip_of_link(structs.replace(asset, title=asset.title or found.title))
        if clip is not None:
            return skipped(f"a link: its clip is {show_folder((*clip.folder, clip.title))}")
        return await self._snapshot(found.title, asset)

    async def _clip_of_link(self, asset: Asset) -> Entry | None:
        """Return the entry of the clip if this one is a link to it: a link is created after its clip."""
        if not self._find_links or asset.link_id is None:
            return None
        candidates = await self._reader.read_entries(self._database, asset)
        if not _older(candidates, asset):
            return None
        return next(iter(_older(await read_entries_of(self._reader, self._database, asset), asset)), None)

    async def _snapshot(self, title: str, asset: Asset) -> AssetSnapshot:
        links, strangers = await self._links(asset)
        counts_from_in = self._client.spec.dialect.counts_from_in
        return AssetSnapshot(
            database=self._database,
            title=title,
            asset=asset,
            xmp=await self._xmp(title),
            links=links,
            strangers=strangers,
            # A server that counts positions from the in point (field notes, «where positions count from»).
            origin=asset.first_frame or 0 if counts_from_in else 0,
        )

    async def _xmp(self, title: str) -> Xmp | None:
        try:
            fields = await self._reader.fresh().read_xmp(self._database, Address(title), frozenset())
        except UnsupportedError:
            fields = None
        self.xmp_hidden = self.xmp_hidden or fields is None
        self._xmp_reported = self._xmp_reported or bool(fields)
        self._xmp_empty += fields is not None and not fields
        return fields

    async def _links(self, asset: Asset) -> tuple[tuple[Link, ...] | None, tuple[Link, ...]]:
        if asset.links is not None:
            return asset.links, ()
        if not self._find_links:
            return None, ()
        found = await self._reader.read_entries(self._database, asset)
        namesakes = tuple(Link(entry.folder, entry.title, entry.link_id) for entry in found.namesakes)
        return links_of(asset, found.same), namesakes


async def channel_snapshot(client: AsyncMediaServer, name: str) -> ChannelSnapshot:
    """Return an RSS channel; raises ``MsautoError`` for an unknown one."""
    channel = await ServerReader(client).read_channel(name)
    if channel is None:
        raise MsautoError(
            f"{client.spec.name} has no RSS channel {name!r}", remedy="`msauto show channels` lists the channels"
        )
    return ChannelSnapshot(channel)


def _older(entries: ClipEntries, asset: Asset) -> list[Entry]:
    """Return the entries of other titles that were created before the asset's own."""
    known = [entry for entry in entries.same if entry.link_id is not None and entry.title != asset.title]
    return [entry for entry in known if (entry.link_id or 0) < (asset.link_id or 0)]
