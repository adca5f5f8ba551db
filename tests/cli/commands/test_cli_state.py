"""``msauto state``: what the ledger is, and copying it in both directions."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import psycopg
import pytest

from msauto.errors import LedgerError, RefusedError
from msauto.ledger import ledger as ledger_module
from msauto.ledger.ledger import TABLES, Ledger
from msauto.ledger.store import upgrade
from msauto.model.result import RequestResult, Result, RunSummary, TargetResult
from tests.cli.command_line import Desk
from tests.unit.ledger.ledger_plans import plan, target
from tests.unit.ledger.test_ledger_locks import NEWS, Clock

Place = Path | str


@pytest.fixture(params=["local", pytest.param("shared", marks=pytest.mark.scale)])
def other(request: pytest.FixtureRequest, tmp_path: Path, place: Place) -> Place:
    """A second place."""
    return (
        tmp_path / "other"
        if request.param == "local"
        else str(request.getfixturevalue("second_shared_place"))
    )


def fill(place: Place) -> None:
    """A row in every table, with texts of all kinds."""
    whole = plan(target("Новости\0 \x1a0"), target("b"))
    first, second = whole.targets
    with Ledger.open(place) as ledger:
        ledger.journal.notes["why"] = "\0"
        for _ in range(3):
            run = ledger.journal.start(whole, ["news.yml"])
            ledger.journal.sending(run, first, 0)
            done = TargetResult(
                first,
                "changed",
                requests=(RequestResult("done", 200),) * 2,
                left={"marker a": ["a", 1]},
            )
            ledger.journal.finished(run, done)
            ledger.journal.end(
                run, Result(run, whole, (done, TargetResult(second, "not attempted", "x")))
            )
        for number in range(3):
            ledger.memory().remember(target(f"clip {number}").id, {"y": "a\0b"})
        with ledger.journal.together():
            for number in range(1100):
                ledger.memory().remember(target(f"clip {number}").id, {"field:comment": "é"})
        summary = RunSummary(
            "R-1", "2026-11-20T10:15:00.000Z", "2026-11-20T10:16:00.000Z", "error", ("x",), {}
        )
        ledger.record(RunSummary(**{**_fields(summary), "code": 1, "batch": "night"}))
        ledger.record_batch(
            RunSummary(**{**_fields(summary), "run": "B-1", "batch": "night"}), "{}", ran=True
        )


def leave_a_request_in_progress(place: Place) -> None:
    whole = plan(target("c"))
    with Ledger.open(place) as ledger:
        ledger.journal.sending(ledger.journal.start(whole, []), whole.targets[0], 0)


def _fields(summary: RunSummary) -> dict[str, Any]:
    return {name: getattr(summary, name) for name in summary.__struct_fields__}


def rows_of(place: Place) -> dict[str, list[Any]]:
    with Ledger.open(place, readonly=True) as ledger:
        return {
            name: sorted(ledger._store.read(f"SELECT * FROM {name}"), key=repr) for name in TABLES
        }


def test_every_table_is_copied() -> None:
    made = {each.split()[2] for each in upgrade(0) if each.startswith("CREATE TABLE")}
    assert made == {*TABLES, "holder"}


def test_a_copy_has_every_row(desk: Desk, place: Place, other: Place) -> None:
    fill(place)
    leave_a_request_in_progress(place)
    before = rows_of(place)
    assert [name for name, rows in before.items() if not rows] == []
    told = desk.run("state", "copy", str(place), str(other))
    assert told.code == 0, told
    assert re.fullmatch(r"Copied and verified 4 runs \(22\d\d rows in all\)\.\n", told.out)
    assert rows_of(other) == before == rows_of(place)
    with Ledger.open(other) as ledger:
        ledger.journal.start(plan(), [])
        assert len(ledger.history()) == 5
    again = desk.run("state", "copy", str(place), str(other))
    assert again.code == 4
    again.one_error("is not empty", "empty")


def test_a_copy_that_fails_leaves_nothing(
    tmp_path: Path, shared_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path)
    digest = ledger_module._digest
    monkeypatch.setattr(
        ledger_module,
        "_digest",
        lambda store, table: (0, 0) if store.name == shared_place else digest(store, table),
    )
    with (
        Ledger.open(tmp_path) as source,
        Ledger.open(shared_place) as copied,
        pytest.raises(LedgerError, match=r"differs from .*: nothing was copied"),
    ):
        source.copy_to(copied)
    assert not any(rows_of(shared_place).values())


def test_a_ledger_in_use_is_not_copied(tmp_path: Path, place: Place) -> None:
    async def with_lock() -> None:
        with Ledger.open(place) as ledger, Ledger.open(tmp_path / "other") as copied:
            async with ledger.hold([NEWS], Clock()):
                with pytest.raises(
                    RefusedError, match=r"is in use: \S*studio-a\S*.NEWS: .*process"
                ):
                    ledger.copy_to(copied)
            run = ledger.journal.start(plan(), [])
            with pytest.raises(RefusedError, match=f"is in use: run {run}"):
                ledger.copy_to(copied)

    asyncio.run(with_lock())


@pytest.mark.parametrize("empty", [True, False])
def test_a_ledger_is_not_copied_to_itself(desk: Desk, place: Place, empty: bool) -> None:
    with Ledger.open(place) as ledger:
        if not empty:
            ledger.memory().remember(target().id, {"a": 1})
    told = desk.run("state", "copy", str(place), str(place))
    assert told.code == 4
    told.one_error("is the same", "another")


def test_what_cannot_be_copied(desk: Desk, tmp_path: Path) -> None:
    desk.run("state", "copy", "nowhere", "other").one_error(
        "no ledger found in nowhere", "ledger.sqlite"
    )
    told = desk.run("state", "copy", "nowhere", "postgresql://a:swordfish@b/c")
    told.one_error("the URL must not contain a password")
    assert "swordfish" not in told.out + told.err
    assert not (tmp_path / "other").exists()


def test_check_shows_what_the_ledger_is(desk: Desk, place: Place) -> None:
    if isinstance(place, Path):
        flags: tuple[str, ...] = ("--state-dir", str(place))
    else:
        desk.write("msauto.toml", f'[state]\nurl = "{place}"\n')
        flags = ()
    fresh = desk.run("state", "check", *flags, "--format", "json")
    shared = isinstance(place, str)
    assert (fresh.code, fresh.json["warnings"]) == ((2, _unsafe()) if shared else (0, []))
    assert fresh.json["kind"].startswith("shared (PostgreSQL 1" if shared else "local (SQLite 3")
    assert fresh.json["settings"]["fsync" if shared else "synchronous"] == (
        "off" if shared else "EXTRA"
    )
    assert fresh.json["bytes"] > 0
    assert fresh.json["commit_seconds"] > 0
    fill(place)

    async def checked() -> None:
        with Ledger.open(place) as ledger:
            async with ledger.hold([NEWS], Clock()):
                ledger.journal.start(plan(), [])
                told = desk.run("state", "check", *flags, "--format", "json").json
                assert (told["rows"]["run"], told["rows"]["memory"]) == (4, 1103)
                ((lock),) = told["locks"]
                assert lock["lock"] in {"studio-a:7901 NEWS", "studio-a-7901-NEWS"}
                assert lock["holder"].startswith(f"run {ledger.journal.next_run[:8]}")
                assert told["died"] == []

    asyncio.run(checked())
    told = desk.run("state", "check", *flags)
    assert told.code == 2
    assert "died: the next run on its servers reads what it left" in told.err
    assert "memory 1,103" in told.out
    with Ledger.open(place) as ledger:
        assert ledger._store.read("SELECT count(*) FROM holder WHERE lock = 'check'") == [(0,)]


def _unsafe() -> list[str]:
    """The server of the tests does not wait for the disk."""
    risk = "after a power failure, the ledger may be lost, and requests may be sent twice"
    return [f"fsync is off on the database server: {risk}"]


def test_check_names_a_server_that_commits_before_it_is_durable(
    desk: Desk, shared_place: str
) -> None:
    with psycopg.connect(shared_place, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {connection.info.dbname} SET synchronous_commit = off")
    try:
        desk.write("msauto.toml", f'[state]\nurl = "{shared_place}"\n')
        told = desk.run("state", "check")
        assert told.code == 2
        assert "synchronous_commit is off on the database server: msauto sets it to on" in told.err
    finally:
        with psycopg.connect(shared_place, autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {connection.info.dbname} RESET synchronous_commit")
