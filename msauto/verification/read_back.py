"""Read a target again, and compare: what one request has done, and whether the whole is as desired."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, NamedTuple

from msgspec import structs

from msauto.aspects import ASPECTS, can_show, difference, holds
from msauto.errors import UnreadableError
from msauto.model.live import Asset, Entry, Folder, Listing, parse_folder
from msauto.model.plan import Address, AspectName, Expectation, Json, Request, Target
from msauto.model.ports import LiveTarget, Reader
from msauto.model.result import Difference
from msauto.planning import target_reading

ExpectationKey = tuple[str, str]
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
    last = {expectation_key(each): each for each in _expected(target)}.values()
    if any(each.aspect == "asset" and each.desired is None for each in last):
        return tuple(each for each in last if ASPECTS[each.aspect].survives_deletion)
    return tuple(
        each
        for each in last
        if each.desired is not None or not any(ASPECTS[each.aspect].is_overruled(each, other) for other in last)
    )


class Comparison(NamedTuple):
    """What the last read of a target shows of what its requests should have done.

    ``learned`` is what the server named: the uids of new markers, by ``marker:<key>``. ``seen`` counts what reading
    shows; ``unseen`` are the aspects of what it does not show, or not the whole of.
    """

    differences: tuple[Difference, ...]
    learned: dict[str, Json]
    seen: int
    unseen: tuple[AspectName, ...]


def compare(target: Target, live: LiveTarget) -> Comparison:
    """Compare what was read with the last expectation of each thing."""
    expected = final_expectations(target)
    learned = dict(item for each in expected for item in ASPECTS[each.aspect].learn(each, live))
    # A server may give a new marker the uid of one that was deleted just before; the deletion still holds.
    taken = {f"uid {uid}" for uid in learned.values()}
    differences: list[Difference] = []
    unseen: list[AspectName] = []
    seen = 0
    for each in expected:
        verdict = holds(each, live)
        seen += verdict is not None
        if verdict is None or ASPECTS[each.aspect].is_partly_hidden(each, live):
            unseen.append(each.aspect)
        differs = difference(each, live) if verdict is False else None
        if differs is not None and (each.desired is not None or each.key not in taken):
            differences.append(differs)
    return Comparison(tuple(differences), learned, seen, tuple(unseen))


def not_seen(target: Target, live: LiveTarget) -> tuple[str, ...]:
    """Return the keys of what the target's requests expect and reading does not show, or cannot."""
    return tuple(each.key for each in final_expectations(target) if holds(each, live) is not True)


def only(target: Target, first: int, end: int) -> Target:
    """Return the target as if it had the requests ``first`` to before ``end`` alone."""
    whole = first == 0 and end == len(target.requests)
    return target if whole else structs.replace(target, requests=target.requests[first:end])


def can_see(target: Target) -> bool:
    """Return whether reading can show anything of what the target's requests do."""
    return any(map(can_show, _expected(target)))


def rename_of(target: Target) -> int | None:
    """Return the index of the request that renames the asset: from then on it has its other address."""
    if target.address == target.address_after:
        return None
    renames = (any(target.changes[each].aspect == "title" for each in request.changes) for request in target.requests)
    return next((index for index, renamed in enumerate(renames) if renamed), None)


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


def _expected(target: Target, aspect: str | None = None) -> Iterator[Expectation]:
    """Yield what the target's requests expect, or what they expect of one aspect alone."""
    return (each for request in target.requests for each in request.expect if aspect in {None, each.aspect})


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


# Memory --------------------------------------------------------------------------------------------------------


def memories(target: Target, live: LiveTarget, doubtful: Container[ExpectationKey] = frozenset()) -> dict[str, Json]:
    """Return the items ``aspect:key`` to keep of what the target's requests have done; ``None`` forgets one.

    They are what the server does not report, and which uid and guid is whose. Nothing is kept of what is ``doubtful``:
    what was read differs from it.
    """
    kept: dict[str, Json] = {}
    for request in target.requests:
        if not any(expectation_key(each) in doubtful for each in request.expect):
            for change in (target.changes[number] for number in request.changes):
                kept.update(ASPECTS[change.aspect].forget(change))
    for expect in final_expectations(target):
        aspect = ASPECTS[expect.aspect]
        hidden = expect.secret and aspect.value_items is not None  # its value is not known any more
        if not hidden and expectation_key(expect) not in doubtful:
            kept.update(aspect.remember(expect, live))
    expects = tuple(_expected(target))
    for name in {each.aspect: None for each in expects}:
        kept.update(ASPECTS[name].remember_all(expects, live))
    return kept


def expectation_key(sourced: Expectation | Difference) -> ExpectationKey:
    """Return aspect and key of a thing: what an expectation and a difference from it have in common."""
    return sourced.aspect, sourced.key
