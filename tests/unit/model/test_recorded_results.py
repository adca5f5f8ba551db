"""What the ledger recorded of a target, as a result."""

from __future__ import annotations

from msauto.model.plan import Target
from msauto.model.result import Outcome, RequestOutcome, RequestRecord, RequestState, TargetRecord
from tests.tables import table

TARGET = Target("studio-a", "NEWS", "asset", "Film")


@table("model/recorded_requests", "states", "outcome", "requests")
def test_without_an_outcome_the_requests_show_how_far_a_target_came(
    states: list[RequestState], outcome: Outcome, requests: list[RequestOutcome]
) -> None:
    result = TargetRecord(TARGET, tuple(map(RequestRecord, states))).result
    assert (result.outcome, [each.outcome for each in result.requests]) == (outcome, requests)
    assert result.message == "the run ended before this target was done"


def test_a_recorded_outcome_is_kept() -> None:
    requests = (RequestRecord("done"), RequestRecord("sending"))
    result = TargetRecord(TARGET, requests, outcome="failed", message="no").result
    assert (result.outcome, result.message, result.requests[1].outcome) == (
        "failed",
        "no",
        "unverified",
    )
