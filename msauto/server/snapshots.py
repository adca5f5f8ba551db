"""Live state for ``msauto export``: each target once, complete, in a stable order.

The listing is read first; only its folders and titles are kept. Assets are read ``forks`` at a time and dropped once
they are yielded, so that a folder of 100,000 clips is never held in memory.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Final, Protocol, TypeVar

from msgspec import Struct

from msauto.circuit_breaker import cause_of
from msauto.errors import (
    AddressError,
    MsautoError,
    RejectedError,
    UnreadableError,
    UnsupportedError,
    one_line,
)
from msauto.model import live
from msauto.model.clip_entries import are_one_clip
from msauto.model.desired import SelectRef
from msauto.model.identity import is_another_clip, lives_in
from msauto.model.plan import Address
from msauto.model.server import ServerSpec
from msauto.primitives.normal_form import normal_form
from msauto.server.reader import ServerReader

ItemT = TypeVar("ItemT")
T = TypeVar("T")

_MANY: Final = 10
"""Fewer assets without XMP fields show nothing about the server."""


def is_of_one_target(error: Exception) -> bool:
    """Return whether an error concerns what was read alone: others may be read still."""
    if isinstance(error, RejectedError):
        return cause_of(error) in {None, "not found"}
    return isinstance(error, AddressError | UnreadableError) or not isinstance(error, MsautoError)


class SnapshotReading(Struct, frozen=True):
    """Takes the snapshot of one entry or title of a database. It can be pickled.

    ``links``: whether links are searched for, in a listing of the whole database.
    """

    server: ServerSpec
    database: str
    links: bool

    async def titled(self, reader: ServerReader, title: str) -> live.Snapshot:
        """Take the snapshot of an asset by its title."""
        asset = await reader.fresh().read_asset(self.database, Address(title))
        if asset is None:
            raise MsautoError(
                f"{self.server.name} has no asset {title!r} in {self.database}",
                remedy=f"`{self.server.command('show assets')}` lists the assets",
            )
        return await self._snapshot(reader, title, asset)

    async def listed(self, reader: ServerReader, entry: live.ListedEntry) -> live.Snapshot:
        """Read the listed targets. An error of one of them, whatever its class, is the reason why it is left out."""
        try:
            return await self._listed(reader, entry)
        except Exception as error:
            if not is_of_one_target(error):
                raise
            why = f"it cannot be read: {one_line(error)}"
            return live.SkippedEntry(self.database, entry.folder, entry.title, why, broken=True)

    async def _listed(self, reader: ServerReader, entry: live.ListedEntry) -> live.Snapshot:
        """Read a listed target. A link is not a target: its clip is exported in its own folder."""

        def skipped(why: str, *, broken: bool = False) -> live.SkippedEntry:
            return live.SkippedEntry(self.database, entry.folder, entry.title, why, broken=broken)

        if not entry.title.strip():
            return skipped("an asset without a title cannot be read", broken=True)
        asset = await reader.fresh().read_asset(self.database, Address(entry.title))
        if asset is None:
            return skipped("it is listed, but not found by its title", broken=True)
        if lives_in(asset, entry.folder) is False:
            return skipped(
                f"a link: its clip lives in {live.show_folder(asset.folder or ()) or '/'}"
            )
        clip = await self._exported_entry(reader, asset)
        if clip is not None:
            return skipped(f"a link: its clip is {live.show_folder((*clip.folder, clip.title))}")
        return await self._snapshot(reader, entry.title, asset)

    async def _exported_entry(self, reader: ServerReader, asset: live.Asset) -> live.Entry | None:
        """Return another entry that is surely of the clip, and that is exported instead: of several, the first one.

        A server that reports the own folder of each entry does not show which of them is the clip.
        """
        if not self.links or asset.link_id is None:
            return None
        for entry in (await reader.read_entries(self.database, asset)).same:
            is_earlier = entry.link_id is not None and entry.link_id < asset.link_id
            if entry.title == asset.title or not is_earlier:
                continue
            answer = await reader.read_asset(self.database, Address(entry.title))
            if answer is None or is_another_clip(entry, answer, {"link_id"}):
                continue
            if await are_one_clip(reader, self.database, asset, answer):
                return entry
        return None

    async def _snapshot(
        self, reader: ServerReader, title: str, asset: live.Asset
    ) -> live.AssetSnapshot:
        links: tuple[live.Link, ...] | None = asset.links
        strangers: tuple[live.Link, ...] = ()
        if links is None and self.links:
            entries = await reader.read_entries(self.database, asset)
            links = entries.links
            strangers = tuple(
                live.Link(entry.folder, entry.title, entry.link_id) for entry in entries.namesakes
            )
        try:
            xmp = await reader.fresh().read_xmp(self.database, Address(title), frozenset())
        except UnsupportedError:
            xmp = None
        return live.AssetSnapshot(title, asset, xmp, links, strangers)


class ReadEach(Protocol):
    """Reads one server, in this process or on a worker of a cluster."""

    def __call__(
        self, read: Callable[[ServerReader, ItemT], Awaitable[T]], items: Iterable[ItemT]
    ) -> AsyncIterator[T]:
        """Yield, in order, what a function that can be pickled returns for each item."""


class Snapshots:
    """Takes snapshots of one database. ``links``: whether links are searched for, in a listing of all of it."""

    def __init__(
        self, server: ServerSpec, database: str, read_each: ReadEach, *, links: bool
    ) -> None:
        self._reading = SnapshotReading(server, database, links)
        self._read_each = read_each
        self._done: set[str] = set()
        self.xmp_hidden = False
        """Whether the XMP fields of some asset could not be read."""
        self._xmp_reported = False
        self._xmp_empty = 0

    @property
    def xmp_silent(self) -> bool:
        """Whether many assets reported no XMP field: some servers report fields only by name."""
        return not self._xmp_reported and self._xmp_empty >= _MANY

    async def list(self, folder: live.Folder, *, recursive: bool) -> tuple[live.ListedEntry, ...]:
        """Return what a folder lists, by folder and title. Raises ``MsautoError`` for an unknown folder."""
        reading = self._reading
        select = SelectRef(reading.database, folder, recursive=recursive)
        (entries,) = [
            listed async for listed in self._read_each(ServerReader.read_select, [select])
        ]
        if entries is None:
            raise MsautoError(
                f"{reading.server.name} has no folder {live.show_folder(folder) or '/'} in {reading.database}",
                remedy=f"`{reading.server.command('show folders')}` lists the folders",
            )
        return tuple(sorted(live.ListedEntry(entry.folder, entry.title) for entry in entries))

    async def of_titles(self, titles: Sequence[str]) -> AsyncIterator[live.Snapshot]:
        """Yield the assets of these titles; raises ``MsautoError`` for an unknown one."""
        async for snapshot in self._read_each(self._reading.titled, titles):
            self._note_xmp(snapshot)
            if not self._was_yielded(snapshot):
                yield snapshot

    async def of_listed(self, entries: Sequence[live.ListedEntry]) -> AsyncIterator[live.Snapshot]:
        """Yield what was listed, in that order: assets in their own folders, and skipped entries with a reason."""
        async for snapshot in self._read_each(self._reading.listed, entries):
            self._note_xmp(snapshot)
            if isinstance(snapshot, live.AssetSnapshot) and self._was_yielded(snapshot):
                home = snapshot.asset.folder or ()
                why = "two assets have this title, and only one of them can be read by it"
                yield live.SkippedEntry(
                    self._reading.database, home, snapshot.title, why, broken=True
                )
            else:
                yield snapshot

    def _was_yielded(self, snapshot: live.Snapshot) -> bool:
        """Return whether an asset of this title (after Unicode NFC) was yielded before."""
        name = normal_form(snapshot.title)
        was_yielded = name in self._done
        self._done.add(name)
        return was_yielded

    def _note_xmp(self, snapshot: live.Snapshot) -> None:
        if isinstance(snapshot, live.AssetSnapshot):
            self.xmp_hidden = self.xmp_hidden or snapshot.xmp is None
            self._xmp_reported = self._xmp_reported or bool(snapshot.xmp)
            self._xmp_empty += snapshot.xmp is not None and not snapshot.xmp


async def channel_snapshot(
    server: ServerSpec, read_each: ReadEach, name: str
) -> AsyncIterator[live.RssChannel]:
    """Yield an RSS channel; raises ``MsautoError`` for an unknown one."""
    async for channel in read_each(ServerReader.read_channel, [name]):
        if channel is None:
            raise MsautoError(
                f"{server.name} has no RSS channel {name!r}",
                remedy=f"`{server.command('show channels')}` lists the channels",
            )
        yield channel
