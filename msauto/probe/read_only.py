"""What reading alone shows of a server's dialect. Sends GET only; never ``/storage`` whole, never a web proxy."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from msauto.errors import MsautoError, ServerError
from msauto.interface import requests
from msauto.interface.address import asset_path, channel_path, folder_path
from msauto.model.live import Entry, Folder
from msauto.model.plan import Address, Request
from msauto.probe.clips import ABOUT_CLIPS, ClipSample, ask, ask_about_clips, show_request, told_of
from msauto.probe.findings import ProbeNotes
from msauto.probe.shapes import (
    describe_channel,
    guess_guids,
    how_not_found,
)
from msauto.server.client import AsyncMediaServer

_FOLDERS: Final = 12
_CHANNELS: Final = 3


class ReadOnlyProbe:
    """Asks one database of one server, step by step; each step notes what it learned, or why it could not."""

    def __init__(
        self, client: AsyncMediaServer, database: str, notes: ProbeNotes, *, title: str | None, field: str | None
    ) -> None:
        self._client = client
        self._database = database
        self._notes = notes
        self._title = title
        self._field = field
        self._nobody = f"msauto-probe-{secrets.token_hex(8)}"

    async def run(self) -> None:
        """Ask everything. Raises ``MsautoError`` where the server or the database is not there, or lets nobody in."""
        folders = await self._folders()
        await self._not_found()
        with self._notes.trying(*ABOUT_CLIPS):
            sample = await self._sample(folders)
            if sample is not None:
                await ask_about_clips(self._client, self._database, sample, self._notes, self._field)
        await self._channels()
        for key, why in _NOT_BY_READING.items():
            self._notes.miss(key, why)

    # The database, and what is not there -----------------------------------------------------------------------

    async def _folders(self) -> tuple[Folder, ...]:
        request = requests.get_listing(self._database, format="folderlist")
        reply = await ask(self._client, request)
        if how_not_found(reply):
            raise MsautoError(
                f"server {self._client.spec.name} has no media database {self._database!r}",
                remedy="--database NAME; `msauto show databases` lists them",
            )
        try:
            return (await self._client.list_folders(self._database)).folders
        except ServerError as error:
            self._notes.see("format=folderlist", "no", f"{show_request(request)}: {error.message}")
            return (await self._client.list(self._database)).folders

    async def _not_found(self) -> None:
        paths = {
            "asset": asset_path(self._database, Address(self._nobody)),
            "folder": folder_path(self._database, (self._nobody,)),
            "channel": channel_path(self._nobody),
        }
        ways: dict[str, str] = {}
        told: list[str] = []
        for what, path in paths.items():
            reply = await ask(self._client, Request("GET", path))
            ways[what] = how_not_found(reply)
            told.append(f"an unknown {what}: {told_of(reply)}")
        evidence = "; ".join(told)
        if not ways["asset"]:
            self._notes.miss("not_found", f"no way of telling «not found» that msauto knows: {evidence}")
            return
        known = {way for way in (ways["asset"], ways["folder"]) if way}
        value = known.pop() if len(known) == 1 else "both"
        self._notes.learn("not_found", "auto" if value == "both" else value, evidence)

    # Known clips -----------------------------------------------------------------------------------------------

    async def _sample(self, folders: Sequence[Folder]) -> ClipSample | None:
        if self._title is not None:
            asset = await self._client.asset(self._database, self._title)
            return ClipSample(self._title, asset.folder, await self._beside(asset.folder))
        found: ClipSample | None = None
        others: list[str] = []
        for folder in [*sorted(folders, key=len, reverse=True)[:_FOLDERS], ()]:
            if not folder and found is not None:
                break  # the root may be large, and is not needed
            entries = await self._beside(folder)
            titles = [entry.title for entry in entries if entry.title]
            others += titles[:1]
            if titles and found is None:
                found = ClipSample(_plainest(titles), folder, entries)
        if found is not None:
            return replace(found, others=tuple(others))
        for name in ABOUT_CLIPS:
            self._notes.miss(name, "no clip was found to ask for: name one with --title")
        return None

    async def _beside(self, folder: Folder | None) -> tuple[Entry, ...]:
        if folder is None:
            return ()
        listing = await self._client.list(self._database, folder)
        return tuple(entry for entry in listing.entries if entry.folder == folder)

    # Channels --------------------------------------------------------------------------------------------------

    async def _channels(self) -> None:
        with self._notes.trying("RSS shape", "rss_guid"):
            names = await self._client.channels()
            guids: list[str] = []
            for name in names[:_CHANNELS]:
                guids += await self._channel(name)
            if not guids:
                self._notes.miss("rss_guid", "no channel with an item was found")
                return
            shown = ", ".join(repr(guid) for guid in guids[:4])
            value = guess_guids(guids)
            if value:
                self._notes.learn("rss_guid", value, f"guids such as {shown}")
            else:
                self._notes.miss("rss_guid", f"the items' own, their files' stems, or made by the server: {shown}")

    async def _channel(self, name: str) -> list[str]:
        request = requests.get_channel(name)
        reply = await ask(self._client, request)
        channel = await self._client.channel(name)
        self._notes.see("RSS shape", describe_channel(reply), show_request(request))
        return [item.guid for item in channel.items]


_NOT_BY_READING: Final = {
    "list_separator": "reading does not show it: --scratch TITLE with --xmp-field NAME tries it",
    "segment_update": "reading does not show it: --scratch TITLE tries it",
    "marker_update": "reading does not show it: --scratch TITLE tries it",
    "position_origin": "reading does not show it: --scratch TITLE tries it",
    "request_line": "not asked for: --scratch TITLE asks with growing lines",
    "link_title": "only making a link shows it: --scratch TITLE with --links FOLDER, where links can be removed",
    "COPYLINK twice": "only making a link shows it: --scratch TITLE with --links FOLDER, where links can be removed",
    "folder_missing": "trying would make a folder, which the interface cannot remove",
    "link_delete": "trying could delete the clip instead of its link",
    "rss_update": "trying would change a channel that is on air",
    "rss_body": "trying would change a channel that is on air",
}


def _plainest(titles: Sequence[str]) -> str:
    """Return a title without a colon, the shortest such."""
    return min(titles, key=lambda title: (":" in title, len(title)))
