"""``msauto export``: live state as playbooks that plan to nothing; reads only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from msauto import sockets
from msauto.api.export import Export, ExportSelection, export, timeline_form
from msauto.cli.flags import LIVE, Flags, flag, option, shared_flags_of
from msauto.cli.help import HelpCommand
from msauto.cli.interrupts import run_async
from msauto.cli.output import print_message, print_result
from msauto.exit_codes import ERROR, OK
from msauto.report.sanitizing import visible
from msauto.report.texts import plural

_ENDINGS = sockets.names_of("timeline_formats")


@click.command("export", cls=HelpCommand)
@option("--title TITLE", "This asset (repeatable).", "titles", multiple=True)
@option("--folder FOLDER", "The assets of this folder (repeatable).", "folders", multiple=True)
@option("--recursive", "Include the folders below --folder.")
@option("--channel NAME", "This RSS channel (repeatable).", "channels", multiple=True)
@flag("database")
@option(
    "--links/--no-links", "Whether to find shortcuts, which lists the whole database.", default=True
)
@option("--out DIR", "Write a file for each folder and channel.")
@option("--content FILE", "Write the content for msauto simulate --state and tests.")
@option("--force", "Overwrite files that were not exported by msauto.")
@option(
    "--origin TIMECODE",
    "The time code of the first frame, for edl, otio and csv; default 00:00:00:00.",
)
@shared_flags_of(
    "text", *_ENDINGS, uses=(*LIVE, "forks"), more=(flag("on"),), socket="timeline_formats"
)
def command(
    *,
    flags: Flags,
    out: str | None,
    content: str | None,
    force: bool,
    origin: str | None,
    **selection: Any,
) -> int:
    """Write live state as playbooks that plan to nothing: assets, folders, channels, or the whole database.

    With --format edl, otio, csv or vtt: the markers and segments of each asset, for other programs.
    With --content: one server's content in the format of msauto simulate --state, to try playbooks on.
    """
    chosen = ExportSelection(**selection)
    form = timeline_form(flags.format, origin, chosen)
    folder = Path(out) if out is not None else None
    file = Path(content) if content is not None else None
    exported = run_async(export(flags.inputs, chosen, form, folder, content=file, force=force))
    if folder is None and file is None:
        print_result(exported.pieces)
    is_into_folder = folder is not None and form is None
    _report(exported, to_folder=is_into_folder, whole=chosen.whole)
    return OK if exported.ok else ERROR


def _report(exported: Export, *, to_folder: bool, whole: bool) -> None:
    """Report what was exported and what was not."""
    for warning in exported.warnings:
        print_message(f"Warning: {visible(warning)}")
    counts = []
    if exported.assets or not exported.channels:
        counts.append(plural(exported.assets, "asset"))
    if exported.channels:
        counts.append(plural(exported.channels, "channel"))
    done = f"Exported {' and '.join(counts)}"
    if exported.files or to_folder:
        done += f" in {plural(len(exported.files), 'file')}"
    print_message(f"{done}.")
    if exported.links and not whole:
        print_message(
            f"{plural(exported.links, 'link')} not exported: a link is exported with its clip."
        )
