"""Attempts to apply that became no run: what they were, who made them, and why nothing was written.

They are no runs: an empty ledger that holds attempts alone is still empty, and nothing of them can be undone.
"""

from __future__ import annotations

import json
from typing import cast

from msauto.ledger.store import Row, Store
from msauto.model.history import RunStatus, RunSummary

_READ = """
    SELECT name, started, ended, status, playbooks, summary, code, reason, user, host, folder
    FROM attempt ORDER BY started DESC, name DESC"""
_WRITE = """
    INSERT INTO attempt (name, started, ended, status, playbooks, summary, code, reason, user, host, folder)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_OLD = """
    DELETE FROM attempt
    WHERE name NOT IN (SELECT name FROM attempt ORDER BY started DESC, name DESC LIMIT ?) AND started < ?"""


def write_attempt(store: Store, attempt: RunSummary) -> None:
    """Record an attempt."""
    texts = (json.dumps(list(attempt.playbooks), ensure_ascii=False), json.dumps(attempt.summary))
    who = (attempt.code, attempt.reason, attempt.user, attempt.host, attempt.folder)
    store.write(_WRITE, (attempt.run, attempt.started, attempt.ended, attempt.status, *texts, *who))


def read_attempts(store: Store) -> list[RunSummary]:
    """Return all attempts, newest first; none where the ledger is of an earlier msauto."""
    if not store.has("attempt"):
        return []
    with store.understood():
        return [_attempt(row) for row in store.read(_READ)]


def prune_attempts(store: Store, *, keep: int, since: str) -> None:
    """Forget the attempts that are neither among the newest ``keep`` nor as young as ``since``."""
    store.write(_OLD, (keep, since))


def _attempt(row: Row) -> RunSummary:
    name, started, ended, status, playbooks, summary, code, *who = row
    reason, user, host, folder = map(str, who)
    return RunSummary(
        run=str(name),
        started=str(started),
        ended=str(ended),
        status=cast("RunStatus", status),
        playbooks=tuple(json.loads(str(playbooks))),
        summary=json.loads(str(summary)),
        code=int(str(code)),
        reason=reason,
        user=user,
        host=host,
        folder=folder,
    )
