"""Measure the cost of the ledger: apply 1,000 assets with it, and with a record that is kept only in memory.

Everything else is the same: plan, requests, verification, server, machine. The output has seconds, CPU seconds, the
ratio, and the size of the ledger afterwards.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from bench.whole_way import ASSETS, FORKS, PLAYBOOK, measure, media_server

ROUNDS = 3


class LostJournal:
    """A journal that stores nothing."""

    def __init__(self) -> None:
        self.notes: dict[str, str] = {}

    def together(self) -> AbstractContextManager[None]:
        return nullcontext()

    def commit(self, calls: Sequence[Callable[[], object]]) -> Future[None]:
        for call in calls:
            call()
        lost: Future[None] = Future()
        lost.set_result(None)
        return lost

    def start(self, plan: Any, playbooks: Sequence[str]) -> str:
        del plan, playbooks
        return "lost"

    def _nothing(self, *_: Any) -> None:
        return None

    planned = sending = settled = finished = end = _nothing


class LostMemory:
    """A memory in a dict."""

    def __init__(self) -> None:
        self._items: dict[Any, dict[str, Any]] = {}

    def recall(self, target: Any) -> Mapping[str, Any]:
        return self._items.get(target, {})

    def remember(self, target: Any, items: Mapping[str, Any]) -> None:
        self._items.setdefault(target, {}).update(items)

    def forget_assets(self, server: str, database: str, prefix: str) -> None:
        raise NotImplementedError

    def owing(self, server: str) -> frozenset[tuple[str, str]]:
        del server
        return frozenset()


class NoLedger:
    """Replace a ledger."""

    def __init__(self) -> None:
        self.journal = LostJournal()
        self.memory = LostMemory()


def apply_once(url: str, *, keep: bool) -> dict[str, float]:
    """Plan, then measure only the apply."""
    from msauto.aio import SystemClock, apply_plan, make_plan, specs_of
    from msauto.ledger import Ledger
    from msauto.model.events import SilentObserver
    from msauto.model.plan import Limits
    from msauto.playbook.resolve import ResolveOptions, resolve

    with tempfile.TemporaryDirectory(dir=".") as folder:  # a real disk: in memory, durability would cost nothing
        book = Path(folder) / "all.yml"
        book.write_text(PLAYBOOK)
        resolved = resolve(ResolveOptions(playbooks=(str(book),), server_url=url, env={}, now=datetime.now(UTC)))
        clock = SystemClock()
        ledger = Ledger.open(Path(folder) / "state") if keep else cast("Ledger", NoLedger())
        planning = make_plan(resolved, memory=ledger.memory, clock=clock, forks=FORKS, limits=Limits())
        plan = asyncio.run(planning)
        assert plan.requests == 2 * ASSETS, plan.requests
        applying = apply_plan(
            plan, specs_of(resolved), ledger=ledger, clock=clock, observer=SilentObserver(), forks=FORKS
        )
        measured = measure(lambda: _check(asyncio.run(applying)))
        if keep:
            ledger.close()
            measured["mib"] = (Path(folder) / "state" / "ledger.sqlite").stat().st_size / 2**20
        return measured


def _check(result: Any) -> None:
    assert result.ok


def worker(name: str, url: str) -> dict[str, float]:
    """Run one side in its own process."""
    command = [sys.executable, "-m", "bench.ledger", name, url]
    measured: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return measured


def report() -> None:
    """Measure the sides alternately, several times, and print the best of each, to exclude other processes."""
    print(f"The ledger: apply of {ASSETS} assets, {2 * ASSETS} requests, {FORKS} at a time, best of {ROUNDS}")
    print(f"{'':18}{'seconds':>10}{'CPU s':>10}")
    best: dict[str, dict[str, float]] = {}
    for _ in range(ROUNDS):
        for side in ("without", "with"):
            with media_server(ASSETS) as url:
                found = worker(side, url)
            if side not in best or found["seconds"] < best[side]["seconds"]:
                best[side] = found
    for side, found in best.items():
        print(f"{side + ' ledger':18}{found['seconds']:10.2f}{found['cpu']:10.2f}")
    ratio = [best["with"][key] / best["without"][key] for key in ("seconds", "cpu")]
    print(f"{'ratio':18}{ratio[0]:10.2f}{ratio[1]:10.2f}     the ledger then has {best['with']['mib']:.1f} MiB")


def main() -> None:
    if len(sys.argv) == 1:
        report()
        return
    print(json.dumps(apply_once(sys.argv[2], keep=sys.argv[1] == "with")))


if __name__ == "__main__":
    main()
