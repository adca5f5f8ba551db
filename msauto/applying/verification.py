"""Read a target again, and compare: what one request has done, and whether the whole is as desired."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Set
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Literal

from msgspec import Struct, field, structs

from msauto.aspects import ASPECTS, can_show, difference, holds, is_deletion, twice
from msauto.aspects.comparison import mapping
from msauto.errors import AnotherClipError, UnreadableError
from msauto.model.identity import ClipIdentity, describe_clip, is_another_clip, same_text
from msauto.model.live import Asset, Folder, Listing, parse_folder
from msauto.model.plan import Address, AspectName, Expectation, Json, Target
from msauto.model.ports import LiveTarget, Reader
from msauto.model.result import Difference
from msauto.planning import target_reading
from msauto.planning.deletion import is_home_of

ExpectationKey = tuple[str, str]
Verdict = Literal["all", "some", "none", "hidden"]
"""How much of what a request should do is seen; ``hidden``: reading cannot show all of it."""


def verdict_of(target: Target, live: LiveTarget) -> Verdict:
    """Return how much of what the target's requests should do is seen in ``live``."""
    is_planned = live.asset is None or (target.clip.is_known and is_home_of(target, live.asset))
    expected = _expected(target)
    if _delete_asset(expected) and not is_planned:
        return "hidden"  # it may be another clip of the same title
    if any(twice(each, live) for each in expected):
        return "some"
    seen = [holds(each, live) for each in expected]
    if any(one is False for one in seen):
        return "some" if any(seen) else "none"
    return "all" if seen and all(seen) else "hidden"


def final_expectations(target: Target) -> tuple[Expectation, ...]:
    """Return what all requests together must show: the last expectation of each thing, in the order of the first.

    What a later request overrules is left out: all of a deleted asset, the numbers that a segmentation takes over,
    the guid under which an item is put again.
    """
    last = {expectation_key(each): each for each in _expected(target)}.values()
    if _delete_asset(last):
        return tuple(each for each in last if ASPECTS[each.aspect].survives_deletion)

    def is_overruled(each: Expectation) -> bool:
        overrules = ASPECTS[each.aspect].is_overruled if each.desired is None else None
        return overrules is not None and any(overrules(each, other) for other in last)

    return tuple(each for each in last if not is_overruled(each))


def expectation_key(sourced: Expectation | Difference) -> ExpectationKey:
    """Return aspect and key of a thing: what an expectation and a difference from it have in common."""
    return sourced.aspect, sourced.key


class Comparison(Struct, frozen=True):
    """What the last read of a target shows of what its requests should have done.

    ``learned`` is how the run left list items, by ``<aspect>:<key>``: undo compares with it. ``remembered`` are the
    items that the ledger keeps, ``None`` forgets one. ``seen`` counts what reading shows; ``unseen`` are the aspects of
    what it does not show, or not the whole of.
    """

    differences: tuple[Difference, ...] = ()
    learned: dict[str, Json] = field(default_factory=dict)
    remembered: dict[str, Json] = field(default_factory=dict)
    seen: int = 0
    unseen: tuple[AspectName, ...] = ()


def compare(target: Target, live: LiveTarget) -> Comparison:
    """Compare what was read with the last expectation of each thing."""
    expected = final_expectations(target)
    learned = dict(item for each in expected for item in ASPECTS[each.aspect].learn(each, live))
    # A server may give a new marker the uid of one that was deleted just before; the deletion still holds.
    taken = {f"uid {mapping(item)['uid']}" for item in learned.values() if "uid" in mapping(item)}
    differences: list[Difference] = []
    unseen: list[AspectName] = []
    seen = 0
    for each in expected:
        verdict = holds(each, live)
        seen += verdict is not None
        if verdict is None or ASPECTS[each.aspect].is_partly_hidden(each, live):
            unseen.append(each.aspect)
        differs = twice(each, live) or (difference(each, live) if verdict is False else None)
        if differs is not None and (each.desired is not None or each.key not in taken):
            differences.append(differs)
    differences += _no_longer_so(target, live, taken)
    remembered = _memories(target, expected, live, frozenset(map(expectation_key, differences)))
    return Comparison(tuple(differences), learned, remembered, seen, tuple(unseen))


def _no_longer_so(target: Target, live: LiveTarget, taken: Container[str]) -> Iterator[Difference]:
    """Yield how what needed no change differs now: another user may have changed it after it was planned."""
    if not target.holding or (live.asset is None and live.channel is None):
        return
    requested = set(map(expectation_key, _expected(target)))
    for each in target.holding:
        differs = difference(each, live) if expectation_key(each) not in requested else None
        if differs is not None and (each.desired is not None or each.key not in taken):
            yield differs


def _memories(
    target: Target, final: Iterable[Expectation], live: LiveTarget, doubtful: Set[ExpectationKey]
) -> dict[str, Json]:
    """Return the items ``aspect:key`` to keep of what the target's requests have done; ``None`` forgets one.

    They are what the server does not report, and which uid and guid is whose. Nothing is kept of what is ``doubtful``:
    what was read differs from it. ``final``: the last expectation of each thing.
    """
    kept: dict[str, Json] = {}
    for request in target.requests:
        if doubtful.isdisjoint(map(expectation_key, request.expect)):
            for change in (target.changes[number] for number in request.changes):
                kept.update(ASPECTS[change.aspect].forget(change))
    for expect in final:
        aspect = ASPECTS[expect.aspect]
        hidden = expect.secret and aspect.value_items is not None  # its value is not known any more
        if not hidden and expectation_key(expect) not in doubtful:
            kept.update(aspect.remember(expect, live))
    expects = _expected(target)
    for name in {each.aspect: None for each in expects}:
        kept.update(ASPECTS[name].remember_all(expects, live))
    return kept


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
    renames = {number for number, change in enumerate(target.changes) if ASPECTS[change.aspect].is_rename}
    return next((index for index, request in enumerate(target.requests) if renames & {*request.changes}), None)


def addresses(target: Target, end: int) -> tuple[Address, ...]:
    """Return where the asset may be once the requests before ``end`` were sent, the likeliest first.

    A deleted one is looked for by its title alone: an open file may answer to its key id for as long as it is open.
    """
    if any(is_deletion(change) and ASPECTS[change.aspect].deletes_target for change in target.changes):
        return (target.address_after,)
    rename = rename_of(target)
    if rename is None or end <= rename:
        return (target.address,)
    return (target.address_after, target.address)


class _SharedAnswer(Struct):
    """What is asked for: how many readings were begun, what the last one gave, how many wait."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    begun: int = 0
    gave: int = 0
    answer: Any = None
    error: Exception | None = None
    waiting: int = 0


_RECENT: Final = timedelta(minutes=1)
"""What was read longer ago is read again before it is changed."""


def is_recent(read: datetime, now: datetime) -> bool:
    """Return whether what was read then need not be read again; not if the clock was set back."""
    return timedelta() <= now - read <= _RECENT


class SharedReads:
    """Readings of one server, made once for all callers that ask for the same at about the same time.

    A caller that asks during a reading waits for the next one, because that reading may have begun before the caller's
    last write was done. So a thousand verifications of one folder take a few readings, and none sees an old state.
    """

    def __init__(self) -> None:
        self._shelves: dict[tuple[str, Folder | None], _SharedAnswer] = {}
        self._recent: tuple[datetime, Reader] | None = None

    async def read(self, reader: Reader, database: str, folder: Folder) -> Listing | None:
        """Return a listing whose reading began after this call; errors are those of the reader."""
        listing: Listing | None = await self._share(
            (database, folder), lambda: reader.fresh().read_folder(database, folder)
        )
        return listing

    async def listed(self, reader: Reader, database: str) -> Reader:
        """Return a reader with a listing of the whole database whose reading began after this call."""

        async def read_whole() -> Reader:
            fresh = reader.fresh()
            await fresh.read_entries(database, Asset(None))
            return fresh

        whole: Reader = await self._share((database, None), read_whole)
        return whole

    def recent(self, reader: Reader, now: datetime) -> Reader:
        """Return a reader that all callers share, and that remembers no answer for longer than a minute."""
        if self._recent is None or not is_recent(self._recent[0], now):
            self._recent = now, reader.fresh(homes=True)
        return self._recent[1]

    async def _share(self, key: tuple[str, Folder | None], ask: Callable[[], Awaitable[Any]]) -> Any:
        shelf = self._shelves.setdefault(key, _SharedAnswer())
        begun_before = shelf.begun
        shelf.waiting += 1
        try:
            async with shelf.lock:
                if shelf.gave <= begun_before:
                    shelf.begun += 1
                    try:
                        shelf.answer, shelf.error = await ask(), None
                    except Exception as error:  # noqa: BLE001 - it is raised again for all who wait
                        shelf.answer, shelf.error = None, error
                    shelf.gave = shelf.begun
        finally:
            shelf.waiting -= 1
            if not shelf.waiting:
                del self._shelves[key]
        if shelf.error is not None:
            raise shelf.error
        return shelf.answer


async def read_again(reader: Reader, shared: SharedReads, target: Target, places: tuple[Address, ...]) -> LiveTarget:
    """Return all that the target's requests expect something of, read again; raises ``ServerError``.

    ``reader`` has asked nothing yet. An asset that is gone counts only where its database is there.
    """
    if target.kind == "database":
        return LiveTarget()
    if target.kind == "rss_channel":
        return LiveTarget(channel=await reader.read_channel(target.address.name))
    address, asset = await _find(reader, target, places)
    expected = _expected(target)
    links = (each.key for each in expected if ASPECTS[each.aspect].is_entry)
    shared_read = partial(shared.read, reader)
    folders = await target_reading.read_folders(
        shared_read, target.database, dict.fromkeys(parse_folder(key)[:-1] for key in links)
    )
    deletes = _delete_asset(expected)
    if asset is None and deletes:
        asset = await _renamed_by_another(reader, shared, target)
    if asset is None or deletes:
        return LiveTarget(asset=asset, folders=folders)
    names = frozenset(each.key for each in expected if ASPECTS[each.aspect].in_xmp)
    if names:
        names |= {each.key for each in target.holding or () if ASPECTS[each.aspect].in_xmp}
    xmp = await target_reading.read_xmp_fields(reader, target.database, address, names) if names else None
    return LiveTarget(asset=asset, xmp=xmp, folders=folders)


def _delete_asset(expects: Iterable[Expectation]) -> bool:
    """Return whether requests that must show this delete the asset."""
    return any(ASPECTS[each.aspect].deletes_target and each.desired is None for each in expects)


def _expected(target: Target) -> list[Expectation]:
    """Return what the target's requests expect."""
    return [each for request in target.requests for each in request.expect]


async def _find(reader: Reader, target: Target, places: tuple[Address, ...]) -> tuple[Address, Asset | None]:
    """Return the planned clip and where it is; raises ``AnotherClipError`` where another clip has its title.

    A deleted clip is gone if another one has its title.
    """
    # The values of the clip's identity that the target's own changes may alter.
    title = target.address_after.name
    altered = frozenset(name for change in target.changes for name in ASPECTS[change.aspect].alters(change, title))
    another: Asset | None = None
    for address in places:
        asset = await reader.read_asset(target.database, address)
        if asset is None:
            continue
        if not is_another_clip(target.clip, asset, altered):
            # Found by title, it has that title even if it reports none: that shows whether a rename was done.
            by_title = asset.title is None and not address.namespace
            return address, structs.replace(asset, title=address.name) if by_title else asset
        # A link of a renamed clip may still have the former title.
        if address == places[0] or is_another_clip(target.clip, asset, altered | {"link_id"}):
            another = another or asset
    if another is not None and not _delete_asset(_expected(target)):
        raise AnotherClipError(f"another clip now has this title ({describe_clip(another)})")
    if another is None and not await reader.has_database(target.database):
        raise UnreadableError(f"database {target.database} not found", server=target.server)
    return places[0], None


async def _renamed_by_another(reader: Reader, shared: SharedReads, target: Target) -> Asset | None:
    """Return the clip that was to be deleted, if its home folder now shows it under another title."""
    if target.folder is None or target.clip.link_id is None:
        return None
    listing = await shared.read(reader, target.database, parse_folder(target.folder))
    for entry in listing.entries if listing else ():
        if entry.link_id != target.clip.link_id or same_text(entry.title, target.address_after.name):
            continue
        shown = Asset(entry.title, link_id=entry.link_id, finalized=entry.finalized, attributes=entry.attributes)
        now = ClipIdentity.of(shown)
        if (now.create_time or now.frames) and not is_another_clip(target.clip, shown):
            return shown
    return None
