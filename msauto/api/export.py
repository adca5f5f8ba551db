"""Exports live state, as playbooks that plan to nothing or as timelines for other programs; reads only."""

from __future__ import annotations

import os.path
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import IO, ClassVar, Protocol

from msgspec import Struct

from msauto import sockets
from msauto.api.inputs import Inputs, require_database
from msauto.api.stages import workplace_on
from msauto.errors import MsautoError, RefusedError, one_line
from msauto.file_access import EXPORTED, open_regular
from msauto.file_writing import FileNames, NewFile, write_file
from msauto.model.live import (
    AssetSnapshot,
    ListedEntry,
    RssChannel,
    SkippedEntry,
    parse_folder,
    show_folder,
    why_no_rate,
)
from msauto.model.server import Dialect
from msauto.playbook.export import (
    HEADER,
    header_lines,
    play_lines,
    task_lines,
)
from msauto.playbook.hosts import NamedServer, named_servers
from msauto.server.reader import ServerReader
from msauto.server.snapshots import ReadEach, Snapshots, channel_snapshot


class TimelineText(Protocol):
    """A timeline as a text, and what it cannot hold."""

    @property
    def text(self) -> str:
        """The whole file."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was left out."""


class TimelineWriter(Protocol):
    """A format of timelines, which a plugin brings; ``ending`` is that of its files."""

    @property
    def ending(self) -> str:
        """The ending of its files, without the dot."""

    def write(self, snapshot: AssetSnapshot) -> TimelineText:
        """Write an asset that has a frame rate; raises :class:`MsautoError` for what the format cannot hold."""


Snapshot = AssetSnapshot | RssChannel | SkippedEntry


class ExportSelection(Struct, frozen=True):
    """What to export; if nothing is named, the whole database."""

    titles: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    recursive: bool = False
    database: str | None = None
    links: bool = True

    @property
    def whole(self) -> bool:
        """Whether to export the whole database."""
        return not (self.titles or self.folders or self.channels)


def timeline_form(
    ending: str, origin: str | None, selection: ExportSelection
) -> TimelineWriter | None:
    """Return the format of timelines, ``None`` for playbooks; raises :class:`MsautoError` for what does not fit."""
    if ending == "text":
        if origin is not None:
            raise MsautoError("--origin is for timelines", remedy="add --format edl, otio or csv")
        return None
    place = sockets.place_of("timeline_formats", ending)
    if place is None:
        forms = ["text", *sockets.names_of("timeline_formats")]
        raise MsautoError(
            f"{ending!r} is not a form of an export", remedy=f"use {', '.join(forms)}"
        )
    if selection.channels:
        raise MsautoError("a channel has no timeline", remedy="export it without --format")
    form: TimelineWriter = sockets.load_place(place).of(ending, origin)
    return form


@dataclass
class Export:
    """What was exported: as ``text``, or as the ``files`` of a folder.

    ``assets`` and ``channels`` are counts. ``links`` counts the shortcuts that were left out: a link is exported with
    its clip. ``broken`` counts what could not be exported; ``warnings`` name it.
    """

    assets: int = 0
    channels: int = 0
    links: int = 0
    broken: int = 0
    warnings: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    pieces: Iterable[str] = field(default=(), repr=False)

    @property
    def ok(self) -> bool:
        """Whether everything could be exported."""
        return not self.broken

    @cached_property
    def text(self) -> str:
        """The playbook, or the timeline; empty if files were written."""
        return "".join(self.pieces)


async def export(
    inputs: Inputs,
    selection: ExportSelection,
    form: TimelineWriter | None,
    out: Path | None,
    *,
    content: Path | None = None,
    force: bool = False,
) -> Export:
    """Export what is selected, into the folder ``out`` or as text; with ``form``, as timelines.

    With ``content``, as the content of an embedded media server, into that file.
    """
    exported = Export()
    outputs = inputs.outputs
    if content is not None:
        content = outputs.path(str(content), EXPORTED)
    if out is not None:
        out = outputs.folder(str(out))
    output: TextExport | FolderExport | TimelineFiles
    if content is not None:
        if form is not None or out is not None:
            raise MsautoError("--content writes one file", remedy="leave out --out and --format")
        output = sockets.find("functions", "export_content")(content, force=force)
    elif form is not None:
        output = TimelineFiles(form, out, force=force)
    else:
        output = TextExport() if out is None else FolderExport(out, force=force)
    try:
        await _Exporter(inputs, selection, output, exported).run()
        exported.pieces = output.finish()
    except BaseException:
        output.close()
        raise
    exported.files = output.written
    return exported


class ExportedPlay(Struct, frozen=True):
    """One play of an export: the names of its file, from the outermost folder in, and a description."""

    names: tuple[str, ...]
    about: str


class ExportOutput:
    """Where an export is written, by default without files.

    ``holds_one_server``: it is the content of one server, with empty folders.
    """

    holds_one_server: ClassVar = False

    def __init__(self) -> None:
        self.written: list[Path] = []

    def expect(self, plays: Iterable[ExportedPlay]) -> None:
        """Accept any plays."""

    def finish(self) -> Iterable[str]:
        """Return nothing: each file is complete once it is written."""
        return ()

    def close(self) -> None:
        """Close nothing."""


class TextExport(ExportOutput):
    """All plays as one playbook."""

    def __init__(self) -> None:
        super().__init__()
        self._file: IO[str] = tempfile.SpooledTemporaryFile(  # noqa: SIM115 - closed by `close`
            1 << 20,
            "w+",
            encoding="utf-8",
            newline="\n",
        )
        self._plays = 0

    def begin(self, play: ExportedPlay, head: Iterable[str]) -> None:
        """Begin a play."""
        between = [""] if self._plays else header_lines(play.about)
        self.write([*between, *head])
        self._plays += 1

    def add(self, snapshot: Snapshot, dialect: Dialect, database: str | None) -> None:
        """Add a task, or the comment on what was left out."""
        del database
        self.write([*task_lines(snapshot, dialect)])  # all or nothing of a target

    def add_folders(self, database: str, names: Iterable[str]) -> None:
        """Accept any folders: a playbook names none without assets."""

    def write(self, lines: Iterable[str]) -> None:
        """Add lines."""
        self._file.writelines(f"{line}\n" for line in lines)

    def end(self) -> None:
        """End a play."""

    def finish(self) -> Iterable[str]:
        """Return the text in pieces; if there are no plays, that of a playbook without plays."""
        if not self._plays:
            self.write([*header_lines("nothing"), "[]"])
        self._file.seek(0)
        return self._lines()

    def _lines(self) -> Iterator[str]:
        with self._file:
            yield from self._file

    def close(self) -> None:
        """Close the temporary file."""
        self._file.close()


class FolderExport(ExportOutput):
    """A file for each play, in one folder; replaces only files exported by msauto, unless ``force``."""

    def __init__(self, folder: Path, *, force: bool) -> None:
        super().__init__()
        self._folder = folder
        self._force = force
        self._names = FileNames()
        self._paths: dict[tuple[str, ...], Path] = {}
        self._file: NewFile | None = None
        self._target = folder

    def expect(self, plays: Iterable[ExportedPlay]) -> None:
        """Refuse, before anything is read or written, to replace files that msauto did not export."""
        paths = [self._path(play) for play in plays]
        check_exported(paths, force=self._force)

    def begin(self, play: ExportedPlay, head: Iterable[str]) -> None:
        """Begin a file beside the one that it will replace."""
        self._target = self._path(play)
        with file_errors(self._target):
            _make_folder(self._target.parent, self._folder)
            self._file = NewFile(self._target)
        self.write([*header_lines(play.about), *head])

    def add(self, snapshot: Snapshot, dialect: Dialect, database: str | None) -> None:
        """Add a task, or the comment on what was left out."""
        del database
        self.write([*task_lines(snapshot, dialect)])  # all or nothing of a target

    def write(self, lines: Iterable[str]) -> None:
        """Add lines to the file."""
        assert self._file is not None
        with file_errors(self._target):
            self._file.write(f"{line}\n" for line in lines)

    def end(self) -> None:
        """Move the complete file into its place."""
        assert self._file is not None
        with file_errors(self._target):
            self._file.keep()
        self._file = None
        self.written.append(self._target)

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


class TimelineFiles(ExportOutput):
    """A file for each asset in a folder; without a folder, the text of one timeline.

    A file with other contents is replaced only with ``force``.
    """

    def __init__(self, form: TimelineWriter, folder: Path | None, *, force: bool) -> None:
        super().__init__()
        self._form = form
        self._folder = folder
        self._force = force
        self._names = FileNames()
        self._text: str | None = None

    def add(self, folder: tuple[str, ...], snapshot: AssetSnapshot) -> tuple[str, ...]:
        """Write an asset, or keep its text; return the warnings."""
        timeline = self._form.write(snapshot)
        if self._folder is not None:
            names = (*folder, snapshot.asset.title or snapshot.title)
            self._write(
                self._folder / self._names.path(names, f".{self._form.ending}"), timeline.text
            )
        elif self._text is None:
            self._text = timeline.text
        else:
            raise MsautoError(
                "stdout takes one timeline",
                remedy="name one --title, or write files with --out DIR",
            )
        return timeline.warnings

    def finish(self) -> Iterable[str]:
        """Return the timeline, if it is not in a file."""
        return () if self._text is None else (self._text,)

    def _write(self, path: Path, text: str) -> None:
        assert self._folder is not None
        with file_errors(path):
            _make_folder(path.parent, self._folder)
            if os.path.lexists(path) and not self._force and not _holds(path, text):
                raise RefusedError(
                    f"{path} has other contents",
                    remedy="overwrite it with --force, or use another --out",
                )
            write_file(path, [text])
        self.written.append(path)


def _holds(path: Path, text: str) -> bool:
    with open_regular(path) as file:
        return file.read() == text.encode()


def _make_folder(folder: Path, root: Path) -> None:
    """Make a folder of an export; one that a link leads out of ``root`` is refused."""
    if not folder.resolve().is_relative_to(root.resolve()):
        raise RefusedError(
            f"{folder} leads out of {root}", remedy="remove the link, or use another --out"
        )
    folder.mkdir(parents=True, exist_ok=True)


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Name the file that cannot be read or written, and the reason."""
    try:
        yield
    except OSError as error:
        raise MsautoError(
            f"cannot write {path}: {error.strerror or error}", remedy="export to another place"
        ) from error


async def _read_folders(reader: ServerReader, database: str) -> tuple[str, ...] | None:
    return await reader.read_names("folder", database)


def _is_exported(path: Path) -> bool:
    with file_errors(path):
        if not path.is_file():
            return False
        with open_regular(path) as file:
            return file.readline(256).startswith(f"# {HEADER}".encode())


def check_exported(paths: Iterable[Path], *, force: bool) -> None:
    """Refuse to replace files that msauto did not export."""
    if force:
        return
    others = [str(path) for path in paths if path.exists() and not _is_exported(path)]
    if others:
        raise RefusedError(
            f"these files were not exported by msauto: {', '.join(others[:5])}",
            remedy="overwrite them with --force, or export to another place",
        )


class _Exporter(Struct):
    """One run of ``export``: reads servers one after the other, and writes play after play."""

    inputs: Inputs
    selection: ExportSelection
    output: TextExport | FolderExport | TimelineFiles
    exported: Export

    async def run(self) -> None:
        servers = named_servers(self.inputs.resolving)
        if self.output.holds_one_server and len(servers) > 1:
            raise MsautoError(
                "--content is the content of one server", remedy="choose the server with -l HOST"
            )
        specs = [server.spec for server in servers]
        async with workplace_on(self.inputs.on).reading(specs) as read_server:
            for server in servers:
                prefix = (server.spec.name,) if len(servers) > 1 else ()
                async with read_server(server.spec, self.inputs.forks) as read_each:
                    if self.selection.whole or self.selection.titles or self.selection.folders:
                        await self._export_assets(read_each, server, prefix)
                    await self._export_channels(read_each, server, prefix)

    async def _export_assets(
        self, read_each: ReadEach, server: NamedServer, prefix: tuple[str, ...]
    ) -> None:
        database = require_database(server, self.selection.database)
        names = (*prefix, database)
        is_playbook = not isinstance(self.output, TimelineFiles)
        links = self.selection.links and is_playbook
        snapshots = Snapshots(server.spec, database, read_each, links=links)
        work = []
        if self.selection.titles:
            titles = tuple(dict.fromkeys(self.selection.titles))
            titled = ExportedPlay((*prefix, f"{database}@titles"), f"assets of {database}")
            work.append((titled, snapshots.of_titles(titles)))
        for folder, entries in groupby(await self._list(snapshots), key=attrgetter("folder")):
            about = f"folder {show_folder(folder) or '/'} of {database}"
            play = ExportedPlay((*names, *folder), about)
            work.append((play, snapshots.of_listed([*entries])))
        self.output.expect([play for play, _ in work])
        for play, of_play in work:
            await self._write(play, server, database, of_play)
        if is_playbook:
            self._warn_of_xmp(server, snapshots)
        if self.selection.whole:
            await self._end_database(read_each, database, names)

    async def _end_database(
        self, read_each: ReadEach, database: str, names: tuple[str, ...]
    ) -> None:
        """Add the folders without assets to the content of a server; name the files of folders that have none now."""
        if isinstance(self.output, TextExport) and self.output.holds_one_server:
            async for folders in read_each(_read_folders, [database]):
                self.output.add_folders(database, folders or ())
        if isinstance(self.output, FolderExport):
            for path in self.output.outdated(names):
                self.exported.warnings.append(
                    f"{path} is from an earlier export: its folder holds no assets now"
                )

    async def _list(self, snapshots: Snapshots) -> Sequence[ListedEntry]:
        if self.selection.whole:
            return await snapshots.list((), recursive=True)
        found: set[ListedEntry] = set()
        for folder in self.selection.folders:
            found.update(
                await snapshots.list(parse_folder(folder), recursive=self.selection.recursive)
            )
        return sorted(found)

    def _warn_of_xmp(self, server: NamedServer, snapshots: Snapshots) -> None:
        """Warn that fields may be missing: the interface does not promise GETUSERFIELDS without ``field``."""
        if snapshots.xmp_hidden:
            self.exported.warnings.append(
                f"{server.spec.name} did not list XMP fields: they are not exported"
            )
        elif snapshots.xmp_silent and self.selection.whole:
            self.exported.warnings.append(
                f"{server.spec.name} listed no XMP fields of any asset: it may report them only by name, and then they "
                "are not exported"
            )

    async def _export_channels(
        self, read_each: ReadEach, server: NamedServer, prefix: tuple[str, ...]
    ) -> None:
        plays = {}
        for name in self.selection.channels:
            plays[name] = ExportedPlay((*prefix, "channels", name), f"the RSS channel {name}")
        self.output.expect(plays.values())
        for name, play in plays.items():
            await self._write(play, server, None, channel_snapshot(server.spec, read_each, name))

    async def _write(
        self,
        play: ExportedPlay,
        server: NamedServer,
        database: str | None,
        snapshots: AsyncIterator[Snapshot],
    ) -> None:
        """Write one play; a play without tasks is not valid, and is not written."""
        if isinstance(self.output, TimelineFiles):
            await self._write_timelines(self.output, play, snapshots)
            return
        hosts = "all" if self.inputs.resolving.server_url is not None else server.spec.name
        title = play.about[0].upper() + play.about[1:]
        waiting: list[Snapshot] = []
        begun = False
        async for snapshot in snapshots:
            if isinstance(snapshot, SkippedEntry) and not begun:
                self._count(snapshot)
                waiting.append(snapshot)
                continue
            if not begun:
                begun = True
                self.output.begin(play, play_lines(title, hosts, database))
            for skipped in waiting:
                self.output.add(skipped, server.spec.dialect, database)
            waiting.clear()
            self._count(self._add(snapshot, server, database))
        if begun:
            self.output.end()

    def _add(self, snapshot: Snapshot, server: NamedServer, database: str | None) -> Snapshot:
        """Add a target; return it, or why it is left out: an error of one, whatever its class, is that of no other."""
        assert not isinstance(self.output, TimelineFiles)
        try:
            self.output.add(snapshot, server.spec.dialect, database)
        except MsautoError:
            raise
        except Exception as error:  # noqa: BLE001 - that of one target
            snapshot = _left_out(snapshot, database, error)
            self.output.add(snapshot, server.spec.dialect, database)
        return snapshot

    async def _write_timelines(
        self, output: TimelineFiles, play: ExportedPlay, snapshots: AsyncIterator[Snapshot]
    ) -> None:
        async for snapshot in snapshots:
            if not isinstance(snapshot, AssetSnapshot):
                self._count(snapshot)
                continue
            if snapshot.asset.rate is None:
                self.exported.broken += bool(self.selection.titles)
                self.exported.warnings.append(
                    f"{snapshot.title} is left out: {why_no_rate(snapshot.asset)}"
                )
                continue
            try:
                warnings = output.add(play.names, snapshot)
            except MsautoError:
                raise
            except Exception as error:  # noqa: BLE001 - that of one target
                self._count(_left_out(snapshot, None, error))
                continue
            self._count(snapshot)
            self.exported.warnings += [f"{snapshot.title}: {warning}" for warning in warnings]

    def _count(self, snapshot: Snapshot) -> None:
        exported = self.exported
        if isinstance(snapshot, AssetSnapshot):
            exported.assets += 1
            exported.warnings += [
                f"{snapshot.title}: {warning}" for warning in snapshot.asset.warnings
            ]
        elif isinstance(snapshot, RssChannel):
            exported.channels += 1
        elif not snapshot.broken:
            exported.links += 1
        else:
            exported.broken += 1
            path = show_folder((*snapshot.folder, snapshot.title))
            exported.warnings.append(f"{snapshot.database}: {path} is left out: {snapshot.why}")


def _left_out(snapshot: Snapshot, database: str | None, error: Exception) -> SkippedEntry:
    """Return that a target is left out because of an unforeseen error."""
    why = f"it cannot be exported: {one_line(error)}"
    if isinstance(snapshot, AssetSnapshot):
        return SkippedEntry(
            database or "", snapshot.asset.folder or (), snapshot.title, why, broken=True
        )
    name = snapshot.name if isinstance(snapshot, RssChannel) else snapshot.title
    return SkippedEntry(database or "", (), name, why, broken=True)
