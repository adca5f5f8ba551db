"""Plan and apply 1,000 assets, compared with a hand-written loop of the client that does the same reads and writes.

Each side runs in its own process against the embedded media server in another process, on the same machine, with the
same concurrency. The output has seconds, CPU seconds, peak memory (MiB), and the ratio msauto : loop.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ASSETS = 1000
FORKS = 16
PLAYBOOK = """
- hosts: all
  database: NEWS
  tasks:
    - name: All of them
      asset:
        select: {folder: Bulk, recursive: true}
        fields: {comment: Checked}
        markers: [{at: 100, track: Cue Point, title: Ad break}]
"""


@contextmanager
def media_server(count: int) -> Iterator[str]:
    """Run the embedded media server in its own process; yield its URL."""
    command = [sys.executable, "-m", "msauto", "simulate", "--port", "0", "--seed", f"bulk:{count}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            yield next(word for word in line.split() if word.startswith("http"))
        finally:
            process.terminate()


def worker(name: str, url: str) -> dict[str, float]:
    """Run one side in its own process."""
    command = [sys.executable, "-m", "bench.whole_way", name, url]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def measure(call: Any) -> dict[str, float]:
    started, cpu = time.perf_counter(), time.process_time()
    call()
    return {
        "seconds": time.perf_counter() - started,
        "cpu": time.process_time() - cpu,
        "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def loop(url: str, *, write: bool) -> None:
    """Do the work by hand: list, then for each asset read, write twice, read again."""
    from msauto.server.client import AsyncMediaServer

    async def one(client: AsyncMediaServer, title: str) -> None:
        await client.asset("NEWS", title)
        if write:
            await client.set_field("NEWS", title, "comment", "Checked")
            await client.create_marker("NEWS", title, frame=100, track="Cue Point", fields={"title": "Ad break"})
            await client.asset("NEWS", title)

    async def main() -> None:
        gate = asyncio.Semaphore(FORKS)
        async with AsyncMediaServer(url) as client:
            listing = await client.list("NEWS", folder="Bulk")

            async def bounded(title: str) -> None:
                async with gate:
                    await one(client, title)

            await asyncio.gather(*(bounded(entry.title) for entry in listing.entries))

    asyncio.run(main())


def whole(url: str, *, write: bool) -> None:
    """Do the same with msauto: playbook, plan, and, with ``write``, apply with ledger and verification."""
    from msauto.aio import SystemClock, apply_plan, make_plan, specs_of
    from msauto.ledger import Ledger
    from msauto.model.events import SilentObserver
    from msauto.model.plan import Limits
    from msauto.playbook.resolve import ResolveOptions, resolve

    with tempfile.TemporaryDirectory() as folder:
        book = Path(folder) / "all.yml"
        book.write_text(PLAYBOOK)
        resolved = resolve(ResolveOptions(playbooks=(str(book),), server_url=url, env={}, now=datetime.now(UTC)))
        clock = SystemClock()
        with Ledger.open(Path(folder) / "state") as ledger:
            plan = asyncio.run(make_plan(resolved, memory=ledger.memory, clock=clock, forks=FORKS, limits=Limits()))
            assert plan.requests == 2 * ASSETS, plan.requests
            if write:
                result = asyncio.run(
                    apply_plan(
                        plan, specs_of(resolved), ledger=ledger, clock=clock, observer=SilentObserver(), forks=FORKS
                    )
                )
                assert result.ok


def report() -> None:
    print(f"{ASSETS} assets, a field and a marker each; {FORKS} at a time")
    print(f"{'':8}{'':10}{'seconds':>10}{'CPU s':>10}{'MiB':>10}")
    for verb in ("plan", "apply"):
        figures = {}
        for side in ("loop", "msauto"):
            with media_server(ASSETS) as url:
                figures[side] = worker(f"{side}-{verb}", url)
            print(f"{verb:8}{side:10}" + "".join(f"{figures[side][key]:10.2f}" for key in ("seconds", "cpu", "mib")))
        ratio = [figures["msauto"][key] / figures["loop"][key] for key in ("seconds", "cpu", "mib")]
        print(f"{verb:8}{'ratio':10}" + "".join(f"{value:10.2f}" for value in ratio))


def main() -> None:
    if len(sys.argv) == 1:
        report()
        return
    side, _, verb = sys.argv[1].partition("-")
    run = loop if side == "loop" else whole
    print(json.dumps(measure(lambda: run(sys.argv[2], write=verb == "apply"))))


if __name__ == "__main__":
    main()
