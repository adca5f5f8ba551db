"""A plan as text for a terminal, folded so that it can be read; results and problems. The text ends with a newline.

The order is that of a decision: what changes, errors, warnings, counts, refusals, and at the end every deletion, just
above the closing sentence and the question.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import structs

from msauto.errors import InputError, MsautoError, Problem, RefusedError
from msauto.model.plan import Action, Change, Plan, Request, Target
from msauto.model.result import Result
from msauto.report.clip_timeline import ASCII, TimelineRow, draw_timeline, legend_of
from msauto.report.layout import (
    PLAIN,
    Layout,
    Line,
    Style,
    TextSpan,
    column_widths,
    listing,
    render_lines,
    value_table,
    with_commas,
    words,
)
from msauto.report.plan_view import (
    ACTIONS,
    Block,
    ErrorGroup,
    PlanView,
    Row,
    SkippedGroup,
    TargetGroup,
    WarningGroup,
    shown_blocks,
    view_plan,
)
from msauto.report.result_view import ResultGroup, ResultView, view_result
from msauto.report.sanitizing import (
    display_width,
    is_hidden,
    pad,
    show,
    visible,
    visible_lines,
)
from msauto.report.texts import (
    SIGNS,
    WHOLE,
    ValueWidth,
    change_notes,
    change_parts,
    folder_note,
    plural,
    show_body,
    show_duration,
)

Lines = Iterator[Line]

NARROWEST: Final = 60
_BODY: Final = 80
_COLOURS: Final[Mapping[Action | None, Style]] = {
    "add": "green", "change": "yellow", "delete": "red", "run": "cyan"
}  # fmt: skip
_MOST_NAMES: Final = 24
_VALUE_ROWS: Final = 3
_WIDEST_KEY: Final = 18
_WIDEST_DRAWING: Final = 120
_LABEL: Final = len("before ")
_UNLIMITED: Final = 10**9


def render_plan(plan: Plan, layout: Layout = PLAIN) -> Iterator[str]:
    """Yield a plan line by line, at most ``layout.width`` columns wide (60 or more); requests are not wrapped."""
    layout = structs.replace(layout, width=max(NARROWEST, layout.width))
    view = view_plan(plan, folded=not layout.verbosity, keep_going=layout.keep_going)
    return render_lines(_lines(view, layout), layout)


def _lines(plan: PlanView, layout: Layout) -> Lines:
    blocks: Sequence[Block] = plan.blocks
    hidden_targets = 0
    if not layout.verbosity:
        blocks, hidden_targets = shown_blocks(plan.blocks)
    if not layout.summary:
        yield from _blocks(blocks, layout)
    yield from _errors(plan.errors)
    yield from _warnings(plan.warnings)
    yield from _skipped(plan.skipped)
    if layout.summary or not _is_seen_at_a_glance(plan):
        yield from _counts(plan, layout)
    if layout.refusals:
        yield from _refusals(plan)
    yield from _deletions(plan)
    if plan.settings and (plan.refusals or layout.verbosity):
        yield words(plan.settings, "dim")
    yield words(plan.sentence, "bold")
    if hidden_targets and not layout.summary:
        yield words(f"{plural(hidden_targets, 'target')} not shown: -v shows them", "yellow")


def _is_seen_at_a_glance(plan: PlanView) -> bool:
    """Return whether a plan changes two targets at most."""
    changed = set()
    for deletion in plan.deletions:
        changed.add(id(deletion.target))
    for block in plan.blocks:
        changed.update(map(id, block.targets))
    return len(changed) <= 2


def _refusals(plan: PlanView) -> Lines:
    for refusal in plan.refusals:
        reason, to_allow, remedy = refusal.partition("To allow it: ")
        yield Line(
            (TextSpan(reason, "red", together=False), TextSpan(f"{to_allow}{remedy}", "red"))
        )
    if plan.refusals and plan.deletions:
        yield Line(())


# Blocks --------------------------------------------------------------------------------------------------------


def _blocks(blocks: Sequence[Block], layout: Layout) -> Lines:
    """Yield blocks, each timeline once, and what the signs of timelines mean."""
    drawn: list[TimelineRow] = []
    first_titles: dict[tuple[Line, ...], str] = {}
    for block in blocks:
        timeline = block.timeline
        drawing: tuple[Line, ...] = ()
        if timeline is not None:
            label = 0 if timeline.only_adds else _LABEL
            space = layout.width - 4 - label - 2 - len(timeline.length)
            rows = draw_timeline(timeline, min(space, _WIDEST_DRAWING))
            drawn += rows
            drawing = _drawing(rows, timeline.length, layout)
        if drawing in first_titles:
            reference = f"    timeline: that of {first_titles[drawing]}"
            drawing = (words(reference, "dim", hang=6),)
        elif drawing:
            first_titles[drawing] = block.title
        yield from _block(block, drawing, layout)
        yield Line(())
    legend = legend_of(drawn)
    if legend:
        entries = []
        for meaning, action in legend:
            entries.append(TextSpan(_in_signs(meaning, layout), _COLOURS.get(action, "dim")))
        yield Line((TextSpan("Timeline: ", "dim"), *with_commas(entries)))
        yield Line(())


def _block(block: Block, drawing: Iterable[Line], layout: Layout) -> Lines:
    yield _heading(block.title, block.folder)
    yield from _rows(block, layout)
    yield from _table(block, layout)
    for line in block.emptied:
        yield words(f"    {line}", "red", hang=6)
    yield from drawing
    if block.level == "alone":
        if layout.verbosity:
            yield from _requests(block.targets[0].requests)
        return
    if block.level == "alike":
        yield names_line(block, None if block.whole else _MOST_NAMES)
    tasks: set[str] = set()
    for row in block.rows:
        tasks |= {change.source.task for _, change in row.changes}
    if len(tasks) == 1 and "" not in tasks:
        yield words(f"    task {show(tasks.pop(), quoted=True)}", "dim", hang=6)


def _heading(heading: str, folder: str) -> Line:
    spans = [TextSpan(heading, "bold", together=False)]
    if folder:
        spans.append(TextSpan(f"  {folder}", "dim"))
    return Line(tuple(spans), 4)


def _rows(block: Block, layout: Layout) -> Lines:
    """Yield what changes in the same way in all targets; aspects and keys are in columns."""
    rows = [row for row in block.rows if row.same]
    aspect_width = max((len(row.kind.aspect) for row in rows), default=0)
    keys = [row.key for row in rows]
    key_width = 0
    for key in keys:
        width = display_width(key)
        if width <= _WIDEST_KEY:
            key_width = max(key_width, width)
    value_width = _value_width(block, layout)
    for row, key in zip(rows, keys, strict=True):
        columns = (f"{row.kind.aspect:{aspect_width}}  ", f"{pad(key, key_width)}  ")
        yield from _row(row, columns, value_width, layout)


def _value_width(block: Block, layout: Layout) -> ValueWidth:
    """Return how much of a value is shown: a few rows, or everything."""
    if block.whole or layout.verbosity:
        return WHOLE
    space = _VALUE_ROWS * (layout.width - 20)
    return ValueWidth(space, space)


def _row(row: Row, columns: Iterable[str], width: ValueWidth, layout: Layout) -> Lines:
    action = row.kind.action
    style: Style = "red" if action == "delete" else ""
    spans = [TextSpan(f"  {SIGNS[action]} ", _COLOURS[action])]
    spans += [TextSpan(column, style) for column in columns]
    hang = sum(display_width(span.text) for span in spans)
    if hang > layout.width * 2 // 5:
        hang = 8
    target, change = row.example
    spans += _values(change, target, width, style)
    yield Line(tuple(spans), hang)
    if layout.verbosity >= 2:
        source = change.source
        task = f", task {show(source.task, quoted=True)}" if source.task else ""
        yield words(f"      at {visible(str(source.place))}{task}", "dim", hang=8)


def _table(block: Block, layout: Layout) -> Lines:
    """Yield the table of a block, and the notes of its columns."""
    columns = block.columns
    if not columns:
        return
    rows = [["", *(column.heading for column in columns)]]
    width = _value_width(block, layout)
    for line in block.lines:
        rows.append([line.label, *line.shown(width)])
    yield from value_table(rows, layout)
    for column in columns:
        notes = column.notes
        if notes:
            yield words(f"    {column.heading}: {notes}", "dim", hang=6)


def _values(change: Change, target: Target, short: ValueWidth, style: Style) -> Iterator[TextSpan]:
    """Yield what a change does, then its notes."""
    parts = change_parts(change, target, short)
    yield from with_commas([TextSpan(str(part), style) for part in parts])
    notes = "; ".join(change_notes(change, target.rate))
    if notes:
        gap = "  " if parts else ""
        note_style: Style = "dim" if change.reversible else "yellow"
        yield TextSpan(f"{gap}({notes})", style or note_style)


def _requests(requests: tuple[Request, ...]) -> Lines:
    for number, request in enumerate(requests, 1):
        text = f"    {number:>3}. {request.method} {visible(request.path)}"
        if request.body:
            text = f"{text}  {show_body(request.body, _BODY)}"
        yield Line((TextSpan(text, "dim"),), wrapped=False)


def _drawing(rows: Sequence[TimelineRow], length: str, layout: Layout) -> tuple[Line, ...]:
    """Return the lines of a timeline; its length follows the last row."""
    lines = []
    for row in rows:
        label = f"{row.label:{_LABEL}}" if len(rows) > 1 else ""
        spans = [TextSpan(f"    {label}")]
        for signs, action in row.runs:
            spans.append(TextSpan(_in_signs(signs, layout), _COLOURS.get(action, "")))
        if row is rows[-1]:
            spans.append(TextSpan(f"  {length}"))
        lines.append(Line(tuple(spans)))
    return tuple(lines)


def _in_signs(drawing: str, layout: Layout) -> str:
    if layout.ascii_only:
        return drawing.translate(ASCII)
    return drawing


# Names ---------------------------------------------------------------------------------------------------------


def names_line(group: TargetGroup | WarningGroup, most: int | None = None) -> Line:
    """Return the names of targets, of each place so many at most."""
    return listing(f"    {'; '.join(group.name_lines(most))}", hang=4)


# Errors, warnings, counts, deletions ---------------------------------------------------------------------------


def _errors(errors: Iterable[ErrorGroup]) -> Lines:
    for group in errors:
        folder = "" if group.named else folder_note(group.targets[0])
        yield _heading(group.heading, folder)
        if group.named:
            yield names_line(group)
        first, *rest = group.lines
        yield words(f"  error: {first}", "red", hang=4)
        for line in rest:
            yield words(f"    {line}", "red", hang=6)
        yield Line(())


def _warnings(warnings: Sequence[WarningGroup]) -> Lines:
    for group in warnings:
        first, *rest = group.lines
        yield words(f"Warning: {first}", "yellow")
        for line in rest:
            yield words(f"  {line}", "yellow", hang=4)
        if group.named:
            yield names_line(group)
    if warnings:
        yield Line(())


def _skipped(groups: Sequence[SkippedGroup]) -> Lines:
    """Yield how many targets are skipped, for which reason, and their names."""
    if not groups:
        return
    yield words("Skipped:", "yellow")
    for group in groups:
        yield words(f"  {group.line}", hang=4)
    yield Line(())


def _counts(plan: PlanView, layout: Layout) -> Lines:
    """Yield a table of the counts of each aspect."""
    if not plan.counts:
        return
    actions = list(ACTIONS)
    if not any(count.run for count in plan.counts):
        actions.remove("run")
    only_assets = all(block.targets[0].kind == "asset" for block in plan.blocks)
    head = ["", *actions, "assets" if only_assets else "targets"]
    rows = [head]
    none = "." if layout.ascii_only else "·"
    for count in plan.counts:
        numbers = [str(getattr(count, action) or none) for action in actions]
        rows.append([count.aspect, *numbers, str(count.targets)])
    aspect_width, *widths = column_widths(rows)
    for aspect, *numbers in rows:
        cells = "  ".join(map(str.rjust, numbers, widths))
        style: Style = "" if aspect else "dim"
        yield Line((TextSpan(f"  {aspect:{aspect_width}}  {cells}", style),))
    yield Line(())


def _deletions(plan: PlanView) -> Lines:
    """Yield every deleted asset and link, each whole."""
    if not plan.deletions:
        return
    yield words(f"{plan.deletions_heading}:", "red")
    for group in plan.deletion_groups:
        facts = [TextSpan(fact, "red") for fact in group.facts]
        is_list = len(group.named) > 1
        names = [TextSpan(name, "red", is_list) for name in group.named]
        head = (TextSpan(f"  - {group.heading}", "red"), *with_commas(names), TextSpan("  ", "red"))
        yield Line((*head, *with_commas(facts)), 6)
    yield Line(())


_OUTCOMES: Final[dict[str, Style]] = {
    "failed": "red", "unverified": "magenta", "not attempted": "magenta"
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
    style: Style = "bold" if result.ok and not result.interrupted else "red"
    closing = words(visible(view.sentence), style)
    yield from render_lines([*_outcomes(view, layout), closing], layout)


def render_outcomes(result: Result, layout: Layout) -> Iterator[str]:
    """Yield a result as :func:`render_result` does, without its closing sentence."""
    return render_lines(_outcomes(view_result(result), layout), layout)


def _outcomes(view: ResultView, layout: Layout) -> Lines:
    for group in view.groups:
        yield from _group(group, layout.verbosity)
    yield from _skipped(view.skipped)
    yield from _recap(view)


def _group(group: ResultGroup, verbosity: int) -> Lines:
    outcome = TextSpan(group.outcome, _OUTCOMES.get(group.outcome, ""))
    yield Line((TextSpan(group.heading, "bold", together=False), TextSpan(": "), outcome), 4)
    for kind, line in group.lines:
        shown = words(f"  {line}", _STYLES.get(kind, ""), hang=4)
        yield structs.replace(shown, wrapped=kind != "request" or not verbosity)
    if group.named:
        yield names_line(group)
    yield Line(())


def _recap(view: ResultView) -> Lines:
    """Yield a line for each server, with what is not zero; colour is for what someone must look at."""
    width = max((display_width(show(server)) for server in view.recaps), default=0)
    for server, counts in view.recaps.items():
        spans = []
        for name, number in counts.items():
            if number:
                style = _OUTCOMES.get(name.replace("_", " "), "")
                spans.append(TextSpan(f"{name}={number} ", style))
        if not spans:
            spans.append(TextSpan("unchanged=0 "))
        seconds = view.result.server_seconds.get(server)
        if seconds is not None:
            spans.append(TextSpan(f"in {show_duration(seconds)}"))
        yield Line((TextSpan(f"{pad(show(server), width)} : "), *spans), 4)
    if view.recaps:
        yield Line(())


# Problems ------------------------------------------------------------------------------------------------------


def render_problems(problems: Iterable[Problem], *, colour: bool, width: int | None = None) -> str:
    """Return each problem: place and message, the excerpt with its caret, the remedy; at the end their number.

    ``width``: the columns of the terminal; ``None``: no line is wrapped.
    """
    lines: list[Line] = []
    problems = [*problems]
    for problem in problems:
        lines += [*_problem(problem), Line(())]
    if problems:
        lines.append(words(f"{plural(len(problems), 'problem')}.", "bold"))
    return _rendered(lines, colour, width)


def _rendered(lines: Iterable[Line], colour: bool, width: int | None) -> str:
    return "".join(render_lines(lines, Layout(colour=colour, width=width or _UNLIMITED)))


def render_error(error: MsautoError, *, colour: bool, width: int | None = None) -> str:
    """Return an error; :class:`InputError` with all its problems. ``width`` as for :func:`render_problems`."""
    if isinstance(error, InputError):
        return render_problems(error.problems, colour=colour, width=width)
    first, *rest = visible_lines(str(error))
    head = "Refused:" if isinstance(error, RefusedError) else "Error:"
    lines = [Line((TextSpan(head, "red"), TextSpan(f" {first}", together=False)))]
    for line in rest:
        if line.strip():
            lines.append(words(f"  {line.strip()}", hang=4))
    return _rendered(lines, colour, width)


def _problem(problem: Problem) -> Lines:
    first, *rest = visible_lines(problem.message)
    style: Style = "red"
    if problem.level == "warning":
        first = f"warning: {first}"
        style = "yellow"
    place = ""
    if problem.place:
        place = " ".join(visible_lines(f"{problem.place}: "))
    message = TextSpan(f"{first} ", style, together=False)
    yield Line((TextSpan(place, "bold"), message, TextSpan(f"[{problem.kind}]", "dim")), 4)
    for line in rest:
        yield words(f"  {line}", hang=4)
    for line in _excerpt(problem.excerpt):
        line_style: Style = "cyan" if _is_caret(line) else "dim"
        yield Line((TextSpan(line, line_style),), laid_out=True)
    if problem.remedy:
        yield words(f"  → {' '.join(visible_lines(problem.remedy))}", hang=4)


def _excerpt(excerpt: str) -> Iterator[str]:
    """Yield the lines of an excerpt; a caret that counts characters moves to its column on the terminal."""
    if not excerpt:
        return
    above = ""
    for line in excerpt.rstrip("\n").split("\n"):
        shown = line.replace("\t", " ")
        for sign in set(filter(is_hidden, shown)):
            shown = shown.replace(sign, "�")
        if above and _is_caret(shown):
            at = shown.index("^")
            start = shown.rfind("|", 0, at) + 1
            blanks = display_width(above[:at]) - start + max(0, at - len(above))
            shown = f"{shown[:start]}{' ' * blanks}{shown[at:]}"
        yield shown
        above = shown


def _is_caret(line: str) -> bool:
    return line.strip(" |~^") == "" and "^" in line
