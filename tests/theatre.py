"""Several servers and whole playbooks: from the text of plays to the servers and back, as the command line does it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from msauto.api.stages import apply_plan, make_plan, specs_of
from msauto.concurrency import SystemClock
from msauto.ledger import Ledger
from msauto.model.desired import ResolvedPlaybooks
from msauto.model.events import SilentObserver
from msauto.model.plan import Limits, Plan
from msauto.model.result import Result
from msauto.playbook.inventory.hosts import ResolveOptions
from msauto.playbook.resolve import resolve
from msauto.simulator import Simulator
from tests.dialects.fitting import auth_of, ours_of, server_of
from tests.dialects.pairwise import Row

BOLD = Limits(delete_assets=1000, allow_remove=1000)
Plays = Sequence[Mapping[str, Any]]


@dataclass
class Theatre:
    """Plans and applies plays; the servers are hosts of the group ``playout``, by their names here."""

    sims: Mapping[str, Simulator]
    folder: Path
    version: str | None = None
    dialect: Mapping[str, str] = field(default_factory=dict)
    auth: Mapping[str, Any] = field(default_factory=dict)

    def on(self, row: Row) -> Theatre:
        """Give all servers the habits of a row of the pairwise set, and the inventory what fits them."""
        for sim in self.sims.values():
            sim.dialect = server_of(row)
        self.dialect, self.auth = ours_of(row), auth_of(server_of(row))
        return self

    @property
    def sim(self) -> Simulator:
        """The only server, or the first."""
        return next(iter(self.sims.values()))

    def resolved(
        self, *plays: Mapping[str, Any], limit: str | None = None, tags: tuple[str, ...] = ()
    ) -> ResolvedPlaybooks:
        self.write(*plays)
        return resolve(
            ResolveOptions(
                playbooks=(str(self.folder / "playbook.yml"),),
                inventories=(str(self.folder / "inventory.yml"),),
                limit=limit,
                tags=tags,
                env={},
                now=datetime.now(UTC),
            )
        )

    def plan(self, *plays: Mapping[str, Any], forget_pending: bool = False, **options: Any) -> Plan:
        resolved = self.resolved(*plays, **options)
        with Ledger.open(self.folder / "state", readonly=True) as ledger:
            return asyncio.run(
                make_plan(
                    resolved,
                    memory=ledger.memory,
                    clock=SystemClock(),
                    forks=8,
                    limits=BOLD,
                    forget_pending=forget_pending,
                )
            )

    def apply(self, *plays: Mapping[str, Any], forks: int = 8, **options: Any) -> Result:
        """Plan and apply; the plan is ``result.plan``."""
        plan = self.plan(*plays, **options)
        assert not plan.errors, errors(plan)
        options.pop("forget_pending", None)
        with Ledger.open(self.folder / "state") as ledger:
            return asyncio.run(
                apply_plan(
                    plan,
                    specs_of(self.resolved(*plays, **options)),
                    ledger=ledger,
                    clock=SystemClock(),
                    observer=SilentObserver(),
                    forks=forks,
                )
            )

    def killed(self, *plays: Mapping[str, Any], when: Callable[[], bool]) -> None:
        """Apply in a process of its own, and kill it as soon as ``when`` is true."""
        self.write(*plays)
        command = [sys.executable, "-m", "msauto", "apply", "-i", "inventory.yml", "playbook.yml", "--yes"]
        command += ["--state-dir", "state"]
        with subprocess.Popen(command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            end = time.monotonic() + 30
            while not when():
                assert process.poll() is None, process.stderr.read().decode() if process.stderr else ""
                assert time.monotonic() < end, "what the test waits for did not come"
                time.sleep(0.01)
            os.kill(process.pid, signal.SIGKILL)

    def writes(self) -> list[str]:
        """``METHOD target`` of the writes that were done, and of downloads, since the log was last cleared."""
        return [entry.line for entry in self.sim.log if entry.method != "GET" or _is_download(entry.target)]

    def reads(self) -> list[str]:
        """The targets of the reads that are not downloads."""
        return [entry.target for entry in self.sim.log if entry.method == "GET" and not _is_download(entry.target)]

    def write(self, *plays: Mapping[str, Any]) -> None:
        """Write inventory and playbook."""
        hosts = {name: {"server": self._server(sim), "database": "NEWS"} for name, sim in self.sims.items()}
        self.save("inventory.yml", {"all": {"children": {"playout": {"hosts": hosts}}}})
        self.save("playbook.yml", [{"hosts": "playout", **play} for play in plays])

    def save(self, name: str, value: Any) -> None:
        """Write a file beside the playbook."""
        (self.folder / name).write_text(yaml.safe_dump(value, allow_unicode=True, sort_keys=False), encoding="utf-8")

    def _server(self, sim: Simulator) -> dict[str, Any]:
        block: dict[str, Any] = {"url": sim.url, "dialect": dict(self.dialect), "auth": dict(self.auth)}
        return block | ({"version": self.version} if self.version else {})


def _is_download(target: str) -> bool:
    return "/GETICON" in target or "/WP" in target


def changes(plan: Plan) -> list[str]:
    """``action aspect key`` of all changes, in the order of the run."""
    return [f"{each.action} {each.aspect} {each.key}" for target in plan.targets for each in target.changes]


def errors(plan: Plan) -> list[str]:
    """The errors of all targets."""
    return [target.error for target in plan.targets if target.error]


def outcomes(result: Result) -> list[str]:
    """``server name: outcome`` of each target."""
    return [f"{each.target.server} {each.target.name}: {each.outcome}" for each in result.targets]
