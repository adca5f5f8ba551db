"""A plan as text for a terminal, folded so that it can be read; results and problems. The text ends with a newline.

The order is that of a decision: what changes, errors, warnings, counts, refusals, and at the end every deletion, just
above the closing sentence and the question.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import structs

from msauto.errors import InputError, MsautoError, Problem, RefusedError
from msauto.model.plan import Action, Change, Plan, Request, Target
from msauto.model.result import Result
from msauto.report import plan_view, texts
from msauto.report.clip_timeline import ASCII, TimelineRow, draw_timeline, legend_of
from msauto.report.layout import PLAIN, Layout, Line, Style, TextSpan, render_lines, value_table, words
from msauto.report.result_view import ResultGroup, ResultView, view_result
from msauto.report.sanitizing import (
    display_width,
    is_hidden,
    pad,
    show,
    show_range,
    visible,
    visible_lines,
)

NARROWEST: Final = 60
_BODY: Final = 80
_COLOURS: Final[dict[Action, Style]] = {"add": "green", "change": "yellow", "delete": "red", "run": "cyan"}
_NAME_ROWS: Final = 4
_VALUE_ROWS: Final = 3
_WIDEST_KEY: Final = 18
_WIDEST_DRAWING: Final = 120
_UNLIMITED: Final = 10**9


def render_plan(plan: Plan, layout: Layout = PLAIN) -> Iterator[str]:
    """Yield a plan line by line, at most ``layout.width`` columns wide (60 or more); requests are not wrapped."""
    layout = structs.replace(layout, width=max(NARROWEST, layout.width))
    view = plan_view.view_plan(plan, folded=not layout.verbosity, keep_going=layout.keep_going)
    return render_lines(_lines(view, layout), layout)


def _lines(plan: plan_view.PlanView, layout: Layout) -> Iterator[Line]:
    blocks, left = (plan.blocks, 0) if layout.verbosity else plan_view.shown_blocks(plan.blocks)
    if not layout.summary:
        yield from _blocks(blocks, layout)
    yield from _errors(plan.errors)
    yield from _warnings(plan.warnings)
    changed = {id(target) for block in plan.blocks for target in block.targets}
    changed |= {id(each.target) for each in plan.deletions}
    if layout.summary or len(changed) > 2:  # a plan of one or two targets is seen at a glance
        yield from _counts(plan, layout)
    for refusal in plan.refusals if layout.refusals else ():
        reason, to_allow, remedy = refusal.partition("To allow it: ")
        yield Line((TextSpan(reason, "red", together=False), TextSpan(f"{to_allow}{remedy}", "red")))
    if plan.refusals and layout.refusals and plan.deletions:
        yield Line(())
    yield from _deletions(plan)
    if plan.settings and (plan.refusals or layout.verbosity):
        yield words(plan.settings, "dim")
    yield words(plan.sentence, "bold")
    if left and not layout.summary:
        yield words(f"{texts.plural(left, 'target')} not shown: -v shows them", "yellow")


# Blocks --------------------------------------------------------------------------------------------------------


def _blocks(blocks: Sequence[plan_view.Block], layout: Layout) -> Iterator[Line]:
    """Yield blocks, each timeline once, and what the signs of timelines mean."""
    drawn: list[TimelineRow] = []
    first: dict[tuple[Line, ...], str] = {}
    for block in blocks:
        rows, drawing = _drawing(block, layout)
        shown = tuple(drawing)
        if drawing and shown in first:
            drawing = [words(f"    timeline: that of {first[shown]}", "dim", hang=6)]
        first.setdefault(shown, block.title)
        yield from (*_block(block, drawing, layout), Line(()))
        drawn += rows
    legend = legend_of(drawn)
    if legend:
        entries = [
            TextSpan(f"{_in_signs(text, layout)}, ", _COLOURS[action] if action else "dim") for text, action in legend
        ]
        entries[-1] = entries[-1]._replace(text=entries[-1].text.removesuffix(", "))
        yield from (Line((TextSpan("Timeline: ", "dim"), *entries)), Line(()))


def _block(block: plan_view.Block, drawing: Iterable[Line], layout: Layout) -> Iterator[Line]:
    yield _heading(block.title, block.folder)
    rows = [row for row in block.rows if row.same]
    keys = [row.key for row in rows]
    key_width = max((width for width in map(display_width, keys) if width <= _WIDEST_KEY), default=0)
    aspect_width = max((len(row.kind.aspect) for row in rows), default=0)
    for row, key in zip(rows, keys, strict=True):
        before = [f"{row.kind.aspect:{aspect_width}}  ", f"{pad(key, max(key_width, display_width(key)))}  "]
        yield from _row(row, before, _width(block, layout), layout)
    yield from _table(block, layout)
    yield from (words(f"    {line}", "red", hang=6) for line in block.emptied)
    yield from drawing
    if block.level == "alone":
        yield from _requests(block.targets[0].requests) if layout.verbosity else ()
        return
    if block.level == "alike":
        yield names_line(block.named, None if block.whole else _NAME_ROWS * (layout.width - 4))
    tasks = {change.source.task for row in block.rows for _, change in row.changes}
    if len(tasks) == 1 and (task := tasks.pop()):
        yield words(f"    task {show(task, quoted=True)}", "dim", hang=6)


def _heading(heading: str, folder: str) -> Line:
    spans = [TextSpan(heading, "bold", together=False)]
    return Line((*spans, TextSpan(f"  {folder}", "dim")) if folder else tuple(spans), 4)


def _width(block: plan_view.Block, layout: Layout) -> texts.ValueWidth:
    """Return how much of a value is shown: a few rows, or everything."""
    space = _VALUE_ROWS * (layout.width - 20)
    return texts.WHOLE if block.whole or layout.verbosity else texts.ValueWidth(space, space)


def _row(row: plan_view.Row, before: Sequence[str], width: texts.ValueWidth, layout: Layout) -> Iterator[Line]:
    action = row.kind.action
    red: Style = "red" if action == "delete" else ""
    spans = [TextSpan(f"  {texts.SIGNS[action]} ", _COLOURS[action]), *(TextSpan(each, red) for each in before)]
    hang = sum(display_width(span.text) for span in spans)
    hang = hang if hang <= layout.width * 2 // 5 else 8
    target, change = row.example
    yield Line((*spans, *_values(change, target, width, red)), hang)
    if layout.verbosity >= 2:
        task = f", task {show(change.source.task, quoted=True)}" if change.source.task else ""
        yield words(f"      at {visible(str(change.source.place))}{task}", "dim", hang=8)


def _table(block: plan_view.Block, layout: Layout) -> Iterator[Line]:
    """Yield the table of a block, and the notes of its columns."""
    columns = block.columns
    if not columns:
        return
    rows = [["", *(row.heading for row in columns)]]
    width = _width(block, layout)
    rows += ([line.label, *(cell.text(width) if cell else "" for cell in line.cells)] for line in block.lines)
    yield from value_table(rows, layout)
    yield from (words(f"    {row.heading}: {row.notes}", "dim", hang=6) for row in columns if row.notes)


def _values(change: Change, target: Target, short: texts.ValueWidth, style: Style) -> Iterator[TextSpan]:
    """Yield what a change does, then its notes."""
    parts = [str(part) for part in texts.change_parts(change, target, short)]
    yield from _listed(parts, style)
    notes = "; ".join(texts.change_notes(change, target.rate))
    if notes:
        gap = "  " if parts else ""
        yield TextSpan(f"{gap}({notes})", style or ("dim" if change.reversible else "yellow"))


def _listed(parts: Sequence[str], style: Style) -> list[TextSpan]:
    return [*(TextSpan(f"{part}, ", style) for part in parts[:-1]), *(TextSpan(part, style) for part in parts[-1:])]


def _requests(requests: tuple[Request, ...]) -> Iterator[Line]:
    for number, request in enumerate(requests, 1):
        body = f"  {texts.show_body(request.body, _BODY)}" if request.body else ""
        text = f"    {number:>3}. {request.method} {visible(request.path)}{body}"
        yield Line((TextSpan(text, "dim"),), wrapped=False)


def _drawing(block: plan_view.Block, layout: Layout) -> tuple[list[TimelineRow], list[Line]]:
    """Return the rows of the timeline of a block, if all its targets have the same, and their lines."""
    timeline = block.timeline
    if timeline is None:
        return [], []
    label = 0 if timeline.only_adds else len("before ")
    space = layout.width - 4 - label - 2 - len(timeline.length)
    rows = draw_timeline(timeline, min(space, _WIDEST_DRAWING))
    lines = []
    for row in rows:
        length = f"  {timeline.length}" if row is rows[-1] else ""
        runs = (TextSpan(_in_signs(signs, layout), _COLOURS[action] if action else "") for signs, action in row.runs)
        lines.append(Line((TextSpan(f"    {row.label if label else '':{label}}"), *runs, TextSpan(length))))
    return rows, lines


def _in_signs(drawing: str, layout: Layout) -> str:
    return drawing.translate(ASCII) if layout.ascii_only else drawing


# Names ---------------------------------------------------------------------------------------------------------


def names_line(named: Sequence[plan_view.NamedTargets], space: int | None = None) -> Line:
    """Return the names of targets; those beyond ``space`` columns are only counted."""
    left = 0 if space is None else space
    total = sum(each.size * len(those.servers or [""]) for those in named for each in those.ranges)
    spans, shown = [TextSpan("    ")], 0
    for those in named:
        spans += [TextSpan(those.place)] if len(named) + len(those.servers) > 2 else []
        for place, each in enumerate(those.ranges, 1):
            text = show_range(each)
            left -= display_width(text) + 2
            if space is not None and left < 0 and shown:
                spans.append(TextSpan(f"and {total - shown} more (-v lists them)"))
                return Line(tuple(spans), 4)
            shown += each.size * len(those.servers or [""])
            after = "" if shown == total else "; " if place == len(those.ranges) else ", "
            spans.append(TextSpan(f"{text}{after}"))
    return Line(tuple(spans), 4)


# Errors, warnings, counts, deletions ---------------------------------------------------------------------------


def _errors(errors: Iterable[plan_view.ErrorGroup]) -> Iterator[Line]:
    for group in errors:
        yield _heading(group.heading, "" if group.named else texts.folder_note(group.targets[0]))
        if group.named:
            yield names_line(group.named)
        first, *rest = group.lines
        yield words(f"  error: {first}", "red", hang=4)
        yield from (words(f"    {line}", "red", hang=6) for line in rest)
        yield Line(())


def _warnings(warnings: Sequence[plan_view.WarningGroup]) -> Iterator[Line]:
    for group in warnings:
        first, *rest = group.lines
        yield words(f"Warning: {first}", "yellow")
        yield from (words(f"  {line}", "yellow", hang=4) for line in rest)
        if group.names:
            yield names_line([group.named])
    if warnings:
        yield Line(())


def _counts(plan: plan_view.PlanView, layout: Layout) -> Iterator[Line]:
    """Yield a table of the counts of each aspect."""
    if not plan.counts:
        return
    columns = [name for name in plan_view.ACTIONS if name != "run" or any(each.run for each in plan.counts)]
    kinds = {target.kind for block in plan.blocks for target in block.targets}
    none = "." if layout.ascii_only else "·"
    head = ["", *columns, "targets" if kinds - {"asset"} else "assets"]
    rows = [[each.aspect, *(str(getattr(each, name) or none) for name in columns), str(each.targets)]
            for each in plan.counts]  # fmt: skip
    widths = [max(map(display_width, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        cells = (f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))
        yield Line((TextSpan(f"  {row[0]:{widths[0]}}  {'  '.join(cells)}", "dim" if row is head else ""),))
    yield Line(())


def _deletions(plan: plan_view.PlanView) -> Iterator[Line]:
    """Yield every deleted asset and link, each whole."""
    if not plan.deletions:
        return
    yield words(f"{plan.deletions_heading}:", "red")
    for each in plan.deletions:
        link = f"link {each.link} of " if each.link else ""
        what = f"{link}{texts.target_heading(each.target)}"
        facts = _listed([f"{label} {value}" for label, value in each.facts.items()], "red")
        note = "  (removed by `exactly`)" if each.change.losses else ""
        yield Line((TextSpan(f"  - {what}{note}", "red", together=False), TextSpan("  ", "red"), *facts), 6)
    yield Line(())


_OUTCOMES: Final[dict[str, Style]] = {
    "failed": "red", "unverified": "magenta", "interrupted": "magenta", "not attempted": "magenta"
}  # fmt: skip
"""The colours of what someone must look at."""
_STYLES: Final[dict[str, Style]] = {"difference": "red", "advice": "dim"}


# Results -------------------------------------------------------------------------------------------------------


def render_result(result: Result, layout: Layout = PLAIN) -> Iterator[str]:
    """Yield a result: the targets that are not as desired (``verbosity`` 1: all), counts, the closing sentence.

    At least 3 targets with the same outcome for the same reason are one block with their names (``verbosity`` 1: not).
    A run without targets is shown by its plan alone.
    """
    if not result.targets and not result.plan.left_out:
        return
    view = view_result(result, folded=not layout.verbosity)
    closing = words(visible(view.sentence), "bold" if result.ok and not result.interrupted else "red")
    yield from render_lines([*_outcomes(view, layout), closing], layout)


def render_outcomes(result: Result, layout: Layout) -> Iterator[str]:
    """Yield a result as :func:`render_result` does, without its closing sentence."""
    return render_lines(_outcomes(view_result(result), layout), layout)


def _outcomes(view: ResultView, layout: Layout) -> Iterator[Line]:
    yield from (line for group in view.groups for line in _group(group, layout.verbosity))
    yield from _recap(view)


def _group(group: ResultGroup, verbosity: int) -> Iterator[Line]:
    outcome = TextSpan(group.outcome, _OUTCOMES.get(group.outcome, ""))
    yield Line((TextSpan(group.heading, "bold", together=False), TextSpan(": "), outcome), 4)
    for kind, line in group.lines:
        shown = words(f"  {line}", _STYLES.get(kind, ""), hang=4)
        yield structs.replace(shown, wrapped=kind != "request" or not verbosity)
    if group.named:
        yield names_line(group.named)
    yield Line(())


def _recap(view: ResultView) -> Iterator[Line]:
    """Yield a line for each server, with what is not zero; colour is for what someone must look at."""
    width = max((display_width(show(server)) for server in view.recaps), default=0)
    for server, counts in view.recaps.items():
        shown = {name: number for name, number in counts.items() if number} or {"unchanged": 0}
        seconds = view.result.server_seconds.get(server)
        spans = [
            TextSpan(f"{name}={number} ", _OUTCOMES.get(name.replace("_", " "), "")) for name, number in shown.items()
        ]
        took = [] if seconds is None else [TextSpan(f"in {texts.show_duration(seconds)}")]
        yield Line((TextSpan(f"{pad(show(server), width)} : "), *spans, *took), 4)
    if view.recaps:
        yield Line(())


# Problems ------------------------------------------------------------------------------------------------------


def render_problems(problems: Iterable[Problem], *, colour: bool, width: int | None = None) -> str:
    """Return each problem: place and message, the excerpt with its caret, the remedy; at the end their number.

    ``width``: the columns of the terminal; ``None``: no line is wrapped.
    """
    problems = [*problems]
    lines = [line for problem in problems for line in (*_problem(problem), Line(()))]
    lines += [words(f"{texts.plural(len(problems), 'problem')}.", "bold")] if problems else []
    return "".join(render_lines(lines, Layout(colour=colour, width=width or _UNLIMITED)))


def render_error(error: MsautoError, *, colour: bool, width: int | None = None) -> str:
    """Return an error; :class:`InputError` with all its problems. ``width`` as for :func:`render_problems`."""
    if isinstance(error, InputError):
        return render_problems(error.problems, colour=colour, width=width)
    first, *rest = visible_lines(str(error))
    head = TextSpan("Refused:" if isinstance(error, RefusedError) else "Error:", "red")
    lines = [Line((head, TextSpan(f" {first}", together=False)))]
    lines += [words(f"  {line.strip()}", hang=4) for line in rest if line.strip()]
    return "".join(render_lines(lines, Layout(colour=colour, width=width or _UNLIMITED)))


def _problem(problem: Problem) -> Iterator[Line]:
    first, *rest = visible_lines(problem.message)
    place = " ".join(visible_lines(f"{problem.place}: ")) if problem.place else ""
    warning = problem.level == "warning"
    message = TextSpan(f"{'warning: ' * warning}{first} ", "yellow" if warning else "red", together=False)
    yield Line((TextSpan(place, "bold"), message, TextSpan(f"[{problem.kind}]", "dim")), 4)
    yield from (words(f"  {line}", hang=4) for line in rest)
    for line in _excerpt(problem.excerpt):
        yield Line((TextSpan(line, "cyan" if _is_caret(line) else "dim"),), laid_out=True)
    if problem.remedy:
        yield words(f"  → {' '.join(visible_lines(problem.remedy))}", hang=4)


def _excerpt(excerpt: str) -> Iterator[str]:
    """Yield the lines of an excerpt; a caret that counts characters moves to its column on the terminal."""
    above = ""
    for line in excerpt.rstrip("\n").split("\n") if excerpt else ():
        shown = "".join(" " if sign == "\t" else "�" if is_hidden(sign) else sign for sign in line)
        if _is_caret(shown) and above:
            at = shown.index("^")
            bar = shown.rfind("|", 0, at) + 1
            shown = shown[:bar] + " " * (display_width(above[:at]) - bar + max(0, at - len(above))) + shown[at:]
        yield shown
        above = shown


def _is_caret(line: str) -> bool:
    return line.strip(" |~^") == "" and "^" in line
