"""Sentences that all forms share: headings, the closing sentence of a plan, errors and refusals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msauto.errors import RefusedError
from msauto.model.plan import Plan, Refusal, Target
from msauto.model.result import OUTCOMES, key_of
from msauto.report.sanitizing import show, visible

KINDS: Final = {"asset": "asset", "rss_channel": "channel", "database": "database"}
"""The nouns of the kinds of targets."""
_COUNTED: Final = {
    "delete_assets": ("asset", "the plan deletes {count}; the limit is {limit}"),
    "remove_items": ("list item", "the plan loses {count} that no task names by key; the limit is {limit}"),
    "requests": ("request", "the plan sends {count}; the limit is {limit}"),
}
"""What a limit counts, and the reason of its refusal."""
_REASONS: Final = {
    "empty_list": "the plan empties a list of {count} items by `exactly`; the limit is {limit} items",
    "protected": "{count} is protected by '{limit}': nothing there may be deleted, removed or overwritten",
    "freeze": "msauto.toml has a freeze from {limit}",
    "window": "it is {count}, outside the window {limit}",
    "max_time": "the time of the job is over: max_time ended at {limit}",
    "state": "the ledger in {count} is empty, and {limit} requires one",
}
_BATCHES: Final = 5
_SHOWN_REASONS: Final = 3
_SHOWN_TARGETS: Final = 3


def plural(count: int, noun: str) -> str:
    """Return ``1 asset``, ``2 assets``.

    >>> plural(1, "request"), plural(0, "request")
    ('1 request', '0 requests')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def count_deletions(assets: int, links: int) -> str:
    """Return how many assets and links are deleted.

    >>> count_deletions(1, 2), count_deletions(0, 1)
    ('1 asset and 2 links', '1 link')
    """
    counts = ((assets, "asset"), (links, "link"))
    return " and ".join(plural(count, noun) for count, noun in counts if count) or plural(0, "asset")


def count_outcomes(counts: Mapping[str, int]) -> str:
    """Return how many targets have each outcome, as the ledger counts them.

    >>> count_outcomes({"not_attempted": 1, "changed": 2, "requests": 3})
    '2 changed, 1 not attempted'
    """
    return ", ".join(f"{counts[key_of(each)]} {each}" for each in OUTCOMES if counts.get(key_of(each)))


# Targets -------------------------------------------------------------------------------------------------------


TargetKey = tuple[str, str, str, str]


def target_key(target: Target) -> TargetKey:
    """Return server, database, kind and name: what distinguishes the targets of a run."""
    return target.server, target.database, target.kind, target.name


def target_heading(target: Target) -> str:
    """Return server, database and name of a target, visible: the text that a user searches for."""
    if target.kind == "asset":
        return f"{server_of(target)} · {show(target.name)}"
    return f"{show(target.server)} · {KINDS[target.kind]} {show(target.name)}"


def server_of(target: Target) -> str:
    """Return server and database of a target, visible."""
    return " · ".join(map(show, filter(None, (target.server, target.database))))


def folder_note(target: Target) -> str:
    """Return the folder of an asset; empty if it is not known."""
    if target.folder is None:
        return ""
    return f"in {show(target.folder)}" if target.folder else "in the root folder"


def _names(targets: list[Target]) -> str:
    named = ", ".join(show(target.name) for target in targets[:_SHOWN_TARGETS])
    more = len(targets) - _SHOWN_TARGETS
    return f"{len(targets)} targets: {named}" + (f" and {more} more" if more > 0 else "")


def plan_sentence(plan: Plan, *, keep_going: bool = False) -> str:
    """Return the closing sentence of a plan, in the style of Terraform."""
    if not any(target.changes for target in plan.targets) and not plan.errors:
        return _no_changes(plan)
    summary = plan.summary
    counts = ", ".join(f"{getattr(summary, action)} to {action}" for action in ("add", "change", "delete", "run"))
    on = _on(target for target in plan.targets if target.changes and target.error is None)
    sentences = [f"Plan: {counts}{on and f', on {on}'}; {plural(plan.requests, 'request')}."]
    if plan.unchanged:
        sentences.append(f"{plan.unchanged} unchanged.")
    sentences += _not_planned(plan)
    if len(plan.batches) > 1 and on:
        sentences.append(_batches(plan))
    if plan.errors:
        effect = "left out" if keep_going else "nothing can be applied"
        sentences.append(f"{plural(plan.errors, 'target')} in error: {effect}.")
    return " ".join(sentences)


def settings_line(plan: Plan) -> str:
    """Return which settings file applies; empty without one."""
    return "" if plan.settings is None else f"Settings: {visible(plan.settings.path)}"


def _no_changes(plan: Plan) -> str:
    verb = "is" if plan.unchanged == 1 else "are"
    compared = f"{plural(plan.unchanged, 'target')} {verb} as desired." if plan.unchanged else "Nothing was compared."
    return " ".join(["No changes.", compared, *_not_planned(plan)])


def _not_planned(plan: Plan) -> Iterator[str]:
    if plan.skipped:
        yield f"{plan.skipped} skipped."
    if plan.left_out:
        yield f"{plural(plan.left_out, 'target')} left out of this run; the warnings give the reason."


def _batches(plan: Plan) -> str:
    """Return the order of the servers, the first batches by name."""
    named = [visible(" ".join(batch.servers)) for batch in plan.batches[:_BATCHES]]
    more = f", then {len(plan.batches) - _BATCHES} more" if len(plan.batches) > _BATCHES else ""
    return f"In {len(plan.batches)} batches: {', then '.join(named)}{more}."


def _on(targets: Iterable[Target]) -> str:
    kinds = [target.kind for target in targets]
    parts = [plural(kinds.count(kind), noun) for kind, noun in KINDS.items() if kind in kinds]
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


# Refusals ------------------------------------------------------------------------------------------------------


def refusal_sentence(refusal: Refusal) -> str:
    """Return what is refused, by which limit, and what allows it; visible, because it may hold titles and globs."""
    allows = "To allow it" if refusal.remedy.startswith("--") else "No flag allows it"
    return visible(f"Refused: {refusal_reason(refusal)}." + (f" {allows}: {refusal.remedy}" if refusal.remedy else ""))


def refusal_error(refusals: Sequence[Refusal]) -> RefusedError:
    """Return the error of a plan that is refused, with the reasons and all remedies; visible."""
    reasons = [refusal_reason(refusal) for refusal in refusals[:_SHOWN_REASONS]]
    more = len(refusals) - len(reasons)
    shown = "; ".join([*reasons, *([f"{more} more, shown with the plan"] if more else [])])
    flags = " ".join(refusal.remedy for refusal in refusals if refusal.remedy.startswith("--"))
    others = [refusal.remedy for refusal in refusals if not refusal.remedy.startswith("--")]
    remedy = "; ".join(filter(None, dict.fromkeys([flags, *others[:_SHOWN_REASONS]])))
    return RefusedError(visible(f"{shown}: nothing was sent"), remedy=visible(remedy))


def refusal_reason(refusal: Refusal) -> str:
    """Return what a plan does and the limit that refuses it, without a remedy."""
    count: int | str = refusal.count
    noun, reason = _COUNTED.get(refusal.code, ("", ""))
    if isinstance(count, int) and noun:
        count = count_deletions(count - refusal.links, refusal.links) if refusal.links else plural(count, noun)
        return reason.format(count=count, limit=refusal.limit)
    if refusal.code in _REASONS:
        return _REASONS[refusal.code].format(count=count, limit=refusal.limit)
    return f"{refusal.code.replace('_', ' ')}: {count}; the limit is {refusal.limit}"
