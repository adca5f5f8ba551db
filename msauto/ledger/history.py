"""What the ledger tells of runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from msgspec import structs

from msauto.ledger.journal import count_sent, life_of
from msauto.ledger.locks import is_held
from msauto.ledger.store import Row, Store
from msauto.model.codec import load
from msauto.model.history import RequestRecord, RequestState, RunDetails, RunStatus, RunSummary, TargetRecord
from msauto.model.plan import Json, Request, Target
from msauto.model.result import Difference, Outcome

_SUMMARY = "SELECT name, started, ended, status, playbooks, summary, id, host FROM run"


CODE, REASON, USER, FOLDER = "code", "reason", "user", "folder"
"""The notes of a run that tell who made it, and how it ended for him."""
_REFUSED = 4


def read_history(store: Store, lives: Path) -> list[RunSummary]:
    """Return all runs, newest first."""
    with store.understood():
        return [_run(store, row, lives) for row in store.read(f"{_SUMMARY} ORDER BY started DESC, id DESC")]


def read_run(store: Store, lives: Path, name: str) -> RunDetails:
    """Return everything about one run, which is in the ledger."""
    rows = store.read(f"{_SUMMARY} WHERE name = ?", (name,))
    number, pid, host, msauto = store.read("SELECT id, pid, host, msauto FROM run WHERE name = ?", (name,))[0]
    with store.understood():
        targets = _targets(store, number)
        notes = _notes(store, number)
        return RunDetails(_run(store, rows[0], lives), int(str(pid)), str(host), str(msauto), targets, notes)


def note_end(store: Store, run: str, notes: Mapping[str, str]) -> None:
    """Add notes to a run; one that is not in the ledger is left alone."""
    rows = store.read("SELECT id FROM run WHERE name = ?", (run,))
    store.write(
        "INSERT OR REPLACE INTO note (run, name, text) VALUES (?, ?, ?)",
        *((rows[0][0], name, text) for name, text in notes.items() if rows),
    )


def _notes(store: Store, run: str | int | None) -> dict[str, str]:
    if not store.has("note"):
        return {}
    rows = store.read("SELECT name, text FROM note WHERE run = ? ORDER BY name", (run,))
    return {str(name): str(text) for name, text in rows}


def _learned(store: Store, run: str | int | None) -> dict[int, dict[str, Json]]:
    found: dict[int, dict[str, Json]] = {}
    if store.has("learned"):
        for target, item, value in store.read("SELECT target, item, value FROM learned WHERE run = ?", (run,)):
            found.setdefault(int(str(target)), {})[str(item)] = json.loads(str(value))
    return found


def _run(store: Store, row: Row, lives: Path) -> RunSummary:
    name, started, ended, status, playbooks, summary, number, host = row
    if status == "running" and not is_held(life_of(lives, str(name)).path):
        status = "died"
    # A ledger of an earlier msauto counts «not attempted» under its two words.
    counts = {name.replace(" ", "_"): count for name, count in json.loads(str(summary)).items()}
    if "sent" not in counts:  # it goes on, or died, or is of an earlier msauto
        counts["sent"] = count_sent(store, number)
    notes = _notes(store, number)
    code = int(notes[CODE]) if CODE in notes else None
    return RunSummary(
        run=str(name),
        started=str(started),
        ended=None if ended is None else str(ended),
        status=cast("RunStatus", "refused" if code == _REFUSED else status),
        playbooks=tuple(json.loads(str(playbooks))),
        summary=counts,
        code=code,
        reason=notes.get(REASON, ""),
        user=notes.get(USER, ""),
        host=str(host),
        folder=notes.get(FOLDER, ""),
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
        found.append(structs.replace(record, learned=learned.get(position, {})))
    return tuple(found)


def _target(row: Row, planned: tuple[Request, ...], records: tuple[RequestRecord, ...]) -> TargetRecord:
    _, target, begun, outcome, message, differences = row
    return TargetRecord(
        target=structs.replace(load(Target, str(target)), requests=planned),
        requests=records,
        begun=None if begun is None else str(begun),
        outcome=cast("Outcome | None", outcome),
        message=str(message),
        differences=load(tuple[Difference, ...], str(differences)),
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
