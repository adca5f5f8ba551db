"""``serial``, ``max_fail_percentage``, ``any_errors_fatal`` over several servers: what is begun, and what is not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from msauto.errors import InputError
from msauto.model.plan import Plan
from msauto.playbook.resolve import divide
from msauto.plugins.simulator.embedded import Simulator, empty_state
from tests.dialects.pairwise import Row
from tests.stage import Stage, outcomes
from tests.tables import table

NAMES = ("a", "b", "c", "d")


@pytest.fixture
def stage(row: Row, tmp_path: Path) -> Iterator[Stage]:
    with ExitStack() as stack:
        sims = {}
        for name in NAMES:
            state = empty_state()
            for title in ("Film", "News"):
                state.add_clip(title, "Raw", frames=500)
            sims[name] = stack.enter_context(Simulator(state=state))
        yield Stage(sims, tmp_path).on(row)


def play(title: str = "Film", *, text: str = "Ready", **more: Any) -> dict[str, Any]:
    return {
        "name": f"{title} is ready",
        "tasks": [{"asset": {"title": title, "fields": {"comment": text}}}],
        **more,
    }


def fail(stage: Stage, *names: str, match: str = "SETFIELD") -> None:
    for name in names:
        stage.sims[name].faults.add(f"status:403@{match}")


def batches(plan: Plan) -> list[tuple[str, ...]]:
    return [batch.servers for batch in plan.batches]


def told(result: Any) -> str:
    """One sign for each server: changed, failed, not attempted, in the order of the run."""
    return " ".join(each.target.server + each.outcome[0] for each in result.targets)


@table("playbook/serial", "serial", "expected")
def test_serial(stage: Stage, serial: Any, expected: list[list[str]]) -> None:
    plan = stage.plan(play(serial=serial))
    assert batches(plan) == [tuple(servers) for servers in expected]
    assert [target.server for target in plan.targets] == list(NAMES)
    assert [target.batch for target in plan.targets] == [
        number for number, servers in enumerate(expected) for _ in servers
    ]


def test_divide_leaves_nobody_out() -> None:
    hosts = [str(number) for number in range(7)]
    for serial in ([], [1], [2, 3], [0.3], [1, 0], [100]):
        assert [name for batch in divide(hosts, serial) for name in batch] == hosts
        assert all(divide(hosts, serial))


def test_without_serial_there_are_no_batches(stage: Stage) -> None:
    plan = stage.plan(play(), play("News"))
    assert (plan.batches, {target.batch for target in plan.targets}) == ((), {0})
    fail(stage, "a", "b", "c", "d", match="Film.command=SETFIELD")
    assert told(stage.apply(play(), play("News"))) == "af ac bf bc cf cc df dc"


def test_one_after_the_other(stage: Stage) -> None:
    assert stage.apply(play(serial=1)).ok
    times = [next(e.time for e in stage.sims[name].log if e.method == "POST") for name in NAMES]
    assert times == sorted(times)
    proofs = [max(e.time for e in stage.sims[name].log if e.method == "GET") for name in NAMES]
    assert all(proof <= begun for proof, begun in zip(proofs, times[1:], strict=False)), (
        "each is proved before the next"
    )


def test_a_failed_batch_stops_the_next_ones(stage: Stage) -> None:
    fail(stage, "b")
    result = stage.apply(play(serial=1))
    assert told(result) == "ac bf cn dn"
    assert "batch 2 of 4" in result.targets[2].message
    assert "1 of 1 servers failed (b)" in result.targets[2].message
    assert stage.sims["c"].writes() == []


def test_half_a_batch_goes_on(stage: Stage) -> None:
    fail(stage, "b")
    assert told(stage.apply(play(serial=2))) == "ac bf cc dc"


def test_max_fail_percentage(stage: Stage) -> None:
    fail(stage, "b")
    assert told(stage.apply(play(serial=2, max_fail_percentage=50))) == "ac bf cc dc", (
        "more than, not as much as"
    )
    stage.sims["b"].faults.clear()
    fail(stage, "c")
    assert told(stage.apply(play(text="x", serial=[3, 1], max_fail_percentage=30))) == "ac bc cf dn"


def test_any_errors_fatal(stage: Stage) -> None:
    fail(stage, "b")
    result = stage.apply(play(any_errors_fatal=True), forks=1)
    assert told(result) == "ac bf cn dn"
    assert "any_errors_fatal" in result.targets[2].message


def test_the_next_play_is_not_begun_either(stage: Stage) -> None:
    fail(stage, "a", match="Film.command")
    result = stage.apply(play(serial=1), play("News"))
    assert outcomes(result)[0] == "a Film: failed"
    assert {each.outcome for each in result.targets[1:]} == {"not attempted"}


def test_the_first_play_decides(stage: Stage) -> None:
    """A target of several plays is applied once, whole, in the batch of the first play that names it."""
    second = {"tasks": [{"asset": {"title": "Film", "fields": {"user_1": "x"}}}]}
    plan = stage.plan(play(serial=2), second, play("News"))
    assert batches(plan) == [("a", "b"), ("c", "d"), NAMES]
    assert [(t.name, t.batch) for t in plan.targets if t.server == "c"] == [
        ("Film", 1),
        ("News", 2),
    ]


def test_everything_is_planned_before_anything_is_sent(stage: Stage) -> None:
    stage.sims["d"].state.databases["NEWS"].remove_clip(stage.sims["d"].state.clip("Film"))
    plan = stage.plan(play(serial=1))
    assert plan.errors == 1


def test_limits_and_what_they_leave(stage: Stage) -> None:
    assert batches(stage.plan(play(serial=2), limit="a,c:d:!c")) == [("a", "d")]
    (stage.folder / "failed.txt").write_text("b\n\n# a comment\nc\n")
    assert batches(stage.plan(play(serial=1), limit=f"@{stage.folder / 'failed.txt'}")) == [
        ("b",),
        ("c",),
    ]
    assert batches(
        stage.plan(play(serial=1), limit=f"playout:!@{stage.folder / 'failed.txt'}")
    ) == [("a",), ("d",)]
    assert batches(stage.plan(play(serial=1), limit="[ab]:&playout")) == [("a",), ("b",)]
    with pytest.raises(InputError, match="not found"):
        stage.plan(play(), limit="@nowhere.txt")
    with pytest.raises(InputError, match="unknown host or group 'nobody'"):
        stage.plan(play(), limit="nobody")
    with pytest.raises(InputError, match="matches no host"):
        stage.plan(play(), limit="a:!a")
    with pytest.raises(InputError, match="matches no host of any play"):
        stage.plan(play(hosts="a"), limit="b")
