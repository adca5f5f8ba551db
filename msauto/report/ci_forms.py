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
from msauto.model.result import Result
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


def render_plan(plan: Plan, _: Layout = PLAIN) -> tuple[str]:
    """Return a plan that is not applied: a target in error and a refusal are errors."""
    plan = redact_plan(plan)
    suites: dict[str, list[TestCase]] = {server.name: [] for server in plan.servers}
    for target in plan.targets:
        changes, requests = plural(len(target.changes), "change"), plural(len(target.requests), "request")
        case = TestCase(target_heading(target), details=f"{changes}, {requests}")
        if target.error is not None:
            case = TestCase(case.name, "error", "planning", target.error.partition("\n")[0], target.error)
        suites.setdefault(target.server, []).append(case)
    limits = [TestCase(each.code, "error", "refused", refusal_sentence(each)) for each in plan.refusals]
    closing = TestCase("plan", details=plan_sentence(plan))
    return (_render_suites({**suites, "plan": [*limits, closing]}, plan.created),)


def render_result(result: Result, _: Layout = PLAIN) -> tuple[str]:
    """Return the result of a run: what is not as desired is a failure, what was not attempted an error."""
    suites: dict[str, list[TestCase]] = {server.name: [] for server in result.plan.servers}
    states: dict[str, State] = {"not attempted": "error", "skipped": "skipped"}
    for each in result.targets:
        details = "\n".join(line for _, line in result_lines(each, whole=True))
        message = show(each.message.partition("\n")[0]) if each.message else each.outcome
        state = states.get(each.outcome, "failure" if each.outcome in NOT_DONE else "passed")
        case = TestCase(target_heading(each.target), state, each.outcome, message, details, each.seconds)
        suites.setdefault(each.target.server, []).append(case)
    for server in result.plan.servers:
        if server.unchanged:
            details = plural(server.unchanged, "unchanged target")
            suites[server.name].append(TestCase("unchanged", details=details))
    closing = TestCase("run", details=result_sentence(result), seconds=result.seconds or 0.0)
    return (_render_suites({**suites, f"run {result.run}": [closing]}, result.plan.created),)


_MOST: Final = 10
"""GitHub shows ten errors and ten warnings of a step."""
_LEVELS: Final[tuple[Literal["error", "warning"], ...]] = ("error", "warning")


def render_github(problems: Sequence[Problem]) -> Iterator[str]:
    """Yield workflow commands, as many as GitHub shows, and a last line with the number of the others."""
    left: Counter[str] = Counter()
    for level in _LEVELS:
        of_level = [problem for problem in problems if problem.level == level]
        yield from (f"{_command(problem)}\n" for problem in of_level[:_MOST])
        left[level] = len(of_level[_MOST:])
    rest = " and ".join(plural(left[level], level) for level in _LEVELS if left[level])
    if rest:
        message = f"GitHub shows {_MOST} annotations of a kind: {rest} not shown here. Run msauto validate to see all"
        yield f"::notice title={_property('msauto validate')}::{_data(message)}\n"


def _command(problem: Problem) -> str:
    place = problem.place
    properties = {}
    if place is not None:
        properties["file"] = _relative(place.file)
        if place.line:
            properties |= {"line": str(place.line), "col": str(max(place.column, 1))}
    properties["title"] = f"msauto {problem.kind}"
    shown = ",".join(f"{name}={_property(text)}" for name, text in properties.items())
    return f"::{problem.level} {shown}::{_data(_message(problem))}"


def _message(problem: Problem) -> str:
    parts = ("\n".join(visible_lines(problem.message)), " ".join(visible_lines(problem.remedy)))
    return "\n→ ".join(filter(None, parts))


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
    seen: Counter[tuple[str, str]] = Counter()
    report = []
    for problem in sorted(problems, key=lambda problem: _LEVELS.index(problem.level)):
        file, line = (_relative(problem.place.file), problem.place.line) if problem.place is not None else (".", 1)
        same = file, problem.message
        seen[same] += 1
        fingerprint = "\0".join((*same, problem.level, str(seen[same])))
        report.append(
            {
                "description": _message(problem),
                "check_name": f"msauto/{problem.kind}",
                "fingerprint": hashlib.sha256(fingerprint.encode("utf-8", "backslashreplace")).hexdigest(),
                "severity": "major" if problem.level == "error" else "minor",
                "location": {"path": file, "lines": {"begin": max(line, 1)}},
            }
        )
    return report
