"""How a target is named on one line."""

from __future__ import annotations

from msauto.model.live import show_folder
from msauto.model.plan import Target
from msauto.report.visible import show


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
    return f"in {show(show_folder(target.folder))}" if target.folder else "in the root folder"
