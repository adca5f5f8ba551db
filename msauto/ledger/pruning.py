"""Old runs go: the ledger is a record of what can still be looked up and taken back, not an archive."""

from __future__ import annotations

from datetime import datetime, timedelta

from msauto.ledger.attempts import prune_attempts
from msauto.ledger.journal import show_time
from msauto.ledger.store import Store

_OLD = """
    SELECT id FROM run
    WHERE ended IS NOT NULL
    AND id != (SELECT id FROM run ORDER BY started DESC, id DESC LIMIT 1)
    AND id NOT IN (SELECT id FROM run ORDER BY started DESC, id DESC LIMIT ?)
    AND started < ?"""


_LONG = 365 * 100  # days: longer than any ledger, and still a date
_MANY = 2**62  # runs: what SQLite can count to


def prune(store: Store, now: datetime, *, keep_runs: int | None, keep_days: int | None) -> int:
    """Delete the closed runs that no given rule keeps, with all that belongs to them; return how many.

    Without a rule all are kept; so are the last run, and every run that is not closed: it goes on, or died and was not
    settled yet.
    """
    if keep_runs is None and keep_days is None:
        return 0
    # A rule that is not given keeps nothing: 0 runs, or those since now.
    since = show_time(now - timedelta(days=min(keep_days or 0, _LONG)))
    most = min(keep_runs or 0, _MANY)
    prune_attempts(store, keep=most, since=since)
    old = store.read(_OLD, (most, since))
    return store.write("DELETE FROM run WHERE id = ?", *old) if old else 0
