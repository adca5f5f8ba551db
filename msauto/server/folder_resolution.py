"""Where a clip lives whose folder begins with the name of its database.

The interface calls it «folder of the asset» and no more («Asset (clip)»). Some servers put the database in front; on
others a folder may be named like the database. ``NEWS/Raw`` in the database NEWS is ``Raw`` there, ``NEWS/Raw`` here.
So the server is asked: where it has no such folder, the database stands in front; else the clip is looked for in both.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec import structs

from msauto.errors import RejectedError, UnreadableError
from msauto.model.identity import same_text
from msauto.model.live import Asset, Folder, Listing


async def settle_home(
    asset: Asset,
    database: str,
    has: Callable[[Folder], Awaitable[bool]],
    read: Callable[[Folder], Awaitable[Listing | None]],
) -> Asset:
    """Return the asset with the folder that it lives in; both readings stay where that cannot be told.

    ``has`` tells whether there is a folder, ``read`` lists one.
    """
    otherwise = asset.folder_otherwise
    if otherwise is None or asset.folder is None:
        return asset
    try:
        if not await has((database,)):
            return structs.replace(asset, folder_otherwise=None)
        here, there = _stands(asset, await read(asset.folder)), _stands(asset, await read(otherwise))
    except (RejectedError, UnreadableError):
        return asset
    if here is there:
        return asset
    return structs.replace(asset, folder=asset.folder if here else otherwise, folder_otherwise=None)


def _stands(asset: Asset, listing: Listing | None) -> bool:
    """Tell whether the clip itself stands in a folder: a link to it has its own ``link_id`` (field notes)."""
    entries = [each for each in listing.entries if each.folder == listing.folder] if listing else []
    return any(
        asset.link_id == each.link_id
        if asset.link_id is not None and each.link_id is not None
        else same_text(each.title, asset.title or "")
        for each in entries
    )
