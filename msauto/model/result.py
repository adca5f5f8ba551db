"""What came of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from msauto.model.plan import AspectName, Json, Plan, Target

Outcome = Literal["changed", "unchanged", "failed", "unverified", "skipped", "not attempted"]
OUTCOMES: Final[tuple[Outcome, ...]] = ("changed", "unchanged", "failed", "unverified", "skipped", "not attempted")
"""All outcomes, in the order in which they are counted."""
RequestOutcome = Literal["done", "failed", "unverified", "not sent"]


def key_of(outcome: Outcome) -> str:
    """Return the outcome as the name of a count: ``not_attempted``, in JSON and in the recap alike."""
    return outcome.replace(" ", "_")


@dataclass(frozen=True, slots=True)
class Difference:
    """A thing that is not as wanted when read again."""

    aspect: str
    key: str
    desired: Json
    live: Json


@dataclass(frozen=True, slots=True)
class RequestResult:
    """What came of one request: ``tries`` counts how often it was sent (more than one only where certain)."""

    outcome: RequestOutcome
    status: int | None = None
    message: str = ""
    tries: int = 0


@dataclass(frozen=True, slots=True)
class TargetResult:
    """What came of one target; ``requests`` runs beside ``target.requests``.

    ``learned`` is what the proof showed of what the server named by itself: ``marker:<key>`` to the new uid;
    ``seen`` counts the things that the proof has seen, ``unseen`` names the aspect of each that no reading shows whole.
    """

    target: Target
    outcome: Outcome
    message: str = ""
    requests: tuple[RequestResult, ...] = ()
    differences: tuple[Difference, ...] = ()
    learned: Mapping[str, Json] = field(default_factory=dict)
    seen: int = 0
    unseen: tuple[AspectName, ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a run: one result for each target of the plan, in its order."""

    run: str
    plan: Plan
    targets: tuple[TargetResult, ...]
    interrupted: bool = False

    def __repr__(self) -> str:
        """Return a short form, as that of its plan."""
        return f"<Result {self.run}: {len(self.targets)} targets{', interrupted' if self.interrupted else ''}>"

    @property
    def ok(self) -> bool:
        """Everything is done and proved."""
        done = all(target.outcome in {"changed", "unchanged", "skipped"} for target in self.targets)
        return done and not self.plan.left_out

    def with_left_out(self, plan: Plan) -> Result:
        """Return the result for the whole ``plan``, whose targets in error were left out of the run: not attempted."""
        came = iter(self.targets)
        targets = tuple(
            next(came) if target.error is None else TargetResult(target, "not attempted", target.error)
            for target in plan.targets
        )
        return replace(self, plan=plan, targets=targets)
