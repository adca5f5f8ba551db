"""A ledger that cannot be used is an error with path, cause and remedy; reading leaves no trace."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from msauto.errors import LedgerError
from msauto.ledger import sqlite_store, store
from msauto.ledger.ledger import Ledger
from msauto.ledger.sqlite_store import SqliteStore
from msauto.model.result import TargetResult
from msauto.playbook.settings_file import state_folder
from tests.tables import table
from tests.unit.ledger.ledger_plans import plan, target


def listing(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


def refuse(folder: Path, words: str, *, readonly: bool = False) -> None:
    with (
        pytest.raises(LedgerError, match=words) as caught,
        Ledger.open(folder, readonly=readonly) as ledger,
    ):
        ledger.history()
    assert str(folder / "ledger.sqlite") in caught.value.message
    assert caught.value.remedy


def test_planning_without_a_ledger_makes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with Ledger.open(folder, readonly=True) as ledger:
        assert ledger.memory().recall(target().id) == {}
        assert ledger.history() == []
        assert ledger.empty
        with pytest.raises(LedgerError, match="is open for reading"):
            ledger.journal.start(plan(), [])
    assert not folder.exists()


def test_planning_with_a_ledger_changes_nothing(tmp_path: Path) -> None:
    with Ledger.open(tmp_path) as ledger:
        ledger.memory().remember(target().id, {"a": 1})
    before = listing(tmp_path)
    with Ledger.open(tmp_path, readonly=True) as ledger:
        assert ledger.memory().recall(target().id) == {"a": 1}
        assert listing(tmp_path) == before
    assert listing(tmp_path) == before


def test_planning_after_a_crash_makes_no_file(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from msauto.ledger.ledger import Ledger;"
        "from tests.unit.ledger.ledger_plans import target;"
        "Ledger.open(sys.argv[1]).memory().remember(target().id, {'a': 1}); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    before = set(listing(tmp_path))
    assert str(tmp_path / "ledger.sqlite-wal") in before
    with Ledger.open(tmp_path, readonly=True) as ledger:
        assert ledger.memory().recall(target().id) == {"a": 1}
    assert set(listing(tmp_path)) == before


def test_planning_in_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    with Ledger.open(tmp_path) as ledger:
        ledger.memory().remember(target().id, {"a": 1})
    (tmp_path / "ledger.sqlite").chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        with Ledger.open(tmp_path, readonly=True) as ledger:
            assert ledger.memory().recall(target().id) == {"a": 1}
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("readonly", [True, False])
@pytest.mark.parametrize("inside", ["", "deeper", "deeper/still"])
def test_a_file_in_place_of_the_folder(tmp_path: Path, inside: str, readonly: bool) -> None:
    (tmp_path / "state").write_text("a file")
    refuse(
        tmp_path / "state" / inside,
        f"cannot be used: {tmp_path}/state is not a folder",
        readonly=readonly,
    )


@pytest.mark.parametrize("readonly", [True, False])
def test_a_link_to_nowhere_in_place_of_the_folder(tmp_path: Path, readonly: bool) -> None:
    (tmp_path / "state").symlink_to("gone")
    (tmp_path / "loop").symlink_to("loop")
    for folder in (tmp_path / "state", tmp_path / "state/deeper", tmp_path / "loop"):
        refuse(folder, "is a link to a folder that does not exist", readonly=readonly)


@pytest.mark.parametrize("readonly", [True, False])
def test_a_folder_in_place_of_the_file(tmp_path: Path, readonly: bool) -> None:
    (tmp_path / "ledger.sqlite").mkdir()
    refuse(tmp_path, "cannot be", readonly=readonly)


@pytest.mark.parametrize("readonly", [True, False])
@pytest.mark.parametrize(
    "name", ["ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-journal", "ledger.sqlite-shm"]
)
def test_a_link_in_place_of_a_file(tmp_path: Path, name: str, readonly: bool) -> None:
    Ledger.open(tmp_path / "state").close()
    victim = tmp_path / "victim"
    (tmp_path / "state" / name).unlink(missing_ok=True)
    (tmp_path / "state" / name).symlink_to(victim)
    refuse(
        tmp_path / "state", f"{name} of the ledger cannot be used: it is a link", readonly=readonly
    )
    assert not victim.exists()


@pytest.mark.parametrize("readonly", [True, False])
def test_a_user_without_a_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, readonly: bool
) -> None:
    """A container may give its user a number alone: no HOME, and no entry in passwd."""

    def no_entry(number: int) -> None:
        raise KeyError(number)

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", no_entry)
    refuse_folder(
        state_folder(None, None),
        "the home of this user is not known",
        "--state-dir",
        readonly=readonly,
    )
    assert not list(tmp_path.iterdir())
    Ledger.open(state_folder(str(tmp_path / "state"), None)).close()
    assert (tmp_path / "state" / "ledger.sqlite").exists()


OTHER = 4242
"""The number of another user."""


def as_other(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let another user own a file: only root can give one away; else this test runs as the other."""
    if os.getuid() == 0:
        os.chown(path, OTHER, OTHER, follow_symlinks=False)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: OTHER)


@pytest.mark.parametrize("readonly", [True, False])
def test_a_folder_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, readonly: bool
) -> None:
    Ledger.open(tmp_path / "state").close()
    as_other(tmp_path / "state", monkeypatch)
    refuse_folder(
        tmp_path / "state", "owns it, and this is the user", "chown -R", readonly=readonly
    )


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770, 0o702])
@pytest.mark.parametrize("readonly", [True, False])
def test_a_folder_where_others_may_write(tmp_path: Path, mode: int, readonly: bool) -> None:
    Ledger.open(tmp_path / "state").close()
    (tmp_path / "state").chmod(mode)
    refuse_folder(
        tmp_path / "state", "other users may write there", "chmod go-w", readonly=readonly
    )


@pytest.mark.parametrize("readonly", [True, False])
def test_a_folder_that_every_user_may_replace(tmp_path: Path, readonly: bool) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    refuse_folder(
        tmp_path / "open" / "deep" / "state",
        "every user may put another one",
        "chmod o-w",
        readonly=readonly,
    )


def test_a_folder_in_one_where_each_user_replaces_only_its_own(tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    (tmp_path / "temporary").chmod(0o1777)
    Ledger.open(tmp_path / "temporary" / "state").close()


def test_a_link_of_another_user_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Ledger.open(tmp_path / "own" / "state").close()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "own")
    with Ledger.open(link / "state") as ledger:  # one of this user is a choice
        assert ledger.empty
    as_other(link, monkeypatch)
    refuse_folder(link / "state", "owns", "--state-dir", readonly=False)


def refuse_folder(folder: Path, words: str, remedy: str, *, readonly: bool) -> None:
    with pytest.raises(LedgerError, match=words) as caught:
        Ledger.open(folder, readonly=readonly)
    assert remedy in caught.value.remedy


def test_the_ledger_is_its_owners_alone(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with Ledger.open(folder) as ledger:
        ledger.memory().remember(target().id, {"a": 1})
        modes = {path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert modes == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("readonly", [False, True])
def test_garbage(tmp_path: Path, readonly: bool) -> None:
    (tmp_path / "ledger.sqlite").write_bytes(b"this is no ledger at all\n" * 500)
    refuse(tmp_path, "is not a ledger", readonly=readonly)


def test_damaged(tmp_path: Path) -> None:
    with Ledger.open(tmp_path) as ledger:
        for number in range(200):
            ledger.memory().remember(target(f"clip {number}").id, {"a": "x" * 200})
    path = tmp_path / "ledger.sqlite"
    content = bytearray(path.read_bytes())
    content[4096 * 3 : 4096 * 6] = b"\x7f" * (4096 * 3)
    path.write_bytes(content)
    refuse(tmp_path, "is damaged")


def test_cut_short(tmp_path: Path) -> None:
    with Ledger.open(tmp_path) as ledger:
        for number in range(200):
            ledger.memory().remember(target(f"clip {number}").id, {"a": "x" * 200})
    path = tmp_path / "ledger.sqlite"
    os.truncate(path, path.stat().st_size // 2)
    refuse(tmp_path, "is damaged")


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize(("more", "age"), [(1, "a newer msauto"), (-3, "an older msauto")])
def test_written_by_another_msauto(tmp_path: Path, readonly: bool, more: int, age: str) -> None:
    Ledger.open(tmp_path).close()
    with sqlite3.connect(tmp_path / "ledger.sqlite") as connection:
        connection.execute(f"PRAGMA user_version = {store.VERSION + more}")
    connection.close()
    refuse(tmp_path, age, readonly=readonly)


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize(
    "spoil",
    [
        "DROP TABLE run",
        "ALTER TABLE run DROP COLUMN host",
        "UPDATE run SET host = CAST(x'ff' AS TEXT)",
    ],
)
def test_what_of_it_is_missing_or_is_no_text(tmp_path: Path, spoil: str, readonly: bool) -> None:
    with Ledger.open(tmp_path) as ledger:
        ledger.journal.start(plan(), [])
    with sqlite3.connect(tmp_path / "ledger.sqlite") as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(spoil)
    connection.close()
    refuse(tmp_path, "is damaged", readonly=readonly)


def test_another_programs_database(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "ledger.sqlite") as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = listing(tmp_path)
    refuse(tmp_path, "another program")
    assert listing(tmp_path) == before


def test_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_store, "BUSY", 0.05)
    Ledger.open(tmp_path).close()
    other = sqlite3.connect(tmp_path / "ledger.sqlite", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    refuse(tmp_path, "is locked by another program")
    other.execute("ROLLBACK")
    ledger = Ledger.open(tmp_path)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="is locked"):
        ledger.journal.start(plan(), [])
    other.execute("ROLLBACK")
    ledger.journal.start(plan(), [])
    ledger.close()
    other.close()


def test_full(tmp_path: Path) -> None:
    with Ledger.open(tmp_path) as ledger:
        assert isinstance(ledger._store, SqliteStore)
        connection = ledger._store._connection
        assert connection is not None
        connection.execute("PRAGMA max_page_count = 12")
        with pytest.raises(LedgerError, match="disk is full"):
            ledger.journal.start(plan(*(target(f"clip {number}") for number in range(100))), [])
        assert ledger.history() == []
        assert not list((tmp_path / "runs").iterdir())


def test_the_folder_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    refuse(tmp_path / "state", "cannot be used")


def test_read_only(tmp_path: Path) -> None:
    Ledger.open(tmp_path).close()
    connection = sqlite3.connect(f"file:{tmp_path}/ledger.sqlite?mode=ro", uri=True)
    with Ledger.open(tmp_path) as ledger:
        assert isinstance(ledger._store, SqliteStore)
        real, ledger._store._connection = ledger._store._connection, connection
        with pytest.raises(LedgerError, match="read-only"):
            ledger.memory().remember(target().id, {"a": 1})
        ledger._store._connection = real
    connection.close()


def test_that_it_is_read_only_is_found_when_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not once a run has planned, and the user has agreed to it."""
    Ledger.open(tmp_path).close()
    connect = sqlite3.connect

    def connect_read_only(path: Path, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(f"file:{path}?mode=ro", uri=True, **options)
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect_read_only)
    with pytest.raises(LedgerError, match="is read-only"):
        Ledger.open(tmp_path)


def test_two_writers_take_turns(tmp_path: Path) -> None:
    with Ledger.open(tmp_path) as one, Ledger.open(tmp_path) as two:
        one.memory().remember(target("a").id, {"a": 1})
        two.memory().remember(target("b").id, {"b": 1})
        run = one.journal.start(plan(), [])
        assert two.history()[0].run == run
        assert one.memory().recall(target("b").id) == {"b": 1}


@pytest.mark.parametrize("replaced", [False, True])
def test_taken_away_in_the_middle(tmp_path: Path, replaced: bool) -> None:
    with Ledger.open(tmp_path) as ledger:
        planned = plan(target())
        run = ledger.journal.start(planned, [])
        for path in tmp_path.glob("ledger*"):
            path.unlink()
        if replaced:
            Ledger.open(tmp_path).close()
        with pytest.raises(
            LedgerError, match="was removed or replaced while it was in use"
        ) as caught:
            ledger.journal.sending(run, planned.targets[0], 0)
        assert caught.value.remedy


def test_no_room_for_the_tables(tmp_path: Path) -> None:
    code = (
        "import resource, sys; from msauto.ledger.ledger import Ledger;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); Ledger.open(sys.argv[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert "LedgerError" in done.stderr
    assert "rollback" not in done.stderr.splitlines()[-2], done.stderr


def read_all(ledger: Ledger, run: str) -> None:
    ledger.attempts()
    ledger.run_details(run)
    ledger.memory().recall(target().id)


@table("ledger/damage", "spoil")
def test_what_somebody_else_wrote_is_damage(tmp_path: Path, spoil: str) -> None:
    with Ledger.open(tmp_path) as ledger:
        whole = plan(target(), target("done", 0))
        run = ledger.journal.start(whole, [])
        ledger.journal.sending(run, whole.targets[0], 0)
        ledger.journal.finished(run, TargetResult(whole.targets[1], "unchanged"))
        ledger.memory().remember(target().id, {"a": 1})
    connection = sqlite3.connect(tmp_path / "ledger.sqlite")
    assert connection.execute(spoil).rowcount > 0
    connection.commit()
    connection.close()
    with (
        Ledger.open(tmp_path) as ledger,
        pytest.raises(LedgerError, match="is damaged: it contains data") as caught,
    ):
        read_all(ledger, run)
    assert caught.value.remedy


def test_a_ledger_that_another_process_creates_meanwhile_is_no_foreign_file(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    statements = count()

    def create(_: str) -> None:
        if next(statements) == 0:
            sqlite_store.connect_to_write(path).close()

    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.set_trace_callback(create)
        sqlite_store._version_of(connection)
        assert next(statements) > 0
        assert sqlite_store._version_of(connection)
