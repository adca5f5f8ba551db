"""How many examples a property test runs: a tenth in `make test`, all of them in `make explore`."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

EXPLORE: Final = "explore"
"""The profile of `make explore`, as `--hypothesis-profile`."""


def examples(count: int) -> int:
    """Return how many of ``count`` examples this run takes; at least 5."""
    return count if settings.get_current_profile_name() == EXPLORE else max(5, count // 10)
