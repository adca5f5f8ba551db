"""How long a test may take, how property tests run, and what tests have counted, reported when a run ends.

Property tests (Hypothesis) have no deadline for one example on a shared machine. In CI the examples are the same each
time. Elsewhere a tenth of them runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from tests.examples import examples

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True, max_examples=examples(100))
settings.register_profile("here", deadline=None, max_examples=examples(100))
settings.load_profile("ci" if os.environ.get("CI") else "here")

COUNTED = "counted"
"""The property under which a test records a count: ``record_property(COUNTED, "kill points: 65")``."""


_SLOW = 1200  # seconds for a test marked `scale`
_SHRINKING = 480  # seconds for a property test: Hypothesis takes up to 300 to find the smallest example that fails


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give slow tests and property tests their own time limits; for all others it is `timeout` in pyproject.toml."""
    for item in items:
        is_property = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        if item.get_closest_marker("timeout") is not None:
            continue
        if item.get_closest_marker("scale") is not None:
            item.add_marker(pytest.mark.timeout(_SLOW))
        elif is_property:
            item.add_marker(pytest.mark.timeout(_SHRINKING))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the counts, each once."""
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
