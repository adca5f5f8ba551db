"""What ran: the attempts of the ledger, which is only read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct, structs

from msauto.codec import load
from msauto.file_access import find_repository
from msauto.ledger.ledger import Ledger, LedgerPlace
from msauto.model.identity import plain
from msauto.model.result import PastTarget, RunDetails, RunSummary, TargetRecord
from msauto.model.snapshot import Json
from msauto.primitives.iso_times import parse_datetime


class PastRuns(Struct, frozen=True):
    """Runs, attempts and batches, newest first. ``others``: how many of other repositories; ``ledger``: its name.

    ``short``: the beginning of each name that no other name of the ledger has, to the day, the minute or the second.
    """

    runs: tuple[RunSummary, ...]
    others: int
    ledger: str
    short: Mapping[str, str]


def list_runs(
    place: LedgerPlace, *, batch: str | None = None, since: timedelta | None = None, every: bool = False
) -> PastRuns:
    """Return what ran in the repository of the working folder; without one, or with ``every``, all that ran.

    ``batch``: only this batch and its runs. ``since``: only what started in this time.
    """
    with Ledger.open(place, readonly=True) as ledger:
        attempts, name = ledger.attempts(), ledger.name
    lengths = [len(each) for each in ("YYYYMMDD", "YYYYMMDDTHHMM", "YYYYMMDDTHHMMSS")]
    begin = Counter(each.run[:length] for each in attempts for length in lengths)
    short = {
        each.run: next((each.run[:length] for length in lengths if begin[each.run[:length]] == 1), each.run)
        for each in attempts
    }
    first = None if since is None else datetime.now(UTC) - since
    attempts = [each for each in attempts if batch is None or each.batch == batch]
    attempts = [each for each in attempts if first is None or parse_datetime(each.started) >= first]
    repository = None if every else find_repository(Path())
    runs = tuple(each for each in attempts if repository is None or each.is_of(repository))
    return PastRuns(runs, len(attempts) - len(runs), name, short)


def list_changes(
    place: LedgerPlace, title: str, *, limit: str | None = None, since: timedelta | None = None, every: bool = False
) -> tuple[PastTarget, ...]:
    """Return what runs changed of assets, or found changed outside, newest first; runs as in :func:`list_runs`.

    ``title`` is a glob, ``limit`` holds globs of servers, separated by commas or colons.
    """
    runs = {each.run: each for each in list_runs(place, since=since, every=every).runs}
    servers = (limit or "*").replace(",", ":").split(":")

    def is_meant(server: str, name: str) -> bool:
        is_title = plain(name) == plain(title) or fnmatchcase(plain(name), plain(title))
        return is_title and any(fnmatchcase(server, each.strip()) for each in servers)

    with Ledger.open(place, readonly=True) as ledger:
        targets = [PastTarget(runs[run], _as_left(each)) for run, each in ledger.assets_called(is_meant) if run in runs]
    return tuple(
        each
        for each in targets
        if each.record.begun is not None or any(change.outside for change in each.record.target.changes)
    )


def read_attempt(place: LedgerPlace, name: str) -> tuple[RunSummary, RunDetails | None]:
    """Return the attempt of a name, the start of one, or ``last``, with its details if it is a run or a batch.

    In a repository ``last`` is the newest of it. Raises ``LedgerError`` if it is not found.
    """
    with Ledger.open(place, readonly=True) as ledger:
        summary = ledger.find(name, find_repository(Path()))
        details = ledger.run_details(summary.run) if ledger.is_run(summary.run) else None
        if summary.is_batch:
            record = next(text for each, text in ledger.batches() if each.run == summary.run)
            with ledger.decoding():
                batch = load(dict[str, Json], record)
            details = RunDetails(summary, 0, summary.host, "", batch=batch)
    if details is not None and summary.status != "running":
        details = structs.replace(details, targets=tuple(map(_as_left, details.targets)))
    return summary, details


def _as_left(record: TargetRecord) -> TargetRecord:
    """Return the record of a target as its run left it: nothing of it is planned or under way any more."""
    result = record.result
    both = zip(record.requests, result.requests, strict=True)
    requests = tuple(structs.replace(sent, state=known.outcome) for sent, known in both)
    return structs.replace(record, requests=requests, outcome=result.outcome, message=result.message)
