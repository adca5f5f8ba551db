"""``batch.yml`` as values: the schedule, the window, and the jobs with their defaults and paths."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from msauto.batch.schedule import Schedule, time_between
from msauto.documents.document import Problems, SourceNode
from msauto.documents.loader import plain
from msauto.documents.value_types import as_list
from msauto.errors import Problem, nearest
from msauto.playbook.change_windows import DAYS, Window
from msauto.playbook.input_files import Files, beside
from msauto.playbook.schema.batch import BatchFileArgs, DefaultArgs, JobArgs, ScheduleArgs, SecretSource
from msauto.playbook.schema.schema_errors import read_as
from msauto.playbook.settings import Settings, load_settings
from msauto.playbook.variables import Level, read_variables
from msauto.secrets.sources import TAG, MarkedText


@dataclass(frozen=True, slots=True)
class Job:
    """One job. ``args`` are its keys, with those of ``defaults``; paths as properties are ready to open."""

    name: str
    args: JobArgs
    node: SourceNode

    @property
    def playbooks(self) -> tuple[str, ...]:
        """The playbooks."""
        return self._paths(self.args.playbooks)

    @property
    def inventories(self) -> tuple[str, ...]:
        """The inventories of the job; empty for those of the settings."""
        return self._paths(self.args.inventory)

    @property
    def plan(self) -> str | None:
        """The saved plan."""
        return None if self.args.plan is None else self._paths(self.args.plan)[0]

    @property
    def extra_vars(self) -> tuple[str, ...]:
        """The variables as texts for ``-e``; secrets keep their tag."""
        return () if self.args.extra_vars is None else (_flow_yaml(plain(self.args.extra_vars, keep_secrets=True)),)

    def place_of(self, key: str) -> SourceNode:
        """Return the node of a key: in the job, or in the defaults."""
        own = self.node.child(key)
        return own if self.node.document.places.get(own.path) else SourceNode(self.node.document).child("defaults", key)

    def settings(self, of_plan: Iterable[Path] = ()) -> Settings:
        """Read the settings: the nearest of the saved plan's folders or first playbook, else of the batch file."""
        return load_settings(None, *of_plan, *(Path(each).parent for each in (*self.playbooks[:1], self._file)))

    def _paths(self, names: Any) -> tuple[str, ...]:
        return () if names is None else tuple(beside(self._file, str(name)) for name in as_list(names))

    @property
    def _file(self) -> str:
        return self.node.document.file


@dataclass(frozen=True, slots=True)
class BatchFile:
    """A batch file. ``args`` are its keys: those of monitoring are read by what uses them."""

    args: BatchFileArgs
    node: SourceNode
    schedule: Schedule
    window: Window | None
    jobs: tuple[Job, ...]

    @property
    def file(self) -> str:
        """The path as it was given."""
        return self.node.document.file

    @property
    def name(self) -> str:
        """The name of the batch."""
        return self.args.name

    @property
    def credentials(self) -> list[str]:
        """The names of systemd credentials that the batch reads."""
        addresses = (self.args.heartbeat, *(notify.to for notify in self.args.notify or ()))
        found = (each.credential for each in addresses if isinstance(each, SecretSource))
        return [name for name in found if name is not None]


def load_batch(path: str, files: Files | None = None) -> BatchFile:
    """Read a batch file; raises :class:`InputError` with all that is wrong."""
    files = files or Files()
    node = SourceNode(files.flawed(path))
    files.problems.check()
    args = read_as(BatchFileArgs, node.document.data, node)
    schedule, window = _schedule(args.schedule), _window(args)
    jobs = tuple(_job(name, each, args.defaults, node.child("jobs", name)) for name, each in args.jobs.items())
    problems = Problems()
    problems.add(*_schedule_problems(schedule, window, node))
    for earlier, job in enumerate(jobs):
        problems.add(*_job_problems(job, [each.name for each in jobs[:earlier]]))
        with problems.gather():
            read_variables(job.args.extra_vars, Level.EXTRA, job.place_of("extra_vars"))
    if args.metrics is not None and not args.metrics.file.endswith(".prom"):
        remedy = "use a name such as msauto.prom: the node exporter reads no others"
        problems.add(node.child("metrics", "file").problem("the metrics file does not end with .prom", remedy))
    problems.check()
    return BatchFile(args, node, schedule, window, jobs)


def _schedule(args: ScheduleArgs) -> Schedule:
    days = tuple(day for day in DAYS if day in (args.days or DAYS))
    return Schedule(args.at, args.tz, days, args.spread or timedelta())


def _window(args: BatchFileArgs) -> Window | None:
    return Window(args.window.start, args.window.to, args.schedule.tz) if args.window else None


_NOT_OF_PLANS = ("extra_vars", "limit", "tags", "do", "drift")


def _job(name: str, args: JobArgs, defaults: DefaultArgs | None, node: SourceNode) -> Job:
    """Return a job with the defaults for the keys that it does not set; a saved plan takes only those that fit it."""
    missing = (defaults.model_fields_set if defaults else set()) - args.model_fields_set
    missing -= {*_NOT_OF_PLANS} if args.plan is not None else set()
    return Job(name, args.model_copy(update={each: getattr(defaults, each) for each in missing}), node)


def _schedule_problems(schedule: Schedule, window: Window | None, node: SourceNode) -> Iterator[Problem]:
    if window is None:
        return
    if window.start == window.end:
        yield node.child("window", "to").problem("from and to are equal", "remove the window, or correct it")
        return
    length, start = time_between(window.start, window.end), time_between(window.start, schedule.at)
    shown = f"the window {window}"
    if start >= length:
        yield node.child("schedule", "at").problem(
            f"{schedule.at:%H:%M} is outside of {shown}, so every start is missed", "move the start or the window"
        )
    elif start + schedule.spread >= length:
        place = node.child("schedule", "spread")
        yield place.problem(f"the latest start is outside of {shown}", "use a shorter spread, or a longer window")


def _job_problems(job: Job, earlier: list[str]) -> Iterator[Problem]:
    for name in job.args.needs or ():
        if name not in earlier:
            hint = nearest(name, earlier) or "remove it: this is the first job"
            yield job.node.child("needs").problem(f"{name!r} is not an earlier job", hint, key=True)
    if job.args.drift is not None and job.args.do != "plan":
        remedy = "add do: plan, or remove drift"
        yield job.place_of("drift").problem("drift is only for jobs with do: plan", remedy, key=True)


def _flow_yaml(value: Any) -> str:
    """Return plain data as YAML in one line, in which tagged texts keep their tag."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow_yaml(name)}: {_flow_yaml(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow_yaml, value)) + "]"
    tag = f"{TAG} " if isinstance(value, MarkedText) else ""
    return tag + json.dumps(value, ensure_ascii=False)
