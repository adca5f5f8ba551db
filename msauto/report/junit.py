"""JUnit XML, which CI servers show as tests: plans and results, a suite for each server, a test for each target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal
from xml.etree import ElementTree as ET  # it only writes

from msgspec import Struct

from msauto.model.plan import Plan, Target
from msauto.model.result import Result, TargetResult
from msauto.report.result_view import NOT_DONE, result_lines, result_sentence
from msauto.report.sanitizing import show, visible, visible_lines
from msauto.report.sentences import plan_sentence, plural, refusal_sentence, target_heading
from msauto.secrets.redactor import redact_plan

State = Literal["passed", "failure", "error", "skipped"]


class TestCase(Struct, frozen=True):
    """One test: ``kind`` and ``message`` are why it did not pass, ``details`` what it did."""

    __test__ = False  # pytest must not collect it

    name: str
    state: State = "passed"
    kind: str = ""
    message: str = ""
    details: str = ""
    seconds: float = 0.0


def suite_of(name: str, cases: Iterable[TestCase], *, time: str = "") -> ET.Element:
    """Return a suite; ``time``: when it began, ISO 8601."""
    cases = list(cases)
    states = Counter(case.state for case in cases)
    counts = {"failures": states["failure"], "errors": states["error"], "skipped": states["skipped"]}
    shown = {count: str(number) for count, number in ({"tests": len(cases)} | counts).items()}
    suite = ET.Element("testsuite", {"name": visible(name), "timestamp": time, **shown})
    for each in cases:
        test = {"classname": visible(name), "name": visible(each.name), "time": f"{each.seconds:.3f}"}
        case = ET.SubElement(suite, "testcase", test)
        details = "\n".join(visible_lines(each.details))
        if each.state == "passed":
            ET.SubElement(case, "system-out").text = details
        else:
            why = {"message": visible(each.message), **({"type": each.kind} if each.kind else {})}
            ET.SubElement(case, each.state, why).text = details or None
    return suite


def render_xml(root: ET.Element) -> str:
    """Return the file of a suite, or of several."""
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _render_suites(suites: Mapping[str, Iterable[TestCase]], time: str) -> str:
    root = ET.Element("testsuites", name="msauto")
    root.extend(suite_of(name, cases, time=time) for name, cases in suites.items())
    return render_xml(root)


# Plans and results ---------------------------------------------------------------------------------------------------


def render_plan(plan: Plan) -> str:
    """Return a plan that is not applied: a target in error and a refusal are errors."""
    plan = redact_plan(plan)
    suites: dict[str, list[TestCase]] = {server.name: [] for server in plan.servers}
    for target in plan.targets:
        suites.setdefault(target.server, []).append(_planned(target))
    limits = [TestCase(each.code, "error", "refused", refusal_sentence(each)) for each in plan.refusals]
    closing = TestCase("plan", details=plan_sentence(plan))
    return _render_suites({**suites, "plan": [*limits, closing]}, plan.created)


def _planned(target: Target) -> TestCase:
    name = target_heading(target)
    if target.error is not None:
        return TestCase(name, "error", "planning", target.error.partition("\n")[0], target.error)
    return TestCase(name, details=f"{plural(len(target.changes), 'change')}, {plural(len(target.requests), 'request')}")


def render_result(result: Result) -> str:
    """Return the result of a run: what is not as desired is a failure, what was not attempted an error."""
    suites: dict[str, list[TestCase]] = {server.name: [] for server in result.plan.servers}
    for each in result.targets:
        suites.setdefault(each.target.server, []).append(_applied(each))
    for server in result.plan.servers:
        if server.unchanged:
            suites[server.name].append(
                TestCase("unchanged", details=f"{plural(server.unchanged, 'target')} as desired")
            )
    closing = TestCase("run", details=result_sentence(result), seconds=result.seconds or 0.0)
    return _render_suites({**suites, f"run {result.run}": [closing]}, result.plan.created)


def _applied(result: TargetResult) -> TestCase:
    details = "\n".join(line for _, line in result_lines(result, whole=True))
    message = show(result.message.partition("\n")[0]) if result.message else result.outcome
    case = TestCase(target_heading(result.target), details=details, seconds=result.seconds)
    if result.outcome not in NOT_DONE and result.outcome != "skipped":
        return case
    states: dict[str, State] = {"not attempted": "error", "skipped": "skipped"}
    state = states.get(result.outcome, "failure")
    return TestCase(case.name, state, result.outcome, message, details, result.seconds)
