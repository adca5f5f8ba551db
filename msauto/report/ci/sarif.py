"""Problems as SARIF 2.1.0 (OASIS), which GitHub, GitLab and editors show at the line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from msauto.errors import PROBLEM_KINDS, Problem, SourceLocation
from msauto.report.sanitizing import visible_lines
from msauto.version import __version__

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_RULES = list(PROBLEM_KINDS)
_PAGE = "docs/reference/errors.md"


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
        {
            "id": f"msauto/{kind}",
            "name": kind.title().replace("-", ""),
            "shortDescription": {"text": description.partition(". ")[0].rstrip(".")},
            "fullDescription": {"text": description},
            "help": {"text": f"{description} See {_PAGE}#{kind}."},
            "defaultConfiguration": {"level": "warning" if kind == "unused" else "error"},
        }
        for kind, description in PROBLEM_KINDS.items()
    ]
    return {"name": "msauto", "version": __version__, "semanticVersion": __version__, "rules": rules}


def _result(problem: Problem) -> dict[str, Any]:
    parts = (problem.message, problem.remedy)
    result: dict[str, Any] = {
        "ruleId": f"msauto/{problem.kind}",
        "ruleIndex": _RULES.index(problem.kind),
        "level": problem.level,
        "message": {"text": " → ".join(" ".join(visible_lines(part)) for part in parts if part)},
    }
    if problem.place is not None:
        result["locations"] = [{"physicalLocation": _location(problem.place)}]
    return result


def _location(place: SourceLocation) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": {"uri": _uri(place.file)}}
    if place.line:
        location["region"] = {"startLine": place.line, "startColumn": max(place.column, 1)}
    return location


def _uri(file: str) -> str:
    """Return a relative reference for a relative path, which CI resolves in the repository; otherwise a file URI."""
    path = PurePath(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
