"""What came of a run, as text: every target that is not as wanted, a recap line for each server, one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msauto.model.result import Difference, Outcome, RequestResult, Result, TargetResult
from msauto.report.heads import head_of
from msauto.report.paint import BOLD, CYAN, DIM, GREEN, MAGENTA, RED, YELLOW, paint
from msauto.report.sentences import Recap, advice, recap_of, result_sentence
from msauto.report.values import show_pair_of
from msauto.report.visible import display_width, pad, show, visible, visible_lines

_STYLES: Final[dict[Outcome, str]] = {
    "changed": YELLOW,
    "unchanged": GREEN,
    "failed": RED,
    "unproved": MAGENTA,
    "skipped": CYAN,
    "not attempted": MAGENTA,
}
_TOLD: Final = frozenset({"failed", "unproved", "not attempted"})


def render_result(result: Result, *, colour: bool, verbosity: int = 0) -> str:
    """Write what came of a run: the targets that are not as wanted (with ``verbosity`` 1 all), recap, sentence."""
    lines: list[str] = []
    for target in result.targets:
        if verbosity or target.outcome in _TOLD:
            lines += [*_target(target, colour, verbosity), ""]
    lines += _recap(recap_of(result), colour)
    closing = result_sentence(result)
    style = GREEN if result.ok and not result.interrupted else RED
    lines.append(paint(visible(closing), style, colour=colour))
    return "".join(f"{line}\n" for line in lines)


def difference_words(difference: Difference, result: TargetResult) -> Iterator[str]:
    """Say field by field what was wanted and what is live; one line for each attribute that differs."""
    name = visible(f"{difference.aspect} {difference.key}".rstrip())
    wanted, live = difference.wanted, difference.live
    rate = result.target.rate
    if isinstance(wanted, dict) and isinstance(live, dict):
        for attribute, value in wanted.items():
            if value != live.get(attribute):
                pair = show_pair_of(value, live.get(attribute), attribute, rate, None)
                yield f"{name} {visible(attribute)}: wanted {pair[0]}, live {pair[1]}"
        return
    if live is None and isinstance(wanted, dict):
        yield f"{name}: wanted, and not there"
    elif wanted is None:
        yield f"{name}: still there, and should be gone"
    else:
        pair = show_pair_of(wanted, live, difference.key, rate, None)
        yield f"{name}: wanted {pair[0]}, live {pair[1]}"


def _target(result: TargetResult, colour: bool, verbosity: int) -> Iterator[str]:
    outcome = paint(result.outcome, _STYLES[result.outcome], colour=colour)
    yield f"{paint(head_of(result.target), BOLD, colour=colour)}: {outcome}"
    if result.message:
        yield from (f"  {line}" for line in visible_lines(result.message) if line.strip())
    for number, request in enumerate(result.requests, 1):
        if verbosity or request.outcome in {"failed", "unproved"}:
            yield f"  {_request(number, request, result)}"
    yield from _left_out(result, verbosity)
    for difference in result.differences:
        yield from (paint(f"  {line}", RED, colour=colour) for line in difference_words(difference, result))
    if result.outcome in _TOLD:
        yield paint(f"  → {advice(result)}", DIM, colour=colour)


def _request(number: int, request: RequestResult, result: TargetResult) -> str:
    sent = result.target.requests[number - 1] if number <= len(result.target.requests) else None
    what = f" {sent.method} {visible(sent.path)}" if sent else ""
    status = f" {request.status}" if request.status is not None else ""
    tries = f", sent {request.tries} times" if request.tries > 1 else ""
    message = f": {show(request.message)}" if request.message else ""
    return f"request {number} of {len(result.requests)}{what}: {request.outcome}{status}{tries}{message}"


def _left_out(result: TargetResult, verbosity: int) -> Iterator[str]:
    waiting = sum(request.outcome == "not sent" for request in result.requests)
    done = sum(request.outcome == "done" for request in result.requests)
    if waiting and not verbosity and result.outcome != "not attempted":
        yield f"  {done} of {len(result.requests)} requests done, {waiting} not sent"


def _recap(recaps: tuple[Recap, ...], colour: bool) -> Iterator[str]:
    width = max((display_width(show(recap.server)) for recap in recaps), default=0)
    for recap in recaps:
        counts = " ".join(_count(name, number, colour) for name, number in recap.counts())
        yield f"{pad(show(recap.server), width)} : {counts}"
    if recaps:
        yield ""


def _count(name: str, number: int, colour: bool) -> str:
    styles = {"changed": YELLOW, "failed": RED, "unproved": MAGENTA, "not-attempted": MAGENTA}
    text = f"{name}={number}"
    return paint(text, styles[name], colour=colour and number > 0) if name in styles else text
