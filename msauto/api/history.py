"""What ran: the attempts of the ledger, which is only read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct, structs

from msauto.codec import load
from msauto.file_access import find_repository
from msauto.ledger.ledger import Ledger, LedgerPlace
from msauto.model.identity import matches
from msauto.model.result import PastTarget, RunDetails, RunSummary, TargetRecord
from msauto.model.snapshot import Json
from msauto.primitives.iso_times import parse_datetime


class PastRuns(Struct, frozen=True):
    """Runs, attempts and batches, newest first. ``others``: how many of other repositories; ``ledger``: its name.

    ``exists``: whether there is one. ``short``: the beginning of each name that no other name of the ledger has, to the
    day, the minute or the second.
    """

    runs: tuple[RunSummary, ...]
    others: int
    ledger: str
    short: Mapping[str, str]
    exists: bool = True


def list_runs(
    place: LedgerPlace,
    *,
    batch: str | None = None,
    limit: str | None = None,
    since: timedelta | None = None,
    every: bool = False,
) -> PastRuns:
    """Return what ran in the repository of the working folder; without one, or with ``every``, all that ran.

    ``batch``: only this batch and its runs. ``limit``: only runs with a target of one of these servers: globs,
    separated by commas or colons. ``since``: only what started in this time.
    """
    with Ledger.open(place, readonly=True) as ledger:
        attempts, name = ledger.attempts(), ledger.name
        if limit is not None:
            runs_there = ledger.runs_on(_servers_of(limit))
            attempts = [run for run in attempts if run.run in runs_there]
    repository = None if every else find_repository(Path())
    earliest = None if since is None else datetime.now(UTC) - since
    runs = []
    others = 0
    for run in attempts:
        if batch is not None and run.batch != batch:
            continue
        if earliest is not None and parse_datetime(run.started) < earliest:
            continue
        if repository is None or run.is_of(repository):
            runs.append(run)
        else:
            others += 1
    short = _short_names([run.run for run in attempts])
    return PastRuns(tuple(runs), others, name, short, Ledger.exists(place))


def _short_names(names: Sequence[str]) -> dict[str, str]:
    """Return the beginning of each name that no other one has, or else the whole name."""
    short = {name: name for name in names}
    for form in ("YYYYMMDDTHHMMSS", "YYYYMMDDTHHMM", "YYYYMMDD"):
        beginnings = Counter([name[: len(form)] for name in names])
        for name in names:
            beginning = name[: len(form)]
            if beginnings[beginning] == 1:
                short[name] = beginning
    return short


def list_changes(
    place: LedgerPlace,
    title: str,
    *,
    limit: str | None = None,
    since: timedelta | None = None,
    every: bool = False,
) -> tuple[PastTarget, ...]:
    """Return what runs changed of assets, or found changed outside, newest first; runs as in :func:`list_runs`.

    ``title`` is a glob.
    """
    runs = {run.run: run for run in list_runs(place, since=since, every=every).runs}
    is_server = _servers_of(limit or "*")

    def is_meant(server: str, name: str) -> bool:
        return matches(title, [name]) and is_server(server)

    changes = []
    with Ledger.open(place, readonly=True) as ledger:
        for run, record in ledger.assets_called(is_meant):
            changed = record.begun is not None or any(
                change.outside for change in record.target.changes
            )
            if changed and run in runs:
                changes.append(PastTarget(runs[run], _as_left(record)))
    return tuple(changes)


def _servers_of(limit: str) -> Callable[[str], bool]:
    """Return the question whether a server matches one of these globs."""
    globs = [glob.strip() for glob in limit.replace(",", ":").split(":")]
    return lambda server: any(fnmatchcase(server, glob) for glob in globs)


def read_attempt(place: LedgerPlace, name: str) -> tuple[RunSummary, RunDetails | None]:
    """Return the attempt of a name, the start of one, or ``last``, with its details if it is a run or a batch.

    In a repository ``last`` is the newest of it. Raises ``LedgerError`` if it is not found.
    """
    details = None
    with Ledger.open(place, readonly=True) as ledger:
        summary = ledger.find(name, find_repository(Path()))
        if ledger.is_run(summary.run):
            details = ledger.run_details(summary.run)
        if summary.is_batch:
            records = {batch.run: text for batch, text in ledger.batches()}
            with ledger.decoding():
                batch = load(dict[str, Json], records[summary.run])
            details = RunDetails(summary, 0, summary.host, "", batch=batch)
    if details is not None and summary.status != "running":
        targets = tuple(map(_as_left, details.targets))
        details = structs.replace(details, targets=targets)
    return summary, details


def _as_left(record: TargetRecord) -> TargetRecord:
    """Return the record of a target as its run left it: nothing of it is planned or under way any more."""
    result = record.result
    requests = []
    for request, request_result in zip(record.requests, result.requests, strict=True):
        requests.append(structs.replace(request, state=request_result.outcome))
    return structs.replace(
        record, requests=tuple(requests), outcome=result.outcome, message=result.message
    )
