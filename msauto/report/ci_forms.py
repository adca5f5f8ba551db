"""What CI servers read: JUnit XML, and problems as annotations of a merge request.

JUnit has a suite for each server and a test for each target. Annotations are workflow commands of GitHub Actions, and
GitLab Code Quality.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any, Final, Literal
from xml.etree import ElementTree as ET  # it only writes

from msauto.errors import Problem
from msauto.model.plan import Plan
from msauto.model.result import Result, TargetResult
from msauto.report.layout import PLAIN, Layout
from msauto.report.result_view import NOT_DONE, result_lines, result_sentence
from msauto.report.sanitizing import show, visible, visible_lines
from msauto.report.texts import plan_sentence, plural, refusal_sentence, target_heading
from msauto.secrets.redacted_plans import redact_plan

State = Literal["passed", "failure", "error", "skipped"]


class Suites:
    """The file: a suite for each server, and a last one; ``time``: when it began, ISO 8601."""

    def __init__(self, servers: Iterable[str], time: str) -> None:
        self._root = ET.Element("testsuites", name="msauto")
        self._time = time
        self._suites: dict[str, ET.Element] = {}
        for server in servers:
            self.suite(server)

    def suite(self, name: str) -> ET.Element:
        """Return the suite of a name; a new one is the last."""
        if name not in self._suites:
            attributes = {"name": visible(name), "timestamp": self._time}
            self._suites[name] = ET.SubElement(self._root, "testsuite", attributes)
        return self._suites[name]

    def add(
        self,
        suite: str,
        name: str,
        details: str,
        state: State = "passed",
        message: str = "",
        kind: str = "",
        seconds: float = 0.0,
    ) -> None:
        """Add a test: ``kind`` and ``message`` are why it did not pass, ``details`` what it did."""
        parent = self.suite(suite)
        test = ET.SubElement(
            parent,
            "testcase",
            classname=parent.attrib["name"],
            name=visible(name),
            time=f"{seconds:.3f}",
        )
        details = "\n".join(visible_lines(details))
        if state == "passed":
            ET.SubElement(test, "system-out").text = details
            return
        why = {"message": visible(message), "type": kind}
        ET.SubElement(test, state, why).text = details or None

    def render(self) -> str:
        """Return the file, in which each suite has its counts."""
        for suite in self._root:
            suite.set("tests", str(len(suite)))
            for attribute, state in _COUNTS.items():
                suite.set(attribute, str(len(suite.findall(f"*/{state}"))))
        ET.indent(self._root)
        text = ET.tostring(self._root, encoding="unicode")
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


_COUNTS: Final = {"failures": "failure", "errors": "error", "skipped": "skipped"}
"""The counts of a suite, each with the element of a test that it counts."""


def render_plan(plan: Plan, _: Layout = PLAIN) -> tuple[str]:
    """Return a plan that is not applied: a target in error and a refusal are errors."""
    plan = redact_plan(plan)
    suites = Suites([server.name for server in plan.servers], plan.created)
    for target in plan.targets:
        heading = target_heading(target)
        if target.error is not None:
            message = target.error.partition("\n")[0]
            suites.add(target.server, heading, target.error, "error", message, "planning")
            continue
        changes = plural(len(target.changes), "change")
        requests = plural(len(target.requests), "request")
        suites.add(target.server, heading, f"{changes}, {requests}")
    for refusal in plan.refusals:
        sentence = refusal_sentence(refusal)
        suites.add("plan", refusal.code, "", "error", sentence, "refused")
    suites.add("plan", "plan", plan_sentence(plan))
    return (suites.render(),)


def render_result(result: Result, _: Layout = PLAIN) -> tuple[str]:
    """Return the result of a run: what is not as desired is a failure, what was not attempted an error."""
    plan = result.plan
    suites = Suites([server.name for server in plan.servers], plan.created)
    for target in result.targets:
        _add_result(suites, target)
    for server in plan.servers:
        if server.unchanged:
            suites.add(server.name, "unchanged", plural(server.unchanged, "unchanged target"))
    for skipped in plan.skipped:
        why = f"skipped: {skipped.reason}"
        suites.add(skipped.server, skipped.name, "", "skipped", why, skipped.reason)
    seconds = result.seconds or 0.0
    suites.add(f"run {result.run}", "run", result_sentence(result), seconds=seconds)
    return (suites.render(),)


def _add_result(suites: Suites, target: TargetResult) -> None:
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
    server = target.target.server
    suites.add(server, heading, details, state, message, outcome, target.seconds)


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
