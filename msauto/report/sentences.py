"""Sentences that every form says alike: counts, refusals, what came of a run, and what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from msauto.model.plan import Plan, Refusal, Target
from msauto.model.result import OUTCOMES, Difference, Outcome, Result, TargetResult, key_of
from msauto.report.sanitizing import visible

_KINDS: Final = {"asset": "asset", "rss_channel": "channel", "database": "database"}
_REFUSALS: Final = {
    "delete_assets": ("asset", "the plan deletes {count}, and {limit} may be deleted unless it is allowed"),
    "remove_items": (
        "list item",
        "the plan removes {count} that `exactly` does not name, and {limit} may be removed unless it is allowed",
    ),
    "requests": ("request", "the plan sends {count}, and {limit} may be sent unless it is allowed"),
}
_DIALECT_OF: Final = {
    "xmp": ("list_separator", "xmp_read"),
    "segment": ("segment_update",),
    "marker": ("marker_update",),
    "link": ("link_title", "folder_missing"),
    "rss_item": ("rss_guid", "rss_body", "rss_update"),
}
"""The keys that let an aspect come out otherwise than was sent, where they do not fit the server (field notes)."""

_BATCHES: Final = 5
_REASONS: Final = 3


def plural(count: int, word: str) -> str:
    """Return ``1 asset``, ``2 assets``.

    >>> plural(1, "request"), plural(0, "request")
    ('1 request', '0 requests')
    """
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def deletions(assets: int, links: int) -> str:
    """Return how many assets and links are deleted.

    >>> deletions(1, 2), deletions(0, 1)
    ('1 asset and 2 links', '1 link')
    """
    counts = ((assets, "asset"), (links, "link"))
    return " and ".join(plural(count, word) for count, word in counts if count) or plural(0, "asset")


def plan_sentence(plan: Plan, *, keep_going: bool = False) -> str:
    """Return the closing sentence of a plan, in Terraform's manner."""
    if not any(target.changes for target in plan.targets) and not plan.errors:
        return _no_changes(plan)
    summary = plan.summary
    counts = ", ".join(f"{getattr(summary, action)} to {action}" for action in ("add", "change", "delete", "run"))
    on = _on(target for target in plan.targets if target.changes and target.error is None)
    sentences = [f"Plan: {counts}{on and f', on {on}'}; {plural(plan.requests, 'request')}."]
    if plan.unchanged:
        sentences.append(f"{plan.unchanged} unchanged.")
    if plan.skipped:
        sentences.append(f"{plan.skipped} skipped.")
    if plan.left_out:
        sentences.append(_left_out(plan))
    if len(plan.batches) > 1 and on:
        sentences.append(_batches(plan))
    if plan.errors:
        sentences.append(_errors(plan.errors, keep_going))
    return " ".join(sentences)


def refusal_sentence(refusal: Refusal) -> str:
    """Return what is refused, by which limit, and what allows it; visible, for it may hold titles and globs."""
    allows = "To allow it" if refusal.remedy.startswith("--") else "No flag allows it"
    return visible(f"Refused: {reason_of(refusal)}." + (f" {allows}: {refusal.remedy}" if refusal.remedy else ""))


def refusals_told(refusals: Sequence[Refusal]) -> tuple[str, str]:
    """Return why a plan is not applied, and what to do, for the error that says so; visible."""
    reasons = [reason_of(refusal) for refusal in refusals[:_REASONS]]
    more = len(refusals) - len(reasons)
    told = "; ".join([*reasons, *([f"{more} more, told with the plan"] if more else [])])
    flags = " ".join(refusal.remedy for refusal in refusals if refusal.remedy.startswith("--"))
    others = [refusal.remedy for refusal in refusals if not refusal.remedy.startswith("--")]
    remedy = "; ".join(filter(None, dict.fromkeys([flags, *others[:_REASONS]])))
    return visible(f"{told}: nothing was sent"), visible(remedy)


def reason_of(refusal: Refusal) -> str:
    """Say what a plan breaks, without a remedy."""
    word, form = _REFUSALS.get(refusal.code, ("", ""))
    if form and isinstance(refusal.count, int):
        limit = f"no more than {refusal.limit}" if refusal.limit else "none"
        counted = deletions(refusal.count - refusal.links, refusal.links) if refusal.links else ""
        return form.format(count=counted or plural(refusal.count, word), limit=limit)
    if refusal.code == "empty_list" and isinstance(refusal.limit, int):
        least = refusal.limit + 1
        return (
            f"by `exactly`, the plan empties a list of {refusal.count}, "
            f"and a list of {least} or more may not be emptied unless it is allowed"
        )
    if refusal.code == "protected":
        return f"{refusal.count} is protected by {refusal.limit!r}: nothing may be deleted there, or removed from it"
    if refusal.code == "freeze":
        return f"a freeze of msauto.toml holds from {refusal.limit}"
    if refusal.code == "window":
        return f"it is {refusal.count}, outside of the window {refusal.limit}"
    if refusal.code == "state":
        return f"the ledger in {refusal.count} is empty, and {refusal.limit} requires one"
    return f"{refusal.code.replace('_', ' ')}: {refusal.count}, the limit is {refusal.limit}"


@dataclass(frozen=True, slots=True)
class Recap:
    """One server's line of the recap; ``requests`` counts what was sent, repetitions included."""

    server: str
    changed: int = 0
    unchanged: int = 0
    failed: int = 0
    unverified: int = 0
    skipped: int = 0
    not_attempted: int = 0
    requests: int = 0

    def counts(self) -> list[tuple[str, int]]:
        """Names and numbers, in the order of the line."""
        names = (*map(key_of, OUTCOMES), "requests")
        return [(name, getattr(self, name)) for name in names]


def recap_of(result: Result) -> tuple[Recap, ...]:
    """Count the results of each server, in the order of the run; servers without a change included."""
    plan = result.plan
    unchanged = {server.name: server.unchanged for server in plan.servers}
    names = dict.fromkeys([*unchanged, *(target.target.server for target in result.targets)])
    if len(names) == 1:  # a plan made from the ledger has only the whole number
        unchanged = dict.fromkeys(names, plan.unchanged)
    skipped = plan.skipped if len(names) == 1 else 0
    left_out = plan.left_out if len(names) == 1 else 0
    return tuple(_recap(name, result.targets, unchanged.get(name, 0), skipped, left_out) for name in names)


def result_sentence(result: Result) -> str:
    """Return the closing sentence of a run."""
    counts = _outcomes(result)
    sent = sum(recap.requests for recap in recap_of(result))
    told = ", ".join(f"{number} {outcome}" for outcome, number in counts.items() if number)
    end = f"{told}; {plural(sent, 'request')}" if told else plural(sent, "request")
    if result.interrupted:
        return f"Interrupted: {end}. What was sent is recorded: msauto history {result.run}"
    if not result.ok:
        return f"Not all is as wanted: {end}. The whole story: msauto history {result.run}"
    if not counts["changed"]:
        return f"Nothing was changed: {end}."
    return " ".join(filter(None, (f"Done: {end}.", *_proof(result))))


def _proof(result: Result) -> Iterator[str]:
    """Say what is known of what was done, and how: true word for word, whatever it was."""
    changed = [target for target in result.targets if target.outcome == "changed"]
    seen = sum(target.seen for target in changed)
    files = sum(target.unseen.count("thumbnail") + target.unseen.count("proxy") for target in changed)
    hidden = sum(len(target.unseen) for target in changed) - files
    if seen and hidden:
        sent = f"{plural(hidden, 'thing')} that {'was' if hidden == 1 else 'were'} sent cannot be read back"
        yield f"What reading shows of it was read again and is as wanted; {sent}."
    elif seen:
        yield "What was changed was read again and is as wanted."
    elif hidden:
        yield "What was sent cannot be read back; the server answered without an error."
    if files:
        yield f"{plural(files, 'file')} {'was' if files == 1 else 'were'} fetched."


def advice(result: TargetResult) -> str:
    """Say what to do next about a target that is not as wanted."""
    if result.outcome == "unverified":
        return (
            "the server may have done it, or may yet; nothing is sent again by itself. "
            "Look at the server, then plan again: it starts from what is then there"
        )
    if result.target.error is not None:
        return "nothing was sent for it; mend the cause and run again"
    if result.outcome == "not attempted":
        return "nothing was sent for it; run again to apply it"
    if result.differences and all(request.outcome == "done" for request in result.requests):
        if any(map(_is_cut, result.differences)):
            return "the server keeps only the beginning of what it is told: shorten the value"
        return (
            "the server accepted every request, yet shows something else; "
            f"look for who else writes there{_dialect_to_doubt(result)}, then run again"
        )
    return "mend the cause and run again: what is done is not sent again"


def _dialect_to_doubt(result: TargetResult) -> str:
    aspects = dict.fromkeys(each.aspect for each in result.differences)
    keys = ", ".join(f"`{key}`" for aspect in aspects for key in _DIALECT_OF.get(aspect, ()))
    return f", or whether the server's dialect fits ({keys}; `msauto probe` tells what it can)" if keys else ""


def _is_cut(difference: Difference) -> bool:
    """Tell whether what is there is the beginning of what was wanted: servers keep texts of some length."""
    desired, live = difference.desired, difference.live
    return isinstance(desired, str) and isinstance(live, str) and live != "" and desired.startswith(live)


def by_server(targets: Iterable[Target]) -> dict[str, list[Target]]:
    """Group targets by server, servers in the order in which they first come."""
    groups: dict[str, list[Target]] = {}
    for target in targets:
        groups.setdefault(target.server, []).append(target)
    return groups


def kind_word(target: Target) -> str:
    """``asset``, ``channel`` or ``database``."""
    return _KINDS[target.kind]


def _no_changes(plan: Plan) -> str:
    skipped = f" {plan.skipped} skipped." if plan.skipped else ""
    if plan.left_out:
        skipped += f" {_left_out(plan)}"
    if not plan.unchanged:
        return f"No changes. Nothing was compared.{skipped}"
    verb = "is" if plan.unchanged == 1 else "are"
    return f"No changes. {plural(plan.unchanged, 'target')} {verb} as wanted.{skipped}"


def _left_out(plan: Plan) -> str:
    return f"{plural(plan.left_out, 'target')} left out of this run; the warnings say why."


def _batches(plan: Plan) -> str:
    """Say which servers come after which, those of the first batches by their names."""
    named = [visible(" ".join(batch.servers)) for batch in plan.batches[:_BATCHES]]
    more = f", then {len(plan.batches) - _BATCHES} more" if len(plan.batches) > _BATCHES else ""
    return f"In {len(plan.batches)} batches: {', then '.join(named)}{more}."


def _errors(errors: int, keep_going: bool) -> str:
    if keep_going:
        return f"{plural(errors, 'target')} in error: left out."
    return f"{plural(errors, 'target')} in error: nothing can be applied."


def _on(targets: Iterable[Target]) -> str:
    counts: dict[str, int] = {}
    for target in targets:
        counts[kind_word(target)] = counts.get(kind_word(target), 0) + 1
    parts = [plural(counts[word], word) for word in _KINDS.values() if word in counts]
    return parts[0] if len(parts) == 1 else " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def _recap(server: str, results: Iterable[TargetResult], unchanged: int, skipped: int, left_out: int) -> Recap:
    mine = [result for result in results if result.target.server == server]
    return Recap(
        server,
        changed=_count(mine, "changed"),
        unchanged=_count(mine, "unchanged") + unchanged,
        failed=_count(mine, "failed"),
        unverified=_count(mine, "unverified"),
        skipped=_count(mine, "skipped") + skipped,
        not_attempted=_count(mine, "not attempted") + left_out,
        requests=sum(request.tries for result in mine for request in result.requests),
    )


def _outcomes(result: Result) -> dict[Outcome, int]:
    counts = {outcome: _count(result.targets, outcome) for outcome in OUTCOMES}
    counts["unchanged"] += result.plan.unchanged
    counts["skipped"] += result.plan.skipped
    counts["not attempted"] += result.plan.left_out
    return counts


def _count(results: Iterable[TargetResult], outcome: Outcome) -> int:
    return sum(result.outcome == outcome for result in results)
