"""What came of one target, line by line, for every form: message, requests, differences, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from msauto.model.result import Difference, RequestResult, TargetResult
from msauto.report.sanitizing import show, visible, visible_lines
from msauto.report.sentences import advice
from msauto.report.values import show_pair_of

Kind = Literal["message", "request", "difference", "advice"]

TOLD: Final = frozenset({"failed", "unverified", "not attempted"})
"""Outcomes that a person must hear of."""


def story_of(result: TargetResult, *, whole: bool = False) -> Iterator[tuple[Kind, str]]:
    """Tell what came of a target, each line visible; ``whole`` tells of requests that went well, too."""
    for line in visible_lines(result.message):
        if line.strip():
            yield "message", line
    for number, request in enumerate(result.requests, 1):
        if whole or request.outcome in {"failed", "unverified"}:
            yield "request", _request(number, request, result)
    left = "" if whole else _left_out(result)
    if left:
        yield "request", left
    for difference in result.differences:
        for line in _difference(difference, result):
            yield "difference", line
    if result.outcome in TOLD:
        yield "advice", f"→ {advice(result)}"


def _request(number: int, request: RequestResult, result: TargetResult) -> str:
    sent = result.target.requests[number - 1] if number <= len(result.target.requests) else None
    what = f" {sent.method} {visible(sent.path)}" if sent else ""
    status = f" {request.status}" if request.status is not None else ""
    tries = f", sent {request.tries} times" if request.tries > 1 else ""
    told = request.message in result.message  # in the target's own words, just above
    message = f": {show(request.message)}" if request.message and not told else ""
    return f"request {number} of {len(result.requests)}{what}: {request.outcome}{status}{tries}{message}"


def _left_out(result: TargetResult) -> str:
    waiting = sum(request.outcome == "not sent" for request in result.requests)
    done = sum(request.outcome == "done" for request in result.requests)
    if not waiting or result.outcome == "not attempted":
        return ""
    return f"{done} of {len(result.requests)} requests done, {waiting} not sent"


def _difference(difference: Difference, result: TargetResult) -> Iterator[str]:
    """Say field by field what was wanted and what is live; one line for each attribute that differs."""
    name = visible(f"{difference.aspect} {difference.key}".rstrip())
    desired, live = difference.desired, difference.live
    rate = result.target.rate
    if isinstance(desired, dict) and isinstance(live, dict):
        for attribute, value in desired.items():
            if value != live.get(attribute):
                old, new = show_pair_of(value, live.get(attribute), attribute, rate, None)
                yield f"{name} {visible(attribute)}: wanted {old}, live {new}"
    elif live is None and isinstance(desired, dict):
        yield f"{name}: wanted, and not there"
    elif desired is None:
        yield f"{name}: still there, and should be gone"
    else:
        old, new = show_pair_of(desired, live, difference.key, rate, None)
        yield f"{name}: wanted {old}, live {new}"
