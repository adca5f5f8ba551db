"""Items of an RSS channel: PUT a file, DELETE a guid (interface, «RSS add data», «RSS delete data»).

An item is its guid. The interface does not define which guid a file shows: it may be the name of the file, or a guid of
the server's own. Two things are evidence: the dialect, and what the channel showed after our PUT (the content that was
sent, under a new guid), which the ledger keeps. An item whose guid only resembles the desired one is another item.

Several live items of one guid are deleted, and one is put. So is an item in another file, because a PUT would add a
second one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from email.utils import format_datetime
from html import escape
from typing import NamedTuple
from urllib.parse import unquote

from msgspec import structs

from msauto.aspects.aspect import AppliedChange, Aspect, Item
from msauto.aspects.comparison import Attributes, instant, item_field, item_matches, mapping, texts
from msauto.aspects.plan_builder import Phase, PlanBuilder, left_alone, refuse
from msauto.aspects.rss_arguments import RssArgs, check_items, desired_channel
from msauto.model import requests
from msauto.model.desired import ABSENT, DesiredChannel, DesiredRssItem, Sourced, TaskSource
from msauto.model.identity import plain
from msauto.model.live import RssChannel, RssItem
from msauto.model.plan import Action, Body, Change, Expectation, Json
from msauto.model.ports import LiveTarget
from msauto.model.requests import default_file, feed_stem, file_key, form_of, is_file_name, stem_of
from msauto.model.server import ServerSpec

_SET_DIALECT = "set `rss_guid` in the server's dialect (msauto probe may show it)"
_ORDER = ("title", "link", "description", "pubDate", "guid")
_SHOWN = ("title", "description", "link", "pubDate")


class ChannelContext:
    """One channel as this aspect sees it."""

    def __init__(
        self, server: ServerSpec, channel: RssChannel, memory: Mapping[str, Json], desired: DesiredChannel
    ) -> None:
        self.dialect = server.dialect
        self.channel = channel
        self.memory = memory
        self.desired = desired
        self.builder = PlanBuilder()
        guids = [item.guid for item in channel.items if item.guid]
        likely = bool(guids) and all(feed_stem(guid) != guid for guid in guids)
        self.shows_files = self.dialect.rss_guid == "file" or (self.dialect.rss_guid == "auto" and likely)
        self._by_guid: dict[str, list[RssItem]] = {}
        for item in channel.items:
            self._by_guid.setdefault(plain(item.guid), []).append(item)

    def shown_as(self, guid: str) -> Sequence[RssItem]:
        """Return the live items of a guid."""
        return self._by_guid.get(plain(guid), []) if guid else []

    def written(self, key: str) -> Attributes:
        """Return what we last wrote of an item and saw in the channel: its content and its file."""
        return mapping(self.memory.get(f"rss_item:{key}"))

    def file_of(self, desired: DesiredRssItem) -> str:
        """Return the file that an item is put as."""
        if not desired.file and self.shows_files and feed_stem(desired.guid) != desired.guid:
            return desired.guid
        return desired.file or default_file(desired.guid, text=desired.item is ABSENT)

    def is_document(self, desired: DesiredRssItem) -> bool:
        """Return whether an item is sent as an ``item`` document, not as a text."""
        return self.dialect.sends_document(self.file_of(desired))

    def learns(self, desired: DesiredRssItem) -> bool:
        """Return whether only the channel shows which guid an item gets. No text carries one."""
        return self.dialect.rss_guid == "auto" or (self.dialect.rss_guid == "item" and not self.is_document(desired))

    def has_form(self, live: RssItem, file: str) -> bool:
        """Return whether a live item may come from a file with the ending of this name."""
        form = form_of(live) if self.dialect.ending_decides else None
        return form is None or (form == "item") == self.dialect.sends_document(file)

    def warn(self, text: str) -> None:
        """Add a warning about the channel."""
        self.builder.warnings.append(f"channel {self.channel.name}: {text}")


class MatchedItem(NamedTuple):
    """A desired item, the live items that are it, and the guids that it may show, the surest first."""

    sourced: Sourced[DesiredRssItem]
    items: Sequence[RssItem]
    guids: Sequence[str]


def plan_items(context: ChannelContext) -> None:
    """Make the channel's items as desired; with ``exactly`` nothing else stays."""
    desired, exactly = context.desired.items, context.desired.exactly
    context.builder.look("items")
    check_names(context, desired)
    named = {plain(guid) for sourced in desired for guid in _guids(context, sourced.value)}
    matched = [_match(context, sourced, named) for sourced in desired]
    own = {id(live) for each in matched for live in each.items}
    others = [item for item in context.channel.items if id(item) not in own]
    alike = _warn_of_alike(context, matched, others)
    for each in matched:
        if _is_left(context, each):
            continue
        if each.sourced.value.present:
            _put_if_needed(context, each, others)
        else:
            _delete(context, each.items, each.sourced.source)
    if exactly:
        # What is new may be one of the others under another guid, and its PUT may have replaced it. So nothing is
        # deleted until everything new shows in the channel (field notes).
        guarded = any(each.sourced.value.present and not each.items for each in matched)
        _remove(context, [item for item in others if id(item) not in alike], exactly, guarded=guarded)
        if others and not own and not alike and not guarded:
            context.builder.emptied.append(("rss_item", len(others)))


# Identity ------------------------------------------------------------------------------------------------------


def _guids(context: ChannelContext, desired: DesiredRssItem) -> list[str]:
    """Return the guids that an item shows as far as playbook and dialect define it."""
    guid, dialect = desired.guid, context.dialect.rss_guid
    if guid and dialect in {"auto", "item"}:
        return [guid]
    if desired.present or desired.file:
        files = [context.file_of(desired)]
    else:
        files = [default_file(guid, text=True), default_file(guid, text=False)]
    stems = [stem_of(file) for file in files]
    forms = {"file": files, "stem": stems}.get(dialect, [*files, *stems])
    return list(dict.fromkeys(forms if desired.present or not guid else [guid, *forms]))


def _match(context: ChannelContext, sourced: Sourced[DesiredRssItem], named: Collection[str]) -> MatchedItem:
    """Find the live items that a desired one is; ``named`` are the guids of all desired items.

    The guid that the ledger knows counts while the item is what we wrote, or is put in the same file again.
    """
    desired = sourced.value
    key, guids, kept = desired.key, _guids(context, desired), context.written(desired.key)
    found = [item for guid in guids for item in context.shown_as(guid)]
    file, content = str(kept.get("file", "")), mapping(kept.get("content"))
    if not desired.guid:
        found = _of_its_form(context, desired, found, content)
    forms = {"file": file, "stem": stem_of(file)}
    known = str(forms.get(context.dialect.rss_guid, context.memory.get(f"rss-guid:{key}") or ""))
    learned = [] if plain(known) in named else context.shown_as(known)
    again = desired.present and context.file_of(desired) == file
    ours = [item for item in learned if again or item_matches(content, item, content)]
    if learned and not ours:
        context.warn(f"{known}, as which {key} was shown, is no longer what was written, and is left alone")
    found += ours
    if len({item.guid for item in found}) > 1 or (len(found) > 1 and not desired.guid):
        raise refuse(
            f"item {key} may be any of the live items {' or '.join(item.guid for item in found)}",
            sourced.source,
            f"write the guid of the item that you mean as the channel shows it, or {_SET_DIALECT}",
        )
    return MatchedItem(sourced, found, [*guids, known] if ours else guids)


def _of_its_form(
    context: ChannelContext, desired: DesiredRssItem, found: Sequence[RssItem], written: Attributes
) -> list[RssItem]:
    """Return the items that may have come in the file; a document that looks like a text is known by its content."""
    contents = [written, _content(context, desired)] if desired.present else [written]
    return [
        item
        for item in found
        if context.has_form(item, desired.file) or any(item_matches(each, item, written) for each in contents)
    ]


def _warn_of_alike(context: ChannelContext, matched: Sequence[MatchedItem], others: Sequence[RssItem]) -> set[int]:
    """Warn of items whose guids resemble a desired one; return (the ``id`` of) those that ``exactly`` must not remove.

    Where the dialect defines what guids are, a resemblance means nothing.
    """
    by_name: dict[str, list[RssItem]] = {}
    for item in others:
        by_name.setdefault(file_key(feed_stem(item.guid)), []).append(item)
    kept: set[int] = set()
    for each in matched:
        desired = each.sourced.value
        file = context.file_of(desired) if desired.present else desired.file
        names = {file_key(feed_stem(name)) for name in (desired.guid, file, stem_of(file)) if name}
        found = [item for name in sorted(names) for item in by_name.get(name, ())]
        protected = context.desired.exactly is not None and context.learns(desired)
        if protected:
            kept |= {id(item) for item in found}
        for guid in dict.fromkeys(item.guid for item in found if protected or not each.items):
            context.warn(f"{guid} resembles {desired.key}, but is another item, and is left alone")
    return kept


def check_names(context: ChannelContext, desired: Sequence[Sourced[DesiredRssItem]]) -> None:
    """Refuse two items that would be one file, or that the channel may show under one guid."""
    files: dict[str, Sourced[DesiredRssItem]] = {}
    names: dict[str, Sourced[DesiredRssItem]] = {}
    for sourced in sorted(desired, key=lambda sourced: not sourced.value.present):
        value = sourced.value
        file = context.file_of(value)
        first = files.setdefault(file_key(file), sourced) if value.present else sourced
        if first is not sourced:
            both = f"{_called(first)} and {_called(sourced)}"
            raise refuse(f"{both} have one file: {file}", sourced.source, "give each item its own `file:`")
        for name in map(file_key, _possible_guids(context, value)):
            first = names.setdefault(name, sourced)
            if first is not sourced and first.value.present:
                raise refuse(
                    f"{_called(first)} and {_called(sourced)} may show under one guid, because the file of one is "
                    f"{context.file_of(first.value)}",
                    sourced.source,
                    f"give the item another `file:`, or {_SET_DIALECT}",
                )


def _possible_guids(context: ChannelContext, desired: DesiredRssItem) -> list[str]:
    """Return all guids that an item may show, but those that only the server knows."""
    guids = _guids(context, desired)
    if not desired.present or not context.learns(desired):
        return guids
    file = context.file_of(desired)
    return [*guids, stem_of(file), *([file] if context.dialect.rss_guid == "auto" else [])]


def _contents(desired: DesiredRssItem) -> set[str]:
    """Return the texts by which the channel may show an item."""
    sent: list[str] = []
    if desired.text is not ABSENT:
        sent += [desired.text, desired.text.partition("\n")[0]]
    if desired.item is not ABSENT:
        sent += [desired.item.get(name, "") for name in ("title", "description")]
    return {plain(text) for text in sent if text}


def _called(sourced: Sourced[DesiredRssItem]) -> str:
    return f"item {sourced.value.key} of {sourced.source.description}"


def _check_room(context: ChannelContext, match: MatchedItem, others: Sequence[RssItem]) -> None:
    """Refuse a PUT to a file that may be another live item's, unless that one is removed anyway."""
    if context.dialect.rss_guid in {"file", "stem"}:
        return
    file, going = context.file_of(match.sourced.value), context.desired.exactly is not None
    forms = {plain(stem_of(file)), *([plain(file)] if context.shows_files else [])} - set(map(plain, match.guids))
    for other in others:
        kept = context.written(other.guid).get("file")
        if other.guid and ((plain(other.guid) in forms and kept in {None, file}) or (kept == file and not going)):
            raise refuse(
                f"item {match.sourced.value.key} is put as {file}, which may be the file of the live item {other.guid}",
                match.sourced.source,
                f"give the item another `file:`, or {_SET_DIALECT}",
            )


def _is_in_file(context: ChannelContext, desired: DesiredRssItem, live: RssItem) -> bool:
    """Return whether a PUT of the desired file replaces a live item, as far as can be known."""
    file, former = context.file_of(desired), context.written(desired.key).get("file")
    if context.shows_files:
        return plain(live.guid) == plain(file)
    if former is not None:
        return former == file
    named = is_file_name(live.guid) and plain(stem_of(file)) == plain(live.guid)
    return not desired.guid or (named and context.has_form(live, file))


# Changes -------------------------------------------------------------------------------------------------------


def _is_left(context: ChannelContext, match: MatchedItem) -> bool:
    """Return whether an item is left alone, because it is no longer what the run wrote (undo)."""
    desired = match.sourced.value
    if desired.key not in context.desired.still:
        return False
    still = context.desired.still[desired.key]
    if _is_as_desired(context, match) or (not match.items and (not desired.present or still is None)):
        return False
    if match.items and isinstance(still, dict) and all(item_matches(still, live, still) for live in match.items):
        return False
    shown: Json = show_item(match.items[0]) if match.items else None
    context.builder.warnings.append(left_alone(f"channel {context.channel.name}: item {desired.key}", shown, still))
    return True


def _is_as_desired(context: ChannelContext, match: MatchedItem) -> bool:
    """Return whether exactly one item matches, and has the desired content, also what a text cannot hold."""
    desired = match.sourced.value
    if len(match.items) != 1 or not desired.present:
        return False
    (live,) = match.items
    content = mapping(context.written(desired.key).get("content"))
    lost: dict[str, Json] = dict(_lost(context, desired))
    return item_matches(_content(context, desired), live, content) and item_matches({"item": lost}, live)


def _put_if_needed(context: ChannelContext, match: MatchedItem, others: Sequence[RssItem]) -> None:
    desired = match.sourced.value
    named_only = desired.text is ABSENT and desired.item is ABSENT
    if _is_as_desired(context, match):
        shown: dict[str, Json] = {**_content(context, desired), "guids": [match.items[0].guid]}
        context.builder.holding.append(Expectation("rss_item", desired.key, shown))
        return
    if match.items and named_only:
        return
    if lost := _lost(context, desired):
        raise refuse(
            f"item {desired.key} is sent as a text (rss_body: {context.dialect.rss_body}), "
            f"which cannot carry its {' and '.join(lost)}",
            match.sourced.source,
            "leave that out; or set `rss_body: item` in the server's dialect if the server takes item documents",
        )
    _check_room(context, match, others)
    _put(context, match)


def _put(context: ChannelContext, match: MatchedItem) -> None:
    """Put an item. What would remain beside it as a duplicate is deleted first."""
    desired, live, source = match.sourced.value, match.items, match.sourced.source
    content, file = _content(context, desired), context.file_of(desired)
    after = content.get("item", dict(content))
    names = after if "item" in content and isinstance(after, dict) else ("title", "description")
    before: Json = {name: item_field(live[0], name) for name in names} if live else None
    action: Action = "change" if live else "add"
    number = context.builder.change(action, "rss_item", desired.key, before, after, source)
    phase = Phase.RSS_PUT
    delete_put = context.dialect.rss_update == "delete_put"
    if len(live) > 1 or any(delete_put or not _is_in_file(context, desired, each) for each in live):
        phase = Phase.RSS_REPLACE
        if len(live) > 1:
            context.warn(f"{len(live)} items are {live[0].guid}: they are deleted, and one is put")
        more = [
            context.builder.change("delete", "rss_item", each.guid, show_item(each), None, source) for each in live[1:]
        ]
        _send_delete(context, live, [number, *more], phase)
    # An item of the same content must not be taken for this one.
    same = (one.value for one in context.desired.items if not _contents(one.value).isdisjoint(_contents(desired)))
    taken = [guid for one in same if one is not desired and one.present for guid in _possible_guids(context, one)]
    expected: dict[str, Json] = {**content, "guids": list(match.guids), "file": file}
    expected["learn"] = context.learns(desired)
    expected["before"] = [*(item.guid for item in context.channel.items), *taken]
    request = requests.put_rss(context.channel.name, file, _body(context, desired))
    context.builder.send(phase, request, [number], Expectation("rss_item", desired.key, expected))


def _delete(
    context: ChannelContext,
    items: Sequence[RssItem],
    source: TaskSource,
    *,
    exactly: bool = False,
    guarded: bool = False,
) -> None:
    """Delete items: a change for each of them, and a request for each guid."""
    for guid in dict.fromkeys(item.guid for item in items):
        same = [item for item in items if item.guid == guid]
        if len(same) > 1:
            context.warn(f"{len(same)} items are {guid}: they are deleted")
        numbers = [
            context.builder.change("delete", "rss_item", guid, show_item(each), None, source, losses=int(exactly))
            for each in same
        ]
        _send_delete(context, same, numbers, Phase.RSS_DELETE, guarded=guarded)


def _send_delete(
    context: ChannelContext, same: Sequence[RssItem], changes: Sequence[int], phase: Phase, *, guarded: bool = False
) -> None:
    """Send one DELETE for the items of a guid; one for each of them where it was seen to take one item alone."""
    guid = same[0].guid
    request = structs.replace(requests.delete_rss(context.channel.name, guid), guarded=guarded)
    for _ in same if f"rss-left:{guid}" in context.memory else same[:1]:
        context.builder.send(phase, request, changes, Expectation("rss_item", guid, None))


def _remove(context: ChannelContext, items: Sequence[RssItem], exactly: TaskSource, *, guarded: bool) -> None:
    """Delete what the list does not name."""
    _delete(context, [item for item in items if item.guid], exactly, exactly=True, guarded=guarded)
    if nameless := [item for item in items if not item.guid]:
        context.warn(
            f"{len(nameless)} without a guid cannot be removed, because the interface deletes by guid: "
            f"{', '.join(repr(item.title or item.description or '') for item in nameless)}"
        )


# Bodies --------------------------------------------------------------------------------------------------------


def _content(context: ChannelContext, desired: DesiredRssItem) -> dict[str, Json]:
    """Return the content of the file, as it is compared: what is sent as a text is compared as a text."""
    if desired.item is not ABSENT and context.is_document(desired):
        return {"item": dict(desired.item)}
    return {"text": _as_text(desired)}


def _body(context: ChannelContext, desired: DesiredRssItem) -> Body:
    """Return the file's content: the text for a ``.txt``, an RSS ``item`` document for an ``.xml`` (field notes)."""
    if not context.is_document(desired):
        return Body.of(_as_text(desired).encode())
    if desired.item is ABSENT:
        title, _, description = ("" if desired.text is ABSENT else desired.text).partition("\n")
        fields = {"title": title} | ({"description": description} if description else {})
    else:
        fields = dict(desired.item)
    if desired.guid:
        fields["guid"] = desired.guid
    date = instant(fields.get("pubDate", ""))
    if date is not None:
        fields["pubDate"] = format_datetime(date)  # RFC 2822, whatever the playbook's form
    ordered = [*(name for name in _ORDER if name in fields), *(name for name in fields if name not in _ORDER)]
    lines = [f"  <{name}>{escape(fields[name], quote=False)}</{name}>" for name in ordered]
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


# Verification and memory ---------------------------------------------------------------------------------------


def _find(expect: Expectation, live: LiveTarget) -> Sequence[RssItem]:
    """Return the live items that are the expected one: those of its guid, and what our PUT made under another guid."""
    items, expected = live.channel.items if live.channel else (), mapping(expect.desired)
    guids = texts(expected.get("guids")) or (expect.key,)
    groups = [[item for item in items if item.guid and plain(item.guid) == plain(guid)] for guid in guids]
    found = next((group for group in groups if group), [])
    ours = _learned(items, expected)
    named = _named(ours, expected)
    if found or named:
        return [*found, *(item for item in named if item not in found)]
    return ours if len(ours) == 1 else ()


def _learned(items: Sequence[RssItem], expected: Attributes) -> Sequence[RssItem]:
    """Return the items that are new since the PUT was planned and show the content that was sent, or some of it."""
    if expected.get("learn") is not True:
        return ()
    before = texts(expected.get("before"))
    new = [item for item in items if item.guid and item.guid not in before and (item.title or item.description)]
    return [item for item in new if item_matches(expected, item, expected)]


def _named(items: Sequence[RssItem], expected: Attributes) -> list[RssItem]:
    """Return the items whose guid is the name of the file that was put, with or without its ending."""
    file = str(expected.get("file"))
    return [item for item in items if item.guid in {file, stem_of(file)}]


def _holds(expect: Expectation, live: LiveTarget) -> bool:
    found, expected = _find(expect, live), mapping(expect.desired)
    if expect.desired is None:
        return not found
    return len(found) == 1 and item_matches(expected, found[0], expected)


def show_item(item: RssItem) -> dict[str, Json]:
    """Return a live item of a channel as plans show it."""
    return {name: text for name in _SHOWN if (text := item_field(item, name))}


def _show(expect: Expectation, live: LiveTarget) -> Json:
    shown: list[Json] = list(map(show_item, _find(expect, live)))
    return shown if len(shown) > 1 else next(iter(shown), None)


def _show_desired(expect: Expectation, _: LiveTarget) -> Json:
    """Return the content, without the keys that identify the item."""
    expected = mapping(expect.desired)
    return expected.get("text", expected.get("item"))


def _remember(expect: Expectation, live: LiveTarget) -> Iterator[Item]:
    for item in _find(expect, live) if expect.desired is not None else ():
        yield from _items(expect, item)


def _items(expect: Expectation, item: RssItem) -> Iterator[Item]:
    expected = mapping(expect.desired)
    content: dict[str, Json] = {name: expected[name] for name in ("text", "item") if name in expected}
    yield f"rss_item:{expect.key}", {"content": content, "file": expected.get("file")}
    yield f"rss-guid:{expect.key}", item.guid if item.guid != expect.key else None


def _remember_left(expects: Sequence[Expectation], live: LiveTarget) -> Iterator[Item]:
    """Remember how many items a DELETE left, and which one beside them is what we put."""
    items = live.channel.items if live.channel else ()
    put = {plain(guid) for each in expects for guid in texts(mapping(each.desired).get("guids"))}
    for each in (each for each in expects if each.aspect == "rss_item"):
        if each.desired is not None:
            expected = mapping(each.desired)
            for item in _named(_learned(items, expected), expected):
                yield from _items(each, item)
        elif live.channel is not None:
            count = len(_find(each, live))
            yield f"rss-left:{each.key}", count if count > (plain(each.key) in put) else None


def _forget(change: Change) -> Iterator[Item]:
    if change.action == "delete":
        yield f"rss_item:{change.key}", None


# Undo ----------------------------------------------------------------------------------------------------------


def undo_items(made: Sequence[AppliedChange], spec: ServerSpec, source: TaskSource) -> DesiredChannel:
    """Return the items as they were, each with what it must still contain to be changed."""
    items: dict[str, Sourced[DesiredRssItem]] = {}
    still: dict[str, Json] = {}
    notes: list[str] = []
    for one in made:
        key, before = one.change.key, mapping(one.change.before)
        if key in items:
            what = str(before.get("title") or before.get("description") or "")
            notes.append(f"item {key}: a second one ({what!r}) does not come back, because a guid names one item")
            continue
        former = _former_item(one, spec)
        items[key], still[key] = Sourced(former, source), _still(one)
        lost = [name for name in ("link", "pubDate") if before.get(name)] if former.text is not ABSENT else []
        if lost:
            notes.append(f"item {key} comes back without its {' and '.join(lost)}: its file is a text")
        if former.present and not former.file and spec.dialect.rss_guid == "auto" and feed_stem(key) != key:
            notes.append(f"item {key} may come back under another guid, because its file is not known: {_SET_DIALECT}")
    return DesiredChannel(source, tuple(items.values()), still=still, notes=tuple(notes))


def _former_item(one: AppliedChange, spec: ServerSpec) -> DesiredRssItem:
    """Return an item as it was: in the file that was put, else in one that gives its guid and what it showed."""
    guid, before = one.change.key, mapping(one.change.before)
    put = next((request.path for request in one.requests if request.method == "PUT"), "")
    file = unquote(put.rpartition("/")[2])
    if one.change.action == "add":
        return DesiredRssItem(guid, file, present=False)
    shown = {name: str(value) for name, value in before.items() if value is not None}
    title, description, link, date = map(shown.get, _SHOWN)
    was_text = form_of(RssItem(guid, title, description, link, date)) == "text" and is_file_name(guid)
    if not spec.dialect.sends_document(file or default_file(guid, text=was_text)):
        return DesiredRssItem(guid, file, text=_former_text(before))
    return DesiredRssItem(guid, file, item=shown)


def _still(one: AppliedChange) -> Json:
    """Return what the item must contain to be changed; ``None``: the item must not exist."""
    puts = [request for request in one.requests if request.method == "PUT"]
    if not puts:
        return None
    expected = mapping(puts[-1].expect[0].desired)
    return {name: expected[name] for name in ("text", "item") if name in expected}


def _former_text(before: Attributes) -> str:
    """Return the text that gives this title and description; the description may begin with the title."""
    title, description = str(before.get("title") or ""), str(before.get("description") or "")
    if not description or plain(description).startswith(plain(title)):
        return description or title
    return f"{title}\n{description}"


def _displayed(change: Change) -> Change:
    """Show the live title and description as one text where a text is desired."""
    text = _former_text(mapping(change.before))
    return structs.replace(change, before={"text": text}) if text and "text" in mapping(change.after) else change


ASPECT = Aspect(
    name="rss_item",
    module=RssArgs,
    check=check_items,
    declare=desired_channel,
    looks={
        "items": lambda _, live, __: [structs.asdict(item) for item in live.channel.items] if live.channel else None
    },
    holds=_holds,
    alike=lambda expect, live: [f"guid {item.guid}" for item in _find(expect, live)],
    show=_show,
    show_desired=_show_desired,
    is_overruled=lambda gone, later: gone.key in texts(mapping(later.desired).get("guids")),
    needs_asset=False,
    remember=_remember,
    remember_all=_remember_left,
    forget=_forget,
    value_items=lambda guid: (f"rss_item:{guid}",),
    displayed=_displayed,
    dialect=("rss_guid", "rss_body", "rss_update"),
)
