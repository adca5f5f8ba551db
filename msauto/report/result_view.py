"""The result of a run, as text, Markdown and HTML show it: counts, what failed and why, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple
from urllib.parse import quote

from msgspec import structs

from msauto.aspects import ASPECTS
from msauto.aspects.comparison import mapping
from msauto.aspects.downloads import Download
from msauto.circuit_breaker import account_remedy
from msauto.model.desired import TaskSource
from msauto.model.plan import Change, Target
from msauto.model.result import Difference, Outcome, RequestResult, Result, TargetResult
from msauto.report.plan_view import FEWEST_ALIKE, TargetGroup, without_title
from msauto.report.sanitizing import show, visible, visible_lines
from msauto.report.texts import count_outcomes, count_outside, plural, settings_line, show_duration, show_pair_of
from msauto.secrets.redacted_plans import Redactor

NOT_DONE: Final[tuple[Outcome, ...]] = ("failed", "unverified", "interrupted", "not attempted")
"""Outcomes that every form lists, worst first."""

Kind = Literal["message", "request", "difference", "note", "advice"]


class ResultGroup(TargetGroup, frozen=True):
    """Targets with the same outcome and the same lines, in which the titles are placeholders if there are several."""

    outcome: Outcome
    lines: tuple[tuple[Kind, str], ...]


class ResultView(NamedTuple):
    """A result, without its secrets, as its forms show it. ``groups``: targets not as desired, or with notes."""

    result: Result
    sentence: str
    settings: str
    recaps: Mapping[str, Mapping[str, int]]
    groups: tuple[ResultGroup, ...]

    @property
    def not_done(self) -> int:
        """How many targets are not as desired: those with notes alone are in the groups too."""
        return sum(each.outcome in NOT_DONE for each in self.result.targets)


def view_result(result: Result, *, folded: bool = True) -> ResultView:
    """Return the view of a result; without ``folded`` each target is a group, with everything that came of it.

    Otherwise at least 3 results with the same outcome for the same reason are a group, and the others are alone.
    """
    result = Redactor(result.plan.secrets)(result)
    groups = _folded(result) if folded else (_group(each, whole=True) for each in result.targets)
    listed = tuple(sorted(groups, key=lambda group: severity(group.outcome)))
    return ResultView(result, result_sentence(result), settings_line(result.plan), recap_of(result), listed)


def severity(outcome: Outcome) -> int:
    """Return the place of an outcome in a list that begins with the worst."""
    return NOT_DONE.index(outcome) if outcome in NOT_DONE else len(NOT_DONE)


def _folded(result: Result) -> Iterator[ResultGroup]:
    """Yield the targets that are not as desired or have notes, those with the same lines together."""
    alike: dict[tuple[Outcome, str, tuple[tuple[Kind, str], ...]], list[TargetResult]] = {}
    for each in result.targets:
        if each.outcome in NOT_DONE or each.notes:
            lines = tuple((kind, without_titles(line, each.target)) for kind, line in result_lines(each))
            alike.setdefault((each.outcome, each.target.kind, lines), []).append(each)
    for (outcome, _, lines), results in alike.items():
        if len(results) >= FEWEST_ALIKE:
            yield ResultGroup(tuple(each.target for each in results), outcome, lines)
        else:
            yield from map(_group, results)


def _group(result: TargetResult, *, whole: bool = False) -> ResultGroup:
    return ResultGroup((result.target,), result.outcome, tuple(result_lines(result, whole=whole)))


def without_titles(line: str, target: Target) -> str:
    """Return a line with placeholders for the title, which is part of the paths of requests."""
    for name in dict.fromkeys((target.name, target.address.name, target.address_after.name)):
        for form in dict.fromkeys((show(name), quote(name, safe="", errors="replace"))) if name else ():
            line = without_title(line, form)
    return line


# Counts --------------------------------------------------------------------------------------------------------


def recap_of(result: Result) -> dict[str, dict[str, int]]:
    """Return the counts of each server by name, in the order of the run; servers without a change included.

    ``requests`` counts those that were sent, each once, as the history does.
    """
    plan = result.plan
    servers = dict.fromkeys([*(each.name for each in plan.servers), *(each.target.server for each in result.targets)])
    unchanged = {each.name: each.unchanged for each in plan.servers}
    skipped, left_out = (plan.skipped, plan.left_out) if len(servers) == 1 else (0, 0)
    recaps = {}
    for server in servers:
        own = structs.replace(result, targets=tuple(each for each in result.targets if each.target.server == server))
        recaps[server] = _count(own, unchanged.get(server, 0), skipped, left_out) | {"requests": _sent(own)}
    return recaps


def _count(result: Result, unchanged: int, skipped: int, left_out: int) -> dict[str, int]:
    planned = {"unchanged": unchanged, "skipped": skipped, "not_attempted": left_out}
    return {name: number + planned.get(name, 0) for name, number in result.counts.items()}


def _sent(result: Result) -> int:
    sent = 0
    for target in result.targets:
        for request in target.requests:
            if request.tries > 0 and request.outcome != "not sent":
                sent += 1
    return sent


def result_sentence(result: Result) -> str:
    """Return the closing sentence of a run."""
    counts = _count(result, result.plan.unchanged, result.plan.skipped, result.plan.left_out)
    requests = plural(_sent(result), "request")
    targets = count_outcomes(counts)
    took = "" if result.seconds is None else f" in {show_duration(result.seconds)}"
    shown = f"{targets}; {requests}{took}" if targets else f"{requests}{took}"
    if result.interrupted:
        return f"Interrupted: {shown}. What was sent is recorded: msauto history {result.run}"
    done = [each.target for each in result.targets if each.outcome == "changed"]
    outside = sum(each.outside is not None for target in done for each in target.changes)
    overwritten = [f"{count_outside(outside)}, and {'is' if outside == 1 else 'are'} overwritten."] if outside else []
    if not result.ok:
        details = f"For details: msauto history {result.run}"
        return " ".join((f"Not everything is as desired: {shown}.", *overwritten, details))
    if not counts["changed"]:
        return f"Nothing was changed: {shown}."
    return " ".join((f"Done: {shown}.", *_verification(result), *overwritten))


def _verification(result: Result) -> Iterator[str]:
    """Yield how far the changes are verified: what was read again, and what cannot be read."""
    changed = [target for target in result.targets if target.outcome == "changed"]
    seen = sum(target.seen for target in changed)
    files = sum(isinstance(ASPECTS[aspect], Download) for target in changed for aspect in target.unseen)
    unreadable = sum(len(target.unseen) for target in changed) - files
    if seen and unreadable:
        yield f"All changes that can be read back are verified; {plural(unreadable, 'change')} cannot be read back."
    elif seen:
        yield "All changes are verified."
    elif unreadable:
        yield "The changes cannot be read back; the server accepted the requests."
    if files:
        yield f"{plural(files, 'file')} {'was' if files == 1 else 'were'} downloaded."


# One target ----------------------------------------------------------------------------------------------------


def result_lines(result: TargetResult, *, whole: bool = False) -> Iterator[tuple[Kind, str]]:
    """Yield the result of a target line by line, visible; ``whole`` includes requests that succeeded."""
    remedies = [line.strip() for line in visible_lines(result.message) if line.strip().startswith("→")]
    for line in visible_lines(result.message):
        if line.strip() and line.strip() not in remedies:
            yield "message", line
    for number, request in enumerate(result.requests, 1):
        if whole or request.outcome in {"failed", "unverified"}:
            yield "request", _request(number, request, result)
    waiting = sum(request.outcome == "not sent" for request in result.requests)
    if waiting and not whole and result.outcome != "not attempted":
        done = sum(request.outcome == "done" for request in result.requests)
        yield "request", f"{done} of {len(result.requests)} requests done, {waiting} not sent"
    for difference in result.differences:
        for line in _difference(difference, result):
            yield "difference", line
    for note in result.notes:
        yield "note", visible(note)
    if result.outcome in NOT_DONE:
        yield from (("advice", line) for line in remedies or (f"→ {advice(result)}",))


def _request(number: int, request: RequestResult, result: TargetResult) -> str:
    sent = result.target.requests[number - 1] if number <= len(result.target.requests) else None
    what = f" {sent.method} {visible(sent.path)}" if sent else ""
    status = f" {request.status}" if request.status is not None else ""
    tries = f", sent {request.tries} times" if request.tries > 1 else ""
    repeated = request.message in result.message  # shown just above
    message = f": {show(request.message)}" if request.message and not repeated else ""
    return f"request {number} of {len(result.requests)}{what}: {request.outcome}{status}{tries}{message}"


def _difference(difference: Difference, result: TargetResult) -> Iterator[str]:
    """Yield the desired and the live value; a line for each attribute that differs."""
    name = visible(f"{difference.aspect} {difference.key}".rstrip())
    desired, live = difference.desired, difference.live
    rate = result.target.rate
    if difference.why:
        yield f"{name}: {visible(difference.why)}"
        return
    if isinstance(desired, dict) and isinstance(live, dict):
        both = Change("change", difference.aspect, difference.key, live, desired, "live", False, TaskSource(""))
        shown = ASPECTS[difference.aspect].shown(both).change
        now = mapping(shown.before)
        for attribute, value in mapping(shown.after).items():
            if value != now.get(attribute):
                old, new = show_pair_of(value, now.get(attribute), attribute, rate, None)
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
    if result.differences and all(each.shown_as for each in result.differences):
        return "set the dialect key that is named, then run again"
    if result.outcome == "unverified":
        return (
            "the server may have done it, or may still do it; msauto does not send it again automatically. "
            "Check the server, then plan again: the plan starts from live state"
        )
    if result.target.error is not None:
        return "nothing was sent for it; fix the cause and run again"
    if result.outcome == "interrupted":
        return "what is done is not sent again; apply again to continue"
    if result.outcome == "not attempted":
        return "nothing was sent for it; run again to apply it"
    if result.differences and all(request.outcome in {"done", "not sent"} for request in result.requests):
        if any(map(_is_cut, result.differences)):
            return "the server keeps only the beginning of the value: shorten it"
        aspects = dict.fromkeys(each.aspect for each in result.differences)
        keys = ", ".join(f"`{key}`" for aspect in aspects for key in ASPECTS[aspect].dialect)
        hint = f", or whether the dialect fits the server ({keys}; see `msauto probe`)" if keys else ""
        return (
            "the server accepted the requests, but returns something else; "
            f"check whether something else writes there{hint}, then run again"
        )
    rejected = (account_remedy(request.status, "write") for request in result.requests if request.outcome == "failed")
    cause = next(filter(None, rejected), "")
    return f"{cause}; then run again" if cause else "fix the cause and run again: what is done is not sent again"


def _is_cut(difference: Difference) -> bool:
    """Return whether the live text is the beginning of the desired one: servers limit the length of texts."""
    desired, live = difference.desired, difference.live
    return isinstance(desired, str) and isinstance(live, str) and live != "" and desired.startswith(live)
