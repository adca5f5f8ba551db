"""The page: the static overview, then the data and the scripts of the list of all targets.

The data hold texts ready to show, in the order of the plan; hidden characters are visible already. The scripts insert
every text as text, never as HTML. The content security policy allows the style sheet and the script of the page, by
their hashes, and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import chain
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from msauto.model.plan import Change, Plan, Target
from msauto.model.result import Result
from msauto.report import texts
from msauto.report.clip_timeline import NO_STILLS, Stills, clip_timeline
from msauto.report.layout import PLAIN, Layout
from msauto.report.page_parts import PageHead, PagePart, run_part
from msauto.report.plan_view import view_plan
from msauto.report.result_view import result_lines
from msauto.report.sanitizing import message_lines, show, visible
from msauto.report.templates import template

_SCRIPTS: Final = ("elements.js", "timecode.js", "timeline.js", "page.js")
_MOST_PLAYBOOKS: Final = 3
_PLAIN_LIMIT: Final = 256 * 1024
"""Characters of JSON up to which the data stays readable in the file."""
_UNSAFE: Final = re.compile("[<>&\u2028\u2029]")


def render_plan(plan: Plan, layout: Layout = PLAIN) -> Iterator[str]:
    """Yield a plan as an HTML page, with pictures of its clips."""
    part = PagePart(view_plan(plan, keep_going=layout.keep_going))
    plan = part.view.plan
    status = "error" if plan.errors else "refused" if plan.refusals else "planned" if plan.requests else "no changes"
    return render_page(_head(part, status, layout), [part], stills=layout.stills)


def render_result(result: Result, layout: Layout = PLAIN) -> Iterator[str]:
    """Yield the result of a run, and the plan that was applied, as an HTML page."""
    part = run_part(result)
    status = "interrupted" if result.interrupted else "ok" if result.ok else "failed"
    took = "" if result.seconds is None else f"took {texts.show_duration(result.seconds)}"
    return render_page(_head(part, status, layout, took), [part])


def _head(part: PagePart, status: str, layout: Layout, took: str = "") -> PageHead:
    """Return the head of a page about the playbooks of a plan."""
    plan, options = part.view.plan, part.view.plan.options
    names = [PurePath(each).name for each in options.playbooks] or [f"undo of {options.undo}" if options.undo else ""]
    more = f" and {len(names) - _MOST_PLAYBOOKS} more" if len(names) > _MOST_PLAYBOOKS else ""
    facts = (layout.by, _moment(plan.created), took, f"msauto {plan.msauto}", texts.settings_line(plan))
    return PageHead(", ".join(names[:_MOST_PLAYBOOKS]) + more, status, part.sentence, facts)


def _moment(time: str) -> str:
    """Return a time in the time zone of this machine; other text as it is."""
    try:
        return texts.local_time(time)
    except ValueError:
        return time


def render_page(
    head: PageHead,
    parts: Sequence[PagePart] = (),
    *,
    stills: Stills = NO_STILLS,
    more_data: Iterable[Any] = (),
    name: str = "plugins/pages/page/page.html.j2",
    **more: Any,
) -> Iterator[str]:
    """Yield a page. ``more_data``: of targets that are in no part; ``name``: the template, which gets ``more``."""
    links = link_ids(target for part in parts for target in part.targets)
    blocks = chain.from_iterable(part.shown[0] for part in parts)
    groups = {id(target): number for number, block in enumerate(blocks) for target in block.targets}
    planned = parts[0].targets if parts else ()
    pictures = {(id(planned[place.target]), place.frame): _picture_uri(png) for place, png in stills.items()}
    style, script = _file("page.css"), "".join(map(_file, _SCRIPTS))
    images = "img-src data:; " if stills else ""
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; {images}"
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return template(name).generate(
        head=head,
        parts=parts,
        policy=policy,
        style=style,
        script=script,
        data=embed_list(chain(more_data, *(_targets(part, links, groups, stills) for part in parts))),
        link_of=lambda target: links.get(id(target), ""),
        picture_of=lambda target: pictures.get((id(target), None), ""),
        group_of=lambda block: groups[id(block.targets[0])],
        **more,
    )


def _picture_uri(png: bytes) -> str:
    """Return a picture as a URI that contains it."""
    return f"data:image/png;base64,{b64encode(png).decode()}"


@cache
def _file(name: str) -> str:
    return resources.files(__package__).joinpath("page", name).read_text("utf-8")


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
            compressor = zlib.compressobj(9)  # in the format of zlib, which browsers call ``deflate``
            compressed = [compressor.compress(each.encode()) for each in chain(plain, pieces)]
            yield b64encode(b"".join((*compressed, compressor.flush()))).decode()
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
        yield separator + _UNSAFE.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)
        separator = ",\n"
    yield "\n]" if separator == ",\n" else "[]"


Numbers = Mapping[int, int]
"""The number of the group of each target, by ``id(target)``."""


def link_ids(targets: Iterable[Target]) -> dict[int, str]:
    """Return the ids of targets in links, by ``id(target)``: the same in every report, and distinct within one."""
    uses: Counter[str] = Counter()
    ids = {}
    for target in targets:
        parts = (target.server, target.database or target.kind, target.name)
        link = "/".join(quote(part, safe=" ", errors="backslashreplace").replace(" ", "+") for part in parts)
        uses[link] += 1
        ids[id(target)] = link if uses[link] == 1 else f"{link}~{uses[link]}"
    return ids


def _targets(part: PagePart, links: Mapping[int, str], groups: Numbers, stills: Stills) -> Iterator[dict[str, Any]]:
    """Yield the data of each target of a plan that changes or is in error, or of each target of a run.

    ``groups`` holds the groups of equal changes. The data of a run contain what came of the target and its requests.
    """
    if part.result is None:
        pictures: dict[int, list[list[Any]]] = {}  # by target, in the order of the clip
        for place, png in sorted(stills.items(), key=lambda item: item[0].frame or 0):
            pictures.setdefault(place.target, []).append([place.frame, _picture_uri(png)])
        for number, target in enumerate(part.targets):
            if target.changes or target.error is not None:
                data = _target(target, links, groups) | {"status": "error" if target.error is not None else "planned"}
                yield data | ({"stills": pictures[number]} if number in pictures else {})
        return
    for result in part.result.result.targets:
        lines = [[kind, line] for kind, line in result_lines(result) if kind != "request"]
        data = _target(result.target, links, groups) | {"status": result.outcome, "result": lines}
        data.pop("error", None)  # the result has it
        data |= {"job": part.job} if part.job else {}
        seen = f"{texts.plural(result.seen, 'change')} verified by reading again" if result.seen else ""
        unseen = f"cannot be read back: {', '.join(dict.fromkeys(result.unseen))}" if result.unseen else ""
        if seen or unseen:
            data["verified"] = "; ".join(filter(None, (seen, unseen)))
        for request, came in zip(data.get("requests", ()), result.requests, strict=False):
            status = "" if came.status is None else str(came.status)
            tries = f"sent {came.tries} times" if came.tries > 1 else ""
            message = "" if came.message in result.message else visible(came.message)  # the result is above
            request["result"] = [came.outcome, " · ".join(filter(None, (status, tries, message)))]
        yield data


def _target(target: Target, links: Mapping[int, str], groups: Numbers) -> dict[str, Any]:
    """Return the data of a target; what is empty is left out."""
    data: dict[str, Any] = {
        "id": links[id(target)],
        "server": show(target.server),
        "database": show(target.database) if target.database else "",
        "kind": target.kind,
        "name": show(target.name),
        "group": groups.get(id(target)),
        "folder": texts.folder_note(target) if target.kind == "asset" else "",
        "error": message_lines(target.error) if target.error else [],
        "changes": [_change(change, target) for change in target.changes],
        "emptied": texts.emptied_lists(target),
        "requests": [
            {"text": f"{each.method} {visible(each.path)}"}
            | ({"body": texts.show_body(each.body)} if each.body else {})
            for each in target.requests
        ],
        "clip": clip_data(target),
    }
    return {name: value for name, value in data.items() if value or value == 0}


def clip_data(target: Target) -> dict[str, Any] | None:
    """Return the timeline of a clip: its length, its rate, and its items, of which one that stays has one place."""
    timeline = clip_timeline(target)
    if timeline is None:
        return None
    places = (place for item in timeline.items for place in (item.before, item.after) if place)
    return {
        "frames": timeline.frames or max(place.start + (place.duration or 1) for place in places),
        "rate": [timeline.rate.numerator, timeline.rate.denominator] if timeline.rate else None,
        "items": [list(item) if item.action else ["", item.name, item.before] for item in timeline.items],
    }


def _change(change: Change, target: Target) -> list[Any]:
    parts = [[part.label, part.before, part.after] for part in texts.change_parts(change, target)]
    source = change.source
    place = [visible(str(source.place)) if source.file else "", visible(source.task)]
    notes = "; ".join(texts.change_notes(change, target.rate)).replace("`", "")
    return [change.action, change.aspect, texts.show_key(change), parts, notes, place]
