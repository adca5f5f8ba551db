"""Problems as SARIF 2.1.0 (OASIS), which GitHub, GitLab and editors show beside the line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from msauto.errors import Problem
from msauto.report.sanitizing import visible_lines
from msauto.version import __version__

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_RULES = {
    "msauto/error": ("Problem", "What is said cannot be, or cannot be understood."),
    "msauto/warning": ("Doubt", "It can be done as it stands, but hardly is what was meant."),
}


def problems_sarif(problems: Iterable[Problem]) -> dict[str, Any]:
    """Return one SARIF run. Lines and columns count from 1; columns count characters (``unicodeCodePoints``)."""
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": _driver()},
                "columnKind": "unicodeCodePoints",
                "results": [_result(problem) for problem in problems],
            }
        ],
    }


def _driver() -> dict[str, Any]:
    rules = [
        {"id": name, "name": title, "shortDescription": {"text": words}} for name, (title, words) in _RULES.items()
    ]
    return {"name": "msauto", "version": __version__, "semanticVersion": __version__, "rules": rules}


def _result(problem: Problem) -> dict[str, Any]:
    rule = f"msauto/{problem.level}"
    result: dict[str, Any] = {
        "ruleId": rule,
        "ruleIndex": list(_RULES).index(rule),
        "level": problem.level,
        "message": {"text": _words(problem)},
    }
    if problem.place is not None:
        result["locations"] = [{"physicalLocation": _location(problem)}]
    return result


def _words(problem: Problem) -> str:
    return " → ".join(" ".join(visible_lines(part)) for part in (problem.message, problem.remedy) if part)


def _location(problem: Problem) -> dict[str, Any]:
    place = problem.place
    if place is None:
        return {}
    location: dict[str, Any] = {"artifactLocation": {"uri": _uri(place.file)}}
    if place.line:
        location["region"] = {"startLine": place.line, "startColumn": max(place.column, 1)}
    return location


def _uri(file: str) -> str:
    """Return a relative reference for a relative path: CI resolves it in the repository; else a file URI."""
    path = PurePath(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
