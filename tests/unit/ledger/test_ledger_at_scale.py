"""Large ledgers, and a full disk."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from msauto.errors import LedgerError
from msauto.ledger import Ledger
from tests import postgres
from tests.conftest import COUNTED, require_postgres
from tests.unit.ledger.ledger_plans import plan, target

pytestmark = pytest.mark.scale

RUNS = 200_000
_SUMMARY = json.dumps({"requests": 1, "sent": 1, "changed": 1})


def write_runs(ledger: Ledger) -> None:
    """Write runs of a year, each with notes, a target and a request."""
    store = ledger._store
    with store.together():
        for start in range(0, RUNS, 5000):
            numbers = range(start + 1, start + 5001)
            store.write(
                "INSERT INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                *(
                    (n, f"R-{n:06}", _time(n), _time(n), "ok", '["news.yml"]', _SUMMARY, "1.0", 7, "oslo")
                    for n in numbers
                ),
            )
            notes = (("code", "0"), ("user", "ada"), ("folder", "/srv/news"), ("settings", "/srv/news/msauto.toml"))
            store.write("INSERT INTO note VALUES (?, ?, ?)", *((n, *note) for n in numbers for note in notes))
            store.write(
                "INSERT INTO target (run, position, server, database, kind, name, planned)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                *((n, 0, "studio-a", "NEWS", "asset", "Evening", "{}") for n in numbers),
            )
            store.write(
                "INSERT INTO request (run, target, position, planned) VALUES (?, ?, ?, ?)",
                *((n, 0, 0, "{}") for n in numbers),
            )


def _time(number: int) -> str:
    return f"2025-{number % 12 + 1:02}-{number % 28 + 1:02}T{number % 24:02}:00:00.{number % 1000:03}Z"


def test_many_runs_are_listed_and_pruned(place: Path | str, record_property: Callable[[str, object], None]) -> None:
    """In a bounded number of queries; a query for each run would last minutes longer than the limit of this test."""
    with Ledger.open(place) as ledger:
        write_runs(ledger)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        runs = ledger.history()
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert len(runs) == RUNS
        assert [each.started for each in runs] == sorted((each.started for each in runs), reverse=True)
        assert {(each.user, each.code, each.summary["sent"]) for each in runs} == {("ada", 0, 1)}
        newest = [each.run for each in runs[:1000]]
        del runs
        assert ledger.find("last").run == newest[0]
        assert ledger.prune(keep_runs=1000) == RUNS - 1000
        assert [each.run for each in ledger.history()] == newest
        assert ledger._store.read("SELECT count(*) FROM request") == [(1000,)]
        assert ledger._store.read("SELECT count(*) FROM note") == [(4000,)]
        record_property(COUNTED, f"memory to list {RUNS:,} runs: {used / 1024:.0f} MB more at most")
        assert used < 1_500_000, "kilobytes"


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of some megabytes, for a tablespace."""
    require_postgres()
    folder = Path("/tmp") / f"msauto-small-{os.getpid()}"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)], check=False)
    try:
        if mounted.returncode:
            pytest.skip("a small file system cannot be mounted here, so a full disk is not tested")
        yield folder
    finally:
        if not mounted.returncode:
            subprocess.run(["umount", "-l", str(folder)], check=True)
        folder.rmdir()


def test_a_disk_that_is_full(small_disk: Path) -> None:
    with postgres.own_server() as server:
        tables = small_disk / "tables"
        tables.mkdir()
        if os.getuid() == 0:
            shutil.chown(tables, server.folder.owner())
        server.execute(f"CREATE TABLESPACE small LOCATION '{tables}'")
        server.execute("CREATE DATABASE full_one TABLESPACE small")
        with Ledger.open(server.url("full_one")) as ledger:
            run = ledger.journal.start(plan(), [])
            ledger.memory.remember(target().id, {"a": 1})
            fill = small_disk / "fill"
            with fill.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(small_disk).free)
            big = plan(*(target(f"clip {number}") for number in range(3000)))
            with pytest.raises(LedgerError, match="the disk of the database server is full") as caught:
                ledger.journal.start(big, [])
            assert "free some space" in caught.value.remedy
            assert [each.run for each in ledger.history()] == [run]
            much = {f"x{number}": "y" * 500 for number in range(3000)}
            with pytest.raises(LedgerError, match="the disk of the database server is full"):
                ledger.journal.commit([lambda: ledger.memory.remember(target().id, much)]).result()
            assert ledger.memory.recall(target().id) == {"a": 1}
            fill.unlink()
            assert ledger.journal.start(big, []) in {each.run for each in ledger.history()}
