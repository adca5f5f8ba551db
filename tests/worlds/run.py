"""Run a scenario, what follows it, and judge both."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import msauto
from msauto.concurrency import SystemClock
from msauto.errors import MsautoError
from msauto.plugins.simulator.embedded import Simulator
from tests.worlds.oracle import Judge
from tests.worlds.picture import Camera, Picture
from tests.worlds.scenario import Scenario
from tests.worlds.watch import Watch
from tests.worlds.world import PROTECTED, Spoken

EXPORT = {"name": "Export", "command": {"name": "PARTNER_EXPORT_VERSION"}}


@dataclass
class Stand:
    """One server and one folder for many worlds; the ledger is new for each.

    ``passed``: added to the time of day, as is ``clock``, by which it has jumped. ``pace``: how many times as short the
    pauses of a run are. ``watches``: what happened in each run of the last world.
    """

    sim: Simulator
    folder: Path
    passed: timedelta = timedelta()
    clock: timedelta = timedelta()
    pace: int = 1
    runs: int = 0
    watches: list[Watch] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.folder / "msauto.toml").write_text(f'protected = ["{PROTECTED}"]\n')

    def wrong(self, scenario: Scenario) -> list[str]:
        """Apply the playbook with the changes and the faults, then undo it, or apply it again; all that is wrong."""
        self.sim.state, self.sim.dialect = scenario.state, scenario.server
        self.runs += 1
        self.pace = (
            50 if any("lag" in fault or "late" in fault for fault in scenario.faults) else 1000
        )
        self.watches.clear()
        camera = Camera(scenario.server)
        self.clock = timedelta()
        if scenario.earlier:
            self._apply(replace(scenario, tasks=scenario.earlier, hooks=(), faults=()), camera)
            self.clock = scenario.clock
        judge = self._run(scenario, camera)
        wrong = list(judge.faults())
        if not judge.said:
            return wrong
        quiet = replace(scenario, hooks=(), faults=())
        if scenario.undo is None:
            if scenario.by_day is not None:
                scenario.by_day(self.sim.state)
            again = self._run(replace(quiet, tasks=scenario.again), camera, judge.left())
            faults = (*again.faults(), *again.unnamed(), *again.forgotten(judge))
            wrong += [f"second run: {each}" for each in faults]
            if (
                scenario.by_day is None
                and judge.ok
                and _is_settled(scenario)
                and (not again.ok or again.watch.writes)
            ):
                wrong.append(f"second run: (d) {again.said.get('summary')}, {again.watch.writes}")
            return wrong
        scenario.undo(self.sim.state)
        watch, result = self._apply(quiet, camera, undo="last")
        whole = result is not None and result.ok and not json.loads(result.to_json())["warnings"]
        return wrong + list(judge.undone(watch, whole=whole))

    def _run(self, scenario: Scenario, camera: Camera, before: Picture | None = None) -> Judge:
        watch, result = self._apply(scenario, camera)
        said: dict[str, Any] = json.loads(result.to_json()) if result is not None else {}
        return Judge(scenario, watch, said, before or {}, ok=result is not None and result.ok)

    def _apply(
        self, scenario: Scenario, camera: Camera, **more: Any
    ) -> tuple[Watch, msauto.Result | None]:
        """Apply tasks, or take a run back; no result where that was refused."""
        tasks = [
            {"name": f"Task {number}", **_written(task)}
            for number, task in enumerate(scenario.tasks, 1)
        ]
        server = {"url": self.sim.url, "dialect": dict(scenario.ours)}
        given: dict[str, Any] = {
            "inventory": {"all": {"hosts": {"studio": {"server": server, "database": "NEWS"}}}},
            "config": self.folder / "msauto.toml",
            "state_dir": self.folder / f"s{self.runs}",
            "forks": scenario.forks,
        }
        if not more:
            more = {"playbooks": [{"hosts": "all", "tasks": tasks, "handlers": [EXPORT]}]}
            more |= {"tags": scenario.tags} if scenario.tags else {}
        watch = Watch(self.sim, camera, self._pause)
        self.watches.append(watch)
        watch.start(scenario)
        try:
            allowed: dict[str, Any] = scenario.allowed
            result = msauto.apply(msauto.load(**more, **given), observer=watch.notice, **allowed)
        except MsautoError:
            result = None
        finally:
            watch.stop()
        return watch, result

    def _pause(self) -> None:
        self.passed += timedelta(minutes=2)


@contextmanager
def a_stand(folder: Path) -> Iterator[Stand]:
    """Open a server whose runs make short pauses, and in which time can pass."""

    async def sleep(_: object, seconds: float) -> None:
        await asyncio.sleep(seconds / stand.pace)

    def now() -> datetime:
        return datetime.now(UTC) + stand.passed + stand.clock

    def monotonic(_: object) -> float:
        return time.monotonic() + stand.passed.total_seconds()

    with (
        Simulator("empty") as sim,
        mock.patch.multiple(SystemClock, sleep=sleep, now=staticmethod(now), monotonic=monotonic),
    ):
        stand = Stand(sim, folder)
        yield stand


def _written(task: Any) -> Any:
    """Return a task, or a part of one, as a playbook writes it: positions are time codes."""
    if isinstance(task, dict):
        return {name: _written(value) for name, value in task.items()}
    if isinstance(task, list):
        return [_written(value) for value in task]
    return task.text if isinstance(task, Spoken) else task


def _is_settled(scenario: Scenario) -> bool:
    """Whether a second run has nothing to do: no disturbance, and no task names other clips after the first."""
    assets = [task["asset"] for task in scenario.tasks if "asset" in task]
    moving = any("was" in asset or "select" in asset for asset in assets)
    reused = any("uid" in item for asset in assets for item in asset.get("markers", ()))
    return not (scenario.hooks or scenario.faults or moving or reused or scenario.tags)
