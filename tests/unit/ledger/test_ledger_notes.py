"""Notes of a run: recorded with it, and missing without harm from ledgers that know none."""

import sqlite3
from pathlib import Path

from msauto.ledger import Ledger
from tests.unit.ledger.ledger_plans import plan


def test_a_note_belongs_to_the_next_run_alone(place: Path | str) -> None:
    with Ledger.open(place) as ledger:
        ledger.journal.notes["override_freeze"] = "Новости: the minister resigned"
        first = ledger.journal.start(plan(), [])
        second = ledger.journal.start(plan(), [])
    with Ledger.open(place, readonly=True) as ledger:
        assert ledger.run_details(first).notes == {"override_freeze": "Новости: the minister resigned"}
        assert ledger.run_details(second).notes == {}


def test_a_ledger_without_notes_is_read_and_then_completed(tmp_path: Path) -> None:
    with Ledger.open(tmp_path) as ledger:
        run = ledger.journal.start(plan(), [])
    with sqlite3.connect(tmp_path / "ledger.sqlite") as connection:
        connection.execute("DROP TABLE note")
    connection.close()
    with Ledger.open(tmp_path, readonly=True) as ledger:
        assert ledger.run_details(run).notes == {}
    with Ledger.open(tmp_path) as ledger:
        ledger.journal.notes["why"] = "x"
        assert ledger.run_details(ledger.journal.start(plan(), [])).notes == {"why": "x"}
