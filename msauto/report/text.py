"""Plans, results and problems as text for a terminal. Every function is pure; its text ends with a newline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Final

from msauto.errors import InputError, MsautoError, Problem, RefusedError
from msauto.model.plan import Action, Change, Plan, Request, Target
from msauto.model.result import Outcome, Result, TargetResult
from msauto.report import sentences, value_texts
from msauto.report.result_sentences import NOT_DONE, recap_of, result_lines, result_sentence
from msauto.report.sanitizing import display_width, is_hidden, pad, show, visible, visible_lines
from msauto.report.terminal_styles import BOLD, CYAN, DIM, GREEN, MAGENTA, RED, YELLOW, align, paint
from msauto.secrets.redactor import redact_plan

_BODY: Final = 80
_COLOURS: Final[dict[Action, str]] = {"add": GREEN, "change": YELLOW, "delete": RED, "run": CYAN}
_OUTCOMES: Final[dict[Outcome, str]] = {
    "changed": YELLOW,
    "unchanged": GREEN,
    "failed": RED,
    "unverified": MAGENTA,
    "skipped": CYAN,
    "not attempted": MAGENTA,
}
_LISTED: Final = 5
"""How many targets are listed that were not attempted for the same reason; the others are counted."""


# Plans ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Style:
    colour: bool
    verbosity: int
    width: value_texts.ValueWidth

    def paint(self, text: str, style: str) -> str:
        return paint(text, style, colour=self.colour)


def render_plan(
    plan: Plan, *, colour: bool, verbosity: int = 0, width: int | None = None, keep_going: bool = False
) -> Iterator[str]:
    """Yield the lines of a plan: targets by server, then errors, warnings, refusals and the closing sentence.

    ``verbosity`` 1 adds the requests and shows values whole, 2 adds the source of each change. ``width`` (columns)
    limits long values. ``keep_going``: targets in error are left out.
    """
    plan = redact_plan(plan)
    style = _Style(colour, verbosity, _value_width(verbosity, width))
    closing = [style.paint(sentences.refusal_sentence(refusal), RED) for refusal in plan.refusals]
    closing.append(style.paint(sentences.plan_sentence(plan, keep_going=keep_going), BOLD))
    for line in chain(_targets(plan, style), _errors(plan, style), _warnings(plan, style), closing):
        yield f"{line}\n"


def _targets(plan: Plan, style: _Style) -> Iterator[str]:
    groups = sentences.changing_by_server(plan)
    for server, targets in groups.items():
        if len(groups) > 1:
            yield _server_line(server, targets, style)
            yield ""
        for target in targets:
            yield from _target(target, style)
            yield ""


def _value_width(verbosity: int, width: int | None) -> value_texts.ValueWidth:
    if verbosity:
        return value_texts.WHOLE
    if width is None:
        return value_texts.ValueWidth()
    room = max(20, (width - 30) // 2)
    return value_texts.ValueWidth(room, min(36, room))


def _server_line(server: str, targets: list[Target], style: _Style) -> str:
    requests = sum(len(target.requests) for target in targets)
    counts = f"{sentences.plural(len(targets), 'target')}, {sentences.plural(requests, 'request')}"
    return f"{style.paint(f'━━ {show(server)} ━━', BOLD)} {counts}"


def _heading(heading: str, folder: str, style: _Style) -> str:
    return style.paint(heading, BOLD) + (style.paint(f"  {folder}", DIM) if folder else "")


def _target(target: Target, style: _Style) -> Iterator[str]:
    yield _heading(sentences.target_heading(target), sentences.folder_note(target), style)
    cells = align(
        [
            [
                change.aspect,
                value_texts.show_key(change),
                ", ".join(map(str, value_texts.change_parts(change, target, style.width))),
            ]
            for change in target.changes
        ]
    )
    for change, row in zip(target.changes, cells, strict=True):
        yield _change_line(change, row, style)
        if style.verbosity >= 2:
            yield style.paint(f"      {_source(change)}", DIM)
    yield from (style.paint(f"    {line}", RED) for line in value_texts.emptied_lists(target))
    if style.verbosity:
        yield from _requests(target.requests, style)


def _change_line(change: Change, row: list[str], style: _Style) -> str:
    text = f"{value_texts.SIGNS[change.action]} {'  '.join(row).rstrip()}"
    notes = value_texts.change_notes(change)
    note = f"  ({'; '.join(notes)})" if notes else ""
    if change.action == "delete":
        return "  " + style.paint(text + note, RED)
    painted = style.paint(value_texts.SIGNS[change.action], _COLOURS[change.action]) + text[1:]
    return f"  {painted}{style.paint(note, DIM if change.reversible else YELLOW)}"


def _source(change: Change) -> str:
    task = f", task {show(change.source.task, quoted=True)}" if change.source.task else ""
    return f"at {visible(str(change.source.place))}{task}"


def _requests(requests: tuple[Request, ...], style: _Style) -> Iterator[str]:
    for number, request in enumerate(requests, 1):
        body = f"  {value_texts.show_body(request.body, _BODY)}" if request.body else ""
        yield style.paint(f"    {number:>3}. {request.method} {visible(request.path)}{body}", DIM)


def _errors(plan: Plan, style: _Style) -> Iterator[str]:
    for heading, folder, error in sentences.planning_errors(plan):
        yield _heading(heading, folder, style)
        first, *rest = visible_lines(error)
        yield style.paint(f"  error: {first}", RED)
        yield from (style.paint(f"    {line}", RED) for line in rest if line.strip())
        yield ""


def _warnings(plan: Plan, style: _Style) -> Iterator[str]:
    for warning in plan.warnings:
        first, *rest = visible_lines(warning)
        yield style.paint(f"Warning: {first}", YELLOW)
        yield from (style.paint(f"  {line}", YELLOW) for line in rest)
    if plan.warnings:
        yield ""


# Results -------------------------------------------------------------------------------------------------------


def render_result(result: Result, *, colour: bool, verbosity: int = 0) -> str:
    """Return a result: the targets that are not as desired (``verbosity`` 1: all), counts, the closing sentence."""
    lines: list[str] = []
    not_attempted: Counter[tuple[str, str]] = Counter()
    for target in result.targets:
        listed = bool(verbosity) or target.outcome in NOT_DONE
        if target.outcome == "not attempted" and not verbosity:
            reason = target.target.server, target.message
            not_attempted[reason] += 1
            listed = not_attempted[reason] <= _LISTED
        lines += [*_target_result(target, colour, verbosity), ""] if listed else []
    lines += _not_listed(not_attempted)
    lines += _recap(recap_of(result), colour)
    style = GREEN if result.ok and not result.interrupted else RED
    lines.append(paint(visible(result_sentence(result)), style, colour=colour))
    return "".join(f"{line}\n" for line in lines)


def _not_listed(not_attempted: Mapping[tuple[str, str], int]) -> Iterator[str]:
    """Count the rest of what was not attempted for one reason: a server that stops answering leaves thousands."""
    for (server, message), count in not_attempted.items():
        if count > _LISTED:
            reason = f": {visible(message)}" if message else ""
            yield from (f"{visible(server)}: {count - _LISTED} more not attempted{reason}", "  → list them with -v", "")


def _target_result(result: TargetResult, colour: bool, verbosity: int) -> Iterator[str]:
    outcome = paint(result.outcome, _OUTCOMES[result.outcome], colour=colour)
    yield f"{paint(sentences.target_heading(result.target), BOLD, colour=colour)}: {outcome}"
    styles = {"difference": RED, "advice": DIM}
    for kind, line in result_lines(result, whole=bool(verbosity)):
        yield paint(f"  {line}", styles[kind], colour=colour) if kind in styles else f"  {line}"


def _recap(recaps: Mapping[str, Mapping[str, int]], colour: bool) -> Iterator[str]:
    width = max((display_width(show(server)) for server in recaps), default=0)
    for server, counts in recaps.items():
        shown = " ".join(_count(name, number, colour) for name, number in counts.items())
        yield f"{pad(show(server), width)} : {shown}"
    if recaps:
        yield ""


def _count(name: str, number: int, colour: bool) -> str:
    styles = {"changed": YELLOW, "failed": RED, "unverified": MAGENTA, "not_attempted": MAGENTA}
    text = f"{name}={number}"
    return paint(text, styles[name], colour=colour and number > 0) if name in styles else text


# Problems ------------------------------------------------------------------------------------------------------


def render_problems(problems: Iterable[Problem], colour: bool) -> str:
    """Return each problem: place and message, the excerpt with its caret, the remedy; at the end their number."""
    blocks = ["".join(f"{line}\n" for line in _problem(problem, colour)) for problem in problems]
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
