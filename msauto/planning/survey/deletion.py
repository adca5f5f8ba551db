"""Before an asset is deleted: which entries show its clip, and whether it is the clip itself that is named.

The interface deletes by title or key id («Delete asset»). A link is an entry of the same clip in another folder, and a
server may delete the clip for it. So the whole database is listed once for a run, and every entry of the clip is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import structs

from msauto.diffing.builder import refuse
from msauto.diffing.comparison import same_folder, same_text
from msauto.model.desired import DesiredAsset
from msauto.model.identity import is_other_clip
from msauto.model.live import Asset, ClipEntries, Entry, Folder, show_folder
from msauto.model.plan import Address
from msauto.model.ports import Reader
from msauto.server.clip_identity import read_entries_of


@dataclass(frozen=True, slots=True)
class Deletion:
    """An asset that is to be deleted: its answer, the title that it has there, and the entries that a select chose."""

    database: str
    asset: Asset
    title: str
    address: Address
    chosen: Sequence[Entry]
    desired: DesiredAsset


def places_of(asset: Asset, title: str, entries: ClipEntries) -> tuple[Folder, ...]:
    """Return folder and title of every entry that shows the clip, without the one that is the target itself."""
    own = _own_entry(asset, title, entries.same)
    if own is not None and (asset.folder is None or not same_folder(own.folder, asset.folder)):
        own = None  # a link, and the target is known by the folder of its clip
    return tuple((*entry.folder, entry.title) for entry in entries.same if entry is not own)


def _own_entry(asset: Asset, title: str, entries: Sequence[Entry]) -> Entry | None:
    """Return the entry that goes by this title: the one of that ``link_id``, else the one where the clip lives."""
    by_id = [entry for entry in entries if asset.link_id is not None and entry.link_id == asset.link_id]
    called = [entry for entry in entries if same_text(entry.title, title)]
    home = [entry for entry in called if asset.folder is not None and same_folder(entry.folder, asset.folder)]
    alone = called if len(called) == 1 else []
    return next(iter([*by_id, *home, *alone]), None)


async def check_deletion(reader: Reader, deletion: Deletion) -> ClipEntries | None:
    """Return the entries that show the clip, or ``None`` where it is deleted already and only kept open.

    Raises ``PlanningError`` where a link is named in place of the clip, where links show the clip and the task does not
    consent, and where another clip has the same title.
    """
    database, asset = deletion.database, structs.replace(deletion.asset, title=deletion.title)
    entries = await read_entries_of(reader, database, asset)
    if deletion.address.namespace and not entries.same and await _is_gone(reader, deletion):
        return None
    _check_is_no_link(deletion, entries)
    _check_namesakes(deletion, entries)
    own = _own_entry(asset, deletion.title, entries.same)
    if any(entry is not own for entry in entries.same) and not deletion.desired.with_links:
        raise refuse(
            f"{deletion.title!r} shows in more than one place ({_listed(entries.same)}), "
            "and a clip is not deleted while links show it",
            deletion.desired.source,
            "remove the links first, or write `with_links: true` to delete the clip with all of them",
        )
    return entries


async def _is_gone(reader: Reader, deletion: Deletion) -> bool:
    """Tell whether the title no longer leads to the clip: it was deleted, and is open («States and transitions»)."""
    answer = await reader.read_asset(deletion.database, Address(deletion.title))
    return answer is None or is_other_clip(answer, deletion.asset)


def _home_is_known(asset: Asset) -> bool:
    return asset.folder is not None and asset.folder_otherwise is None


def _check_is_no_link(deletion: Deletion, entries: ClipEntries) -> None:
    """Refuse to delete a clip for an entry in a folder other than the one that it lives in."""
    asset, home = deletion.asset, deletion.asset.folder
    if home is None or not _home_is_known(asset):
        return
    named = deletion.chosen or [entry for entry in entries.same if _is_named(deletion, entry)]
    at_home = any(same_folder(entry.folder, home) for entry in named)
    if not named or (at_home and not _has_older(deletion, entries.same)):
        return
    raise refuse(
        f"the entry {_shown(named[0])} is a link, and its clip is not deleted for a link; it shows in: "
        f"{_listed(entries.same)}",
        deletion.desired.source,
        "name the clip by its own title, or select it where it lives",
    )


def _has_older(deletion: Deletion, entries: Sequence[Entry]) -> bool:
    """Tell whether the clip was there before, under another title: a link is made after its clip, so this is one."""
    mine = deletion.asset.link_id
    if mine is None:
        return False
    older = [each for each in entries if each.link_id is not None and each.link_id < mine]
    return bool(older) and not any(same_text(each.title, deletion.title) for each in older)


def _is_named(deletion: Deletion, entry: Entry) -> bool:
    """Tell whether the title, or the key id, may lead to an entry."""
    if deletion.address.namespace:
        return entry.link_id is not None and entry.link_id == deletion.asset.link_id
    return same_text(entry.title, deletion.title)


def _check_namesakes(deletion: Deletion, entries: ClipEntries) -> None:
    """Refuse to delete by a title that two clips have, unless the task says where its clip lives."""
    if not entries.namesakes or deletion.address.namespace or deletion.desired.folder is not None:
        return
    raise refuse(
        f"two clips have the title {deletion.title!r}: {_listed([*entries.same, *entries.namesakes])}",
        deletion.desired.source,
        "write `folder:` to say where the clip lives, or address it by a key field with `id:`",
    )


def _shown(entry: Entry) -> str:
    return show_folder((*entry.folder, entry.title))


def _listed(entries: Sequence[Entry]) -> str:
    return ", ".join(map(_shown, entries))
