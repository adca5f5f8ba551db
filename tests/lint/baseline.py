"""The baseline: how many findings of each rule a file may have. It may only shrink."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.lint.source import Finding

PATH = Path(__file__).parent / "baseline.json"

Key = tuple[str, str]
"""A rule and the path of a file."""


def count(findings: Iterable[Finding]) -> Counter[Key]:
    return Counter((finding.rule, finding.path) for finding in findings)


def above(found: Mapping[Key, int], allowed: Mapping[Key, int]) -> list[Key]:
    """Return the keys of ``found`` that are larger than in ``allowed``."""
    return sorted(key for key, number in found.items() if number > allowed.get(key, 0))


def read(path: Path = PATH) -> Counter[Key]:
    rules = json.loads(path.read_text(encoding="utf-8"))
    return Counter({(rule, file): number for rule, files in rules.items() for file, number in files.items()})


def write(counts: Mapping[Key, int], path: Path = PATH) -> None:
    rules: dict[str, dict[str, int]] = {}
    for (rule, file), number in sorted(counts.items()):
        rules.setdefault(rule, {})[file] = number
    path.write_text(json.dumps(rules, indent=1) + "\n", encoding="utf-8")
