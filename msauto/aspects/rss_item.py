"""Items of an RSS channel: PUT a file, DELETE a guid (interface, «RSS add data», «RSS delete data»).

A guid stands once: of two live items with one guid, both are deleted and the desired one is put. An item whose file
is another one than the desired is deleted as well, for a PUT would add a second item beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from email.utils import format_datetime
from xml.sax.saxutils import escape

from msauto.aspects.rss_identity import (
    ChannelContext,
    MatchedItem,
    check_certain,
    check_names,
    check_room,
    file_of,
    find_items,
    is_in_file,
)
from msauto.diffing.builder import PlanBuilder, left_alone, refuse
from msauto.diffing.comparison import instant, item_field, item_matches, plain
from msauto.diffing.order import Phase
from msauto.interface import requests
from msauto.model.desired import ABSENT, DesiredRssItem, Sourced, TaskSource
from msauto.model.live import RssItem
from msauto.model.plan import Body, Expectation, Json
from msauto.verification.expectations import show_item

_ORDER = ("title", "link", "description", "pubDate", "guid")


def plan_items(
    scene: ChannelContext, wanted: Sequence[Sourced[DesiredRssItem]], exactly: TaskSource | None, draft: PlanBuilder
) -> None:
    """Bring the channel's items to what is wanted; with ``exactly`` nothing else stays."""
    draft.look("items")
    check_names(scene, wanted)
    kept: set[str] = set()
    new: list[str] = []
    unrecognised: list[str] = []
    for meant in find_items(scene, wanted):
        desired = meant.said.value
        kept |= {item.guid for item in meant.items}
        if _is_left(scene, meant, draft):
            continue
        if desired.present:
            new += [] if meant.items else [desired.guid]
            unrecognised += [desired.guid] if not meant.items and _unseen(scene, desired.guid) else []
            _put_if_needed(scene, meant, draft, going=exactly is not None)
        elif meant.items:
            check_certain(meant)
            _delete(scene, meant.items, meant.said.source, draft)
    if exactly:
        _remove_others(scene, kept, unrecognised, exactly, draft, guarded=bool(new))


def _is_left(scene: ChannelContext, meant: MatchedItem, draft: PlanBuilder) -> bool:
    """Tell whether an item is left alone, for it does not say any more what the run wrote (undo)."""
    desired = meant.said.value
    if desired.guid not in scene.still:
        return False
    still = scene.still[desired.guid]
    if _is_as_desired(scene, meant) or (not meant.items and (not desired.present or still is None)):
        return False
    if meant.items and isinstance(still, dict) and all(item_matches(still, live, still) for live in meant.items):
        return False
    shown: Json = _shown(meant.items[0], {}) if meant.items else None
    draft.warnings.append(left_alone(f"channel {scene.channel.name}: item {desired.guid}", shown, still))
    return True


def _is_as_desired(scene: ChannelContext, meant: MatchedItem) -> bool:
    """Tell whether one item, and one alone, says what is desired."""
    desired = meant.said.value
    if len(meant.items) != 1 or not desired.present:
        return False
    (live,) = meant.items
    remembered = scene.written(desired.guid).get("content")
    content = remembered if isinstance(remembered, dict) else None
    return item_matches(_content(scene, desired), live, content) and _carries(scene, desired, live)


def _unseen(scene: ChannelContext, guid: str) -> bool:
    """Tell whether we wrote the item before and could not recognise it in the channel then."""
    return scene.written(guid).get("seen") is False


def _content(scene: ChannelContext, wanted: DesiredRssItem) -> dict[str, Json]:
    """Return what the file says, as it is compared: what is sent as a text is compared as a text."""
    if wanted.item is not ABSENT and scene.is_document(wanted):
        return {"item": dict(wanted.item)}
    return {"text": _as_text(wanted)}


# Changes -------------------------------------------------------------------------------------------------------


def _put_if_needed(scene: ChannelContext, meant: MatchedItem, draft: PlanBuilder, *, going: bool) -> None:
    said, live = meant.said, meant.items
    wanted, content = said.value, _content(scene, said.value)
    if live and wanted.text is ABSENT and wanted.item is ABSENT:
        return
    if _is_as_desired(scene, meant):
        return
    if not live and _unseen(scene, wanted.guid) and scene.written(wanted.guid).get("content") == content:
        return  # the channel never showed it under a name that we know, and it is as we wrote it
    _check_fits(scene, said)
    check_room(scene, meant, going)
    before: Json = _shown(live[0], content) if live else None
    after: Json = content.get("item", content)
    number = draft.change(
        "change" if live else "add", "rss_item", wanted.guid, before=before, after=after, source=said.source
    )
    phase = Phase.RSS_PUT
    if _goes_first(scene, meant, draft):
        phase = Phase.RSS_REPLACE
        _send_deletes(scene, live, [number], draft, phase)
    draft.send(
        phase,
        requests.put_rss(scene.channel.name, file_of(wanted), _body(scene, wanted)),
        [number],
        _expect(scene, meant, content),
    )


def _goes_first(scene: ChannelContext, meant: MatchedItem, draft: PlanBuilder) -> bool:
    """Tell whether what is live is deleted before the PUT: it would stay beside what the PUT adds."""
    if len(meant.items) > 1:
        guids = " and ".join(dict.fromkeys(item.guid for item in meant.items))
        draft.warnings.append(
            f"channel {scene.channel.name}: {len(meant.items)} items are {guids}: they are deleted, and one is put"
        )
        return True
    by_dialect = scene.server.dialect.rss_update == "delete_put"
    return any(by_dialect or not is_in_file(scene, meant.said.value, live) for live in meant.items)


def _expect(scene: ChannelContext, meant: MatchedItem, content: Mapping[str, Json]) -> Expectation:
    own = {item.guid for item in meant.items}
    others: Json = [item.guid for item in scene.channel.items if item.guid not in own]
    want: dict[str, Json] = {**content, "guids": list(meant.guids), "others": others, "file": file_of(meant.said.value)}
    want["learn"] = scene.server.dialect.rss_guid == "auto"
    return Expectation("rss_item", meant.said.value.guid, want)


def _shown(item: RssItem, content: Mapping[str, Json]) -> Json:
    fields = content.get("item")
    names = fields if isinstance(fields, dict) else ("title", "description")
    return {name: item_field(item, name) for name in names}


def _delete(
    scene: ChannelContext,
    items: Sequence[RssItem],
    source: TaskSource,
    draft: PlanBuilder,
    *,
    exactly: bool = False,
    guarded: bool = False,
) -> None:
    """Delete items: one change for each guid that they show."""
    for guid in dict.fromkeys(item.guid for item in items):
        same = [item for item in items if item.guid == guid]
        shown: Json = show_item(same[0])
        number = draft.change("delete", "rss_item", guid, before=shown, after=None, source=source, exactly=exactly)
        _send_deletes(scene, same, [number], draft, Phase.RSS_DELETE, guarded=guarded)


def _send_deletes(
    scene: ChannelContext,
    items: Sequence[RssItem],
    changes: Sequence[int],
    draft: PlanBuilder,
    phase: Phase,
    *,
    guarded: bool = False,
) -> None:
    """Send one DELETE for each guid; as many as items show it, where one was seen to take one item alone."""
    for guid in dict.fromkeys(item.guid for item in items):
        count = sum(item.guid == guid for item in items) if f"rss-left:{guid}" in scene.memory else 1
        request = replace(requests.delete_rss(scene.channel.name, guid), guarded=guarded)
        for _ in range(count):
            draft.send(phase, request, changes, Expectation("rss_item", guid, None))


def _remove_others(
    scene: ChannelContext,
    kept: Iterable[str],
    unrecognised: Sequence[str],
    exactly: TaskSource,
    draft: PlanBuilder,
    *,
    guarded: bool,
) -> None:
    """Delete what the list does not name.

    ``guarded``: what is new to us may be one of the others under a guid that we cannot know, and our PUT may have
    replaced it: so nothing goes before everything new was recognised in the channel (field notes).
    """
    known = set(map(plain, kept))
    others = [item for item in scene.channel.items if item.guid and plain(item.guid) not in known]
    nameless = [item for item in scene.channel.items if not item.guid]
    if others and unrecognised:
        draft.warnings.append(
            f"channel {scene.channel.name}: nothing is removed, for {', '.join(unrecognised)} was written before and "
            "cannot be recognised: it may be one of the others"
        )
        return
    _delete(scene, others, exactly, draft, exactly=True, guarded=guarded)
    if nameless:
        draft.warnings.append(
            f"channel {scene.channel.name}: {len(nameless)} without a guid cannot be removed, for the interface "
            f"deletes by guid: {', '.join(repr(item.title or item.description or '') for item in nameless)}"
        )
    if others and not known and not any(change.action == "add" for change in draft.changes):
        draft.emptied.append(("rss_item", len(others)))


# Bodies --------------------------------------------------------------------------------------------------------


def _body(scene: ChannelContext, wanted: DesiredRssItem) -> Body:
    """Return the file's content: the text for a ``.txt``, an RSS ``item`` document for an ``.xml`` (field notes)."""
    if scene.is_document(wanted):
        return Body(_document(wanted).encode(), "application/xml; charset=utf-8")
    return Body(_as_text(wanted).encode())


def _lost(scene: ChannelContext, wanted: DesiredRssItem) -> dict[str, str]:
    """Return what is wanted of an item that would be sent as a text, and that no text can carry."""
    if wanted.item is ABSENT or scene.is_document(wanted):
        return {}
    return {name: value for name, value in wanted.item.items() if value and name not in {"title", "description"}}


def _carries(scene: ChannelContext, wanted: DesiredRssItem, live: RssItem) -> bool:
    """Tell whether a live item has what no text could give it."""
    lost: dict[str, Json] = dict(_lost(scene, wanted))
    return not lost or item_matches({"item": lost}, live)


def _check_fits(scene: ChannelContext, said: Sourced[DesiredRssItem]) -> None:
    """Refuse an item that would be sent as a text and holds what no text can carry."""
    lost = _lost(scene, said.value)
    if lost:
        raise refuse(
            f"item {said.value.guid} is sent as a text (rss_body: {scene.server.dialect.rss_body}), which cannot carry "
            f"its {' and '.join(lost)}",
            said.source,
            "leave that out; or set `rss_body: item` in the server's dialect if the server takes item documents",
        )


def _as_text(wanted: DesiredRssItem) -> str:
    if wanted.item is ABSENT:
        return "" if wanted.text is ABSENT else wanted.text
    lines = [wanted.item.get("title"), wanted.item.get("description")]
    return "\n".join(line for line in lines if line)


def _document(wanted: DesiredRssItem) -> str:
    if wanted.item is ABSENT:
        title, _, description = ("" if wanted.text is ABSENT else wanted.text).partition("\n")
        fields = {"title": title} | ({"description": description} if description else {})
    else:
        fields = dict(wanted.item)
    fields["guid"] = wanted.guid
    ordered = [*(name for name in _ORDER if name in fields), *(name for name in fields if name not in _ORDER)]
    lines = [f"  <{name}>{escape(_value(name, fields[name]))}</{name}>" for name in ordered]
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', "<item>", *lines, "</item>", ""])


def _value(name: str, text: str) -> str:
    """Return a value as RSS spells it: a date as RFC 2822, whatever the playbook's form."""
    time = instant(text) if name == "pubDate" else None
    return format_datetime(time) if time else text
