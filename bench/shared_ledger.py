"""Measure what applying costs: `python -m bench.shared_ledger [CLIPS]`.

A local ledger, a shared one, and a Dask worker with a shared one; every clip changes in each run. The simulator, the
database server, the scheduler and the worker are processes of their own. The output has wall time, the CPU time of
each part, and what a target costs PostgreSQL: rows, bytes, write-ahead log and transactions.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import psutil
import psycopg

from bench.dask_cluster import HERE, free_port, listening, registered, seconds_of, started
from tests import postgres

PLAY = """\
- name: Describe
  hosts: all
  database: NEWS
  tasks:
    - asset:
        select: {{folder: /, recursive: true}}
        fields: {{comment: "run {number}"}}
"""
NUMBERS = count()


@dataclass
class Database:
    """The server of the shared ledger, and what it has done so far."""

    url: str
    process: psutil.Process

    def counters(self) -> dict[str, float]:
        """Return CPU seconds, bytes of the write-ahead log, transactions, rows and bytes of the tables."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("SELECT pg_stat_clear_snapshot()")
            found = connection.execute(
                "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint, xact_commit FROM pg_stat_database"
                " WHERE datname = current_database()"
            ).fetchone()
            assert found is not None
            sizes = {"rows": 0.0, "bytes": 0.0}
            for (table,) in connection.execute(
                "SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname = 'msauto'"
            ).fetchall():
                row = connection.execute(
                    f"SELECT count(*), pg_total_relation_size('{table}') FROM {table}"
                ).fetchone()
                assert row is not None
                sizes["rows"] += row[0]
                sizes["bytes"] += row[1]
        times = self.process.cpu_times()
        used = times.user + times.system + times.children_user + times.children_system
        for session in self.process.children():
            with suppress(psutil.NoSuchProcess):  # it has just ended
                used += sum(session.cpu_times()[:2])
        return {"cpu": used, "wal": found[0], "transactions": found[1], **sizes}


@dataclass
class Measurement:
    """The costs of one run: wall seconds, CPU seconds by part, and the counters of the database."""

    wall: float
    cpu: dict[str, float]
    database: dict[str, float] = field(default_factory=dict)


def apply(folder: Path, url: str, settings: str, *more: str) -> tuple[float, float]:
    """Apply in a process of its own; return its wall seconds and CPU seconds."""
    book, config = folder / "play.yml", folder / "msauto.toml"
    book.write_text(PLAY.format(number=next(NUMBERS)))
    config.write_text(settings)
    flags = ("--server", url, "--state-dir", str(folder / "state"), "--config", str(config))
    began = time.perf_counter()
    command = [
        sys.executable,
        "-m",
        "msauto",
        "apply",
        str(book),
        "--yes",
        "--summary",
        *flags,
        *more,
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    used = psutil.Process(process.pid).cpu_times()
    while process.poll() is None:
        try:
            used = psutil.Process(process.pid).cpu_times()
            process.wait(0.05)
        except (subprocess.TimeoutExpired, psutil.NoSuchProcess):
            continue
    if process.returncode:
        raise RuntimeError(str(process.stderr.read() if process.stderr else ""))
    return time.perf_counter() - began, used.user + used.system


@contextmanager
def cluster() -> Iterator[tuple[str, psutil.Process, psutil.Process]]:
    """Start a scheduler and a worker of one thread."""
    port, pages = free_port(), free_port()
    pages_at = ("--dashboard-address", f"{HERE}:{pages}")
    with started("dask", "scheduler", "--host", HERE, "--port", str(port), *pages_at) as scheduler:
        listening(port)
        worker = (
            "dask",
            "worker",
            f"tcp://{HERE}:{port}",
            "--host",
            HERE,
            "--nthreads",
            "1",
            "--no-dashboard",
        )
        with started(*worker) as nanny:
            asyncio.run(registered(port, 1))
            yield f"dask://{HERE}:{port}", scheduler, nanny


def measured(
    folder: Path, url: str, database: Database | None, *, on_worker: bool = False
) -> Measurement:
    """Apply twice, and measure the second run."""
    settings = "" if database is None else f'[state]\nurl = "{database.url}"\n'
    if not on_worker:
        apply(folder, url, settings)
        before = {} if database is None else database.counters()
        wall, cpu = apply(folder, url, settings)
        after = {} if database is None else database.counters()
        return Measurement(
            wall, {"msauto": cpu}, {name: after[name] - before[name] for name in after}
        )
    assert database is not None
    with cluster() as (on, scheduler, worker):
        apply(folder, url, settings, "--on", on)
        parts = {"scheduler": scheduler, "worker": worker}
        used = {name: seconds_of(each) for name, each in parts.items()}
        before = database.counters()
        wall, cpu = apply(folder, url, settings, "--on", on)
        after = database.counters()
        spent = {name: seconds_of(each) - used[name] for name, each in parts.items()}
    return Measurement(
        wall, {"msauto": cpu, **spent}, {name: after[name] - before[name] for name in after}
    )


@contextmanager
def database_server(folder: Path) -> Iterator[Database]:
    """Start PostgreSQL, which makes each commit durable."""
    server = postgres.PostgresServer(folder / "db", options=("fsync=on",))
    server.create()
    server.start()
    try:
        yield Database(server.url(server.new_database()), psutil.Process(server.pid))
    finally:
        server.stop()


def main() -> None:
    """Print a table."""
    clips = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    port = free_port()
    simulator = ("msauto", "simulate", "--port", str(port), "--seed", f"bulk:{clips}")
    with tempfile.TemporaryDirectory() as name, started(*simulator):
        folder, url = Path(name), f"http://{HERE}:{port}"
        folder.chmod(0o755)
        listening(port)
        with database_server(folder) as database:
            cases = {
                "local ledger": measured(folder, url, None),
                "shared ledger": measured(folder, url, database),
                "shared, a worker": measured(folder, url, database, on_worker=True),
            }
    local = cases["local ledger"]
    print(
        f"{clips} targets          wall s  ratio   ms of CPU for each target, by part; of PostgreSQL for each target"
    )
    for case, each in cases.items():
        parts = each.cpu | ({"PostgreSQL": each.database["cpu"]} if each.database else {})
        shown = ", ".join(f"{part} {1000 * seconds / clips:.2f}" for part, seconds in parts.items())
        cost = each.database
        stored = (
            f"; {cost['rows'] / clips:.2f} rows, {cost['bytes'] / clips:.0f} bytes, {cost['wal'] / clips:.0f} bytes of"
            f" log, {cost['transactions'] / clips:.3f} transactions"
            if cost
            else ""
        )
        print(f"{case:20} {each.wall:8.2f} {each.wall / local.wall:6.2f}   {shown}{stored}")


if __name__ == "__main__":
    main()
