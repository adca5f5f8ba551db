"""Links: shortcuts in folders (COPYLINK). A link is there when its folder lists an entry of that title.

Its own link fields (SETFIELD, interface «Link») are set by its title, where that is not the asset's, and read where its
folder lists it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msauto.aspects.link_fields import shown_field, wire_value
from msauto.diffing.builder import PlanBuilder, PlanContext, left_alone, refuse
from msauto.diffing.comparison import entry_called, same_folder, same_text, same_value
from msauto.diffing.order import Phase
from msauto.interface import address, requests, versions
from msauto.model.desired import ABSENT, DesiredLink, Sourced, TaskSource
from msauto.model.identity import differing
from msauto.model.live import Asset, Entry, Folder, parse_folder, show_folder
from msauto.model.plan import Address, Basis, Expectation, Json


def plan_links(
    context: PlanContext, desired: Sequence[Sourced[DesiredLink]], exactly: TaskSource | None, builder: PlanBuilder
) -> None:
    """Bring the links to what is wanted; with ``exactly`` nothing else stays."""
    named = []
    for sourced in desired:
        title = context.title if sourced.value.title is ABSENT else sourced.value.title
        named.append((sourced.value.folder, title))
        if sourced.value.present:
            _add(context, sourced, title, builder)
        elif sourced.value.fields:
            raise refuse("a link that is to be absent has no fields", sourced.source, "leave one of the two out")
        else:
            _take_away(context, sourced.value.folder, title, sourced.source, builder)
    if exactly:
        _only(context, named, exactly, builder)


def is_home(asset: Asset, title: str, folder: Folder, link_title: str) -> bool:
    """Tell whether a link would be the asset itself, where it lives."""
    return asset.folder is not None and same_folder(asset.folder, folder) and same_text(link_title, title)


def _key(folder: Folder, title: str) -> str:
    return show_folder((*folder, title))


def _entry(context: PlanContext, folder: Folder, title: str, source: TaskSource) -> Entry | None:
    """Return the entry of that title in that folder; one of another clip is an error."""
    entry = entry_called(context.live.folders.get(folder) or (), folder, title)
    if entry is not None and differing(context.asset, entry):
        raise refuse(
            f"another clip stands at {_key(folder, title)}: it differs in {', '.join(differing(context.asset, entry))}",
            source,
            "give the link another title, or look at what stands there",
        )
    return entry


def _add(context: PlanContext, sourced: Sourced[DesiredLink], title: str, builder: PlanBuilder) -> None:
    folder, source = sourced.value.folder, sourced.source
    if sourced.value.fields and same_text(title, context.title):
        raise refuse(
            f"the link {_key(folder, title)} bears the asset's own title: its fields cannot be set, for that title "
            "leads to the asset",
            source,
            "give the link a title of its own, or say `fields` of the asset",
        )
    if is_home(context.asset, context.title, folder, title):
        builder.look("folder")
        return
    builder.look(f"link:{_key(folder, title)}")
    desired = {name: wire_value(context, name, value, source) for name, value in sourced.value.fields.items()}
    if "user_0" in desired:
        versions.require(context.server, versions.Feature.SET_USER_0)
    entry = _entry(context, folder, title, source)
    if entry is not None:
        _change_fields(context, entry, desired, source, builder)
        return
    dialect = context.server.dialect
    if context.live.folders.get(folder) is None and dialect.folder_missing == "refuse":
        raise refuse(
            f"there is no folder {show_folder(folder) or '/'} in {context.database}: a link cannot be placed in it",
            source,
            "make the folder, or set `folder_missing: create` in the server's dialect if it makes folders by itself",
        )
    key = _key(folder, title)
    # Nothing in the interface takes a link away again, unless the dialect names a way.
    reversible = dialect.removes_links and not same_text(title, context.title)
    fields = {name: value for name, value in desired.items() if value}
    after: Json = {name: shown_field(name, value) for name, value in fields.items()} or key
    number = builder.change("add", "link", key, before=None, after=after, source=source, reversible=reversible)
    request = requests.copy_link(context.path, title, folder, dialect)
    builder.send(Phase.LINK_CREATE, request, [number], Expectation("link", key, key))
    for name, value in fields.items():
        _set_field(context, key, name, value, number, builder)


def _change_fields(
    context: PlanContext, entry: Entry, desired: Mapping[str, str], source: TaskSource, builder: PlanBuilder
) -> None:
    """Set the fields of a link that are not as wanted: read where its folder lists it, else as last written."""
    key = _key(entry.folder, entry.title)
    before: dict[str, Json] = {}
    bases: dict[str, Basis] = {}
    for name, value in desired.items():
        known, basis = _known(context, entry, key, name)
        builder.look(f"link-field:{key}#{name}")
        if basis != "none" and same_value(name, known, value):
            continue
        still = context.still.get(f"link-field:{key}#{name}", known)
        if basis != "none" and not same_value(name, known, None if still is None else str(still)):
            builder.warnings.append(
                left_alone(f"{context.title}: {name} of link {key}", shown_field(name, known), still)
            )
            continue
        before[name] = shown_field(name, known) if basis != "none" else None
        bases[name] = basis
    if not bases:
        return
    after: dict[str, Json] = {name: shown_field(name, desired[name]) for name in bases}
    overall = min(bases.values(), key=("live", "ledger", "none").index)
    number = builder.change(
        "change",
        "link",
        key,
        before=before,
        after=after,
        source=source,
        basis=overall,
        reversible="none" not in bases.values(),
    )
    for name, basis in bases.items():
        _set_field(context, key, name, desired[name], number, builder, visible=basis == "live")


def _known(context: PlanContext, entry: Entry, key: str, name: str) -> tuple[str | None, Basis]:
    """Return the value that a link's field has, and how we know."""
    shown = entry.attributes.get(name)
    if shown is not None:
        return shown, "live"
    if context.memory.get(f"link-reported:{key}#{name}") is True:
        return "", "live"
    remembered = context.memory.get(f"link-field:{key}#{name}")
    return (None, "none") if remembered is None else (str(remembered), "ledger")


def _set_field(
    context: PlanContext, key: str, name: str, value: str, number: int, builder: PlanBuilder, *, visible: bool = False
) -> None:
    """Send SETFIELD to the link by its own title; that this leads to the link is checked before (``unlink``)."""
    title = Address(parse_folder(key)[-1])
    versions.require_address(context.server, title)
    path = address.asset_path(context.database, title, dialect=context.server.dialect)
    expect = Expectation("link", f"{key}#{name}", {name: value}, visible=visible)
    builder.send(Phase.LINK_FIELD, requests.set_field(path, name, value), [number], expect)


def _take_away(context: PlanContext, folder: Folder, title: str, source: TaskSource, builder: PlanBuilder) -> None:
    builder.look(f"link:{_key(folder, title)}")
    if _entry(context, folder, title, source) is not None:
        _delete(context, folder, title, source, builder)


def _delete(
    context: PlanContext, folder: Folder, title: str, source: TaskSource, builder: PlanBuilder, *, exactly: bool = False
) -> None:
    key = _key(folder, title)
    if not context.server.dialect.removes_links:
        raise refuse(
            f"the link {key} cannot be removed: the interface has no way to remove a link",
            source,
            "remove it by hand; or, tried on a scratch clip, set `link_delete: by_title` in the server's dialect",
        )
    if same_text(title, context.title):
        raise refuse(
            f"the link {key} bears the asset's own title: deleting by that title would delete the asset",
            source,
            "remove it by hand",
        )
    number = builder.change(
        "delete", "link", key, before=key, after=None, source=source, reversible=True, exactly=exactly
    )
    versions.require_address(context.server, Address(title))
    path = address.asset_path(context.database, Address(title), dialect=context.server.dialect)
    # A server of another opinion deletes the clip for its link: then nobody may say that all is as wanted.
    stays = Expectation("asset", context.title, True)
    builder.send(Phase.LINK_DELETE, requests.delete_asset(path), [number], Expectation("link", key, None), stays)


def _only(context: PlanContext, named: Sequence[tuple[Folder, str]], exactly: TaskSource, builder: PlanBuilder) -> None:
    builder.look("links")
    live = context.live.links or ()
    surplus = [
        link
        for link in live
        if not is_home(context.asset, context.title, link.folder, link.title)
        and not any(same_folder(link.folder, folder) and same_text(link.title, title) for folder, title in named)
    ]
    for link in surplus:
        _delete(context, link.folder, link.title, exactly, builder, exactly=True)
    if surplus and len(surplus) == len(live):
        builder.emptied.append(("link", len(surplus)))
