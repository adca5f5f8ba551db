"""Read a target again, and compare: what one request has done, and whether the whole is as desired."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from msgspec import structs

from msauto.aspects import ASPECTS, can_show, difference, holds, is_partly_hidden
from msauto.errors import UnreadableError
from msauto.model.live import Asset, Entry, Folder, Listing, parse_folder
from msauto.model.plan import Address, AspectName, Expectation, Json, Request, Target
from msauto.model.ports import LiveTarget, Reader
from msauto.model.result import Difference
from msauto.planning import target_reading

Verdict = Literal["all", "some", "none", "hidden"]
"""How much of what a request should do is seen; ``hidden``: reading cannot show all of it."""


def verdict_of(request: Request, live: LiveTarget) -> Verdict:
    """Return how much of what the request should do is seen in ``live``."""
    seen = [holds(each, live) for each in request.expect]
    if any(one is False for one in seen):
        return "some" if any(seen) else "none"
    return "all" if seen and all(seen) else "hidden"


def final_expectations(target: Target) -> tuple[Expectation, ...]:
    """Return what all requests together must show: the last expectation of each thing, in the order of the first.

    What a later request overrules is left out: all of a deleted asset, the numbers that a segmentation takes over,
    the guid under which an item is put again.
    """
    last: dict[tuple[str, str], Expectation] = {}
    for expect in (expect for request in target.requests for expect in request.expect):
        last[expect.aspect, expect.key] = expect
    if any(expect.aspect == "asset" and expect.desired is None for expect in last.values()):
        return tuple(expect for expect in last.values() if ASPECTS[expect.aspect].survives_deletion)
    return tuple(
        expect
        for expect in last.values()
        if expect.desired is not None
        or not any(ASPECTS[expect.aspect].is_overruled(expect, other) for other in last.values())
    )


def learned(target: Target, live: LiveTarget) -> dict[str, Json]:
    """Return what the server named: the uids of new markers, by ``marker:<key>``."""
    return dict(item for each in final_expectations(target) for item in ASPECTS[each.aspect].learn(each, live))


def differences_of(target: Target, live: LiveTarget) -> tuple[Difference, ...]:
    """Return what differs, by the last expectation of each thing."""
    # A server may give a new marker the uid of one that was deleted just before; the deletion still holds.
    taken = {f"uid {uid}" for uid in learned(target, live).values()}
    expected = (each for each in final_expectations(target) if each.desired is not None or each.key not in taken)
    found = (difference(each, live) for each in expected)
    return tuple(each for each in found if each is not None)


def not_seen(target: Target, live: LiveTarget) -> tuple[str, ...]:
    """Return the keys of what the target's requests expect and reading does not show, or cannot."""
    return tuple(each.key for each in final_expectations(target) if holds(each, live) is not True)


def shown(target: Target, live: LiveTarget) -> tuple[int, tuple[AspectName, ...]]:
    """Count what reading shows of what was done; return the aspects of what it does not show, or not the whole of."""
    expected = final_expectations(target)
    seen = sum(holds(each, live) is not None for each in expected)
    return seen, tuple(each.aspect for each in expected if is_partly_hidden(each, live))


def only(target: Target, first: int, end: int) -> Target:
    """Return the target as if it had the requests ``first`` to before ``end`` alone."""
    return structs.replace(target, requests=target.requests[first:end])


def can_see(target: Target) -> bool:
    """Return whether reading can show anything of what the target's requests do."""
    return any(can_show(each) for request in target.requests for each in request.expect)


def rename_of(target: Target) -> int | None:
    """Return the index of the request that renames the asset: from then on it has its other address."""
    if target.address == target.address_after:
        return None
    for index, request in enumerate(target.requests):
        if any(target.changes[change].aspect == "title" for change in request.changes):
            return index
    return None


def addresses(target: Target, end: int) -> tuple[Address, ...]:
    """Return where the asset may be once the requests before ``end`` were sent, the likeliest first.

    A deleted one is looked for by its title alone: an open file may answer to its key id for as long as it is open.
    """
    if any(change.aspect == "asset" and change.action == "delete" for change in target.changes):
        return (target.address_after,)
    rename = rename_of(target)
    if rename is None or end <= rename:
        return (target.address,)
    return (target.address_after, target.address)


@dataclass(slots=True)
class _SharedListing:
    """One folder that is asked for: how many readings were begun, what the last one gave, how many wait."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    begun: int = 0
    gave: int = 0
    listing: Listing | None = None
    error: Exception | None = None
    waiting: int = 0


class SharedFolders:
    """Folders of one server, read once for all callers that ask for the same one at about the same time.

    A caller that asks during a reading waits for the next one, because that reading may have begun before the caller's
    last write was done. So a thousand verifications of one folder take a few readings, and none sees an old state.
    """

    def __init__(self) -> None:
        self._shelves: dict[tuple[str, Folder], _SharedListing] = {}

    async def read(self, reader: Reader, database: str, folder: Folder) -> Listing | None:
        """Return a listing whose reading began after this call; errors are those of the reader."""
        shelf = self._shelves.setdefault((database, folder), _SharedListing())
        begun_before = shelf.begun
        shelf.waiting += 1
        try:
            async with shelf.lock:
                if shelf.gave <= begun_before:
                    shelf.begun += 1
                    try:
                        shelf.listing, shelf.error = await reader.fresh().read_folder(database, folder), None
                    except Exception as error:  # noqa: BLE001 - it is raised again for all who wait
                        shelf.listing, shelf.error = None, error
                    shelf.gave = shelf.begun
        finally:
            shelf.waiting -= 1
            if not shelf.waiting:
                del self._shelves[database, folder]
        if shelf.error is not None:
            raise shelf.error
        return shelf.listing


async def read_again(reader: Reader, shared: SharedFolders, target: Target, places: tuple[Address, ...]) -> LiveTarget:
    """Return all that the target's requests expect something of, read again; raises ``ServerError``.

    ``reader`` has asked nothing yet. An asset that is gone counts only where its database is there.
    """
    if target.kind == "database":
        return LiveTarget()
    if target.kind == "rss_channel":
        return LiveTarget(channel=await reader.read_channel(target.address.name))
    address, asset = await _find(reader, target, places)
    if asset is None:
        return LiveTarget(folders=await _folders(reader, shared, target))
    names = frozenset(each.key for each in _expected(target, "xmp"))
    xmp = await target_reading.read_xmp_fields(reader, target.database, address, names) if names else None
    return LiveTarget(asset=asset, xmp=xmp, folders=await _folders(reader, shared, target))


def _expected(target: Target, aspect: str) -> Iterator[Expectation]:
    """Yield what the target's requests expect of one aspect: nothing more is read than was changed."""
    return (each for request in target.requests for each in request.expect if each.aspect == aspect)


async def _find(reader: Reader, target: Target, places: tuple[Address, ...]) -> tuple[Address, Asset | None]:
    for address in places:
        asset = await reader.read_asset(target.database, address)
        sure = len(places) == 1 and address == target.address
        if asset is not None and (sure or _is_the_one(target, asset)):
            # Found by title, it has that title even if it reports none: that shows whether a rename was done.
            by_title = asset.title is None and not address.namespace
            return address, structs.replace(asset, title=address.name) if by_title else asset
    if not await reader.has_database(target.database):
        raise UnreadableError(f"database {target.database} not found", server=target.server)
    return places[0], None


def _is_the_one(target: Target, asset: Asset) -> bool:
    """Return whether an asset with the new title is the renamed one, judged by what a rename does not change."""
    if target.link_id is not None and asset.link_id is not None:
        return target.link_id == asset.link_id
    created = asset.attributes.get("create_time")
    return target.create_time is None or created is None or target.create_time == created


async def _folders(reader: Reader, shared: SharedFolders, target: Target) -> Mapping[Folder, Sequence[Entry] | None]:
    folders = dict.fromkeys(parse_folder(each.key)[:-1] for each in _expected(target, "link"))
    return await target_reading.read_folders(partial(shared.read, reader), target.database, folders)
