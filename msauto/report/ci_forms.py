"""What CI servers read: JUnit XML, and problems as annotations of a merge request.

JUnit has a suite for each server and a test for each target. Annotations are workflow commands of GitHub Actions, and
GitLab Code Quality.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, Final, Literal
from xml.etree import ElementTree as ET  # it only writes

from msgspec import Struct

from msauto.errors import Problem
from msauto.model.plan import Plan
from msauto.model.result import Result, TargetResult
from msauto.report.layout import PLAIN, Layout
from msauto.report.result_view import NOT_DONE, result_lines, result_sentence
from msauto.report.sanitizing import show, visible, visible_lines
from msauto.report.texts import plan_sentence, plural, refusal_sentence, target_heading
from msauto.secrets.redacted_plans import redact_plan

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
    attributes = {
        "name": visible(name),
        "timestamp": time,
        "tests": str(len(cases)),
        "failures": str(states["failure"]),
        "errors": str(states["error"]),
        "skipped": str(states["skipped"]),
    }
    suite = ET.Element("testsuite", attributes)
    for case in cases:
        _add_case(suite, case)
    return suite


def _add_case(suite: ET.Element, case: TestCase) -> None:
    attributes = {
        "classname": suite.attrib["name"],
        "name": visible(case.name),
        "time": f"{case.seconds:.3f}",
    }
    test = ET.SubElement(suite, "testcase", attributes)
    details = "\n".join(visible_lines(case.details))
    if case.state == "passed":
        ET.SubElement(test, "system-out").text = details
        return
    why = {"message": visible(case.message)}
    if case.kind:
        why["type"] = case.kind
    ET.SubElement(test, case.state, why).text = details or None


def render_xml(root: ET.Element) -> str:
    """Return the file of a suite, or of several."""
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _render_suites(suites: Mapping[str, Iterable[TestCase]], time: str) -> str:
    root = ET.Element("testsuites", name="msauto")
    for name, cases in suites.items():
        root.append(suite_of(name, cases, time=time))
    return render_xml(root)


# Plans and results ---------------------------------------------------------------------------------------------------


def render_plan(plan: Plan, _: Layout = PLAIN) -> tuple[str]:
    """Return a plan that is not applied: a target in error and a refusal are errors."""
    plan = redact_plan(plan)
    suites: dict[str, list[TestCase]] = {server.name: [] for server in plan.servers}
    for target in plan.targets:
        changes = plural(len(target.changes), "change")
        requests = plural(len(target.requests), "request")
        heading = target_heading(target)
        case = TestCase(heading, details=f"{changes}, {requests}")
        if target.error is not None:
            message = target.error.partition("\n")[0]
            case = TestCase(heading, "error", "planning", message, target.error)
        suites.setdefault(target.server, []).append(case)
    closing = []
    for refusal in plan.refusals:
        closing.append(TestCase(refusal.code, "error", "refused", refusal_sentence(refusal)))
    closing.append(TestCase("plan", details=plan_sentence(plan)))
    suites["plan"] = closing
    return (_render_suites(suites, plan.created),)


def render_result(result: Result, _: Layout = PLAIN) -> tuple[str]:
    """Return the result of a run: what is not as desired is a failure, what was not attempted an error."""
    plan = result.plan
    suites: dict[str, list[TestCase]] = {server.name: [] for server in plan.servers}
    for target in result.targets:
        suites.setdefault(target.target.server, []).append(_case_of(target))
    for server in plan.servers:
        if server.unchanged:
            details = plural(server.unchanged, "unchanged target")
            suites[server.name].append(TestCase("unchanged", details=details))
    for skipped in plan.skipped:
        case = TestCase(skipped.name, "skipped", skipped.reason, f"skipped: {skipped.reason}")
        suites.setdefault(skipped.server, []).append(case)
    seconds = result.seconds or 0.0
    closing = TestCase("run", details=result_sentence(result), seconds=seconds)
    suites[f"run {result.run}"] = [closing]
    return (_render_suites(suites, plan.created),)


def _case_of(target: TargetResult) -> TestCase:
    outcome = target.outcome
    state: State = "passed"
    if outcome == "not attempted":
        state = "error"
    elif outcome in NOT_DONE:
        state = "failure"
    message: str = outcome
    if target.message:
        message = show(target.message.partition("\n")[0])
    details = "\n".join(line for _, line in result_lines(target, whole=True))
    heading = target_heading(target.target)
    return TestCase(heading, state, outcome, message, details, target.seconds)


_MOST: Final = 10
"""GitHub shows ten errors and ten warnings of a step."""
_LEVELS: Final[tuple[Literal["error", "warning"], ...]] = ("error", "warning")


def render_github(problems: Sequence[Problem]) -> Iterator[str]:
    """Yield workflow commands, as many as GitHub shows, and a last line with the number of the others."""
    hidden = []
    for level in _LEVELS:
        of_level = [problem for problem in problems if problem.level == level]
        for problem in of_level[:_MOST]:
            yield f"{_command(problem)}\n"
        if len(of_level) > _MOST:
            hidden.append(plural(len(of_level) - _MOST, level))
    if hidden:
        kinds = " and ".join(hidden)
        message = f"GitHub shows {_MOST} annotations of a kind: {kinds} not shown here. Run msauto validate to see all"
        yield f"::notice title={_property('msauto validate')}::{_data(message)}\n"


def _command(problem: Problem) -> str:
    place = problem.place
    properties = {}
    if place is not None:
        properties["file"] = _relative(place.file)
        if place.line:
            properties["line"] = str(place.line)
            properties["col"] = str(max(place.column, 1))
    properties["title"] = f"msauto {problem.kind}"
    shown = ",".join(f"{name}={_property(text)}" for name, text in properties.items())
    return f"::{problem.level} {shown}::{_data(_message(problem))}"


def _message(problem: Problem) -> str:
    message = "\n".join(visible_lines(problem.message))
    remedy = " ".join(visible_lines(problem.remedy))
    return "\n→ ".join(filter(None, (message, remedy)))


def _data(text: str) -> str:
    """Escape the message of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escape a property of a workflow command."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _relative(file: str) -> str:
    """Return a visible path: within the working folder relative to it, as the repository names it; others whole."""
    path = PurePath(file)
    here = Path.cwd()
    shown = path.relative_to(here) if path.is_relative_to(here) else path
    return visible(shown.as_posix())


def problems_gitlab(problems: Iterable[Problem]) -> list[dict[str, Any]]:
    """Return a Code Quality report, errors first. A fingerprint does not depend on what is above a problem."""
    counts: Counter[tuple[str, str]] = Counter()
    report = []
    for problem in sorted(problems, key=lambda problem: _LEVELS.index(problem.level)):
        file, line = ".", 1
        if problem.place is not None:
            file = _relative(problem.place.file)
            line = max(problem.place.line, 1)
        same = file, problem.message
        counts[same] += 1
        identity = "\0".join((*same, problem.level, str(counts[same])))
        fingerprint = hashlib.sha256(identity.encode("utf-8", "backslashreplace")).hexdigest()
        severity = "major" if problem.level == "error" else "minor"
        report.append(
            {
                "description": _message(problem),
                "check_name": f"msauto/{problem.kind}",
                "fingerprint": fingerprint,
                "severity": severity,
                "location": {"path": file, "lines": {"begin": line}},
            }
        )
    return report
