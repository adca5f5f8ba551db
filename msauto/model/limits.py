"""What a run may do without a flag that allows it: the contract, «Limits»."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one run, from the settings and flags.

    ``delete_assets``: how many assets may be deleted (``--allow-delete``). ``remove_items``: how many list items
    ``exactly`` may remove without a flag. ``allow_remove`` (``--allow-remove``): how many it may remove, also if that
    empties a list. ``requests``: how many requests a run may send; ``None`` means unlimited. ``protected``: globs of
    ``folder/title`` that no run may delete or remove from.
    """

    delete_assets: int = 0
    remove_items: int = 50
    allow_remove: int | None = None
    requests: int | None = None
    protected: tuple[str, ...] = ()
