"""How many examples a property test runs: a tenth or fewer in `make test`, all of them in `make explore`."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

EXPLORE: Final = "explore"
"""The profile of `make explore`, as `--hypothesis-profile`."""


def examples(count: int, *, fast: int | None = None) -> int:
    """Return how many of ``count`` examples this run takes: ``fast`` in `make test`, default a tenth, at least 5."""
    if settings.get_current_profile_name() == EXPLORE:
        return count
    return max(5, count // 10) if fast is None else fast
