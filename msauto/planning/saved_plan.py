"""The plan as JSON, both ways, and whether a plan that is made again is the one that was agreed to.

The types of :mod:`msauto.model.plan` are the format. A saved plan is a claim, which holds nothing that is sent: it is
made again from the files and the options that it names, and compared target by target. What was agreed to may also be a
plan that was shown and consented to, or what a run did not reach.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, Literal

from msgspec import UNSET, Struct, structs

from msauto.codec import LazyItems, describe_types, from_json, schema_document, to_json, to_key
from msauto.errors import InputError, Problem, SourceLocation
from msauto.model.desired import Batch, TaskSource
from msauto.model.identity import ClipIdentity, compare_clips, is_another_clip
from msauto.model.plan import (
    COUNTS,
    Change,
    InputHash,
    Plan,
    PlannedServer,
    PlanOptions,
    Refusal,
    Settlement,
    SkippedTarget,
    Summary,
    Target,
    TargetKey,
    target_key,
)
from msauto.model.result import ReportedProblem
from msauto.model.snapshot import Seen
from msauto.planning.target_reading import FACT, shorten
from msauto.secrets.redacted_plans import redact_plan

FORMAT: Final = "msauto-plan"
VERSION: Final = 1


class PlanDocument(
    Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True
):
    """The whole JSON document.

    Attributes:
        format: always msauto-plan
        version: the version of this format
        created: when the plan was made, ISO 8601
        msauto: the version of msauto that made it
        inputs: the files that it was made from
        settings: the settings file whose limits apply, if there is one
        summary: the counts
        refusals: limits that the plan exceeds; each names the flag that allows it
        warnings: what to know before applying
        servers: all servers of the run
        targets: what changes, and what cannot be planned; unchanged targets are only counted
        skipped: targets that the run does not treat, and why
        batches: which servers go together, in order (serial)
        settlements: what applying writes into the ledger without a request
        options: what else shaped it: with these, it is made again
    """

    format: Literal["msauto-plan"]
    version: Literal[1]
    created: str
    msauto: str
    inputs: tuple[InputHash, ...]
    settings: InputHash | None = None
    summary: Summary
    refusals: tuple[Refusal, ...]
    warnings: tuple[str, ...]
    servers: tuple[PlannedServer, ...]
    targets: tuple[Target, ...]
    skipped: tuple[SkippedTarget, ...] = ()
    batches: tuple[Batch, ...]
    settlements: tuple[Settlement, ...]
    options: PlanOptions


_SHARED: Final = (
    "created", "msauto", "inputs", "settings", "refusals", "warnings", "servers", "targets", "skipped", "batches",
    "settlements", "options",
)  # fmt: skip
_REMEDY: Final = (
    "make the plan again with `msauto plan --out`; a plan file is not meant to be edited"
)


def plan_document(plan: Plan) -> dict[str, Any]:
    """Return the plan as a JSON object that holds no secret of the plan; its targets are :class:`LazyItems`."""
    plan = redact_plan(plan)
    shared = {name: getattr(plan, name) for name in _SHARED} | {"targets": ()}
    data: dict[str, Any] = to_json(
        PlanDocument(format=FORMAT, version=VERSION, summary=plan.summary, **shared)
    )
    data["targets"] = LazyItems(
        plan.targets, lambda target: to_json(structs.replace(target, holding=UNSET))
    )
    return data


def plan_from_json(data: object, *, path: str = "the plan file") -> Plan:
    """Read the JSON value of a plan file. Raises ``InputError`` for anything but a plan as we write it."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise invalid_plan(path, f"not a plan: `format` is not {FORMAT!r}", _REMEDY)
    if data.get("version") != VERSION:
        message = (
            f"the plan has version {data.get('version')!r}; this msauto reads version {VERSION}"
        )
        raise invalid_plan(path, message, "apply it with the msauto that made it, or make it again")
    for key in ("result", "problems"):
        if key in data:
            raise invalid_plan(
                path, f"this is the output of `msauto apply`, not a plan: it has `{key}`", _REMEDY
            )
    try:
        document = from_json(PlanDocument, data)
    except ValueError as error:
        raise invalid_plan(path, str(error), _REMEDY) from None
    counts = {name: getattr(document.summary, name) for name in COUNTS}
    return Plan(**{name: getattr(document, name) for name in _SHARED}, **counts)


def plan_schema() -> dict[str, Any]:
    """Return the JSON Schema (``msauto schema plan``): of a saved plan, and of what ``plan`` and ``apply`` print."""
    _, parts = describe_types(PlanDocument)
    document = parts.pop("PlanDocument")
    problems, more = describe_types(tuple[ReportedProblem, ...])
    document["properties"] |= {
        "problems": {
            **problems,
            "description": "why nothing was planned or applied: such a document is not a plan",
        },
        "result": {
            "description": "what came of the run, if it was applied: such a document is not a plan"
        },
    }
    parts |= more
    del parts["Target"]["properties"]["holding"]  # never written
    for name in ("Target", "Request"):
        parts[name]["properties"]["result"] = {
            "description": "what came of it, if the plan was applied"
        }
    return schema_document("msauto plan", document, parts)


def invalid_plan(
    path: str, message: str, remedy: str = "make a plan with `msauto plan --out FILE`"
) -> InputError:
    """Return the error of a plan file."""
    return InputError([Problem(message, SourceLocation(path), remedy, kind="plan-file")])


# The comparison -----------------------------------------------------------------------------------------------------


STALE = "stale: "
"""The beginning of the error of a target that is not as agreed."""
_Key = tuple[str, str, str, str, int]


def digest(target: Target) -> str:
    """Return a digest of what the user agrees to: what was compared, what is changed and sent.

    It does not matter where the playbooks are. Which clip it is shows by :func:`is_another_clip`.
    """
    changes = tuple(structs.replace(change, source=TaskSource("")) for change in target.changes)
    same = structs.replace(
        target,
        changes=changes,
        clip=ClipIdentity(),
        context=None,
        others=Seen(),
        holding=UNSET,
        batch=0,
    )
    return hashlib.sha256(to_key(same)).hexdigest()


def differences(agreed: Plan, now: Plan) -> dict[_Key, str]:
    """Return in words, without secrets, how each target differs from the one that was agreed to."""
    before = _by_key(agreed)
    after = _by_key(now)
    different = [key for key in {**before, **after} if _differ(before.get(key), after.get(key))]
    if not different:
        return {}
    old = _by_key(redact_plan(agreed))
    new = _by_key(redact_plan(now))
    described: dict[_Key, str] = {}
    for key in different:
        parts = _describe(old.get(key), new.get(key))
        described[key] = "; ".join(parts)
    return described


def _differ(agreed: Target | None, now: Target | None) -> bool:
    if agreed is None or now is None:
        return True
    return digest(agreed) != digest(now) or is_another_clip(agreed.clip, now.clip)


def refuse_differences(plan: Plan, agreed: Plan, as_desired: Collection[TargetKey] = ()) -> Plan:
    """Return a plan that sends nothing but what was agreed to: a target that differs is in error, and stale.

    ``agreed`` holds no secrets. Targets that are ``as_desired`` by now are unchanged, not stale.
    """
    different = differences(agreed, redact_plan(plan))
    before = _by_key(agreed)
    promised = {key for key, target in before.items() if target.error is None}
    targets: list[Target] = []
    for key, target in _by_key(plan).items():
        why = different.pop(key, None)
        is_unreachable = target.error is not None and target.server in plan.unreachable
        if why is not None and not is_unreachable:
            if target.error is None:
                target = _stale(target, f"it has changed since the plan was made: {why}")
            elif key in promised:
                target = _stale(target, f"it cannot be planned any more: {target.error}")
        targets.append(target)
    for key in different:
        is_open = _names_of(before[key]).isdisjoint(as_desired)
        if key in promised and key[0] not in plan.unreachable and is_open:
            targets.append(_stale(before[key], "it is no longer in the plan"))
    return structs.replace(plan, targets=tuple(targets))


def _names_of(target: Target) -> set[TargetKey]:
    """Return the keys of a target by its titles before and after, and by its identifier."""
    names = {target.name, target.address_after.name}
    if target.address.namespace:
        names.add(f"{target.address.namespace}:{target.address.name}")
    return {(target.server, target.database, target.kind, name) for name in names}


def stale_targets(plan: Plan) -> list[tuple[str, str]]:
    """Return the name of each target that is not as agreed, and why, in one line."""
    stale: list[tuple[str, str]] = []
    for target in plan.targets:
        if target.error is not None and target.error.startswith(STALE):
            reason = target.error.removeprefix(STALE)
            stale.append((target.name, reason.partition("\n")[0]))
    return stale


def _stale(target: Target, why: str) -> Target:
    return structs.replace(
        target, changes=(), requests=(), error=f"{STALE}{why}\n  → make the plan again"
    )


def _by_key(plan: Plan) -> Mapping[_Key, Target]:
    """Return the targets by server, database, kind, name, and their number among those of this name."""
    count: Counter[TargetKey] = Counter()
    targets: dict[_Key, Target] = {}
    for target in plan.targets:
        key = target_key(target)
        targets[*key, count[key]] = target
        count[key] += 1
    return targets


def _describe(old: Target | None, new: Target | None) -> list[str]:
    if new is None:
        return ["it is no longer in the plan"]
    if new.error is not None:
        return [new.error.partition("\n")[0]]
    if old is None:
        return ["it is new in the plan"]
    parts = list(_differing_parts(old, new))
    if not parts:
        differing = set(old.depends_on.items()) ^ set(new.depends_on.items())
        changed_names = {name.removeprefix(f"{FACT} ") for name, _ in differing}
        parts.append(f"{', '.join(sorted(changed_names)) or 'a request'} changed")
    return parts


def _differing_parts(old: Target, new: Target) -> Iterator[str]:
    if is_another_clip(old.clip, new.clip):
        yield _another_clip(old, new)
    if old.folder != new.folder:
        yield f"it was in {old.folder!r}, and is in {new.folder!r}"
    for place in new.places:
        if place not in old.places:
            yield f"{place} shows it, too"
    planned = _changes_by_name(old)
    now = _changes_by_name(new)
    for name in {**planned, **now}:
        value_planned = _values(planned.get(name))
        value_now = _values(now.get(name))
        if value_planned != value_now:
            yield f"{name}: planned {value_planned}, now {value_now}"


def _changes_by_name(target: Target) -> Mapping[str, Change]:
    return {f"{change.aspect} {change.key}": change for change in target.changes}


def _values(change: Change | None) -> str:
    if change is None:
        return "no change"
    verb = "" if change.action == "change" else f"{change.action} "
    return f"{verb}{shorten(change.before)} → {shorten(change.after)}"


def _another_clip(old: Target, new: Target) -> str:
    """Return which values show that it is another clip."""
    differences: list[str] = []
    for name in ("link_id", *compare_clips(old.clip, new.clip).different):
        was = getattr(old.clip, name)
        now = getattr(new.clip, name)
        if was != now and was is not None and now is not None:
            differences.append(f"{name.replace('_', ' ')} was {was}, and is {now}")
    return f"it is another clip: {', '.join(differences)}"
