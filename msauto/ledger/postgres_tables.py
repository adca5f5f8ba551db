"""The tables of a shared ledger, in the schema ``msauto`` of a database, and the settings of a session.

A commit that returns survives a crash of the server (``synchronous_commit``). If the network is cut, both sides end the
session after about :data:`SILENCE` seconds.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msauto.errors import LedgerError
from msauto.ledger import tables
from msauto.ledger.tables import ForeignError
from msauto.model.ledger_url import LedgerUrl, PasswordSource
from msauto.secrets.stored_secrets import SecretSourceError, secret_in_file, secret_in_keyring

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

SCHEMA = "msauto"
SILENCE = 15.0
"""Seconds after which a session without an answer is lost, on both sides."""
_KEEPALIVE = {"idle": 5, "interval": 3, "count": 3}  # 5 + 3 x 3 seconds
_OLDEST = 14
_CONNECT = 10  # seconds
_MIGRATING = 0x6D73617574  # a lock that only one process that changes the tables holds
_DURABLE = frozenset({"on", "local", "remote_write", "remote_apply"})

_SETTINGS = f"""
    SET search_path = {SCHEMA}, pg_catalog;
    SET client_min_messages = error;
    SET default_transaction_isolation = 'read committed';
    SET idle_session_timeout = 0; SET idle_in_transaction_session_timeout = 0;
    SET statement_timeout = 0; SET lock_timeout = 0;
    SET tcp_keepalives_idle = {_KEEPALIVE["idle"]};
    SET tcp_keepalives_interval = {_KEEPALIVE["interval"]};
    SET tcp_keepalives_count = {_KEEPALIVE["count"]};
    SET tcp_user_timeout = {int(SILENCE * 1000)}"""


def load_psycopg() -> Any:
    """Return the module ``psycopg``, which only a shared ledger needs; raises ``LedgerError`` if it is missing."""
    try:
        import psycopg
    except ImportError as error:
        raise LedgerError(
            "a shared ledger needs the package psycopg, which is not installed",
            remedy="pip install 'msauto[postgres]'",
        ) from error
    return psycopg


def connect(url: LedgerUrl) -> Connection:
    """Open a session; raises ``psycopg.Error`` and :class:`ForeignError`."""
    psycopg = load_psycopg()
    secret = {} if url.password is None else {"password": _password(url.password, url.user)}
    connection: Connection = psycopg.connect(
        url.url,
        autocommit=True,
        application_name="msauto",
        client_encoding="utf-8",
        target_session_attrs="primary",
        connect_timeout=_CONNECT,
        keepalives=1,
        **{f"keepalives_{name}": value for name, value in _KEEPALIVE.items()},
        tcp_user_timeout=int(SILENCE * 1000),
        **secret,
    )
    try:
        if connection.info.server_version < _OLDEST * 10_000:
            found = connection.info.server_version // 10_000
            raise ForeignError(f"its server is PostgreSQL {found}, and msauto needs {_OLDEST} or newer")
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise ForeignError(f"its database has the encoding {encoding}, not UTF8")
        connection.execute(_SETTINGS)
        if _value(connection, "SHOW synchronous_commit") not in _DURABLE:
            connection.execute("SET synchronous_commit = on")
    except BaseException:
        connection.close()
        raise
    return connection


def _password(source: PasswordSource, user: str) -> str:
    try:
        if source.kind == "file":
            return secret_in_file(Path(source.name), source.name)
        if source.kind == "keyring":
            return secret_in_keyring(source.name, user)
    except SecretSourceError as error:
        raise LedgerError(f"the password of the ledger: {error}", remedy=error.remedy) from None
    if source.name not in os.environ:
        remedy = "set it, or change password_env in [state] of msauto.toml"
        raise LedgerError(f"the password of the ledger: the variable {source.name} is not set", remedy=remedy)
    return os.environ[source.name]


def has_tables(connection: Connection) -> bool:
    """Return whether the schema is a ledger; ``False`` if it is missing or empty. Raises :class:`ForeignError`."""
    version = _version(connection)
    if version is None:
        return False
    if version > tables.VERSION:
        raise ForeignError(f"it was written by a newer msauto (ledger version {version}, not {tables.VERSION})")
    return True


def migrate(connection: Connection) -> None:
    """Make the tables, or complete those of an earlier version, in one transaction; two processes take turns."""
    if has_tables(connection) and _version(connection) == tables.VERSION:
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATING,))
        version = _version(connection) if has_tables(connection) else 0
        if version == tables.VERSION:
            return
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        for statement in tables.statements():
            connection.execute(in_postgres(statement).encode())
        if version:
            connection.execute("ALTER TABLE target DROP CONSTRAINT IF EXISTS target_outcome_check")
            connection.execute("UPDATE ledger_version SET version = %s", (tables.VERSION,))
        else:
            connection.execute("CREATE TABLE ledger_version (version INTEGER NOT NULL)")
            connection.execute("INSERT INTO ledger_version VALUES (%s)", (tables.VERSION,))


def in_postgres(statement: str) -> str:
    """Return a statement that makes a table, for PostgreSQL: texts are compared by code point, as in SQLite."""
    statement = statement.replace("INTEGER PRIMARY KEY", "INTEGER GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY")
    return re.sub(r"\bTEXT\b", 'TEXT COLLATE "C"', statement).replace(" WITHOUT ROWID", "")


def _version(connection: Connection) -> int | None:
    """Return the version of the ledger; ``None`` if there are no tables. Raises :class:`ForeignError`."""
    found = {name for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (SCHEMA,))}
    if not found:
        return None
    if "ledger_version" not in found:
        raise ForeignError(f"its schema {SCHEMA} is that of another program")
    return int(_value(connection, "SELECT version FROM msauto.ledger_version"))


def _value(connection: Connection, query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]
