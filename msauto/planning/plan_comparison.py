"""Whether a plan that is made again is the one that was agreed to, target by target.

What was agreed to is a plan that was shown and consented to, a plan file, or what a run did not reach.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from msgspec import UNSET, structs

from msauto.model.codec import to_key
from msauto.model.desired import TaskSource
from msauto.model.identity import ClipIdentity
from msauto.model.plan import Change, Plan, Target, TargetId
from msauto.planning.target_reading import shorten
from msauto.secrets.redactor import redact_plan

STALE = "stale: "
"""The beginning of the error of a target that is not as agreed."""
_Key = tuple[str, str, str, str, int]


def digest(target: Target) -> str:
    """Return a digest of what the user agrees to: which clip it is, what was compared, what is changed and sent.

    It does not matter where the playbooks are.
    """
    clip = structs.replace(target.clip, files=())  # a file may be archived at any time
    changes = tuple(structs.replace(change, source=TaskSource("")) for change in target.changes)
    fingerprint = target.fingerprint if target.fingerprint.startswith("sha256:") else ""
    same = structs.replace(
        target, clip=clip, changes=changes, context=None, fingerprint=fingerprint, holding=UNSET, batch=0
    )
    return hashlib.sha256(to_key(same)).hexdigest()


def differences(agreed: Plan, now: Plan) -> dict[_Key, str]:
    """Return in words, without secrets, how each target differs from the one that was agreed to."""
    before, after = _by_key(agreed), _by_key(now)
    different = [
        key
        for key in {**before, **after}
        if key not in before or key not in after or digest(before[key]) != digest(after[key])
    ]
    if not different:
        return {}
    old, new = _by_key(redact_plan(agreed)), _by_key(redact_plan(now))
    return {key: "; ".join(_describe(old.get(key), new.get(key))) for key in different}


def refuse_differences(plan: Plan, agreed: Plan, begun: Collection[TargetId] = ()) -> Plan:
    """Return a plan that sends nothing but what was agreed to: a target that differs is in error, and stale.

    ``agreed`` holds no secrets. ``begun`` are targets that a run began before: what is left of them is new.
    """
    different, before = differences(agreed, redact_plan(plan)), _by_key(agreed)
    targets: list[Target] = []
    for key, target in _by_key(plan).items():
        why = different.pop(key, None)
        if why is None or target.id in begun or (target.error is not None and target.server in plan.unreachable):
            targets.append(target)
        elif target.error is None:
            targets.append(_stale(target, f"it has changed since the plan was made: {why}"))
        elif key in before and before[key].error is None:
            targets.append(_stale(target, f"it cannot be planned any more: {target.error}"))
        else:
            targets.append(target)
    gone = [before[key] for key in different if before[key].error is None and key[0] not in plan.unreachable]
    return structs.replace(plan, targets=(*targets, *(_stale(each, "it is no longer in the plan") for each in gone)))


def count_stale(plan: Plan) -> int:
    """Return how many targets are not as agreed."""
    return sum(target.error is not None and target.error.startswith(STALE) for target in plan.targets)


def _stale(target: Target, why: str) -> Target:
    return structs.replace(target, changes=(), requests=(), error=f"{STALE}{why}")


def _by_key(plan: Plan) -> Mapping[_Key, Target]:
    """Return the targets by server, database, kind, name, and their number among those of this name."""
    count: Counter[tuple[str, str, str, str]] = Counter()
    found: dict[_Key, Target] = {}
    for target in plan.targets:
        name = target.server, target.database, target.kind, target.name
        found[*name, count[name]] = target
        count[name] += 1
    return found


def _describe(old: Target | None, new: Target | None) -> list[str]:
    if new is None:
        return ["it is no longer in the plan"]
    if new.error is not None:
        return [new.error.partition("\n")[0]]
    if old is None:
        return ["it is new in the plan"]
    return list(_differing_parts(old, new)) or [f"what was compared has changed: one of {', '.join(new.looked)}"]


def _differing_parts(old: Target, new: Target) -> Iterator[str]:
    if _clip(old.clip) != _clip(new.clip):
        yield f"it was the clip {_clip(old.clip)}, and is the clip {_clip(new.clip)}"
    if old.folder != new.folder:
        yield f"it was in {old.folder!r}, and is in {new.folder!r}"
    yield from (f"{place} shows it, too" for place in new.places if place not in old.places)
    was, now = ({f"{change.aspect} {change.key}": change for change in each.changes} for each in (old, new))
    for name in {**was, **now}:
        one, other = _values(was.get(name)), _values(now.get(name))
        if one != other:
            yield f"{name}: the change was {one}, and is {other}"


def _values(change: Change | None) -> str:
    return "none" if change is None else f"{change.action} {shorten(change.before)} → {shorten(change.after)}"


def _clip(clip: ClipIdentity) -> str:
    return f"created {clip.create_time or 'unknown'}, link_id {clip.link_id}, {clip.frames} frames"
