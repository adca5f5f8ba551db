"""What came of a run, as text: every target that is not as wanted, a recap line for each server, one sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from msauto.model.result import Outcome, Result, TargetResult
from msauto.report.ansi import BOLD, CYAN, DIM, GREEN, MAGENTA, RED, YELLOW, paint
from msauto.report.result_lines import TOLD, story_of
from msauto.report.sanitizing import display_width, pad, show, visible
from msauto.report.sentences import Recap, recap_of, result_sentence
from msauto.report.titles import head_of

_STYLES: Final[dict[Outcome, str]] = {
    "changed": YELLOW,
    "unchanged": GREEN,
    "failed": RED,
    "unverified": MAGENTA,
    "skipped": CYAN,
    "not attempted": MAGENTA,
}

_ALIKE: Final = 5
"""So many targets that were not attempted for one reason are listed; of the others it is told how many they are."""


def render_result(result: Result, *, colour: bool, verbosity: int = 0) -> str:
    """Write what came of a run: the targets that are not as wanted (with ``verbosity`` 1 all), recap, sentence."""
    lines: list[str] = []
    left: Counter[tuple[str, str]] = Counter()
    for target in result.targets:
        told = bool(verbosity) or target.outcome in TOLD
        if target.outcome == "not attempted" and not verbosity:
            left[target.target.server, target.message] += 1
            told = left[target.target.server, target.message] <= _ALIKE
        lines += [*_target(target, colour, verbosity), ""] if told else []
    lines += _and_more(left)
    lines += _recap(recap_of(result), colour)
    closing = result_sentence(result)
    style = GREEN if result.ok and not result.interrupted else RED
    lines.append(paint(visible(closing), style, colour=colour))
    return "".join(f"{line}\n" for line in lines)


def _and_more(left: Mapping[tuple[str, str], int]) -> Iterator[str]:
    """Count what was not attempted for the same reason: a server that died leaves thousands."""
    for (server, message), count in left.items():
        if count > _ALIKE:
            why = f": {visible(message)}" if message else ""
            yield from (f"{visible(server)}: {count - _ALIKE} more not attempted{why}", "  → -v lists them all", "")


def _target(result: TargetResult, colour: bool, verbosity: int) -> Iterator[str]:
    outcome = paint(result.outcome, _STYLES[result.outcome], colour=colour)
    yield f"{paint(head_of(result.target), BOLD, colour=colour)}: {outcome}"
    styles = {"difference": RED, "advice": DIM}
    for kind, words in story_of(result, whole=bool(verbosity)):
        yield paint(f"  {words}", styles[kind], colour=colour) if kind in styles else f"  {words}"


def _recap(recaps: tuple[Recap, ...], colour: bool) -> Iterator[str]:
    width = max((display_width(show(recap.server)) for recap in recaps), default=0)
    for recap in recaps:
        counts = " ".join(_count(name, number, colour) for name, number in recap.counts())
        yield f"{pad(show(recap.server), width)} : {counts}"
    if recaps:
        yield ""


def _count(name: str, number: int, colour: bool) -> str:
    styles = {"changed": YELLOW, "failed": RED, "unverified": MAGENTA, "not_attempted": MAGENTA}
    text = f"{name}={number}"
    return paint(text, styles[name], colour=colour and number > 0) if name in styles else text
