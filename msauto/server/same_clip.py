"""Whether two answers are of one clip, and which entries show it: what one answer alone cannot tell.

Equal values mean nothing on a server where all clips have them. So before they are taken for one clip, the listing is
read: either a clip that surely is another one has another file, or the folders show that one entry is a link.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import structs

from msauto.model.identity import differing, fits, is_other_clip, is_same_clip, same_folder, same_text
from msauto.model.live import Asset, ClipEntries, Entry
from msauto.model.plan import Address
from msauto.model.ports import Reader

MOST_LINKS: Final = 50
"""More entries of equal values than this are no links of one clip: on such a server the values tell nothing."""
_MOST_TRIED: Final = 20


async def are_one_clip(reader: Reader, database: str, one: Asset, other: Asset) -> bool:
    """Tell whether two answers, each with its title, are surely of one clip; reads the listing of the database."""
    if not is_same_clip(one, other):
        return False
    if one.link_id is not None and one.link_id == other.link_id and same_text(one.title or "", other.title or ""):
        return True  # one entry, asked for in two ways
    if await _files_tell_clips_apart(reader, database, one):
        return True
    return await _is_link_of(reader, database, one, other) or await _is_link_of(reader, database, other, one)


async def read_entries_of(reader: Reader, database: str, asset: Asset) -> ClipEntries:
    """Return the entries that show a clip; one of another title counts where its own answer is of the same clip."""
    found = await reader.read_entries(database, asset)
    own = [entry for entry in found.same if _bears(entry, asset)]
    others = [entry for entry in found.same if not _bears(entry, asset)]
    if len(others) > MOST_LINKS:
        return structs.replace(found, same=tuple(own))
    links = [entry for entry in others if await _shows(reader, database, entry, asset)]
    return structs.replace(found, same=tuple(entry for entry in found.same if entry in own or entry in links))


def _bears(entry: Entry, asset: Asset) -> bool:
    """Tell whether an entry has the asset's own title, or is the very entry that answered."""
    same_id = asset.link_id is not None and entry.link_id == asset.link_id
    return same_id or same_text(entry.title, asset.title or "")


async def _shows(reader: Reader, database: str, entry: Entry, asset: Asset) -> bool:
    """Tell whether an entry of another title shows the clip, by the answer to its title."""
    answer = await reader.read_asset(database, Address(entry.title))
    if answer is None or not fits(entry, answer) or is_other_clip(asset, answer):
        return False
    answer = answer if answer.title is not None else structs.replace(answer, title=entry.title)
    if answer.folder is not None and asset.folder is not None and not same_folder(answer.folder, entry.folder):
        return same_folder(answer.folder, asset.folder)  # a link of some clip that lives there: it may be this one
    return await are_one_clip(reader, database, asset, answer)


async def _files_tell_clips_apart(reader: Reader, database: str, asset: Asset) -> bool:
    """Tell whether a clip that surely is another one has another file, or original name where no file is reported."""
    for entry in await reader.read_other_clips(database, asset, _MOST_TRIED):
        answer = await reader.read_asset(database, Address(entry.title))
        if answer is None or not differing(asset, answer):
            continue
        files = [(asset.hires, answer.hires), (asset.archive, answer.archive), (asset.proxy, answer.proxy)]
        mine, other = next((pair for pair in files if pair[0]), (None, None))
        if mine and other:
            return mine != other
        if not mine and "orig_name" in differing(asset, answer):
            return True
    return False


async def _is_link_of(reader: Reader, database: str, link: Asset, home: Asset) -> bool:
    """Tell by folders whether one answer is that of a link, and the only clip that it can show is the other one."""
    if link.folder is None or link.link_id is None or home.link_id is None:
        return False
    entries = (await reader.read_entries(database, link)).same
    its = next((entry for entry in entries if entry.link_id == link.link_id), None)
    if its is None or same_folder(its.folder, link.folder):
        return False
    there = [entry for entry in entries if same_folder(entry.folder, link.folder)]
    return _ids(there) == {home.link_id}


def _ids(entries: Sequence[Entry]) -> set[int | None]:
    return {entry.link_id for entry in entries}
