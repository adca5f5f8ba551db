"""Items of an RSS channel: PUT a file, DELETE a guid (interface, «RSS add data», «RSS delete data»).

An item is the guid that the channel shows, as the dialect defines it: that of the playbook, the name of its file, or
that without its ending. A PUT defines all of an item, and replaces what its file held. The channel shows no files: the
ledger knows which one was put.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

from msgspec import structs

from msauto.aspects import comparison
from msauto.aspects.arguments import TaskArguments, or_absent
from msauto.aspects.aspect import Shown, UndoContext, part_of
from msauto.aspects.comparison import Attributes, Item, Items, mapping
from msauto.aspects.list_aspect import ListAspect, by_key, each_of
from msauto.aspects.matching import ListItem, Matching
from msauto.aspects.merging import Merging, exactly_of
from msauto.aspects.plan_builder import Phase, PlanContext, refuse
from msauto.aspects.rss_arguments import RssArgs, RssItemArgs, body_texts, check_items, file_name
from msauto.documents.document import SourceNode
from msauto.errors import Problem
from msauto.model import requests
from msauto.model.desired import ABSENT, DesiredChannel, DesiredRssItem, Sourced, TaskSource
from msauto.model.identity import plain
from msauto.model.plan import Basis, Body, Change
from msauto.model.ports import LiveTarget
from msauto.model.requests import RSS_FIELDS, default_file, file_key, form_of, stem_of, text_of
from msauto.model.server import Dialect
from msauto.model.snapshot import TWINS, Effect, Json, Part

_SET_DIALECT = "set `rss_guid` in the server's dialect (msauto probe may show it)"
_LINES = RSS_FIELDS[:2]


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

    def check(
        self, args: Any, node: SourceNode, dialect: Dialect | None = None
    ) -> Iterator[Problem]:
        """Yield what is wrong with the items of a channel."""
        return iter(()) if dialect else check_items(args, node)

    def declare(self, task: TaskArguments) -> DesiredChannel:
        """Return what a task asks of a channel, each item with its place."""
        exactly = task.source("exactly") if task.args.exactly else None
        return DesiredChannel(task.source(), task.each("items", _desired), exactly)

    def merge(self, merging: Merging, parts: Sequence[Any]) -> DesiredChannel:
        """Return what all tasks ask of a channel. An item without a guid is its file."""

        def identity(item: DesiredRssItem) -> Hashable:
            return plain(item.guid), "" if item.guid else file_key(item.file)

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
        return by_key([(plain(item.guid), dict(item.fields)) for item in live.channel.items])

    def same(self, name: str, one: Json, other: Json) -> bool:
        """Compare times as such, all else as texts without the blanks around them."""
        first, second = (
            plain(comparison.text_of(one)).strip(),
            plain(comparison.text_of(other)).strip(),
        )
        if name == "pubDate":
            times = requests.instant(first), requests.instant(second)
            if None not in times:
                return times[0] == times[1]
        return first == second

    def misses(self, named: Json, shown: Json) -> Sequence[str]:
        """Compare a text with both title and description, all else attribute by attribute."""
        rest, other = dict(mapping(named)), mapping(shown)
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
        """Return what a task asks of one item; its ``handles`` are the guids that it may show under."""
        desired, source, dialect = sourced.value, sourced.source, context.server.dialect
        file = _file(desired, dialect)
        key = self._key(context, sourced, file, live)
        if not desired.present:
            return ListItem(key, desired.key, {}, source, (key,), present=False)
        content = _content(desired, document=dialect.sends_document(file))
        handles = {key: None}
        if dialect.rss_guid == "item":
            handles[plain(file)] = None
            handles[plain(stem_of(file))] = None
        named = {"guid": desired.guid, "file": file, **content}
        return ListItem(key, desired.key, named, source, tuple(handles), present=True)

    def _key(
        self, context: PlanContext, sourced: Sourced[DesiredRssItem], file: str, live: Items
    ) -> str:
        """Return the guid that the channel shows for an item, as the dialect defines it.

        An item that is to be absent may name no file: then it is in one of the two that its guid gives.
        """
        desired, guid = sourced.value, plain(sourced.value.guid)
        shows = context.server.dialect.rss_guid
        if guid and (shows == "item" or f"{self.name}:{guid}" in context.required_live):
            return guid
        files = [file]
        if not desired.present and not desired.file:
            files = [default_file(guid, text=True), default_file(guid, text=False)]
        names = [plain(name if shows == "file" else stem_of(name)) for name in files]
        if guid and not desired.present:
            may_be = dict.fromkeys((guid, *names))
            names = [name for name in may_be if name in live] or names[:1]
        elif not guid and shows == "item":
            names = self._keys_of_file(context, file, live)
        if len(names) > 1:
            raise refuse(
                f"item {desired.key} may be any of the live items {' or '.join(names)}",
                sourced.source,
                "write the guid of the item that you mean as the channel shows it",
            )
        return names[0]

    def _keys_of_file(self, context: PlanContext, file: str, live: Items) -> list[str]:
        """Return the live items that were put as a file; else what an item of it shows under, live or new."""
        keys = [key for key, value in live.items() if value.get("file") == file]
        if keys:
            return keys
        stem = plain(stem_of(file))
        is_stem = self._is_in(context, file, stem, live.get(stem, {}))
        return [stem] if is_stem else [plain(file)]

    def _is_in(self, context: PlanContext, file: str, key: str, value: Attributes) -> bool:
        """Return whether a PUT of a file replaces a live item: by the ledger, else by its guid and its form.

        Only a document has a link, a date, or a description that does not begin with the title.
        """
        dialect = context.server.dialect
        if "file" in value or dialect.rss_guid == "file":
            return value.get("file", file) == file
        if key != plain(stem_of(file)):
            return False
        form = form_of(value) if dialect.ending_decides else None
        return form is None or (form == "item") == dialect.sends_document(file)

    def unite(self, items: Sequence[ListItem]) -> Sequence[ListItem]:
        """Refuse two items that would be one file, or that the channel may show under one guid."""
        files: dict[str, ListItem] = {}
        keys: dict[Hashable, ListItem] = {}
        for item in items:
            keys.setdefault(item.key, item)
        for item in items:
            file = str(item.named.get("file", ""))
            if item.present:
                first = files.setdefault(file_key(file), item)
                if first is not item:
                    both = f"{_called(first)} and {_called(item)}"
                    raise refuse(
                        f"{both} have one file: {file}",
                        item.source,
                        "give each item its own `file:`",
                    )
            for name in item.handles:
                other = keys.get(name, item)
                if other is item:
                    continue
                shown = file or other.named.get("file", other.label)
                both = f"{_called(item)} and {_called(other)}"
                raise refuse(
                    f"{both} may show under one guid, because the file of one is {shown}",
                    item.source,
                    f"give the item another `file:`, or {_SET_DIALECT}",
                )
        return items

    def _check_room(
        self, context: PlanContext, item: ListItem, live: Items, files: Mapping[Json, str]
    ) -> None:
        """Refuse a PUT onto a file that may be another live item's; ``files`` are those that the ledger knows."""
        if context.server.dialect.rss_guid != "item":
            return
        file = item.named["file"]
        others = [str(name) for name in item.handles if name != item.key]
        for name in others:
            context.builder.look(f"{self.name} {name}")
        if file in files:
            others.append(files[file])
        for other in others:
            is_another = other != item.key and other in live
            if is_another and live[other].get("file", file) == file:
                raise refuse(
                    f"item {item.label} is put as {file}, which may be the file of the live item {other}",
                    item.source,
                    f"give the item another `file:`, remove {other} in a run before, or {_SET_DIALECT}",
                )

    # Planning --------------------------------------------------------------------------------------------------------

    def plan(self, context: PlanContext, part: Any) -> None:
        """Make the list as desired, and warn of what cannot be removed."""
        super().plan(context, part)
        everything = part_of(self, context.live) or {}
        if not part.exactly or "" not in everything:
            return
        nameless = each_of(everything[""])
        titles = ", ".join(
            repr(item.get("title") or item.get("description") or "") for item in nameless
        )
        context.warn(
            f"{len(nameless)} without a guid cannot be removed, because the interface deletes by guid: {titles}"
        )

    def write(self, context: PlanContext, matching: Matching) -> None:
        """Add the changes and requests in the order of the list; what is removed comes last."""
        live = matching.live
        files = {value["file"]: key for key, value in live.items() if "file" in value}
        for item, key in matching.present:
            if key is None or self.differs(item.named, live[key]):
                self._check_room(context, item, live, files)
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
        """Put an item. What would stay beside it, in another file, is deleted first."""
        dialect, channel, builder = context.server.dialect, context.live_title, context.builder
        file = str(item.named["file"])
        content = {name: value for name, value in item.named.items() if name not in self.kept}
        is_document = dialect.sends_document(file)
        lost = [name for name in content if name != "text" and not is_document]
        if lost:
            raise refuse(
                f"item {item.label} is sent as a text (rss_body: {dialect.rss_body}), "
                f"which cannot carry its {' and '.join(lost)}",
                item.source,
                "leave that out; or set `rss_body: item` in the server's dialect if the server takes item documents",
            )
        names = _LINES if "text" in content else tuple(content)
        if live is None:
            number = builder.change("add", self.name, item.label, None, content, item.source)
        else:
            before = {name: live.get(name) for name in names}
            number = builder.change("change", self.name, item.label, before, content, item.source)
        others = self._others(context, item, live or {}, names, document=is_document)
        fields = {**others, **content}
        guid = str(item.named["guid"])
        if not guid and live is not None and key != plain(stem_of(file)):
            guid = key
        phase, effects = Phase.RSS_PUT, [Effect(self.name, key, None, {**fields, "file": file})]
        if live is not None:
            gone = Effect(self.name, key, live, None)
            if dialect.rss_update == "delete_put" or not self._is_in(context, file, key, live):
                phase = Phase.RSS_REPLACE
                for shown in _guids(context, key):
                    builder.send(phase, requests.delete_rss(channel, shown), [number], gone)
            else:
                effects.insert(0, gone)
        request = requests.put_rss(channel, file, _body(guid, fields, document=is_document))
        builder.send(phase, request, [number], *effects)

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

        Undo brings back the item as it was, and nothing else.
        """
        others: Item = {}
        if f"{self.name}:{item.key}" in context.required_live:
            return others
        lost = []
        for name, value in live.items():
            if not value or name in self.kept or name in names:
                continue
            if document and not name.startswith("<"):
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
        items, builder = each_of(live), context.builder
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
        for guid in _guids(context, key):
            request = requests.delete_rss(context.live_title, guid)
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
            first = each_of(mapping(effect.before))[0]
            lost = [name.strip("<>") for name in first if name.startswith("<")]
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
        """Return under which new guid an item that was put shows, with the value of ``rss_guid`` to set."""
        file = str(mapping(named).get("file", ""))
        shown = {"file": plain(file), "stem": plain(stem_of(file))}
        for value, guid in shown.items():
            if guid in new:
                return guid, f"it shows as {guid}: set `rss_guid: {value}` in the server's dialect"
        return "", ""


def _guids(context: PlanContext, key: str) -> Collection[str]:
    """Return the guids of a key as the channel writes them."""
    return _guids_by_key(context).get(key, {})


@lru_cache(maxsize=1)  # asked for each item of a channel
def _guids_by_key(context: PlanContext) -> Mapping[str, Mapping[str, None]]:
    guids: dict[str, dict[str, None]] = {}
    if context.live.channel is not None:
        for item in context.live.channel.items:
            guids.setdefault(plain(item.guid), {})[item.guid] = None
    return guids


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


def _file(desired: DesiredRssItem, dialect: Dialect) -> str:
    """Return the file that an item is put as; undo may know its guid and content alone."""
    if desired.file or dialect.rss_guid == "file":
        return desired.file or desired.guid
    was_text = desired.item is ABSENT or (
        form_of(desired.item) == "text" and requests.is_file_name(desired.guid)
    )
    return default_file(desired.guid, text=was_text)


def _content(desired: DesiredRssItem, *, document: bool) -> Item:
    """Return what an item is to show: the fields of a document, or a text, and what no text can carry."""
    fields, text = desired.item, desired.text
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
