"""The targets as data for the list of the page: texts ready to show, in the order of the plan.

The scripts insert every text as text, never as HTML. Hidden characters are visible already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from msauto.model.plan import Change, Request, Target
from msauto.model.result import RequestResult, TargetResult
from msauto.report.clip_timeline import clip_timeline
from msauto.report.html.stills import Stills, pictures_by_target
from msauto.report.result_view import result_lines
from msauto.report.sanitizing import message_lines, show, visible
from msauto.report.sentences import folder_note, plural
from msauto.report.value_texts import change_notes, change_parts, emptied_lists, show_body, show_key

Numbers = Mapping[int, int]
"""The number of the group of each target, by ``id(target)``."""


def link_ids(targets: Iterable[Target]) -> dict[int, str]:
    """Return the ids of targets in links, by ``id(target)``: the same in every report, and distinct within one."""
    found: Counter[str] = Counter()
    ids = {}
    for target in targets:
        parts = (target.server, target.database or target.kind, target.name)
        link = "/".join(quote(part, safe=" ", errors="backslashreplace").replace(" ", "+") for part in parts)
        found[link] += 1
        ids[id(target)] = link if found[link] == 1 else f"{link}~{found[link]}"
    return ids


def planned_targets(
    targets: Iterable[Target], links: Mapping[int, str], groups: Numbers, stills: Stills
) -> Iterator[dict[str, Any]]:
    """Yield the data of each target that changes or is in error; ``groups`` holds the groups of equal changes."""
    pictures = pictures_by_target(stills)
    for number, target in enumerate(targets):
        if target.changes or target.error is not None:
            data = _target(target, links, groups) | {"status": "error" if target.error is not None else "planned"}
            yield data | ({"stills": pictures[number]} if number in pictures else {})


def target_results(
    results: Iterable[TargetResult], links: Mapping[int, str], groups: Numbers
) -> Iterator[dict[str, Any]]:
    """Yield the data of each target of a run, with what came of it and of each request."""
    for result in results:
        lines = [[kind, line] for kind, line in result_lines(result) if kind != "request"]
        data = _target(result.target, links, groups) | {"status": result.outcome, "result": lines}
        if verified := _verified(result):
            data["verified"] = verified
        for request, came in zip(data.get("requests", ()), result.requests, strict=False):
            request["result"] = _request_result(came)
        yield data


def _target(target: Target, links: Mapping[int, str], groups: Numbers) -> dict[str, Any]:
    """Return the data of a target; what is empty is left out."""
    data: dict[str, Any] = {
        "folder": folder_note(target) if target.kind == "asset" else "",
        "error": message_lines(target.error) if target.error else [],
        "changes": [_change(change, target) for change in target.changes],
        "emptied": emptied_lists(target),
        "requests": [_request(request) for request in target.requests],
        "clip": clip_data(target),
    }
    data = {
        "id": links[id(target)],
        "server": show(target.server),
        "database": show(target.database) if target.database else "",
        "kind": target.kind,
        "name": show(target.name),
        "group": groups.get(id(target)),
    } | data
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
    parts = [[part.label, part.before, part.after] for part in change_parts(change, target)]
    source = change.source
    place = [visible(str(source.place)) if source.file else "", visible(source.task)]
    notes = "; ".join(change_notes(change)).replace("`", "")
    return [change.action, change.aspect, show_key(change), parts, notes, place]


def _request(request: Request) -> dict[str, Any]:
    body = {"body": show_body(request.body)} if request.body else {}
    return {"text": f"{request.method} {visible(request.path)}", **body}


def _request_result(result: RequestResult) -> list[Any]:
    status = "" if result.status is None else str(result.status)
    tries = f"sent {result.tries} times" if result.tries > 1 else ""
    return [result.outcome, " · ".join(filter(None, (status, tries, visible(result.message))))]


def _verified(result: TargetResult) -> str:
    """Return what verification read again, and what it cannot read."""
    seen = f"{plural(result.seen, 'change')} verified by reading again" if result.seen else ""
    unseen = f"cannot be read back: {', '.join(dict.fromkeys(result.unseen))}" if result.unseen else ""
    return "; ".join(filter(None, (seen, unseen)))
