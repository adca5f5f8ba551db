"""SARIF as GitHub and GitLab take it. The shape is that of OASIS SARIF 2.1.0, as far as a linter needs it."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from msauto.errors import Problem, SourceLocation
from msauto.report.ci.sarif import problems_sarif

TEXT = {"type": "object", "properties": {"text": {"type": "string", "minLength": 1}}, "required": ["text"]}
COUNT = {"type": "integer", "minimum": 1}
REGION = {
    "type": "object",
    "properties": {"startLine": COUNT, "startColumn": COUNT, "endLine": COUNT, "endColumn": COUNT},
    "required": ["startLine"],
    "additionalProperties": False,
}
ARTIFACT = {
    "type": "object",
    "properties": {"uri": {"type": "string", "format": "uri-reference"}, "uriBaseId": {"type": "string"}},
    "additionalProperties": False,
}
LOCATION = {
    "type": "object",
    "properties": {
        "physicalLocation": {
            "type": "object",
            "properties": {"artifactLocation": ARTIFACT, "region": REGION},
            "required": ["artifactLocation"],
            "additionalProperties": False,
        }
    },
    "additionalProperties": False,
}
RESULT = {
    "type": "object",
    "properties": {
        "ruleId": {"type": "string"},
        "ruleIndex": {"type": "integer", "minimum": 0},
        "level": {"enum": ["none", "note", "warning", "error"]},
        "message": TEXT,
        "locations": {"type": "array", "items": LOCATION},
    },
    "required": ["message"],
    "additionalProperties": False,
}
RULE = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "name": {"type": "string"},
        "shortDescription": TEXT,
        "fullDescription": TEXT,
        "help": TEXT,
        "defaultConfiguration": {"type": "object", "properties": {"level": {"enum": ["warning", "error"]}}},
    },
    "required": ["id"],
    "additionalProperties": False,
}
DRIVER = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "version": {"type": "string"},
        "semanticVersion": {"type": "string"},
        "rules": {"type": "array", "items": RULE, "uniqueItems": True},
    },
    "required": ["name"],
    "additionalProperties": False,
}
RUN = {
    "type": "object",
    "properties": {
        "tool": {"type": "object", "properties": {"driver": DRIVER}, "required": ["driver"]},
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
        "results": {"type": "array", "items": RESULT},
    },
    "required": ["tool"],
    "additionalProperties": False,
}
SARIF = {
    "type": "object",
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"enum": ["2.1.0"]},
        "runs": {"type": "array", "items": RUN},
    },
    "required": ["version", "runs"],
    "additionalProperties": False,
}

PROBLEMS = [
    Problem("unknown key 'x'", SourceLocation("plays/news å.yml", 3, 5), "did you mean 'y'?", kind="unknown-key"),
    Problem("cannot be read", SourceLocation("/abs/inventory.yml")),
    Problem("nobody notifies it", SourceLocation("p.yml", 9, 0), level="warning", kind="unused"),
    Problem("no server is named\x1b[2J"),
]


def test_shape() -> None:
    jsonschema.validate(problems_sarif(PROBLEMS), SARIF)
    jsonschema.validate(problems_sarif([]), SARIF)


def test_what_it_says() -> None:
    run: dict[str, Any] = problems_sarif(PROBLEMS)["runs"][0]
    first, whole, warning, nowhere = run["results"]
    assert first["message"]["text"] == "unknown key 'x' → did you mean 'y'?"
    assert first["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "plays/news%20%C3%A5.yml"},
                "region": {"startLine": 3, "startColumn": 5},
            }
        }
    ]
    assert whole["locations"] == [{"physicalLocation": {"artifactLocation": {"uri": "file:///abs/inventory.yml"}}}]
    assert warning["locations"][0]["physicalLocation"]["region"] == {"startLine": 9, "startColumn": 1}
    assert "locations" not in nowhere
    assert "\x1b" not in nowhere["message"]["text"]


@pytest.mark.parametrize(("index", "level", "kind"), [(0, "error", "unknown-key"), (2, "warning", "unused")])
def test_each_kind_is_a_rule_of_its_own(index: int, level: str, kind: str) -> None:
    run = problems_sarif(PROBLEMS)["runs"][0]
    result = run["results"][index]
    rules = run["tool"]["driver"]["rules"]
    assert result["level"] == level
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == f"msauto/{kind}"
    assert len({rule["help"]["text"] for rule in rules}) == len(rules)
