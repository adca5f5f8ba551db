"""``msauto batch check``: what is wrong with a batch, or will be within a year, without a server."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from msauto.api.inputs import state_folder
from msauto.batch.batch_file import BatchFile, Job
from msauto.batch.monitoring import Monitor
from msauto.batch.schedule import clock_changes, closing_of
from msauto.documents.document import Problems, SourceNode
from msauto.documents.value_types import as_list
from msauto.errors import InputError, Problem
from msauto.planning.saved_plan import plan_from_json
from msauto.playbook.change_windows import ActiveFreeze, DatedFreeze, Freeze, freezes_between
from msauto.playbook.input_files import beside, how_to_find
from msauto.playbook.inventory.hosts import ResolveOptions
from msauto.playbook.settings import Settings, load_settings
from msauto.playbook.validate import validate

YEAR = timedelta(days=365)


def check_batch(batch: BatchFile, env: Mapping[str, str], now: datetime, state_dir: str | None) -> list[Problem]:
    """Return errors and warnings: playbooks, saved plans, freezes, clock changes, and paths that cannot be written.

    ``now`` is in UTC, ``state_dir`` the folder of the ledger if it is not that of the settings.
    """
    problems = Problems()
    settings: dict[str | None, Settings] = {}
    for job in batch.jobs:
        with problems.gather():
            found = job.settings()
            settings[found.file] = found
            problems.add(*_job_problems(job, found, env, now))
    problems.add(*_clock_problems(batch, now))
    for each in settings.values():
        problems.add(*_freeze_problems(batch, each, now))
    with problems.gather():
        state = state_folder(state_dir, load_settings(None, Path(batch.file).parent))
        problems.add(*_folder_problems(state, batch.node, "the state directory"))
    problems.add(*_output_problems(batch))
    return problems.ordered()


# Jobs -------------------------------------------------------------------------------------------------------------


def _job_problems(job: Job, settings: Settings, env: Mapping[str, str], now: datetime) -> Iterator[Problem]:
    inventories = job.inventories or settings.inventories
    if job.playbooks and not inventories:
        yield job.node.problem(f"the job {job.name} has no inventory", "add it here, or to msauto.toml", key=True)
    yield from _missing_files(job.inventories, job.place_of("inventory"))
    yield from _missing_files(job.playbooks, job.node.child("playbooks"))
    options = ResolveOptions(
        (),
        inventories=inventories,
        extra_vars=job.extra_vars,
        limit=job.args.limit,
        tags=tuple(map(str, as_list(job.args.tags or []))),
        env=env,
        now=now,
        lookup_folders=settings.lookup_folders,
        download_folders=settings.download_folders,
    )
    for playbook in job.playbooks:
        if Path(playbook).exists():
            yield from (_placed(problem, job) for problem in validate([playbook], options))
    if job.plan is not None:
        yield from _plan_problems(job, job.plan)


def _placed(problem: Problem, job: Job) -> Problem:
    """Return a problem of a key that becomes a flag with its place in the batch file."""
    key = {"--limit": "limit", "-e": "extra_vars"}.get(problem.place.file if problem.place else "")
    return problem if key is None else job.place_of(key).problem(problem.message, problem.remedy)


def _missing_files(paths: Sequence[str], node: SourceNode) -> Iterator[Problem]:
    for path in paths:
        if not Path(path).exists():
            yield node.problem(f"{path!r} not found", how_to_find(path))


def _plan_problems(job: Job, path: str) -> Iterator[Problem]:
    node = job.node.child("plan")
    try:
        plan_from_json(json.loads(Path(path).read_bytes()), path=path)
    except FileNotFoundError:
        if not job.args.optional:
            problem = node.problem(f"{path!r} does not exist yet", "save it in time, or add optional: true")
            yield replace(problem, level="warning")
    except InputError as error:
        yield from error.problems
    except (OSError, ValueError, RecursionError) as error:
        yield node.problem(f"cannot read {path!r}: {error}", "save it with msauto plan --out")


# The coming year --------------------------------------------------------------------------------------------------


def _clock_problems(batch: BatchFile, now: datetime) -> Iterator[Problem]:
    schedule, window = batch.schedule, batch.window
    today = now.astimezone(schedule.zone).date()
    for change in clock_changes(schedule, today, today + YEAR):
        start = f"{change.start.astimezone(schedule.zone):%H:%M %Z}"
        message = f"on {change.day:%a %Y-%m-%d}, {schedule.at:%H:%M} is {change.kind} in {schedule.timezone}"
        if window is not None and not window.is_open(change.start):
            message += f": the start would be at {start}, outside of the window {window}, so it is missed"
        elif change.kind == "skipped":
            message += f": the batch starts at {start}, which cron and Kubernetes may leave out"
        else:
            message += f": the batch starts at the earlier, {start}"
        problem = batch.node.child("schedule", "at").problem(message, "choose a time that each night has exactly once")
        yield replace(problem, level="warning")


def _freeze_problems(batch: BatchFile, settings: Settings, now: datetime) -> Iterator[Problem]:
    starts = list(batch.schedule.starts_between(now, now + YEAR))
    refused: set[datetime] = set()
    node = batch.node.child("schedule", "at")
    for freeze in settings.freezes:
        hits = [(start, frozen) for start in starts for frozen in _freezes_of(batch, freeze, start)]
        at_start = [(start, frozen) for start, frozen in hits if frozen.since <= start]
        later = [hit for hit in hits if hit not in at_start]
        refused |= {start for start, _ in at_start}
        for found, what in ((at_start, "start in"), (later, "run into")):
            if found:
                first, frozen = found[0]
                nights = f"{len(found)} of the {len(starts)} nights until {(now + YEAR):%Y-%m-%d}"
                when = f"{first.astimezone(batch.schedule.zone):%a %Y-%m-%d}"
                message = f"{nights} {what} a freeze of {settings.file}, first on {when}: {frozen}"
                yield replace(node.problem(message, "nothing is changed in a freeze"), level="warning")
    if starts and refused == set(starts):
        message = "every start is in a freeze, so the batch never changes anything"
        yield node.problem(message, "move the start or the freeze")


def _freezes_of(batch: BatchFile, freeze: Freeze | DatedFreeze, start: datetime) -> Iterator[ActiveFreeze]:
    window = batch.window
    end = closing_of(window, start) if window is not None and window.is_open(start) else start + timedelta(minutes=1)
    return freezes_between([freeze], start, end)


def unreachable_addresses(batch: BatchFile, env: Mapping[str, str]) -> Iterator[Problem]:
    """Send a test to every address; yield an error for each that did not accept it."""
    places = [batch.node.child("heartbeat")] if batch.args.heartbeat is not None else []
    places += [batch.node.child("notify", index, "to") for index in range(len(batch.args.notify or ()))]
    for node, sent in zip(places, Monitor(batch, env).test(), strict=True):
        if sent.error:
            problem = node.problem(f"the test to {sent.to} was not delivered: {sent.error}", "correct the address")
            yield replace(problem, excerpt="")  # it would show the address


# What is written besides ---------------------------------------------------------------------------------


def _output_problems(batch: BatchFile) -> Iterator[Problem]:
    reports, metrics = batch.args.reports, batch.args.metrics
    if reports is not None:
        folder = Path(beside(batch.file, reports.dir))
        yield from _folder_problems(folder, batch.node.child("reports", "dir"), "the folder of the reports")
    if metrics is not None:
        folder, node = Path(beside(batch.file, metrics.file)).parent, batch.node.child("metrics", "file")
        if not folder.is_dir():
            yield node.problem(f"folder {str(folder)!r} not found", "create it, and let the node exporter read it")
        yield from _folder_problems(folder, node, "the folder of the metrics")


def _folder_problems(folder: Path, node: SourceNode, what: str) -> Iterator[Problem]:
    """Yield why a folder cannot be written, or cannot be created."""
    nearest = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        why = f"{str(nearest)!r} is not writable" if nearest.is_dir() else f"{str(nearest)!r} is a file"
        yield node.problem(f"{what} {str(folder)!r} cannot be written: {why}", "correct the path or its permissions")
