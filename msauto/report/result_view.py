"""The result of a run, as text, Markdown and HTML show it: counts, what failed and why, and what to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple
from urllib.parse import quote

from msauto.aspects import ASPECTS
from msauto.aspects.comparison import mapping
from msauto.aspects.downloads import Download
from msauto.circuit_breaker import REMEDIES, account_remedy
from msauto.model.desired import TaskSource
from msauto.model.plan import Change, Target
from msauto.model.result import Difference, Outcome, RequestResult, Result, TargetResult
from msauto.report.plan_view import (
    FEWEST_ALIKE,
    SkippedGroup,
    TargetGroup,
    skipped_groups,
    without_title,
)
from msauto.report.sanitizing import show, visible, visible_lines
from msauto.report.texts import (
    count_outcomes,
    count_outside,
    plural,
    settings_line,
    show_duration,
    show_pair_of,
)
from msauto.secrets.redacted_plans import Redactor

NOT_DONE: Final[tuple[Outcome, ...]] = ("failed", "unverified", "not attempted")
"""Outcomes that every form lists, worst first."""

Kind = Literal["message", "request", "difference", "note", "advice"]


ResultLine = tuple[Kind, str]
_Shared = tuple[Outcome, str, tuple[ResultLine, ...]]
"""Outcome, kind of target, and lines without titles, which results have in common."""


class ResultGroup(TargetGroup, frozen=True):
    """Targets with the same outcome and the same lines, in which the titles are placeholders if there are several."""

    outcome: Outcome
    lines: tuple[ResultLine, ...]


class ResultView(NamedTuple):
    """A result, without its secrets, as its forms show it. ``groups``: targets not as desired, or with notes."""

    result: Result
    sentence: str
    settings: str
    recaps: Mapping[str, Mapping[str, int]]
    groups: tuple[ResultGroup, ...]
    skipped: tuple[SkippedGroup, ...]

    @property
    def not_done(self) -> int:
        """How many targets are not as desired: those with notes alone are in the groups too."""
        return sum(target.outcome in NOT_DONE for target in self.result.targets)


def view_result(result: Result, *, folded: bool = True) -> ResultView:
    """Return the view of a result; without ``folded`` each target is a group, with everything that came of it.

    Otherwise at least 3 results with the same outcome for the same reason are a group, and the others are alone.
    """
    result = Redactor(result.plan.secrets)(result)
    if folded:
        groups = list(_folded(result.targets))
    else:
        groups = [_group(target, whole=True) for target in result.targets]
    groups.sort(key=lambda group: severity(group.outcome))
    return ResultView(
        result,
        result_sentence(result),
        settings_line(result.plan),
        recap_of(result),
        tuple(groups),
        skipped_groups(result.plan.skipped, whole=not folded),
    )


def severity(outcome: Outcome) -> int:
    """Return the place of an outcome in a list that begins with the worst."""
    if outcome in NOT_DONE:
        return NOT_DONE.index(outcome)
    return len(NOT_DONE)


def _folded(results: Iterable[TargetResult]) -> Iterator[ResultGroup]:
    """Yield the targets that are not as desired or have notes, those with the same lines together."""
    alike: dict[_Shared, list[TargetResult]] = {}
    for result in results:
        if result.outcome in NOT_DONE or result.notes:
            target = result.target
            lines = [(kind, without_titles(line, target)) for kind, line in result_lines(result)]
            same = result.outcome, target.kind, tuple(lines)
            alike.setdefault(same, []).append(result)
    for (outcome, _, shared_lines), group in alike.items():
        if len(group) >= FEWEST_ALIKE:
            yield ResultGroup(tuple(result.target for result in group), outcome, shared_lines)
        else:
            yield from map(_group, group)


def _group(result: TargetResult, *, whole: bool = False) -> ResultGroup:
    return ResultGroup((result.target,), result.outcome, tuple(result_lines(result, whole=whole)))


def without_titles(line: str, target: Target) -> str:
    """Return a line with placeholders for the title, which is part of the paths of requests."""
    for name in dict.fromkeys((target.name, target.address.name, target.address_after.name)):
        if not name:
            continue
        for form in dict.fromkeys((show(name), quote(name, safe="", errors="replace"))):
            line = without_title(line, form)
    return line


# Counts --------------------------------------------------------------------------------------------------------


def recap_of(result: Result) -> dict[str, dict[str, int]]:
    """Return the counts of each server by name, in the order of the run; servers without a change included.

    ``requests`` counts those that were sent, each once, as the history does.
    """
    sent: Counter[str] = Counter()
    for target in result.targets:
        sent[target.target.server] += _sent([target])
    recaps = {}
    for server, counts in result.server_counts.items():
        recaps[server] = {**counts, "requests": sent[server]}
    return recaps


def _sent(results: Iterable[TargetResult]) -> int:
    sent = 0
    for target in results:
        for request in target.requests:
            if request.tries > 0 and request.outcome != "not sent":
                sent += 1
    return sent


def result_sentence(result: Result) -> str:
    """Return the closing sentence of a run."""
    counts = result.counts
    shown = plural(_sent(result.targets), "request")
    targets = count_outcomes(counts)
    if targets:
        shown = f"{targets}; {shown}"
    if result.seconds is not None:
        shown = f"{shown} in {show_duration(result.seconds)}"
    if result.interrupted:
        return f"Interrupted: {shown}. What was sent is recorded: msauto history {result.run}"
    if not result.ok:
        details = f"For details: msauto history {result.run}"
        parts = (f"Not everything is as desired: {shown}.", *_overwritten(result), details)
        return " ".join(parts)
    if not counts["changed"]:
        return f"Nothing was changed: {shown}."
    return " ".join((f"Done: {shown}.", *_verification(result), *_overwritten(result)))


def _overwritten(result: Result) -> Iterator[str]:
    """Yield how much of what others have changed is overwritten."""
    count = 0
    for target in _changed(result):
        count += sum(change.outside is not None for change in target.target.changes)
    if count:
        verb = "is" if count == 1 else "are"
        yield f"{count_outside(count)}, and {verb} overwritten."


def _changed(result: Result) -> list[TargetResult]:
    return [target for target in result.targets if target.outcome == "changed"]


def _verification(result: Result) -> Iterator[str]:
    """Yield how far the changes are verified: what was read again, and what cannot be read."""
    verified = files = unreadable = 0
    for target in _changed(result):
        verified += target.seen
        for aspect in target.unseen:
            if isinstance(ASPECTS[aspect], Download):
                files += 1
            else:
                unreadable += 1
    if verified and unreadable:
        changes = plural(unreadable, "change")
        yield f"All changes that can be read back are verified; {changes} cannot be read back."
    elif verified:
        yield "All changes are verified."
    elif unreadable:
        yield "The changes cannot be read back; the server accepted the requests."
    if files:
        verb = "was" if files == 1 else "were"
        yield f"{plural(files, 'file')} {verb} downloaded."


# One target ----------------------------------------------------------------------------------------------------


def result_lines(result: TargetResult, *, whole: bool = False) -> Iterator[ResultLine]:
    """Yield the result of a target line by line, visible; ``whole`` includes requests that succeeded."""
    remedies = []
    for line in visible_lines(result.message):
        if line.strip().startswith("→"):
            remedies.append(line.strip())
        elif line.strip():
            yield "message", line
    for number, request in enumerate(result.requests, 1):
        if whole or request.outcome in {"failed", "unverified"}:
            yield "request", _request(number, request, result)
    if not whole and result.outcome != "not attempted":
        outcomes = [request.outcome for request in result.requests]
        waiting = outcomes.count("not sent")
        if waiting:
            done = outcomes.count("done")
            yield "request", f"{done} of {len(outcomes)} requests done, {waiting} not sent"
    for difference in result.differences:
        for line in _difference(difference, result):
            yield "difference", line
    for note in result.notes:
        yield "note", visible(note)
    if result.outcome in NOT_DONE:
        for remedy in remedies or (f"→ {advice(result)}",):
            yield "advice", remedy


def _request(number: int, request: RequestResult, result: TargetResult) -> str:
    shown = f"request {number} of {len(result.requests)}"
    planned = result.target.requests
    if number <= len(planned):
        sent = planned[number - 1]
        shown = f"{shown} {sent.method} {visible(sent.path)}"
    shown = f"{shown}: {request.outcome}"
    if request.status is not None:
        shown = f"{shown} {request.status}"
    if request.tries > 1:
        shown = f"{shown}, sent {request.tries} times"
    is_shown_above = request.message in result.message
    if request.message and not is_shown_above:
        shown = f"{shown}: {show(request.message)}"
    return shown


def _difference(difference: Difference, result: TargetResult) -> Iterator[str]:
    """Yield the desired and the live value; a line for each attribute that differs."""
    name = visible(f"{difference.aspect} {difference.key}".rstrip())
    desired, live = difference.desired, difference.live
    rate = result.target.rate
    if difference.why:
        yield f"{name}: {visible(difference.why)}"
        return
    if isinstance(desired, dict) and isinstance(live, dict):
        both = Change(
            "change",
            difference.aspect,
            difference.key,
            live,
            desired,
            "live",
            False,
            TaskSource(""),
        )
        shown = ASPECTS[difference.aspect].shown(both).change
        found = mapping(shown.before)
        for attribute, value in mapping(shown.after).items():
            other = found.get(attribute)
            if value != other:
                old, new = show_pair_of(value, other, attribute, rate, None)
                yield f"{name} {visible(attribute)}: desired {old}, live {new}"
    elif live is None and isinstance(desired, dict):
        yield f"{name}: desired, but missing"
    elif desired is None:
        yield f"{name}: still present, but must be absent"
    else:
        old, new = show_pair_of(desired, live, difference.key, rate, None)
        yield f"{name}: desired {old}, live {new}"


def advice(result: TargetResult) -> str:
    """Return what to do next about a target that is not as desired."""
    differences = result.differences
    if differences and all(difference.shown_as for difference in differences):
        return "set the dialect key that is named, then run again"
    if result.outcome == "unverified":
        return (
            "the server may have done it, or may still do it; msauto does not send it again automatically. "
            "Check the server, then plan again: the plan starts from live state"
        )
    if result.target.error is not None:
        return "nothing was sent for it; fix the cause and run again"
    if result.outcome == "not attempted":
        return "nothing was sent for it; run again to apply it"
    outcomes = {request.outcome for request in result.requests}
    if differences and outcomes <= {"done", "not sent"}:
        return _accepted_advice(differences)
    for request in result.requests:
        if request.outcome != "failed":
            continue
        cause = account_remedy(request.status, "write") or REMEDIES.get(request.status or 0)
        if cause:
            return f"{cause}; then run again"
    return "fix the cause and run again: what is done is not sent again"


def _accepted_advice(differences: Sequence[Difference]) -> str:
    if any(map(_is_cut, differences)):
        return "the server keeps only the beginning of the value: shorten it"
    keys = []
    for aspect in dict.fromkeys(difference.aspect for difference in differences):
        keys += [f"`{key}`" for key in ASPECTS[aspect].dialect]
    hint = ""
    if keys:
        names = ", ".join(keys)
        hint = f", or whether the dialect fits the server ({names}; see `msauto probe`)"
    return (
        "the server accepted the requests, but returns something else; "
        f"check whether something else writes there{hint}, then run again"
    )


def _is_cut(difference: Difference) -> bool:
    """Return whether the live text is the beginning of the desired one: servers limit the length of texts."""
    desired, live = difference.desired, difference.live
    return (
        isinstance(desired, str)
        and isinstance(live, str)
        and live != ""
        and desired.startswith(live)
    )
