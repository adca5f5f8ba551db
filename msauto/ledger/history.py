"""Past runs: reading them, the notes on them, attempts that wrote nothing, and pruning.

An attempt that wrote nothing is not a run: it cannot be undone, and a ledger with attempts alone counts as empty.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import structs

from msauto.ledger.locks import is_held, run_lock
from msauto.ledger.store import Row, Store, Value, format_time
from msauto.model.codec import dump, load
from msauto.model.plan import Json, Request, Target
from msauto.model.result import Difference
from msauto.model.run_records import RequestRecord, RunDetails, RunSummary, TargetRecord

CODE, REASON, USER, FOLDER, REPOSITORY = "code", "reason", "user", "folder", "repository"
BATCH, JOB, ATTEMPT = "batch", "job", "attempt"
"""The notes on how a run ended, who started it, and to which job of a batch it belongs."""

_REFUSED = 4
_MAX_DAYS = 365 * 100  # longer than any ledger, and still a valid date
_MAX_RUNS = 2**62  # SQLite counts up to 2**63

_RUN = "SELECT name, started, ended, status, playbooks, summary, id, host FROM run"
_COUNT_SENT = "SELECT count(*) FROM request WHERE run = ? AND tries > 0 AND state <> 'not sent'"
_READ_ATTEMPTS = "SELECT * FROM attempt ORDER BY started DESC, name DESC"
_READ_BATCHES = "SELECT summary, record FROM batch ORDER BY started DESC, name DESC"
_WRITE_ATTEMPT = "INSERT INTO attempt VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_PRUNE_ATTEMPTS = """
    DELETE FROM attempt
    WHERE name NOT IN (SELECT name FROM attempt ORDER BY started DESC, name DESC LIMIT ?) AND started < ?"""
_PRUNE_RUNS = """
    DELETE FROM run
    WHERE ended IS NOT NULL
    AND id != (SELECT id FROM run ORDER BY started DESC, id DESC LIMIT 1)
    AND id NOT IN (SELECT id FROM run ORDER BY started DESC, id DESC LIMIT ?)
    AND started < ?"""

_PRUNE_BATCHES = """
    DELETE FROM batch
    WHERE name NOT IN (SELECT name FROM batch ORDER BY started DESC, name DESC LIMIT ?) AND started < ?
    AND started != (SELECT max(started) FROM batch AS same WHERE same.batch = batch.batch AND same.ran = batch.ran)"""


def read_history(store: Store, run_locks: Path) -> list[RunSummary]:
    """Return all runs, newest first."""
    with store.decoding():
        return [_summary(store, row, run_locks) for row in store.read(f"{_RUN} ORDER BY started DESC, id DESC")]


def read_run(store: Store, run_locks: Path, name: str) -> RunDetails:
    """Return everything about one run of the ledger."""
    (row,) = store.read(f"{_RUN} WHERE name = ?", (name,))
    ((number, pid, host, msauto),) = store.read("SELECT id, pid, host, msauto FROM run WHERE name = ?", (name,))
    with store.decoding():
        summary = _summary(store, row, run_locks)
        return RunDetails(summary, pid, host, msauto, _targets(store, number), _notes(store, number))


def count_sent(store: Store, number: Value) -> int:
    """Return how many requests of a run were sent, or tried; ``number`` is its id."""
    ((count,),) = store.read(_COUNT_SENT, (number,))
    return int(count)


def write_notes(store: Store, run: str, notes: Mapping[str, str]) -> None:
    """Add notes to a run; a run that is not in the ledger is ignored."""
    for (number,) in store.read("SELECT id FROM run WHERE name = ?", (run,)):
        rows = ((number, name, text) for name, text in notes.items())
        store.write("INSERT OR REPLACE INTO note (run, name, text) VALUES (?, ?, ?)", *rows)


def write_attempt(store: Store, attempt: RunSummary) -> None:
    """Record an attempt that wrote nothing."""
    playbooks, summary = json.dumps(attempt.playbooks, ensure_ascii=False), json.dumps(attempt.summary)
    times = (attempt.started, attempt.ended, attempt.status)
    who = (attempt.code, attempt.reason, attempt.user, attempt.host, attempt.folder)
    more = {BATCH: attempt.batch, JOB: attempt.job, ATTEMPT: str(attempt.attempt or ""), REPOSITORY: attempt.repository}
    notes = ((attempt.run, name, text) for name, text in more.items() if text)
    with store.together():
        store.write(_WRITE_ATTEMPT, (attempt.run, *times, playbooks, summary, *who))
        store.write("INSERT INTO attempt_note VALUES (?, ?, ?)", *notes)


def read_attempts(store: Store) -> list[RunSummary]:
    """Return all attempts that wrote nothing, newest first."""
    if not store.has("attempt"):  # a ledger of an earlier msauto
        return []
    notes: dict[str, dict[str, str]] = defaultdict(dict)
    if store.has("attempt_note"):
        for attempt, note, text in store.read("SELECT * FROM attempt_note"):
            notes[attempt][note] = text
    with store.decoding():
        return [
            structs.replace(
                RunSummary(name, started, ended, status, tuple(json.loads(playbooks)), json.loads(summary), *who),
                **_job(notes[name]),
                repository=notes[name].get(REPOSITORY, ""),
            )
            for name, started, ended, status, playbooks, summary, *who in store.read(_READ_ATTEMPTS)
        ]


def write_batch(store: Store, summary: RunSummary, record: str, *, ran: bool) -> None:
    """Record a batch, or what has become of it; ``ran``: its jobs were started."""
    row = (summary.run, summary.batch, summary.started, ran, dump(summary), record)
    store.write("INSERT OR REPLACE INTO batch VALUES (?, ?, ?, ?, ?, ?)", row)


def read_batches(store: Store, run_locks: Path) -> list[tuple[RunSummary, str]]:
    """Return all batches with their records, newest first."""
    if not store.has("batch"):  # a ledger of an earlier msauto
        return []
    with store.decoding():
        rows = [(load(RunSummary, summary), record) for summary, record in store.read(_READ_BATCHES)]
    return [(_with_status(summary, run_locks), record) for summary, record in rows]


def prune(store: Store, now: datetime, *, keep_runs: int | None, keep_days: int | None) -> int:
    """Delete the closed runs, and the attempts, that neither rule keeps; return the number of deleted runs.

    Without a rule all are kept. The last run is always kept, and every run that is in progress or not yet settled.
    """
    if keep_runs is None and keep_days is None:
        return 0
    # A missing rule keeps nothing: 0 runs, or those since now.
    since = format_time(now - timedelta(days=min(keep_days or 0, _MAX_DAYS)))
    rules = (min(keep_runs or 0, _MAX_RUNS), since)
    store.write(_PRUNE_ATTEMPTS, rules)
    store.write(_PRUNE_BATCHES, rules)
    return store.write(_PRUNE_RUNS, rules)


def _summary(store: Store, row: Row, run_locks: Path) -> RunSummary:
    name, started, ended, status, playbooks, summary, number, host = row
    # A ledger of an earlier msauto counts «not attempted» as two words.
    counts = {each.replace(" ", "_"): count for each, count in json.loads(summary).items()}
    if "sent" not in counts:  # in progress, died, or of an earlier msauto
        counts["sent"] = count_sent(store, number)
    notes = _notes(store, number)
    code = int(notes[CODE]) if CODE in notes else None
    found = RunSummary(
        run=name,
        started=started,
        ended=ended,
        status="refused" if code == _REFUSED else status,
        playbooks=tuple(json.loads(playbooks)),
        summary=counts,
        code=code,
        reason=notes.get(REASON, ""),
        user=notes.get(USER, ""),
        host=host,
        folder=notes.get(FOLDER, ""),
        repository=notes.get(REPOSITORY, ""),
        **_job(notes),
    )
    return _with_status(found, run_locks)


def _with_status(run: RunSummary, run_locks: Path) -> RunSummary:
    """Return a run that has not ended with its status now: its process holds a lock."""
    died = run.status == "running" and not is_held(run_lock(run_locks, run.run).path)
    return structs.replace(run, status="died") if died else run


def _job(notes: Mapping[str, str]) -> dict[str, Any]:
    attempt = int(notes[ATTEMPT]) if ATTEMPT in notes else None
    return {"batch": notes.get(BATCH, ""), "job": notes.get(JOB, ""), "attempt": attempt}


def _notes(store: Store, number: Value) -> dict[str, str]:
    if not store.has("note"):
        return {}
    return dict(store.read("SELECT name, text FROM note WHERE run = ? ORDER BY name", (number,)))


def _targets(store: Store, number: Value) -> tuple[TargetRecord, ...]:
    planned: dict[int, list[Request]] = defaultdict(list)
    records: dict[int, list[RequestRecord]] = defaultdict(list)
    learned: dict[int, dict[str, Json]] = defaultdict(dict)
    for target, request, state, tries, status, *texts in store.read(
        "SELECT target, planned, state, tries, status, message, sent, settled"
        " FROM request WHERE run = ? ORDER BY target, position",
        (number,),
    ):
        planned[target].append(load(Request, request))
        records[target].append(RequestRecord(state, tries, None if status is None else int(status), *texts))
    if store.has("learned"):
        for target, item, value in store.read("SELECT target, item, value FROM learned WHERE run = ?", (number,)):
            learned[target][item] = json.loads(value)
    rows = store.read(
        "SELECT position, planned, begun, outcome, message, differences FROM target WHERE run = ? ORDER BY position",
        (number,),
    )
    return tuple(
        TargetRecord(
            structs.replace(load(Target, target), requests=tuple(planned[position])),
            tuple(records[position]),
            begun,
            outcome,
            message,
            load(tuple[Difference, ...], differences),
            learned[position],
        )
        for position, target, begun, outcome, message, differences in rows
    )
