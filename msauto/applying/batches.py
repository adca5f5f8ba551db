"""The batches of a run (``serial``, ``max_fail_percentage``, ``any_errors_fatal``), by Ansible's rules.

A server has failed where one of its targets in the batch did, or is unverified, or where it was given up. The next
batches are not begun once all servers of a batch have failed, once more of them failed than ``max_fail_percentage``
allows, or, with ``any_errors_fatal``, once one has; the last two also keep the rest of the batch from being begun.
Targets under way are brought to their end.
"""

from __future__ import annotations

from collections.abc import Iterator

from msauto.model.desired import Batch
from msauto.model.plan import Plan, Target
from msauto.model.result import TargetResult

Numbered = tuple[int, Target]
Wave = list[Numbered]
"""Targets that may be applied at the same time, with their numbers in the plan."""


def waves(plan: Plan, number: int) -> Iterator[Wave]:
    """Yield the waves of a batch: its databases go before its assets, for an XMP batch may write what they want."""
    mine = [(index, target) for index, target in enumerate(plan.targets) if target.batch == number]
    for first in (True, False):
        wave = [(index, target) for index, target in mine if (target.kind == "database") is first]
        if wave:
            yield wave


def numbers(plan: Plan) -> list[int]:
    """Return the numbers of the batches, in the order of the run."""
    return sorted({target.batch for target in plan.targets})


class BatchFailures:
    """Counts the servers of one batch that have failed. A plan without batches is one batch that nothing stops."""

    def __init__(self, plan: Plan, number: int) -> None:
        there = number < len(plan.batches)
        self._batch: Batch | None = plan.batches[number] if there else None
        self._name = f"batch {number + 1} of {len(plan.batches)}"
        self._failed: dict[str, None] = {}

    def note(self, result: TargetResult, *, given_up: bool = False) -> None:
        """Take note of what came of a target, or that its server was given up."""
        if given_up or result.outcome in {"failed", "unverified"}:
            self._failed[result.target.server] = None

    def why_stop(self, *, over: bool = False) -> str | None:
        """Return why nothing more is to be begun; ``over``: all targets of the batch have come to their end."""
        batch, failed = self._batch, len(self._failed)
        if batch is None or not failed:
            return None
        if batch.fatal:
            return f"{self._words()}, and any_errors_fatal stops at the first"
        if batch.max_fail is not None and 100 * failed > batch.max_fail * len(batch.servers):
            return f"{self._words()}, more than max_fail_percentage {batch.max_fail:g} allows"
        if over and set(batch.servers) <= set(self._failed):
            return f"{self._words()}: none is left"
        return None

    def _words(self) -> str:
        total = len(self._batch.servers) if self._batch else 0
        return f"not begun: in {self._name} {len(self._failed)} of {total} servers failed ({', '.join(self._failed)})"
