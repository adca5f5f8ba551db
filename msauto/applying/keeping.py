"""Which memories a write makes doubtful, and which must be kept at once."""

from __future__ import annotations

from msauto.applying.proving import only
from msauto.model.plan import Json, Target
from msauto.model.ports import LiveTarget
from msauto.planning.remember import memories

_ITEMS = {"field": "field", "xmp": "xmp", "segment": "segment-keywords", "rss_item": "rss_item"}
"""How memories of values are called, by aspect. Who owns a marker, or what a channel calls an item, is no value."""


def written(target: Target) -> frozenset[str]:
    """Return the names of the memories that the target's requests make doubtful; ``name:*`` is all of a kind."""
    expects = [each for request in target.requests for each in request.expect]
    names = {f"{_ITEMS[each.aspect]}:{each.key}" for each in expects if each.aspect in _ITEMS}
    if any(each.aspect == "segmentation" for each in expects):
        names.add("segment-keywords:*")
    return frozenset(names)


def is_of(item: str, names: frozenset[str]) -> bool:
    """Tell whether a memory is among those that :func:`written` names."""
    return item in names or f"{item.partition(':')[0]}:*" in names


def once(target: Target, index: int) -> dict[str, Json]:
    """Return what to keep as soon as a request is done, proved or not: that a command is not to be sent again."""
    if not any(each.aspect in {"command", "xmp_batch"} for each in target.requests[index].expect):
        return {}
    kept = memories(only(target, index, index + 1), LiveTarget())
    return {item: value for item, value in kept.items() if item.startswith(("command:", "xmp_batch:"))}
