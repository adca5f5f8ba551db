"""A stage whose inventory holds credentials, and whose plan is applied as the same value."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msauto.api.stages import apply_plan, make_plan, specs_of
from msauto.concurrency import SystemClock
from msauto.ledger import Ledger
from msauto.model.desired import ResolvedPlaybooks
from msauto.model.events import SilentObserver
from msauto.model.plan import Plan, TargetId
from msauto.model.result import Result
from tests.dialects.case_seed import CREATED
from tests.dialects.fitting import auth_of
from tests.stage import BOLD, Stage


@dataclass
class AuthenticatedStage(Stage):
    """A stage whose inventory holds credentials."""

    def _write(self, name: str, value: Any) -> None:
        if name == "inventory.yml":
            value["all"]["hosts"]["studio"]["server"]["auth"] = auth_of(self.sim.dialect)
        super()._write(name, value)

    def remember(self, items: Mapping[str, Any]) -> None:
        """Put items into the ledger, of each target that a case may mean."""
        with Ledger.open(self.folder / "state") as ledger:
            for target in (
                TargetId(self.sim.url, "NEWS", "asset", "Film", 1, CREATED),
                TargetId(self.sim.url, "NEWS", "database", "NEWS"),
                TargetId(self.sim.url, "", "rss_channel", "ticker"),
            ):
                ledger.memory.remember(target, items)

    def planned(self, resolved: ResolvedPlaybooks) -> Plan:
        """Plan; nothing may be sent by that but reads."""
        self.sim.clear_log()
        with Ledger.open(self.folder / "state", readonly=True) as ledger:
            plan = asyncio.run(make_plan(resolved, memory=ledger.memory, clock=SystemClock(), forks=4, limits=BOLD))
        assert {entry.method for entry in self.sim.log} <= {"GET"}, "planning reads and does nothing else"
        return plan

    def applied(self, plan: Plan, resolved: ResolvedPlaybooks) -> Result:
        """Apply the plan as it is."""
        self.sim.clear_log()
        with Ledger.open(self.folder / "state") as ledger:
            work = apply_plan(
                plan,
                specs_of(resolved),
                ledger=ledger,
                clock=SystemClock(),
                observer=SilentObserver(),
                forks=4,
                policy=self.policy,
            )
            return asyncio.run(work)
