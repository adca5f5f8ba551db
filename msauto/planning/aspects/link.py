"""Links: shortcuts in folders (COPYLINK). A link is there when its folder lists an entry of that title."""

from __future__ import annotations

from collections.abc import Sequence

from msauto.model.identity import differing
from msauto.model.live import Asset, Entry, Folder, show_folder
from msauto.model.plan import Address, Expect
from msauto.model.wanted import ABSENT, LinkWanted, Said, Source
from msauto.planning.compare import entry_called, same_folder, same_text
from msauto.planning.draft import Draft, Scene, refuse
from msauto.planning.order import Phase
from msauto.server import address, requests, versions


def plan_links(scene: Scene, wanted: Sequence[Said[LinkWanted]], exactly: Source | None, draft: Draft) -> None:
    """Bring the links to what is wanted; with ``exactly`` nothing else stays."""
    named = []
    for said in wanted:
        title = scene.title if said.value.title is ABSENT else said.value.title
        named.append((said.value.folder, title))
        if said.value.present:
            _add(scene, said.value.folder, title, said.source, draft)
        else:
            _take_away(scene, said.value.folder, title, said.source, draft)
    if exactly:
        _only(scene, named, exactly, draft)


def is_home(asset: Asset, title: str, folder: Folder, link_title: str) -> bool:
    """Tell whether a link would be the asset itself, where it lives."""
    return asset.folder is not None and same_folder(asset.folder, folder) and same_text(link_title, title)


def _key(folder: Folder, title: str) -> str:
    return show_folder((*folder, title))


def _entry(scene: Scene, folder: Folder, title: str, source: Source) -> Entry | None:
    """Return the entry of that title in that folder; one of another clip is an error."""
    entry = entry_called(scene.live.folders.get(folder) or (), folder, title)
    if entry is not None and differing(scene.asset, entry):
        raise refuse(
            f"another clip stands at {_key(folder, title)}: it differs in {', '.join(differing(scene.asset, entry))}",
            source,
            "give the link another title, or look at what stands there",
        )
    return entry


def _add(scene: Scene, folder: Folder, title: str, source: Source, draft: Draft) -> None:
    if is_home(scene.asset, scene.title, folder, title):
        draft.look("folder")
        return
    draft.look(f"link:{_key(folder, title)}")
    if _entry(scene, folder, title, source) is not None:
        return
    dialect = scene.server.dialect
    if scene.live.folders.get(folder) is None and dialect.folder_missing == "refuse":
        raise refuse(
            f"there is no folder {show_folder(folder) or '/'} in {scene.database}: a link cannot be placed in it",
            source,
            "make the folder, or set `folder_missing: create` in the server's dialect if it makes folders by itself",
        )
    key = _key(folder, title)
    # Nothing in the interface takes a link away again, unless the dialect names a way.
    reversible = dialect.removes_links and not same_text(title, scene.title)
    number = draft.change("add", "link", key, before=None, after=key, source=source, reversible=reversible)
    request = requests.copy_link(scene.path, title, folder, dialect)
    draft.send(Phase.LINK_CREATE, request, [number], Expect("link", key, key))


def _take_away(scene: Scene, folder: Folder, title: str, source: Source, draft: Draft) -> None:
    draft.look(f"link:{_key(folder, title)}")
    if _entry(scene, folder, title, source) is not None:
        _delete(scene, folder, title, source, draft)


def _delete(scene: Scene, folder: Folder, title: str, source: Source, draft: Draft, *, exactly: bool = False) -> None:
    key = _key(folder, title)
    if not scene.server.dialect.removes_links:
        raise refuse(
            f"the link {key} cannot be removed: the interface has no way to remove a link",
            source,
            "remove it by hand; or, tried on a scratch clip, set `link_delete: by_title` in the server's dialect",
        )
    if same_text(title, scene.title):
        raise refuse(
            f"the link {key} bears the asset's own title: deleting by that title would delete the asset",
            source,
            "remove it by hand",
        )
    number = draft.change(
        "delete", "link", key, before=key, after=None, source=source, reversible=True, exactly=exactly
    )
    versions.require_address(scene.server, Address(title))
    path = address.asset_path(scene.database, Address(title), dialect=scene.server.dialect)
    # A server of another opinion deletes the clip for its link: then nobody may say that all is as wanted.
    stays = Expect("asset", scene.title, True)
    draft.send(Phase.LINK_DELETE, requests.delete_asset(path), [number], Expect("link", key, None), stays)


def _only(scene: Scene, named: Sequence[tuple[Folder, str]], exactly: Source, draft: Draft) -> None:
    draft.look("links")
    live = scene.live.links or ()
    surplus = [
        link
        for link in live
        if not is_home(scene.asset, scene.title, link.folder, link.title)
        and not any(same_folder(link.folder, folder) and same_text(link.title, title) for folder, title in named)
    ]
    for link in surplus:
        _delete(scene, link.folder, link.title, exactly, draft, exactly=True)
    if surplus and len(surplus) == len(live):
        draft.emptied.append(("link", len(surplus)))
