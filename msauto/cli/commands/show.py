"""``msauto show``: what a server holds, as a table or as JSON; reads only."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import click
from msgspec import structs

from msauto.cli.flags import Flags, require_text_or_json, shared_flags
from msauto.cli.interruptible import run_async
from msauto.cli.output import colour_on, give
from msauto.errors import MsautoError, NotFoundError
from msauto.interface.requests import get_proxy
from msauto.model.identity import same_text
from msauto.model.live import Asset, Entry, MamAsset, RssChannel, Xmp, show_folder
from msauto.model.plan import Address
from msauto.model.timecode import TimecodeError, rate_of, show_rate, show_timecode
from msauto.playbook.inventory.servers import NamedServer, named_servers
from msauto.report.json import dump
from msauto.report.tables import render_table
from msauto.server.client import AsyncMediaServer
from msauto.server.parsers.links import count_clips

Rows = list[list[str]]


_IS_IT_ONE = "is it a media server? look at the address, and at the port: 7901 where none is given"


@dataclass(frozen=True, slots=True)
class ShownTable:
    """One answer: tables (title, headers, rows) for a person, and the same as a JSON value."""

    tables: tuple[tuple[str, Sequence[str], Rows], ...]
    json: Any


@click.group("show", short_help="Show what a server holds.", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Show what a server holds: databases, folders, assets, one asset's facts, channels."""


def _database(server: NamedServer, given: str | None) -> str:
    name = given or server.database
    if name is None:
        raise MsautoError(
            f"no media database is named for {server.spec.name}",
            remedy="--database NAME; msauto show databases lists them",
        )
    return name


@contextmanager
def _known(server: NamedServer, what: str, remedy: str) -> Iterator[None]:
    """Say what is not there in a person's words: the answer itself knows only a path."""
    try:
        yield
    except NotFoundError as error:
        raise MsautoError(f"{server.spec.name} {what}: {error.message}", remedy=remedy) from error


def _known_folder(server: NamedServer, database: str, folder: str) -> AbstractContextManager[None]:
    if not folder:
        return _known(server, f"has no media database {database!r}", "msauto show databases lists what there is")
    lists = "msauto show folders and msauto show databases list what there is"
    return _known(server, f"has no folder {folder!r} in {database}, or no such database", lists)


async def _each(
    flags: Flags, read: Callable[[AsyncMediaServer, NamedServer], Awaitable[ShownTable]]
) -> dict[str, ShownTable]:
    shown = {}
    for server in named_servers(flags.options):
        async with AsyncMediaServer(server.spec, read_only=True) as client:
            shown[server.spec.name] = await read(client, server)
    return shown


def _show(flags: Flags, read: Callable[[AsyncMediaServer, NamedServer], Awaitable[ShownTable]]) -> None:
    require_text_or_json(flags)
    shown = run_async(_each(flags, read))
    if flags.format == "json":
        give(dump({server: answer.json for server, answer in shown.items()}))
        return
    colour = colour_on(sys.stdout, no_color=flags.no_color)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for server, answer in shown.items():
        if len(shown) > 1:
            give(f"{server}:")
        for title, headers, rows in answer.tables:
            if title:
                give(f"\n{title}")
            give(render_table(headers, rows, colour=colour, width=width))


_database_option = click.option("--database", "-d", metavar="NAME", help="Default: the host variable `database`.")


@command.command("databases")
@shared_flags
def databases(*, flags: Flags) -> None:
    """List the media databases. The server describes all that it holds, so this may take long."""

    async def read(client: AsyncMediaServer, server: NamedServer) -> ShownTable:
        with _known(server, "has no list of databases", _IS_IT_ONE):
            found = await client.databases()
        counts = [None if one.listing is None else count_clips(one.listing.entries) for one in found]
        rows = [[one.name, "" if n is None else str(n)] for one, n in zip(found, counts, strict=True)]
        values = [{"name": one.name, "assets": n} for one, n in zip(found, counts, strict=True)]
        return ShownTable((("", ("database", "assets"), rows),), values)

    _show(flags, read)


@command.command("folders")
@click.argument("folder", default="")
@_database_option
@shared_flags
def folders(*, flags: Flags, folder: str, database: str | None) -> None:
    """List the folders of a database, or below FOLDER."""

    async def read(client: AsyncMediaServer, server: NamedServer) -> ShownTable:
        name = _database(server, database)
        with _known_folder(server, name, folder):
            listing = await client.list_folders(name, folder)
        names = [show_folder(path) for path in sorted(listing.folders)]  # as a tree is read
        return ShownTable((("", ("folder",), [[name] for name in names]),), names)

    _show(flags, read)


@command.command("assets")
@click.argument("folder", default="")
@_database_option
@click.option("--mimetype", metavar="NAME", help="Video, Audio, AudioVideo, StillImage, Graphics, ...")
@click.option("--created-after", metavar="TIME", help="An ISO date or date-time, the server's own time.")
@click.option("--mam", is_flag=True, help="The server's plain list (format=mam): with the paths of their files.")
@shared_flags
def assets(
    *, flags: Flags, folder: str, database: str | None, mimetype: str | None, created_after: str | None, mam: bool
) -> None:
    """List the assets of a database, or of FOLDER and below."""

    async def read(client: AsyncMediaServer, server: NamedServer) -> ShownTable:
        name = _database(server, database)
        with _known_folder(server, name, folder):
            if mam:
                return _mam(await client.list_mam(name, folder, created_after=created_after, mimetype=mimetype))
            listing = await client.list(name, folder, created_after=created_after, mimetype=mimetype)
        headers = ("title", "folder", "length", "rate", "created")
        if flags.format == "json":  # one of the two forms only: there may be 300,000
            return ShownTable((), [_facts(entry) for entry in listing.entries])
        return ShownTable((("", headers, [_entry(entry) for entry in listing.entries]),), None)

    _show(flags, read)


@command.command("asset")
@click.argument("title")
@_database_option
@click.option("--xmp/--no-xmp", default=True, help="Whether XMP fields are read as well.")
@click.option("--view", metavar="WPN", help="Also where a browser plays its web proxy of this profile, WP1 to WP8.")
@shared_flags
def asset(*, flags: Flags, title: str, database: str | None, xmp: bool, view: str | None) -> None:
    """Show everything about the asset TITLE (or id:NS:ID)."""

    async def read(client: AsyncMediaServer, server: NamedServer) -> ShownTable:
        name = _database(server, database)
        address = _address(title)
        with _known(server, f"has no asset {title!r} in {name}", "msauto show assets lists what there is"):
            found = await client.asset(name, address)
        _check_title(server, address, found)
        url = (
            None
            if view is None
            else f"{server.spec.url}{get_proxy(client.path(name, address), view, preview=True).path}"
        )
        return _asset(found, await client.xmp(name, address) if xmp else None, url)

    _show(flags, read)


@command.command("channels")
@shared_flags
def channels(*, flags: Flags) -> None:
    """List the RSS channels."""

    async def read(client: AsyncMediaServer, server: NamedServer) -> ShownTable:
        with _known(server, "has no list of channels", _IS_IT_ONE):
            names = list(await client.channels())
        return ShownTable((("", ("channel",), [[name] for name in names]),), names)

    _show(flags, read)


@command.command("channel")
@click.argument("name")
@shared_flags
def channel(*, flags: Flags, name: str) -> None:
    """Show the items of the RSS channel NAME."""

    async def read(client: AsyncMediaServer, server: NamedServer) -> ShownTable:
        with _known(server, f"has no channel {name!r}", "msauto show channels lists what there is"):
            return _channel(await client.channel(name))

    _show(flags, read)


def _check_title(server: NamedServer, address: Address, found: Asset) -> None:
    """Raise where the server shows another clip than the one asked for: nobody should work from that."""
    if address.namespace or found.title is None or same_text(found.title, address.name):
        return
    raise MsautoError(
        f"server {server.spec.name}: asked for {address.name!r}, it answered with {found.title!r}: another clip",
        remedy="write the title as the server does, letter by letter",
    )


def _address(title: str) -> Address:
    if not title.startswith("id:"):
        return Address(title)
    namespace, colon, identifier = title.removeprefix("id:").partition(":")
    if not colon:
        raise MsautoError(f"{title!r} names no key field", remedy="write id:NS:ID, such as id:handle:4711")
    return Address(identifier, namespace)


def _facts(entry: Entry) -> dict[str, Any]:
    own = {"title": entry.title, "folder": show_folder(entry.folder)}
    return own | {"link_id": entry.link_id, "finalized": entry.finalized} | dict(entry.attributes.items())


def _entry(entry: Entry) -> list[str]:
    length, rate = _length(entry.attributes.get("frames"), entry.attributes.get("frame_time"))
    created = entry.attributes.get("create_time", "")
    return [entry.title, show_folder(entry.folder), length, rate, created]


def _length(frames: str | None, frame_time: str | None) -> tuple[str, str]:
    try:
        rate = rate_of(frame_time or "")
        return show_timecode(int(frames or ""), rate), show_rate(rate)
    except (TimecodeError, ValueError):
        return frames or "", ""


def _at(frames: int, rate: Fraction | None) -> str:
    return f"{frames}" if rate is None else f"{show_timecode(frames, rate)} ({frames})"


def _mam(found: Sequence[MamAsset]) -> ShownTable:
    rows = [[one.title, show_folder(one.folder), one.length, one.hires, one.proxy or ""] for one in found]
    headers = ("title", "folder", "length", "hires", "proxy")
    return ShownTable(
        (("", headers, rows),), [structs.asdict(one) | {"folder": show_folder(one.folder)} for one in found]
    )


def _asset(found: Asset, xmp: Xmp | None, view: str | None) -> ShownTable:
    facts = {
        "title": found.title,
        "folder": None if found.folder is None else show_folder(found.folder),
        "hires": found.hires,
        "proxy": found.proxy,
        "archive": found.archive,
        **({} if view is None else {"view": view}),
        "link_id": found.link_id,
        "finalized": found.finalized,
        **{name: text for name, text in found.attributes.items() if name != "title"},
    }
    rows = [[name, "" if value is None else str(value)] for name, value in facts.items()]
    tables: list[tuple[str, Sequence[str], Rows]] = [("", ("fact", "value"), rows), *_lists(found, xmp)]
    parts = {
        "segments": [
            {**structs.asdict(segment), "titles": list(filter(None, segment.titles))} for segment in found.segments
        ],
        "markers": [{"uid": m.uid, "frame": m.frame, **m.fields} for m in found.markers],
        "parameters": list(found.parameters),
        "xmp": None if xmp is None else {name: list(values) for name, values in xmp.items()},
    }
    return ShownTable(tuple(tables), facts | parts)


def _lists(found: Asset, xmp: Xmp | None) -> list[tuple[str, Sequence[str], Rows]]:
    rate = found.rate
    segments = [
        [str(s.number), _at(s.start, rate), _at(s.duration, rate), " / ".join(s.titles) or s.name or ""]
        for s in found.segments
    ]
    markers = [
        [str(m.uid), _at(m.frame, rate), m.track, m.fields.get("title", ""), m.fields.get("comment", "")]
        for m in found.markers
    ]
    fields = [[name, ", ".join(values)] for name, values in (xmp or {}).items()]
    tables: list[tuple[str, Sequence[str], Rows]] = [
        ("Segments", ("number", "start", "duration", "title"), segments),
        ("Markers", ("uid", "position", "track", "title", "comment"), markers),
        ("XMP fields", ("field", "values"), fields),
        ("Parameters", ("name",), [[name] for name in found.parameters]),
    ]
    return [table for table in tables if table[2]]


def _channel(found: RssChannel) -> ShownTable:
    rows = [[item.guid, item.title or "", item.description or "", item.pub_date or ""] for item in found.items]
    values = [structs.asdict(item) for item in found.items]
    return ShownTable(
        (("", ("guid", "title", "description", "published"), rows),), {"name": found.name, "items": values}
    )
