"""What has changed of a target since a plan was made: shown with the refusal."""

from __future__ import annotations

from collections.abc import Iterator

from msauto.aspects import ASPECTS, difference
from msauto.model.live import Asset
from msauto.model.plan import Change, Expectation, Json, Target
from msauto.model.ports import LiveTarget

_LONG = 60  # signs of a value that are shown


def describe_drift(target: Target, live: LiveTarget) -> str:
    """Describe what differs from what was compared, as far as the plan knows; ``target`` is not fresh."""
    if live.asset is not None and _is_another(target, live.asset):
        born = live.asset.attributes.get("create_time") or "unknown"
        return f"it is another clip by now: created {born}, link_id {live.asset.link_id}"
    values = list(_values(target, live))
    if values:
        return f"it has changed since the plan was made: {'; '.join(values)}"
    known = {f"{change.aspect}:{change.key}" for change in target.changes if _shows_value(change)}
    rest = [name for name in target.looked if name not in known]
    return f"it has changed since the plan was made, in what was compared of it: {', '.join(rest)}"


def _is_another(target: Target, asset: Asset) -> bool:
    return (asset.link_id, asset.attributes.get("create_time")) != (target.link_id, target.create_time)


def _shows_value(change: Change) -> bool:
    return ASPECTS[change.aspect].is_value and change.basis == "live" and not change.secret


def _values(target: Target, live: LiveTarget) -> Iterator[str]:
    for change in filter(_shows_value, target.changes):
        found = difference(Expectation(change.aspect, change.key, change.before), live)
        if found is not None:
            yield f"{change.aspect} {change.key} was {_short(change.before)} and is {_short(found.live)}"


def _short(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"
