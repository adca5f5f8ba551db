"""``msauto export``: live state as playbooks that plan to nothing; reads only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import click

from msauto.cli.export_output import ExportedPlay, ExportOutput, FolderExport, StdoutExport
from msauto.cli.flags import Flags, shared_flags
from msauto.cli.interruptible import run_async
from msauto.cli.output import say
from msauto.errors import MsautoError
from msauto.model.live import Folder, parse_folder, show_folder
from msauto.model.snapshot import AssetSnapshot, ChannelSnapshot, ListedEntry, SkippedEntry
from msauto.playbook.export.playbook_writer import WriterOptions, play_lines, task_lines
from msauto.playbook.inventory.servers import NamedServer, named_servers
from msauto.server.client import AsyncMediaServer
from msauto.server.snapshots import Snapshots, channel_snapshot

Taken = AssetSnapshot | ChannelSnapshot | SkippedEntry


@dataclass(frozen=True, slots=True)
class ExportSelection:
    """What to export; nothing named is the whole database."""

    titles: tuple[str, ...]
    folders: tuple[str, ...]
    channels: tuple[str, ...]
    recursive: bool
    database: str | None
    links: bool

    @property
    def whole(self) -> bool:
        """Whether the whole database is asked for."""
        return not (self.titles or self.folders or self.channels)


@click.command("export", short_help="Write what a server holds as playbooks.")
@click.option("--title", "titles", multiple=True, metavar="TITLE", help="This asset; several.")
@click.option("--folder", "folders", multiple=True, metavar="FOLDER", help="The assets of this folder; several.")
@click.option("--recursive", is_flag=True, help="The folders below --folder as well.")
@click.option("--channel", "channels", multiple=True, metavar="NAME", help="This RSS channel; several.")
@click.option("--database", "-d", metavar="NAME", help="The media database; default: the host variable `database`.")
@click.option("--links/--no-links", default=True, help="Whether shortcuts are looked for, in a listing of everything.")
@click.option("--out", type=click.Path(file_okay=False), metavar="DIR", help="A file for each folder and channel.")
@click.option("--force", is_flag=True, help="Overwrite files that msauto did not export.")
@shared_flags
def command(
    *,
    flags: Flags,
    titles: tuple[str, ...],
    folders: tuple[str, ...],
    recursive: bool,
    channels: tuple[str, ...],
    database: str | None,
    links: bool,
    out: str | None,
    force: bool,
) -> int:
    """Write what a server holds as playbooks that plan to nothing: assets, folders, channels, or the whole database."""
    if flags.format != "text":
        raise MsautoError(f"an export is YAML, not {flags.format}", remedy="msauto show has --format json")
    asked = ExportSelection(titles, folders, channels, recursive, database, links)
    sink = FolderExport(Path(out), force=force) if out is not None else StdoutExport()
    export = _Exporter(flags, asked, sink)
    try:
        run_async(export.all_servers())
        sink.finish()
    except BaseException:
        sink.drop()
        raise
    return export.tell()


@dataclass(slots=True)
class _Exporter:
    """One run of ``export``: reads servers one after the other, and writes part after part."""

    flags: Flags
    asked: ExportSelection
    sink: ExportOutput
    assets: int = 0
    channels: int = 0
    warnings: list[str] = field(default_factory=list)
    broken: int = 0
    links: int = 0

    async def all_servers(self) -> None:
        servers = named_servers(self.flags.options)
        for server in servers:
            before = (server.spec.name,) if len(servers) > 1 else ()
            async with AsyncMediaServer(server.spec, read_only=True) as client:
                if self.asked.whole or self.asked.titles or self.asked.folders:
                    await self._assets(client, server, before)
                await self._channels(client, server, before)

    def tell(self) -> int:
        """Say what was exported, and what was not; return the exit code."""
        for warning in self.warnings:
            say(f"Warning: {warning}")
        sourced = [f"{self.assets} asset(s)"] if self.assets or not self.channels else []
        sourced += [f"{self.channels} channel(s)"] if self.channels else []
        files = f" in {len(self.sink.written)} file(s)" if isinstance(self.sink, FolderExport) else ""
        say(f"Exported {' and '.join(sourced)}{files}.")
        if self.links and not self.asked.whole:
            say(f"{self.links} link(s) met: a link is exported with its clip, where that lives.")
        return 1 if self.broken else 0

    # Assets ----------------------------------------------------------------------------------------------------

    async def _assets(self, client: AsyncMediaServer, server: NamedServer, before: tuple[str, ...]) -> None:
        database = self.asked.database or server.database
        if database is None:
            raise MsautoError(f"no media database is named for {server.spec.name}", remedy="--database NAME")
        snapshots = Snapshots(client, database, links=self.asked.links, forks=self.flags.forks)
        found = await self._found(snapshots)
        folders = [(folder, list(group)) for folder, group in groupby(found, key=lambda each: each.folder)]
        parts = [_folder_part(before, database, folder) for folder, _ in folders]
        titled = ExportedPlay((*before, f"{database}@titles"), f"assets of {database}")
        self.sink.expect([titled, *parts] if self.asked.titles else parts)
        if self.asked.titles:
            titles = tuple(dict.fromkeys(self.asked.titles))
            await self._part(titled, server, database, snapshots.of_titles(titles))
        for part, (_, listed) in zip(parts, folders, strict=True):
            await self._part(part, server, database, snapshots.of_listed(listed))
        self._warn_of_xmp(server, snapshots)
        self._warn(database, before)

    async def _found(self, snapshots: Snapshots) -> Sequence[ListedEntry]:
        if self.asked.whole:
            return await snapshots.list((), recursive=True)
        found: set[ListedEntry] = set()
        for folder in self.asked.folders:
            found.update(await snapshots.list(parse_folder(folder), recursive=self.asked.recursive))
        return sorted(found, key=lambda each: (each.folder, each.title))

    def _warn_of_xmp(self, server: NamedServer, snapshots: Snapshots) -> None:
        """Tell of fields that may be there: GETUSERFIELDS without ``field`` is not shown (interface)."""
        if snapshots.xmp_hidden:
            self.warnings.append(f"{server.spec.name} did not show XMP fields: they are not exported")
        elif snapshots.xmp_silent and self.asked.whole:
            self.warnings.append(
                f"{server.spec.name} told of no XMP fields of any asset: if there are some, it tells only when asked "
                "for one by its name, and they are not exported"
            )

    def _warn(self, database: str, before: tuple[str, ...]) -> None:
        if self.asked.whole and isinstance(self.sink, FolderExport):
            for path in self.sink.stale((*before, database)):
                self.warnings.append(f"{path} is of an earlier export: its folder holds no assets any more")

    # Channels --------------------------------------------------------------------------------------------------

    async def _channels(self, client: AsyncMediaServer, server: NamedServer, before: tuple[str, ...]) -> None:
        names = tuple(dict.fromkeys(self.asked.channels))
        parts = [ExportedPlay((*before, "channels", name), f"the RSS channel {name}") for name in names]
        self.sink.expect(parts)
        for part, name in zip(parts, names, strict=True):
            await self._part(part, server, None, _one(client, name))

    # Parts -----------------------------------------------------------------------------------------------------

    async def _part(
        self, part: ExportedPlay, server: NamedServer, database: str | None, snapshots: AsyncIterator[Taken]
    ) -> None:
        """Write one play; one without tasks is not written, for a play needs some."""
        dialect = server.spec.dialect
        writing = WriterOptions(dialect.list_separator, dialect.rss_guid, dialect.removes_links)
        hosts = "all" if self.flags.options.server_url is not None else server.spec.name
        waiting: list[SkippedEntry] = []
        begun = False
        async for snapshot in snapshots:
            self._count(snapshot)
            if isinstance(snapshot, SkippedEntry) and not begun:
                waiting.append(snapshot)
                continue
            if not begun:
                begun = True
                self.sink.part(part)
                self.sink.write(play_lines(_sentence(part.about), hosts, database))
            for each in (*waiting, snapshot):
                self.sink.write(task_lines(each, writing))
            waiting.clear()
        if begun:
            self.sink.done()

    def _count(self, snapshot: Taken) -> None:
        self.assets += isinstance(snapshot, AssetSnapshot)
        self.channels += isinstance(snapshot, ChannelSnapshot)
        self.links += isinstance(snapshot, SkippedEntry) and not snapshot.broken
        if isinstance(snapshot, SkippedEntry) and snapshot.broken:
            self.broken += 1
            path = show_folder((*snapshot.folder, snapshot.title))
            self.warnings.append(f"{snapshot.database}: {path} is left out: {snapshot.why}")


async def _one(client: AsyncMediaServer, name: str) -> AsyncIterator[ChannelSnapshot]:
    yield await channel_snapshot(client, name)


def _folder_part(before: tuple[str, ...], database: str, folder: Folder) -> ExportedPlay:
    return ExportedPlay((*before, database, *folder), f"folder {show_folder(folder) or '/'} of {database}")


def _sentence(about: str) -> str:
    return about[0].upper() + about[1:]
