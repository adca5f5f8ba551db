"""JUnit XML of plans and results."""

from __future__ import annotations

from lxml import etree
from msgspec import structs

from msauto.model.plan import Refusal
from msauto.report.ci_forms import Suites, render_plan, render_result
from tests.unit.report.made_plans import mixed_result, whole_plan


def test_a_result_is_a_test_for_each_target() -> None:
    result = structs.replace(mixed_result(), seconds=4.25)
    suites = etree.fromstring("".join(render_result(result)).encode())
    cases = {case.get("name"): [child.tag for child in case] for case in suites.iter("testcase")}
    for each in result.targets:
        wanted = {
            "failed": "failure",
            "unverified": "failure",
            "not attempted": "error",
        }
        found = next(
            tags for name, tags in cases.items() if name and name.endswith(each.target.name)
        )
        assert found == [wanted.get(each.outcome, "system-out")], each
    run = suites[-1]
    assert (run.get("name"), run[0].get("time")) == (f"run {result.run}", "4.250")
    assert sum(int(suite.get("tests", "")) for suite in suites) == len(
        list(suites.iter("testcase"))
    )


def test_a_plan_that_is_not_applied() -> None:
    refusal = Refusal("delete_assets", 0, 2, "--allow-delete 2")
    plan = structs.replace(whole_plan(), refusals=(refusal,))
    suites = etree.fromstring("".join(render_plan(plan)).encode())
    last = suites[-1]
    assert [case[0].tag for case in last] == ["error", "system-out"]
    assert "--allow-delete 2" in last[0][0].get("message", "")
    assert sum(int(suite.get("errors", "")) for suite in suites) == plan.errors + 1


def test_nothing_can_break_the_file() -> None:
    name = 'a<b>&"\x1b\x00]]>'
    suites = Suites([name], "t")
    suites.add(name, name, f"{name}\nmore", "failure", name, "failed")
    (suite,) = etree.fromstring(suites.render().encode())
    assert suite[0].get("name") == 'a<b>&"\\x1b\\x00]]>'
    assert suite[0][0].text == 'a<b>&"\\x1b\\x00]]>\nmore'
