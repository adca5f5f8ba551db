"""A disk that is full, below a shared ledger."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from msauto.errors import LedgerError
from msauto.ledger.ledger import Ledger
from tests import postgres
from tests.conftest import require_postgres
from tests.unit.ledger.ledger_plans import plan, target

pytestmark = pytest.mark.scale


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of some megabytes, for a tablespace."""
    require_postgres()
    folder = Path("/tmp") / f"msauto-small-{os.getpid()}"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)], check=False
    )
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
            ledger.memory().remember(target().id, {"a": 1})
            fill = small_disk / "fill"
            with fill.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(small_disk).free)
            big = plan(*(target(f"clip {number}") for number in range(3000)))
            with pytest.raises(
                LedgerError, match="the disk of the database server is full"
            ) as caught:
                ledger.journal.start(big, [])
            assert "free some space" in caught.value.remedy
            assert [each.run for each in ledger.history()] == [run]
            much = {f"x{number}": "y" * 500 for number in range(3000)}
            with pytest.raises(LedgerError, match="the disk of the database server is full"):
                ledger.journal.commit(
                    [lambda: ledger.memory().remember(target().id, much)]
                ).result()
            assert ledger.memory().recall(target().id) == {"a": 1}
            fill.unlink()
            assert ledger.journal.start(big, []) in {each.run for each in ledger.history()}
