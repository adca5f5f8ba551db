"""Plans and results as Markdown, for a comment on a pull request and for the summary of a CI job.

What decides comes first and is never folded: the sentence, every deletion, refusals, errors, warnings, counts. The
changes follow in folded details, and only they are cut to the size of a comment. Text from outside is always code, so
that it cannot mention users, make links, or break tables. The first line is a hidden marker, by which CI finds its own
comment again. The same plan gives the same text: there is no time in it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msauto.model.codec import to_key
from msauto.model.plan import Plan, Request, Target
from msauto.model.result import Result
from msauto.report import group_sentences, sentences
from msauto.report.grouping import Block, Grouping, Row, group_plan, named_targets
from msauto.report.name_ranges import name_ranges
from msauto.report.result_groups import ResultGroup, group_results
from msauto.report.result_sentences import NOT_DONE, recap_of, result_sentence
from msauto.report.sanitizing import show, visible, visible_lines
from msauto.report.terminal.timeline import UNICODE, draw_timeline, timeline_of_all
from msauto.report.value_texts import SIGNS, ValueWidth, change_notes, change_parts, show_body, show_key
from msauto.secrets.redactor import redact_plan

LIMIT: Final = 65_000
"""UTF-16 units: GitHub allows 65,536 in a comment."""
_SHORT: Final = ValueWidth(200, 80)
_BODY: Final = 200
_NAMES: Final = 60
"""Names or ranges that a block lists; the others are counted."""
_DRAWING: Final = 80
_OPEN: Final = 3
"""Up to so many blocks are shown unfolded."""
_RESERVED: Final = 2_000
"""Units that deletions and errors leave for the lists after them."""
_WHOLE_PLAN: Final = "For the whole plan: `msauto plan`."


def render_plan(
    plan: Plan, *, name: str = "plan", limit: int | None = LIMIT, verbosity: int = 0, keep_going: bool = False
) -> Iterator[str]:
    """Yield a plan as GitHub-flavoured Markdown, at most ``limit`` UTF-16 units long; ``None`` is unlimited.

    ``name`` identifies the comments of several plans. ``verbosity`` 1 unfolds the plan and adds the requests.
    ``keep_going``: targets in error are left out.
    """
    plan = redact_plan(plan)
    grouping = group_plan(plan, folded=not verbosity)
    digest = plan_digest(plan)
    sentence = sentences.plan_sentence(plan, keep_going=keep_going)
    head = f"<!-- msauto:plan:{name} v1 plan={digest} -->\n### {_icon(plan)}{sentence}\n\n"
    settings = "".join(f" · {code(line)}" for line in sentences.settings_lines(plan))
    foot = f"\n<sub>Plan {digest} · msauto {code(visible(plan.msauto))}{settings}</sub>\n"
    space = None if limit is None else limit - _units(head) - _units(foot)
    yield head
    for heading, items, noun in _lists(plan, grouping):
        text = _fitting(heading, items, noun, None if space is None else space - _RESERVED)
        space = None if space is None else space - _units(text)
        yield text
    counts = _counts(grouping)
    space = None if space is None else space - _units(counts)
    yield counts
    yield from _details(grouping.blocks, space, verbosity)
    yield foot


def plan_digest(plan: Plan) -> str:
    """Return what identifies a plan, without when and how they were made."""
    content = plan.targets, plan.refusals, plan.warnings, plan.unchanged, plan.skipped, plan.left_out
    return hashlib.sha256(to_key(content)).hexdigest()[:12]


def _icon(plan: Plan) -> str:
    if plan.errors or plan.refusals:
        return "⛔ "
    return "" if plan.requests else "✅ "


def _units(text: str) -> int:
    """Return the length of a text as GitHub and GitLab count it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


# What is never folded ------------------------------------------------------------------------------------------


def _lists(plan: Plan, grouping: Grouping) -> Iterator[tuple[str, list[str], str]]:
    """Yield the lists above the details: what is before a list, its items, and what an item is."""
    if grouping.deletions:
        heading = f"> [!CAUTION]\n> **{group_sentences.deletions_sentence(grouping.deletions)}**\n"
        yield heading, list(_deletions(grouping)), "deletion"
    refusals = [code(sentences.refusal_sentence(each).removeprefix("Refused: ")) for each in plan.refusals]
    yield "", [f"- **Refused** {refusal}\n" for refusal in refusals], "refusal"
    yield "", list(_errors(grouping)), "error"
    yield "", list(_warnings(grouping)), "warning"


def _deletions(grouping: Grouping) -> Iterator[str]:
    for target, change in grouping.deletions:
        what = code(sentences.target_heading(target))
        if change.aspect == "link":
            yield f"> - link {code(show_key(change))} of {what}\n"
            continue
        parts = ", ".join(map(str, change_parts(change, target)))
        yield f"> - {what}{' ' * bool(parts)}{code(parts) if parts else ''}\n"


def _errors(grouping: Grouping) -> Iterator[str]:
    for error, targets in grouping.errors:
        heading = sentences.target_heading(targets[0])
        names = ""
        if len(targets) > 1:
            heading = group_sentences.targets_heading(targets)
            names = "".join(f"  - {code(line)}\n" for line in _names(targets, most=None))
        lines = (line.strip() for line in visible_lines(error))
        yield f"- **Error** {code(heading)}\n" + "".join(f"  - {code(line)}\n" for line in lines if line) + names


def _warnings(grouping: Grouping) -> Iterator[str]:
    for text, titles in grouping.warnings:
        names = ", ".join(map(group_sentences.show_range, name_ranges(titles)))
        yield f"- **Warning** {code(' '.join(visible_lines(text)))}\n" + (f"  - {code(names)}\n" if names else "")


def _fitting(heading: str, items: Sequence[str], noun: str, space: int | None) -> str:
    """Return a list with as many of its items as fit, and how many do not."""
    if not items:
        return ""
    shown, quote = heading, "> " if heading.startswith(">") else ""
    left = len(items)
    for item in items:
        more = f"{quote}- **{sentences.plural(left, f'further {noun}')} that do not fit.** {_WHOLE_PLAN}\n"
        if space is not None and _units(shown) + _units(item) + _units(more) > space and left:
            return f"{shown}{more}\n"
        shown += item
        left -= 1
    return f"{shown}\n"


def _counts(grouping: Grouping) -> str:
    if not grouping.counts:
        return ""
    rows = "".join(
        f"| {each.aspect} | {' | '.join(str(number or '·') for number in each[1:])} |\n" for each in grouping.counts
    )
    return f"| aspect | add | change | delete | run | targets |\n|-|-:|-:|-:|-:|-:|\n{rows}\n"


# Details -------------------------------------------------------------------------------------------------------


def _details(blocks: Sequence[Block], space: int | None, verbosity: int) -> Iterator[str]:
    """Yield the blocks that fit; the targets of the others are counted."""
    left = 0
    for block in blocks:
        text = "".join(_block(block, len(blocks) <= _OPEN, verbosity)) if space is None or space > 0 else ""
        if not text or (space is not None and _units(text) > space - _units(_not_shown(10**9))):
            left += len(block.targets)
            continue
        space = None if space is None else space - _units(text)
        yield text
    yield _not_shown(left) if left else ""


def _not_shown(count: int) -> str:
    return f"**The details of {sentences.plural(count, 'target')} are not shown here.** {_WHOLE_PLAN}\n"


def _block(block: Block, unfolded: bool, verbosity: int) -> Iterator[str]:
    heading = f"<code>{_entities(group_sentences.block_heading(block))}</code>"
    folder = group_sentences.folders_note(block)
    yield f"<details{' open' if unfolded else ''}><summary>{heading}"
    yield f" <code>{_entities(folder)}</code></summary>\n\n" if folder else "</summary>\n\n"
    yield "| | aspect | key | change | note |\n|-|-|-|-|-|\n"
    yield from (_row(row, block) for row in block.rows)
    yield "\n"
    yield from (f"**{line}**\n\n" for line in group_sentences.emptied_lists(block))
    yield _timeline(block)
    if block.level != "alone":
        yield "".join(f"{code(line)}\n\n" for line in _names(block.targets, most=_NAMES))
    elif verbosity:
        yield _requests(block.targets[0].requests)
    yield "</details>\n\n"


def _row(row: Row, block: Block) -> str:
    target, change = row.examples[0]
    key = show_key(change) if row.same else show(row.kind.subject) if row.kind.subject else ""
    if row.same:
        parts = "<br>".join(code(str(part)) for part in change_parts(change, target, _SHORT))
        notes = "; ".join(change_notes(change)).replace("`exactly`", "exactly")
    else:
        notes = ""
        parts = "<br>".join([f"{sentences.plural(len(row.changes), 'change')}, for example", *_examples(row, block)])
    return f"| `{SIGNS[row.kind.action]}` | {row.kind.aspect} | {code(key) if key else ''} | {parts} | {notes} |\n"


def _examples(row: Row, block: Block) -> Iterator[str]:
    for target, change in row.examples:
        named = f"{show(target.name)}: " if block.level != "alone" else ""
        values = ", ".join(map(str, change_parts(change, target, _SHORT)))
        yield code(f"{named}{values or show_key(change)}")


def _timeline(block: Block) -> str:
    timeline = timeline_of_all(block.targets) if block.level in {"alone", "alike"} else None
    if timeline is None:
        return ""
    rows = draw_timeline(timeline, _DRAWING, UNICODE)
    drawing = "".join(f"{label:6} {row}\n" if len(rows) > 1 else row for label, row in rows)
    return f"```text\n{drawing.rstrip()}  {timeline.length}\n```\n\n"


def _names(targets: Iterable[Target], most: int | None) -> Iterator[str]:
    """Yield the names of targets, a line for the servers that have the same; ``most``: how many of each."""
    named = named_targets(targets)
    for those in named:
        place = group_sentences.place_of(those) if len(named) + len(those.servers) > 2 else ""
        rest = sum(each.size for each in those.ranges[most:]) if most is not None else 0
        shown = ", ".join(map(group_sentences.show_range, those.ranges[:most]))
        yield f"{place}{shown}" + (f" and {rest} more" if rest else "")


def _requests(requests: Sequence[Request]) -> str:
    lines = [f"<details><summary>{sentences.plural(len(requests), 'request')}</summary>\n"]
    for number, request in enumerate(requests, 1):
        body = f" {code(show_body(request.body, _BODY))}" if request.body else ""
        lines.append(f"{number}. {code(f'{request.method} {visible(request.path)}')}{body}")
    return "\n".join([*lines, "", "</details>", ""]) + "\n" if requests else ""


# Results -------------------------------------------------------------------------------------------------------


def render_result(result: Result, *, name: str = "plan") -> Iterator[str]:
    """Yield a result: the sentence, a table of servers, and every target that is not as desired."""
    yield f"<!-- msauto:result:{name} v1 run={result.run} -->\n" if re.fullmatch(r"[\w.-]+", result.run) else ""
    yield from (f"{line}\n" for line in _result(result))


def _result(result: Result) -> Iterator[str]:
    recaps = recap_of(result)
    names = list(next(iter(recaps.values()), ()))
    yield from (f"### {code(visible(result_sentence(result)))}", "")
    yield from (f"| server | {' | '.join(names)} |", "|-" * (len(names) + 1) + "|") if recaps else ()
    for server, counts in recaps.items():
        yield f"| {code(show(server))} | {' | '.join(map(str, counts.values()))} |"
    for group in group_results(each for each in result.targets if each.outcome in NOT_DONE):
        yield from _result_group(group)
    yield from (f"\n<sub>{code(line)}</sub>" for line in sentences.settings_lines(result.plan))


def _result_group(group: ResultGroup) -> Iterator[str]:
    targets = [each.target for each in group.results]
    heading = sentences.target_heading(targets[0]) if len(targets) == 1 else group_sentences.targets_heading(targets)
    yield from ("", f"**{code(heading)}: {group.outcome}**", "")
    yield from (f"- {code(line)}" for _, line in group.lines)
    yield from (f"- {code(line)}" for line in _names(targets, most=None)) if len(targets) > 1 else ()


# Code spans ----------------------------------------------------------------------------------------------------


def code(text: str) -> str:
    """Return visible text as a code span that its content cannot end, table bars included.

    >>> code("a `b`"), code("a|b")
    ('``` a `b` ```', '<code>a&#124;b</code>')
    """
    if "|" in text:
        return f"<code>{_entities(text)}</code>"
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 2 if longest else 1)
    padded = f" {text} " if longest or text[:1] == " " or text[-1:] == " " else text
    return f"{fence}{padded}{fence}"


def _entities(text: str) -> str:
    """Return text with punctuation as entities: a bar in a code span ends the table cell even if it is escaped."""
    return "".join(sign if sign.isalnum() or sign == " " or ord(sign) > 127 else f"&#{ord(sign)};" for sign in text)
