"""The static part of the page, readable and printable without scripts: all that a reader must not miss."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Final

from msauto.model.plan import Action, Change, Plan, Target
from msauto.model.result import Result, TargetResult
from msauto.report import sentences
from msauto.report.group_sentences import (
    block_heading,
    deletions_sentence,
    emptied_lists,
    folders_note,
    place_of,
    show_range,
)
from msauto.report.grouping import (
    Block,
    ErrorGroup,
    Grouping,
    KindCount,
    NamedTargets,
    PlannedChange,
    Row,
    WarningGroup,
    named_targets,
)
from msauto.report.html.stills import picture_uri
from msauto.report.name_ranges import name_ranges
from msauto.report.result_sentences import NOT_DONE, recap_of, result_lines
from msauto.report.sanitizing import show, visible, visible_lines
from msauto.report.value_texts import ValuePart, change_notes, change_parts, show_key

Links = Mapping[int, str]
"""The ids of targets in links, by ``id(target)``."""

SIGNS: Final[dict[Action, str]] = {"add": "+", "change": "~", "delete": "−", "run": "▶"}
_MOST_NAMES: Final = 24
_MOST_RESULTS: Final = 100
_FACTS: Final = {"in": "Folder", "length": "Length", "created": "Created", "also shown as": "Also shown as"}
"""What a deleted clip shows, and the column of each."""


def render_plan_overview(plan: Plan, grouping: Grouping, links: Links, pictures: Mapping[int, bytes]) -> Iterator[str]:
    """Yield deletions, refusals, errors, warnings, counts and groups of a plan; ``pictures`` of deleted clips."""
    yield from _deletions(grouping.deletions, links, pictures)
    refusals = [sentences.refusal_sentence(refusal).removeprefix("Refused: ") for refusal in plan.refusals]
    yield from _callout("refusal", "Refused", map(escape, refusals))
    yield from _errors(grouping.errors, links)
    yield from _callout("warning", sentences.plural(len(plan.warnings), "warning"), map(_warning, grouping.warnings))
    yield from _counts(grouping.counts)
    yield from _groups(grouping.blocks, links)


def render_result_overview(result: Result, links: Links) -> Iterator[str]:
    """Yield the counts of each server, and what is not as desired."""
    recaps = recap_of(result)
    if recaps:
        names = [name.replace("_", " ") for name in next(iter(recaps.values()))]
        rows = ([show(server), *map(str, counts.values())] for server, counts in recaps.items())
        yield '<section><h2>Servers</h2><div class="scroll"><table class="numbers">'
        yield _head(["Server", *names])
        yield from (_row(map(escape, row)) for row in rows)
        yield "</table></div></section>"
    not_done = [each for each in result.targets if each.outcome in NOT_DONE]
    if not_done:
        yield f'<section class="not-done"><h2>Not as desired: {sentences.plural(len(not_done), "target")}</h2>'
        for each in not_done[:_MOST_RESULTS]:
            yield from _result(each, links)
        if len(not_done) > _MOST_RESULTS:
            yield f"<p>{len(not_done) - _MOST_RESULTS} more are in the list of all targets.</p>"
        yield "</section>"


# Results and errors --------------------------------------------------------------------------------------------


def _result(result: TargetResult, links: Links) -> Iterator[str]:
    status = result.outcome.replace(" ", "-")
    badge = f'<span class="status {status}">{result.outcome}</span>'
    yield f"<h3>{_link(result.target, links)} {badge} <small>{_place(result.target)}</small></h3><ul>"
    yield from (f'<li class="{kind}">{escape(line)}</li>' for kind, line in result_lines(result))
    yield "</ul>"


def _errors(groups: Iterable[ErrorGroup], links: Links) -> Iterator[str]:
    for group in groups:
        if len(group.targets) == 1:
            title = f"{_link(group.targets[0], links)} <small>{_place(group.targets[0])}</small>"
        else:
            title = f"{len(group.targets)} targets"
        names = "" if len(group.targets) == 1 else _names(named_targets(group.targets))
        lines = "<br>".join(escape(line) for line in visible_lines(group.error))
        yield f'<section class="callout error"><h2>Error: {title}</h2><p>{lines}</p>{names}</section>'


def _callout(kind: str, title: str, texts: Iterable[str]) -> Iterator[str]:
    items = "".join(f"<li>{text}</li>" for text in texts)
    if items:
        yield f'<section class="callout {kind}"><h2>{title}</h2><ul>{items}</ul></section>'


def _warning(group: WarningGroup) -> str:
    names = ", ".join(map(show_range, name_ranges(group.names)))
    return "<br>".join(map(escape, [*visible_lines(group.text), *([names] if names else [])]))


# Deletions -----------------------------------------------------------------------------------------------------


def _deletions(deletions: Sequence[PlannedChange], links: Links, pictures: Mapping[int, bytes]) -> Iterator[str]:
    if not deletions:
        return
    places = {_server(target) for target, _ in deletions}
    where = f" <small>on {next(iter(places))}</small>" if len(places) == 1 else ""
    yield f'<section class="callout deletions"><h2>{deletions_sentence(deletions).rstrip(":")}{where}</h2>'
    yield '<div class="scroll tall" tabindex="0" role="group" aria-label="Deletions"><table>'
    yield _head(["Title", *([] if where else ["Server"]), *_FACTS.values()])
    for target, change in deletions:
        cells = _deleted(target, change)
        picture = pictures.get(id(target))
        image = f'<img src="{picture_uri(picture)}" alt="Still of the clip">' if picture else ""
        name = image + _link(target, links) + (f" <small>{cells.pop('')}</small>" if "" in cells else "")
        # All deletions are listed, however many: the end tags, which HTML does not need, would be a fifth of the page.
        yield "<td>".join([f"<tr><th>{name}", *([] if where else [_server(target)]), *cells.values()])
    yield "</table></div></section>"


def _deleted(target: Target, change: Change) -> dict[str, str]:
    """Return the cells of a deletion by label; what has no column is under the empty label."""
    if change.aspect == "link":
        return {"": f"only its link {escape(show_key(change))}"} | dict.fromkeys(_FACTS, "")
    facts = {part.label: escape(part.value) for part in change_parts(change, target)}
    more = ", ".join(f"{escape(label)} {value}" for label, value in facts.items() if label not in _FACTS)
    return ({"": more} if more else {}) | {label: facts.get(label, "") for label in _FACTS}


def _server(target: Target) -> str:
    return escape(" · ".join(map(show, filter(None, (target.server, target.database)))))


# Counts and groups ---------------------------------------------------------------------------------------------


def _counts(counts: Sequence[KindCount]) -> Iterator[str]:
    if not counts:
        return
    yield '<section><h2>Changes by kind</h2><div class="scroll"><table class="numbers">'
    heads = "".join(
        f'<th scope="col" class="{action}"><span class="sign" aria-hidden="true">{sign}</span> {action}</th>'
        for action, sign in SIGNS.items()
    )
    yield f'<thead><tr><th scope="col">Aspect</th>{heads}<th scope="col">targets</th></tr></thead>'
    for each in counts:
        numbers = "".join(_number(action, getattr(each, action)) for action in SIGNS)
        aspect = each.aspect.replace("_", " ")
        yield f'<tr><th scope="row">{aspect}</th>{numbers}<td>{each.targets}</td></tr>'
    yield "</table></div></section>"


def _number(action: Action, number: int) -> str:
    return f'<td class="{action}">{number}</td>' if number else '<td class="zero">·</td>'


def _groups(blocks: Sequence[Block], links: Links) -> Iterator[str]:
    if blocks:
        yield '<section class="groups"><h2>What changes</h2>'
        for number, block in enumerate(blocks):
            yield from _group(number, block, links)
        yield "</section>"


def _group(number: int, block: Block, links: Links) -> Iterator[str]:
    first, count = block.targets[0], len(block.targets)
    if count == 1:
        yield f'<section class="group"><h3>{_link(first, links)} <small>{_place(first)}</small></h3>'
    else:
        title, folder = escape(block_heading(block)), folders_note(block)
        button = (
            f'<button type="button" class="with-scripts" data-group="{number}" data-title="{title}" hidden>'
            "Show in the list</button>"
        )
        yield f'<section class="group"><h3>{title} <small>{escape(folder)}</small>{button}</h3>{_names(block.named())}'
    yield '<div class="scroll"><table class="changes">'
    yield from (_change_row(row, block) for row in block.rows)
    yield "</table></div>"
    yield from (f'<p class="emptied">{escape(line)}</p>' for line in emptied_lists(block))
    yield "</section>"


def _change_row(row: Row, block: Block) -> str:
    """Return a row: its one example where it is the same everywhere, else how many changes, and two examples."""
    action, aspect = row.kind.action, row.kind.aspect.replace("_", " ")
    target, change = row.examples[0]
    several = len(block.targets) > 1
    if row.same:
        key, notes = show_key(change), change_notes(change)
        parts = "".join(f'<div class="part">{_part(part)}</div>' for part in change_parts(change, target))
    else:
        key, notes = visible(row.kind.subject), ()
        parts = "".join(_example(pair, several=several) for pair in row.examples)
    count = f"×{len(row.changes)}" if not row.same and len(row.changes) > 1 else ""
    cells = ((f'{_sign(action)}<span class="times">{count}</span>', ""), (escape(aspect), ""), (escape(key), "key"),
             (parts, "parts"), (escape("; ".join(notes).replace("`", "")), "notes"))  # fmt: skip
    shown = "".join(f"<td{_class(kind)}>{cell}</td>" for cell, kind in cells)
    return f'<tr class="{action}">{shown}</tr>'


def _example(pair: PlannedChange, *, several: bool) -> str:
    target, change = pair
    label = f'<span class="label">for example {escape(show(target.name) if several else show_key(change))}:</span> '
    return f'<div class="part example">{label}{", ".join(map(_part, change_parts(change, target)))}</div>'


def _part(part: ValuePart) -> str:
    label = f'<span class="label">{escape(part.label)}</span> ' if part.label else ""
    if part.changes:
        return f"{label}<del>{escape(part.before or '')}</del> → <ins>{escape(part.after or '')}</ins>"
    return f'{label}<span class="value">{escape(part.value)}</span>'


def _names(named: Iterable[NamedTargets]) -> str:
    return "".join(f'<p class="names">{line}</p>' for line in map(_named, named))


def _named(named: NamedTargets) -> str:
    shown = escape(", ".join(map(show_range, named.ranges[:_MOST_NAMES])))
    left = sum(each.size for each in named.ranges[_MOST_NAMES:])
    return f'<span class="label">{escape(place_of(named))}</span>{shown}' + (f" and {left} more" if left else "")


# Pieces --------------------------------------------------------------------------------------------------------


def _link(target: Target, links: Links) -> str:
    href = escape(links.get(id(target), ""))
    return f'<a href="#{href}">{escape(show(target.name))}</a>' if href else escape(show(target.name))


def _place(target: Target) -> str:
    kind = "" if target.kind == "asset" else target.kind.replace("rss_", "").replace("_", " ")
    parts = (show(target.server), show(target.database) if target.database else "", kind)
    return escape(" · ".join(filter(None, (*parts, sentences.folder_note(target)))))


def _sign(action: Action) -> str:
    return f'<span class="sign" role="img" aria-label="{action}">{SIGNS[action]}</span>'


def _head(names: Iterable[str]) -> str:
    cells = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    return f"<thead><tr>{cells}</tr></thead>"


def _row(cells: Iterable[str]) -> str:
    first, *rest = cells
    cells = "".join(f"<td>{cell}</td>" for cell in rest)
    return f'<tr><th scope="row">{first}</th>{cells}</tr>'


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""
