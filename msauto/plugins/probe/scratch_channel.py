"""A trial on a channel: one item is put, looked at, and removed (dialect ``rss_guid``).

The item has a name that occurs nowhere else. Its guid is not the name of its file, so that the channel shows which of
the two it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from msauto.model import requests
from msauto.model.live import RssItem
from msauto.model.plan import Request
from msauto.model.ports import Clock
from msauto.model.server import ServerSpec
from msauto.plugins.probe.observations import ProbeNotes, ProbeResult, ReadOnlyProbe
from msauto.plugins.probe.probe import Scratch, TrialWords, result_of, take_back, try_all
from msauto.server.client import AsyncMediaServer

_WORDS = TrialWords(
    "Stopped. Removing the item {0.token}",
    "Still removing {0.token}. Stopping once more leaves it there",
    "Left in {0.name!r}",
    "The server has not shown the item: look once more, later, for one titled {0.token}",
)


async def probe_by_item(
    spec: ServerSpec, database: str, channel: str, *, clock: Clock, report: Callable[[str], None]
) -> ProbeResult:
    """Read as ``probe`` does, then put one item into a channel, and remove it; ``left`` names it if that fails.

    Raises ``NotFoundError`` if the server has no such channel.
    """
    async with AsyncMediaServer(spec) as client:
        notes = ProbeNotes(client.hide)
        bench = Scratch(
            client=client, name=channel, notes=notes, clock=clock, report=report, words=_WORDS
        )
        await client.channel(channel)
        await ReadOnlyProbe(client, database, notes, title=None, field=None).run()
        left = await try_all(bench, {_try_item: (("rss_guid",), "")})
    return result_of(spec, database, notes, left)


async def _try_item(bench: Scratch) -> None:
    file, guid = f"{bench.token}.xml", f"{bench.token}-guid"
    document = requests.item_document(
        {"title": bench.token, "description": "A trial of msauto", "guid": guid}
    )
    bench.made["item"] = f"an item titled {bench.token}"
    bench.unseen.add("item")
    bench.undoing.append(partial(_remove, bench))
    await bench.client.send(requests.put_rss(bench.name, file, document))
    ours = _ours(bench, await _items(bench))
    if not ours:
        bench.notes.miss("a new item was not shown", "rss_guid")
        return
    item = ours[0]
    value = {guid: "item", file: "file", bench.token: "stem"}.get(item.guid)
    evidence = f"PUT of the file {file} with the guid {guid}: shown as {item.guid!r}"
    if value is None:
        bench.notes.miss(f"{evidence}, which no value describes", "rss_guid")
    else:
        bench.notes.learn("rss_guid", value, evidence)
    if "<item>" in f"{item.title}{item.description}":
        bench.notes.learn("rss_body", "text", "an item document is shown as a text")


async def _items(bench: Scratch) -> Sequence[RssItem]:
    """Read all items of the channel, until it shows ours."""

    async def read() -> Sequence[RssItem]:
        return (await bench.client.channel(bench.name)).items

    return await bench.look("item", read, lambda items: bool(_ours(bench, items)))


def _ours(bench: Scratch, items: Sequence[RssItem]) -> list[RssItem]:
    ours = []
    for item in items:
        texts = (item.guid, *item.fields.values())
        if any(bench.token in text for text in texts):
            ours.append(item)
    return ours


async def _remove(bench: Scratch) -> tuple[str, ...]:
    def undoing(items: Sequence[RssItem]) -> list[Request]:
        ours = _ours(bench, items)
        guids = {item.guid for item in ours}
        guids -= {"", *(item.guid for item in items if item not in ours)}
        return [requests.delete_rss(bench.name, guid) for guid in guids]

    live = await take_back(bench, partial(_items, bench), undoing)
    return (bench.made["item"],) if _ours(bench, live) else ()
