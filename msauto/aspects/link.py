"""Links: shortcuts in folders (COPYLINK). A link is there when its folder lists an entry of that title.

Its own link fields (SETFIELD, interface «Link») are set by its title, where that is not the asset's, and read where its
folder lists it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from msgspec import Struct, field, structs

from msauto.aspects.arguments import ExportedPart, State, TaskArguments, asset_key, duplicates, known_items, or_absent
from msauto.aspects.aspect import Aspect, Item, Reads, UndoContext
from msauto.aspects.comparison import entry_called, mapping, same_shown, text_of
from msauto.aspects.link_fields import FieldsArgs, compare_field, field_holds, remember_field, shown_field, wire_value
from msauto.aspects.merging import Merging, exactly_of
from msauto.aspects.plan_builder import Phase, PlanContext, left_alone, refuse
from msauto.documents import key_rules as rule
from msauto.documents.document import SourceNode
from msauto.documents.strict_model import key, need
from msauto.documents.value_types import FolderText, Name, Opt, Value
from msauto.documents.writer import FlowStyle
from msauto.errors import Problem
from msauto.model import requests
from msauto.model.desired import ABSENT, Absent, DesiredList, Position, Sourced, TaskSource
from msauto.model.fields import LINK_FIELD
from msauto.model.identity import differing, plain, same_folder, same_text
from msauto.model.live import Asset, AssetSnapshot, Entry, Folder, Link, parse_folder, show_folder
from msauto.model.plan import Address, Basis, Change, Expectation, Json
from msauto.model.ports import LiveTarget
from msauto.model.result import TargetRecord
from msauto.model.server import Dialect, ServerSpec


class LinkArgs(FieldsArgs):
    """A shortcut to the asset in a folder. Its own link fields need a title that is not the asset's."""

    hints: ClassVar = {"clip_name": ("clip_name cannot be set here", "use title:")}

    folder: Value[FolderText] = need("the folder of the link")
    title: Opt[Name] = key("the link's title; default: the asset's")
    state: Opt[State] = key("present (default) or absent: not there")


def _check(args: Any, node: SourceNode) -> Iterator[Problem]:
    links, what = known_items(args.links, LinkArgs), "link with this folder and title"
    yield from duplicates(links, node.child("links"), lambda item: (item.folder, item.title), "folder", what)


class DesiredLink(Struct, frozen=True, gc=False):
    """A shortcut. ``title`` ABSENT: the asset's own. ``fields``: link fields of the shortcut itself, those named."""

    folder: Folder
    title: str | Absent = ABSENT
    present: bool = True
    fields: Mapping[str, str | Position] = field(default_factory=dict)


Links = DesiredList[DesiredLink]


def _declare(task: TaskArguments) -> Links | None:
    def link(item: LinkArgs) -> DesiredLink:
        present = item.state != "absent"
        return DesiredLink(item.folder, or_absent(item.title), present=present, fields=task.link_fields(item))

    items, exactly = task.each("links", link), task.complete("links")
    return Links(items, exactly) if items or exactly else None


def _merge(merging: Merging, declared: Sequence[Links]) -> Links:
    def identity(link: DesiredLink) -> Hashable:
        title = merging.title if link.title is ABSENT else link.title
        return (*map(plain, link.folder), plain(title))

    def called(link: DesiredLink) -> str:
        return f"the link {'/'.join((*link.folder, *([] if link.title is ABSENT else [link.title])))}"

    return Links(merging.items(declared, identity, called), exactly_of(declared))


def _reads(links: Links, asset: Asset, title: str) -> Reads:
    """Return the folders of the links, without the asset's own home."""
    values = (sourced.value for sourced in links.items)
    titled = ((link, title if link.title is ABSENT else link.title) for link in values)
    folders = [link.folder for link, name in titled if not (link.present and is_home(asset, title, link.folder, name))]
    return Reads(folders=tuple(dict.fromkeys(folders)), links=links.exactly is not None)


def _of_entry(links: Links, _: Asset, title: str | None) -> Links:
    """Return the links of another entry with its title, which is their default."""
    if title is None:
        return links
    titled = (
        structs.replace(each, value=structs.replace(each.value, title=title)) if each.value.title is ABSENT else each
        for each in links.items
    )
    return structs.replace(links, items=tuple(titled))


def plan_links(context: PlanContext, links: Links) -> None:
    """Make the links as desired; with ``exactly`` nothing else stays."""
    named = []
    for sourced in links.items:
        title = context.title if sourced.value.title is ABSENT else sourced.value.title
        named.append((sourced.value.folder, title))
        if sourced.value.present:
            _add(context, sourced, title)
        elif sourced.value.fields:
            raise refuse("a link that is to be absent has no fields", sourced.source, "leave one of the two out")
        else:
            context.builder.look(f"link:{_key(sourced.value.folder, title)}")
            entry = _entry(context, sourced.value.folder, title, sourced.source)
            if entry is None:
                context.builder.holding.append(Expectation("link", _key(sourced.value.folder, title), None))
            elif not _is_left(context, entry):
                _delete(context, sourced.value.folder, title, sourced.source)
    if links.exactly:
        _only(context, named, links.exactly)


def is_home(asset: Asset, title: str, folder: Folder, link_title: str) -> bool:
    """Return whether a link would be the asset itself, where it lives."""
    return asset.folder is not None and same_folder(asset.folder, folder) and same_text(link_title, title)


def _is_left(context: PlanContext, entry: Entry) -> bool:
    """Return whether a link is left alone, because it is no longer what the run wrote (undo)."""
    key, shown = _key(entry.folder, entry.title), _shown(entry)
    if f"link:{key}" not in context.still or same_shown(mapping(context.still[f"link:{key}"]), shown):
        return False
    context.builder.warnings.append(
        left_alone(f"{context.title}: link {key}", shown, context.still[f"link:{key}"] or key)
    )
    return True


def _shown(entry: Entry) -> dict[str, Json]:
    """Return what distinguishes a link from others, and what can be changed of it."""
    fields: dict[str, Json] = {name: text for name in LINK_FIELD if (text := entry.attributes.get(name))}
    return {"link_id": entry.link_id, **fields}


def _key(folder: Folder, title: str) -> str:
    return show_folder((*folder, title))


def _entry(context: PlanContext, folder: Folder, title: str, source: TaskSource) -> Entry | None:
    """Return the entry of that title in that folder; an entry of another clip is an error."""
    entry = entry_called(context.live.folders.get(folder) or (), folder, title)
    if entry is not None and differing(context.asset, entry):
        raise refuse(
            f"another clip is at {_key(folder, title)}: it differs in {', '.join(differing(context.asset, entry))}",
            source,
            "give the link another title, or check that entry",
        )
    return entry


def _add(context: PlanContext, sourced: Sourced[DesiredLink], title: str) -> None:
    folder, source = sourced.value.folder, sourced.source
    if sourced.value.fields and same_text(title, context.title):
        raise refuse(
            f"the link {_key(folder, title)} has the asset's own title, which leads to the asset: its fields "
            "cannot be set",
            source,
            "give the link a unique title, or use `fields` of the asset",
        )
    if is_home(context.asset, context.title, folder, title):
        context.builder.look("folder")
        return
    context.builder.look(f"link:{_key(folder, title)}")
    desired = {name: wire_value(context.asset, name, value, source) for name, value in sourced.value.fields.items()}
    for name in desired:
        requests.require_field(context.server, name)
    entry = _entry(context, folder, title, source)
    if entry is not None:
        _change_fields(context, entry, desired, source)
        return
    dialect = context.server.dialect
    if context.live.folders.get(folder) is None and dialect.folder_missing == "refuse":
        raise refuse(
            f"folder {show_folder(folder) or '/'} not found in {context.database}: a link cannot be placed in it",
            source,
            "create the folder, or set `folder_missing: create` in the server's dialect if the server creates folders",
        )
    key = _key(folder, title)
    # Nothing in the interface takes a link away again, unless the dialect names a way.
    reversible = dialect.removes_links and not same_text(title, context.title)
    fields = {name: value for name, value in desired.items() if value}
    after: Json = {name: shown_field(name, value) for name, value in fields.items()} or key
    number = context.builder.change("add", "link", key, None, after, source, reversible=reversible)
    request = requests.copy_link(context.path, title, folder)
    context.builder.send(Phase.LINK_CREATE, request, [number], Expectation("link", key, key))
    for name, value in fields.items():
        _set_field(context, key, name, value, number)


def _change_fields(context: PlanContext, entry: Entry, desired: Mapping[str, str], source: TaskSource) -> None:
    """Set the fields of a link that differ from what its folder lists, else from what was last written."""
    key = _key(entry.folder, entry.title)
    context.builder.holding.append(Expectation("link", key, key))
    known: dict[str, tuple[Json, Basis]] = {}
    for name, value in desired.items():
        what = f"{context.title}: {name} of link {key}"
        found = compare_field(context, name, value, entry.attributes, what, link=key)
        known |= {name: found} if found else {}
        context.builder.holding.append(Expectation("link", f"{key}#{name}", {name: value}))
    if not known:
        return
    before: dict[str, Json] = {name: value for name, (value, _) in known.items()}
    after: dict[str, Json] = {name: shown_field(name, desired[name]) for name in known}
    bases = [basis for _, basis in known.values()]
    overall = min(bases, key=("live", "ledger", "none").index)
    number = context.builder.change(
        "change", "link", key, before, after, source, basis=overall, reversible="none" not in bases
    )
    for name, (_, basis) in known.items():
        _set_field(context, key, name, desired[name], number, visible=basis == "live")


def _set_field(context: PlanContext, key: str, name: str, value: str, number: int, *, visible: bool = False) -> None:
    """Send SETFIELD to the link by its own title; that this leads to the link is checked before (``unlink``)."""
    request = requests.set_field(_path_by_title(context, parse_folder(key)[-1]), name, value)
    expect = Expectation("link", f"{key}#{name}", {name: value}, visible=visible)
    context.builder.send(Phase.LINK_FIELD, request, [number], expect)


def _path_by_title(context: PlanContext, title: str) -> str:
    requests.require_address(context.server, Address(title))
    return requests.asset_path(context.database, Address(title), dialect=context.server.dialect)


def _delete(context: PlanContext, folder: Folder, title: str, source: TaskSource, *, exactly: bool = False) -> None:
    key = _key(folder, title)
    if not context.server.dialect.removes_links:
        raise refuse(
            f"the link {key} cannot be removed: the interface has no way to remove a link",
            source,
            "remove it by hand; or, tried on a scratch clip, set `link_delete: by_title` in the server's dialect",
        )
    if same_text(title, context.title):
        raise refuse(
            f"the link {key} has the asset's own title: deleting by that title would delete the asset",
            source,
            "remove it by hand",
        )
    number = context.builder.change("delete", "link", key, key, None, source, losses=int(exactly))
    path = _path_by_title(context, title)
    # A server that deletes the clip instead of its link must not pass verification.
    stays = Expectation("asset", context.title, True)
    context.builder.send(
        Phase.LINK_DELETE, requests.delete_asset(path), [number], Expectation("link", key, None), stays
    )


def _only(context: PlanContext, named: Sequence[tuple[Folder, str]], exactly: TaskSource) -> None:
    context.builder.look("links")
    live = context.live.links or ()
    surplus = [
        link
        for link in live
        if not is_home(context.asset, context.title, link.folder, link.title)
        and not any(same_folder(link.folder, folder) and same_text(link.title, title) for folder, title in named)
    ]
    for link in surplus:
        _delete(context, link.folder, link.title, exactly, exactly=True)
    if surplus and len(surplus) == len(live):
        context.builder.emptied.append(("link", len(surplus)))


# Verification and memory ---------------------------------------------------------------------------------------


def link_entry(key: str, live: LiveTarget) -> Entry | None:
    """Return the entry that a link's folder lists."""
    *folder, title = parse_folder(key) or ("",)
    return entry_called(live.folders.get(tuple(folder)) or (), tuple(folder), title)


def _alike(expect: Expectation, live: LiveTarget) -> list[str]:
    found = link_entry(expect.key, live) if expect.desired == expect.key else None
    if found is None:
        return []
    entries = live.folders.get(parse_folder(expect.key)[:-1]) or ()
    place = found.folder, found.title
    return [f"link_id {each.link_id}" for each in entries if (each.folder, each.title) == place]


def _holds(expect: Expectation, live: LiveTarget) -> bool | None:
    for name, value in mapping(expect.desired).items():  # one field of the link
        entry = link_entry(expect.key.removesuffix(f"#{name}"), live)
        if entry is None:
            return False
        return field_holds(name, str(value), entry.attributes, visible=expect.visible)
    folder = parse_folder(expect.key)[:-1]
    if folder not in live.folders:
        return None if live.asset is not None else expect.desired is None
    return (link_entry(expect.key, live) is None) == (expect.desired is None)


def _show(expect: Expectation, live: LiveTarget) -> Json:
    for name in mapping(expect.desired):
        entry = link_entry(expect.key.removesuffix(f"#{name}"), live)
        return {name: entry.attributes.get(name)} if entry is not None else None
    return None if expect.desired is not None else expect.key


def _remember(expect: Expectation, live: LiveTarget) -> Iterator[Item]:
    """Keep a field of a link that its folder does not list."""
    for name, value in mapping(expect.desired).items():
        entry = link_entry(expect.key.removesuffix(f"#{name}"), live)
        reported = expect.visible or (entry is not None and name in entry.attributes)
        yield from remember_field(f"link-field:{expect.key}", value, reported=reported)


def _learn(expect: Expectation, live: LiveTarget) -> Iterator[Item]:
    """Keep a link as its folder listed it after our write: undo sees what others changed since."""
    entry = link_entry(expect.key, live) if expect.desired == expect.key else None
    if entry is not None:
        yield f"link:{expect.key}", _shown(entry)


# Undo ----------------------------------------------------------------------------------------------------------


def _titles(change: Change) -> tuple[str, str, str]:
    title = parse_folder(change.key)[-1]
    return f"the title of link {change.key!r}", title if change.before is not None else "", title


def why_ambiguous(title: str, links: Sequence[Link]) -> str | None:
    """Return why deleting by a title may take another link of the asset; ``None`` where there is just one."""
    count = sum(plain(link.title) == plain(title) for link in links)
    return f"{count} links of the asset have its title, and the wrong one may go" if count > 1 else None


def _why_not_undone(change: Change, record: TargetRecord, spec: ServerSpec) -> str | None:
    if change.action != "add":
        return None
    if not spec.dialect.removes_links:
        return "the interface has no way to remove a link"
    titles = {record.target.name, record.target.address_after.name, record.target.address.name}
    own = any(same_text(parse_folder(change.key)[-1], title) for title in titles)
    return "the link has the asset's own title: deleting by it would delete the asset" if own else None


def _undo(context: UndoContext) -> Links:
    """Return the links as they were, except those with an ambiguous title; add a note for each of these."""
    links: list[Any] = []
    for change in (one.change for one in context.of("link")):
        if change.action == "add":
            context.still[f"link:{change.key}"] = context.record.learned.get(f"link:{change.key}")
        wrote = mapping(change.after)
        context.still.update({f"link-field:{change.key}#{name}": value for name, value in wrote.items()})
        *folder, title = parse_folder(change.key)
        why = why_ambiguous(title, context.links) if change.action == "add" else None
        if why is not None:
            context.notes.append(f"link {change.key} cannot be undone: {why}")
            continue
        fields = mapping(change.before) if change.action == "change" else {}
        before = {name: text_of(value) for name, value in fields.items()}
        links.append(context.sourced(DesiredLink(tuple(folder), title, present=change.action != "add", fields=before)))
    return Links(tuple(links))


def _look_at_field(_: Asset, live: LiveTarget, key: str) -> Json:
    link, _sign, name = key.rpartition("#")
    entry = link_entry(link, live)
    return None if entry is None else [entry.link_id, entry.attributes.get(name)]


# Export ------------------------------------------------------------------------------------------------------------


def _export(snapshot: AssetSnapshot, dialect: Dialect) -> ExportedPart:
    # Where links cannot be removed, `exactly` never names them: a link made by hand would stop every later run.
    part = ExportedPart(complete=dialect.removes_links)
    title = snapshot.asset.title or snapshot.title
    for stranger in snapshot.strangers:
        place = show_folder((*stranger.folder, stranger.title))
        part.leave_out(f"another clip is at {place}: no link, though it has the same title")
    home = (snapshot.asset.folder, title)
    places = sorted({(link.folder, link.title) for link in snapshot.links or ()} - {home})
    for folder, name in places:
        if name.strip():
            sourced = {"folder": show_folder(folder) or "/"} | ({} if name == title else {"title": name})
            part.add(FlowStyle(sourced))
        else:
            part.leave_out(f"a link without a title in {show_folder(folder) or '/'}")
    return part


ASPECT = Aspect(
    name="link",
    keys={"links": asset_key(list[Value[LinkArgs]], "links to the asset in folders")},
    rules=(rule.complete("links", ("links",)),),
    exactly=("links", asset_key(bool, "remove other links")),
    check=_check,
    declare=_declare,
    export=_export,
    merge=_merge,
    reads=_reads,
    of_entry=_of_entry,
    plan=plan_links,
    looks={
        "link": lambda _, live, key: link_entry(key, live) is not None,
        "links": lambda _, live, __: (
            None if live.links is None else sorted([_key(link.folder, link.title) for link in live.links])
        ),
        "link-field": _look_at_field,
    },
    holds=_holds,
    alike=_alike,
    show=_show,
    needs_asset=False,
    is_entry=True,
    survives_deletion=True,
    # The server may answer the title of both with the link.
    alters=lambda change, title: {"link_id"} if same_text(parse_folder(change.key)[-1], title) else (),
    takes=lambda change, _: None if change.action == "delete" else parse_folder(change.key),
    titles=_titles,
    remember=_remember,
    learn=_learn,
    why_not_undone=_why_not_undone,
    subject=lambda change: change.key.rpartition("/")[0],
    dialect=("folder_missing",),
    undo=_undo,
)
