"""A trial on a channel: one item is put, looked at, and removed (dialect ``rss_guid``).

The item has a name that occurs nowhere else. Its guid is not the name of its file, so that the channel shows which of
the two it takes.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from msauto.concurrency import finish
from msauto.errors import InDoubtError, RejectedError, ServerError
from msauto.model import requests
from msauto.model.live import RssItem
from msauto.model.ports import Clock
from msauto.model.server import ServerSpec
from msauto.probe.observations import ProbeNotes, ProbeResult, ReadOnlyProbe
from msauto.probe.probe import PAUSES, SETTLING, miss_the_rest
from msauto.server.client import AsyncMediaServer

_ROUNDS: Final = 3


async def probe_by_item(
    spec: ServerSpec, database: str, channel: str, *, clock: Clock, report: Callable[[str], None]
) -> ProbeResult:
    """Read as ``probe`` does, then put one item into a channel, and remove it; ``left`` names it if that fails.

    Raises ``NotFoundError`` if the server has no such channel.
    """
    async with AsyncMediaServer(spec) as client:
        notes = ProbeNotes(client.hide)
        await client.channel(channel)
        await ReadOnlyProbe(client, database, notes, title=None, field=None).run()
        left = await _ScratchItem(client, channel, notes, clock, report).run()
    miss_the_rest(notes)
    return ProbeResult(spec.name, database, tuple(notes.found), tuple(notes.missed), left)


@dataclass(slots=True)
class _ScratchItem:
    """The item of a trial; ``report`` prints a line at once. ``sent``: the server may have it."""

    client: AsyncMediaServer
    channel: str
    notes: ProbeNotes
    clock: Clock
    report: Callable[[str], None]
    token: str = field(default_factory=lambda: f"msauto-probe-{secrets.token_hex(6)}")
    sent: bool = False
    shown: bool = False

    async def run(self) -> tuple[str, ...]:
        """Put the item, note what the channel shows, and remove it in any case; return what is left."""
        try:
            with self.notes.trying("rss_guid"):
                await self._put()
        except ServerError as error:
            self.report(f"The trial ends here: {error}")
        except BaseException:  # Ctrl-C as well
            self.report(f"Stopped. Removing the item {self.token}")
            for words in await self._remove_anyway():
                self.report(f"Left in {self.channel!r}: {words}")
            raise
        return await self._remove_anyway()

    async def _put(self) -> None:
        file, guid = f"{self.token}.xml", f"{self.token}-guid"
        document = requests.item_document({"title": self.token, "description": "A trial of msauto", "guid": guid})
        self.sent = True
        await self.client.send(requests.put_rss(self.channel, file, document))
        mine = await self._look(bool)
        if not mine:
            self.notes.miss("a new item was not shown", "rss_guid")
            return
        shown = mine[0].guid
        value = {guid: "item", file: "file", self.token: "stem"}.get(shown)
        evidence = f"PUT of the file {file} with the guid {guid}: shown as {shown!r}"
        if value is None:
            self.notes.miss(f"{evidence}, which no value describes", "rss_guid")
        else:
            self.notes.learn("rss_guid", value, evidence)
        if "<item>" in f"{mine[0].title}{mine[0].description}":
            self.notes.learn("rss_body", "text", "an item document is shown as a text")

    async def _mine(self) -> Sequence[RssItem]:
        items = (await self.client.channel(self.channel)).items
        return [item for item in items if any(self.token in text for text in (item.guid, *item.fields.values()))]

    async def _look(self, is_so: Callable[[Sequence[RssItem]], bool]) -> Sequence[RssItem]:
        """Read our items until something is so, for a limited time: some servers show a change late."""
        for pause in (*PAUSES, 0.0):
            mine = await self._mine()
            self.shown = self.shown or bool(mine)
            if is_so(mine):
                break
            await self.clock.sleep(pause)
        return mine

    async def _remove_anyway(self) -> tuple[str, ...]:
        """Remove the item. A first interruption only prints a message; a second one stops."""
        if not self.sent:
            return ()
        left, stopped = await finish(
            self._remove(), lambda: self.report(f"Still removing {self.token}. Stopping once more leaves it there")
        )
        if stopped:
            raise asyncio.CancelledError
        return left

    async def _remove(self) -> tuple[str, ...]:
        for _ in range(_ROUNDS):
            try:
                mine = await self._mine() if self.shown else await self._look(bool)
                others = [item.guid for item in (await self.client.channel(self.channel)).items if item not in mine]
                for guid in {item.guid for item in mine if item.guid and item.guid not in others}:
                    with suppress(RejectedError):  # what remains is reported
                        await self.client.delete_rss(self.channel, guid)
                mine = await self._look(lambda items: not items)
            except InDoubtError:
                await self.clock.sleep(SETTLING)
                continue
            if not mine:
                break
        else:
            return (f"an item titled {self.token}",)
        if not self.shown:
            self.report(f"The server has not shown the item: look once more, later, for one titled {self.token}")
        return ()
