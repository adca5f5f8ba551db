"""What a format cannot hold, as one line of JSON that other programs ignore and msauto reads back."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, TypeVar

from msauto.timelines.colors import TRACK_OF_COLOR, color_of
from msauto.timelines.timeline import EditMarker, EditSegment, TimelineError

Item = TypeVar("Item", EditMarker, EditSegment)
_NATIVE = frozenset({"frame", "start", "duration", "color", "line"})
"""What every format holds; ``color`` follows from the track."""


def extra_values(item: EditMarker | EditSegment, shown: str, *, colored: bool = True) -> str:
    """Return the values of an item that its position and the text that is shown do not hold, as JSON.

    ``colored``: the file shows the color of its track.
    """
    values = {each.name: getattr(item, each.name) for each in fields(item) if each.name not in _NATIVE}
    found = {name: value for name, value in values.items() if value not in {"", 0, None} or name == "number"}
    if found.get("number") is None:
        found.pop("number", None)
    if item.title == shown:
        found.pop("title", None)
    elif shown:
        found["title"] = item.title
    if colored and TRACK_OF_COLOR.get(color_of(found.get("track", ""))) == found.get("track"):
        found.pop("track", None)
    return json.dumps(found, separators=(",", ":")).replace(">", "\\u003e") if found else ""


def with_extra_values(item: Item, text: str, show: Callable[[Item], str], line: int) -> Item:
    """Return an item with its further values; a title that was edited in the file wins over the further ones."""
    if not text:
        return item
    try:
        values = json.loads(text)
        changed = replace(item, **{name: _checked(type(item), name, value) for name, value in values.items()})
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        remedy = "remove the MSAUTO values, or export again"
        raise TimelineError("the MSAUTO values are not as msauto writes them", remedy, line) from error
    return changed if show(changed) == item.title else replace(changed, title=item.title)


def _checked(kind: type[EditMarker] | type[EditSegment], name: str, value: Any) -> Any:
    known = {each.name for each in fields(kind)} - _NATIVE
    if name not in known or not isinstance(value, int if name in {"rating", "number"} else str):
        raise TypeError(name)
    return value
