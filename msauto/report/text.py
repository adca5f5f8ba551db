"""The plan as text, for a person at night: what will be done to what, and what a no would cost.

Other texts for terminals are drawn in :mod:`msauto.report.text_result` and :mod:`msauto.report.text_problems`, and
are offered here as well. Every function is pure; its text ends with a newline.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from msauto.model.plan import Change, Plan, Request, Target
from msauto.report.ansi import BOLD, COLOURS, DIM, RED, SIGNS, YELLOW, paint
from msauto.report.sanitizing import show, visible, visible_lines
from msauto.report.sentences import by_server, plan_sentence, plural, refusal_sentence
from msauto.report.tables import align
from msauto.report.text_problems import render_error, render_problems
from msauto.report.text_result import render_result
from msauto.report.titles import errors_of, folder_of, head_of
from msauto.report.values import WHOLE, ValueWidth, change_notes, change_parts, emptied_words, show_body, show_key
from msauto.secrets.redactor import redact_plan

__all__ = ["render_error", "render_plan", "render_problems", "render_result"]

_BODY = 80


@dataclass(frozen=True, slots=True)
class _Form:
    colour: bool
    verbosity: int
    short: ValueWidth

    def paint(self, text: str, style: str) -> str:
        return paint(text, style, colour=self.colour)


def render_plan(
    plan: Plan, *, colour: bool, verbosity: int = 0, width: int | None = None, keep_going: bool = False
) -> str:
    """Write a plan: targets by server, then errors, warnings, refusals and the closing sentence.

    ``verbosity`` 1 adds the requests and shows values whole, 2 the place that each change comes from. ``width``
    (columns) decides how much of long values is shown. ``keep_going``: errors are left out rather than in the way.
    """
    plan = redact_plan(plan)
    form = _Form(colour, verbosity, _shortness(verbosity, width))
    lines: list[str] = []
    groups = by_server(target for target in plan.targets if target.error is None and target.changes)
    for server, targets in groups.items():
        if len(groups) > 1:
            lines += [_server_line(server, targets, form), ""]
        for target in targets:
            lines += [*_target(target, form), ""]
    lines += _errors(plan, form)
    lines += _warnings(plan, form)
    lines += [form.paint(refusal_sentence(refusal), RED) for refusal in plan.refusals]
    lines.append(form.paint(plan_sentence(plan, keep_going=keep_going), BOLD))
    return "".join(f"{line}\n" for line in lines)


def _shortness(verbosity: int, width: int | None) -> ValueWidth:
    if verbosity:
        return WHOLE
    if width is None:
        return ValueWidth()
    room = max(20, (width - 30) // 2)
    return ValueWidth(room, min(36, room))


def _server_line(server: str, targets: list[Target], form: _Form) -> str:
    requests = sum(len(target.requests) for target in targets)
    counts = f"{plural(len(targets), 'target')}, {plural(requests, 'request')}"
    return f"{form.paint(f'━━ {show(server)} ━━', BOLD)} {counts}"


def _head(target: Target, form: _Form) -> str:
    folder = folder_of(target)
    return form.paint(head_of(target), BOLD) + (form.paint(f"  {folder}", DIM) if folder else "")


def _target(target: Target, form: _Form) -> Iterator[str]:
    yield _head(target, form)
    cells = align([[change.aspect, show_key(change), _words(change, target, form)] for change in target.changes])
    for change, row in zip(target.changes, cells, strict=True):
        yield _change_line(change, row, form)
        if form.verbosity >= 2:
            yield form.paint(f"      {_source(change)}", DIM)
    yield from (form.paint(f"    {words}", RED) for words in emptied_words(target))
    if form.verbosity:
        yield from _requests(target.requests, form)


def _words(change: Change, target: Target, form: _Form) -> str:
    return ", ".join(map(str, change_parts(change, target, form.short)))


def _change_line(change: Change, row: list[str], form: _Form) -> str:
    text = f"{SIGNS[change.action]} {'  '.join(row).rstrip()}"
    notes = change_notes(change)
    note = f"  ({'; '.join(notes)})" if notes else ""
    style = COLOURS[change.action]
    if change.action == "delete":
        return "  " + form.paint(text + note, style)
    painted = form.paint(SIGNS[change.action], style) + text[1:]
    return f"  {painted}{form.paint(note, DIM if change.reversible else YELLOW)}"


def _source(change: Change) -> str:
    task = f", task {show(change.source.task, quoted=True)}" if change.source.task else ""
    return f"at {visible(str(change.source.place))}{task}"


def _requests(requests: tuple[Request, ...], form: _Form) -> Iterator[str]:
    for number, request in enumerate(requests, 1):
        body = f"  {show_body(request.body, _BODY)}" if request.body else ""
        yield form.paint(f"    {number:>3}. {request.method} {visible(request.path)}{body}", DIM)


def _errors(plan: Plan, form: _Form) -> Iterator[str]:
    for head, folder, error in errors_of(plan):
        yield form.paint(head, BOLD) + (form.paint(f"  {folder}", DIM) if folder else "")
        first, *rest = visible_lines(error)
        yield form.paint(f"  error: {first}", RED)
        yield from (form.paint(f"    {line}", RED) for line in rest if line.strip())
        yield ""


def _warnings(plan: Plan, form: _Form) -> Iterator[str]:
    for warning in plan.warnings:
        first, *rest = visible_lines(warning)
        yield form.paint(f"Warning: {first}", YELLOW)
        yield from (form.paint(f"  {line}", YELLOW) for line in rest)
    if plan.warnings:
        yield ""
