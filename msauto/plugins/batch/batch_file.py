"""``batch.yml`` as values: the schedule, the window, and the jobs with their defaults and paths.

:func:`load_batch` finds what is wrong with the file, :func:`check_batch` what is wrong with the files that it names, or
will be within a year, without a server.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import Struct, structs

from msauto.api.inputs import tell_nothing, with_outputs, writable_by
from msauto.api.keywords import inputs_of
from msauto.aspects.comparison import mapping
from msauto.codec import parse_json
from msauto.documents.document import Path as DocumentPath
from msauto.documents.document import Problems, SourceNode
from msauto.documents.value_types import as_list
from msauto.documents.writer import flow
from msauto.errors import InputError, MsautoError, Problem, in_order, nearest
from msauto.file_access import REPORT, WriteAccess, find_repository, is_folder, may_be_there
from msauto.planning.saved_plan import plan_from_json
from msauto.playbook.change_windows import DAYS, DatedFreeze, Window, freezes_between
from msauto.playbook.file_kinds import check_kind
from msauto.playbook.hosts import ResolveOptions
from msauto.playbook.input_files import Files, beside, how_to_find
from msauto.playbook.schema.schema_errors import M, validate_data
from msauto.playbook.settings import Settings, load_settings
from msauto.playbook.settings_file import state_folder
from msauto.playbook.validate import validate
from msauto.playbook.variables import Level, read_variables
from msauto.plugins.batch.schedule import Schedule, clock_changes, open_until, time_between
from msauto.plugins.batch.schema import (
    NOT_FOR_PLANS,
    BatchFileArgs,
    DefaultArgs,
    JobArgs,
    PagesArgs,
    SecretSource,
)

_YEAR: Final = timedelta(days=365)
_SHAPING: Final = frozenset({"inventory", "extra_vars", "limit", "tags", "do"})
"""Keys without which the other keys of a job mean something else."""
_KEYS: Final = {"--limit": "limit", "-e": "extra_vars", "--tags": "tags"}
"""The keys that become flags: what is wrong with their values has its place in the batch file."""


class Job(Struct, frozen=True):
    """One job. ``args`` are its keys, with those of ``defaults``; its paths are ready to open.

    ``inventories`` is empty for those of the settings.
    """

    name: str
    args: JobArgs
    node: SourceNode
    playbooks: tuple[str, ...]
    inventories: tuple[str, ...]
    plan: str | None

    @property
    def options(self) -> dict[str, Any]:
        """The options of its plan by their keywords; variables are texts for ``-e``, whose secrets keep their tag."""
        args = self.args
        extra_vars = () if args.extra_vars is None else (flow(args.extra_vars),)
        return {
            "inventory": self.inventories,
            "extra_vars": extra_vars,
            "limit": args.limit,
            "tags": tuple(map(str, as_list(args.tags or []))),
            "forks": args.forks,
        }

    @property
    def applies(self) -> bool:
        """Whether it writes: it does more than report what differs."""
        return self.args.do != "plan"

    def place_of(self, key: str) -> SourceNode:
        """Return the node of a key: in the job, or in the defaults."""
        own = self.node.child(key)
        if own.document.places.get(own.path):
            return own
        return SourceNode(own.document).child("defaults", key)

    def settings(self) -> Settings:
        """Read the settings: the nearest of the first playbook, else of the batch file."""
        files = (*self.playbooks[:1], self.node.document.file)
        return load_settings(None, *(Path(file).parent for file in files))


class BatchFile(Struct, frozen=True):
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
    def id(self) -> tuple[str, str]:
        """The name, and the repository of the file, or else its folder: two stations do not share nights."""
        folder = Path(self.file).absolute().parent
        return self.name, str(find_repository(folder) or folder)

    @property
    def pages(self) -> PagesArgs | None:
        """Where the pages of the nights are kept."""
        pages = self.args.pages
        return PagesArgs(dir=pages) if isinstance(pages, str) else pages

    @property
    def credentials(self) -> list[str]:
        """The names of systemd credentials that the batch reads."""
        names = []
        for address in (self.args.heartbeat, *(notify.to for notify in self.args.notify or ())):
            if isinstance(address, SecretSource) and address.credential is not None:
                names.append(address.credential)
        return names


class ReadBatch(NamedTuple):
    """A batch file as far as it can be read: its ``jobs``, without the keys that are wrong.

    ``batch`` is ``None`` if a key is wrong; ``problems`` are all that is wrong with the file.
    """

    node: SourceNode
    problems: Problems
    jobs: tuple[Job, ...]
    batch: BatchFile | None


def load_batch(path: str) -> BatchFile:
    """Read a batch file; raises :class:`InputError` with all that is wrong."""
    read = read_batch(path)
    read.problems.check()
    assert read.batch is not None
    return read.batch


def read_batch(path: str) -> ReadBatch:
    """Read a batch file; raises :class:`InputError` for a file of another kind."""
    files = Files()
    node, problems = SourceNode(files.flawed(path)), files.problems
    check_kind(node.document, "batch")
    data = mapping(node.document.data)
    args, findings, _ = validate_data(BatchFileArgs, node.document.data, node)
    problems.extend([problem for _, problem in findings])
    wrong = [found for found, _ in findings]
    defaults = _without(wrong, DefaultArgs, data.get("defaults"), node.child("defaults"))
    jobs: list[Job] = []
    names: list[str] = []
    for name, keys in mapping(data.get("jobs")).items():
        place = node.child("jobs", name)
        own = _without(wrong, JobArgs, keys, place)
        if own is not None and defaults is not None:
            job = _job(name, own, defaults, place)
            problems.extend(_job_problems(job, names))
            with problems:
                read_variables(job.args.extra_vars, Level.EXTRA, job.place_of("extra_vars"))
            jobs.append(job)
        names.append(name)
    batch = None
    if args is not None:
        batch = _batch_of(args, node, tuple(jobs))
        problems.extend(_schedule_problems(batch.schedule, batch.window, node))
    return ReadBatch(node, problems, tuple(jobs), batch)


def _without(
    wrong: Sequence[DocumentPath], model: type[M], keys: Any, node: SourceNode
) -> M | None:
    """Return a mapping as a model without its wrong keys; ``None`` if the meaning of its other keys is unknown."""
    depth = len(node.path)
    names = {found[depth] for found in wrong if len(found) > depth and found[:depth] == node.path}
    if not _SHAPING.isdisjoint(names):
        return None
    right = {name: value for name, value in mapping(keys).items() if name not in names}
    return validate_data(model, right, node)[0]


def _batch_of(args: BatchFileArgs, node: SourceNode, jobs: tuple[Job, ...]) -> BatchFile:
    start, hours = args.schedule, args.window
    named = start.days or DAYS
    days = tuple(day for day in DAYS if day in named)
    spread = start.spread or timedelta()
    schedule = Schedule(start.at, start.tz, days, spread)
    window = Window(hours.start, hours.to, start.tz) if hours else None
    return BatchFile(args, node, schedule, window, jobs)


def _job(name: str, args: JobArgs, defaults: DefaultArgs, node: SourceNode) -> Job:
    """Return a job with the defaults for the keys that it does not set; a saved plan takes only those that fit it."""
    missing = defaults.model_fields_set - args.model_fields_set
    if args.plan is not None:
        missing -= {*NOT_FOR_PLANS}
    args = args.model_copy(update={key: getattr(defaults, key) for key in missing})
    file = node.document.file
    plan = None if args.plan is None else beside(file, args.plan)
    return Job(name, args, node, _paths(args.playbooks, file), _paths(args.inventory, file), plan)


def _paths(names: Any, file: str) -> tuple[str, ...]:
    if names is None:
        return ()
    return tuple(beside(file, str(name)) for name in as_list(names))


def _schedule_problems(
    schedule: Schedule, window: Window | None, node: SourceNode
) -> Iterator[Problem]:
    if window is None:
        return
    if window.start == window.end:
        yield node.child("window", "to").problem(
            "from and to are equal", "remove the window, or correct it"
        )
        return
    length = time_between(window.start, window.end)
    start = time_between(window.start, schedule.at)
    shown = f"the window {window}"
    if start >= length:
        message = f"{schedule.at:%H:%M} is outside of {shown}, so every start is missed"
        yield node.child("schedule", "at").problem(message, "move the start or the window")
    elif start + schedule.spread >= length:
        place = node.child("schedule", "spread")
        yield place.problem(
            f"the latest start is outside of {shown}", "use a shorter spread, or a longer window"
        )


def _job_problems(job: Job, earlier: Collection[str]) -> Iterator[Problem]:
    for name in job.args.needs or ():
        if name not in earlier:
            hint = nearest(name, earlier) or "remove it: this is the first job"
            yield job.node.child("needs").problem(f"{name!r} is not an earlier job", hint, key=True)
    if job.args.drift is not None and job.applies:
        remedy = "add do: plan, or remove drift"
        yield job.place_of("drift").problem(
            "drift is only for jobs with do: plan", remedy, key=True
        )


def check_batch(
    read: ReadBatch, env: Mapping[str, str], now: datetime, state_dir: str | None
) -> list[Problem]:
    """Return errors and warnings: playbooks, saved plans, freezes, clock changes, and paths that cannot be written.

    Those of the jobs, also where the file has some; ``now`` is in UTC, ``state_dir`` the folder of the ledger if it is
    not that of the settings.
    """
    batch, problems = read.batch, read.problems
    file = read.node.document.file
    settings: dict[str | None, Settings] = {}
    for job in read.jobs:
        with problems:
            inputs = inputs_of(
                job.playbooks,
                **job.options,
                state_dir=state_dir,
                beside=file,
                now=now,
                tell=tell_nothing,
            )
            settings[inputs.settings.file] = inputs.settings
            problems.extend(_input_problems(job, structs.replace(inputs.resolving, env=env)))
    if batch is None:
        return in_order(problems)
    problems.extend(_clock_problems(batch, now))
    for of_jobs in settings.values():
        problems.extend(_freeze_problems(batch, of_jobs, now))
    with problems:
        state = state_folder(state_dir, load_settings(None, Path(batch.file).parent).state_dir)
        problems.extend(_folder_problems(state, batch.node, "the state directory"))
    problems.extend(_output_problems(batch))
    return in_order(problems)


# Jobs -------------------------------------------------------------------------------------------------------------


def _input_problems(job: Job, options: ResolveOptions) -> Iterator[Problem]:
    if job.playbooks and not options.inventories:
        yield job.node.problem(
            f"the job {job.name} has no inventory", "add it here, or to msauto.toml", key=True
        )
    missing = [path for path in job.inventories if not may_be_there(path)]
    yield from _missing_files(missing, job.place_of("inventory"))
    yield from _missing_files(job.playbooks, job.node.child("playbooks"))
    existing = [*filter(may_be_there, job.playbooks)]
    if existing:
        for problem in validate(existing, options):
            file = problem.place.file if problem.place else ""
            if file in missing:
                continue
            key = _KEYS.get(file)
            if key:
                problem = job.place_of(key).problem(problem.message, problem.remedy)
            yield problem
    if job.plan is not None:
        yield from _plan_problems(job, job.plan)


def _missing_files(paths: Sequence[str], node: SourceNode) -> Iterator[Problem]:
    for path in paths:
        if not may_be_there(path):
            yield node.problem(f"{path!r} not found", how_to_find(path))


def _plan_problems(job: Job, path: str) -> Iterator[Problem]:
    node = job.node.child("plan")
    try:
        plan_from_json(parse_json(Path(path).read_bytes()), path=path)
    except FileNotFoundError:
        if not job.args.optional:
            problem = node.problem(
                f"{path!r} does not exist yet", "save it in time, or add optional: true"
            )
            yield replace(problem, level="warning")
    except InputError as error:
        yield from error.problems
    except (OSError, ValueError, RecursionError) as error:
        yield node.problem(f"cannot read {path!r}: {error}", "save it with msauto plan --out")


# The coming year --------------------------------------------------------------------------------------------------


def _clock_problems(batch: BatchFile, now: datetime) -> Iterator[Problem]:
    schedule, window = batch.schedule, batch.window
    today = now.astimezone(schedule.zone).date()
    for change in clock_changes(schedule, today, today + _YEAR):
        start = f"{change.start.astimezone(schedule.zone):%H:%M %Z}"
        message = f"on {change.day:%a %Y-%m-%d}, {schedule.at:%H:%M} is {change.kind} in {schedule.timezone}"
        if window is not None and not window.is_open(change.start):
            message += (
                f": the start would be at {start}, outside of the window {window}, so it is missed"
            )
        elif change.kind == "skipped":
            message += f": the batch starts at {start}, which cron and Kubernetes may leave out"
        else:
            message += f": the batch starts at the earlier, {start}"
        problem = batch.node.child("schedule", "at").problem(
            message, "choose a time that each night has exactly once"
        )
        yield replace(problem, level="warning")


def _freeze_problems(batch: BatchFile, settings: Settings, now: datetime) -> Iterator[Problem]:
    nights = {}
    for start in batch.schedule.starts_between(now, now + _YEAR):
        nights[start] = open_until(batch.window, start) or start + timedelta(minutes=1)
    refused: set[datetime] = set()
    node = batch.node.child("schedule", "at")
    for freeze in settings.freezes:
        hits: dict[str, list[tuple[datetime, DatedFreeze]]] = {"start in": [], "run into": []}
        for start, end in nights.items():
            for frozen in freezes_between([freeze], start, end):
                if frozen.since <= start:
                    refused.add(start)
                    hits["start in"].append((start, frozen))
                else:
                    hits["run into"].append((start, frozen))
        for what, frozen_nights in hits.items():
            if frozen_nights:
                start, frozen = frozen_nights[0]
                count = (
                    f"{len(frozen_nights)} of the {len(nights)} nights until {now + _YEAR:%Y-%m-%d}"
                )
                first = f"{start.astimezone(batch.schedule.zone):%a %Y-%m-%d}"
                message = f"{count} {what} a freeze of {settings.file}, first on {first}: {frozen}"
                yield replace(
                    node.problem(message, "nothing is changed in a freeze"), level="warning"
                )
    if nights and refused == nights.keys():
        message = "every start is in a freeze, so the batch never changes anything"
        yield node.problem(message, "move the start or the freeze")


# What is written besides ---------------------------------------------------------------------------------


def outputs_of_batch(batch: BatchFile) -> WriteAccess:
    """Return where a batch may write its reports and pages: in its repository, and where the settings allow it."""
    settings = load_settings(None, Path(batch.file).parent)
    return with_outputs(writable_by(settings), [batch.file])


def _output_problems(batch: BatchFile) -> Iterator[Problem]:
    metrics = batch.args.metrics
    schemes = set[str]()
    for notify in batch.args.notify or ():
        if isinstance(notify.to, str):
            schemes.add(notify.to.partition(":")[0].lower())
    needs_apprise = not schemes <= {"smtp", "smtps"}
    if needs_apprise and find_spec("apprise") is None:
        message = "no notice can be sent: the package apprise is not installed"
        yield batch.node.child("notify").problem(message, "pip install apprise")
    for key, args in (("reports", batch.args.reports), ("pages", batch.pages)):
        if args is not None:
            folder = Path(beside(batch.file, args.dir))
            try:
                outputs_of_batch(batch).path(str(folder / "index.html"), REPORT)
            except MsautoError as error:
                yield batch.node.child(key, "dir").problem(error.message, error.remedy)
            yield from _folder_problems(
                folder, batch.node.child(key, "dir"), f"the folder of the {key}"
            )
    if metrics is not None:
        folder = Path(beside(batch.file, metrics.file)).parent
        node = batch.node.child("metrics", "file")
        if not is_folder(folder):
            yield node.problem(
                f"folder {str(folder)!r} not found", "create it, and let the node exporter read it"
            )
        yield from _folder_problems(folder, node, "the folder of the metrics")


def _folder_problems(folder: Path, node: SourceNode, what: str) -> Iterator[Problem]:
    """Yield why a folder cannot be written, or cannot be created."""
    existing = folder.absolute()
    while not os.path.exists(existing):  # noqa: PTH110 - no error where this user may not look
        existing = existing.parent
    if not is_folder(existing):
        why = f"{str(existing)!r} is a file"
    elif os.access(existing, os.W_OK | os.X_OK):
        return
    else:
        why = f"{str(existing)!r} is not writable"
    message = f"{what} {str(folder)!r} cannot be written: {why}"
    yield node.problem(message, "correct the path or its permissions")
