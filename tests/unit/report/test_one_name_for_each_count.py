"""The outcome is «not attempted»; a count of it is ``not_attempted`` in every form (design, «Words»)."""

from __future__ import annotations

from typing import get_args

from msauto.model.codec import LazyItems
from msauto.model.result import OUTCOMES, Outcome, Result, TargetResult, key_of
from msauto.report.json import result_json
from msauto.report.result_view import recap_of
from tests.unit.report.made_plans import film, plan_of


def test_all_outcomes_are_counted_under_the_same_names() -> None:
    assert get_args(Outcome) == OUTCOMES
    names = [*map(key_of, OUTCOMES)]
    assert names[-1] == "not_attempted"
    plan = plan_of(film())
    result = Result("r", plan, tuple(TargetResult(film(), outcome) for outcome in OUTCOMES))
    assert {tuple(counts) for counts in recap_of(result).values()} == {(*names, "requests")}
    summary = result_json({"targets": LazyItems([])}, result)["result"]
    names.remove("interrupted")  # of a run, it tells whether the user stopped it
    assert {name: summary[name] for name in names} == dict.fromkeys(names, 1)
