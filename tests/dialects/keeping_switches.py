"""What a story is about stays as it is on every row: the switches that it keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tests.dialects.pairwise import Row

Story = TypeVar("Story", bound=Callable[..., Any])


def keeps(**switches: str) -> Callable[[Story], Story]:
    """Keep switches of the server, or keys of ours (``our_...``), for a story that another value makes another one."""

    def mark(story: Story) -> Story:
        vars(story)["kept_switches"] = switches
        return story

    return mark


def kept_by(story: Callable[..., Any]) -> Row:
    """Return the switches that a story keeps."""
    kept: Row = getattr(story, "kept_switches", {})
    return kept
