"""Links: shortcuts in folders (COPYLINK). One is there when its folder lists its title, and not for another clip.

Its own link fields (SETFIELD: interface, «Link») are set by its title, and read where its folder lists it.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from msgspec import Struct, structs

from msauto.aspects.arguments import (
    ExportedPart,
    State,
    TaskArguments,
    asset_key,
    duplicates,
    known_items,
    or_absent,
)
from msauto.aspects.aspect import Reads, Shown, UndoContext, part_of
from msauto.aspects.comparison import Attributes, Item, Items, mapping, text_of
from msauto.aspects.link_fields import (
    FieldsArgs,
    is_set,
    same_field,
    shown_field,
    shown_fields,
    wire_value,
)
from msauto.aspects.list_aspect import ListAspect
from msauto.aspects.matching import ListItem, Matching
from msauto.aspects.merging import Merging, exactly_of
from msauto.aspects.plan_builder import Phase, PlanContext, refuse
from msauto.documents.document import SourceNode
from msauto.documents.strict_model import key, need
from msauto.documents.value_types import FolderText, Name, Opt, Value
from msauto.documents.writer import FlowStyle
from msauto.errors import MissingError, PlanningError, Problem
from msauto.model import requests
from msauto.model.desired import ABSENT, Absent, DesiredList, Position, Sourced, TaskSource
from msauto.model.fields import LINK_FIELD
from msauto.model.identity import compare_clips, plain, same_folder, same_text
from msauto.model.live import Asset, AssetSnapshot, Entry, Folder, Link, parse_folder, show_folder
from msauto.model.plan import Address, Basis, Change
from msauto.model.ports import LiveTarget
from msauto.model.server import Dialect
from msauto.model.snapshot import Effect, Json, Part

_OTHER = "other_clip"  # in what an entry differs that is surely of another clip
_COUNT = "entries"  # how many entries of the clip have this title in this folder
_NO_WAY = "the interface has no way to remove a link"
_OWN = "deleting by that title would delete the asset"


class LinkArgs(FieldsArgs):
    """A shortcut to the asset in a folder. Its own link fields need a title that is not the asset's."""

    hints: ClassVar = {"clip_name": ("clip_name cannot be set here", "use title:")}

    folder: Value[FolderText] = need("the folder of the link")
    title: Opt[Name] = key("the link's title; default: the asset's")
    state: Opt[State] = key("present (default) or absent: not there")


class DesiredLink(Struct, frozen=True, gc=False):
    """A shortcut. ``title`` ABSENT: the asset's own. ``fields``: its own link fields. ``made``: by a run, for undo."""

    folder: Folder
    title: str | Absent = ABSENT
    present: bool = True
    fields: Mapping[str, str | Position] = {}
    made: bool = False

    def place(self, title: str) -> Folder:
        """Return its folder and its title, which is by default that of the asset."""
        return (*self.folder, title if self.title is ABSENT else self.title)


class Links(ListAspect):
    """The links of a clip, by folder and title as one path."""

    name = "link"
    called = "link"
    keys: ClassVar = {"links": asset_key(list[Value[LinkArgs]], "links to the asset in folders")}
    exactly = ("links", asset_key(bool, "remove other links"))
    unreported = tuple(LINK_FIELD)
    dialect = ("folder_missing", "link_title")
    deletes = "link"
    every = "fact links"

    # Playbooks -------------------------------------------------------------------------------------------------------

    def check(self, args: Any, node: SourceNode) -> Iterator[Problem]:
        """Yield the links that a task names twice."""
        links = known_items(args.links, LinkArgs)
        what = "link with this folder and title"
        return duplicates(
            links, node.child("links"), lambda item: (item.folder, item.title), "folder", what
        )

    def declare(self, task: TaskArguments) -> DesiredList[DesiredLink] | None:
        """Return the links that a task names."""

        def link(item: LinkArgs) -> DesiredLink:
            is_present = item.state != "absent"
            return DesiredLink(
                item.folder, or_absent(item.title), is_present, task.link_fields(item)
            )

        items = task.each("links", link)
        exactly = task.complete("links")
        return DesiredList(items, exactly) if items or exactly else None

    def merge(
        self, merging: Merging, parts: Sequence[DesiredList[DesiredLink]]
    ) -> DesiredList[DesiredLink]:
        """Return the links of several tasks."""

        def identity(link: DesiredLink) -> Hashable:
            return tuple(map(plain, link.place(merging.title)))

        def called(link: DesiredLink) -> str:
            names = link.folder if link.title is ABSENT else link.place("")
            return f"the link {'/'.join(names)}"

        return DesiredList(merging.items(parts, identity, called), exactly_of(parts))

    def for_clip(
        self, part: DesiredList[DesiredLink], asset: Asset, title: str | None
    ) -> DesiredList[DesiredLink]:
        """Return the links of another entry with its title, which is their default."""
        items = []
        for sourced in part.items:
            link = sourced.value
            if not link.title:
                link = structs.replace(link, title=title or ABSENT)
            items.append(structs.replace(sourced, value=link))
        return structs.replace(part, items=tuple(items))

    def export(self, snapshot: AssetSnapshot, dialect: Dialect) -> ExportedPart:
        """Return the links, without the asset's own home."""
        # Where links cannot be removed, `exactly` never names them: a link made by hand would stop every later run.
        part = ExportedPart(complete=dialect.removes_links)
        title = snapshot.asset.title or snapshot.title
        for stranger in snapshot.strangers:
            place = show_folder((*stranger.folder, stranger.title))
            part.leave_out(f"another clip is at {place}: no link, though it has the same title")
        places = {(link.folder, link.title) for link in snapshot.links or ()}
        places.discard((snapshot.asset.folder, title))
        for folder, name in sorted(places):
            shown = show_folder(folder) or "/"
            if not name.strip():
                part.leave_out(f"a link without a title in {shown}")
                continue
            sourced = {"folder": shown}
            if name != title:
                sourced["title"] = name
            part.add(FlowStyle(sourced))
        return part

    # Planning --------------------------------------------------------------------------------------------------------

    def reads(self, part: DesiredList[DesiredLink], asset: Asset, title: str) -> Reads:
        """Return where the links are to be, without the asset's own home; all links, to remove those that are not."""
        places: dict[Folder, None] = {}
        every = part.exactly is not None
        for sourced in part.items:
            link = sourced.value
            if not _is_home(asset, title, link):
                places[link.place(title)] = None
                every = every or link.made
        return Reads(places=tuple(places), links=every)

    def needs(self, keys: Collection[str]) -> Reads:
        """Return where these links are, in an order that is the same in every run."""
        return Reads(places=tuple(parse_folder(key) for key in sorted(keys) if key))

    def things(self, live: LiveTarget) -> Part | None:
        """Return what is where links are to be."""
        if not live.places:
            return None
        part: Item = {}
        for place, entries in live.places.items():
            if entries:
                part[show_folder(place)] = _shown(live.asset, entries)
        return part

    def same(self, name: str, one: Json, other: Json) -> bool:
        """Compare link fields; a number 0 may not be shown, and a link_id or a count that is not known is equal."""
        if name not in LINK_FIELD:
            return None in (one, other) or one == other
        if one is None:
            one = ""
        if other is None:
            other = ""
        may_be_hidden = one == 0 and other == "" and not LINK_FIELD[name].clearable
        return may_be_hidden or same_field(one, other)

    def misses(self, named: Json, shown: Json) -> Sequence[str]:
        """Compare two links; the entry of another clip is not one."""
        if (_OTHER in mapping(named)) != (_OTHER in mapping(shown)):
            return (_OTHER,)
        return super().misses(named, shown)

    def hidden(self, named: Json, shown: Json) -> Sequence[str]:
        """Return the named fields that the folder does not list, also those that are to be empty."""
        one = mapping(named)
        other = mapping(shown)
        return [name for name in one if name in LINK_FIELD and name not in other]

    def plan(self, context: PlanContext, part: DesiredList[DesiredLink]) -> None:
        """Make the links as desired. The asset itself, where it lives, is not one of them."""
        items = []
        for sourced in part.items:
            if _is_home(context.asset, context.title, sourced.value):
                context.builder.look("asset folder")
            else:
                items.append(sourced)
        super().plan(context, structs.replace(part, items=tuple(items)))

    def live(self, context: PlanContext) -> dict[str, Item]:
        """Return what is where links are to be, and all other links, where they were read, without the asset's home."""
        items = super().live(context)
        places = {plain(key) for key in items}
        for link in context.live.links or ():
            key = show_folder((*link.folder, link.title))
            is_home = _is_home(context.asset, context.title, DesiredLink(link.folder, link.title))
            if not is_home and plain(key) not in places:
                items[key] = {"link_id": link.link_id}
        return items

    def matched(
        self,
        context: PlanContext,
        desired: DesiredList[DesiredLink],
        items: Sequence[ListItem],
        live: Items,
    ) -> Matching:
        """Match the links; ``exactly`` removes neither the asset's home nor an entry of another clip."""
        matching = super().matched(context, desired, items, live)
        for link in tuple(matching.surplus):
            *folder, title = parse_folder(link) or [""]
            is_home = _is_home(context.asset, context.title, DesiredLink(tuple(folder), title))
            if is_home or _OTHER in live[link]:
                del matching.surplus[link]
        return matching

    def resolve(self, context: PlanContext, sourced: Sourced[DesiredLink], live: Items) -> ListItem:
        """Return a link with its fields; the entry of another clip of its title is an error."""
        link = sourced.value
        source = sourced.source
        *_, title = place = link.place(context.title)
        key = show_folder(place)
        live_link = live.get(key, {})
        if _OTHER in live_link and f"{self.name}:{key}" not in context.required_live:
            what = f"another clip is at {key}: it differs in {live_link[_OTHER]}"
            raise refuse(what, source, "give the link another title, or check that entry")
        if link.fields and not link.present:
            raise refuse(
                "a link that is to be absent has no fields", source, "leave one of the two out"
            )
        if link.fields and same_text(title, context.title):
            why = "has the asset's own title, which leads to the asset: its fields cannot be set"
            raise refuse(
                f"the link {key} {why}",
                source,
                "give the link a unique title, or use `fields` of the asset",
            )
        named: Item = {}
        for name, value in link.fields.items():
            sent = wire_value(context.asset, name, value, source)
            named[name] = shown_field(name, sent)
        return ListItem(key, key, named, source, (), link.present)

    def effect(self, key: str, before: Item | None, after: Item | None) -> Effect:
        """Return an effect on a link, which stays one entry, or as many as there are."""
        if after is not None:
            after = {_COUNT: mapping(before).get(_COUNT, 1), **after}
        return super().effect(key, before, after)

    def create(self, context: PlanContext, item: ListItem) -> None:
        """Create a link, then set its fields once reading shows that it is there, and no other clip."""
        dialect = context.server.dialect
        key = item.label
        source = item.source
        place = parse_folder(key)
        title = place[-1]
        is_missing = context.live.places.get(place) is None
        if is_missing and dialect.folder_missing == "refuse":
            raise _no_folder(context, place[:-1], source)
        # Nothing in the interface takes a link away again, unless the dialect names a way.
        reversible = dialect.removes_links and not same_text(title, context.title)
        fields = {name: value for name, value in item.named.items() if value != ""}
        if fields and dialect.link_title != "address":
            raise _unknown_title(key, dialect, source)
        shown: Json = fields or key
        builder = context.builder
        number = builder.change("add", self.name, key, None, shown, source, reversible=reversible)
        request = requests.copy_link(context.path, title, place[:-1])
        effect = self.effect(key, None, {})
        builder.send(Phase.LINK_CREATE, request, [number], effect)
        self._set_fields(context, item, fields, number, None)
        what = f"{context.title}: the title of link {key!r}"
        builder.warn_of_blanks(what, "", title, source)

    def change(
        self, context: PlanContext, item: ListItem, key: str, live: Item, basis: Basis
    ) -> None:
        """Set the fields of a link that differ from what its folder lists, else from what was last written."""
        shown = mapping(part_of(self, context.live).get(key))
        fields: Item = {}
        before: Item = {}
        for name in self.differs(item.named, live):
            fields[name] = item.named[name]
            before[name] = live.get(name)
        number = context.builder.change(
            "change",
            self.name,
            key,
            before,
            fields,
            item.source,
            basis=basis,
            reversible=fields.keys() <= live.keys(),
        )
        # The ledger keeps, of what the folder does not list, what an effect names.
        was = {name: value for name, value in live.items() if name in shown or name in item.named}
        self._set_fields(context, item, fields, number, was)

    def _set_fields(
        self,
        context: PlanContext,
        item: ListItem,
        fields: Attributes,
        number: int,
        before: Item | None,
    ) -> None:
        """Send SETFIELD to the link by its own title; that this leads to the link is checked when planning."""
        key = item.label
        after: Item = {}
        for name, value in item.named.items():
            if before is not None and name not in fields:
                after[name] = value
        is_guarded = before is None  # the first one, of a new link
        for name, value in fields.items():
            requests.require_field(context.server, name)
            request = requests.set_field(_path_by_title(context, key), name, text_of(value))
            request = structs.replace(request, guarded=is_guarded)
            effect = self.effect(key, before or {}, {**after, name: value})
            context.builder.send(Phase.LINK_FIELD, request, [number], effect)
            is_guarded = False
        place = parse_folder(key)
        context.builder.claimed_places.append((place, item.source))
        if same_text(place[-1], context.title):
            # The server may answer the title of both with the link.
            context.builder.altered.add("link_id")

    def delete(
        self, context: PlanContext, key: str, live: Item, source: TaskSource, *, exactly: bool
    ) -> None:
        """Delete a link by its title."""
        if not key or key.endswith("/"):
            raise refuse(
                f"a link in {key.strip('/') or '/'} has no title, so no request can remove it",
                source,
                "give it a title by hand, or leave out `exactly`",
            )
        title = parse_folder(key)[-1]
        if f"{self.name}:{key}" in context.required_live:
            why = why_ambiguous(title, context.live.links or ())
            if why is not None:
                context.keep(f"link {key} cannot be undone: {why}")
                return
        if not context.server.dialect.removes_links:
            by_title = "set `link_delete: by_title` in the server's dialect"
            remedy = f"remove it by hand; or, tried on a scratch clip, {by_title}"
            raise refuse(f"the link {key} cannot be removed: {_NO_WAY}", source, remedy)
        if same_text(title, context.title):
            raise refuse(
                f"the link {key} has the asset's own title: {_OWN}", source, "remove it by hand"
            )
        number = context.builder.change(
            "delete", self.name, key, key, None, source, losses=int(exactly)
        )
        request = requests.delete_asset(_path_by_title(context, key))
        # The list of all links shows no more.
        effect = Effect(self.name, key, live, whole=_COUNT in live)
        context.builder.send(Phase.LINK_DELETE, request, [number], effect)

    def undo(self, context: UndoContext) -> Any:
        """Return the links as they were; a note names those that cannot be taken back."""
        things = dict(context.things.get(self.name, {}))
        for link, effect in things.items():
            if effect.before is not None and effect.after is None:
                fields = self._brought_back(link, mapping(effect.before), context)
                things[link] = structs.replace(effect, before=fields)
        for change in context.of(self.name):
            why = _why_not_undone(change, context)
            if why is not None:
                context.notes.append(f"link {change.key} cannot be undone: {why}")
                things.pop(change.key, None)
        return super().undo(structs.replace(context, things={self.name: things}))

    def _brought_back(self, key: str, link: Attributes, context: UndoContext) -> Item:
        """Return the fields that a deleted link gets again; a note names those that cannot be set."""
        frames = context.record.target.clip.frames
        fields: Item = {}
        for name, value in link.items():
            is_whole = name == "last_frame" and frames is not None and value in (frames - 1, frames)
            if name in LINK_FIELD and is_set(value) and not is_whole:
                fields[name] = value
        dialect = context.spec.dialect
        if fields and dialect.link_title != "address":
            what = f"link {key} comes back without its {', '.join(fields)}"
            context.notes.append(f"{what}: {_why_unknown(dialect)}")
            return {}
        return fields

    def former(
        self, key: str, value: Attributes, keys_before: frozenset[str] | None
    ) -> DesiredLink:
        """Return a link with its former fields."""
        *folder, title = parse_folder(key)
        fields = {name: text_of(was) for name, was in value.items() if name in LINK_FIELD}
        return DesiredLink(tuple(folder), title, fields=fields)

    def absent(self, key: str) -> DesiredLink:
        """Return a link that a run made as one to be removed."""
        return structs.replace(self.former(key, {}, None), present=False, made=True)

    def shown(self, change: Change) -> Shown:
        """Return a change by its folder and title; many have the folder in common."""
        return Shown(change.key, change.key.rpartition("/")[0], change)


def _is_home(asset: Asset, title: str, link: DesiredLink) -> bool:
    """Return whether a desired link is the asset itself, where it lives."""
    if asset.folder is None or link.fields or not link.present:
        return False
    return same_folder(asset.folder, link.folder) and same_text(link.place(title)[-1], title)


def _no_folder(context: PlanContext, folder: Folder, source: TaskSource) -> MissingError:
    """Return the error of a link into a folder that the server does not have, and does not create."""
    shown = show_folder(folder)
    error = MissingError(
        f"folder {shown or '/'} not found in {context.database}: a link cannot be placed in it",
        place=source.place,
        remedy="create the folder, or set `folder_missing: create` in the server's dialect if the server creates "
        "folders",
    )
    error.folder = shown
    return error


def _why_unknown(dialect: Dialect) -> str:
    """Return why nothing shows that the title of a new link will lead to it."""
    if dialect.link_title == "none":
        return "by the server's dialect, the title of a link does not lead to it"
    return "the server's dialect does not declare what the title of a link leads to"


def _unknown_title(key: str, dialect: Dialect, source: TaskSource) -> PlanningError:
    """Return the error of a new link with fields, where nothing shows that its title will lead to it."""
    remedy = (
        "make the link without fields; or, where `msauto probe` shows it, set `link_title: address` "
        "in the server's dialect"
    )
    return refuse(cannot_be_set(key, _why_unknown(dialect)), source, remedy)


def cannot_be_set(key: str, why: str) -> str:
    """Return the message where the fields of a link cannot be set: the same before and after it is made."""
    return f"the fields of the link {key} cannot be set: {why}"


def _shown(asset: Asset | None, entries: Sequence[Entry]) -> Item:
    """Return what the entries at a place show of a link: those of the clip, or that they are of another one."""
    mine = entries
    if asset is not None:
        mine = [entry for entry in entries if compare_clips(asset, entry).answer != "other"]
        if not mine:
            different = compare_clips(asset, entries[0]).different
            return {"link_id": entries[0].link_id, _COUNT: 0, _OTHER: ", ".join(different)}
    return {"link_id": mine[0].link_id, _COUNT: len(mine), **shown_fields(mine[0].attributes)}


def _path_by_title(context: PlanContext, key: str) -> str:
    title = Address(parse_folder(key)[-1])
    return requests.asset_path(context.database, requests.wire_address(context.server, title))


def why_ambiguous(title: str, links: Sequence[Link]) -> str | None:
    """Return why deleting by a title may take another link of the asset; ``None`` where there is just one."""
    count = sum(plain(link.title) == plain(title) for link in links)
    if count < 2:
        return None
    return f"{count} links of the asset have its title, and the wrong one may go"


def _why_not_undone(change: Change, context: UndoContext) -> str | None:
    if change.action != "add":
        return "what was there before was never known" if change.basis == "none" else None
    if not context.spec.dialect.removes_links:
        return _NO_WAY
    target = context.record.target
    title = parse_folder(change.key)[-1]
    for name in (target.name, target.address_after.name, target.address.name):
        if same_text(title, name):
            return f"the link has the asset's own title: {_OWN}"
    return None
