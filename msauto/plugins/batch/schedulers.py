"""What starts a batch: files for systemd, cron, Kubernetes and the Task Scheduler of Windows.

Each file is a template of the folder ``scheduler_files``, and so is how to install them: ``<scheduler>.install.j2``.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from pathlib import Path
from subprocess import list2cmdline
from typing import Final, NamedTuple

from msgspec import Struct

from msauto.playbook.change_windows import DAYS
from msauto.playbook.input_files import beside
from msauto.plugins.batch.batch_file import BatchFile
from msauto.plugins.batch.schedule import Schedule, clock_changes, time_between
from msauto.report.templates import template
from msauto.version import __version__

_ENDINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "systemd": (".service", ".timer", "-failed.service"),
    "cron": (".crontab",),
    "kubernetes": (".yaml",),
    "windows": (".xml",),
}
"""The files of each scheduler: their names are that of the batch, and those of the templates that of the scheduler."""
SCHEDULERS: Final = tuple(_ENDINGS)
_WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# The rules of time zones are known no further.
_GAPS_FROM, _GAPS_TO = date(2026, 1, 1), date(2037, 12, 31)

GRACE = timedelta(hours=1)
"""How long a batch may finish what it has begun after its time, before a scheduler kills it."""


class ScheduledStart(Struct, frozen=True):
    """A batch, the program that runs it (an absolute path and its first arguments), and where its ledger is.

    ``state_home`` is the folder that contains that of the ledger; ``state_dir`` is set if msauto.toml names the folder.
    """

    batch: BatchFile
    program: tuple[str, ...]
    state_home: Path
    state_dir: Path | None = None

    @property
    def unit(self) -> str:
        """The name of units and tasks."""
        return f"msauto-{self.batch.name}"

    @property
    def file(self) -> Path:
        """The absolute path of the batch file."""
        return Path(os.path.abspath(self.batch.file))  # noqa: PTH100 - without `..`, and links are kept

    @property
    def argv(self) -> tuple[str, ...]:
        """The command with its arguments."""
        return (*self.program, "batch", "run", str(self.file))

    @property
    def written_folders(self) -> list[Path]:
        """The folders besides the ledger that a run may write to: its own for downloads, reports and metrics."""
        args = self.batch.args
        named = []
        if args.reports:
            named.append(args.reports.dir)
        if args.metrics:
            named.append(str(Path(args.metrics.file).parent))
        if self.state_dir:
            named.append(str(self.state_dir.absolute()))
        here = self.file.parent
        folders = [here]
        for name in named:
            folder = Path(beside(str(self.file), name))
            if folder not in folders and not folder.is_relative_to(here):
                folders.append(folder)
        return folders

    @property
    def is_in_a_home(self) -> bool:
        """Whether the batch or msauto is in a home, so that homes cannot be hidden."""
        program = Path(self.program[0])
        for home in ("/home", "/root", "/run/user"):
            if self.file.is_relative_to(home) or program.is_relative_to(home):
                return True
        return False

    def latest_start(self) -> timedelta | None:
        """Return how long after its time the batch may still start: until the window closes; ``None`` without one."""
        window = self.batch.window
        if window is None:
            return None
        return time_between(self.batch.schedule.at, window.end)

    def time_limit(self) -> timedelta | None:
        """Return after which time a scheduler kills the batch; ``None`` if neither the jobs nor a window limit it.

        msauto stops by itself before, and finishes what it has begun.
        """
        window = self.batch.window
        times = [job.args.max_time for job in self.batch.jobs]
        limits = []
        if all(times):
            limits.append(sum(filter(None, times), GRACE))
        if window:
            limits.append(time_between(window.start, window.end) + GRACE)
        return min(limits, default=None)


class SchedulerFiles(NamedTuple):
    """Files by name, and how to install them from their folder."""

    files: Mapping[str, str]
    install: str


def scheduler_files(scheduler: str, start: ScheduledStart, where: str = "") -> SchedulerFiles:
    """Return the files that start a batch; ``where``: their folder, which is shown with how to install them."""
    batch, schedule = start.batch, start.batch.schedule
    days = "*"
    if len(schedule.days) < len(DAYS):
        # 0 is Sunday.
        days = ",".join(sorted(str((DAYS.index(day) + 1) % 7) for day in schedule.days))
    values = {
        "start": start,
        "batch": batch,
        "schedule": schedule,
        "folder": str(start.file.parent),
        "cron_times": f"{schedule.at.minute} {schedule.at.hour} * * {days}",
        "weekdays": dict(zip(DAYS, _WEEKDAYS, strict=True)),
        "calendar": calendar,
        "quote": shlex.quote,
        "shell_command": shlex.join,
        "systemd_command": lambda argv: " ".join(map(_systemd_argument, argv)),
        "windows_command": list2cmdline,
        "version": __version__,
    }

    def render(name: str, **more: object) -> str:
        return template(f"plugins/batch/scheduler_files/{scheduler}{name}.j2").render(
            values, **more
        )

    files = {f"{start.unit}{ending}": render(ending) for ending in _ENDINGS[scheduler]}
    return SchedulerFiles(files, render(".install", files=list(files), where=where))


def calendar(schedule: Schedule) -> Iterator[str]:
    """Yield the calendar events of a schedule. systemd skips a time in a gap, so each gap has an event of its own."""
    days = ""
    if len(schedule.days) < len(DAYS):
        days = f"{','.join(schedule.days).title()} "
    yield f"{days}*-*-* {schedule.at:%H:%M}:00 {schedule.timezone}"
    for change in clock_changes(schedule, _GAPS_FROM, _GAPS_TO):
        if change.kind == "skipped":
            yield f"{change.start.astimezone(schedule.zone):%Y-%m-%d %H:%M}:00 {schedule.timezone}"


def _systemd_argument(text: str) -> str:
    """Quote an argument of ExecStart; the template escapes the specifiers of systemd."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    needs_quotes = not set(" \t'\"\\;").isdisjoint(text)
    return f'"{escaped}"' if needs_quotes else escaped
