"""The advice about a target whose requests were all accepted, and which is not as desired."""

from __future__ import annotations

import pytest

from msauto.model.result import Difference, RequestResult, TargetResult
from msauto.model.snapshot import AspectName, Json
from msauto.report.result_view import advice
from tests.unit.report.made_plans import episode


def advised(*differences: Difference) -> str:
    done = tuple(RequestResult("done", 200, tries=1) for _ in episode().requests)
    return advice(TargetResult(episode(), "failed", requests=done, differences=differences))


def test_a_value_that_the_server_cut_is_to_be_shortened() -> None:
    told = advised(
        Difference("field", "comment", "Ready for air", "Ready for"),
        Difference("field", "layer", "1", "2"),
    )
    assert told == "the server keeps only the beginning of the value: shorten it"


@pytest.mark.parametrize(
    ("status", "told"), [(403, "the account may not write this"), (400, "fix the cause and run")]
)
def test_a_rejected_account_is_named(status: int, told: str) -> None:
    rejected = (RequestResult("failed", status, "no", tries=1),)
    assert advice(TargetResult(episode(), "failed", requests=rejected)).startswith(told)


@pytest.mark.parametrize(
    ("desired", "live"), [("Ready", ""), ("Ready", None), ("Ready", "steady"), (["a"], ["a", "b"])]
)
def test_what_is_no_beginning_was_written_by_somebody_else(desired: Json, live: Json) -> None:
    told = advised(Difference("field", "comment", desired, live))
    assert told.endswith(
        "returns something else; check whether something else writes there, then run again"
    )


@pytest.mark.parametrize(
    ("aspect", "key"),
    [("rss_item", "rss_guid"), ("xmp", "list_separator"), ("marker", "marker_update")],
)
def test_keys_of_the_dialect_that_may_not_fit_are_named(aspect: AspectName, key: str) -> None:
    told = advised(Difference(aspect, "x", "desired", None), Difference("field", "y", "1", "2"))
    assert f"whether the dialect fits the server (`{key}`" in told
