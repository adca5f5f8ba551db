"""The batches of a run (``serial``, ``max_fail_percentage``, ``any_errors_fatal``), by Ansible's rules.

A server has failed if one of its targets in the batch failed or is unverified, or if its circuit breaker is open. The
next batch does not start once all servers of a batch have failed, once more of them failed than ``max_fail_percentage``
allows, or, with ``any_errors_fatal``, once one failed. The last two also stop the rest of the batch. Targets in
progress are always finished.
"""

from __future__ import annotations

from collections.abc import Iterator

from msauto.model.plan import Plan, Target
from msauto.model.result import TargetResult

NumberedTarget = tuple[int, Target]
"""A target, and its index in the plan."""


def waves(plan: Plan, number: int) -> Iterator[list[NumberedTarget]]:
    """Yield the targets of a batch that may be applied concurrently: databases first, because a batch writes assets."""
    batch = [(index, target) for index, target in enumerate(plan.targets) if target.batch == number]
    for databases in (True, False):
        wave = [(index, target) for index, target in batch if (target.kind == "database") is databases]
        if wave:
            yield wave


def batch_numbers(plan: Plan) -> list[int]:
    """Return the numbers of the batches, in the order of the run."""
    return sorted({target.batch for target in plan.targets})


class BatchFailures:
    """Counts the failed servers of one batch. Nothing stops the single batch of a plan that has no batches."""

    def __init__(self, plan: Plan, number: int) -> None:
        self._batch = plan.batches[number] if number < len(plan.batches) else None
        self._name = f"batch {number + 1} of {len(plan.batches)}"
        self._failed: dict[str, None] = {}
        self._stopped = ""

    @property
    def can_stop(self) -> bool:
        """Whether failures may stop the batch."""
        return self._batch is not None

    def stop(self, reason: str) -> None:
        """Stop the batch because of failures that are counted elsewhere."""
        self._stopped = reason

    def note(self, result: TargetResult, *, server_lost: bool = False) -> None:
        """Note the result of a target, and whether the circuit breaker of its server is open."""
        if server_lost or result.outcome in {"failed", "unverified"}:
            self._failed[result.target.server] = None

    def stop_reason(self, *, batch_finished: bool = False) -> str | None:
        """Return why no further target may start; ``batch_finished``: all targets of the batch have finished."""
        batch = self._batch
        if self._stopped or batch is None or not self._failed:
            return self._stopped or None
        total = len(batch.servers)
        failed = f"{len(self._failed)} of {total} servers failed ({', '.join(self._failed)})"
        if batch.fatal:
            rule = ", and any_errors_fatal is set"
        elif batch.max_fail is not None and 100 * len(self._failed) > batch.max_fail * total:
            rule = f", more than max_fail_percentage {batch.max_fail:g} allows"
        elif batch_finished and set(batch.servers) <= set(self._failed):
            rule = ": no server is left"
        else:
            return None
        return f"not started: {self._name}: {failed}{rule}"
