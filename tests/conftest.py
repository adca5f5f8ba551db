"""What tests have counted (faults, kill points, turns) is told when a run ends, also one with several workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

COUNTED = "counted"
"""The property under which a test records a count: ``record_property(COUNTED, "kill points: 65")``."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell the counts, each once."""
    told = list(dict.fromkeys(_counts(terminalreporter)))
    if told:
        terminalreporter.section("counted")
        for line in told:
            terminalreporter.write_line(line)


def _counts(reporter: pytest.TerminalReporter) -> Iterator[str]:
    for reports in reporter.stats.values():
        for report in reports:
            properties: list[tuple[str, Any]] = getattr(report, "user_properties", [])
            yield from (str(value) for name, value in properties if name == COUNTED)
