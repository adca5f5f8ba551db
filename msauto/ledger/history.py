"""Past runs, and attempts that wrote nothing: reading and pruning them.

An attempt that wrote nothing is not a run: it cannot be undone, and a ledger with attempts alone counts as empty.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, overload
from zlib import compressobj, decompressobj

from msgspec import structs
from msgspec.json import decode

from msauto.codec import dump, from_json, load
from msauto.errors import LedgerError
from msauto.exit_codes import REFUSED
from msauto.ledger.locks import Locks
from msauto.ledger.store import Row, Store, Value
from msauto.model.plan import PlanOptions, Target
from msauto.model.result import (
    Difference,
    RequestRecord,
    RunDetails,
    RunSummary,
    TargetRecord,
    format_time,
    parse_time,
)

CODE, REASON, USER, FOLDER, REPOSITORY, SETTINGS = (
    "code",
    "reason",
    "user",
    "folder",
    "repository",
    "settings",
)
BATCH, JOB, ATTEMPT, OPTIONS = "batch", "job", "attempt", "options"
"""The notes on how a run ended, who started it, to which job of a batch it belongs, and what it was planned with."""

HISTORY = "see `msauto history` for the runs"
_MAX_DAYS = 365 * 100  # longer than any ledger, and still a valid date
_MAX_RUNS = 2**62  # SQLite counts up to 2**63

_RUN = "SELECT name, started, ended, status, playbooks, summary, id, host, pid, msauto FROM run"
_TARGETS = """
    SELECT t.position, t.planned, r.begun, coalesce(r.requests, '[]'), r.outcome, coalesce(r.message, ''),
    coalesce(r.differences, '[]'), coalesce(r.left_as, '{}'), coalesce(r.notes, '[]')
    FROM target t LEFT JOIN record r ON r.run = t.run AND r.target = t.position
    WHERE t.run = ? AND t.position BETWEEN ? AND ? ORDER BY t.position"""
_LAST = 2**31 - 1  # no target has a higher position
_SOME = 500  # targets that are read at once
_BEGUN = """
    SELECT target, position, known FROM request
    WHERE run = ? AND target BETWEEN ? AND ? ORDER BY target, position"""
_COUNT_SENT = """
    SELECT run, sum(sent) FROM
    (SELECT run, sent FROM record UNION ALL SELECT run, 1 FROM request) AS every"""
_SHOWN_NOTES = """
    SELECT run, name, text FROM note
    WHERE name IN ('code', 'reason', 'user', 'folder', 'repository', 'settings', 'batch', 'job', 'attempt')"""
_NEWEST_FIRST = "LEFT JOIN entered e ON e.name = a.name ORDER BY coalesce(e.id, 0) DESC, started DESC, a.name DESC"
_READ_ATTEMPTS = f"SELECT summary FROM attempt a {_NEWEST_FIRST}"  # noqa: S608
_READ_BATCHES = f"SELECT summary, record FROM batch a {_NEWEST_FIRST}"  # noqa: S608
_PRUNE = """
    DELETE FROM {table} WHERE started < ?
    AND ({order}) < (SELECT {order} FROM {table} ORDER BY {newest} LIMIT 1 OFFSET ?)"""
_PRUNE_ORDER = """
    DELETE FROM entered WHERE name NOT IN
    (SELECT name FROM run UNION SELECT name FROM attempt UNION SELECT name FROM batch)"""
_PRUNED = {
    "attempt": ("started, name", ""),
    "batch": (
        "started, name",
        "AND (batch, ran, started) NOT IN (SELECT batch, ran, max(started) FROM batch GROUP BY 1, 2)",
    ),
    "run": ("id", "AND ended IS NOT NULL"),
}
"""The tables that are pruned, with the order of their rows and what else must hold of one."""


def read_history(store: Store, locks: Locks) -> list[RunSummary]:
    """Return all runs, newest first."""
    rows = store.read(f"{_RUN} ORDER BY id DESC")
    if not rows:
        return []
    notes = _shown_notes(store)
    open_runs = "run IN (SELECT id FROM run WHERE ended IS NULL)"
    sent: dict[int, int] = dict(store.read(f"{_COUNT_SENT} WHERE {open_runs} GROUP BY run"))
    with store.decoding():
        runs = [_summary(row, notes[row[6]], sent.get(row[6], 0)) for row in rows]
    return _with_status(runs, locks)


def _shown_notes(store: Store) -> Mapping[int, Mapping[str, str]]:
    """Return the notes of each run; most texts, such as the folder, are those of many runs, and held once."""
    notes: dict[int, dict[str, str]] = defaultdict(dict)
    held: dict[str, str] = {}
    for number, name, text in store.read(_SHOWN_NOTES):
        notes[number][held.setdefault(name, name)] = held.setdefault(text, text)
    return notes


def read_run(store: Store, locks: Locks, name: str) -> RunDetails:
    """Return everything about one run of the ledger."""
    (row,) = store.read(f"{_RUN} WHERE name = ?", (name,))
    number, host, pid, msauto = row[6:]
    named_texts = store.read("SELECT name, text FROM note WHERE run = ? ORDER BY name", (number,))
    notes: dict[str, str] = dict(named_texts)
    with store.decoding():
        if OPTIONS in notes:
            load(PlanOptions, notes[OPTIONS])
        summary = _summary(row, notes, count_sent(store, number))
        (summary,) = _with_status([summary], locks)
        records = PackedRecords(_all_rows(store, number))
        return RunDetails(summary, pid, host, msauto, records, records.changed_servers, notes)


def run_id(store: Store, name: str) -> int:
    """Return the id of a run of this name; raises ``LedgerError``."""
    for (number,) in store.read("SELECT id FROM run WHERE name = ?", (name,)):
        return int(number)
    raise LedgerError(f"run {name} not found in the ledger {store.name}", remedy=HISTORY)


def count_sent(store: Store, number: Value) -> int:
    """Return how many requests of a run were sent, or tried; ``number`` is its id."""
    rows = store.read(f"{_COUNT_SENT} WHERE run = ? GROUP BY run", (number,))
    return int(rows[0][1]) if rows else 0


def read_attempts(store: Store) -> list[RunSummary]:
    """Return all attempts that wrote nothing, newest first."""
    with store.decoding():
        return [load(RunSummary, summary) for (summary,) in store.read(_READ_ATTEMPTS)]


def read_batches(store: Store, locks: Locks) -> list[tuple[RunSummary, str]]:
    """Return all batches with their records, newest first."""
    rows = store.read(_READ_BATCHES)
    with store.decoding():
        summaries = [load(RunSummary, summary) for summary, _ in rows]
    records = [record for _, record in rows]
    return list(zip(_with_status(summaries, locks), records, strict=True))


def prune(store: Store, now: datetime, *, keep_runs: int | None, keep_days: int | None) -> int:
    """Delete the closed runs, attempts and batches that neither rule keeps; return the number of deleted runs.

    Without a rule all are kept. The last run and attempt are always kept, and so is every run that is in progress or
    not yet settled. Of each batch, the last is kept, and the last that ran jobs.
    """
    if keep_runs is None and keep_days is None:
        return 0
    # A missing rule keeps nothing but the last: those since now, or 1 run.
    since = format_time(now - timedelta(days=min(keep_days or 0, _MAX_DAYS)))
    newer = min(keep_runs or 1, _MAX_RUNS) - 1
    for table, (order, also) in _PRUNED.items():
        newest = f"{order.replace(', ', ' DESC, ')} DESC"
        statement = _PRUNE.format(table=table, order=order, newest=newest)
        deleted = store.count(f"{statement} {also}", (since, newer))
    store.count(_PRUNE_ORDER, ())
    return deleted  # runs are the last


def _summary(row: Row, notes: Mapping[str, str], sent: int) -> RunSummary:
    run, started, ended, status, playbooks, summary, _, host, *_ = row
    # A run that is in progress, or died, has not counted them.
    counts = {"sent": sent} | json.loads(summary)
    code = int(notes[CODE]) if CODE in notes else None
    attempt = int(notes[ATTEMPT]) if ATTEMPT in notes else None
    if code == REFUSED:
        status = "refused"
    values = {
        "run": run,
        "started": started,
        "ended": ended,
        "status": status,
        "playbooks": json.loads(playbooks),
        "summary": counts,
        "code": code,
        "host": host,
        "attempt": attempt,
    }
    for name in (REASON, USER, FOLDER, REPOSITORY, SETTINGS, BATCH, JOB):
        values[name] = notes.get(name, "")
    return from_json(RunSummary, values)  # which checks the types


def _with_status(runs: list[RunSummary], locks: Locks) -> list[RunSummary]:
    """Return the runs with their status now: the process of one that has not ended holds a lock."""
    alive = locks.alive([run.run for run in runs if run.status == "running"])
    with_status = []
    for run in runs:
        if run.status == "running" and run.run not in alive:
            run = structs.replace(run, status="died", reason="its process died")
        with_status.append(run)
    return with_status


def read_targets(
    store: Store, number: Value, positions: Collection[int] | None = None, *, begun: bool = False
) -> dict[int, TargetRecord]:
    """Return the targets of a run by their positions: these, or all; ``begun``: only those that began."""
    first, last = 0, _LAST
    if positions is not None:
        first, last = min(positions, default=0), max(positions, default=-1)
    records = {}
    for row in _read_rows(store, number, first, last):
        position, _, began, *_ = row
        is_asked = positions is None or position in positions
        if is_asked and (began is not None or not begun):
            records[position] = _record(row)
    return records


def _all_rows(store: Store, number: Value) -> Iterator[Row]:
    """Yield the targets of a run, read some at a time: it may have very many."""
    first = 0
    while rows := _read_rows(store, number, first, first + _SOME - 1):
        yield from rows
        first += _SOME


def _read_rows(store: Store, number: Value, first: int, last: int) -> list[Row]:
    """Return the targets at these positions of a run, with the requests of those in progress."""
    rows = store.read(_TARGETS, (number, first, last))
    begun: dict[int, dict[int, str]] = defaultdict(dict)
    for target, position, known in store.read(_BEGUN, (number, first, last)):
        begun[target][position] = known
    for index, row in enumerate(rows):
        position = row[0]
        if position in begun:
            rows[index] = _in_progress(row, begun[position])
    return rows


def _in_progress(row: Row, known: Mapping[int, str]) -> Row:
    """Return the row of a target in progress with its requests; one that an older msauto began has some already."""
    position, planned, begun, requests, *rest = row
    records = _whole(load(Target, planned), load(tuple[RequestRecord, ...], requests))
    texts = list(map(dump, records))
    for index, text in known.items():
        if not 0 <= index < len(texts):
            raise ValueError(f"request {index} of a target with {len(texts)}")
        texts[index] = text
    if not begun:
        begun = load(RequestRecord, known[min(known)]).sent
    together = ",".join(texts)
    return position, planned, begun, f"[{together}]", *rest


def _whole(target: Target, known: tuple[RequestRecord, ...]) -> tuple[RequestRecord, ...]:
    """Return the records of all requests of a target, of which the first ones are known."""
    if len(known) == len(target.requests):
        return known
    not_begun = (RequestRecord("planned"),) * (len(target.requests) - len(known))
    return known + not_begun


class PackedRecords(Sequence[TargetRecord]):
    """The targets of a run, each decoded when it is reached: a run may have very many, and an undo keeps them.

    Raises ``ValueError`` for rows that cannot be decoded.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        # The first one: most targets of a run are changed in the same way.
        self._like = b""
        self.changed_servers: dict[str, None] = {}  # where something may have changed, in order
        self._packed = list(map(self._pack, rows))

    def _pack(self, row: Row) -> bytes:
        record = _record(row)
        if record.made:
            self.changed_servers[record.target.server] = None
        text = dump(row).encode()
        self._like = self._like or text
        packer = compressobj(level=1, zdict=self._like)
        return packer.compress(text) + packer.flush()

    def __len__(self) -> int:
        return len(self._packed)

    @overload
    def __getitem__(self, index: int) -> TargetRecord: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[TargetRecord]: ...

    def __getitem__(self, index: int | slice) -> TargetRecord | Sequence[TargetRecord]:
        if isinstance(index, slice):
            return [self[number] for number in range(len(self))[index]]
        text = decompressobj(zdict=self._like).decompress(self._packed[index])
        return _record(decode(text))


def _record(row: Row) -> TargetRecord:
    _, planned, began, requests, outcome, message, differences, left, notes = row
    target = load(Target, planned)
    recorded = load(tuple[RequestRecord, ...], requests)
    if began is not None:
        parse_time(began)
    return TargetRecord(
        target,
        _whole(target, recorded),
        began,
        outcome,
        message,
        () if differences == "[]" else load(tuple[Difference, ...], differences),
        load(dict[str, Any], left),
        () if notes == "[]" else load(tuple[str, ...], notes),
    )
