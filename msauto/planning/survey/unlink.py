"""Before a link goes or is changed by its title: that must lead to this one link; nothing else tells which is meant.

The interface has no way to remove a link; ``link_delete: by_title`` sends a DELETE of the link's title (field notes).
Two links of one title, or another clip of that title, and the wrong thing would go.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from msauto.aspects.link import why_ambiguous
from msauto.diffing.builder import refuse
from msauto.diffing.comparison import entry_called, same_folder
from msauto.model.identity import is_other_clip, is_same_clip, may_be_same_clip
from msauto.model.live import Asset, Entry, Folder, parse_folder
from msauto.model.plan import Address, Change
from msauto.model.ports import Reader
from msauto.server.clip_identity import are_one_clip


async def check_unlinks(reader: Reader, database: str, asset: Asset, title: str, changes: Sequence[Change]) -> None:
    """Raise ``PlanningError`` for the first link that goes, and whose title leads to more or to something else.

    So too for the first link whose fields change, and whose title does not surely lead to it.
    """
    for change in changes:
        if change.aspect == "link" and isinstance(change.after, dict):
            await _check_address(reader, database, change)
    going = [change for change in changes if change.aspect == "link" and change.action == "delete"]
    if not going:
        return
    links = await reader.read_links(database, asset)
    asset = structs.replace(asset, title=asset.title or title)
    for change in going:
        called = parse_folder(change.key)[-1]
        why = why_ambiguous(called, links)
        answer = await reader.read_asset(database, Address(called)) if why is None else None
        if answer is not None:
            why = _why_not(asset, parse_folder(change.key)[:-1], answer)
        if why is None and answer is not None and change.exactly:
            why = await _why_unsure(reader, database, asset, structs.replace(answer, title=called))
        if why is not None:
            raise refuse(f"the link {change.key} cannot be removed: {why}", change.source, "remove it by hand")


async def _check_address(reader: Reader, database: str, change: Change) -> None:
    """Refuse to set the fields of a link by a title that leads elsewhere: a new link's must lead nowhere yet."""
    *folder, title = parse_folder(change.key)
    answer = await reader.read_asset(database, Address(title))
    if change.action == "add":
        if answer is None:
            return
        why = "its title leads to another entry already"
    else:
        listing = await reader.read_folder(database, tuple(folder))
        entry = entry_called(listing.entries if listing else (), tuple(folder), title)
        if answer and entry and answer.link_id is not None and answer.link_id == entry.link_id:
            return
        why = f"its title leads to another entry, or the server does not say to which ({_ids(answer, entry)})"
    raise refuse(
        f"the fields of the link {change.key} cannot be set: {why}",
        change.source,
        "give the link a title that no other entry has, or set its fields by hand",
    )


async def _why_unsure(reader: Reader, database: str, asset: Asset, answer: Asset) -> str | None:
    """Return why what no task names may be no link of the asset at all; ``None`` where it surely is one."""
    if await are_one_clip(reader, database, asset, answer):
        return None
    return "nothing that the server reports tells it from another clip that is as long and was made at the same time"


def _ids(answer: Asset | None, entry: Entry | None) -> str:
    told = ["no link_id" if each is None or each.link_id is None else str(each.link_id) for each in (answer, entry)]
    return f"asked by title: {told[0]}, in its folder: {told[1]}"


def _why_not(asset: Asset, folder: Folder, answer: Asset) -> str | None:
    """Return why a link of that folder, whose title got that answer, may be more than a link of the asset.

    Where the server reports the link's own folder for it, only the ``link_id`` is left to tell: a link is made after
    its clip, so one whose number is not greater may be the clip itself.
    """
    if is_other_clip(asset, answer):
        return "another clip answers to its title: that one would be deleted"
    if not (is_same_clip(asset, answer) or may_be_same_clip(asset, answer)):
        return "the server reports too little to tell whether the clip that answers to its title is this one"
    if answer.folder is None or not same_folder(answer.folder, folder):
        return None  # the clip lives elsewhere, so this is a link
    if None in (asset.link_id, answer.link_id) or int(answer.link_id or 0) <= int(asset.link_id or 0):
        return "it is in the folder that the server reports for the clip, and it may be the clip itself"
    return None
