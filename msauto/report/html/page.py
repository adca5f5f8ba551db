"""The page: the static overview, then the data and the scripts of the list of all targets.

The content security policy allows the style sheet and the script of the page, by their hashes, and nothing else.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from html import escape
from importlib import resources
from itertools import chain
from string import Template
from typing import Any

from msauto.model.plan import Plan
from msauto.model.result import Result
from msauto.report.grouping import group_plan, merge_blocks
from msauto.report.html.embedded_data import embed_list
from msauto.report.html.overview import render_plan_overview, render_result_overview
from msauto.report.html.stills import NO_STILLS, Stills
from msauto.report.html.target_data import link_ids, planned_targets, target_results
from msauto.report.result_sentences import result_sentence
from msauto.report.sanitizing import visible
from msauto.report.sentences import plan_sentence, settings_lines
from msauto.secrets.redactor import Redactor, redact_plan

_SCRIPTS = ("elements.js", "timecode.js", "timeline.js", "page.js")
_MOST_GROUPS = 40


def render_plan(plan: Plan, stills: Stills = NO_STILLS, *, keep_going: bool = False) -> Iterator[str]:
    """Yield a plan as an HTML page, with pictures of its clips. ``keep_going``: targets in error are left out."""
    plan = redact_plan(plan)
    links = link_ids(plan.targets)
    blocks, overview = _plan_overview(plan, links, stills)
    sentence = plan_sentence(plan, keep_going=keep_going)
    return _page(sentence, plan, overview, planned_targets(plan.targets, links, blocks, stills), stills)


def render_result(result: Result) -> Iterator[str]:
    """Yield the result of a run, and the plan that was applied, as an HTML page."""
    result = Redactor(result.plan.secrets).result(result)
    links = link_ids(each.target for each in result.targets)
    blocks, overview = _plan_overview(result.plan, links)
    overview = chain(render_result_overview(result, links), overview)
    return _page(result_sentence(result), result.plan, overview, target_results(result.targets, links, blocks))


def _plan_overview(
    plan: Plan, links: Mapping[int, str], stills: Stills = NO_STILLS
) -> tuple[dict[int, int], Iterator[str]]:
    """Return the number of the group of each target, by its ``id``, and the overview with these groups."""
    grouping = group_plan(plan)
    if len(grouping.blocks) > _MOST_GROUPS:
        first, rest = grouping.blocks[: _MOST_GROUPS - 1], grouping.blocks[_MOST_GROUPS - 1 :]
        grouping = replace(grouping, blocks=(*first, merge_blocks(rest)))
    groups = {id(target): number for number, block in enumerate(grouping.blocks) for target in block.targets}
    pictures = {id(plan.targets[place.target]): png for place, png in stills.items() if place.frame is None}
    return groups, render_plan_overview(plan, grouping, links, pictures)


def _page(
    sentence: str, plan: Plan, overview: Iterable[str], targets: Iterable[Any], stills: Stills = NO_STILLS
) -> Iterator[str]:
    start, middle, end = _skeleton()
    title = escape(visible(sentence))
    yield Template(start).substitute(
        title=f"msauto: {title}", policy=escape(_policy(pictures=bool(stills))), style=_style()
    )
    first, _, more = title.partition(". ")
    yield f"<header><h1>{first}{'.' if more else ''}</h1>" + (f'<p class="more">{more}</p>' if more else "")
    yield f'<p class="made">Planned {escape(visible(plan.created))} by msauto {escape(visible(plan.msauto))}'
    yield from (f" · {escape(line)}" for line in settings_lines(plan))
    yield ' <a class="with-scripts" href="#explorer" hidden>All targets, with search</a></p></header>\n'
    yield from (f"{piece}\n" for piece in overview)
    yield middle
    yield from embed_list(targets)
    yield Template(end).substitute(script=_script())


@cache
def _skeleton() -> tuple[str, str, str]:
    """Return the page before the overview, from there to the data, and after the data."""
    start, rest = _file("page.html").split("$overview")
    middle, end = rest.split("$data")
    return start, middle, end


@cache
def _style() -> str:
    return _file("page.css")


@cache
def _script() -> str:
    return "".join(map(_file, _SCRIPTS))


@cache
def _policy(*, pictures: bool) -> str:
    images = "img-src data:; " if pictures else ""
    return (
        f"default-src 'none'; style-src {_hash(_style())}; script-src {_hash(_script())}; {images}"
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
