"""Dask clusters of tests: on the loopback interface, without a dashboard, quiet."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.stage import free_port


@dataclass(frozen=True)
class Cluster:
    """``address`` is what ``--on`` takes."""

    address: str
    cluster: Any


@contextmanager
def threads_cluster(workers: int, resources: Mapping[str, float]) -> Iterator[Cluster]:
    """A scheduler and workers that are threads of this process: they start in a moment."""
    with _cluster(
        n_workers=workers, threads_per_worker=2, processes=False, resources=dict(resources)
    ) as found:
        yield found


@contextmanager
def process_cluster(workers: int, **options: Any) -> Iterator[Cluster]:
    """A scheduler, and workers that are processes of their own."""
    with _cluster(n_workers=workers, threads_per_worker=1, processes=True, **options) as found:
        yield found


@contextmanager
def _cluster(**options: Any) -> Iterator[Cluster]:
    from distributed import LocalCluster  # here: it takes long, and each worker imports this module

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with LocalCluster(
            host="127.0.0.1",
            protocol="tcp://",
            dashboard_address=None,
            worker_dashboard_address=None,
            silence_logs=50,
            **options,
        ) as cluster:
            yield Cluster(cluster.scheduler_address.replace("tcp://", "dask://"), cluster)


@dataclass
class SeparateCluster:
    """A scheduler and workers as a user starts them, each with a log file."""

    folder: Path
    address: str
    pages: str
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]

    def logs(self) -> str:
        """What all of them have written."""
        return "".join(
            path.read_text(errors="replace") for path in sorted(self.folder.glob("*.log"))
        )


@contextmanager
def separate_cluster(folder: Path, workers: int, *options: str) -> Iterator[SeparateCluster]:
    """A scheduler with pages over HTTP, and workers with these options."""
    port, pages = free_port(), free_port()
    surroundings = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (folder / f"{name}.log").open("wb") as log:
            command = [sys.executable, "-m", "dask", *arguments]
            started.append(
                subprocess.Popen(
                    command, stdout=log, stderr=subprocess.STDOUT, env=surroundings, cwd=folder
                )
            )
        return started[-1]

    try:
        here = ("--host", "127.0.0.1")
        scheduler = start(
            "scheduler",
            "scheduler",
            *here,
            "--port",
            str(port),
            "--dashboard-address",
            f"127.0.0.1:{pages}",
        )
        for number in range(workers):
            name = ("--name", f"worker-{number}", "--nthreads", "1", "--no-dashboard")
            start(f"worker-{number}", "worker", f"tcp://127.0.0.1:{port}", *here, *name, *options)
        address = f"dask://127.0.0.1:{port}"
        cluster = SeparateCluster(
            folder, address, f"http://127.0.0.1:{pages}", scheduler, started[1:]
        )
        asyncio.run(_wait_for_workers(address, workers))
        yield cluster
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(30)


async def _wait_for_workers(address: str, workers: int) -> None:
    async with client_of(address) as client:
        await client.wait_for_workers(workers, timeout=60)


def client_of(address: str) -> Any:
    """Return a client of a cluster by its ``dask://`` address, for ``async with``."""
    from distributed import Client

    tcp_address = address.replace("dask", "tcp")
    return Client(tcp_address, asynchronous=True, set_as_default=False, timeout=30)
