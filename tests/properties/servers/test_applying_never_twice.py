"""Whatever a server does: no write twice that may have been done, and every word about it is true."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msauto.ledger.ledger import Ledger
from msauto.model.result import Result
from tests.examples import examples
from tests.unit.applying.applying_world import Stage, fields_target

SURE = ["ok", "400", "404", "500", "400 after", "500 after", "refused", "503", "429", "503 after"]
UNSURE = [
    "cut before",
    "cut after",
    "502",
    "504 after",
    "cut late 2",
    "cut late 50",
    "late 2",
    "late 50",
    "swallowed",
]
responses = st.lists(st.sampled_from([*SURE, *UNSURE, "crash"]), max_size=4)
AGAIN = {"503", "429"}  # may be followed by another send: refused, and not done


scripts = st.lists(st.lists(responses, min_size=3, max_size=3), min_size=1, max_size=4)


@settings(max_examples=examples(300), deadline=None)
@given(script=scripts, unreadable=st.integers(0, 6), forks=st.integers(1, 4))
def test_nothing_twice_and_nothing_untrue(
    script: list[list[list[str]]], unreadable: int, forks: int
) -> None:
    stage = Stage()
    result, planned = play(stage, script, unreadable, forks)
    check(stage, result, planned, unreadable, stage.journal.states, stage.journal.outcomes)


@pytest.mark.scale
@settings(
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(script=scripts, unreadable=st.integers(0, 6), forks=st.integers(1, 4))
def test_nothing_twice_and_nothing_untrue_in_a_ledger(
    place: Path | str, script: list[list[list[str]]], unreadable: int, forks: int
) -> None:
    with Ledger.open(place) as ledger:
        stage = Stage(journal=ledger.journal, memory=ledger.memory())  # type: ignore[arg-type]
        result, planned = play(stage, script, unreadable, forks)
        records = ledger.run_details(result.run).targets
    states = {
        (record.target.name, index): "not sent" if request.state == "planned" else request.state
        for record in records
        for index, request in enumerate(record.requests)
    }
    check(
        stage,
        result,
        planned,
        unreadable,
        states,
        {each.target.name: each.outcome for each in records},
    )


def play(
    stage: Stage, script: list[list[list[str]]], unreadable: int, forks: int
) -> tuple[Result, dict[str, list[str]]]:
    """Apply targets to a server that answers as in the script; return the result, and the answers by request."""
    targets = []
    planned: dict[str, list[str]] = {}
    for number, of_target in enumerate(script):
        target = fields_target(stage.world, f"Film-{number}")
        targets.append(target)
        for request, answers in zip(target.requests, of_target, strict=True):
            planned[request.path] = answers
            stage.world.responses[request.path] = list(answers)
    stage.world.unreadable = unreadable
    return stage.run(*targets, forks=forks), planned


def check(
    stage: Stage,
    result: Result,
    planned: Mapping[str, list[str]],
    unreadable: int,
    states: Mapping[tuple[str, int], str],
    outcomes: Mapping[str, str | None],
) -> None:
    """Compare what was sent with the result, and with what the journal knows."""
    for target_result in result.targets:
        seen_end = False
        for request, came in zip(
            target_result.target.requests, target_result.requests, strict=True
        ):
            sends = [response for response in planned[request.path] if response != "refused"][
                : stage.world.sent.count(request.path)
            ]
            assert all(response in AGAIN for response in sends[:-1]), (
                "sent again though it may have been done"
            )
            assert stage.world.done.count(request.path) <= 1
            done = request.path in stage.world.done
            if came.outcome == "not sent":
                assert not done
                assert request.path not in stage.world.sent
            else:
                assert not seen_end, "sent after a request that was not done"
            if came.outcome == "failed":
                assert not done or unreadable
            seen_end = seen_end or came.outcome != "done"
            index = target_result.target.requests.index(request)
            known = states.get((target_result.target.name, index), "not sent")
            assert known == came.outcome
        attributes = stage.world.assets[target_result.target.name].attributes
        if target_result.outcome == "changed":
            assert set(attributes.values()) == {"new"}
        else:
            assert target_result.message
        assert outcomes[target_result.target.name] == target_result.outcome
