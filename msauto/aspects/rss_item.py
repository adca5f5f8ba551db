"""Items of an RSS channel: PUT a file, DELETE a guid (interface, «RSS add data», «RSS delete data»).

A guid stands once: of two live items with one guid, both are deleted and the desired one is put. An item whose file
is another one than the desired is deleted as well, for a PUT would add a second item beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from email.utils import format_datetime
from xml.sax.saxutils import escape

from msgspec import structs

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
    context: ChannelContext,
    desired: Sequence[Sourced[DesiredRssItem]],
    exactly: TaskSource | None,
    builder: PlanBuilder,
) -> None:
    """Bring the channel's items to what is wanted; with ``exactly`` nothing else stays."""
    builder.look("items")
    check_names(context, desired)
    kept: set[str] = set()
    new: list[str] = []
    unrecognised: list[str] = []
    for meant in find_items(context, desired):
        item = meant.sourced.value
        kept |= {live.guid for live in meant.items}
        if _is_left(context, meant, builder):
            continue
        if item.present:
            new += [] if meant.items else [item.guid]
            unrecognised += [item.guid] if not meant.items and _unseen(context, item.guid) else []
            _put_if_needed(context, meant, builder, going=exactly is not None)
        elif meant.items:
            check_certain(meant)
            _delete(context, meant.items, meant.sourced.source, builder)
    if exactly:
        _remove_others(context, kept, unrecognised, exactly, builder, guarded=bool(new))


def _is_left(context: ChannelContext, meant: MatchedItem, builder: PlanBuilder) -> bool:
    """Tell whether an item is left alone, for it does not say any more what the run wrote (undo)."""
    desired = meant.sourced.value
    if desired.guid not in context.still:
        return False
    still = context.still[desired.guid]
    if _is_as_desired(context, meant) or (not meant.items and (not desired.present or still is None)):
        return False
    if meant.items and isinstance(still, dict) and all(item_matches(still, live, still) for live in meant.items):
        return False
    shown: Json = _shown(meant.items[0], {}) if meant.items else None
    builder.warnings.append(left_alone(f"channel {context.channel.name}: item {desired.guid}", shown, still))
    return True


def _is_as_desired(context: ChannelContext, meant: MatchedItem) -> bool:
    """Tell whether one item, and one alone, says what is desired."""
    desired = meant.sourced.value
    if len(meant.items) != 1 or not desired.present:
        return False
    (live,) = meant.items
    remembered = context.written(desired.guid).get("content")
    content = remembered if isinstance(remembered, dict) else None
    return item_matches(_content(context, desired), live, content) and _carries(context, desired, live)


def _unseen(context: ChannelContext, guid: str) -> bool:
    """Tell whether we wrote the item before and could not recognise it in the channel then."""
    return context.written(guid).get("seen") is False


def _content(context: ChannelContext, desired: DesiredRssItem) -> dict[str, Json]:
    """Return what the file says, as it is compared: what is sent as a text is compared as a text."""
    if desired.item is not ABSENT and context.is_document(desired):
        return {"item": dict(desired.item)}
    return {"text": _as_text(desired)}


# Changes -------------------------------------------------------------------------------------------------------


def _put_if_needed(context: ChannelContext, meant: MatchedItem, builder: PlanBuilder, *, going: bool) -> None:
    sourced, live = meant.sourced, meant.items
    desired, content = sourced.value, _content(context, sourced.value)
    if live and desired.text is ABSENT and desired.item is ABSENT:
        return
    if _is_as_desired(context, meant):
        return
    if not live and _unseen(context, desired.guid) and context.written(desired.guid).get("content") == content:
        return  # the channel never showed it under a name that we know, and it is as we wrote it
    _check_fits(context, sourced)
    check_room(context, meant, going)
    before: Json = _shown(live[0], content) if live else None
    after: Json = content.get("item", content)
    number = builder.change(
        "change" if live else "add", "rss_item", desired.guid, before=before, after=after, source=sourced.source
    )
    phase = Phase.RSS_PUT
    if _goes_first(context, meant, builder):
        phase = Phase.RSS_REPLACE
        _send_deletes(context, live, [number], builder, phase)
    builder.send(
        phase,
        requests.put_rss(context.channel.name, file_of(desired), _body(context, desired)),
        [number],
        _expect(context, meant, content),
    )


def _goes_first(context: ChannelContext, meant: MatchedItem, builder: PlanBuilder) -> bool:
    """Tell whether what is live is deleted before the PUT: it would stay beside what the PUT adds."""
    if len(meant.items) > 1:
        guids = " and ".join(dict.fromkeys(item.guid for item in meant.items))
        builder.warnings.append(
            f"channel {context.channel.name}: {len(meant.items)} items are {guids}: they are deleted, and one is put"
        )
        return True
    by_dialect = context.server.dialect.rss_update == "delete_put"
    return any(by_dialect or not is_in_file(context, meant.sourced.value, live) for live in meant.items)


def _expect(context: ChannelContext, meant: MatchedItem, content: Mapping[str, Json]) -> Expectation:
    own = {item.guid for item in meant.items}
    others: Json = [item.guid for item in context.channel.items if item.guid not in own]
    want: dict[str, Json] = {
        **content,
        "guids": list(meant.guids),
        "others": others,
        "file": file_of(meant.sourced.value),
    }
    want["learn"] = context.server.dialect.rss_guid == "auto"
    return Expectation("rss_item", meant.sourced.value.guid, want)


def _shown(item: RssItem, content: Mapping[str, Json]) -> Json:
    fields = content.get("item")
    names = fields if isinstance(fields, dict) else ("title", "description")
    return {name: item_field(item, name) for name in names}


def _delete(
    context: ChannelContext,
    items: Sequence[RssItem],
    source: TaskSource,
    builder: PlanBuilder,
    *,
    exactly: bool = False,
    guarded: bool = False,
) -> None:
    """Delete items: one change for each guid that they show."""
    for guid in dict.fromkeys(item.guid for item in items):
        same = [item for item in items if item.guid == guid]
        shown: Json = show_item(same[0])
        number = builder.change("delete", "rss_item", guid, before=shown, after=None, source=source, exactly=exactly)
        _send_deletes(context, same, [number], builder, Phase.RSS_DELETE, guarded=guarded)


def _send_deletes(
    context: ChannelContext,
    items: Sequence[RssItem],
    changes: Sequence[int],
    builder: PlanBuilder,
    phase: Phase,
    *,
    guarded: bool = False,
) -> None:
    """Send one DELETE for each guid; as many as items show it, where one was seen to take one item alone."""
    for guid in dict.fromkeys(item.guid for item in items):
        count = sum(item.guid == guid for item in items) if f"rss-left:{guid}" in context.memory else 1
        request = structs.replace(requests.delete_rss(context.channel.name, guid), guarded=guarded)
        for _ in range(count):
            builder.send(phase, request, changes, Expectation("rss_item", guid, None))


def _remove_others(
    context: ChannelContext,
    kept: Iterable[str],
    unrecognised: Sequence[str],
    exactly: TaskSource,
    builder: PlanBuilder,
    *,
    guarded: bool,
) -> None:
    """Delete what the list does not name.

    ``guarded``: what is new to us may be one of the others under a guid that we cannot know, and our PUT may have
    replaced it: so nothing goes before everything new was recognised in the channel (field notes).
    """
    known = set(map(plain, kept))
    others = [item for item in context.channel.items if item.guid and plain(item.guid) not in known]
    nameless = [item for item in context.channel.items if not item.guid]
    if others and unrecognised:
        builder.warnings.append(
            f"channel {context.channel.name}: nothing is removed, for {', '.join(unrecognised)} was written before and "
            "cannot be recognised: it may be one of the others"
        )
        return
    _delete(context, others, exactly, builder, exactly=True, guarded=guarded)
    if nameless:
        builder.warnings.append(
            f"channel {context.channel.name}: {len(nameless)} without a guid cannot be removed, for the interface "
            f"deletes by guid: {', '.join(repr(item.title or item.description or '') for item in nameless)}"
        )
    if others and not known and not any(change.action == "add" for change in builder.changes):
        builder.emptied.append(("rss_item", len(others)))


# Bodies --------------------------------------------------------------------------------------------------------


def _body(context: ChannelContext, desired: DesiredRssItem) -> Body:
    """Return the file's content: the text for a ``.txt``, an RSS ``item`` document for an ``.xml`` (field notes)."""
    if context.is_document(desired):
        return Body.of(_document(desired).encode(), "application/xml; charset=utf-8")
    return Body.of(_as_text(desired).encode())


def _lost(context: ChannelContext, desired: DesiredRssItem) -> dict[str, str]:
    """Return what is wanted of an item that would be sent as a text, and that no text can carry."""
    if desired.item is ABSENT or context.is_document(desired):
        return {}
    return {name: value for name, value in desired.item.items() if value and name not in {"title", "description"}}


def _carries(context: ChannelContext, desired: DesiredRssItem, live: RssItem) -> bool:
    """Tell whether a live item has what no text could give it."""
    lost: dict[str, Json] = dict(_lost(context, desired))
    return not lost or item_matches({"item": lost}, live)


def _check_fits(context: ChannelContext, sourced: Sourced[DesiredRssItem]) -> None:
    """Refuse an item that would be sent as a text and holds what no text can carry."""
    lost = _lost(context, sourced.value)
    if lost:
        raise refuse(
            f"item {sourced.value.guid} is sent as a text (rss_body: {context.server.dialect.rss_body}), which cannot carry "
            f"its {' and '.join(lost)}",
            sourced.source,
            "leave that out; or set `rss_body: item` in the server's dialect if the server takes item documents",
        )


def _as_text(desired: DesiredRssItem) -> str:
    if desired.item is ABSENT:
        return "" if desired.text is ABSENT else desired.text
    lines = [desired.item.get("title"), desired.item.get("description")]
    return "\n".join(line for line in lines if line)


def _document(desired: DesiredRssItem) -> str:
    if desired.item is ABSENT:
        title, _, description = ("" if desired.text is ABSENT else desired.text).partition("\n")
        fields = {"title": title} | ({"description": description} if description else {})
    else:
        fields = dict(desired.item)
    fields["guid"] = desired.guid
    ordered = [*(name for name in _ORDER if name in fields), *(name for name in fields if name not in _ORDER)]
    lines = [f"  <{name}>{escape(_value(name, fields[name]))}</{name}>" for name in ordered]
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', "<item>", *lines, "</item>", ""])


def _value(name: str, text: str) -> str:
    """Return a value as RSS spells it: a date as RFC 2822, whatever the playbook's form."""
    time = instant(text) if name == "pubDate" else None
    return format_datetime(time) if time else text
