"""How many examples a property test runs: a quarter in `make test`, all of them in the slow step (`make scale`)."""

from __future__ import annotations

import os

THOROUGH = "MSAUTO_THOROUGH" in os.environ


def examples(count: int) -> int:
    """Return how many of ``count`` examples this run takes; at least 5."""
    return count if THOROUGH else max(5, count // 4)
