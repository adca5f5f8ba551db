"""``msauto show``: live state as a table, or as JSON, YAML or CSV; reads only."""

from __future__ import annotations

import functools
import json
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from fractions import Fraction
from typing import Any, Final

import click
from msgspec import Struct, structs

from msauto.api.inputs import require_database
from msauto.aspects.comparison import text_of
from msauto.cli.commands.completion import keep_titles
from msauto.cli.flags import LIVE, Decorator, Flags, flag, option, shared_flags_of, with_options
from msauto.cli.help import HelpGroup
from msauto.cli.interrupts import run_async
from msauto.cli.output import print_message, print_result, print_table
from msauto.documents.csv_cells import csv_line
from msauto.documents.writer import verbatim, yaml_lines
from msauto.errors import MsautoError, NotFoundError, described
from msauto.model.clip_entries import count_clips
from msauto.model.facts import Facts
from msauto.model.live import Asset, Entry, Xmp, show_folder, typed
from msauto.model.plan import Address
from msauto.model.ports import NamedKind
from msauto.model.timecode import DROP_FRAME_RATES, show_rate, show_timecode
from msauto.planning.similar_titles import SimilarTitles, not_found
from msauto.playbook.hosts import NamedServer, named_servers
from msauto.report.json import dump
from msauto.server.client import AsyncMediaServer
from msauto.server.reader import ServerReader

Rows = list[list[str]]
_NEVER_CUT = ("length", "rate", "created", "start", "duration", "position", "published")
"""Columns of every table that hold numbers and times."""


class ShownTable(Struct, frozen=True):
    """Tables (title, headers, rows), and the same as a JSON value, and as records for CSV."""

    tables: tuple[tuple[str, Sequence[str], Rows], ...]
    json: Any
    records: Sequence[Mapping[str, Any]]


_data_flags = shared_flags_of("text", "json", "yaml", "csv", uses=LIVE)


def _table(headers: Sequence[str], rows: Rows, records: Sequence[Mapping[str, Any]]) -> ShownTable:
    """Return one table, and its rows as mappings."""
    return ShownTable((("", headers, rows),), records, records)


def _column(header: str, names: Sequence[str]) -> ShownTable:
    """Return a table of one column."""
    rows = [[name] for name in names]
    records = [{header: name} for name in names]
    return ShownTable((("", (header,), rows),), names, records)


@click.group("show", cls=HelpGroup)
def command() -> None:
    """Show live state: databases, folders, assets, the facts of one asset, channels."""


def _subcommand(
    *parameters: Decorator,
) -> Callable[[Callable[..., Awaitable[ShownTable]]], click.Command]:
    """Register a function that reads one server as a sub-command of its name: it runs for each server."""

    def decorate(read: Callable[..., Awaitable[ShownTable]]) -> click.Command:
        @functools.wraps(read)
        def run(*, flags: Flags, in_folder: str = "", **own: Any) -> None:
            if in_folder and own["folder"]:
                raise click.UsageError("the folder is given twice\n  → give FOLDER or --folder")
            if in_folder:
                own["folder"] = in_folder

            async def read_all() -> dict[str, ShownTable]:
                answers = {}
                for server in named_servers(flags.inputs.resolving):
                    async with AsyncMediaServer(server.spec, read_only=True) as client:
                        try:
                            answers[server.spec.name] = await read(client, server, **own)
                        except MsautoError:
                            raise
                        except Exception as error:
                            raise described(error) from error
                return answers

            shown = run_async(read_all())
            if flags.format != "text":
                print_result(_render(flags.format, shown))
                return
            for server, answer in shown.items():
                if len(shown) > 1:
                    print_result(f"{server}:")
                for title, headers, rows in answer.tables:
                    if title:
                        print_result(f"\n{title}")
                    print_table(headers, rows, no_color=flags.no_color, whole=_NEVER_CUT)

        return command.command(read.__name__)(with_options(_data_flags(run), parameters))

    return decorate


def _render(form: str, shown: Mapping[str, ShownTable]) -> Iterable[str]:
    if form == "csv":
        records = []
        for server, answer in shown.items():
            for record in answer.records:
                records.append({"server": server, **record})
        return render_csv(records)
    documents = {server: answer.json for server, answer in shown.items()}
    return render_yaml(documents) if form == "yaml" else [dump(documents)]


@contextmanager
def _expect_list(server: NamedServer, of: str) -> Iterator[None]:
    """Name the list that is not found: the answer of the server names only a path."""
    try:
        yield
    except NotFoundError as error:
        raise MsautoError(
            f"{server.spec.name} has no list of {of}: {error.message}",
            remedy="check that the address is that of a media server, and the port (default 7901)",
        ) from error


@asynccontextmanager
async def _expect(
    client: AsyncMediaServer, server: NamedServer, kind: NamedKind, name: str, database: str = ""
) -> AsyncIterator[None]:
    """Name what is not found, and what is nearest to it, as a plan does."""
    try:
        yield
    except NotFoundError as error:
        raise await not_found(
            ServerReader(client), server.spec, kind, name, None, database
        ) from error


@_subcommand()
async def databases(client: AsyncMediaServer, server: NamedServer) -> ShownTable:
    """List the media databases. The server describes its whole content, so this may take long."""
    with _expect_list(server, "databases"):
        described = await client.databases()
    rows = []
    records = []
    for database in described:
        clips = None if database.listing is None else count_clips(database.listing.entries)
        rows.append([database.name, text_of(clips)])
        records.append({"name": database.name, "assets": clips})
    return _table(("database", "assets"), rows, records)


_IN_FOLDER: Final = (
    click.argument("folder", default=""),
    option("--folder FOLDER", "As the argument FOLDER.", "in_folder", default=""),
    flag("database"),
    option("--recursive", "Include what is below FOLDER."),
)


@_subcommand(*_IN_FOLDER)
async def folders(
    client: AsyncMediaServer,
    server: NamedServer,
    folder: str,
    database: str | None,
    recursive: bool,
) -> ShownTable:
    """List the folders of a database, or those in FOLDER."""
    name = require_database(server, database)
    async with _expect(client, server, "folder", folder, name):
        listing = await client.list_folders(name, folder, recursive=recursive or None)
    # In the order of a tree.
    return _column("folder", [show_folder(path) for path in sorted(listing.folders)])


@_subcommand(*_IN_FOLDER)
async def assets(
    client: AsyncMediaServer,
    server: NamedServer,
    folder: str,
    database: str | None,
    recursive: bool,
) -> ShownTable:
    """List the assets of a database, or those in FOLDER."""
    name = require_database(server, database)
    async with _expect(client, server, "folder", folder, name):
        listing = await client.list(name, folder, recursive=recursive or None)
    # Both forms of 300,000 entries would take too much memory; the form that is not shown stays empty.
    keep_titles(server.spec.url, name, (entry.title for entry in listing.entries))
    rows: Rows = []
    records: list[dict[str, Any]] = []
    if click.get_current_context().params["form"] == "text":
        rows = [_row(entry) for entry in listing.entries]
    else:
        records = [_facts(entry) for entry in listing.entries]
    return _table(("title", "folder", "length", "rate", "created"), rows, records)


@_subcommand(click.argument("title"), flag("database"))
async def asset(
    client: AsyncMediaServer, server: NamedServer, title: str, database: str | None
) -> ShownTable:
    """Show everything about the asset TITLE (or id:NS:ID)."""
    name = require_database(server, database)
    address = _address(title)
    reader = ServerReader(client)
    remedy = f"list them: {server.spec.command('show assets')}"
    clip = await reader.read_asset(name, address)
    if clip is None:
        if not await reader.has_database(name):
            raise await not_found(reader, server.spec, "database", name, None)
        if not address.namespace:
            remedy = await SimilarTitles().remedy(reader, name, title, remedy)
        raise MsautoError(f"{server.spec.name} has no asset {title!r} in {name}", remedy=remedy)
    for warning in clip.warnings:
        print_message(f"Warning: {warning}")
    fields = await client.xmp(name, address)
    return _asset(clip, fields)


@_subcommand()
async def channels(client: AsyncMediaServer, server: NamedServer) -> ShownTable:
    """List the RSS channels."""
    with _expect_list(server, "channels"):
        return _column("channel", list(await client.channels()))


@_subcommand(click.argument("name"))
async def channel(client: AsyncMediaServer, server: NamedServer, name: str) -> ShownTable:
    """Show the items of the RSS channel NAME."""
    async with _expect(client, server, "channel", name):
        rss = await client.channel(name)
    rows = []
    items = []
    for item in rss.items:
        texts = (item.guid, item.title, item.description, item.pub_date)
        rows.append([text or "" for text in texts])
        items.append(structs.asdict(item))
    shown = _table(("guid", "title", "description", "published"), rows, items)
    return structs.replace(shown, json={"name": rss.name, "items": items})


def _address(title: str) -> Address:
    if not title.startswith("id:"):
        return Address(title)
    namespace, colon, identifier = title.removeprefix("id:").partition(":")
    if not colon:
        raise MsautoError(
            f"{title!r} has no key field", remedy="write id:NS:ID, such as id:handle:4711"
        )
    return Address(identifier, namespace)


def _facts(entry: Entry) -> dict[str, Any]:
    own = {"title": entry.title, "folder": show_folder(entry.folder)}
    return own | {"link_id": entry.link_id, "finalized": entry.finalized} | _typed(entry.attributes)


def _typed(attributes: Mapping[str, str]) -> dict[str, Any]:
    """Return attributes as templates have them; times stay texts, as the server writes them."""
    values = {}
    for name, text in attributes.items():
        value = typed(name, text)
        values[name] = text if isinstance(value, datetime) else value
    return values


def _row(entry: Entry) -> list[str]:
    frames = entry.frames
    rate = entry.rate
    length = "" if frames is None else str(frames)
    shown_rate = ""
    if frames is not None and rate is not None:
        length = show_timecode(frames, rate, drop=rate in DROP_FRAME_RATES)
        shown_rate = show_rate(rate)
    return [
        entry.title,
        show_folder(entry.folder),
        length,
        shown_rate,
        entry.attributes.get("create_time", ""),
    ]


def _at(frames: int, rate: Fraction | None) -> str:
    if rate is None:
        return str(frames)
    return f"{show_timecode(frames, rate, drop=rate in DROP_FRAME_RATES)} ({frames})"


def _asset(clip: Asset, xmp: Xmp | None) -> ShownTable:
    attributes = _typed(clip.attributes)
    attributes.pop("title", None)
    facts = {
        "title": clip.title,
        "folder": None if clip.folder is None else show_folder(clip.folder),
        "hires": clip.hires,
        "proxy": clip.proxy,
        "archive": clip.archive,
        "link_id": clip.link_id,
        "finalized": clip.finalized,
        **attributes,
    }
    rows = [[name, text_of(value)] for name, value in facts.items()]
    fields = None if xmp is None else {name: list(values) for name, values in xmp.items()}
    shown = Facts(asset=clip)
    parts: dict[str, Any] = {
        name: shown.get(name) for name in ("segments", "markers", "parameters")
    }
    parts["xmp"] = fields
    tables = (("", ("fact", "value"), rows), *_lists(clip, fields or {}))
    return ShownTable(tables, facts | parts, list(_records(facts, parts)))


def _records(facts: Mapping[str, Any], parts: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield everything about an asset as rows of one table: part, item, attribute and value."""
    for name, value in facts.items():
        yield _record("fact", "", name, value)
    for part, key in (("segment", "number"), ("marker", "uid")):
        for item in parts[f"{part}s"]:
            for name, value in item.items():
                if name != key:
                    yield _record(part, item[key], name, value)
    for name in parts["parameters"]:
        yield _record("parameter", "", name, "")
    for name, values in (parts["xmp"] or {}).items():
        for number, value in enumerate(values, 1):
            yield _record("xmp", number, name, value)


def _record(part: str, item: Any, attribute: str, value: Any) -> dict[str, Any]:
    return {"part": part, "item": item, "attribute": attribute, "value": value}


def _lists(
    clip: Asset, xmp: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, Sequence[str], Rows]]:
    """Yield the lists of an asset that are not empty."""
    rate = clip.rate
    segments = []
    for segment in clip.segments:
        title = " / ".join(segment.titles) or segment.name or ""
        start, duration = _at(segment.start, rate), _at(segment.duration, rate)
        segments.append([str(segment.number), start, duration, title])
    markers = []
    for marker in clip.markers:
        texts = [marker.fields.get(name, "") for name in ("title", "comment")]
        markers.append([str(marker.uid), _at(marker.frame, rate), marker.track, *texts])
    if segments:
        yield "Segments", ("number", "start", "duration", "title"), segments
    if markers:
        yield "Markers", ("uid", "position", "track", "title", "comment"), markers
    if xmp:
        yield (
            "XMP fields",
            ("field", "values"),
            [[name, ", ".join(values)] for name, values in xmp.items()],
        )
    if clip.parameters:
        yield "Parameters", ("name",), [[name] for name in clip.parameters]


# YAML and CSV --------------------------------------------------------------------------------------------------


def render_yaml(value: object) -> Iterator[str]:
    """Yield JSON data as YAML, as exported playbooks are written; texts that look like templates stay as they are."""
    for line in yaml_lines(verbatim(json.loads(dump(value)))):
        yield f"{line}\n"


def render_csv(records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield records with a header line: their keys in the order in which they first appear.

    Lists and mappings are written as JSON.
    """
    names: dict[str, None] = {}
    for record in records:
        names |= dict.fromkeys(record)
    if names:
        yield csv_line(list(names))
    for record in records:
        yield csv_line([_cell(record.get(name)) for name in names])


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(json.loads(dump(value)), ensure_ascii=False)
