"""``msauto schedule print``: what starts a batch. msauto installs nothing and schedules nothing itself."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click

from msauto.api.inputs import outputs_of
from msauto.cli.flags import option
from msauto.cli.help import HelpGroup
from msauto.cli.output import print_message, print_result
from msauto.errors import MsautoError
from msauto.file_access import SCHEDULE
from msauto.file_writing import write_file
from msauto.ledger.own_files import require_known_home
from msauto.playbook.settings import load_settings
from msauto.playbook.settings_file import state_folder
from msauto.plugins.batch.batch_file import load_batch
from msauto.plugins.batch.schedulers import SCHEDULERS, ScheduledStart, scheduler_files

_PROGRAM: Final = (sys.executable, "-P", "-m", "msauto")
"""Python with this program: ``-P`` keeps it from importing a file of the folder in which the batch is."""
_UNREADABLE: Final = r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]"
_REFUSED: Final[Mapping[str, str]] = {
    "systemd": r'["\\]|\s$',
    "cron": r"\\%",
    "kubernetes": "(?!)",
    "windows": "%[^%]+%",
}
"""What a path may not hold because a scheduler gives it a meaning from which no escape protects it."""


@click.group("schedule", cls=HelpGroup)
def command() -> None:
    """Print what starts a batch: msauto has no scheduler of its own."""


@command.command("print")
@click.argument("file", type=click.Path(), metavar="FILE")
@click.option(
    "--for", "scheduler", type=click.Choice(SCHEDULERS), required=True, help="The scheduler."
)
@option("--out DIR", "Write the files to DIR.")
def print_(*, file: str, scheduler: str, out: str | None) -> None:
    """Print the files that start a batch, and the commands that install them."""
    printed = scheduler_files(scheduler, _start(file, scheduler), out or "")
    if out is not None:
        folder, outputs = Path(out), outputs_of((file,), None)
        places = [outputs.file(str(folder / name), SCHEDULE) for name in printed.files]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for place, text in zip(places, printed.files.values(), strict=True):
                write_file(place, [text])
        except OSError as error:
            raise MsautoError(
                f"cannot write to {folder}: {error.strerror}", remedy="name another folder"
            ) from error
        print_result("".join(f"{folder / name}\n" for name in printed.files))
    elif len(printed.files) == 1:
        print_result("".join(printed.files.values()))
    else:
        print_result("\n".join(f"# {name}\n{text}" for name, text in printed.files.items()))
    print_message(printed.install)


def _start(file: str, scheduler: str) -> ScheduledStart:
    batch = load_batch(file)
    settings = load_settings(None, Path(file).parent)
    state_dir = state_folder(None, settings.state_dir)
    require_known_home(state_dir)
    state_home = state_dir.absolute().parent
    named = Path(settings.state_dir) if settings.state_dir else None
    start = ScheduledStart(batch, _PROGRAM, state_home, named)
    refused = re.compile(f"{_UNREADABLE}|{_REFUSED[scheduler]}")
    for path in map(str, (*start.argv, start.state_home, *start.written_folders)):
        found = refused.search(path)
        if found:
            message = (
                f"the path {path!r} contains {found[0]!r}, which is not supported for {scheduler}"
            )
            raise MsautoError(message, remedy="rename the file or folder")
    return start
