"""What every scheduler needs to know of a batch, and what is printed for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from msauto.batch.batch_file import BatchFile
from msauto.batch.schedule import time_between
from msauto.playbook.input_files import beside

GRACE = timedelta(hours=1)
"""How long a batch may finish what it has begun after its time, before a scheduler kills it."""


@dataclass(frozen=True, slots=True)
class ScheduledStart:
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
        named = [args.reports.dir] if args.reports else []
        named += [str(Path(args.metrics.file).parent)] if args.metrics else []
        named += [str(self.state_dir.absolute())] if self.state_dir else []
        here = self.file.parent
        folders = [Path(beside(str(self.file), each)) for each in named]
        return [here, *(folder for folder in dict.fromkeys(folders) if not folder.is_relative_to(here))]

    def credentials(self) -> list[str]:
        """Return the names of systemd credentials that the batch reads."""
        return [source.credential for source, _ in self.batch.secret_sources() if source.credential is not None]

    def latest_start(self) -> timedelta | None:
        """Return how long after its time the batch may still start: until the window closes; ``None`` without one."""
        window = self.batch.window
        return None if window is None else time_between(self.batch.schedule.at, window.end)

    def time_limit(self) -> timedelta | None:
        """Return after which time a scheduler kills the batch; ``None`` if neither the jobs nor a window limit it.

        msauto stops by itself before, and finishes what it has begun.
        """
        window = self.batch.window
        times = [job.args.max_time for job in self.batch.jobs]
        limits = [sum(filter(None, times), timedelta())] if all(times) else []
        limits += [time_between(window.start, window.end)] if window else []
        return min(limits) + GRACE if limits else None


@dataclass(frozen=True, slots=True)
class SchedulerFiles:
    """Files by name, the commands that install them from their folder, and what else there is to know."""

    files: Mapping[str, str]
    install: tuple[str, ...]
    notes: tuple[str, ...] = ()
