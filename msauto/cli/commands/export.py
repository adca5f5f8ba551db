"""``msauto export``: live state as playbooks that plan to nothing; reads only."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import groupby, islice
from pathlib import Path
from typing import IO, Any

import click

from msauto.api.stages import ReadServer, reading_here, reading_on
from msauto.cli.flags import Flags, database_flag, on_flag, require_database, shared_flags_of
from msauto.cli.interrupts import run_async
from msauto.cli.output import print_message, print_result
from msauto.errors import MsautoError, RefusedError
from msauto.exit_codes import ERROR, OK
from msauto.file_writing import FileNames, NewFile, write_file
from msauto.model.live import (
    AssetSnapshot,
    ChannelSnapshot,
    Folder,
    ListedEntry,
    SkippedEntry,
    parse_folder,
    show_folder,
)
from msauto.playbook.export import HEADER, TimelineForm, header_lines, play_lines, task_lines
from msauto.playbook.hosts import NamedServer, named_servers
from msauto.report.sanitizing import visible
from msauto.report.texts import plural
from msauto.secrets.redaction import Secrets
from msauto.server.snapshots import ReadEach, Snapshots, channel_snapshot
from msauto.timelines.formats import WRITERS
from msauto.timelines.timeline import TimelineError, parse_origin

Snapshot = AssetSnapshot | ChannelSnapshot | SkippedEntry


@dataclass(frozen=True, slots=True)
class ExportSelection:
    """What to export; if nothing is named, the whole database."""

    titles: tuple[str, ...]
    folders: tuple[str, ...]
    channels: tuple[str, ...]
    recursive: bool
    database: str | None
    links: bool

    @property
    def whole(self) -> bool:
        """Whether to export the whole database."""
        return not (self.titles or self.folders or self.channels)


@click.command("export")
@click.option("--title", "titles", multiple=True, metavar="TITLE", help="This asset (repeatable).")
@click.option("--folder", "folders", multiple=True, metavar="FOLDER", help="The assets of this folder (repeatable).")
@click.option("--recursive", is_flag=True, help="Include the folders below --folder.")
@click.option("--channel", "channels", multiple=True, metavar="NAME", help="This RSS channel (repeatable).")
@database_flag
@click.option("--links/--no-links", default=True, help="Whether to find shortcuts, which lists the whole database.")
@click.option(
    "--out", type=click.Path(file_okay=False), metavar="DIR", help="Write a file for each folder and channel."
)
@click.option("--force", is_flag=True, help="Overwrite files that were not exported by msauto.")
@click.option(
    "--origin", metavar="TIMECODE", help="The time code of the first frame, for edl, otio and csv; default 00:00:00:00."
)
@shared_flags_of("text", *WRITERS, more=(on_flag,))
def command(*, flags: Flags, out: str | None, force: bool, origin: str | None, **selection: Any) -> int:
    """Write live state as playbooks that plan to nothing: assets, folders, channels, or the whole database.

    With --format edl, otio, csv or vtt: the markers and segments of each asset, for other programs.
    """
    chosen = ExportSelection(**selection)
    form = _timeline_form(flags.format, origin, chosen)
    export = _Exporter(flags, chosen, _output(form, None if out is None else Path(out), force=force))
    try:
        run_async(export.run())
        export.output.finish()
    finally:
        export.output.close()
    return export.report()


def _timeline_form(ending: str, origin: str | None, selection: ExportSelection) -> TimelineForm | None:
    """Return the format of timelines, ``None`` for playbooks; raises :class:`MsautoError` for what does not fit."""
    if ending not in WRITERS:
        if origin is not None:
            raise MsautoError("--origin is for timelines", remedy="add --format edl, otio or csv")
        return None
    if selection.channels:
        raise MsautoError("a channel has no timeline", remedy="export it without --format")
    if origin is not None and ending == "vtt":
        raise MsautoError("the times of WebVTT count from the first frame", remedy="leave out --origin")
    try:
        return TimelineForm(ending, None if origin is None else parse_origin(origin))
    except TimelineError as error:
        raise MsautoError(str(error), remedy="write --origin 10:00:00:00") from error


def _output(form: TimelineForm | None, out: Path | None, *, force: bool) -> StdoutExport | FolderExport | TimelineFiles:
    if form is not None:
        return TimelineFiles(form, out, force=force)
    return StdoutExport() if out is None else FolderExport(out, force=force)


@dataclass(frozen=True, slots=True)
class ExportedPlay:
    """One play of an export: the names of its file, from the outermost folder in, and a description."""

    names: tuple[str, ...]
    about: str


class StdoutExport:
    """All plays as one playbook, printed when it is complete."""

    def __init__(self) -> None:
        self._file: IO[str] = tempfile.SpooledTemporaryFile(1 << 20, "w+", encoding="utf-8", newline="\n")  # noqa: SIM115
        self._plays = 0

    def expect(self, plays: Iterable[ExportedPlay]) -> None:
        """Accept any plays."""

    def begin(self, play: ExportedPlay) -> None:
        """Begin a play."""
        self.write(header_lines(play.about) if not self._plays else [""])
        self._plays += 1

    def write(self, lines: Iterable[str]) -> None:
        """Add lines."""
        self._file.writelines(f"{line}\n" for line in lines)

    def end(self) -> None:
        """End a play."""

    def finish(self) -> None:
        """Copy everything to stdout; if there are no plays, print a playbook without plays."""
        if not self._plays:
            self.write([*header_lines("nothing"), "[]"])
        self._file.seek(0)
        while lines := list(islice(self._file, 10_000)):
            print_result("".join(lines))

    def close(self) -> None:
        """Close the temporary file."""
        self._file.close()


class FolderExport:
    """A file for each play, in one folder; replaces only files exported by msauto, unless ``force``."""

    def __init__(self, folder: Path, *, force: bool) -> None:
        self._folder = folder
        self._force = force
        self._names = FileNames()
        self._paths: dict[tuple[str, ...], Path] = {}
        self._file: NewFile | None = None
        self._target = folder
        self.written: list[Path] = []

    def expect(self, plays: Iterable[ExportedPlay]) -> None:
        """Refuse, before anything is read or written, to replace files that msauto did not export."""
        paths = [self._path(play) for play in plays]
        others = [] if self._force else [path for path in paths if path.exists() and not _is_exported(path)]
        if others:
            raise RefusedError(
                f"these files were not exported by msauto: {', '.join(map(str, others[:5]))}",
                remedy="overwrite them with --force, or use another --out",
            )

    def begin(self, play: ExportedPlay) -> None:
        """Begin a file beside the one that it will replace."""
        self._target = self._path(play)
        with _file_errors(self._target):
            _make_folder(self._target.parent, self._folder)
            self._file = NewFile(self._target)
        self.write(header_lines(play.about))

    def write(self, lines: Iterable[str]) -> None:
        """Add lines to the file."""
        if self._file is None:
            raise RuntimeError("begin a play before adding lines")
        with _file_errors(self._target):
            self._file.write(f"{line}\n" for line in lines)

    def end(self) -> None:
        """Move the complete file into its place."""
        if self._file is None:
            return
        with _file_errors(self._target):
            self._file.keep()
        self._file = None
        self.written.append(self._target)

    def finish(self) -> None:
        """Complete the export: each file is in its place already."""

    def close(self) -> None:
        """Remove an incomplete file."""
        if self._file is not None:
            self._file.drop()

    def outdated(self, names: Sequence[str]) -> list[Path]:
        """Return the files of earlier exports in a folder that this export did not write."""
        found = sorted((self._folder / self._names.path(names, "")).rglob("*.yml"))
        return [path for path in found if path not in self.written and _is_exported(path)]

    def _path(self, play: ExportedPlay) -> Path:
        if play.names not in self._paths:
            self._paths[play.names] = self._folder / self._names.path(play.names)
        return self._paths[play.names]


class TimelineFiles:
    """A file for each asset in a folder; without a folder, one timeline for stdout.

    A file with other contents is replaced only with ``force``.
    """

    def __init__(self, form: TimelineForm, folder: Path | None, *, force: bool) -> None:
        self._form = form
        self._folder = folder
        self._force = force
        self._names = FileNames()
        self._text: str | None = None
        self.written: list[Path] = []

    def add(self, folder: tuple[str, ...], snapshot: AssetSnapshot) -> tuple[str, ...]:
        """Write an asset, or keep it for stdout; return the warnings. Raises :class:`TimelineError`."""
        timeline = self._form.write(snapshot)
        if self._folder is not None:
            names = (*folder, snapshot.asset.title or snapshot.title)
            self._write(self._folder / self._names.path(names, f".{self._form.ending}"), timeline.text)
        elif self._text is None:
            self._text = timeline.text
        else:
            raise MsautoError("stdout takes one timeline", remedy="name one --title, or write files with --out DIR")
        return timeline.warnings

    def finish(self) -> None:
        """Print the timeline, if it is not in a file."""
        if self._text is not None:
            print_result(self._text)

    def close(self) -> None:
        """Close nothing: each file is complete once it is written."""

    def expect(self, plays: Iterable[object]) -> None:
        """Accept any plays: each file is checked before it is written."""

    def _write(self, path: Path, text: str) -> None:
        assert self._folder is not None
        with _file_errors(path):
            _make_folder(path.parent, self._folder)
            if path.exists() and not self._force and path.read_bytes() != text.encode():
                raise RefusedError(
                    f"{path} has other contents", remedy="overwrite it with --force, or use another --out"
                )
            write_file(path, [text])
        self.written.append(path)


def _make_folder(folder: Path, root: Path) -> None:
    """Make a folder of an export; one that a link leads out of ``root`` is refused."""
    if not folder.resolve().is_relative_to(root.resolve()):
        raise RefusedError(f"{folder} leads out of {root}", remedy="remove the link, or use another --out")
    folder.mkdir(parents=True, exist_ok=True)


@contextmanager
def _file_errors(path: Path) -> Iterator[None]:
    """Name the file that cannot be read or written, and the reason."""
    try:
        yield
    except OSError as error:
        raise MsautoError(f"cannot write {path}: {error.strerror or error}", remedy="use another --out") from error


def _is_exported(path: Path) -> bool:
    with _file_errors(path):
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.readline(256).startswith(f"# {HEADER}".encode())


@dataclass(slots=True)
class _Exporter:
    """One run of ``export``: reads servers one after the other, and writes play after play."""

    flags: Flags
    selection: ExportSelection
    output: StdoutExport | FolderExport | TimelineFiles
    assets: int = 0
    channels: int = 0
    warnings: list[str] = field(default_factory=list)
    broken: int = 0
    links: int = 0

    async def run(self) -> None:
        async with AsyncExitStack() as stack:
            secrets = Secrets()
            servers = named_servers(self.flags.inputs.resolving, secrets)
            specs = [server.spec for server in servers]
            reading: ReadServer = reading_here
            if self.flags.inputs.on is not None:
                reading = await stack.enter_async_context(reading_on(self.flags.inputs.on, specs))
            for server in servers:
                prefix = (server.spec.name,) if len(servers) > 1 else ()
                async with reading(server.spec, self.flags.inputs.forks) as read_each:
                    if self.selection.whole or self.selection.titles or self.selection.folders:
                        await self._export_assets(read_each, server, prefix)
                    await self._export_channels(read_each, server, prefix)

    def report(self) -> int:
        """Report what was exported and what was not; return the exit code."""
        for warning in self.warnings:
            print_message(f"Warning: {visible(warning)}")
        counts = [plural(self.assets, "asset")] if self.assets or not self.channels else []
        counts += [plural(self.channels, "channel")] if self.channels else []
        written = [] if isinstance(self.output, StdoutExport) else self.output.written
        files = f" in {plural(len(written), 'file')}" if written or isinstance(self.output, FolderExport) else ""
        print_message(f"Exported {' and '.join(counts)}{files}.")
        if self.links and not self.selection.whole:
            print_message(f"{plural(self.links, 'link')} not exported: a link is exported with its clip.")
        return ERROR if self.broken else OK

    async def _export_assets(self, read_each: ReadEach, server: NamedServer, prefix: tuple[str, ...]) -> None:
        database = require_database(server, self.selection.database)
        links = self.selection.links and not isinstance(self.output, TimelineFiles)
        snapshots = Snapshots(server.spec, database, read_each, links=links)
        found = await self._list(snapshots)
        folders = [(folder, list(group)) for folder, group in groupby(found, key=lambda each: each.folder)]
        plays = [_play_of_folder(prefix, database, folder) for folder, _ in folders]
        titled = ExportedPlay((*prefix, f"{database}@titles"), f"assets of {database}")
        self.output.expect([titled, *plays] if self.selection.titles else plays)
        if self.selection.titles:
            titles = tuple(dict.fromkeys(self.selection.titles))
            await self._write(titled, server, database, snapshots.of_titles(titles))
        for play, (_, listed) in zip(plays, folders, strict=True):
            await self._write(play, server, database, snapshots.of_listed(listed))
        if not isinstance(self.output, TimelineFiles):
            self._warn_of_xmp(server, snapshots)
        if self.selection.whole and isinstance(self.output, FolderExport):
            outdated = self.output.outdated((*prefix, database))
            self.warnings += [f"{path} is from an earlier export: its folder holds no assets now" for path in outdated]

    async def _list(self, snapshots: Snapshots) -> Sequence[ListedEntry]:
        if self.selection.whole:
            return await snapshots.list((), recursive=True)
        found: set[ListedEntry] = set()
        for folder in self.selection.folders:
            found.update(await snapshots.list(parse_folder(folder), recursive=self.selection.recursive))
        return sorted(found)

    def _warn_of_xmp(self, server: NamedServer, snapshots: Snapshots) -> None:
        """Warn that fields may be missing: the interface does not promise GETUSERFIELDS without ``field``."""
        if snapshots.xmp_hidden:
            self.warnings.append(f"{server.spec.name} did not list XMP fields: they are not exported")
        elif snapshots.xmp_silent and self.selection.whole:
            self.warnings.append(
                f"{server.spec.name} listed no XMP fields of any asset: it may report them only by name, and then they "
                "are not exported"
            )

    async def _export_channels(self, read_each: ReadEach, server: NamedServer, prefix: tuple[str, ...]) -> None:
        names = tuple(dict.fromkeys(self.selection.channels))
        plays = [ExportedPlay((*prefix, "channels", name), f"the RSS channel {name}") for name in names]
        self.output.expect(plays)
        for play, name in zip(plays, names, strict=True):
            await self._write(play, server, None, channel_snapshot(server.spec, read_each, name))

    async def _write(
        self, play: ExportedPlay, server: NamedServer, database: str | None, snapshots: AsyncIterator[Snapshot]
    ) -> None:
        """Write one play; a play without tasks is not valid, and is not written."""
        if isinstance(self.output, TimelineFiles):
            await self._write_timelines(self.output, play, snapshots)
            return
        dialect = server.spec.dialect
        hosts = "all" if self.flags.inputs.resolving.server_url is not None else server.spec.name
        waiting: list[SkippedEntry] = []
        begun = False
        async for snapshot in snapshots:
            self._count(snapshot)
            if isinstance(snapshot, SkippedEntry) and not begun:
                waiting.append(snapshot)
                continue
            if not begun:
                begun = True
                self.output.begin(play)
                self.output.write(play_lines(play.about[0].upper() + play.about[1:], hosts, database))
            for each in (*waiting, snapshot):
                self.output.write(task_lines(each, dialect))
            waiting.clear()
        if begun:
            self.output.end()

    async def _write_timelines(
        self, output: TimelineFiles, play: ExportedPlay, snapshots: AsyncIterator[Snapshot]
    ) -> None:
        async for snapshot in snapshots:
            if not isinstance(snapshot, AssetSnapshot):
                self._count(snapshot)
                continue
            if snapshot.asset.rate is None:
                self.broken += bool(self.selection.titles)
                self.warnings.append(f"{snapshot.title} is left out: the server reports no frame rate of it")
                continue
            try:
                warnings = output.add(play.names, snapshot)
            except TimelineError as error:
                raise MsautoError(str(error), remedy=error.remedy) from error
            self._count(snapshot)
            self.warnings += [f"{snapshot.title}: {warning}" for warning in warnings]

    def _count(self, snapshot: Snapshot) -> None:
        self.assets += isinstance(snapshot, AssetSnapshot)
        self.channels += isinstance(snapshot, ChannelSnapshot)
        self.links += isinstance(snapshot, SkippedEntry) and not snapshot.broken
        if isinstance(snapshot, SkippedEntry) and snapshot.broken:
            self.broken += 1
            path = show_folder((*snapshot.folder, snapshot.title))
            self.warnings.append(f"{snapshot.database}: {path} is left out: {snapshot.why}")


def _play_of_folder(prefix: tuple[str, ...], database: str, folder: Folder) -> ExportedPlay:
    return ExportedPlay((*prefix, database, *folder), f"folder {show_folder(folder) or '/'} of {database}")
