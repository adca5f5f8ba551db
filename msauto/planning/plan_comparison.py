"""Whether a plan that is made again is the one that the user agreed to, target by target."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from msgspec import UNSET, structs

from msauto.model.codec import to_key
from msauto.model.identity import ClipIdentity
from msauto.model.plan import Change, Plan, Target
from msauto.planning.fingerprint import SLOW
from msauto.planning.saved_plans.live_state_check import shorten
from msauto.secrets.redactor import redact_plan


def digest(target: Target) -> str:
    """Return a digest of what the user agrees to: which clip it is, what was compared, what is changed and sent.

    A salted fingerprint differs each time, so it is left out.
    """
    salted = target.fingerprint.startswith(SLOW)
    clip = structs.replace(target.clip, files=())  # a file may be archived at any time
    printed = "" if salted else target.fingerprint
    same = structs.replace(target, clip=clip, context=None, fingerprint=printed, holding=UNSET)
    return hashlib.sha256(to_key(same)).hexdigest()


def differences(agreed: Plan, now: Plan) -> list[str]:
    """Return in words how a plan differs from the one that was agreed to, without secrets; empty: not at all."""
    before, after = ({_key(target): digest(target) for target in plan.targets} for plan in (agreed, now))
    different = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    if not different:
        return []
    old, new = ({_key(target): target for target in redact_plan(plan).targets} for plan in (agreed, now))
    return [f"{key[0]}: {key[3]}: {'; '.join(_describe(old.get(key), new.get(key)))}" for key in different]


def _key(target: Target) -> tuple[str, str, str, str]:
    return target.server, target.database, target.kind, target.name


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
