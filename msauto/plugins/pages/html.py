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
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import resources
from itertools import chain
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct

from msauto.model.plan import Change, Plan, Target
from msauto.model.result import RequestResult, Result, TargetResult
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
    status = "no changes"
    if plan.errors:
        status = "error"
    elif plan.refusals:
        status = "refused"
    elif plan.requests:
        status = "planned"
    return render_page(_head(part, status, layout), [part], stills=layout.stills)


def render_result(result: Result, layout: Layout = PLAIN) -> Iterator[str]:
    """Yield the result of a run, and the plan that was applied, as an HTML page."""
    part = run_part(result)
    status = "ok" if result.ok else "failed"
    if result.interrupted:
        status = "interrupted"
    took = "" if result.seconds is None else f"took {texts.show_duration(result.seconds)}"
    return render_page(_head(part, status, layout, took), [part])


def _head(part: PagePart, status: str, layout: Layout, took: str = "") -> PageHead:
    """Return the head of a page about the playbooks of a plan."""
    plan, options = part.view.plan, part.view.plan.options
    names = [PurePath(playbook).name for playbook in options.playbooks]
    title = ", ".join(names[:_MOST_PLAYBOOKS])
    if options.undo and not names:
        title = f"undo of {options.undo}"
    more = len(names) - _MOST_PLAYBOOKS
    if more > 0:
        title += f" and {more} more"
    facts = (
        layout.by,
        _moment(plan.created),
        took,
        f"msauto {plan.msauto}",
        texts.settings_line(plan),
    )
    return PageHead(title, status, part.sentence, facts)


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
    shown = _ShownTargets.of(parts, stills)
    style = _file("page.css")
    script = "".join(map(_file, _SCRIPTS))
    images = "img-src data:; " if stills else ""
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; {images}"
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    data = chain(more_data, *(_targets(part, shown) for part in parts))
    return template(name).generate(
        head=head,
        parts=parts,
        policy=policy,
        style=style,
        script=script,
        data=embed_list(data),
        link_of=lambda target: shown.links.get(id(target), ""),
        picture_of=lambda target: shown.pictures_of(target).get(None, ""),
        group_of=lambda block: shown.groups[id(block.targets[0])],
        **more,
    )


class _ShownTargets(Struct):
    """What a page knows of targets besides themselves, by ``id(target)``.

    ``links``: their ids in links. ``groups``: the numbers of their groups of equal changes. ``pictures``: as URIs that
    contain them, by frame, ``None`` for that of the whole clip.
    """

    links: dict[int, str]
    groups: dict[int, int]
    pictures: dict[int, dict[int | None, str]]

    @classmethod
    def of(cls, parts: Sequence[PagePart], stills: Stills) -> _ShownTargets:
        """Collect it; pictures are those of the only part of a plan."""
        links = link_ids(target for part in parts for target in part.targets)
        groups = {}
        blocks = chain.from_iterable(part.shown.blocks for part in parts)
        for number, block in enumerate(blocks):
            for target in block.targets:
                groups[id(target)] = number
        pictures: dict[int, dict[int | None, str]] = {}
        for place, png in stills.items():
            target = parts[0].targets[place.target]
            uri = f"data:image/png;base64,{b64encode(png).decode()}"
            pictures.setdefault(id(target), {})[place.frame] = uri
        return cls(links, groups, pictures)

    def pictures_of(self, target: Target) -> dict[int | None, str]:
        """Return the pictures of a target."""
        return self.pictures.get(id(target), {})


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
            yield _deflated(chain(plain, pieces))
            break
    else:
        yield '<script type="application/json" id="data">'
        yield from plain
    yield "</script>\n"


def _deflated(pieces: Iterable[str]) -> str:
    compressor = zlib.compressobj(9)  # in the format of zlib, which browsers call ``deflate``
    compressed = [compressor.compress(piece.encode()) for piece in pieces]
    return b64encode(b"".join((*compressed, compressor.flush()))).decode()


def _json_list(items: Iterable[Any]) -> Iterator[str]:
    """Yield JSON without ``<``, ``>`` and ``&``, so that no text looks like markup or ends the script element."""
    separator = "[\n"
    for item in items:
        text = json.dumps(item, ensure_ascii=False, separators=(",", ":"))
        yield separator + _UNSAFE.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)
        separator = ",\n"
    yield "\n]" if separator == ",\n" else "[]"


def link_ids(targets: Iterable[Target]) -> dict[int, str]:
    """Return the ids of targets in links, by ``id(target)``: the same in every report, and distinct within one."""
    uses: Counter[str] = Counter()
    ids = {}
    for target in targets:
        parts = []
        for part in (target.server, target.database or target.kind, target.name):
            parts.append(quote(part, safe=" ", errors="backslashreplace").replace(" ", "+"))
        link = "/".join(parts)
        uses[link] += 1
        ids[id(target)] = link if uses[link] == 1 else f"{link}~{uses[link]}"
    return ids


def _targets(part: PagePart, shown: _ShownTargets) -> Iterator[dict[str, Any]]:
    """Yield the data of each target of a plan that changes or is in error, or of each target of a run."""
    if part.result is not None:
        for result in part.result.result.targets:
            yield _applied(result, part.job, shown)
        return
    for target in part.targets:
        if target.changes or target.error is not None:
            yield _planned(target, shown)


def _planned(target: Target, shown: _ShownTargets) -> dict[str, Any]:
    """Return the data of a target of a plan, with its pictures in the order of the clip."""
    data = _target(target, shown)
    data["status"] = "planned" if target.error is None else "error"
    pictures = shown.pictures_of(target)
    if pictures:
        data["stills"] = sorted(pictures.items(), key=lambda picture: picture[0] or 0)
    return data


def _applied(result: TargetResult, job: str, shown: _ShownTargets) -> dict[str, Any]:
    """Return the data of a target of a run: also what came of it and of its requests."""
    data = _target(result.target, shown)
    data.pop("error", None)  # the result has it
    data["status"] = result.outcome
    data["result"] = [[kind, line] for kind, line in result_lines(result) if kind != "request"]
    if job:
        data["job"] = job
    verified = []
    if result.seen:
        verified.append(f"{texts.plural(result.seen, 'change')} verified by reading again")
    if result.unseen:
        verified.append(f"cannot be read back: {', '.join(dict.fromkeys(result.unseen))}")
    if verified:
        data["verified"] = "; ".join(verified)
    for request, request_result in zip(data.get("requests", ()), result.requests, strict=False):
        notes = " · ".join(_notes_on(request_result, result.message))
        request["result"] = [request_result.outcome, notes]
    return data


def _notes_on(result: RequestResult, shown: str) -> Iterator[str]:
    """Yield what is to know of a request; not a message that is ``shown`` above."""
    if result.status is not None:
        yield str(result.status)
    if result.tries > 1:
        yield f"sent {result.tries} times"
    if result.message not in shown:
        yield visible(result.message)


def _target(target: Target, shown: _ShownTargets) -> dict[str, Any]:
    """Return the data of a target; what is empty is left out."""
    requests = []
    for request in target.requests:
        data = {"text": f"{request.method} {visible(request.path)}"}
        if request.body:
            data["body"] = texts.show_body(request.body)
        requests.append(data)
    values = {
        "id": shown.links[id(target)],
        "server": show(target.server),
        "database": show(target.database) if target.database else "",
        "kind": target.kind,
        "name": show(target.name),
        "group": shown.groups.get(id(target)),
        "folder": texts.folder_note(target) if target.kind == "asset" else "",
        "error": message_lines(target.error) if target.error else [],
        "changes": [_change(change, target) for change in target.changes],
        "emptied": texts.emptied_lists(target),
        "requests": requests,
        "clip": clip_data(target),
    }
    return {name: value for name, value in values.items() if value or value == 0}


def clip_data(target: Target) -> dict[str, Any] | None:
    """Return the timeline of a clip: its length, its rate, and its items, of which one that stays has one place."""
    timeline = clip_timeline(target)
    if timeline is None:
        return None
    items = []
    frames = 0
    for item in timeline.items:
        shown = list(item) if item.action else ["", item.name, item.before]
        items.append(shown)
        for place in (item.before, item.after):
            if place:
                frames = max(frames, place.start + (place.duration or 1))
    rate = timeline.rate and [*timeline.rate.as_integer_ratio()]
    return {"frames": timeline.frames or frames, "rate": rate, "items": items}


def _change(change: Change, target: Target) -> list[Any]:
    parts = [[part.label, part.before, part.after] for part in texts.change_parts(change, target)]
    source = change.source
    file = visible(str(source.place)) if source.file else ""
    notes = "; ".join(texts.change_notes(change, target.rate)).replace("`", "")
    return [
        change.action,
        change.aspect,
        texts.show_key(change),
        parts,
        notes,
        [file, visible(source.task)],
    ]
