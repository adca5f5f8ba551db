"""Read a target again, and hold it against the prediction: before a request, after a rejection, after the last one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Literal, NamedTuple

from msgspec import UNSET, Struct, field, structs

from msauto.aspects import ASPECTS, NUMBERED, snapshot_of
from msauto.aspects.aspect import Operation, Reads
from msauto.aspects.comparison import mapping
from msauto.aspects.list_aspect import ListAspect, each_of
from msauto.aspects.plan_builder import BETWEEN
from msauto.codec import to_json
from msauto.errors import AnotherClipError, UnreadableError
from msauto.model.identity import ClipIdentity, compare_clips, is_another_clip, same_text
from msauto.model.live import Asset, Folder, Listing, show_folder
from msauto.model.plan import Address, Target
from msauto.model.ports import LiveTarget, Reader
from msauto.model.result import LEFT_CLIP, Difference, RequestResult
from msauto.model.snapshot import (
    ASSET,
    EVERY,
    TITLE,
    TWINS,
    AspectName,
    Comparison,
    Effect,
    Expected,
    Json,
    Snapshot,
    Thing,
    compare,
    is_equal,
    lost_attributes,
    name_of,
    predict,
    predict_one,
    thing_of,
)
from msauto.planning.target_reading import FACT, read_needed, read_places, shorten, snapshot_with_facts
from msauto.secrets.redaction import Secrets

Extent = Literal["all", "some", "none", "hidden"]
"""How much of what a request should do is seen; ``hidden``: reading cannot show all of it."""


# Guards: is it still so? ----------------------------------------------------------------------------------------------


class Guard(Struct, frozen=True):
    """What must be so before a request is sent. ``late``: an accepted request may only not show yet."""

    why: str = ""
    late: bool = False


def guard(target: Target, index: int, live: LiveTarget, secrets: Secrets) -> Guard:
    """Return why a request must not be sent: what it and the later ones touch must be as predicted.

    Before anything is done, all that the plan looked at must be as it was. A guarded request also waits until all
    earlier effects show.
    """
    held = {} if index else predict([target.holding or ()], 1)
    expected = {**held, **predict(target.effects, index)}
    done = {effect.thing for request in target.effects[:index] for effect in request}
    read = snapshot_with_facts(live, target.looked.names)
    comparison = compare(expected, target.others.items(), read, ASPECTS, target.looked.items())
    if changed := _looked_at(target, comparison, done):
        return Guard(f"{', '.join(map(_in_words, changed))} changed")
    later = {effect.thing for request in target.effects[index:] for effect in request}
    for thing, verdict in comparison.verdicts.items():
        each = expected[thing]
        if verdict in ("hidden", "predicted" if each.done else "before"):
            continue
        if thing not in later and thing not in held and thing != TITLE and not target.requests[index].guarded:
            continue
        twins, value = each_of(each.before), comparison.values[thing]
        left = [] if value is None else each_of(value)
        if len(twins) > 1 and all(any(is_equal(twin, one, ASPECTS[thing[0]]) for twin in twins) for one in left):
            continue  # any number of them may be left until the last request
        shown = _what_differs(thing, each, comparison, secrets)
        keys = [f"`{key}`" for key in ASPECTS[thing[0]].dialect if "number" in key] if each.done else []
        return Guard(f"{shown}{f'; see the dialect key {keys[0]}' if keys else ''}", each.done and verdict == "before")
    return Guard()


def _what_differs(thing: Thing, each: Expected, comparison: Comparison, secrets: Secrets) -> str:
    """Describe planned and live value; where the desired value holds a secret, the live one may be another secret."""
    if secrets and secrets.occurs_in(repr(each.after)):
        return f"{_in_words(name_of(thing))} changed"
    planned = each.after if each.done else each.before
    return f"{_in_words(name_of(thing))} was {shorten(planned)}, is {shorten(comparison.values.get(thing))}"


def _in_words(name: str) -> str:
    return name.removeprefix(f"{FACT} ").strip()


# Settling: was it done? -----------------------------------------------------------------------------------------------


def extent_of(target: Target, index: int, live: LiveTarget) -> Extent:
    """Return how much of what a request should do is seen in ``live``."""
    expected = predict_one(target.effects, index)
    read = snapshot_of(live, {aspect for aspect, _ in expected})
    comparison = compare(expected, target.others.items(), read, ASPECTS)
    things = [effect.thing for effect in target.requests[index].effects]
    unseen = {  # reading shows just what it showed before
        thing
        for thing in comparison.unseen
        if expected[thing].before is not None
        and is_equal(expected[thing].before, comparison.values.get(thing), ASPECTS[thing[0]])
    }
    verdicts = {"hidden" if thing in unseen else comparison.verdicts[thing] for thing in things}
    if verdicts == {"predicted"}:
        return "all"
    if verdicts == {"before"}:
        return "none"
    return "some" if verdicts & {"else", "predicted", "before"} and verdicts != {"before", "hidden"} else "hidden"


def elsewhere(target: Target, live: LiveTarget) -> str:
    """Return where a clip to be deleted is now, if another user has renamed or moved it; else an empty text."""
    asset = live.asset
    if asset is None or not deletes_asset(target) or same_text(asset.title, target.address_after.name):
        return ""
    return f"the clip is {show_folder((*(asset.folder or ()), asset.title or ''))!r} now"


def can_see(effects: Iterable[Effect]) -> bool:
    """Return whether reading can show anything of these effects."""
    return any(
        not (isinstance(ASPECTS[each.aspect], Operation) or each.secret or each.key == EVERY) for each in effects
    )


# Verification: is it as predicted, and all else as it was? ----------------------------------------------------------


class Verification(Struct, frozen=True):
    """What the last read of a target shows.

    ``left`` is how the run left what it made and changed: live key and value by aspect and key. ``remembered`` are the
    items that the ledger keeps of what reading does not show, ``None`` forgets one. ``seen`` counts what reading shows;
    ``unseen`` are the aspects of what it does not show, or not the whole of.
    """

    differences: tuple[Difference, ...] = ()
    left: dict[str, Json] = field(default_factory=dict)
    remembered: dict[str, Json] = field(default_factory=dict)
    seen: int = 0
    unseen: tuple[AspectName, ...] = ()
    notes: tuple[str, ...] = ()


def things_to_verify(target: Target, effects: Iterable[Effect]) -> list[Thing]:
    """Return what the last read must show: what these effects touch, what the tasks hold, and the rest of these lists.

    XMP fields take a request of their own, so they are read again only if some were written.
    """
    written = list(effects)
    touched = {each.aspect for each in written}
    rest = [thing for thing in target.others.things if thing[0] in touched]
    return [*(each.thing for each in written), *held_things(target, written), *rest, *target.looked.things]


def held_things(target: Target, effects: Iterable[Effect]) -> list[Thing]:
    """Return what the tasks hold; XMP fields, which take a request of their own, only where some are written."""
    touched = {each.aspect for each in effects}
    held = target.holding or ()
    return [each.thing for each in held if each.aspect in touched or not ASPECTS[each.aspect].needs((each.key,)).xmp]


def verify(target: Target, results: Sequence[RequestResult], live: LiveTarget, *, can_see: bool = True) -> Verification:
    """Hold what was read against the prediction of the requests that were done: the first ones.

    What no request names must not be lost, and must not move within a list that was written to; else it is a note.
    ``can_see`` false: nothing was read, because reading shows nothing of what was done.
    """
    done = [result.outcome for result in results].count("done")
    named = predict(target.effects, done)
    expected = {**(predict([target.holding or ()], 1) if can_see else {}), **named}
    read = snapshot_with_facts(live, target.looked.names) if can_see else {}
    seen = (target.others.items(), target.looked.items()) if can_see else ((), ())
    comparison = compare(expected, seen[0], read, ASPECTS, seen[1])
    differences = [
        _difference(thing, each, comparison)
        for thing, each in expected.items()
        if each.done and comparison.verdicts[thing] in ("before", "else")
    ]
    beside = _beside(target, comparison, named, read, differences)
    differences += beside.differences
    if where := elsewhere(target, live):
        differences.append(_unnamed(ASSET, where))
    things = [thing for thing, each in named.items() if each.done]
    return Verification(
        tuple(differences),
        _left(target, results, live, things, named, comparison),
        _remembered(things, named, comparison),
        sum([comparison.verdicts[thing] != "hidden" for thing in things]),
        tuple([ASPECTS[aspect].name for aspect, key in comparison.unseen if (aspect, key) in named]),
        tuple(beside.notes),
    )


class _Beside(NamedTuple):
    """What differs of what no request names, and what is only noted."""

    differences: Sequence[Difference] = ()
    notes: Sequence[str] = ()


def _beside(
    target: Target,
    comparison: Comparison,
    named: Mapping[Thing, Expected],
    read: Snapshot,
    found: Sequence[Difference],
) -> _Beside:
    """Return what became of all that no request names; ``found`` are the differences of what requests name."""
    others = (comparison.lost, comparison.moved, comparison.changed, comparison.new, comparison.looked)
    if not any(others):
        return _Beside()
    misread = {(each.thing[0], each.shown_as) for each in found}
    new = [each for each in comparison.new if each not in misread]
    # Of lists that no request touches and that have changed, what no task holds may be new.
    lists = [aspect for aspect, key in comparison.changed if not key]
    maybe_new = [(aspect, key) for aspect in lists for key in read[aspect] if (aspect, key) not in comparison.verdicts]
    unwanted = [each for each in (*new, *maybe_new) if _is_unwanted(target, each, read)]
    moved = "files" in target.altered  # by a command of its own
    looked = _looked_at(target, comparison, named) if named and not moved else []
    reported = {each.aspect for each in found}
    unnamed = {
        "is gone, and no task names it": [each for each in comparison.lost if each[1]],
        "has moved, and no task names it": comparison.moved,
        "shows less than before": [each for each in comparison.lost if not each[1] and each[0] not in reported],
        "is new, and the tasks want no other": dict.fromkeys(unwanted),
        "changed meanwhile, and the plan depends on it": [
            each for each in map(thing_of, looked) if each not in misread
        ],
    }
    differences = [_unnamed(thing, why) for why, things in unnamed.items() for thing in things]
    notes = [f"{_in_words(name_of(thing))} changed meanwhile, and no task names it" for thing in comparison.changed]
    notes += [f"{_in_words(name_of(each))} is new, and no task names it" for each in new if each not in unwanted]
    return _Beside(differences, notes)


def _looked_at(target: Target, comparison: Comparison, done: Collection[Thing]) -> list[str]:
    """Return the names of what the plan looked at, and that is not as it was though no request so far touched it.

    Once something is done, whole lists and facts are not among them: a clip that is still recorded grows.
    """
    if not done:
        return comparison.looked
    things = set(target.looked.things).difference(done)
    return [name for name in comparison.looked if thing_of(name) in things and thing_of(name)[0] != FACT]


def _difference(thing: Thing, each: Expected, comparison: Comparison) -> Difference:
    aspect = ASPECTS[thing[0]]
    live, desired = comparison.values.get(thing), each.after
    if isinstance(desired, dict):
        lost = lost_attributes(each, live, aspect)
        desired = {name: value for name, value in {**desired, **lost}.items() if name not in aspect.kept}
    twins = mapping(live).get(TWINS)
    firsts = [next(iter(mapping(each).items())) for each in twins] if isinstance(twins, list) else []
    same = [f"{name} {value}" for name, value in firsts]
    same += [f"{aspect.prefix}{key}" for key in comparison.twice.get(thing, ())]
    if same:
        desired, live = "once", f"twice: {' and '.join(same)}"
    shown_as, why = "", ""
    if live is None and isinstance(aspect, ListAspect):
        shown_as, why = aspect.shown_as(each.after, [key for name, key in comparison.new if name == thing[0]])
    return Difference(aspect.name, _called(thing), desired, live, why, shown_as)


def _called(thing: Thing) -> str:
    """Return the name of a thing in a plan, without its aspect: that of a new one is where it is to be."""
    return f"{ASPECTS[thing[0]].prefix}{thing[1]}" if thing[1] else ""


def _unnamed(thing: Thing, why: str) -> Difference:
    return Difference(ASPECTS[thing[0]].name, _called(thing), None, None, why)


def _is_unwanted(target: Target, thing: Thing, read: Snapshot) -> bool:
    """Return whether the tasks ask that there is no item like a new one."""
    name, key = thing
    return any(not ASPECTS[name].misses(each, read[name][key]) for aspect, each in target.unwanted if aspect == name)


def _left(
    target: Target,
    results: Sequence[RequestResult],
    live: LiveTarget,
    things: Iterable[Thing],
    named: dict[Thing, Expected],
    comparison: Comparison,
) -> dict[str, Json]:
    """Return how the run left each thing, and the clip. What was made is ours only if its request was accepted."""
    ours: dict[Thing, bool] = {}
    for request, result in zip(target.requests, results, strict=False):
        accepted = result.status is not None and result.status < 400
        ours |= {each.thing: accepted or each.before is not None or each.after is None for each in request.effects}
    left: dict[str, Json] = {}
    for thing in things:
        verdict, each = comparison.verdicts[thing], named[thing]
        if verdict == "predicted" and ours[thing]:
            left[name_of(thing)] = [comparison.keys.get(thing, thing[1]), comparison.values[thing]]
        elif verdict == "hidden" and not isinstance(ASPECTS[thing[0]], Operation):
            left[name_of(thing)] = [thing[1], each.after]
    if live.asset is not None:
        left[LEFT_CLIP] = to_json(ClipIdentity.of(live.asset))
    return left


def _remembered(things: Iterable[Thing], named: dict[Thing, Expected], comparison: Comparison) -> dict[str, Json]:
    """Return what the ledger keeps: the values, or attributes, that reading does not show. What differs is not kept."""
    kept: dict[str, Json] = {}
    for thing in things:
        aspect, verdict, value = ASPECTS[thing[0]], comparison.verdicts[thing], named[thing].after
        item = f"{thing[0]}:{comparison.keys.get(thing, thing[1])}"
        if isinstance(aspect, Operation) or named[thing].secret or verdict in ("before", "else"):
            continue
        hidden = aspect.hidden(value, comparison.values.get(thing))
        if verdict == "hidden" or (hidden and not isinstance(value, dict)):
            kept[item] = value
        else:
            kept[item] = {name: mapping(value)[name] for name in hidden} if hidden else None
            if thing[0] in NUMBERED and value is not None:
                kept[f"{BETWEEN}{thing[1]}"] = None
            if aspect.missing is UNSET:
                kept[f"reported:{thing[1]}"] = True
    return kept


# Where the target is --------------------------------------------------------------------------------------------------


def rename_of(target: Target) -> int | None:
    """Return the index of the request that renames the asset: from then on it has its other address."""
    return None if target.address == target.address_after else target.request_with(TITLE)


def deletes_asset(target: Target) -> bool:
    """Return whether the target is deleted."""
    return target.request_with(ASSET) is not None


def addresses(target: Target, end: int) -> tuple[Address, ...]:
    """Return where the asset may be once the requests before ``end`` were sent, the likeliest first.

    A deleted one is looked for by its title alone: an open file may answer to its key id for as long as it is open.
    """
    if deletes_asset(target):
        return (target.address_after,)
    rename = rename_of(target)
    if rename is None or end <= rename:
        return (target.address,)
    return (target.address_after, target.address)


async def read_again(
    reader: Reader, shared: SharedReads, target: Target, end: int, things: Iterable[Thing]
) -> LiveTarget:
    """Return a target as it is once the requests before ``end`` were sent, read again; raises ``ServerError``.

    ``things`` are what the reading must show; a fact that a template asked has the aspect ``fact``, and the key ``""``
    of a list means all of it. ``reader`` has asked nothing yet. An asset that is gone counts only where its database is
    there.
    """
    if target.kind == "database":
        return LiveTarget()
    if target.kind == "rss_channel":
        return LiveTarget(channel=await reader.read_channel(target.address.name))
    address, asset = await _find(reader, target, end)
    if asset is None and deletes_asset(target) and end == len(target.requests):
        return await _after_deletion(reader, shared, target)
    if asset is None:
        return LiveTarget()
    wanted: dict[str, set[str]] = {}
    for aspect, key in things:
        wanted.setdefault(aspect, set()).add(key)
    facts = wanted.pop(FACT, set())
    needed = [ASPECTS[aspect].needs(keys) for aspect, keys in wanted.items()]
    needed.append(Reads(links="links" in facts, every_xmp="xmp" in facts))
    known = LiveTarget(asset=asset)
    return await read_needed(reader, partial(shared.read, reader), target.database, address, known, needed)


async def _find(reader: Reader, target: Target, end: int) -> tuple[Address, Asset | None]:
    """Return the planned clip and where it is; raises ``AnotherClipError`` where another clip has its title.

    A deleted clip is gone if another one has its title.
    """
    altered, places = frozenset(target.altered), addresses(target, end)
    deletion = target.request_with(ASSET)
    another: Asset | None = None
    for address in places:
        asset = await reader.read_asset(target.database, address)
        if asset is None:
            continue
        if not is_another_clip(target.clip, asset, altered):
            return address, asset
        # A link of a renamed clip may still have the former title.
        if address == places[0] or is_another_clip(target.clip, asset, altered | {"link_id"}):
            another = another or asset
    if another is not None and not (deletion is not None and deletion < end):
        created = another.attributes.get("create_time") or "unknown"
        shown = f"created {created}, {another.frames} frames, link_id {another.link_id}"
        raise AnotherClipError(f"another clip now has this title ({shown})")
    if another is None and not await reader.has_database(target.database):
        raise UnreadableError(f"database {target.database} not found", server=target.server)
    return places[0], None


async def _after_deletion(reader: Reader, shared: SharedReads, target: Target) -> LiveTarget:
    """Return what is left of a deleted clip: its links, or the clip itself under another title or in another folder.

    The listing that the next deletion needs anyway shows it. Another clip may be where a link was.
    """
    listed = await shared.listed(reader, target.database)
    clip = target.clip
    known = {"orig_name": clip.orig_name, "create_time": clip.create_time, "frames": clip.frames}
    attributes = {name: str(value) for name, value in known.items() if value is not None}
    asset = Asset(target.address_after.name, link_id=clip.link_id, attributes=attributes)
    entries = await listed.read_entries(target.database, asset)
    for entry in entries.same:
        if is_another_clip(clip, entry) or (entry.link_id is None and clip.link_id is not None):
            continue
        place = show_folder((*entry.folder, entry.title))
        if not same_text(entry.title, target.address_after.name) and place not in target.places:
            shown = Asset(entry.title, link_id=entry.link_id, finalized=entry.finalized, attributes=entry.attributes)
            return LiveTarget(asset=structs.replace(shown, folder=entry.folder))
    effects = (each for request in target.effects for each in request)
    places = dict.fromkeys(place for each in effects for place in ASPECTS[each.aspect].needs((each.key,)).places)
    there = await read_places(partial(shared.read, reader), target.database, places)
    return LiveTarget(
        places={
            place: [each for each in at_place or () if compare_clips(asset, each).answer != "other"]
            for place, at_place in there.items()
        }
    )


# Reads that targets share ---------------------------------------------------------------------------------------------


class _SharedAnswer(Struct):
    """What is asked for: how many readings were begun, what the last one gave, how many wait."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    begun: int = 0
    gave: int = 0
    answer: Any = None
    error: Exception | None = None
    waiting: int = 0


RECENT: Final = timedelta(minutes=1)
"""What was read longer ago is read again before it is changed."""


def is_recent(read: datetime, now: datetime) -> bool:
    """Return whether what was read then need not be read again; not if the clock was set back."""
    return timedelta() <= now - read <= RECENT


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
