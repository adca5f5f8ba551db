"""The shared ledger: one session with PostgreSQL, in which the writes of a transaction take one round trip.

The writes of a transaction are queued, and sent with its COMMIT in one pipeline. The session holds the locks of the
run as well (:mod:`msauto.ledger.locks`). So a commit that succeeds shows that they are still held. After the
session is lost, nothing succeeds, and it is not opened again: another run may have taken the locks.

The tables are in the schema ``msauto`` of a database. A commit that returns survives a crash of the server
(``synchronous_commit``). If the network is cut, both sides end the session after about :data:`SILENCE` seconds.
"""

from __future__ import annotations

import os
import re
import select
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import lru_cache
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from msauto.errors import LedgerError, MsautoError
from msauto.ledger.store import (
    VERSION,
    ForeignError,
    Properties,
    Row,
    Store,
    check_version,
    upgrade,
)
from msauto.model.ledger_url import LedgerUrl, PasswordSource
from msauto.model.server import is_loopback
from msauto.secrets.sources import secret_in_file, secret_in_keyring

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Row]
    Cursor = psycopg.Cursor[Row]

SCHEMA = "msauto"
SILENCE = 15.0
"""Seconds after which a session without an answer is lost, on both sides."""
_KEEPALIVE = {"keepalives_idle": 5, "keepalives_interval": 3, "keepalives_count": 3}
"""Of an idle session: 5 + 3 x 3 seconds."""
_OLDEST = 14
_REFUSES_CLEAR_TEXT = 160_000  # the version of libpq that knows `require_auth`
_AUTHENTICATION = "!password,!md5"
_CONNECT = 10  # seconds
_CREATING = 0x6D73617574  # a lock that only one process that makes the tables holds
_DURABLE = {("on",), ("local",), ("remote_write",), ("remote_apply",)}

_SETTINGS = f"""
    SET search_path = {SCHEMA}, pg_catalog;
    SET client_min_messages = error;
    SET default_transaction_isolation = 'read committed';
    SET idle_session_timeout = 0; SET idle_in_transaction_session_timeout = 0;
    SET statement_timeout = 0; SET lock_timeout = 0;
    SET tcp_keepalives_idle = {_KEEPALIVE["keepalives_idle"]};
    SET tcp_keepalives_interval = {_KEEPALIVE["keepalives_interval"]};
    SET tcp_keepalives_count = {_KEEPALIVE["keepalives_count"]};
    SET tcp_user_timeout = {int(SILENCE * 1000)}"""
_PROVEN = 5.0  # seconds: an answer shows for so long that the server has not released the locks
_PROPERTIES = """
    SELECT split_part(current_setting('server_version'), ' ', 1), (SELECT version FROM ledger_version),
    (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
     WHERE c.relnamespace = 'msauto'::regnamespace AND c.relkind = 'r')"""
_DURABILITY = """
    SELECT name, reset_val FROM pg_settings
    WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') ORDER BY name"""
_RISKS = {
    "fsync": "after a power failure, the ledger may be lost, and requests may be sent twice",
    "full_page_writes": "after a power failure, the ledger may be damaged",
    "synchronous_commit": "msauto sets it to on for its own sessions, but other programs may lose commits",
}
_LONG = 600.0  # seconds: reading the whole history, or removing most of it
_QUEUED = 1000  # writes that are sent together at most
_JOINED = 100  # rows that one statement inserts at most
_ALONE = 0x6D7361616C  # the lock of `together(alone=True)`

_NEXT_RUN = "the next run, from any machine, reads what this one left"
_LOST_REMEDY = f"run it again once the database server can be reached: {_NEXT_RUN}"


class PostgresStore(Store):
    """The tables in the schema ``msauto`` of a database. Opened for reading without them, it is empty.

    ``held`` counts the locks that this session holds, by name. ``session`` is its process of the database server.
    """

    damaged_remedy = "restore a backup of its schema msauto, if there is one; another program may have written there"

    def __init__(self, url: LedgerUrl, *, readonly: bool) -> None:
        super().__init__(str(url), readonly=readonly)
        self.url = url
        self.held: Counter[str] = Counter()
        self._psycopg = load_psycopg()
        self._queue: list[tuple[str, Row]] = []
        self._begun = False
        self._alone = False
        self._lost: LedgerError | None = None
        self._answered = monotonic()  # when the last request was sent that the server has answered
        self._connection: Connection | None = None
        self._watch: _Watch | None = None
        with self._translated():
            connection = connect(url)
        self._watch = _Watch(connection.fileno())
        self._connection = connection
        sslmode = connection.info.get_parameters().get("sslmode", "prefer")
        host = connection.info.hostaddr or connection.info.host
        self.warnings = security_warnings(url, host, sslmode, self._psycopg.pq.version())
        try:
            with self._answer(_LONG):
                if readonly:
                    version = _version(connection)
                    for statement in upgrade(version, to_read=True) if version else ():
                        connection.execute(_statement(statement))
                    connection.execute("SET default_transaction_read_only = on")
                    self.exists = version > 0
                else:
                    _create(connection)
                    self.exists = True
                ((self.session,),) = connection.execute("SELECT pg_backend_pid()")
        except BaseException:
            self.close()
            raise

    def _disconnect(self) -> None:
        """Close the session: the server then releases its locks."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.end()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    # Reading and writing ------------------------------------------------------------------------------------------

    def _execute(self, statement: str, values: Row) -> list[Row]:
        return [tuple(map(_decoded, row)) for row in self._ask(statement, values).fetchall()]

    def _count(self, statement: str, values: Row) -> int:
        return self._ask(statement, values, limit=_LONG).rowcount

    def check(self) -> None:
        """Raise if the session is lost. Asks the server only if it has not answered for some seconds.

        If the network is cut, the server releases the locks some seconds later than that.
        """
        has_ended = self._watch is not None and self._watch.ended()
        if has_ended and self._lost is None:
            self._lost = self._lost_error("the server has ended it")
        if self._lost is not None:
            raise self._lost
        if monotonic() - self._answered > _PROVEN:
            self._committing.exception()
            self._ask("SELECT 1")

    def identity(self) -> tuple[str, ...]:
        """Return the server and the database."""
        return tuple(
            map(str, self.read("SELECT pg_postmaster_start_time(), current_database()")[0])
        )

    def continue_numbers(self) -> None:
        """Let the next run get a number after those that were written with theirs."""
        for table in ("run", "entered"):
            last = f"SELECT coalesce(max(id), 0) + 1 FROM {table}"  # noqa: S608 - our own names
            self.read(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), ({last}), false)")

    def properties(self) -> Properties:
        """Return what this ledger is stored in."""
        ((kind, version, size),) = self.read(_PROPERTIES)
        settings: dict[str, str] = dict(self.read(_DURABILITY))
        warnings = list(self.warnings)
        for name, risk in _RISKS.items():
            if settings[name] == "off":
                warnings.append(f"{name} is off on the database server: {risk}")
        return Properties(f"shared (PostgreSQL {kind})", version, size, settings, tuple(warnings))

    def try_lock(self, key: int, *, shared: bool) -> bool:
        """Take an advisory lock of the session if it is free."""
        function = "pg_try_advisory_lock_shared" if shared else "pg_try_advisory_lock"
        ((is_held,),) = self.read(f"SELECT {function}(?::bigint)", (key,))
        return bool(is_held)

    def unlock(self, key: int, *, shared: bool) -> None:
        """Release an advisory lock of the session."""
        function = "pg_advisory_unlock_shared" if shared else "pg_advisory_unlock"
        self.read(f"SELECT {function}(?::bigint)", (key,))

    # Transactions -------------------------------------------------------------------------------------------------

    def _write(self, statement: str, rows: Sequence[Row]) -> None:
        self._queue.extend(_joined(statement, rows))
        if len(self._queue) >= _QUEUED:
            self._ask(*self._queue.pop())

    def _begin(self, *, alone: bool) -> None:
        self.check()
        self._queue, self._begun, self._alone = [], False, alone

    def _commit(self) -> None:
        ended = self._ask("COMMIT", limit=SILENCE)
        self._begun = False
        if ended.statusmessage != "COMMIT":
            with self._translated():
                raise self._psycopg.InternalError("the transaction was not committed")

    def _roll_back(self) -> None:
        self._queue = []
        connection, begun, self._begun = self._connection, self._begun, False
        is_usable = begun and self._lost is None
        if is_usable and connection is not None:
            with suppress(LedgerError), self._answer(SILENCE):
                connection.execute("ROLLBACK")

    def _ask(self, query: str, values: Row = (), *, limit: float | None = None) -> Cursor:
        """Send the queued writes, then a query, in one round trip; return the result of the query.

        The first of a transaction begins it. The server must answer within ``limit`` seconds: by default soon while
        locks are held.
        """
        if self._lost is not None:
            raise self._lost
        connection = self._connection
        if connection is None:
            raise LedgerError(
                f"the ledger {self.name} is closed", remedy="this is an error in msauto"
            )
        statements: list[tuple[str, Row]] = []
        if not self._begun and (self._depth or query == "COMMIT"):
            self._begun = True
            statements.append(("BEGIN", ()))
            if self._alone:
                statements.append(("SELECT pg_advisory_xact_lock(?)", (_ALONE,)))
        statements += [*self._queue, (query, values)]
        self._queue = []
        if limit is None:
            limit = SILENCE if self.held.total() else _LONG
        pipeline = connection.pipeline() if len(statements) > 1 else nullcontext()
        with self._answer(limit), pipeline:
            for statement, row in statements:
                cursor = connection.execute(_portable(statement), tuple(map(_encoded, row)))
        return cursor

    # Errors -------------------------------------------------------------------------------------------------------

    @contextmanager
    def _answer(self, seconds: float) -> Iterator[None]:
        """Wait for an answer of the server; if none comes in time, the session is lost."""
        assert self._watch is not None
        sent = monotonic()
        with self._translated(), self._watch.within(seconds):
            yield
        self._answered = sent

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except ForeignError as error:
            remedy = (
                "use the msauto that wrote it, or another database: url in [state] of msauto.toml"
            )
            raise LedgerError(
                f"the ledger {self.name} cannot be used: {error}", remedy=remedy
            ) from error
        except self._psycopg.Error as error:
            connection = self._connection
            if connection is not None and connection.closed:
                is_silent = self._watch is not None and self._watch.silent
                why = "no answer came" if is_silent else _reason(error)
                self._lost = self._lost_error(why)
                raise self._lost from None
            otherwise = "check the database server, and url in [state] of msauto.toml"
            cause, remedy = _CAUSES.get(
                error.sqlstate or "", (f"cannot be used: {_reason(error)}", otherwise)
            )
            if "authentication method requirement" in str(error):
                cause, remedy = _CLEAR_TEXT
            raise LedgerError(f"the ledger {self.name} {cause}", remedy=remedy) from None

    def _lost_error(self, why: str) -> LedgerError:
        message = f"the session with the ledger {self.name} is lost ({why}), and with it the locks of this run"
        return LedgerError(message, remedy=_LOST_REMEDY)


class _Watch:
    """Ends a connection whose server does not answer in time, also while another thread waits for the answer."""

    def __init__(self, file: int) -> None:
        self.silent = False
        self._socket = socket.socket(fileno=os.dup(file))
        self._until: float | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="msauto ledger watch", daemon=True)
        self._thread.start()

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """End the connection if what is inside takes longer."""
        self._until = monotonic() + seconds
        try:
            yield
        finally:
            self._until = None

    def ended(self) -> bool:
        """Return whether the server has ended the connection, as far as this machine knows; reads nothing."""
        poll = select.poll()
        poll.register(self._socket, getattr(select, "POLLRDHUP", 0))
        return bool(poll.poll(0))

    def end(self) -> None:
        """Stop watching."""
        self._stop.set()
        self._thread.join()
        self._socket.close()

    def _run(self) -> None:
        while not self._stop.wait(1.0):
            until = self._until
            if until is not None and monotonic() > until:
                self.silent = True
                with suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)
                return


# Opening --------------------------------------------------------------------------------------------------------------


def load_psycopg() -> Any:
    """Return the module ``psycopg``, which only a shared ledger needs; raises ``LedgerError`` if it is missing."""
    try:
        import psycopg
    except ImportError as error:
        raise LedgerError(
            "a shared ledger needs the package psycopg, which is not installed",
            remedy="pip install 'psycopg[binary]'",
        ) from error
    return psycopg


def connect(url: LedgerUrl) -> Connection:
    """Open a session; raises ``psycopg.Error`` and :class:`ForeignError`."""
    psycopg = load_psycopg()
    more = {}
    if url.password is not None:
        more["password"] = _password(url.password, url.user)
    named = dict(parse_qsl(urlsplit(url.url).query))
    says_how_to_authenticate = "require_auth" in named or "PGREQUIREAUTH" in os.environ
    if not says_how_to_authenticate and psycopg.pq.version() >= _REFUSES_CLEAR_TEXT:
        more["require_auth"] = _AUTHENTICATION
    connection: Connection = psycopg.connect(
        url.url,
        autocommit=True,
        application_name="msauto",
        client_encoding="utf-8",
        target_session_attrs="primary",
        connect_timeout=_CONNECT,
        keepalives=1,
        **_KEEPALIVE,
        tcp_user_timeout=int(SILENCE * 1000),
        **more,
    )
    try:
        if connection.info.server_version < _OLDEST * 10_000:
            release = connection.info.server_version // 10_000
            raise ForeignError(
                f"its server is PostgreSQL {release}, and msauto needs {_OLDEST} or newer"
            )
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise ForeignError(f"its database has the encoding {encoding}, not UTF8")
        connection.execute(_SETTINGS)
        if connection.execute("SHOW synchronous_commit").fetchone() not in _DURABLE:
            connection.execute("SET synchronous_commit = on")
    except BaseException:
        connection.close()
        raise
    return connection


def security_warnings(url: LedgerUrl, host: str, sslmode: str, libpq: int) -> tuple[str, ...]:
    """Return what others on the network could do. ``host`` is a name, an address, or the folder of a socket."""
    if host.startswith(("/", "@")) or is_loopback(host):
        return ()
    warnings = []
    if sslmode not in {"verify-full", "verify-ca"}:
        why = f"nothing verifies that the server {host} is the right one (sslmode is {sslmode})"
        warnings.append(f"the ledger {url}: {why}; add sslmode=verify-full to url in [state]")
    if libpq < _REFUSES_CLEAR_TEXT:
        why = f"this libpq ({libpq // 10_000}) sends the password in clear text to a server that asks for it"
        warnings.append(f"the ledger {url}: {why}; install psycopg[binary], which brings its own")
    return tuple(warnings)


def _password(source: PasswordSource, user: str) -> str:
    try:
        if source.kind == "file":
            return secret_in_file(Path(source.name), source.name)
        if source.kind == "keyring":
            return secret_in_keyring(source.name, user)
    except MsautoError as error:
        raise LedgerError(
            f"the password of the ledger: {error.message}", remedy=error.remedy
        ) from None
    if source.name not in os.environ:
        remedy = "set it, or change password_env in [state] of msauto.toml"
        raise LedgerError(
            f"the password of the ledger: the variable {source.name} is not set", remedy=remedy
        )
    return os.environ[source.name]


def _version(connection: Connection) -> int:
    """Return the version of the ledger, 0 if the schema is missing or empty. Raises :class:`ForeignError`."""
    query = "SELECT tablename FROM pg_tables WHERE schemaname = %s"
    tables = connection.execute(query, (SCHEMA,)).fetchall()
    if not tables:
        return 0
    if ("ledger_version",) not in tables:
        raise ForeignError(f"its schema {SCHEMA} is that of another program")
    ((version,),) = connection.execute("SELECT version FROM msauto.ledger_version")
    check_version(version)
    return int(version)


_DIALECT = {
    "INTEGER PRIMARY KEY": "INTEGER GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
    " WITHOUT ROWID": "",
    r"\bTEXT\b": 'TEXT COLLATE "C"',
}
"""What SQLite writes, as a regular expression, and what PostgreSQL writes instead."""


def _create(connection: Connection) -> None:
    """Make the tables in one transaction, or those that an older ledger lacks; two processes take turns."""
    if _version(connection) == VERSION:
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_CREATING,))
        version = _version(connection)
        if not version:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
            connection.execute("CREATE TABLE ledger_version (version INTEGER NOT NULL)")
            connection.execute("INSERT INTO ledger_version VALUES (0)")
        for statement in upgrade(version):
            connection.execute(_statement(statement))
        connection.execute("UPDATE ledger_version SET version = %s", (VERSION,))


def _statement(statement: str) -> bytes:
    """Return a statement that makes a table as PostgreSQL has it. Texts are compared by code point, as in SQLite."""
    for pattern, ours in _DIALECT.items():
        statement = re.sub(pattern, ours, statement)
    return statement.encode()


# Statements and texts -------------------------------------------------------------------------------------------------

_VALUES = re.compile(r"\bVALUES (\([?, ]+\))")


def _joined(statement: str, rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Yield the statement for some rows at a time if it inserts them, which is ten times faster; else for each."""
    place = _VALUES.search(statement)
    if place is None or len(rows) == 1:
        for row in rows:
            yield statement, row
        return
    before, after = statement[: place.start(1)], statement[place.end(1) :]
    for start in range(0, len(rows), _JOINED):
        inserted = rows[start : start + _JOINED]
        places = ", ".join([place[1]] * len(inserted))
        values = tuple(chain.from_iterable(inserted))
        yield f"{before}{places}{after}", values


@lru_cache(maxsize=256)
def _portable(statement: str) -> bytes:
    return statement.replace("%", "%%").replace("?", "%s").encode()


# PostgreSQL stores no NUL. It is written as two other characters, in a way that no other text is written.
_ESCAPE = "\x1a"


def _encoded(value: Any) -> Any:
    if isinstance(value, str) and ("\0" in value or _ESCAPE in value):
        return value.replace(_ESCAPE, f"{_ESCAPE}1").replace("\0", f"{_ESCAPE}0")
    return value


def _decoded(value: Any) -> Any:
    if isinstance(value, str) and _ESCAPE in value:
        return value.replace(f"{_ESCAPE}0", "\0").replace(f"{_ESCAPE}1", _ESCAPE)
    return value


def _reason(error: Exception) -> str:
    """Return the message of the server or of libpq in one line, without values of a row."""
    primary = getattr(getattr(error, "diag", None), "message_primary", None)
    return " ".join((primary or str(error)).split()) or type(error).__name__


_CLEAR_TEXT = (
    "is on a server that asks for the password in clear text, or for its MD5 hash",
    "let the server use scram-sha-256, or allow it with sslmode=verify-full&require_auth=password in the URL",
)
_GRANT = "let this role use the database: see docs/how-to/share-a-ledger.md"
_CAUSES = {
    "53100": (
        "cannot grow: the disk of the database server is full",
        "free some space there, and run it again",
    ),
    "53300": (
        "accepts no more connections",
        "raise max_connections of the database server, or run less at a time",
    ),
    "42501": ("does not let this role read and write", _GRANT),
    "3D000": ("has no such database", "create it: see docs/how-to/share-a-ledger.md"),
    "28P01": (
        "does not accept the password",
        "check password_env, password_file or password_keyring in [state]",
    ),
    "28000": ("does not accept this user", _GRANT),
    "25006": ("is read-only", "use the primary server of the database, and a role that may write"),
}
