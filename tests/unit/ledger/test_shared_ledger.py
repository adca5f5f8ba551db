"""What only a shared ledger does: workers of another process, errors of its own, texts that PostgreSQL cannot store."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import psycopg
import pytest

from msauto.errors import LedgerError, LockedError
from msauto.ledger import journal
from msauto.ledger.journal import PlanMemory
from msauto.ledger.ledger import Ledger
from msauto.ledger.locks import LockScope
from msauto.model.ledger_url import LedgerUrl, PasswordSource, parse_ledger_url
from msauto.model.plan import TargetId
from msauto.model.result import RequestResult, Result, TargetResult
from msauto.plugins.postgres import postgres_store
from msauto.plugins.postgres.postgres_store import PostgresStore, security_warnings
from msauto.secrets.redacted_plans import SALT, SecretMemory
from msauto.secrets.redaction import Secrets
from tests.postgres import PostgresServer, own_server
from tests.stage import entered
from tests.unit.ledger.ledger_plans import channel, plan, target
from tests.unit.ledger.test_ledger_locks import NEWS, OLD, Clock, take


@contextmanager
def scoped(ledger: Ledger, *scopes: LockScope) -> Iterator[None]:
    """Hold scopes as the command of a run does."""
    with entered(ledger.hold(scopes, Clock())):
        yield


@contextmanager
def joined(
    worker: Ledger, command: Ledger, run: str, *scopes: LockScope, server: str = "studio-a"
) -> Iterator[None]:
    """Take part in a run as a worker does."""
    _, session = command.admit_workers()
    with entered(worker.join(run, session, server, scopes, Clock())):
        yield


def end_sessions(place: str) -> None:
    """End all sessions of a database, as its administrator does."""
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND datname = current_database()"
        )


def test_a_worker_writes_to_the_run_of_another_process(shared_place: str) -> None:
    whole = plan()
    first, second = whole.targets
    with Ledger.open(shared_place) as command, Ledger.open(shared_place) as worker:
        command.admit_workers()
        with scoped(command, NEWS):
            run = command.journal.start(whole, ["news.yml"])
            with joined(worker, command, run, NEWS):
                worker.journal.attach(run, {1: second}, {})
                worker.journal.sending(run, second, 0)
                worker.journal.settled(run, second, 0, RequestResult("done", 200, "", 1))
                done = TargetResult(
                    second, "changed", requests=(RequestResult("done", 200, "", 1),)
                )
                worker.journal.finished(run, done)
                with pytest.raises(LedgerError, match="is not among the targets of this run"):
                    worker.journal.sending(run, first, 0)
                worker.journal.leave(run)
            records = command.target_records(run, [1])
            assert list(records) == [1]
            assert (records[1].target, records[1].outcome) == (second, "changed")
            assert [each.state for each in records[1].requests] == ["done"]
            assert command.target_records(run, []) == {}
            command.journal.end(run, Result(run, whole, (TargetResult(first, "unchanged"), done)))
            (summary,) = worker.history()
            assert (summary.status, summary.summary["sent"]) == ("ok", 1)


def test_a_worker_continues_the_record_of_another_one(shared_place: str) -> None:
    whole = plan()
    second = whole.targets[1]
    with (
        Ledger.open(shared_place) as command,
        Ledger.open(shared_place) as one,
        Ledger.open(shared_place) as two,
    ):
        command.admit_workers()
        with scoped(command, NEWS):
            run = command.journal.start(whole, ["news.yml"])
            with joined(one, command, run, NEWS):
                one.journal.attach(run, {1: second}, {})
                one.journal.sending(run, second, 0)
                one.journal.leave(run)
            before = command.target_records(run, [0, 1], begun=True)
            assert list(before) == [1]
            with joined(two, command, run, NEWS):
                two.journal.attach(run, {1: second}, before)
                two.journal.settled(run, second, 0, RequestResult("done", 200, "", 1))
                two.journal.leave(run)
            after = command.target_records(run, [1])[1]
            assert (after.begun, after.requests[0].sent) == (
                before[1].begun,
                before[1].requests[0].sent,
            )
            assert (after.requests[0].state, after.requests[0].tries) == ("done", 1)


def test_one_worker_at_a_time_applies_a_server(shared_place: str) -> None:
    with (
        Ledger.open(shared_place) as command,
        Ledger.open(shared_place) as one,
        Ledger.open(shared_place) as two,
    ):
        command.admit_workers()
        with scoped(command, NEWS, OLD):
            run = command.journal.start(plan(), [])
            with joined(one, command, run, NEWS):
                with joined(two, command, run, OLD, server="studio-b"):
                    assert one.is_alive(run)
                with (
                    pytest.raises(LedgerError, match="studio-a is still held by run"),
                    joined(two, command, run, NEWS),
                ):
                    raise AssertionError
                assert not command.bar_worker(run, "studio-a")
            with joined(two, command, run, NEWS):
                pass


def test_workers_of_a_dead_command_keep_new_runs_out(shared_place: str) -> None:
    with Ledger.open(shared_place) as worker:
        command = Ledger.open(shared_place)
        command.admit_workers()
        with scoped(command, NEWS, OLD):
            run = command.journal.start(plan(), [])
            with joined(worker, command, run, NEWS):
                command.close()
                assert worker.is_alive(run)
                assert [each.status for each in worker.history()] == ["running"], (
                    "its worker is not finished"
                )
                asyncio.run(take(shared_place, OLD))
                with pytest.raises(LockedError, match=f"NEWS is locked by run {run}, process"):
                    asyncio.run(take(shared_place, NEWS))
                with Ledger.open(shared_place) as other:
                    assert not other.journal.reopen(run, plan().targets)
        asyncio.run(take(shared_place, NEWS))
        assert [each.status for each in worker.history()] == ["died"]
        with Ledger.open(shared_place) as other:
            assert other.journal.reopen(run, plan().targets)


def test_no_worker_begins_without_its_command(shared_place: str) -> None:
    whole = plan()
    with Ledger.open(shared_place) as command, Ledger.open(shared_place) as worker:
        _, session = command.admit_workers()

        def refused(*scopes: LockScope, why: str = r"has ended, or its session is lost") -> None:
            joining = worker.join(run, session, "studio-a", scopes, Clock())
            with pytest.raises(LedgerError, match=why), entered(joining):
                raise AssertionError

        with scoped(command, NEWS):
            run = command.journal.start(whole, [])
            with Ledger.open(shared_place) as another, scoped(another, OLD):
                refused(NEWS, OLD, why=f"a worker of run {run} cannot begin: scope .* is held by")
            command.journal.leave(run)
            refused(NEWS)
            with Ledger.open(
                shared_place
            ) as settling:  # the run that settles it admits workers of its own
                settling.admit_workers()
                assert settling.journal.reopen(run, whole.targets)
                refused(NEWS)
                with joined(worker, settling, run, NEWS):
                    pass
                settling.journal.end(run, Result(run, whole, ()))
            refused(NEWS)
        asyncio.run(take(shared_place, NEWS))


def test_a_command_that_stops_keeps_workers_from_beginning(shared_place: str) -> None:
    with Ledger.open(shared_place) as command, Ledger.open(shared_place) as worker:
        command.admit_workers()
        with scoped(command, NEWS):
            run = command.journal.start(plan(), [])
            with joined(worker, command, run, NEWS):
                assert not command.bar_worker(run, "studio-a")
            assert command.bar_worker(run, "studio-a")
            with (
                pytest.raises(LedgerError, match="studio-a is still held by run"),
                joined(worker, command, run, NEWS),
            ):
                raise AssertionError
            command.journal.leave(run)
            assert [each.status for each in worker.history()] == ["died"]


@pytest.mark.parametrize(
    "call", [lambda ledger: ledger.admit_workers(), lambda ledger: ledger.target_records("r", [])]
)
def test_a_local_ledger_has_no_workers(tmp_path: Path, call: Callable[[Ledger], object]) -> None:
    with Ledger.open(tmp_path) as ledger, pytest.raises(LedgerError, match="is local") as caught:
        call(ledger)
    assert "url in [state]" in caught.value.remedy


@pytest.mark.parametrize("text", ["a\0b", "\x1a", "\x1a0", "\0\x1a1\x1a", "plain %s ? 100%"])
def test_any_text_comes_back(shared_place: str, text: str) -> None:
    clip = TargetId("studio-a", "NEWS", "asset", text)
    with Ledger.open(shared_place) as ledger:
        ledger.memory().remember(clip, {text: [text]})
        assert ledger.memory().recall(clip) == {text: [text]}
        assert ledger.memory().recall(
            TargetId("studio-a", "NEWS", "asset", text.replace("\0", "\x1a0"))
        ) in (
            {},
            {text: [text]},
        )
    assert postgres_store._decoded(postgres_store._encoded(text)) == text


def test_planning_without_tables_makes_none(shared_place: str) -> None:
    with Ledger.open(shared_place, readonly=True) as ledger:
        assert ledger.memory().recall(target().id) == {}
        assert ledger.history() == []
        assert ledger.empty
        with pytest.raises(LedgerError, match="is open for reading"):
            ledger.journal.start(plan(), [])
    assert not Ledger.exists(LedgerUrl(shared_place))
    Ledger.open(shared_place).close()
    assert Ledger.exists(LedgerUrl(shared_place))


def test_a_lost_session_refuses_everything_after_it(shared_place: str) -> None:
    with Ledger.open(shared_place) as ledger:
        planned = plan(target(), channel())
        run = ledger.journal.start(planned, [])
        ledger.journal.check()
        end_sessions(shared_place)
        with pytest.raises(LedgerError, match=r"the session with the ledger .* is lost") as caught:
            ledger.journal.check()
        assert "run it again" in caught.value.remedy
        with pytest.raises(LedgerError, match="is lost"):
            ledger.journal.sending(run, planned.targets[0], 0)
        with pytest.raises(LedgerError, match="is lost"):
            ledger.journal.commit([lambda: None])
    with Ledger.open(shared_place) as ledger:
        assert ledger.history()[0].status == "died"


def test_a_commit_notices_that_the_session_is_lost(shared_place: str) -> None:
    with Ledger.open(shared_place) as ledger:
        held = ledger._store._begin  # after the check: the session ends between the two

        def begin(*, alone: bool) -> None:
            held(alone=alone)
            end_sessions(shared_place)

        ledger._store._begin = begin  # type: ignore[method-assign]
        with pytest.raises(LedgerError, match="is lost"):
            ledger.journal.commit(
                [lambda: ledger.memory().remember(target().id, {"a": 1})]
            ).result()
    with Ledger.open(shared_place) as ledger:
        assert ledger.memory().recall(target().id) == {}


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"cannot be used: connection") as caught:
        Ledger.open(f"postgresql:///x?host={tmp_path}")
    assert "[state]" in caught.value.remedy


@pytest.mark.parametrize(
    "url", ["postgresql://a:swordfish@h/x", "postgresql://h/x?password=swordfish"]
)
def test_a_url_with_a_password_is_refused(url: str) -> None:
    with pytest.raises(LedgerError, match="must not contain a password") as caught:
        Ledger.open(url)
    assert "swordfish" not in str(caught.value)
    assert "password_env" in caught.value.remedy


def test_a_password_that_is_not_there(tmp_path: Path) -> None:
    for source in (
        PasswordSource("env", "MSAUTO_NO_SUCH"),
        PasswordSource("file", str(tmp_path / "none")),
    ):
        with pytest.raises(
            LedgerError, match=r"the password of the ledger: .*(is not set|cannot read)"
        ):
            Ledger.open(LedgerUrl("postgresql:///x", source))


def test_the_scheme_is_as_libpq_takes_it() -> None:
    assert parse_ledger_url("PostgreSQL://ada@Db/Msauto").url == "postgresql://ada@Db/Msauto"


@pytest.mark.scale
def test_no_password_in_clear_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSAUTO_LEDGER_PASSWORD", "swordfish")
    source = PasswordSource("env", "MSAUTO_LEDGER_PASSWORD")
    with own_server() as server:
        server.execute("CREATE ROLE ada LOGIN SUPERUSER PASSWORD 'swordfish'")
        (server.data / "pg_hba.conf").write_text(
            "local all ada password\nlocal all all trust\n", encoding="utf-8"
        )
        server.execute("SELECT pg_reload_conf()")
        url = server.url("ledger").replace("user=msauto", "user=ada")
        with pytest.raises(LedgerError, match="asks for the password in clear text") as caught:
            Ledger.open(LedgerUrl(url, source))
        assert "scram-sha-256" in caught.value.remedy
        with Ledger.open(LedgerUrl(f"{url}&require_auth=password", source)) as ledger:
            assert ledger.warnings == ()
        (server.data / "pg_hba.conf").write_text(
            "local all ada scram-sha-256\nlocal all all trust\n", encoding="utf-8"
        )
        server.execute("SELECT pg_reload_conf()")
        Ledger.open(LedgerUrl(url, source)).close()


@pytest.mark.parametrize(
    ("host", "sslmode", "libpq", "words"),
    [
        ("/run/postgresql", "prefer", 150_000, []),
        ("127.0.0.1", "disable", 160_000, []),
        ("::1", "prefer", 160_000, []),
        ("localhost", "prefer", 160_000, []),
        ("db.example.com", "verify-full", 160_000, []),
        ("10.0.0.7", "verify-ca", 170_000, []),
        ("10.0.0.7", "require", 170_000, ["sslmode is require"]),
        ("db.example.com", "prefer", 150_000, ["sslmode is prefer", "in clear text"]),
    ],
)
def test_a_warning_of_who_could_listen(
    host: str, sslmode: str, libpq: int, words: list[str]
) -> None:
    warnings = security_warnings(LedgerUrl("postgresql:///x"), host, sslmode, libpq)
    assert len(warnings) == len(words)
    assert all(each in warning for each, warning in zip(words, warnings, strict=True))


def test_a_newer_ledger_is_refused(shared_place: str) -> None:
    Ledger.open(shared_place).close()
    with psycopg.connect(shared_place) as connection:
        connection.execute("UPDATE msauto.ledger_version SET version = version + 1")
    for readonly in (True, False):
        with pytest.raises(LedgerError, match="newer msauto") as caught:
            Ledger.open(shared_place, readonly=readonly)
        assert caught.value.remedy


def test_the_schema_of_another_program_is_refused(shared_place: str) -> None:
    with psycopg.connect(shared_place) as connection:
        connection.execute("CREATE SCHEMA msauto")
        connection.execute("CREATE TABLE msauto.theirs (x int)")
    for readonly in (True, False):
        with pytest.raises(LedgerError, match="is that of another program"):
            Ledger.open(shared_place, readonly=readonly)


def test_commits_are_durable_also_where_the_server_does_not_ask_for_it(shared_place: str) -> None:
    with psycopg.connect(shared_place, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {connection.info.dbname} SET synchronous_commit = off")
    try:
        with Ledger.open(shared_place) as ledger:
            assert isinstance(ledger._store, PostgresStore)
            assert ledger._store.read("SHOW synchronous_commit") == [("on",)]
    finally:
        with psycopg.connect(shared_place, autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {connection.info.dbname} RESET synchronous_commit")


def test_a_plan_of_many_targets_costs_few_round_trips(shared_place: str) -> None:
    clips = [TargetId("studio-a", "NEWS", "asset", f"clip {number}") for number in range(400)]
    other = TargetId("studio-a", "OLD", "asset", "clip 1")
    with Ledger.open(shared_place) as ledger:
        with ledger.journal.together():
            for clip in clips[::2]:
                ledger.memory().remember(clip, {"field:comment": clip.name})
            ledger.memory().remember(other, {"x": 1})
        memory = ledger.memory(for_plan=True)
        trips, send = [], ledger._store._ask  # type: ignore[attr-defined]

        def counted(*values: object, **options: object) -> object:
            trips.append(values)
            return send(*values, **options)

        ledger._store._ask = counted  # type: ignore[attr-defined]
        found = [memory.recall(clip) for clip in clips]
        assert len(trips) < 40
        assert found == [
            {} if number % 2 else {"field:comment": clip.name} for number, clip in enumerate(clips)
        ]
        assert memory.recall(other) == {"x": 1}
        assert memory.of_server("studio-a").recall(clips[2]) == {"field:comment": "clip 2"}


def test_a_plan_of_few_targets_does_not_read_a_large_memory(
    shared_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "_MOST", 1000)
    clips = [TargetId("studio-a", "NEWS", "asset", f"clip {number}") for number in range(40)]
    with Ledger.open(shared_place) as ledger:
        with ledger.journal.together():
            for clip in clips:
                ledger.memory().remember(clip, {f"field:{number}": number for number in range(41)})
        memory = ledger.memory(for_plan=True)
        assert isinstance(memory, PlanMemory)
        assert [len(memory.recall(clip)) for clip in clips] == [41] * 40
        assert memory._rows_of_databases == {}


def test_the_roles_of_the_how_to_are_enough(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    """A role that owns its database, and one that may only read."""
    suffix = secrets.token_hex(4)
    writer, reader = f"writer_{suffix}", f"reader_{suffix}"
    for role in (writer, reader):
        postgres_server.execute(f"CREATE ROLE {role} LOGIN")
    postgres_server.execute(
        f"CREATE DATABASE {writer} OWNER {writer} ENCODING 'UTF8' TEMPLATE template0"
    )
    place, read = (
        postgres_server.url(writer).replace("user=msauto", f"user={role}")
        for role in (writer, reader)
    )
    whole = plan()
    with Ledger.open(place) as ledger:
        ledger.admit_workers()
        with scoped(ledger, NEWS):
            run = ledger.journal.start(whole, [])
            ledger.memory().remember(target().id, {"a": 1})
            with Ledger.open(place) as worker, joined(worker, ledger, run, NEWS):
                assert worker.is_alive(run)
            with pytest.raises(LockedError, match=f"is locked by run {run}"):
                asyncio.run(take(place, NEWS))
            ledger.journal.end(run, Result(run, whole, ()))
            assert ledger.prune(keep_runs=1) == 0
    with pytest.raises(LedgerError, match="does not let this role read and write"):
        Ledger.open(read, readonly=True)
    for statement in ("USAGE ON SCHEMA", "SELECT ON ALL TABLES IN SCHEMA"):
        postgres_server.execute(f"GRANT {statement} msauto TO {reader}", writer)
    with Ledger.open(read, readonly=True) as ledger:
        assert ledger.memory().recall(target().id) == {"a": 1}
        assert [each.status for each in ledger.history()] == ["ok"]
    with (
        Ledger.open(read) as ledger,
        pytest.raises(LedgerError, match="does not let this role read and write") as caught,
    ):
        ledger.journal.start(whole, [])
    assert "share-a-ledger" in caught.value.remedy
    with Ledger.open(place) as ledger, Ledger.open(tmp_path) as copied:
        assert ledger.facts(monotonic).rows["run"] == 1
        assert ledger.copy_to(copied)["run"] == 1


def test_two_first_runs_agree_on_one_salt(shared_place: str) -> None:
    """With a salt of its own, a run would not recognize that a command with a secret has run already."""
    Ledger.open(shared_place).close()

    def salt(_: int) -> str:
        with Ledger.open(shared_place) as ledger:
            memory = SecretMemory(ledger.memory(), Secrets())
            memory.settle_salt(ledger.journal)
            return str(ledger.memory().recall(SALT)["salt"])

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(salt, range(8)))) == 1


def test_a_database_of_another_encoding_is_refused(postgres_server: PostgresServer) -> None:
    name = f"latin_{secrets.token_hex(4)}"
    postgres_server.execute(
        f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"
    )
    with pytest.raises(LedgerError, match="has the encoding LATIN1, not UTF8"):
        Ledger.open(postgres_server.url(name))


def test_a_session_that_was_quiet_is_asked_before_a_request_is_sent(shared_place: str) -> None:
    with Ledger.open(shared_place) as ledger:
        store = ledger._store
        assert isinstance(store, PostgresStore)
        ledger.memory().remember(target().id, {"a": 1})
        answered = store._answered
        ledger.journal.check()
        assert store._answered == answered, "it has just answered"
        store._answered -= 6
        ledger.journal.check()
        assert store._answered > answered
