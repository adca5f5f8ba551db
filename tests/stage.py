"""The stage of tests: simulators, a folder, and the way from a playbook's text to the servers and back."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msauto.api.stages import apply_plan, make_plan, undo_of
from msauto.api.workplace import StageContext
from msauto.concurrency import SystemClock
from msauto.ledger.ledger import Ledger
from msauto.model.desired import ResolvedPlaybooks
from msauto.model.events import ignore
from msauto.model.plan import Limits, Plan
from msauto.model.ports import Clock
from msauto.model.result import Result
from msauto.playbook.hosts import ResolveOptions
from msauto.playbook.resolve import resolve
from msauto.plugins.simulator.embedded import LogEntry, ServerState, Simulator, empty_state
from msauto.retry_policy import RetryPolicy
from tests.dialects.fitting import auth_of, ours_of, server_of
from tests.dialects.pairwise import Row
from tests.tables import yaml_text

BOLD = Limits(delete_assets=1000, allow_remove=1000)
QUICK = RetryPolicy(backoff=(0.01,), read_pauses=(0.01, 0.03))
Work = Mapping[str, Any]
"""A task, or a play: what has ``tasks``."""


def news_with(titles: Iterable[str]) -> ServerState:
    """The content of a server: clips of these titles, which nothing else distinguishes."""
    state = empty_state()
    for title in titles:
        state.databases["NEWS"].add_clip(title, "Raw", frames=100)
    return state


def free_port() -> int:
    """Return a port of this machine at which nothing listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


@contextmanager
def entered(held: AbstractAsyncContextManager[None]) -> Iterator[None]:
    """Be in an asynchronous context, such as that of a lock; meanwhile its event loop does not run."""

    async def begin() -> None:
        await held.__aenter__()

    async def end() -> None:
        await held.__aexit__(None, None, None)

    with asyncio.Runner() as runner:
        runner.run(begin())
        try:
            yield
        finally:
            runner.run(end())


@dataclass
class Stage:
    """Plans and applies tasks or plays as the command line does it.

    The servers are ``studio``, or hosts of the group ``playout`` by their names; the inventory holds what they want to
    know of who asks. ``dialect`` is that of the inventory, ``block`` more of its ``server:``. ``place`` is where the
    ledger is; default is in the folder. A run waits shortly for what shows late.
    """

    servers: Simulator | Mapping[str, Simulator]
    folder: Path
    dialect: Mapping[str, str] = field(default_factory=dict)
    version: str | None = None
    policy: RetryPolicy = QUICK
    place: Path | str = ""
    block: Mapping[str, Any] = field(default_factory=dict)
    clock: Clock = field(default_factory=SystemClock)

    def __post_init__(self) -> None:
        self.place = self.place or self.folder / "state"
        # A repository: else msauto looks for one in all folders above, again for each file.
        (self.folder / ".git").mkdir(exist_ok=True)

    @property
    def sims(self) -> Mapping[str, Simulator]:
        return self.servers if isinstance(self.servers, Mapping) else {"studio": self.servers}

    @property
    def sim(self) -> Simulator:
        """The only server, or the first."""
        return next(iter(self.sims.values()))

    def on(self, row: Row) -> Stage:
        """Give all servers the habits of a row of the pairwise set, and the inventory what fits them."""
        for sim in self.sims.values():
            sim.dialect = server_of(row)
        self.dialect = ours_of(row)
        return self

    # Planning and applying ---------------------------------------------------------------------------------------

    def resolved(
        self, *work: Work, limit: str | None = None, tags: tuple[str, ...] = ()
    ) -> ResolvedPlaybooks:
        self.write(*work)
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

    def plan(
        self,
        *work: Work,
        limits: Limits = BOLD,
        forget_pending: bool = False,
        targets: tuple[str, ...] = (),
        **options: Any,
    ) -> Plan:
        resolved = self.resolved(*work, **options)
        return self.plan_of(resolved, limits=limits, forget_pending=forget_pending, targets=targets)

    def planned(self, resolved: ResolvedPlaybooks) -> Plan:
        """Plan; nothing may be sent by that but reads. The log is that of it alone."""
        self.sim.clear_log()
        plan = self.plan_of(resolved)
        assert {entry.method for entry in self.sim.log} <= {"GET"}, (
            "planning reads and does nothing else"
        )
        return plan

    def plan_of(self, resolved: ResolvedPlaybooks, **options: Any) -> Plan:
        """Plan what playbooks came to."""
        with Ledger.open(self.place, readonly=True) as ledger:
            return asyncio.run(make_plan(self._on(ledger, resolved), **{"limits": BOLD, **options}))

    def apply(self, *work: Work, forks: int = 8, **options: Any) -> Result:
        """Plan and apply; the plan is ``result.plan``, errors of targets left out."""
        scope = {name: options.pop(name) for name in ("limit", "tags") if name in options}
        resolved = self.resolved(*work, **scope)
        plan = self.plan_of(resolved, **options)
        return self.applied(plan, resolved, forks=forks)

    def applied(self, plan: Plan, resolved: ResolvedPlaybooks, *, forks: int = 8) -> Result:
        """Apply the plan as it is."""
        with Ledger.open(self.place) as ledger:
            return asyncio.run(self._apply(plan, resolved, ledger, forks))

    async def _apply(
        self, plan: Plan, resolved: ResolvedPlaybooks, ledger: Ledger, forks: int = 8
    ) -> Result:
        on = self._on(ledger, replace(resolved, secrets=plan.secrets), forks)
        return await apply_plan(plan, on, ignore)

    def _on(self, ledger: Ledger, resolved: ResolvedPlaybooks, forks: int = 8) -> StageContext:
        return StageContext(ledger, resolved, self.clock, forks, policy=self.policy)

    def undo(self, run: str = "last", *, dry: bool = False, limits: Limits = BOLD) -> Any:
        """Take a run back, as ``msauto undo`` does; ``dry``: the plan of it."""
        specs = self.resolved().specs
        with Ledger.open(self.place) as ledger:
            resolved = undo_of(ledger.run_details(run), specs)
            plan = asyncio.run(make_plan(self._on(ledger, resolved), limits))
            return plan if dry else asyncio.run(self._apply(plan, resolved, ledger))

    def killed(self, *work: Work, when: Callable[[], bool]) -> None:
        """Apply in a process of its own, and kill it as soon as ``when`` is true."""
        self.write(*work)
        command = [
            sys.executable,
            "-m",
            "msauto",
            "apply",
            "-i",
            "inventory.yml",
            "playbook.yml",
            "--yes",
        ]
        command += ["--state-dir", "state"]
        with subprocess.Popen(
            command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as process:
            end = time.monotonic() + 30
            while not when():
                assert process.poll() is None, (
                    process.stderr.read().decode() if process.stderr else ""
                )
                assert time.monotonic() < end, "what the test waits for did not come"
                time.sleep(0.01)
            os.kill(process.pid, signal.SIGKILL)

    # What came of it ---------------------------------------------------------------------------------------------

    def runs(self) -> list[str]:
        """The runs in the ledger, newest first."""
        with Ledger.open(self.place, readonly=True) as ledger:
            return [run.run for run in ledger.history()]

    def sent(self) -> list[LogEntry]:
        """The writes since the log was last cleared."""
        return self.sim.writes()

    def writes(self) -> list[str]:
        """``METHOD target`` of the writes that were done, and of downloads, since the log was last cleared."""
        return [
            entry.line
            for entry in self.sim.log
            if entry.method != "GET" or _is_download(entry.target)
        ]

    def reads(self) -> list[str]:
        """The targets of the reads that are not downloads, since the log was last cleared."""
        return [
            entry.target
            for entry in self.sim.log
            if entry.method == "GET" and not _is_download(entry.target)
        ]

    # Files -------------------------------------------------------------------------------------------------------

    def write(self, *work: Work) -> None:
        """Write inventory and playbook."""
        hosts = {
            name: {"server": self._server(sim), "database": "NEWS"}
            for name, sim in self.sims.items()
        }
        self.save("inventory.yml", {"all": {"children": {"playout": {"hosts": hosts}}}})
        plays = [dict(each) for each in work if "tasks" in each]
        tasks = [dict(each) for each in work if "tasks" not in each]
        plays += [{"name": "A test", "tasks": tasks}] if tasks or not plays else []
        self.save("playbook.yml", [{"hosts": "playout", **play} for play in plays])

    def save(self, name: str, value: Any) -> None:
        """Write a file beside the playbook."""
        (self.folder / name).write_text(yaml_text(value), encoding="utf-8")

    def _server(self, sim: Simulator) -> dict[str, Any]:
        block: dict[str, Any] = {
            "url": sim.url,
            "dialect": dict(self.dialect),
            "auth": auth_of(sim.dialect),
        }
        return block | dict(self.block) | ({"version": self.version} if self.version else {})


def _is_download(target: str) -> bool:
    return "/GETICON" in target or "/WP" in target


def lines(entries: Iterable[LogEntry]) -> list[str]:
    """``METHOD target`` of each."""
    return [entry.line for entry in entries]


def changes(plan: Plan) -> list[str]:
    """``action aspect key`` of all changes, in the order of the run."""
    return [
        f"{each.action} {each.aspect} {each.key}"
        for target in plan.targets
        for each in target.changes
    ]


def errors(plan: Plan) -> list[str]:
    """The errors of all targets."""
    return [target.error for target in plan.targets if target.error]


def outcomes(result: Result) -> list[str]:
    """``server name: outcome`` of each target."""
    return [f"{each.target.server} {each.target.name}: {each.outcome}" for each in result.targets]
