"""Read a target again, before and after it is applied: exactly the values that the plan was made from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence

from msauto.aspects import ASPECTS
from msauto.errors import UnsupportedError
from msauto.model.live import Entry, Folder, Listing, Xmp, parse_folder
from msauto.model.plan import Address, Target
from msauto.model.ports import LiveTarget, Reader


def folders_to_read(target: Target) -> tuple[Folder, ...]:
    """Return the folders in which links are compared."""
    keys = (name.removeprefix("link:") for name in target.looked if name.startswith("link:"))
    changed = (change.key for change in target.changes if ASPECTS[change.aspect].is_entry)
    return tuple(dict.fromkeys(parse_folder(key)[:-1] for key in (*keys, *changed)))


def xmp_names(target: Target) -> frozenset[str]:
    """Return the names of the XMP fields that are compared."""
    return frozenset(name.removeprefix("xmp:") for name in target.looked if name.startswith("xmp:"))


async def read_live(target: Target, reader: Reader, *, after: bool = False) -> LiveTarget:
    """Read what was compared of a target and nothing else; ``after`` its run under its new title.

    Raises ``ServerError``.
    """
    if target.kind == "rss_channel":
        return LiveTarget(channel=await reader.read_channel(target.name))
    if target.kind != "asset":
        return LiveTarget()
    address = target.address_after if after else target.address
    asset = await reader.read_asset(target.database, address)
    if asset is None:
        return LiveTarget()
    names = xmp_names(target)
    every = "fact:xmp" in target.looked
    every_link = not {"links", "fact:links"}.isdisjoint(target.looked)  # that needs a listing of the whole database
    return LiveTarget(
        asset=asset,
        xmp=await read_xmp_fields(reader, target.database, address, names, every=every) if names or every else None,
        folders=await read_folders(reader.read_folder, target.database, folders_to_read(target)),
        links=await reader.read_links(target.database, asset) if every_link else None,
    )


async def read_xmp_fields(
    reader: Reader, database: str, address: Address, names: frozenset[str], *, every: bool = False
) -> Xmp | None:
    """Return XMP fields, all or those named; ``None`` where the server does not report them (an old version)."""
    try:
        fields = await reader.read_xmp(database, address, frozenset()) if every else None
        return fields if fields or (every and not names) else await reader.read_xmp(database, address, names)
    except UnsupportedError:
        return None


async def read_folders(
    read: Callable[[str, Folder], Awaitable[Listing | None]], database: str, folders: Iterable[Folder]
) -> dict[Folder, Sequence[Entry] | None]:
    """Return the entries of each folder; ``None`` for a missing folder."""
    listings = {folder: await read(database, folder) for folder in folders}
    return {folder: None if listing is None else listing.entries for folder, listing in listings.items()}
