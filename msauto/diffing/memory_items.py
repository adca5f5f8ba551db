"""Names of items of the memory that several stages share, and the records of requests that may have run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msauto.model.plan import Change, Json

PENDING_PREFIX = "pending:handler:"
"""Prefix of the item of a handler that has not run since a run changed its target."""
BETWEEN = "segment-between:"
"""Prefix of the item of a segment that was deleted to be created again, until it is."""


def answer_told(remembered: Mapping[str, Json]) -> str:
    """Describe the answer to a command that may have run."""
    status = remembered.get("status")
    return "its answer was lost" if status is None else f"the server answered {status}"


def certain(changes: Iterable[Change]) -> list[Change]:
    """Return the changes that surely are differences: not those of unknown values."""
    return [change for change in changes if change.basis != "none"]
