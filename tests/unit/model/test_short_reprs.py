"""What asyncio, a debugger or a failing test prints of a plan and a result stays short."""

from msauto.model.plan import Address, Plan, Target
from msauto.model.result import Result, TargetResult

TARGET = Target("studio-a", "NEWS", "asset", "Film", None, "", (), (), None, Address("Film"))
PLAN = Plan("2026-11-20T10:15:00Z", "0.1.0", targets=(TARGET,) * 3, unchanged=7)


def test_a_plan() -> None:
    assert repr(PLAN) == "<Plan 2026-11-20T10:15:00Z: 3 targets, 7 unchanged>"


def test_a_result() -> None:
    results = (TargetResult(TARGET, "changed"),) * 3
    assert repr(Result("run-1", PLAN, results)) == "<Result run-1: 3 targets>"
    assert repr(Result("run-1", PLAN, results, interrupted=True)) == "<Result run-1: 3 targets, interrupted>"
