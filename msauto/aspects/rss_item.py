"""Items of an RSS channel: PUT a file, DELETE a guid (interface, «RSS add data», «RSS delete data»).

A guid is unique: of two live items with one guid, both are deleted and the desired one is put. An item in another
file than the desired one is deleted as well, because a PUT would add a second item.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import format_datetime
from urllib.parse import unquote
from xml.sax.saxutils import escape

from msgspec import structs

from msauto.diffing.aspect_definition import AppliedChange, Aspect, Item
from msauto.diffing.comparison import Attributes, instant, item_field, item_matches, mapping, texts
from msauto.diffing.plan_builder import Phase, PlanBuilder, left_alone, refuse
from msauto.errors import PlanningError
from msauto.interface import requests
from msauto.interface.rss_files import default_file, ending_of, file_key, form_of, is_file_name, stem_of
from msauto.model.desired import ABSENT, DesiredChannel, DesiredRssItem, Sourced, TaskSource
from msauto.model.identity import plain
from msauto.model.live import RssChannel, RssItem
from msauto.model.plan import Action, Body, Change, Expectation, Json
from msauto.model.ports import LiveTarget
from msauto.model.server import ServerSpec

_ENDINGS = (".txt", ".xml")
_SET_DIALECT = "set `rss_guid` in the server's dialect (msauto probe may show it)"
_ORDER = ("title", "link", "description", "pubDate", "guid")


def plan_items(context: ChannelContext, desired: Sequence[Sourced[DesiredRssItem]], exactly: TaskSource | None) -> None:
    """Make the channel's items as desired; with ``exactly`` nothing else stays."""
    context.builder.look("items")
    check_names(context, desired)
    kept: set[str] = set()
    new: list[str] = []
    unrecognised: list[str] = []
    for meant in find_items(context, desired):
        item = meant.sourced.value
        kept |= {live.guid for live in meant.items}
        if _is_left(context, meant):
            continue
        if item.present:
            new += [] if meant.items else [item.guid]
            unrecognised += [item.guid] if not meant.items and _unseen(context, item.guid) else []
            _put_if_needed(context, meant, going=exactly is not None)
        elif meant.items:
            if meant.doubtful:
                shown = " or ".join(dict.fromkeys([*(live.guid for live in meant.items), *meant.doubtful]))
                raise refuse(
                    f"item {item.guid} may be any of the live items {shown}",
                    meant.sourced.source,
                    f"{_SET_DIALECT}, or write the guid of the item that you mean as the channel shows it",
                )
            _delete(context, meant.items, meant.sourced.source)
    if exactly:
        _remove_others(context, kept, unrecognised, exactly, guarded=bool(new))


def _is_left(context: ChannelContext, meant: MatchedItem) -> bool:
    """Return whether an item is left alone, because it is no longer what the run wrote (undo)."""
    desired = meant.sourced.value
    if desired.guid not in context.still:
        return False
    still = context.still[desired.guid]
    if _is_as_desired(context, meant) or (not meant.items and (not desired.present or still is None)):
        return False
    if meant.items and isinstance(still, dict) and all(item_matches(still, live, still) for live in meant.items):
        return False
    shown: Json = _shown(meant.items[0], {}) if meant.items else None
    context.builder.warnings.append(left_alone(f"channel {context.channel.name}: item {desired.guid}", shown, still))
    return True


def _is_as_desired(context: ChannelContext, meant: MatchedItem) -> bool:
    """Return whether exactly one item matches, and has the desired content, also what a text cannot hold."""
    desired = meant.sourced.value
    if len(meant.items) != 1 or not desired.present:
        return False
    (live,) = meant.items
    content = mapping(context.written(desired.guid).get("content"))
    lost: dict[str, Json] = dict(_lost(context, desired))
    return item_matches(_content(context, desired), live, content) and item_matches({"item": lost}, live)


def _unseen(context: ChannelContext, guid: str) -> bool:
    """Return whether we wrote the item before and could not recognise it in the channel then."""
    return context.written(guid).get("seen") is False


def _content(context: ChannelContext, desired: DesiredRssItem) -> dict[str, Json]:
    """Return the content of the file, as it is compared: what is sent as a text is compared as a text."""
    if desired.item is not ABSENT and context.is_document(desired):
        return {"item": dict(desired.item)}
    return {"text": _as_text(desired)}


# Changes -------------------------------------------------------------------------------------------------------


def _put_if_needed(context: ChannelContext, meant: MatchedItem, *, going: bool) -> None:
    desired, live = meant.sourced.value, meant.items
    content = _content(context, desired)
    if (live and desired.text is ABSENT and desired.item is ABSENT) or _is_as_desired(context, meant):
        return
    if not live and _unseen(context, desired.guid) and context.written(desired.guid).get("content") == content:
        return  # the channel never showed it under a name that we know, and it is as we wrote it
    lost = _lost(context, desired)
    if lost:
        raise refuse(
            f"item {desired.guid} is sent as a text (rss_body: {context.server.dialect.rss_body}), "
            f"which cannot carry its {' and '.join(lost)}",
            meant.sourced.source,
            "leave that out; or set `rss_body: item` in the server's dialect if the server takes item documents",
        )
    check_room(context, meant, going)
    _put(context, meant, content)


def _put(context: ChannelContext, meant: MatchedItem, content: Mapping[str, Json]) -> None:
    desired, live, file = meant.sourced.value, meant.items, file_of(meant.sourced.value)
    before, after = _shown(live[0], content) if live else None, content.get("item", dict(content))
    action: Action = "change" if live else "add"
    number = context.builder.change(action, "rss_item", desired.guid, before, after, meant.sourced.source)
    phase = Phase.RSS_PUT
    if _goes_first(context, meant):
        phase = Phase.RSS_REPLACE
        _send_deletes(context, live, number, phase)
    own = {item.guid for item in live}
    others: Json = [item.guid for item in context.channel.items if item.guid not in own]
    expected: dict[str, Json] = {**content, "guids": list(meant.guids), "others": others, "file": file}
    expected["learn"] = context.server.dialect.rss_guid == "auto"
    request = requests.put_rss(context.channel.name, file, _body(context, desired))
    context.builder.send(phase, request, [number], Expectation("rss_item", desired.guid, expected))


def _goes_first(context: ChannelContext, meant: MatchedItem) -> bool:
    """Return whether what is live is deleted before the PUT: otherwise it would remain as a duplicate."""
    if len(meant.items) > 1:
        guids = " and ".join(dict.fromkeys(item.guid for item in meant.items))
        context.builder.warnings.append(
            f"channel {context.channel.name}: {len(meant.items)} items are {guids}: they are deleted, and one is put"
        )
        return True
    by_dialect = context.server.dialect.rss_update == "delete_put"
    return any(by_dialect or not is_in_file(context, meant.sourced.value, live) for live in meant.items)


def _shown(item: RssItem, content: Mapping[str, Json]) -> Json:
    fields = content.get("item")
    names = fields if isinstance(fields, dict) else ("title", "description")
    return {name: item_field(item, name) for name in names}


def _delete(
    context: ChannelContext,
    items: Sequence[RssItem],
    source: TaskSource,
    *,
    exactly: bool = False,
    guarded: bool = False,
) -> None:
    """Delete items: one change for each guid that they show."""
    for guid in dict.fromkeys(item.guid for item in items):
        same = [item for item in items if item.guid == guid]
        shown: Json = show_item(same[0])
        number = context.builder.change("delete", "rss_item", guid, shown, None, source, exactly=exactly)
        _send_deletes(context, same, number, Phase.RSS_DELETE, guarded=guarded)


def _send_deletes(
    context: ChannelContext, items: Sequence[RssItem], change: int, phase: Phase, *, guarded: bool = False
) -> None:
    """Send one DELETE for each guid; as many as items show it, where one was seen to take one item alone."""
    for guid in dict.fromkeys(item.guid for item in items):
        count = sum(item.guid == guid for item in items) if f"rss-left:{guid}" in context.memory else 1
        request = structs.replace(requests.delete_rss(context.channel.name, guid), guarded=guarded)
        for _ in range(count):
            context.builder.send(phase, request, [change], Expectation("rss_item", guid, None))


def _remove_others(
    context: ChannelContext, kept: Iterable[str], unrecognised: Sequence[str], exactly: TaskSource, *, guarded: bool
) -> None:
    """Delete what the list does not name.

    ``guarded``: an item that is new to us may be one of the others under an unknown guid, and our PUT may have
    replaced it. So nothing is deleted until every new item is recognized in the channel (field notes).
    """
    known = set(map(plain, kept))
    others = [item for item in context.channel.items if item.guid and plain(item.guid) not in known]
    nameless = [item for item in context.channel.items if not item.guid]
    if others and unrecognised:
        context.builder.warnings.append(
            f"channel {context.channel.name}: nothing is removed, because {', '.join(unrecognised)} was written before "
            "and cannot be recognised: it may be one of the others"
        )
        return
    _delete(context, others, exactly, exactly=True, guarded=guarded)
    if nameless:
        context.builder.warnings.append(
            f"channel {context.channel.name}: {len(nameless)} without a guid cannot be removed, because the interface "
            f"deletes by guid: {', '.join(repr(item.title or item.description or '') for item in nameless)}"
        )
    if others and not known and not any(change.action == "add" for change in context.builder.changes):
        context.builder.emptied.append(("rss_item", len(others)))


# Bodies --------------------------------------------------------------------------------------------------------


def _body(context: ChannelContext, desired: DesiredRssItem) -> Body:
    """Return the file's content: the text for a ``.txt``, an RSS ``item`` document for an ``.xml`` (field notes)."""
    if not context.is_document(desired):
        return Body.of(_as_text(desired).encode())
    if desired.item is ABSENT:
        title, _, description = ("" if desired.text is ABSENT else desired.text).partition("\n")
        fields = {"title": title} | ({"description": description} if description else {})
    else:
        fields = dict(desired.item)
    fields["guid"] = desired.guid
    date = instant(fields.get("pubDate", ""))
    if date is not None:
        fields["pubDate"] = format_datetime(date)  # RFC 2822, whatever the playbook's form
    ordered = [*(name for name in _ORDER if name in fields), *(name for name in fields if name not in _ORDER)]
    lines = [f"  <{name}>{escape(fields[name])}</{name}>" for name in ordered]
    document = "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', "<item>", *lines, "</item>", ""])
    return Body.of(document.encode(), "application/xml; charset=utf-8")


def _lost(context: ChannelContext, desired: DesiredRssItem) -> dict[str, str]:
    """Return the fields of an item sent as a text that a text cannot carry."""
    if desired.item is ABSENT or context.is_document(desired):
        return {}
    return {name: value for name, value in desired.item.items() if value and name not in {"title", "description"}}


def _as_text(desired: DesiredRssItem) -> str:
    if desired.item is ABSENT:
        return "" if desired.text is ABSENT else desired.text
    lines = [desired.item.get("title"), desired.item.get("description")]
    return "\n".join(line for line in lines if line)


# Identity ------------------------------------------------------------------------------------------------------
#
# The interface defines neither the form of a channel nor the relation between a file name and a guid. So an item is
# found by its guid, by the guid that we learned, or by its file name (field notes, «what identifies an RSS item»).


@dataclass(frozen=True, slots=True)
class ChannelContext:
    """One channel as this aspect sees it."""

    server: ServerSpec
    channel: RssChannel
    memory: Mapping[str, Json] = field(default_factory=dict)
    still: Mapping[str, Json] = field(default_factory=dict)  # what an item must still contain to be changed (undo)
    builder: PlanBuilder = field(default_factory=PlanBuilder)

    def written(self, guid: str) -> Mapping[str, Json]:
        """Return what we last wrote of an item: content, file, and whether the channel showed it afterwards."""
        return mapping(self.memory.get(f"rss_item:{guid}"))

    def is_document(self, desired: DesiredRssItem) -> bool:
        """Return whether an item is sent as an ``item`` document, not as a text."""
        return self.server.dialect.sends_document(file_of(desired))


def file_of(desired: DesiredRssItem) -> str:
    """Return the file that an item is put as."""
    return desired.file or default_file(desired.guid, text=desired.item is ABSENT)


def shown_as(items: Iterable[RssItem], guids: Iterable[str]) -> tuple[RssItem, ...]:
    """Return all items that show one of the guids; items without a guid are never included."""
    known = {plain(guid) for guid in guids} - {""}
    return tuple(item for item in items if plain(item.guid) in known)


@dataclass(frozen=True, slots=True)
class MatchedItem:
    """A desired item with the live items that are it, the guids that it may show under, and who else it may be."""

    sourced: Sourced[DesiredRssItem]
    items: tuple[RssItem, ...]
    guids: tuple[str, ...]
    doubtful: tuple[str, ...]


def find_items(context: ChannelContext, desired: Sequence[Sourced[DesiredRssItem]]) -> list[MatchedItem]:
    """Match each desired item with live items. A guid matches only one desired item, the one with the surest match."""
    names = [_names(context, sourced.value) for sourced in desired]
    owners: dict[str, int] = {}
    for rank in range(3):  # the own guid before a learned one, and that before a file's name
        for number, (certain, likely) in enumerate(names):
            for name in (certain[:1], certain[1:], likely)[rank]:
                owners.setdefault(plain(name), number)
    mine = [
        tuple([n for n in group if owners[plain(n)] == number] for group in both) for number, both in enumerate(names)
    ]
    return [_meant(context, sourced, *groups) for sourced, groups in zip(desired, mine, strict=True)]


def _meant(
    context: ChannelContext, sourced: Sourced[DesiredRssItem], certain: Sequence[str], likely: Sequence[str]
) -> MatchedItem:
    live = context.channel.items
    groups = [shown_as(live, certain), *(shown_as(live, [name]) for name in likely)]
    items = next((group for group in groups if group), ())
    own = {plain(item.guid) for item in items}
    doubtful = tuple(dict.fromkeys(item.guid for item in shown_as(live, likely) if plain(item.guid) not in own))
    strange = set(map(plain, doubtful))
    guids = tuple(dict.fromkeys(name for name in (*certain, *likely) if plain(name) not in strange))
    return MatchedItem(sourced, items, guids, doubtful)


def _names(context: ChannelContext, desired: DesiredRssItem) -> tuple[list[str], list[str]]:
    """Return the guids under which an item is certainly meant, and those that its file's name would give it."""
    guid, kept = desired.guid, context.written(desired.guid).get("file")
    given = [file_of(desired)] if desired.present or desired.file else []
    files = given or [default_file(guid, text=True), default_file(guid, text=False)]
    stems = [stem_of(file) for file in files]
    known = [guid, *([str(kept)] if kept else [])]
    match context.server.dialect.rss_guid:
        case "item":
            return [guid], [] if desired.present and context.is_document(desired) else stems
        case "file":
            return (given, []) if given else (known, files)
        case "stem":
            return (stems, []) if given else ([stem_of(name) if name != guid else name for name in known], stems)
    learned = context.memory.get(f"rss-guid:{guid}")
    return [guid, *([str(learned)] if learned else [])], [*files, *stems]


# Files ---------------------------------------------------------------------------------------------------------


def is_in_file(context: ChannelContext, desired: DesiredRssItem, live: RssItem) -> bool:
    """Return whether a PUT of the desired file replaces a live item, as far as can be known."""
    file = file_of(desired)
    if context.server.dialect.rss_guid == "file" or _is_named(context, live, file):
        return plain(live.guid) == plain(file)
    kept = context.written(desired.guid)
    content, former = mapping(kept.get("content")), str(kept.get("file", file))
    if kept.get("seen") and (_has_form(context, live, former) or item_matches(content, live, content)):
        return former == file
    return is_file_name(live.guid) and plain(stem_of(file)) == plain(live.guid) and _has_form(context, live, file)


def _is_named(context: ChannelContext, live: RssItem, file: str) -> bool:
    return context.server.dialect.rss_guid == "auto" and plain(live.guid) == plain(file)


def _has_form(context: ChannelContext, live: RssItem, file: str) -> bool:
    """Return whether a live item may come from a file with the ending of this name."""
    form = form_of(live)
    if not context.server.dialect.ending_decides or form is None:
        return True
    return ending_of(file).lower() == ".xml" if form == "item" else ending_of(file).lower() == ".txt"


def check_room(context: ChannelContext, meant: MatchedItem, going: bool) -> None:
    """Refuse a PUT to a file that may belong to another live item; ``going``: the other items are removed."""
    if context.server.dialect.rss_guid in {"file", "stem"}:
        return
    file, own = file_of(meant.sourced.value), {id(item) for item in meant.items}
    for other in context.channel.items:
        if id(other) in own or not other.guid:
            continue
        kept = context.written(other.guid).get("file")
        named = _is_named(context, other, file) or (
            plain(other.guid) == plain(stem_of(file)) and _has_form(context, other, file) and kept in {None, file}
        )
        if named or (kept == file and not going):
            raise refuse(
                f"item {meant.sourced.value.guid} is put as {file}, "
                f"which may be the file of the live item {other.guid}",
                meant.sourced.source,
                f"give the item another `file:`, or {_SET_DIALECT}",
            )


def check_names(context: ChannelContext, desired: Sequence[Sourced[DesiredRssItem]]) -> None:
    """Refuse two items that would be one file, or that the channel may show under one guid."""
    seen: dict[str, Sourced[DesiredRssItem]] = {}
    for sourced in sorted(desired, key=lambda sourced: not sourced.value.present):
        for name in _shown_names(context, sourced.value):
            first = seen.setdefault(name, sourced)
            if first is not sourced and first.value.present:
                raise _clash(first, sourced, name)


def _shown_names(context: ChannelContext, desired: DesiredRssItem) -> Iterator[str]:
    file = file_of(desired)
    if not desired.present:
        yield file_key(desired.guid)
        return
    yield f"file {file_key(file)}"
    dialect = context.server.dialect.rss_guid
    if dialect == "auto" or (dialect == "item" and context.is_document(desired)):
        yield file_key(desired.guid)
    if dialect in {"auto", "file"}:
        yield file_key(file)
    if dialect in {"auto", "stem"} or (dialect == "item" and not context.is_document(desired)):
        yield file_key(stem_of(file))


def _clash(one: Sourced[DesiredRssItem], other: Sourced[DesiredRssItem], name: str) -> PlanningError:
    guids = (
        f"item {one.value.guid} of {one.source.description} and item {other.value.guid} of {other.source.description}"
    )
    if name.startswith("file "):
        return refuse(f"{guids} have one file: {file_of(other.value)}", other.source, "give each item its own `file:`")
    return refuse(
        f"{guids} may show under one guid, because the file of one is {file_of(one.value)}",
        other.source,
        f"give the item another `file:`, or {_SET_DIALECT}",
    )


# Verification and memory ---------------------------------------------------------------------------------------


def _holds(expect: Expectation, live: LiveTarget) -> bool | None:
    items = live.channel.items if live.channel else ()
    if expect.desired is None:
        return not shown_as(items, [expect.key])
    expected = mapping(expect.desired)
    found = items_expected(expect, live)
    if not found:
        # Something new shows under a name that we cannot recognise, or under none: it may be ours.
        new = any(
            _is_new(other, expected) or (not other.guid and item_matches(expected, other, expected)) for other in items
        )
        return None if new else False
    return len(found) == 1 and item_matches(expected, found[0], expected)


def items_expected(expect: Expectation, live: LiveTarget) -> tuple[RssItem, ...]:
    """Return all items that are the expected one: by a guid that it may have, else the one new item that matches.

    More than one is a duplicate, which the server keeps beside what we put.
    """
    items, expected = live.channel.items if live.channel else (), mapping(expect.desired)
    found = shown_as(items, _guids(expect.desired))
    if found or expected.get("learn") is not True:
        return found
    new = tuple(item for item in items if _is_new(item, expected) and item_matches(expected, item, expected))
    return new if len(new) == 1 else ()


def _is_new(item: RssItem, expected: Attributes) -> bool:
    return bool(item.guid) and item.guid not in texts(expected.get("others"))


def _guids(expected: Json) -> tuple[str, ...]:
    return texts(mapping(expected).get("guids"))


def show_item(item: RssItem) -> dict[str, Json]:
    """Return a live item of a channel as plans show it."""
    return {name: text for name in ("title", "description", "link", "pubDate") if (text := item_field(item, name))}


def _show(expect: Expectation, live: LiveTarget) -> Json:
    items = live.channel.items if live.channel else ()
    found = items_expected(expect, live) if expect.desired is not None else shown_as(items, [expect.key])
    shown: list[Json] = list(map(show_item, found))
    return shown if len(shown) > 1 else next(iter(shown), None)


def _show_desired(expect: Expectation, _: LiveTarget) -> Json:
    """Return the content, without the keys that identify the item."""
    expected = mapping(expect.desired)
    return expected.get("text", expected.get("item"))


def _remember(expect: Expectation, live: LiveTarget) -> Iterator[Item]:
    if expect.desired is None:
        return
    item = next(iter(items_expected(expect, live)), None)
    expected = mapping(expect.desired)
    content: dict[str, Json] = {name: expected[name] for name in ("text", "item") if name in expected}
    yield f"rss_item:{expect.key}", {"content": content, "seen": item is not None, "file": expected.get("file")}
    yield f"rss-guid:{expect.key}", item.guid if item is not None and item.guid != expect.key else None


def _remember_duplicates(expects: Sequence[Expectation], live: LiveTarget) -> Iterator[Item]:
    """Learn from duplicates: how many items a DELETE left beside the one put, and what guid that one shows."""
    expects = [expect for expect in expects if expect.aspect == "rss_item"]
    put = {plain(guid) for each in expects for guid in _guids(each.desired)}
    for gone in (each.key for each in expects if each.desired is None and live.channel is not None):
        count = len(shown_as(live.channel.items if live.channel else (), [gone]))
        yield f"rss-left:{gone}", count if count > (plain(gone) in put) else None
    for expect in (each for each in expects if each.desired is not None):
        found = items_expected(expect, live)
        guids = [item.guid for item in found if item.guid != expect.key] if len(found) > 1 else []
        yield from ((f"rss-guid:{expect.key}", guid) for guid in guids[:1])


def _forget(change: Change) -> Iterator[Item]:
    if change.action == "delete":
        yield f"rss_item:{change.key}", None


# Undo ----------------------------------------------------------------------------------------------------------


def undo_items(made: Sequence[AppliedChange], spec: ServerSpec, source: TaskSource) -> DesiredChannel:
    """Return the items as they were, each with what it must still contain to be changed.

    The file name of a deleted item is not known: it gets a new one.
    """
    is_text = {one.change.key: not spec.dialect.sends_document(_former_file(one)) for one in made}
    items = tuple(Sourced(_former_item(one, is_text[one.change.key]), source) for one in made)
    notes = []
    for change in (one.change for one in made if one.change.action != "add" and is_text[one.change.key]):
        lost = [name for name in ("link", "pubDate") if mapping(change.before).get(name)]
        notes += [f"item {change.key} comes back without its {' and '.join(lost)}: its file is a text"] if lost else []
    return DesiredChannel(source, items, still={one.change.key: _still(one) for one in made}, notes=tuple(notes))


def _former_item(one: AppliedChange, is_text: bool) -> DesiredRssItem:
    guid, before, file = one.change.key, mapping(one.change.before), _former_file(one)
    if one.change.action == "add":
        return DesiredRssItem(guid, file, present=False)
    if is_text:
        return DesiredRssItem(guid, file, text=_former_text(before))
    return DesiredRssItem(guid, file, item={name: str(value) for name, value in before.items() if value is not None})


def _still(one: AppliedChange) -> Json:
    """Return what the item must contain to be changed; ``None``: the item must not exist."""
    puts = [request for request in one.requests if request.method == "PUT"]
    if not puts:
        return None
    expected = mapping(puts[-1].expect[0].desired)
    return {name: expected[name] for name in ("text", "item") if name in expected}


def _former_file(one: AppliedChange) -> str:
    """Return the name of the file: the name in the PUT, else a name that gives the former guid."""
    put = next((request.path for request in one.requests if request.method == "PUT"), None)
    if put is not None:
        return unquote(put.rpartition("/")[2])
    guid = one.change.key
    return guid if guid.lower().endswith(_ENDINGS) and is_file_name(guid) else default_file(guid, text=False)


def _former_text(before: Attributes) -> str:
    """Return the text that gives this title and description; the description may begin with the title."""
    title, description = str(before.get("title") or ""), str(before.get("description") or "")
    if not description or plain(description).startswith(plain(title)):
        return description or title
    return f"{title}\n{description}"


ASPECT = Aspect(
    name="rss_item",
    looks={
        "items": lambda _, live, __: [structs.asdict(item) for item in live.channel.items] if live.channel else None
    },
    holds=_holds,
    show=_show,
    show_desired=_show_desired,
    is_overruled=lambda gone, later: gone.key in _guids(later.desired),
    needs_asset=False,
    remember=_remember,
    remember_all=_remember_duplicates,
    forget=_forget,
    value_items=lambda guid: (f"rss_item:{guid}",),
)
