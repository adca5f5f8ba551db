"""How a target is named on one line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msauto.model.plan import Plan, Target
from msauto.report.sanitizing import show

_NAMED: Final = 3


def head_of(target: Target) -> str:
    """Name a target: server, database and name, visible; the form that a person searches for."""
    if target.kind == "database":
        return f"{show(target.server)} · database {show(target.name)}"
    if target.kind == "rss_channel":
        return f"{show(target.server)} · channel {show(target.name)}"
    return f"{show(target.server)} · {show(target.database)} · {show(target.name)}"


def folder_of(target: Target) -> str:
    """Say where an asset lives; empty where that is not known."""
    if target.folder is None:
        return ""
    return f"in {show(target.folder)}" if target.folder else "in the root folder"


def errors_of(plan: Plan) -> Iterator[tuple[str, str, str]]:
    """Yield head, folder and error of all that cannot be planned; what one server says of many targets, once."""
    groups: dict[tuple[str, str], list[Target]] = {}
    for target in plan.targets:
        if target.error is not None:
            groups.setdefault((target.server, target.error), []).append(target)
    for (server, error), targets in groups.items():
        if len(targets) == 1:
            yield head_of(targets[0]), folder_of(targets[0]), error
        else:
            yield f"{show(server)} · {_names(targets)}", "", error


def _names(targets: list[Target]) -> str:
    named = ", ".join(show(target.name) for target in targets[:_NAMED])
    more = len(targets) - _NAMED
    return f"{len(targets)} targets: {named}" + (f" and {more} more" if more > 0 else "")
