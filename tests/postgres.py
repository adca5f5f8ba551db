"""A real PostgreSQL for tests: Debian's package, with its own data directory and socket, stopped afterwards.

All workers of pytest-xdist share one server, which the first of them starts and the last one to end stops. Each worker
has databases of its own, which are emptied after each test. postgres refuses to run as root, so then it runs as another
user.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psycopg
import pytest

_PLACES = sorted(
    Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True
)
ABSENT = "no PostgreSQL server here (apt-get install postgresql), so the tests of the shared ledger do not run"


def binaries() -> Path | None:
    """The folder with ``initdb`` and ``postgres``."""
    found = shutil.which("initdb")
    return next(
        (path for path in _PLACES if (path / "initdb").exists()),
        Path(found).parent if found else None,
    )


def _user() -> str | None:
    """Another user than root to run the server as."""
    if os.getuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


@dataclass
class PostgresServer:
    """A server in ``folder``: its socket is there as well, and ``port`` is its TCP port if it has one."""

    folder: Path
    port: int = 5432
    options: tuple[str, ...] = ()
    pid: int = 0

    def create(self) -> None:
        """Make the data directory."""
        user = _user()
        self.folder.mkdir(exist_ok=True)
        if user is not None:
            shutil.chown(self.folder, user)
        self.folder.chmod(0o755)
        command = [
            self._binary("initdb"),
            "-D",
            str(self.data),
            "-U",
            "msauto",
            "-A",
            "trust",
            "-E",
            "UTF8",
        ]
        command += ["--locale=C", "--no-sync", "--no-instructions"]
        subprocess.run(command, check=True, capture_output=True, user=user, cwd="/")

    def start(self, *options: str) -> None:
        """Start, and return once connections are accepted."""
        settings = {
            "listen_addresses": "",
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
            "fsync": "off",
            "shared_buffers": "16MB",
            "max_connections": "100",
            "autovacuum": "off",
            "logging_collector": "off",
        }
        given = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        given += [part for each in (*self.options, *options) for part in ("-c", each)]
        log = (self.folder / "log").open("ab")
        process = subprocess.Popen(
            [self._binary("postgres"), "-D", str(self.data), *given],
            stdout=log,
            stderr=log,
            user=_user(),
            cwd="/",
            start_new_session=True,
        )
        log.close()
        self.pid, process.returncode = process.pid, 0  # it outlives the test that starts it
        self.wait()

    def wait(self) -> None:
        until = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > until:
                    raise AssertionError((self.folder / "log").read_text()) from None
                time.sleep(0.05)

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """Stop (SIGINT: end all sessions; SIGQUIT: as in a crash), and return once it has ended."""
        if not self.pid:
            return
        try:
            os.kill(self.pid, number)
            while (self.data / "postmaster.pid").exists():
                time.sleep(0.02)
        except ProcessLookupError:
            pass
        self.pid = 0

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def url(self, database: str) -> str:
        return f"postgresql:///{database}?host={self.folder}&port={self.port}&user=msauto"

    def new_database(self) -> str:
        """The name of a new database."""
        name = f"ledger_{secrets.token_hex(6)}"
        self.execute(f"CREATE DATABASE {name}")
        return name

    def empty(self, database: str) -> None:
        """End all sessions in a database that a test has used, and remove its tables."""
        self.execute(
            f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{database}'"
        )
        self.execute("DROP SCHEMA IF EXISTS msauto CASCADE", database)

    def execute(self, statement: str, database: str = "postgres") -> None:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(statement.encode())

    def _binary(self, name: str) -> str:
        found = binaries()
        assert found is not None
        return str(found / name)


def _folder() -> Path:
    """A folder for a server: in memory if there is enough. The path of a socket must be short."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > 1 << 30
    return Path(tempfile.mkdtemp(prefix="msauto-pg-", dir=memory if roomy else "/tmp"))


@contextmanager
def own_server(*options: str, port: int = 5432) -> Iterator[PostgresServer]:
    """A server for one test: one that it stops, or fills the disk of."""
    if binaries() is None:
        pytest.skip(ABSENT)
    folder = _folder()
    server = PostgresServer(folder, port, options)
    try:
        server.create()
        server.start()
        server.execute("CREATE DATABASE ledger")
        yield server
    finally:
        server.stop(signal.SIGQUIT)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def common_server(place: Path) -> Iterator[PostgresServer]:
    """The server that the workers of one run of the tests share, in the folder ``place``; the last one stops it."""
    with (place / "postgres.lock").open("a+") as count:
        server = _count(count, +1)[1]
        try:
            yield server
        finally:
            left, server = _count(count, -1)
            if left == 0:
                server.stop(signal.SIGQUIT)
                shutil.rmtree(server.folder, ignore_errors=True)


def _count(file: IO[str], step: int) -> tuple[int, PostgresServer]:
    """Add one to, or take one from the number of users of the server; the first starts it."""
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        file.seek(0)
        users, pid, folder = file.read().split() or ("0", "0", "")
        server = PostgresServer(Path(folder), pid=int(pid))
        if users == "0":
            server = PostgresServer(_folder())
            server.create()
            server.start()
        left = int(users) + step
        file.seek(0)
        file.truncate()
        file.write(f"{left} {server.pid} {server.folder}")
        file.flush()
        return left, server
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)
