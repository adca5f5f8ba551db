"""How many examples a property test runs: all of them in CI, a tenth elsewhere."""

from __future__ import annotations

import os

THOROUGH = "CI" in os.environ


def examples(count: int) -> int:
    """Return how many of ``count`` examples this run takes; at least 5."""
    return count if THOROUGH else max(5, count // 10)
