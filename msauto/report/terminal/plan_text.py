"""A plan as text for a terminal, folded so that it can be read. Pure; the text ends with a newline.

The order is that of a decision: what changes, errors, warnings, counts, refusals, and at the end every deletion, just
above the closing sentence and the question.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from msauto.model.plan import Action, Change, Plan, Request, Target
from msauto.report import group_sentences, sentences, value_texts
from msauto.report.grouping import (
    Block,
    ErrorGroup,
    Grouping,
    KindCount,
    NamedTargets,
    PlannedChange,
    Row,
    WarningGroup,
    group_plan,
    merge_blocks,
    named_targets,
)
from msauto.report.name_ranges import NameRange, name_ranges
from msauto.report.sanitizing import display_width, pad, show, visible, visible_lines
from msauto.report.terminal.line_wrapping import Line, TextSpan, render_lines, words, wrap
from msauto.report.terminal.styles import BOLD, CYAN, DIM, GREEN, RED, YELLOW
from msauto.report.terminal.timeline import ASCII, UNICODE, TimelineSigns, draw_timeline, legend_of, timeline_of_all
from msauto.secrets.redactor import redact_plan

NARROWEST: Final = 60
_BODY: Final = 80
_COLOURS: Final[dict[Action, str]] = {"add": GREEN, "change": YELLOW, "delete": RED, "run": CYAN}
_MOST_ROWS: Final = 40
"""Rows of all blocks; the targets that do not fit are one block."""
_SMALLEST: Final = 3
"""Rows of the smallest block: heading, change, empty row."""
_NAME_ROWS: Final = 4
_VALUE_ROWS: Final = 3
_WIDEST_KEY: Final = 18
_WIDEST_DRAWING: Final = 120


@dataclass(frozen=True)
class _PlanLayout:
    verbosity: int
    width: int
    ascii_only: bool

    @cached_property
    def values(self) -> value_texts.ValueWidth:
        """How much of a value is shown: a few rows of it, or everything."""
        space = _VALUE_ROWS * (self.width - 20)
        return value_texts.WHOLE if self.verbosity else value_texts.ValueWidth(space, space)

    @property
    def signs(self) -> TimelineSigns:
        return ASCII if self.ascii_only else UNICODE


def render_plan(
    plan: Plan,
    *,
    colour: bool = False,
    verbosity: int = 0,
    width: int = 80,
    ascii_only: bool = False,
    keep_going: bool = False,
    summary: bool = False,
) -> Iterator[str]:
    """Yield a plan line by line, at most ``width`` columns wide (60 or more).

    ``verbosity`` 1 unfolds it, shows values whole and adds the requests, which are not wrapped; 2 adds the source of
    each change. ``summary``: without the changes. ``keep_going``: targets in error are left out.
    """
    view = _PlanLayout(verbosity, max(NARROWEST, width), ascii_only)
    lines = _lines(redact_plan(plan), view, summary=summary, keep_going=keep_going)
    return render_lines(lines, width=view.width, colour=colour, ascii_only=ascii_only)


def _lines(plan: Plan, view: _PlanLayout, *, summary: bool, keep_going: bool) -> Iterator[Line]:
    grouping = group_plan(plan, folded=not view.verbosity)
    if not summary:
        yield from _blocks(grouping.blocks, view)
    yield from _errors(grouping.errors, view)
    yield from _warnings(grouping.warnings, view)
    if summary or _is_long(grouping):
        yield from _counts(grouping, view)
    yield from (words(sentences.refusal_sentence(refusal), RED) for refusal in plan.refusals)
    if plan.refusals and grouping.deletions:
        yield Line(())
    yield from _deletions(grouping.deletions, view)
    yield from (words(line, DIM) for line in sentences.settings_lines(plan))
    yield words(sentences.plan_sentence(plan, keep_going=keep_going), BOLD)


def _is_long(grouping: Grouping) -> bool:
    """Return whether counts help: a plan of one or two targets is seen at a glance."""
    targets = {id(target) for block in grouping.blocks for target in block.targets}
    return len(targets | {id(target) for target, _ in grouping.deletions}) > 2


# Blocks --------------------------------------------------------------------------------------------------------


def _blocks(blocks: Sequence[Block], view: _PlanLayout) -> Iterator[Line]:
    """Yield the blocks in the order of the plan, and what the signs of their timelines mean."""
    shown = blocks if view.verbosity or _fits(blocks) else _chosen(blocks, view)
    signs: set[str] = set()
    for block in shown:
        yield from (*_block(block, view), Line(()))
        signs.update(*(row.partition(view.signs.left)[2] for row in _drawing(block, view)))
    legend = legend_of(signs, view.signs)
    yield from (words(legend, DIM), Line(())) if legend else ()


def _fits(blocks: Sequence[Block]) -> bool:
    """Return whether a plan is short enough to be shown as it is."""
    return sum(len(block.rows) + 2 for block in blocks) <= _MOST_ROWS


def _chosen(blocks: Sequence[Block], view: _PlanLayout) -> list[Block]:
    """Return the blocks that fit, folded ones first, and at the end one block for all others."""
    chosen: set[int] = set()
    left: list[Block] = []
    space = _MOST_ROWS
    for place in sorted(range(len(blocks)), key=lambda place: blocks[place].level == "alone"):
        rows = 1 + sum(len(wrap(line, view.width)) for line in _block(blocks[place], view)) if space >= _SMALLEST else 0
        if rows and (rows <= space or not chosen):
            chosen.add(place)
            space -= rows
        else:
            left.append(blocks[place])
    return [blocks[place] for place in sorted(chosen)] + ([merge_blocks(left)] if left else [])


def _block(block: Block, view: _PlanLayout) -> Iterator[Line]:
    yield _heading(group_sentences.block_heading(block), group_sentences.folders_note(block))
    keys = [_row_key(row) for row in block.rows]
    key_width = max((width for width in map(display_width, keys) if width <= _WIDEST_KEY), default=0)
    aspect_width = max((len(row.kind.aspect) for row in block.rows), default=0)
    for row, key in zip(block.rows, keys, strict=True):
        before = [f"{row.kind.aspect:{aspect_width}}  ", f"{pad(key, max(key_width, display_width(key)))}  "]
        yield from _row(row, before, block, view)
    yield from (words(f"    {line}", RED, hang=6) for line in group_sentences.emptied_lists(block))
    drawing = _drawing(block, view)
    yield from (Line((TextSpan(f"    {line}"),)) for line in drawing)
    if block.level == "alone":
        yield from _requests(block.targets[0].requests) if view.verbosity else ()
        return
    yield names_line(block.named(), ascii_only=view.ascii_only, space=_NAME_ROWS * (view.width - 4))
    tasks = {change.source.task for row in block.rows for _, change in row.changes}
    if len(tasks) == 1 and (task := tasks.pop()):
        yield words(f"    task {show(task, quoted=True)}", DIM, hang=6)


def _heading(heading: str, folder: str) -> Line:
    spans = [TextSpan(heading, BOLD, together=False)]
    return Line((*spans, TextSpan(f"  {folder}", DIM)) if folder else tuple(spans), 4)


def _row_key(row: Row) -> str:
    if row.same:
        return value_texts.show_key(row.examples[0][1])
    return show(row.kind.subject) if row.kind.subject else ""


def _row(row: Row, before: Sequence[str], block: Block, view: _PlanLayout) -> Iterator[Line]:
    action = row.kind.action
    red = RED if action == "delete" else ""
    spans = [TextSpan(f"  {value_texts.SIGNS[action]} ", _COLOURS[action]), *(TextSpan(each, red) for each in before)]
    hang = sum(display_width(span.text) for span in spans)
    hang = hang if hang <= view.width * 2 // 5 else 8
    if row.same:
        target, change = row.examples[0]
        yield Line((*spans, *_values(change, target, view, red)), hang)
        if view.verbosity >= 2:
            yield words(f"      {_source(change)}", DIM, hang=8)
        return
    count = sentences.plural(len(row.changes), "change")
    each = " on each" if block.level == "alike" else ""
    count = sentences.plural(len(row.changes) // len(block.targets), "change") if each else count
    listed = block.level != "other"
    yield Line((*spans, TextSpan(f"{count}{each}{', for example' if listed else ''}", red)), hang)
    for target, change in row.examples if listed else ():
        yield _example(target, change, block, view, red)


def _example(target: Target, change: Change, block: Block, view: _PlanLayout, style: str) -> Line:
    name = f"{show(target.name, quoted=': ' in target.name)}: " if block.level != "alone" else ""
    key = value_texts.show_key(change)
    key = "" if change.aspect in {"field", "xmp", "marker"} or not key else f"{key}  "
    return Line((TextSpan(f"      {name}"), TextSpan(key, style), *_values(change, target, view, style)), 8)


def _values(change: Change, target: Target, view: _PlanLayout, style: str) -> Iterator[TextSpan]:
    """Yield what a change does, then its notes."""
    parts = _parts(change, target, view, style)
    yield from parts
    notes = "; ".join(value_texts.change_notes(change))
    if notes:
        gap = "  " if parts else ""
        yield TextSpan(f"{gap}({notes})", style or (DIM if change.reversible else YELLOW))


def _parts(change: Change, target: Target, view: _PlanLayout, style: str) -> list[TextSpan]:
    parts = [str(part) for part in value_texts.change_parts(change, target, view.values)]
    return [*(TextSpan(f"{part}, ", style) for part in parts[:-1]), *(TextSpan(part, style) for part in parts[-1:])]


def _source(change: Change) -> str:
    task = f", task {show(change.source.task, quoted=True)}" if change.source.task else ""
    return f"at {visible(str(change.source.place))}{task}"


def _requests(requests: tuple[Request, ...]) -> Iterator[Line]:
    for number, request in enumerate(requests, 1):
        body = f"  {value_texts.show_body(request.body, _BODY)}" if request.body else ""
        text = f"    {number:>3}. {request.method} {visible(request.path)}{body}"
        yield Line((TextSpan(text, DIM),), wrapped=False)


def _drawing(block: Block, view: _PlanLayout) -> list[str]:
    """Return the timeline of a block, if all its targets have the same."""
    timeline = timeline_of_all(block.targets) if block.level in {"alone", "alike"} else None
    if timeline is None:
        return []
    label = 0 if timeline.only_adds else len("before ")
    space = view.width - 4 - label - 2 - len(timeline.length)
    rows = draw_timeline(timeline, min(space, _WIDEST_DRAWING), view.signs)
    shown = [f"{name:{label}}{drawing}" if label else drawing for name, drawing in rows]
    return [*shown[:-1], f"{shown[-1]}  {timeline.length}"]


# Names ---------------------------------------------------------------------------------------------------------


def names_line(named: Sequence[NamedTargets], *, ascii_only: bool, space: int | None = None) -> Line:
    """Return the names of targets; those beyond ``space`` columns are only counted."""
    left = 0 if space is None else space
    total = sum(each.size * len(those.servers) for those in named for each in those.ranges)
    spans, shown = [TextSpan("    ")], 0
    for those in named:
        spans += [TextSpan(group_sentences.place_of(those))] if len(named) + len(those.servers) > 2 else []
        for place, each in enumerate(those.ranges):
            text = group_sentences.show_range(each, "..." if ascii_only else "…")
            left -= display_width(text) + 2
            if space is not None and left < 0 and shown:
                spans.append(TextSpan(f"and {total - shown} more (-v lists them)"))
                return Line(tuple(spans), 4)
            shown += each.size * len(those.servers)
            spans.append(TextSpan(f"{text}{_after(place, those.ranges, shown == total)}"))
    return Line(tuple(spans), 4)


def _after(place: int, ranges: Sequence[NameRange], last: bool) -> str:
    return "" if last else "; " if place == len(ranges) - 1 else ", "


# Errors, warnings, counts, deletions ---------------------------------------------------------------------------


def _errors(errors: Iterable[ErrorGroup], view: _PlanLayout) -> Iterator[Line]:
    for error, targets in errors:
        if len(targets) == 1:
            yield _heading(sentences.target_heading(targets[0]), sentences.folder_note(targets[0]))
        else:
            yield _heading(group_sentences.targets_heading(targets), "")
            yield names_line(named_targets(targets), ascii_only=view.ascii_only)
        first, *rest = visible_lines(error)
        yield words(f"  error: {first}", RED, hang=4)
        yield from (words(f"    {line.strip()}", RED, hang=6) for line in rest if line.strip())
        yield Line(())


def _warnings(warnings: Sequence[WarningGroup], view: _PlanLayout) -> Iterator[Line]:
    for text, names in warnings:
        first, *rest = visible_lines(text)
        yield words(f"Warning: {first}", YELLOW)
        yield from (words(f"  {line.strip()}", YELLOW, hang=4) for line in rest)
        if names:
            yield names_line([NamedTargets(("",), "", name_ranges(names))], ascii_only=view.ascii_only)
    if warnings:
        yield Line(())


def _counts(grouping: Grouping, view: _PlanLayout) -> Iterator[Line]:
    """Yield a table of the counts of each aspect."""
    columns = [name for name in ("add", "change", "delete", "run") if name != "run" or any(_runs(grouping.counts))]
    kinds = {target.kind for block in grouping.blocks for target in block.targets}
    noun = "targets" if kinds - {"asset"} else "assets"
    none = "." if view.ascii_only else "·"
    rows = [
        [each.aspect, *(str(getattr(each, name) or none) for name in columns), str(each.targets)]
        for each in grouping.counts
    ]
    head = ["", *columns, noun]
    widths = [max(map(display_width, column)) for column in zip(head, *rows, strict=True)]
    for number, row in enumerate([head, *rows]) if rows else ():
        cells = (f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))
        text = f"  {row[0]:{widths[0]}}  {'  '.join(cells)}"
        yield Line((TextSpan(text, "" if number else DIM),))
    if rows:
        yield Line(())


def _runs(counts: Iterable[KindCount]) -> Iterator[int]:
    return (each.run for each in counts)


def _deletions(deletions: Sequence[PlannedChange], view: _PlanLayout) -> Iterator[Line]:
    """Yield every deleted asset and link, each whole."""
    if not deletions:
        return
    yield words(group_sentences.deletions_sentence(deletions), RED)
    for target, change in deletions:
        what = sentences.target_heading(target)
        if change.aspect == "link":
            what = f"link {value_texts.show_key(change)} of {what}"
        values = _parts(change, target, view, RED) if change.aspect == "asset" else []
        note = "  (removed by `exactly`)" if change.losses else ""
        yield Line((TextSpan(f"  - {what}{note}", RED, together=False), TextSpan("  ", RED), *values), 6)
    yield Line(())
