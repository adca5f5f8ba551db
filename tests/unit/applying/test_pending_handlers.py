"""What the ledger holds of handlers and commands, at every moment at which a run may die, and after every response."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping

import pytest

from msauto.applying.executor import BatchFailures, Targets, apply
from msauto.circuit_breaker import CircuitBreaker
from msauto.model.desired import Batch
from msauto.model.live import Asset
from msauto.model.plan import Change, Plan, Request, Settlement, Target
from msauto.model.result import TargetResult
from msauto.model.snapshot import Effect, Json
from tests.tables import table
from tests.unit.applying.applying_world import SOURCE, Stage, asset_target, fields_target, plan_of

RUN = "run-1"
PENDING: Json = {"run": RUN}
LOST: Json = {"run": RUN, "unknown": True}


def target_of(stage: Stage, *, pending: str = "", first: bool = True) -> Target:
    """A field, then the handlers Export and Copy, both commands."""
    stage.world.assets["Film"] = Asset("Film", link_id=7)
    changes: list[Change] = []
    requests: list[Request] = []
    if first:
        change = Change("change", "field", "comment", "raw", "Ready", "live", True, SOURCE)
        changes.append(change)
        requests.append(
            Request(
                "POST", "/Film?field", (0,), effects=(Effect("field", "comment", "raw", "Ready"),)
            )
        )
        stage.world.effects["/Film?field"] = lambda world: world.set_field(
            "Film", "comment", "Ready"
        )
    for name in ("Export", "Copy"):
        changes.append(
            Change(
                "run",
                "command",
                name.upper(),
                None,
                {},
                "live",
                False,
                SOURCE,
                handler=name,
                pending=pending,
            )
        )
        effect = Effect("command", name.upper(), None, "handler", visible=False)
        requests.append(Request("POST", f"/Film?{name}", (len(changes) - 1,), effects=(effect,)))
    return asset_target("Film", tuple(changes), tuple(requests))


def pending_items(stage: Stage, target: Target) -> Mapping[str, Json]:
    kept = stage.memory.recall(target.id)
    return {
        item.removeprefix("pending:handler:"): value
        for item, value in kept.items()
        if item.startswith("pending:")
    }


def test_at_every_moment_at_which_a_run_may_die() -> None:
    stage = Stage()
    target = target_of(stage)
    seen: list[Mapping[str, Json]] = []
    stage.world.on_send = lambda path: seen.append(dict(pending_items(stage, target)))
    stage.run(target)
    assert seen == [
        {"Export": PENDING, "Copy": PENDING},
        {"Export": LOST, "Copy": PENDING},
        {"Copy": LOST},
    ]
    assert pending_items(stage, target) == {}


@table("applying/handlers_after_outcomes", "responses", "left")
def test_after_every_outcome(responses: list[str], left: Mapping[str, Json]) -> None:
    stage = Stage()
    target = target_of(stage)
    for request, response in zip(target.requests, responses, strict=True):
        stage.world.responses[request.path] = [response] * 3
    stage.run(target)
    assert pending_items(stage, target) == left


@pytest.mark.parametrize("response", ["404", "refused"])
def test_a_handler_pending_before_keeps_its_run(response: str) -> None:
    stage = Stage()
    target = target_of(stage, pending="run-0", first=False)
    stage.world.responses["/Film?Export"] = [response] * 3
    stage.run(target)
    assert pending_items(stage, target) == {"Export": {"run": "run-0"}, "Copy": {"run": "run-0"}}


def test_settlements_are_written_before_anything_is_sent() -> None:
    stage = Stage()
    target = fields_target(stage.world, "Film", 1)
    other = target_of(Stage()).id
    stage.memory.remember(
        other, {"pending:handler:Export": PENDING, "command:X": {"unverified": RUN}}
    )
    plan = Plan(
        "now",
        "0",
        targets=(target,),
        settlements=(
            Settlement(other, "pending:handler:Export", None),
            Settlement(other, "command:X", value=True),
        ),
    )
    at_send: list[Mapping[str, Json]] = []
    stage.world.on_send = lambda path: at_send.append(dict(stage.memory.recall(other)))
    stage.run_plan(plan)
    assert at_send == [{"command:X": True}]


def test_a_target_of_which_nothing_can_be_seen_is_read_for_its_identity() -> None:
    stage = Stage()
    target = target_of(stage, first=False)
    stage.run(target)
    assert stage.world.reads == ["asset Film"]


# Batches -------------------------------------------------------------------------------------------------------


def test_each_batch_takes_its_databases_first() -> None:
    targets = (
        Target("a", "NEWS", "asset", "Film", batch=1),
        Target("a", "NEWS", "database", "NEWS", batch=0),
        Target("a", "NEWS", "asset", "News", batch=0),
        Target("a", "", "rss_channel", "ticker", batch=1),
    )
    stage, shown = Stage(), list[tuple[str, ...]]()

    class Recorder:
        unsettled = False

        async def apply(self, server: str, targets: Targets, *_: object) -> None:
            shown.append((server, *(target.name for target in targets.values())))

    ports = stage.journal, stage.memory, stage.world.clock, stage.events
    asyncio.run(apply(lambda _: Recorder(), plan_of(*targets), *ports))
    assert shown == [("a", "NEWS"), ("a", "News"), ("a", "Film", "ticker")]


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("max_fail", [None, 0, 20, 50, 99, 100])
@pytest.mark.parametrize("fatal", [False, True])
def test_when_a_batch_stops_the_run(size: int, max_fail: float | None, fatal: bool) -> None:
    servers = tuple("abcde"[:size])
    plan = Plan(
        "now", "0", batches=(Batch("play", servers, max_fail, fatal), Batch("play", ("z",)))
    )
    for failed in range(size + 1):
        for outcome in ("failed", "unverified"):
            watch = BatchFailures(plan, 0)
            for number, server in enumerate(itertools.chain(servers, servers)):
                bad = number % size < failed
                watch.note(
                    TargetResult(Target(server, "N", "asset", "x"), outcome if bad else "changed"),
                    CircuitBreaker(),
                )
            at_once = failed > 0 and (
                fatal or (max_fail is not None and failed / size * 100 > max_fail)
            )
            assert bool(watch.stop_reason()) is at_once
            assert bool(watch.stop_reason(batch_finished=True)) is (at_once or failed == size)


def test_a_plan_without_batches_is_stopped_by_nothing() -> None:
    watch = BatchFailures(plan_of(), 0)
    watch.note(TargetResult(Target("a", "N", "asset", "x"), "failed"), CircuitBreaker())
    assert watch.stop_reason(batch_finished=True) is None
