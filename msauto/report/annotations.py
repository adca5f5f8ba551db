"""Problems as annotations of a merge request: workflow commands of GitHub Actions, and GitLab Code Quality."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any, Final, Literal

from msauto.errors import Problem
from msauto.report.sanitizing import visible_lines
from msauto.report.sentences import plural

_MOST: Final = 10
"""GitHub shows ten errors and ten warnings of a step."""
_LEVELS: Final[tuple[Literal["error", "warning"], ...]] = ("error", "warning")
_SEVERITIES: Final = {"error": "major", "warning": "minor"}


def errors_first(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems, the errors first, else in their order."""
    return sorted(problems, key=lambda problem: _LEVELS.index(problem.level))


def render_github(problems: Sequence[Problem]) -> Iterator[str]:
    """Yield workflow commands, as many as GitHub shows, and a last line with the number of the others."""
    left: Counter[str] = Counter()
    for level in _LEVELS:
        found = [problem for problem in problems if problem.level == level]
        yield from (f"{_command(problem)}\n" for problem in found[:_MOST])
        left[level] = len(found[_MOST:])
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
    """Return a path within the working folder relative to it, as the repository names it; others as they are."""
    path = PurePath(file)
    here = Path.cwd()
    return (path.relative_to(here) if path.is_relative_to(here) else path).as_posix()


def problems_gitlab(problems: Iterable[Problem]) -> list[dict[str, Any]]:
    """Return a Code Quality report. A fingerprint does not change when lines are added above a problem."""
    seen: Counter[tuple[str, str]] = Counter()
    report = []
    for problem in problems:
        file = _relative(problem.place.file) if problem.place is not None else "."
        same = file, problem.message
        seen[same] += 1
        fingerprint = "\0".join((*same, problem.level, str(seen[same])))
        report.append(
            {
                "description": _message(problem),
                "check_name": f"msauto/{problem.kind}",
                "fingerprint": hashlib.sha256(fingerprint.encode("utf-8", "backslashreplace")).hexdigest(),
                "severity": _SEVERITIES[problem.level],
                "location": {
                    "path": file,
                    "lines": {"begin": max(problem.place.line, 1) if problem.place is not None else 1},
                },
            }
        )
    return report
