"""Items of an RSS channel: PUT a file, DELETE a guid (interface, «RSS add data», «RSS delete data»).

An item is the guid that the channel shows, letter by letter, as the dialect defines it: that of the playbook, the name
of its file, or that without its ending. Without a guid in the playbook it is the name of the file. Nothing else is the
item: what only resembles it makes a PUT refused. A PUT defines all of an item, and replaces what its file held. The
channel shows no files: the ledger knows which one was put.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Any, ClassVar

from msgspec import structs

from msauto.aspects import comparison
from msauto.aspects.arguments import TaskArguments, or_absent
from msauto.aspects.aspect import Shown, UndoContext, part_of
from msauto.aspects.comparison import Attributes, Item, Items, mapping
from msauto.aspects.list_aspect import ListAspect, by_key, each_of
from msauto.aspects.matching import ListItem, Matching
from msauto.aspects.merging import Merging, exactly_of
from msauto.aspects.plan_builder import Doubt, Phase, PlanContext, refuse
from msauto.aspects.rss_arguments import RssArgs, RssItemArgs, body_texts, check_items, file_name
from msauto.documents.document import SourceNode
from msauto.errors import Problem
from msauto.model import requests
from msauto.model.desired import (
    ABSENT,
    DesiredChannel,
    DesiredList,
    DesiredRssItem,
    Sourced,
    TaskSource,
)
from msauto.model.identity import plain
from msauto.model.plan import Basis, Body, Change
from msauto.model.ports import LiveTarget
from msauto.model.requests import RSS_FIELDS, default_file, file_key, form_of, shown_names, text_of
from msauto.model.server import Dialect, zone_of
from msauto.model.snapshot import TWINS, Effect, Json, Part
from msauto.primitives.feed_times import instant_of, with_zone

_SET_DIALECT = "set `rss_guid` in the server's dialect (msauto probe may show it)"
_LINES = RSS_FIELDS[:2]
_APART = "apart:rss_item:"
"""Prefix of the item of two that were live at once: they are two, although they resemble each other."""


class RssItems(ListAspect):
    """The items of a channel. ``text`` stands for the title and description that a channel may show of a text."""

    name = "rss_item"
    called = "item"
    module = RssArgs
    dialect = ("rss_guid", "rss_body", "rss_update")
    key_called = "guid"
    replaces = True
    kept: ClassVar[frozenset[str]] = frozenset({"guid", "file"})
    unreported = ("guid", "file", *RSS_FIELDS)

    # Playbooks -------------------------------------------------------------------------------------------------------

    def check(self, args: Any, node: SourceNode) -> Iterator[Problem]:
        """Yield what is wrong with the items of a channel."""
        return check_items(args, node)

    def declare(self, task: TaskArguments) -> DesiredChannel:
        """Return what a task asks of a channel, each item with its place."""
        exactly = task.source("exactly") if task.args.exactly else None
        return DesiredChannel(task.source(), task.each("items", _desired), exactly)

    def merge(self, merging: Merging, parts: Sequence[Any]) -> DesiredChannel:
        """Return what all tasks ask of a channel. An item without a guid is its file."""

        def identity(item: DesiredRssItem) -> Hashable:
            return item.guid, "" if item.guid else item.file

        def called(item: DesiredRssItem) -> str:
            return f"item {item.key}"

        merging.check_complete(parts, identity, called)
        items: dict[Hashable, Sourced[DesiredRssItem]] = {}
        required_live: Item = {}
        notes: list[str] = []
        for part in parts:
            required_live.update(part.required_live)
            notes += part.notes
            for sourced in part.items:
                value: DesiredRssItem = sourced.value
                first = items.setdefault(identity(value), sourced)
                is_same = structs.replace(first.value, guid=value.guid) == value
                if not merging.disagree(called(value), first, sourced) and not is_same:
                    merging.differ(called(value), first, sourced)
        return DesiredChannel(
            parts[0].source, tuple(items.values()), exactly_of(parts), required_live, tuple(notes)
        )

    # Comparing -------------------------------------------------------------------------------------------------------

    def things(self, live: LiveTarget) -> Part | None:
        """Return the items by guid; those without one have the key ``""``."""
        if live.channel is None:
            return None
        return by_key([(item.guid, dict(item.fields)) for item in live.channel.items])

    def same(self, name: str, one: Json, other: Json) -> bool:
        """Compare times as such, all else as texts without the blanks around them."""
        first = plain(comparison.text_of(one)).strip()
        second = plain(comparison.text_of(other)).strip()
        if name == "pubDate":
            times = instant_of(first), instant_of(second)
            if None not in times:
                return times[0] == times[1]
        return first == second

    def misses(self, named: Json, shown: Json) -> Sequence[str]:
        """Compare a text with both title and description, all else attribute by attribute."""
        rest = dict(mapping(named))
        other = mapping(shown)
        if "text" not in rest or shown is None or TWINS in other:
            return super().misses(named, shown)
        missed = []
        if not requests.shows_text(str(rest.pop("text")), other):
            missed.append("text")
        return [*missed, *super().misses(rest, shown)]

    # Which item ------------------------------------------------------------------------------------------------------

    def resolve(
        self, context: PlanContext, sourced: Sourced[DesiredRssItem], live: Items
    ) -> ListItem:
        """Return what a task asks of one item. One that is to be absent has a file only if the task names it."""
        desired = sourced.value
        source = sourced.source
        dialect = context.server.dialect
        file = _file(desired, dialect)
        key = self._key(context, sourced, file, live)
        named: Item = {"guid": desired.guid, "file": file}
        if desired.present:
            named |= _content(desired, document=dialect.sends_document(file))
            if "pubDate" in named:
                named["pubDate"] = with_zone(str(named["pubDate"]), zone_of(context.server))
        elif not desired.file:
            named = {}
        item = ListItem(key, desired.key, named, source, (key,), present=desired.present)
        in_file = str(live.get(key, {}).get("file", file))
        if not desired.guid and in_file != file:
            raise refuse(
                f"item {item.label} shows as {key}, and the live item {key} is in the file {in_file}",
                source,
                f"write `guid: {key}` if you mean that item; else give yours another `file:`",
            )
        return item

    def _key(
        self, context: PlanContext, sourced: Sourced[DesiredRssItem], file: str, live: Items
    ) -> str:
        """Return the guid that the channel shows for an item, as the dialect defines it.

        An item that is to be absent may name no file: then it is in one of the two that its guid gives.
        """
        desired = sourced.value
        guid = sourced.value.guid
        shows = context.server.dialect.rss_guid
        if guid and (shows == "item" or f"{self.name}:{guid}" in context.required_live):
            return guid
        if desired.present or desired.file:
            return shown_names(file, shows)[0]
        names: list[str] = []
        for is_text in (True, False):
            names += shown_names(default_file(guid, text=is_text), shows)
        live_keys = [key for key in dict.fromkeys((guid, *names)) if key in live]
        if len(live_keys) > 1:
            raise refuse(
                f"item {desired.key} may be any of the live items {' or '.join(live_keys)}",
                sourced.source,
                "write the item that you mean as `file:`, as the channel shows it",
            )
        return live_keys[0] if live_keys else names[0]

    def unite(self, items: Sequence[ListItem]) -> Sequence[ListItem]:
        """Refuse two items that would be one file, or that the channel would show under one guid."""
        first_of: dict[tuple[str, object], ListItem] = {}
        for item in items:
            names = {"file": file_key(str(item.named.get("file", ""))), "guid": item.key}
            for kind, name in names.items():
                first = first_of.setdefault((kind, name), item)
                if name and first is not item:
                    raise refuse(
                        f"{_called(first)} and {_called(item)} have one {kind}: {name}",
                        item.source,
                        "give each item its own `file:`, or name one item once",
                    )
        return items

    def _resolved(
        self, context: PlanContext, desired: DesiredList[Any], live: Items
    ) -> Sequence[ListItem]:
        """Return what the tasks ask of each item; refuse what may be on air although nothing shows as it."""
        items = super()._resolved(context, desired, live)
        staying: dict[str, Item] = {}
        if not desired.exactly:
            named = {item.key for item in items}
            staying = {key: value for key, value in live.items() if key not in named}
        files = _LiveFiles(staying, context.server.dialect)
        for item in items:
            if not item.present and not context.required_live:
                self._check_gone(context, item, live, files)
        return items

    def _check_gone(
        self, context: PlanContext, item: ListItem, live: Items, files: _LiveFiles
    ) -> None:
        """Refuse an item that is to be absent, and that a live one may be which no task names.

        By its guid alone, it may be in one of two files. One that was on air together with it is another item.
        """
        file = item.named.get("file")
        nameless = self._nameless(context)
        is_there = item.key in live
        if nameless and not is_there and (file or not live):
            raise refuse(
                f"item {item.label} is to be absent, and cannot be distinguished from {nameless}",
                item.source,
                "remove it on the server, because the interface deletes by guid, and take the task out",
            )
        its_files = [str(file)]
        if not file:
            its_files = [default_file(item.label, text=is_text) for is_text in (True, False)]
        alike: dict[str, None] = {}
        for its_file in its_files:
            alike |= files.others(its_file, item.key)
        for other in alike:
            apart = f"{_APART}{item.key} {other}"
            if is_there:
                context.builder.settle(apart, value=True)
            elif apart not in context.memory:
                named = _naming(other, context.server.dialect)
                raise refuse(
                    f"item {item.label} is to be absent, and its file may be that of the live item {other}",
                    item.source,
                    f"write `{named}` if you mean that item, or {_SET_DIALECT}",
                )

    def _nameless(self, context: PlanContext) -> str:
        """Describe the live items without a guid; empty if each has one."""
        everything = part_of(self, context.live)
        if "" not in everything:
            return ""
        titles: list[str] = []
        for item in each_of(everything[""]):
            titles.append(repr(item.get("title") or item.get("description") or ""))
        return f"{len(titles)} without a guid: {', '.join(titles)}"

    def _check_put(
        self, context: PlanContext, item: ListItem, live: Items, files: _LiveFiles
    ) -> None:
        """Refuse a PUT onto a file that may be another live item's, and one that nothing can recognise afterwards."""
        file = str(item.named["file"])
        key = str(item.key)
        dialect = context.server.dialect
        label = item.label
        names = shown_names(file, dialect.rss_guid)
        carries_guid = dialect.rss_guid == "item" and dialect.sends_document(file)
        if key not in names and not carries_guid:
            remedy = "write `item:` in place of `text:`, without `file:` or with one in .xml: a document holds its guid"
            if not dialect.sends_document("item.xml"):
                remedy = "give it a guid that can be the name of a file, without `file:`"
            raise refuse(
                f"item {label} would show as {' or '.join(names)}, because it is sent as {file}, which holds no guid",
                item.source,
                remedy,
            )
        if dialect.rss_guid == "file" and key not in live and label in live:
            raise refuse(
                f"item {label} is put as {file}, and would show beside the live item {label}",
                item.source,
                f"write `{_naming(label, dialect)}` if you mean that item; else give yours another guid",
            )
        live_item = live.get(key, {})
        if live_item.get("file") == file:
            return
        is_known_file = key in live and live_item.get("file", key) == file
        shows_files = dialect.rss_guid != "item"
        if not (is_known_file or shows_files) and self._nameless(context):
            raise refuse(
                f"item {label} is put as {file}, which may be the file of {self._nameless(context)}",
                item.source,
                f"give that one a guid or remove it on the server; or {_SET_DIALECT}",
            )
        for name in names:
            if name != key:
                context.builder.look(f"{self.name} {name}")
        for other in files.others(file, key):
            named = _naming(other, dialect)
            raise refuse(
                f"item {label} is put as {file}, which may be the file of the live item {other}",
                item.source,
                f"write `{named}` if you mean that item; else remove it in a run before, or {_SET_DIALECT}",
            )

    # Planning --------------------------------------------------------------------------------------------------------

    def plan(self, context: PlanContext, part: Any) -> None:
        """Make the list as desired, and warn of what cannot be removed."""
        super().plan(context, part)
        nameless = self._nameless(context)
        if part.exactly and nameless:
            context.warn(f"cannot remove {nameless}: the interface deletes by guid")

    def _without_unseen(
        self, context: PlanContext, matching: Matching, unseen: Sequence[Doubt]
    ) -> Matching:
        """Return what is to be written; while an item is in doubt, what ``exactly`` removes may be that item."""
        matching = super()._without_unseen(context, matching, unseen)
        return structs.replace(matching, surplus={})

    def write(self, context: PlanContext, matching: Matching) -> None:
        """Add the changes and requests in the order of the list; what is removed comes last."""
        live = matching.live
        files = _LiveFiles(live, context.server.dialect)
        for item, key in matching.present:
            if key is None or self.differs(item.named, live[key]):
                self._check_put(context, item, live, files)
            if key is None:
                self.create(context, item)
            else:
                self.keep(context, item, key, live[key])
        super().write(context, structs.replace(matching, present=[]))

    def create(self, context: PlanContext, item: ListItem) -> None:
        """Put a new item."""
        self.change(context, item, str(item.key), None, "live")

    def change(
        self, context: PlanContext, item: ListItem, key: str, live: Item | None, basis: Basis
    ) -> None:
        """Put an item. What would stay beside it, in another file or in one that is not known, is deleted first."""
        dialect = context.server.dialect
        channel = context.live_title
        builder = context.builder
        file = str(item.named["file"])
        is_document = dialect.sends_document(file)
        content = {name: value for name, value in item.named.items() if name not in self.kept}
        if not is_document:
            _check_text(item, content, dialect)
        names = _LINES if "text" in content else tuple(content)
        if live is None:
            number = builder.change("add", self.name, item.label, None, content, item.source)
        else:
            before = {name: live.get(name) for name in names}
            number = builder.change("change", self.name, item.label, before, content, item.source)
        others = self._others(context, item, live or {}, names, document=is_document)
        fields = {**others, **content}
        guid = str(item.named["guid"] or key)
        put = requests.put_rss(channel, file, _body(guid, fields, document=is_document))
        shown = {name: value for name, value in fields.items() if not name.startswith("<")}
        made = Effect(self.name, key, None, {**shown, "file": file})
        if live is None:
            builder.send(Phase.RSS_PUT, put, [number], made)
            return
        gone = Effect(self.name, key, live, None)
        is_in_file = live.get("file", key) == file
        if is_in_file and dialect.rss_update == "put":
            builder.send(Phase.RSS_PUT, put, [number], gone, made)
            return
        builder.send(Phase.RSS_REPLACE, requests.delete_rss(channel, key), [number], gone)
        builder.send(Phase.RSS_REPLACE, put, [number], made)

    def _others(
        self,
        context: PlanContext,
        item: ListItem,
        live: Item,
        names: Collection[str],
        *,
        document: bool,
    ) -> Item:
        """Return what no task names of an item, as a document carries it; warn of what is lost.

        Undo brings back the texts of the item as they were, and no other ones.
        """
        others: Item = {}
        is_undone = f"{self.name}:{item.key}" in context.required_live
        lost = []
        for name, value in live.items():
            is_left_out = is_undone and not name.startswith("<")
            if not value or is_left_out or name in self.kept or name in names:
                continue
            if document and _is_written_again(name, value):
                others[name] = value
            else:
                lost.append(name.strip("<>"))
        if lost:
            why = "it is sent as a text"
            if document:
                why = "msauto cannot write it as the channel shows it"
            context.warn(f"item {item.label} loses its {', '.join(lost)}: {why}")
        return others

    def delete(
        self, context: PlanContext, key: str, live: Item, source: TaskSource, *, exactly: bool
    ) -> None:
        """Delete all items of a guid: a change for each of them, and one request.

        What ``exactly`` removes may be what a new item replaced under another guid: all that is new must show before
        the first of these deletions.
        """
        items = each_of(live)
        builder = context.builder
        is_first = exactly and not any(change.losses for change in builder.changes)
        is_guarded = is_first and any(change.action == "add" for change in builder.changes)
        if len(items) > 1:
            context.warn(f"{len(items)} items are {key}: they are deleted")
        numbers: list[int] = []
        for item in items:
            shown: Item = {}
            for name in RSS_FIELDS:
                if item.get(name):
                    shown[name] = item[name]
            number = builder.change(
                "delete", self.name, key, shown, None, source, losses=int(exactly)
            )
            numbers.append(number)
        effect = self.effect(key, live, None)
        request = requests.delete_rss(context.live_title, key)
        request = structs.replace(request, guarded=is_guarded)
        builder.send(Phase.RSS_DELETE, request, numbers, effect)

    def about_twins(
        self, context: PlanContext, key: str, count: int, named: ListItem | None
    ) -> tuple[bool, str]:
        """Return whether all items of a guid go, for one DELETE takes them all; before one is put they must."""
        absent = f"{{guid: {key}, state: absent}}"
        return named is None or not named.present, f"remove them all in a run before: {absent}"

    # Undo, and what is shown -----------------------------------------------------------------------------------------

    def undo(self, context: UndoContext) -> Any:
        """Return the items as they were, with notes on what does not come back."""
        for key, effect in context.things.get(self.name, {}).items():
            lost = []
            for name, value in each_of(mapping(effect.before))[0].items():
                is_kept = effect.after is not None and _is_written_again(name, value)
                if name.startswith("<") and not is_kept:
                    lost.append(name.strip("<>"))
            if lost:
                context.notes.append(f"item {key} comes back without its {', '.join(lost)}")
        return super().undo(context)

    def former(
        self, key: str, value: Attributes, keys_before: frozenset[str] | None
    ) -> DesiredRssItem:
        """Return an item as it was: its fields, and its text where it goes into a text."""
        fields = {}
        for name, was in value.items():
            if name not in self.kept and name != "text" and not name.startswith("<"):
                fields[name] = str(was)
        return DesiredRssItem(key, str(value.get("file", "")), text=text_of(value), item=fields)

    def absent(self, key: str) -> DesiredRssItem:
        """Return an item that undo removes."""
        return DesiredRssItem(key, present=False)

    def shown(self, change: Change) -> Shown:
        """Show the live title and description as one text where a text is desired."""
        text = text_of(mapping(change.before))
        if text and "text" in mapping(change.after):
            change = structs.replace(change, before={"text": text})
        return super().shown(change)

    def shown_as(self, named: Json, new: Collection[str]) -> tuple[str, str]:
        """Return under which new guid an item that was put shows, with what to write."""
        name, stem = shown_names(str(mapping(named).get("file", "")), "item")
        to_set = {name: "file", stem: "stem"}
        for guid in new:
            if guid in to_set:
                value = f"set `rss_guid: {to_set[guid]}` in the server's dialect"
                return guid, f"it shows as {guid}: {value}"
            if file_key(guid) in {file_key(name), file_key(stem)}:
                return guid, f"it shows as {guid}: write its guid so, letter by letter"
        return "", ""


class _LiveFiles:
    """Which live items may be in a file: those that the ledger knows there, else by their guids and the dialect."""

    def __init__(self, live: Items, dialect: Dialect) -> None:
        self._shows = dialect.rss_guid
        self._in_file = defaultdict[str, list[str]](list)
        self._elsewhere = defaultdict[str, list[str]](list)
        for key, value in live.items():
            if "file" in value:
                self._in_file[file_key(str(value["file"]))].append(key)
            else:
                self._elsewhere[file_key(key)].append(key)

    def others(self, file: str, key: str | None) -> dict[str, None]:
        """Return the live items but that of a key that may be in a file."""
        keys = list(self._in_file.get(file_key(file), ()))
        for name in shown_names(file, self._shows):
            keys += self._elsewhere.get(file_key(name), ())
        others = dict.fromkeys(keys)
        others.pop(str(key), None)
        return others


def _naming(guid: str, dialect: Dialect) -> str:
    """Return what names a live item in a task. A guid that is its file would get an ending more."""
    if dialect.rss_guid == "file":
        return f"file: {guid}"
    return f"guid: {guid}"


def _called(item: ListItem) -> str:
    return f"item {item.label} of {item.source.description}"


def _desired(args: RssItemArgs) -> DesiredRssItem:
    present = args.state != "absent"
    return DesiredRssItem(
        guid=args.guid or "",
        file=file_name(args) if present else args.file or "",
        text=or_absent(args.text),
        item=ABSENT if args.item is None else body_texts(args.item),
        present=present,
    )


def _check_text(item: ListItem, content: Attributes, dialect: Dialect) -> None:
    """Refuse what an item names besides its text, where it is sent as a text alone."""
    lost = [name for name in content if name != "text"]
    if lost:
        raise refuse(
            f"item {item.label} is sent as a text (rss_body: {dialect.rss_body}), "
            f"which cannot carry its {' and '.join(lost)}",
            item.source,
            "leave that out; or set `rss_body: item` in the server's dialect if the server takes item documents",
        )


def _file(desired: DesiredRssItem, dialect: Dialect) -> str:
    """Return the file that an item is put as; undo may know its guid and content alone."""
    if desired.file or dialect.rss_guid == "file":
        return desired.file or desired.guid
    was_text = desired.item is ABSENT or (
        form_of(desired.item) == "text" and requests.is_file_name(desired.guid)
    )
    return default_file(desired.guid, text=was_text)


def _is_written_again(name: str, value: Json) -> bool:
    """Return whether a document can hold what a channel shows: a text, or the XML of the only element of its name.

    Of several, the server may have added some: they would be more with each PUT.
    """
    return not name.startswith("<") or str(value).count(name.strip(">")) == 1


def _content(desired: DesiredRssItem, *, document: bool) -> Item:
    """Return what an item is to show: the fields of a document, or a text, and what no text can carry."""
    fields = desired.item
    text = desired.text
    if fields is ABSENT or (text is not ABSENT and not document):
        return {"text": text or ""}
    if document:
        return dict(fields)
    lines = [fields[name] for name in _LINES if fields.get(name)]
    content: Item = {"text": "\n".join(lines)}
    for name, value in fields.items():
        if value and name not in _LINES:
            content[name] = value
    return content


def _body(guid: str, fields: Attributes, *, document: bool) -> Body:
    """Return the content of a file: a text, or an item document, whose title is the first line of a text."""
    if not document:
        return Body.of(str(fields["text"]).encode())
    texts = {name: str(value) for name, value in fields.items() if name != "text"}
    if guid:
        texts["guid"] = guid
    if "text" in fields:
        title, _, description = str(fields["text"]).partition("\n")
        texts["title"] = title
        if description:
            texts["description"] = description
    return requests.item_document(texts)
