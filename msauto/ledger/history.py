"""What the ledger tells of runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import cast

from msauto.errors import LedgerError
from msauto.ledger.codec import load, load_list
from msauto.ledger.journal import count_sent, life_of
from msauto.ledger.locks import is_held
from msauto.ledger.store import Row, Store
from msauto.model.history import RequestRecord, RequestState, RunDetails, RunStatus, RunSummary, TargetRecord
from msauto.model.plan import Json, Request, Target
from msauto.model.result import Difference, Outcome

_SUMMARY = "SELECT name, started, ended, status, playbooks, summary, id FROM run"


def read_history(store: Store, lives: Path) -> list[RunSummary]:
    """Return all runs, newest first."""
    with store.understood():
        return [_run(store, row, lives) for row in store.read(f"{_SUMMARY} ORDER BY started DESC, id DESC")]


def read_run(store: Store, lives: Path, name: str) -> RunDetails:
    """Return everything about one run; raises ``LedgerError`` for one that is not in the ledger."""
    rows = store.read(f"{_SUMMARY} WHERE name = ?", (name,))
    if not rows:
        raise LedgerError(f"the ledger {store.path} knows no run {name}", remedy="see `msauto history` for the runs")
    number, pid, host, msauto = store.read("SELECT id, pid, host, msauto FROM run WHERE name = ?", (name,))[0]
    with store.understood():
        targets = _targets(store, number)
        notes = _notes(store, number)
        return RunDetails(_run(store, rows[0], lives), int(str(pid)), str(host), str(msauto), targets, notes)


def _notes(store: Store, run: str | int | None) -> dict[str, str]:
    if not _has(store, "note"):
        return {}
    rows = store.read("SELECT name, text FROM note WHERE run = ? ORDER BY name", (run,))
    return {str(name): str(text) for name, text in rows}


def _learned(store: Store, run: str | int | None) -> dict[int, dict[str, Json]]:
    found: dict[int, dict[str, Json]] = {}
    if _has(store, "learned"):
        for target, item, value in store.read("SELECT target, item, value FROM learned WHERE run = ?", (run,)):
            found.setdefault(int(str(target)), {})[str(item)] = json.loads(str(value))
    return found


def _has(store: Store, table: str) -> bool:
    """Tell whether a table is there: a ledger of an earlier msauto that is open for reading alone may lack it."""
    return bool(store.read("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)))


def _run(store: Store, row: Row, lives: Path) -> RunSummary:
    name, started, ended, status, playbooks, summary, number = row
    if status == "running" and not is_held(life_of(lives, str(name)).path):
        status = "died"
    # A ledger of an earlier msauto counts «not attempted» under its two words.
    counts = {name.replace(" ", "_"): count for name, count in json.loads(str(summary)).items()}
    if "sent" not in counts:  # it goes on, or died, or is of an earlier msauto
        counts["sent"] = count_sent(store, number)
    return RunSummary(
        run=str(name),
        started=str(started),
        ended=None if ended is None else str(ended),
        status=cast("RunStatus", status),
        playbooks=tuple(json.loads(str(playbooks))),
        summary=counts,
    )


def _targets(store: Store, run: str | int | None) -> tuple[TargetRecord, ...]:
    planned: dict[int, list[Request]] = {}
    records: dict[int, list[RequestRecord]] = {}
    for row in store.read(
        "SELECT target, planned, state, tries, status, message, sent, settled"
        " FROM request WHERE run = ? ORDER BY target, position",
        (run,),
    ):
        position = int(str(row[0]))
        planned.setdefault(position, []).append(load(Request, str(row[1])))
        records.setdefault(position, []).append(_request(row))
    rows = store.read(
        "SELECT position, planned, begun, outcome, message, differences FROM target WHERE run = ? ORDER BY position",
        (run,),
    )
    learned = _learned(store, run)
    found = []
    for row in rows:
        position = int(str(row[0]))
        record = _target(row, tuple(planned.get(position, ())), tuple(records.get(position, ())))
        found.append(replace(record, learned=learned.get(position, {})))
    return tuple(found)


def _target(row: Row, planned: tuple[Request, ...], records: tuple[RequestRecord, ...]) -> TargetRecord:
    _, target, begun, outcome, message, differences = row
    return TargetRecord(
        target=replace(load(Target, str(target)), requests=planned),
        requests=records,
        begun=None if begun is None else str(begun),
        outcome=cast("Outcome | None", outcome),
        message=str(message),
        differences=load_list(Difference, str(differences)),
    )


def _request(row: Row) -> RequestRecord:
    _, _, state, tries, status, message, sent, settled = row
    return RequestRecord(
        state=cast("RequestState", state),
        tries=int(str(tries)),
        status=None if status is None else int(str(status)),
        message=str(message),
        sent=None if sent is None else str(sent),
        settled=None if settled is None else str(settled),
    )
