"""What a run may do without a person's word: the contract, «Limits»."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one run; settings and flags make one.

    ``delete_assets``: how many assets may go (``--allow-delete``). ``remove_items``: how many list items ``exactly``
    may remove before a person is asked. ``allow_remove``: the person's word (``--allow-remove``): this many, lists
    emptied or not. ``requests``: how many requests a run may send; ``None`` is no limit. ``protected``: globs of
    ``folder/title`` that no run may delete or remove from.
    """

    delete_assets: int = 0
    remove_items: int = 50
    allow_remove: int | None = None
    requests: int | None = None
    protected: tuple[str, ...] = ()
