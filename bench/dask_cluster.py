"""Measure a plan by select on a worker of a Dask cluster of this machine: `python -m bench.dask_cluster [CLIPS]`.

The simulator, the scheduler and the worker are processes of their own. The output has the wall time and the CPU time of
a local plan, and of a plan on the worker. The cluster has planned once before, so its start does not count.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
from distributed import Client

from bench.sides import SELECT

HERE = "127.0.0.1"


@contextmanager
def started(*arguments: str) -> Iterator[psutil.Process]:
    """Start a Python module, and stop it at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield psutil.Process(process.pid)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def free_port() -> int:
    """Return a port that no other program uses."""
    with socket.socket() as bound:
        bound.bind((HERE, 0))
        return int(bound.getsockname()[1])


def listening(port: int) -> None:
    """Wait until a port accepts connections."""
    for _ in range(600):
        with socket.socket() as asked:
            if asked.connect_ex((HERE, port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(port)


async def registered(port: int, workers: int) -> None:
    """Wait until the scheduler knows this many workers."""
    async with Client(f"tcp://{HERE}:{port}", asynchronous=True, set_as_default=False) as client:
        await client.wait_for_workers(workers, timeout=60)


def seconds_of(process: psutil.Process) -> float:
    """Return the CPU seconds of a process and its children."""
    return sum(sum(each.cpu_times()[:2]) for each in (process, *process.children(recursive=True)))


def plan(folder: Path, url: str, *more: str) -> tuple[float, float]:
    """Plan in a process of its own; return its wall seconds and CPU seconds."""
    book = folder / "play.yml"
    book.write_text(SELECT)
    flags = ("--server", url, "--state-dir", str(folder / "state"), "--summary", *more)
    before, began = os.times(), time.perf_counter()
    command = [sys.executable, "-m", "msauto", "plan", str(book), *flags]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = os.times()
    cpu = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    return time.perf_counter() - began, cpu


def measured(folder: Path, url: str) -> Mapping[str, float]:
    """Plan on a cluster of one worker, after a plan that starts everything."""
    port, pages = free_port(), free_port()
    with ExitStack() as stack:
        scheduler = stack.enter_context(
            started(
                "dask",
                "scheduler",
                "--host",
                HERE,
                "--port",
                str(port),
                "--dashboard-address",
                f"{HERE}:{pages}",
            )
        )
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
        process = stack.enter_context(started(*worker))
        asyncio.run(registered(port, 1))
        on = f"dask://{HERE}:{port}"
        plan(folder, url, "--on", on)
        before = seconds_of(scheduler), seconds_of(process)
        wall, cpu = plan(folder, url, "--on", on)
        after = seconds_of(scheduler), seconds_of(process)
    return {
        "wall": wall,
        "command": cpu,
        "scheduler": after[0] - before[0],
        "worker": after[1] - before[1],
    }


def main() -> None:
    """Print a table."""
    clips = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    port = free_port()
    simulator = ("msauto", "simulate", "--port", str(port), "--seed", f"bulk:{clips}")
    with tempfile.TemporaryDirectory() as name, started(*simulator):
        folder, url = Path(name), f"http://{HERE}:{port}"
        listening(port)
        plan(folder, url)
        wall, cpu = plan(folder, url)
        print(f"{clips} clips    wall s  ratio   CPU s: command  scheduler  worker  ratio")
        print(f"local          {wall:6.2f}   1.00          {cpu:7.2f}                     1.00")
        found = measured(folder, url)
        total = found["command"] + found["scheduler"] + found["worker"]
        print(
            f"on a worker    {found['wall']:6.2f} {found['wall'] / wall:6.2f}          "
            f"{found['command']:7.2f} {found['scheduler']:10.2f} {found['worker']:7.2f} {total / cpu:6.2f}"
        )


if __name__ == "__main__":
    main()
