"""Run the command on a scenario, and judge it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from msauto.simulator import Simulator
from tests.cli.command_line import Desk, Said
from tests.worlds.oracle import Judge
from tests.worlds.scenario import PROTECTED, Scenario
from tests.worlds.watch import Watch, is_late


@dataclass
class Stand:
    """One server and one folder for many worlds; the ledger is new for each. ``passed``: added to the time of day."""

    sim: Simulator
    desk: Desk
    passed: timedelta = timedelta()
    runs: int = 0

    def wrong(self, scenario: Scenario) -> list[str]:
        """Apply the playbook with the change and the faults, and then undo it or apply it again; all that is wrong."""
        self.sim.state, self.sim.dialect = scenario.state, scenario.server
        server = {"url": self.sim.url, "dialect": dict(scenario.ours)}
        self.desk.inventory({"studio": {"server": server, "database": "NEWS"}})
        self.desk.play(*scenario.tasks)
        self.desk.write("msauto.toml", f'protected = ["{PROTECTED}"]\n')
        self.runs += 1
        first, said = self._run(scenario, "apply", "play.yml")
        found = _judged(scenario, first, said)
        if isinstance(found, list):
            return found
        wrong = list(found.faults())
        if said.code in (0, 3):
            quiet = replace(scenario, hook=None, change=None, faults=())
            if scenario.undo is None:
                return wrong + self._again(quiet, settled=said.code == 0 and _is_settled(scenario))
            scenario.undo(self.sim.state)
            undo, said = self._run(quiet, "undo", "last")
            wrong += [said.err] if _failed(said) else found.undone(undo)
        return wrong

    def _again(self, quiet: Scenario, settled: bool) -> list[str]:
        """Apply it again in peace; ``settled``: the run before was in peace too."""
        watch, said = self._run(quiet, "apply", "play.yml")
        judge = _judged(quiet, watch, said)
        wrong = [f"second run: {each}" for each in (judge if isinstance(judge, list) else judge.faults())]
        sent = [entry.line for entry in watch.writes]
        if settled and (said.code or sent):
            wrong.append(f"second run: (d) exit code {said.code}, {sent}")
        return wrong

    def _run(self, scenario: Scenario, *arguments: str) -> tuple[Watch, Said]:
        watch = Watch(self.sim)
        watch.start(scenario, self._pause)
        options = ("-i", "inventory.yml", "--yes", "--format", "json", "--state-dir", f"s{self.runs}")
        said = self.desk.run(*arguments, *options, *scenario.flags)
        self._wait_for_late_work()
        watch.stop()
        return watch, said

    def _pause(self) -> None:
        self.passed += timedelta(minutes=2)

    def _wait_for_late_work(self) -> None:
        """Else it is done in the next world."""
        end = time.monotonic() + 5
        while any(is_late(entry) and not entry.done for entry in self.sim.writes()) and time.monotonic() < end:
            time.sleep(0.01)


def _judged(scenario: Scenario, watch: Watch, said: Said) -> Judge | list[str]:
    if _failed(said):
        return [said.err]
    values: dict[str, Any] = json.loads(said.out)
    return Judge(scenario, watch, said.code, values)


def _is_settled(scenario: Scenario) -> bool:
    """Whether a second run has nothing to do: no disturbance, and no task names other clips after the first."""
    assets = [task["asset"] for task in scenario.tasks if "asset" in task]
    moving = any("was" in asset or "select" in asset for asset in assets)
    reused = any("uid" in item for asset in assets for item in asset.get("markers", ()))
    return not (scenario.hook or scenario.faults or moving or reused)


def _failed(said: Said) -> bool:
    return "Traceback" in said.err or "msauto itself failed" in said.err
