"""The page: the static overview, then the data and the scripts of the list of all targets.

The content security policy allows the style sheet and the script of the page, by their hashes, and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from itertools import chain
from typing import Any, Final

from msauto.model.plan import Plan
from msauto.model.result import Result
from msauto.report.html.stills import picture_uri
from msauto.report.html.target_data import link_ids, planned_targets, target_results
from msauto.report.layout import PLAIN, Layout
from msauto.report.plan_view import Block, PlanView, merge_blocks, view_plan
from msauto.report.result_view import view_result
from msauto.report.sanitizing import visible
from msauto.report.templates import template

_SCRIPTS: Final = ("elements.js", "timecode.js", "timeline.js", "page.js")
_MOST_GROUPS: Final = 40
_PLAIN_LIMIT: Final = 256 * 1024
"""Characters of JSON up to which the data stays readable in the file."""
_UNSAFE: Final = re.compile("[<>&\u2028\u2029]")


def render_plan(plan: Plan, layout: Layout = PLAIN) -> Iterator[str]:
    """Yield a plan as an HTML page, with pictures of its clips."""
    view = view_plan(plan, keep_going=layout.keep_going)
    targets = view.plan.targets
    links = link_ids(targets)
    stills = {(id(targets[place.target]), place.frame): picture_uri(png) for place, png in layout.stills.items()}
    blocks, groups = _groups(view)
    data = planned_targets(targets, links, groups, layout.stills)
    return _page(view, view.sentence, data, links, stills, blocks=blocks, result=None)


def render_result(result: Result, _: Layout = PLAIN) -> Iterator[str]:
    """Yield the result of a run, and the plan that was applied, as an HTML page."""
    shown = view_result(result)
    view = view_plan(shown.result.plan)
    links = link_ids(each.target for each in shown.result.targets)
    blocks, groups = _groups(view)
    data = target_results(shown.result.targets, links, groups)
    return _page(view, shown.sentence, data, links, {}, blocks=blocks, result=shown)


def _groups(view: PlanView) -> tuple[list[Block], dict[int, int]]:
    """Return the blocks that are shown, and the number of the block of each target, by its ``id``."""
    blocks = list(view.blocks)
    if len(blocks) > _MOST_GROUPS:
        blocks[_MOST_GROUPS - 1 :] = [merge_blocks(blocks[_MOST_GROUPS - 1 :])]
    return blocks, {id(target): number for number, block in enumerate(blocks) for target in block.targets}


def _page(
    view: PlanView,
    sentence: str,
    data: Iterable[Any],
    links: Mapping[int, str],
    stills: Mapping[tuple[int, int | None], str],
    **more: Any,
) -> Iterator[str]:
    style, script = _file("page.css"), "".join(map(_file, _SCRIPTS))
    images = "img-src data:; " if stills else ""
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; {images}"
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return template("report/html/page.html.j2").generate(
        view=view,
        sentence=visible(sentence),
        policy=policy,
        style=style,
        script=script,
        data=embed_list(data),
        link_of=lambda target: links.get(id(target), ""),
        picture_of=lambda target: stills.get((id(target), None), ""),
        **more,
    )


@cache
def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# Data ----------------------------------------------------------------------------------------------------------


def embed_list(items: Iterable[Any]) -> Iterator[str]:
    """Yield a JSON list in a script element with the id ``data``; deflated and in base64 if it is large."""
    pieces = _json_list(items)
    plain, size = [], 0
    for piece in pieces:
        plain.append(piece)
        size += len(piece)
        if size > _PLAIN_LIMIT:
            yield '<script type="application/json" id="data" data-encoding="deflate">'
            yield from _base64(_deflate(chain(plain, pieces)))
            break
    else:
        yield '<script type="application/json" id="data">'
        yield from plain
    yield "</script>\n"


def _json_list(items: Iterable[Any]) -> Iterator[str]:
    """Yield JSON without ``<``, ``>`` and ``&``, so that no text looks like markup or ends the script element."""
    separator = "[\n"
    for item in items:
        text = json.dumps(item, ensure_ascii=False, separators=(",", ":"))
        yield separator + _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
        separator = ",\n"
    yield "\n]" if separator == ",\n" else "[]"


def _deflate(pieces: Iterable[str]) -> Iterator[bytes]:
    """Yield the pieces in the format of zlib, which browsers call ``deflate``."""
    compressor = zlib.compressobj(9)
    for piece in pieces:
        yield compressor.compress(piece.encode())
    yield compressor.flush()


def _base64(chunks: Iterable[bytes]) -> Iterator[str]:
    """Yield the base64 of all chunks together."""
    left = b""
    for chunk in chunks:
        left += chunk
        whole = len(left) - len(left) % 3
        yield b64encode(left[:whole]).decode()
        left = left[whole:]
    yield b64encode(left).decode()
