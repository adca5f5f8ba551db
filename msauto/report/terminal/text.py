"""Results and problems as text for a terminal. Every function is pure; its text ends with a newline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from msauto.errors import InputError, MsautoError, Problem, RefusedError
from msauto.model.result import Result
from msauto.report import sentences
from msauto.report.layout import PLAIN, Layout
from msauto.report.result_view import ResultGroup, ResultView, view_result
from msauto.report.sanitizing import display_width, is_hidden, pad, show, visible, visible_lines, without_command
from msauto.report.terminal.lines import (
    BOLD,
    CYAN,
    DIM,
    GREEN,
    MAGENTA,
    RED,
    YELLOW,
    Line,
    TextSpan,
    paint,
    render_lines,
    words,
)
from msauto.report.terminal.plan_text import names_line
from msauto.report.value_texts import show_duration

_OUTCOMES: Final[dict[str, str]] = {
    "changed": YELLOW,
    "unchanged": GREEN,
    "failed": RED,
    "unverified": MAGENTA,
    "interrupted": MAGENTA,
    "skipped": CYAN,
    "not attempted": MAGENTA,
}
_STYLES: Final = {"difference": RED, "advice": DIM}


# Results -------------------------------------------------------------------------------------------------------


def render_result(result: Result, layout: Layout = PLAIN) -> Iterator[str]:
    """Yield a result: the targets that are not as desired (``verbosity`` 1: all), counts, the closing sentence.

    At least 3 targets with the same outcome for the same reason are one block with their names (``verbosity`` 1: not).
    A run without targets is shown by its plan alone.
    """
    if not result.targets and not result.plan.left_out:
        return
    view = view_result(result, folded=not layout.verbosity)
    style = GREEN if result.ok and not result.interrupted else RED
    closing = words(visible(view.sentence), style)
    lines = [*(line for group in view.groups for line in _group(group, layout.verbosity)), *_recap(view), closing]
    yield from render_lines(lines, layout)


def _group(group: ResultGroup, verbosity: int) -> Iterator[Line]:
    outcome = TextSpan(group.outcome, _OUTCOMES[group.outcome])
    yield Line((TextSpan(group.heading, BOLD, together=False), TextSpan(": "), outcome), 4)
    for kind, line in group.lines:
        yield replace(words(f"  {line}", _STYLES.get(kind, ""), hang=4), wrapped=kind != "request" or not verbosity)
    if group.named:
        yield names_line(group.named)
    yield Line(())


def _recap(view: ResultView) -> Iterator[Line]:
    width = max((display_width(show(server)) for server in view.recaps), default=0)
    for server, counts in view.recaps.items():
        spans = (
            TextSpan(f"{name}={number} ", _OUTCOMES.get(name.replace("_", " "), "") if number else "")
            for name, number in counts.items()
            if number or name != "interrupted"
        )
        seconds = view.result.server_seconds.get(server)
        took = [] if seconds is None else [TextSpan(f"in {show_duration(seconds)}")]
        yield Line((TextSpan(f"{pad(show(server), width)} : "), *spans, *took), 4)
    if view.recaps:
        yield Line(())


# Problems ------------------------------------------------------------------------------------------------------


def render_problems(problems: Iterable[Problem], colour: bool) -> str:
    """Return each problem: place and message, the excerpt with its caret, the remedy; at the end their number."""
    blocks = ["".join(f"{without_command(line)}\n" for line in _problem(problem, colour)) for problem in problems]
    if not blocks:
        return ""
    return "\n".join([*blocks, paint(f"{sentences.plural(len(blocks), 'problem')}.", BOLD, colour=colour) + "\n"])


def render_error(error: MsautoError, *, colour: bool) -> str:
    """Return an error; :class:`InputError` with all its problems."""
    if isinstance(error, InputError):
        return render_problems(error.problems, colour)
    first, *rest = visible_lines(str(error))
    head = "Refused:" if isinstance(error, RefusedError) else "Error:"
    lines = [f"{paint(head, RED, colour=colour)} {first}", *(f"  {line.strip()}" for line in rest if line.strip())]
    return "".join(f"{line}\n" for line in lines)


def _problem(problem: Problem, colour: bool) -> Iterator[str]:
    first, *rest = visible_lines(problem.message)
    place = " ".join(visible_lines(f"{problem.place}: ")) if problem.place else ""
    warning = problem.level == "warning"
    message = paint(f"warning: {first}", YELLOW, colour=colour) if warning else paint(first, RED, colour=colour)
    yield f"{paint(place, BOLD, colour=colour)}{message} {paint(f'[{problem.kind}]', DIM, colour=colour)}"
    yield from (f"  {line}" for line in rest)
    for line in _excerpt(problem.excerpt):
        yield paint(line, CYAN if _is_caret(line) else DIM, colour=colour)
    if problem.remedy:
        yield f"  → {' '.join(visible_lines(problem.remedy))}"


def _excerpt(excerpt: str) -> Iterator[str]:
    """Yield the lines of an excerpt; a caret that counts characters moves to its column on the terminal."""
    above = ""
    for line in excerpt.rstrip("\n").split("\n") if excerpt else ():
        shown = "".join(" " if sign == "\t" else "�" if is_hidden(sign) else sign for sign in line)
        yield _move_caret(shown, above) if _is_caret(shown) and above else shown
        above = shown


def _move_caret(caret: str, above: str) -> str:
    at = caret.index("^")
    bar = caret.rfind("|", 0, at) + 1
    return caret[:bar] + " " * (display_width(above[:at]) - bar + max(0, at - len(above))) + caret[at:]


def _is_caret(line: str) -> bool:
    return line.strip(" |~^") == "" and "^" in line
