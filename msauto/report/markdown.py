"""Plans and results as Markdown, for a comment on a pull request and for the summary of a CI job.

What decides comes first and is never folded: the sentence, every deletion, refusals, errors, warnings, counts. The
changes follow in folded details, and only they are cut to the size of a comment. The template escapes all that it
inserts, so that no text can mention users, make links, or break tables. The first line is a hidden marker, by which CI
finds its own comment again. The same plan gives the same text: there is no time in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from msauto.codec import to_key
from msauto.model.plan import Plan, Request
from msauto.model.result import Result
from msauto.report.clip_timeline import draw_timeline
from msauto.report.layout import PLAIN, Layout
from msauto.report.plan_view import Block, PlanView, view_plan
from msauto.report.result_view import view_result
from msauto.report.templates import Written, code_block, template
from msauto.report.texts import WHOLE, ValueWidth, plural

LIMIT: Final = 65_000
"""UTF-16 units: GitHub allows 65,536 in a comment."""
_DRAWING: Final = 80
_OPEN: Final = 3
"""Up to so many blocks are shown unfolded."""
_LONG: Final = 8_000
"""Units up to which the values of a block are shown whole, where nothing of it may be shortened."""
_SHORT: Final = ValueWidth(200, 80)
_RESERVED: Final = 2_000
"""Units that deletions and errors leave for the lists after them."""
_WHOLE_PLAN: Final = "For the whole plan: `msauto plan`."


def render_plan(plan: Plan, layout: Layout = PLAIN, limit: float = LIMIT) -> Iterator[str]:
    """Yield a plan as GitHub-flavoured Markdown, at most ``limit`` UTF-16 units long."""
    view = view_plan(plan, folded=not layout.verbosity, keep_going=layout.keep_going)
    parts: Any = template("report/markdown.md.j2").module
    plan = view.plan  # what identifies it, without when and how it was made
    content = (
        plan.targets,
        plan.refusals,
        plan.warnings,
        plan.unchanged,
        plan.skipped,
    )
    digest = hashlib.sha256(to_key(content)).hexdigest()[:12]
    head, foot = parts.head(view, layout.name, digest), parts.foot(view, digest)
    space = limit - _units(head) - _units(foot)
    yield head
    for text in _lists(view, parts, space):
        space -= _units(text)
        yield text
    if view.counts:
        counts = parts.counts(view)
        space -= _units(counts)
        yield counts
    # What is lost comes first in a long plan.
    blocks = sorted(view.blocks, key=lambda block: not block.whole)
    unfolded = len(blocks) <= _OPEN
    details = (_details(block, parts, unfolded, layout.verbosity) for block in blocks)
    more = f"**The details of {{}} are not shown here.** {_WHOLE_PLAN}\n"
    yield _fitting(details, space, more, "target", [len(block.targets) for block in blocks])
    yield foot


def _lists(view: PlanView, parts: Any, space: float) -> Iterator[str]:
    """Yield the lists of what decides, each with as many items as fit."""
    for heading, part, items, noun in (
        (parts.caution(view), parts.deletion, view.deletion_groups, "deletion"),
        ("", parts.refusal, view.refusals, "refusal"),
        ("", parts.error, view.errors, "error"),
        ("", parts.warning, view.warnings, "warning"),
        ("", parts.skipped, view.skipped, "reason"),
    ):
        if items:
            more = f"{heading[:2]}- **{{}} that do not fit.** {_WHOLE_PLAN}\n"
            sizes = [len(getattr(item, "deletions", [item])) for item in items]
            left = space - _RESERVED - _units(heading)
            shown = _fitting(map(part, items), left, more, f"further {noun}", sizes)
            text = f"{heading}{shown}\n"
            space -= _units(text)
            yield text


def _details(block: Block, parts: Any, unfolded: bool, verbosity: int) -> str:
    """Return a block: whole if nothing of it may be shortened, but a very long one only where it stays long."""
    requests: Sequence[Request] = ()
    if verbosity and block.level == "alone":
        requests = block.targets[0].requests
    deletes = any(row.kind.action == "delete" for row in block.rows)
    shown = partial(parts.block, block, deletes or unfolded, _timeline(block), requests)
    short = str(shown(_SHORT))
    if not block.whole:
        return short
    whole = str(shown(WHOLE))
    is_better_short = _units(short) <= _LONG < _units(whole)
    return short if is_better_short else whole


def _fitting(parts: Iterable[str], space: float, more: str, noun: str, sizes: Iterable[int]) -> str:
    """Return the parts that fit into ``space``, and a line with the number of things in the others."""
    space -= _units(more) + 2 * len(noun)
    hidden = 0
    shown = []
    for text, size in zip(parts, sizes, strict=True):
        if _units(text) <= space:
            space -= _units(text)
            shown.append(text)
        else:
            hidden += size
    if hidden:
        shown.append(more.format(plural(hidden, noun)))
    return "".join(shown)


def _units(text: str) -> int:
    """Return the length of a text as GitHub and GitLab count it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _timeline(block: Block) -> Written:
    timeline = block.timeline
    if timeline is None:
        return Written()
    rows = draw_timeline(timeline, _DRAWING)
    drawing = str(rows[-1])
    if len(rows) > 1:
        drawing = "\n".join(f"{row.label:6} {row}" for row in rows)
    return code_block(f"{drawing}  {timeline.length}")


def render_result(result: Result, layout: Layout = PLAIN) -> Iterator[str]:
    """Yield a result: the sentence, a table of servers, and every target that is not as desired."""
    parts: Any = template("report/markdown.md.j2").module
    yield parts.result(view_result(result), layout.name)
