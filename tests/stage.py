"""A stage for whole-way tests: a simulator, a folder, and the way from a playbook's text to the server and back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from msauto.api.stages import apply_plan, make_plan, specs_of, undo_of
from msauto.applying.executor import RetryPolicy
from msauto.concurrency import SystemClock
from msauto.ledger import Ledger
from msauto.model.desired import ResolvedPlaybooks
from msauto.model.events import SilentObserver
from msauto.model.plan import Limits, Plan
from msauto.model.result import Result
from msauto.playbook.inventory.hosts import ResolveOptions
from msauto.playbook.resolve import resolve
from msauto.simulator import LogEntry, Simulator

BOLD = Limits(delete_assets=1000, allow_remove=1000)


@dataclass
class Stage:
    """Plans and applies playbooks against ``sim``; ``dialect`` is that of the inventory.

    ``place`` is where the ledger is; default is a local one in the folder.
    """

    sim: Simulator
    folder: Path
    dialect: Mapping[str, str] = field(default_factory=dict)
    version: str | None = None
    policy: RetryPolicy | None = None
    place: Path | str = ""

    def __post_init__(self) -> None:
        self.place = self.place or self.folder / "state"

    def resolved(self, *tasks: Mapping[str, Any]) -> ResolvedPlaybooks:
        server: dict[str, Any] = {"url": self.sim.url, "dialect": dict(self.dialect)}
        if self.version:
            server["version"] = self.version
        inventory = {"all": {"hosts": {"studio": {"server": server, "database": "NEWS"}}}}
        play = [{"name": "A test", "hosts": "all", "tasks": [dict(task) for task in tasks]}]
        self._write("inventory.yml", inventory)
        self._write("playbook.yml", play)
        return resolve(
            ResolveOptions(
                playbooks=(str(self.folder / "playbook.yml"),),
                inventories=(str(self.folder / "inventory.yml"),),
                env={},
                now=datetime.now(UTC),
            )
        )

    def plan(self, *tasks: Mapping[str, Any], limits: Limits = BOLD) -> Plan:
        resolved = self.resolved(*tasks)
        with Ledger.open(self.place, readonly=True) as ledger:
            return asyncio.run(make_plan(resolved, memory=ledger.memory, clock=SystemClock(), forks=8, limits=limits))

    def apply(self, *tasks: Mapping[str, Any], limits: Limits = BOLD) -> Result:
        """Plan and apply; the plan is ``result.plan``, errors of targets left out."""
        plan = self.plan(*tasks, limits=limits)
        with Ledger.open(self.place) as ledger:
            return asyncio.run(
                apply_plan(
                    plan,
                    specs_of(self.resolved(*tasks)),
                    ledger=ledger,
                    clock=SystemClock(),
                    observer=SilentObserver(),
                    forks=8,
                    policy=self.policy,
                )
            )

    def undo(self, run: str = "last", *, dry: bool = False, limits: Limits = BOLD) -> Any:
        """Take a run back, as ``msauto undo`` does; ``dry``: the plan of it."""
        specs = specs_of(self.resolved())
        clock = SystemClock()
        with Ledger.open(self.place) as ledger:
            resolved = undo_of(ledger.run_details(run), specs)
            plan = asyncio.run(make_plan(resolved, memory=ledger.memory, clock=clock, forks=8, limits=limits))
            if dry:
                return plan
            work = apply_plan(
                plan, specs, ledger=ledger, clock=clock, observer=SilentObserver(), forks=8, policy=self.policy
            )
            return asyncio.run(work)

    def runs(self) -> list[str]:
        """The runs in the ledger, newest first."""
        with Ledger.open(self.place, readonly=True) as ledger:
            return [run.run for run in ledger.history()]

    def sent(self) -> list[LogEntry]:
        """The writes since the log was last cleared."""
        return self.sim.writes()

    def reads(self) -> list[str]:
        """The targets of the reads since the log was last cleared."""
        return [entry.target for entry in self.sim.log if entry.method == "GET"]

    def _write(self, name: str, value: Any) -> None:
        (self.folder / name).write_text(yaml.safe_dump(value, allow_unicode=True, sort_keys=False), encoding="utf-8")


def lines(entries: Iterable[LogEntry]) -> list[str]:
    """``METHOD target`` of each."""
    return [entry.line for entry in entries]
