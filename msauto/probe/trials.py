"""The trials beyond segments and markers: list separators, links, long request lines."""

from __future__ import annotations

from functools import partial
from operator import eq, ne
from typing import Final

from msauto.errors import InDoubtError, NotSentError, RejectedError
from msauto.interface import requests
from msauto.interface.address import asset_path, query
from msauto.interface.dialect import Dialect
from msauto.interface.requests import request_line_length
from msauto.model.live import Entry, show_folder
from msauto.model.plan import Address, Request
from msauto.probe.scratch import LONGEST_LINE, ROUNDS, ScratchAsset, send_anyhow
from msauto.server.parsers.answers import RawAnswer
from msauto.server.parsers.user_fields import parse_xmp

_SEPARATORS: Final = (",", ";", "|")
_FIRST_LINE: Final = 1000
_GRAIN: Final = 64
"""The longest line is told to so many bytes."""

_TRIES: Final = 2
_BREATH: Final = 0.2  # seconds in which the end of a kept connection arrives

# XMP ------------------------------------------------------------------------------------------------------------


async def try_separators(bench: ScratchAsset) -> None:
    """Which separator makes several values of one text (dialect ``list_separator``)?"""
    name = bench.trial.xmp_field
    if name is None:
        bench.notes.miss("list_separator", "no field to try it on: --xmp-field NAME")
        return
    before = await _values(bench, name)
    if before is None or len(before) > 1 or any(sign in value for value in before for sign in _SEPARATORS):
        why = "cannot be read" if before is None else f"holds {before!r}, which could not be put back for certain"
        bench.notes.miss("list_separator", f"the field {name} {why}: name one that holds no list")
        return
    old = before[0] if before else ""
    bench.afterwards.append(lambda: _restore_field(bench, name, old))
    shown: list[str] = []
    live: tuple[str, ...] | None = before
    for sign in _SEPARATORS:
        written = live
        await bench.write(_write(bench, name, f"one{sign}two"), "xmp", f"values of {name} instead of {old!r}")
        live = await bench.look("xmp", lambda: _values(bench, name), partial(ne, written))
        shown.append(f"one{sign}two is shown as {list(live or ())}")
        if live == ("one", "two"):
            bench.notes.learn("list_separator", sign, shown[-1])
            return
    bench.notes.miss("list_separator", "; ".join(shown))


async def _values(bench: ScratchAsset, name: str) -> tuple[str, ...] | None:
    """Return the values as the server tells them apart; ``None`` where that cannot be read."""

    def parse(reply: RawAnswer) -> tuple[str, ...] | None:
        fields = parse_xmp(reply.data, "", reply.charset, asked=name)
        return None if fields is None else fields.get(name, ())

    try:
        return await bench.client.read(requests.get_user_fields(bench.path, name), parse)
    except RejectedError:
        return None


def _write(bench: ScratchAsset, name: str, value: str) -> Request:
    return requests.command(bench.path, "SETUSERFIELDS", [(name, value)])


async def _restore_field(bench: ScratchAsset, name: str, old: str) -> tuple[str, ...]:
    desired = (old,) if old else ()
    if not old and "xmp" in bench.made:
        bench.tell(f"The field {name} had no value; if it was not there at all, it stays, empty: nothing takes it away")
    for _ in range(ROUNDS):
        if await _values(bench, name) == desired:
            return ()
        await send_anyhow(bench, _write(bench, name, old))
        bench.unseen.add("xmp")
        await bench.look("xmp", lambda: _values(bench, name), partial(eq, desired))
    live = await _values(bench, name)
    return () if live == desired else (f"the field {name} is {list(live or ())} instead of {list(desired)}",)


# Links ----------------------------------------------------------------------------------------------------------


async def try_links(bench: ScratchAsset) -> None:
    r"""Does COPYLINK twice make a twin, and is its title written with the backslash rule (``link_title``)?"""
    folder = bench.trial.links
    names = ("COPYLINK twice", "link_title")
    if folder is None or not bench.client.spec.dialect.removes_links:
        why = "no folder to try it in: --links FOLDER" if folder is None else "`link_delete` is not `by_title`"
        for name in names:
            bench.notes.miss(name, f"{why}; a link that cannot be removed is not made")
        return
    there = await bench.client.list(bench.database, folder)
    if any(bench.token in entry.title for entry in there.entries):
        return
    bench.afterwards.append(lambda: _remove_links(bench))
    title = f"{bench.token} \\\\ link"
    copy = requests.copy_link(bench.path, title, folder, Dialect())
    words = f"links titled {bench.token} in {show_folder(folder)}"
    await bench.write(copy, "links", words)
    first = await bench.look("links", lambda: _links(bench), bool)
    if len(first) != 1:
        for name in names:
            bench.notes.miss(name, "a new link was not shown")
        return
    value = "plain" if first[0].title == title else "escaped"
    bench.notes.learn("link_title", value, f"{title!r} was sent, {first[0].title!r} is shown")
    accepted = await bench.write(copy, "links", words)
    second = len(await bench.look("links", lambda: _links(bench), lambda links: len(links) > 1))
    bench.unseen.discard("links")  # a server may well take it and make no twin
    seen = "a twin" if second > 1 else "the same link" if accepted else "refused"
    bench.notes.see("COPYLINK twice", seen, f"the same title into the same folder: {second} shown")


async def _links(bench: ScratchAsset) -> list[Entry]:
    listing = await bench.client.list(bench.database, bench.trial.links or ())
    return [entry for entry in listing.entries if entry.title.startswith(bench.token)]


async def _remove_links(bench: ScratchAsset) -> tuple[str, ...]:
    for _ in range(ROUNDS):
        links = await _links(bench)
        if not links:
            return ()
        await bench.read()  # the clip must still be there: a DELETE that took it instead is not sent again
        await send_anyhow(bench, requests.delete_asset(asset_path(bench.database, Address(links[0].title))))
        bench.unseen.add("links")
        await bench.look("links", lambda: _links(bench), partial(_fewer, len(links)))
    folder = show_folder(bench.trial.links or ())
    return tuple(f"the link {entry.title!r} (link_id {entry.link_id}) in {folder}" for entry in await _links(bench))


def _fewer(before: int, links: list[Entry]) -> bool:
    return len(links) < before


# Long lines -----------------------------------------------------------------------------------------------------


async def try_lines(bench: ScratchAsset) -> None:
    """How long may a request line be? Asked with reads of growing length (``request_line``)."""
    longest, refused = 0, 0
    length = _FIRST_LINE
    while length <= LONGEST_LINE and not refused:
        longest, refused = (length, 0) if await _takes(bench, length) else (longest, length)
        length *= 2
    if not longest:
        bench.notes.miss("request_line", f"not even a line of {_FIRST_LINE} bytes was answered")
        return
    while refused and refused - longest > _GRAIN:
        middle = (longest + refused) // 2
        longest, refused = (middle, refused) if await _takes(bench, middle) else (longest, middle)
    beyond = f"{refused} were not" if refused else "longer ones were not tried"
    bench.notes.limit("request_line", longest, f"a line of {longest} bytes was answered, {beyond}")


async def _takes(bench: ScratchAsset, length: int) -> bool:
    """Tell whether a read of this length is answered as a short one is; one parameter more changes nothing.

    A connection that breaks once says nothing: servers let go of kept ones without a word.
    """
    bare = f"{bench.path}{query([('msauto', '')])}"
    request = Request("GET", bare + "x" * (length - request_line_length(Request("GET", bare))))
    for _ in range(_TRIES):
        try:
            return (await bench.client.ask(request)).status < 300
        except (InDoubtError, NotSentError):
            await _still_there(bench)
    return False


async def _still_there(bench: ScratchAsset) -> None:
    await bench.client.read(Request("GET", bench.path), lambda reply: reply)
    await bench.clock.sleep(_BREATH)
