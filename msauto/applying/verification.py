"""Read a target again, and hold it against the prediction: before a request, after a rejection, after the last one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Literal, NamedTuple

from msgspec import UNSET, Struct, field

from msauto.aspects import ASPECTS, NUMBERED, snapshot_of
from msauto.aspects.aspect import Operation, Reads
from msauto.aspects.comparison import mapping
from msauto.aspects.list_aspect import ListAspect, each_of
from msauto.aspects.plan_builder import BETWEEN
from msauto.codec import to_json
from msauto.errors import AnotherClipError, UnreadableError
from msauto.model.identity import ClipIdentity, compare_clips, is_another_clip, same_text
from msauto.model.live import Asset, Entry, Folder, Listing, show_folder
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
from msauto.planning.target_reading import (
    FACT,
    read_needed,
    read_places,
    shorten,
    snapshot_with_facts,
)
from msauto.secrets.redaction import Secrets

Extent = Literal["all", "some", "none", "unshown", "hidden"]
"""How much of what a request should do is seen; ``hidden``: reading cannot show all of it.

``unshown``: it could be shown, and reading shows what it showed before: a field that is not set may not be there.
"""


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
    effects = target.effects
    held_by_tasks: Mapping[Thing, Expected] = {}
    if index == 0:
        held_by_tasks = predict([target.holding or ()], 1)
    expected = {**held_by_tasks, **predict(effects, index)}
    _, comparison = _compared(target, live, expected)
    changed = _changed_dependencies(target, comparison, _things_of(effects[:index]))
    if changed:
        return Guard(f"{', '.join(map(_in_words, changed))} changed")
    must_be_so = {*held_by_tasks, *_things_of(effects[index:]), TITLE}
    for thing, verdict in comparison.verdicts.items():
        expectation = expected[thing]
        as_expected = "predicted" if expectation.done else "before"
        if verdict in ("hidden", as_expected):
            continue
        if thing not in must_be_so and not target.requests[index].guarded:
            continue
        if not _are_twins_of(expectation, comparison.values[thing], thing):
            why = _what_differs(thing, expectation, comparison, secrets)
            return Guard(why, late=expectation.done and verdict == "before")
    return Guard()


def _compared(
    target: Target, live: LiveTarget, expected: Mapping[Thing, Expected]
) -> tuple[Snapshot, Comparison]:
    """Return what was read, and how it compares with what is expected and with all else that the plan looked at."""
    depends_on, others = target.depends_on, target.others
    names = (*depends_on.names, *others.names)
    read = snapshot_with_facts(live, names, {aspect for aspect, _ in expected})
    return read, compare(expected, others.items(), read, ASPECTS, depends_on.items())


def _things_of(effects: Iterable[Iterable[Effect]]) -> set[Thing]:
    """Return what several requests touch."""
    things: set[Thing] = set()
    for of_request in effects:
        things.update([effect.thing for effect in of_request])
    return things


def _are_twins_of(expectation: Expected, value: Json, thing: Thing) -> bool:
    """Return whether some of several twins are left, or none: any number may be until the last request."""
    twins = each_of(expectation.before)
    if len(twins) < 2:
        return False
    left = [] if value is None else each_of(value)
    for item in left:
        if not any(is_equal(twin, item, ASPECTS[thing[0]]) for twin in twins):
            return False
    return True


def _what_differs(
    thing: Thing, expectation: Expected, comparison: Comparison, secrets: Secrets
) -> str:
    """Describe planned and live value; where the desired value holds a secret, the live one may be another secret."""
    planned = expectation.after if expectation.done else expectation.before
    shown = f"{_in_words(name_of(thing))} was {shorten(planned)}, is {shorten(comparison.values.get(thing))}"
    if secrets.occurs_in(repr(expectation.after)):
        shown = f"{_in_words(name_of(thing))} changed"
    for key in ASPECTS[thing[0]].dialect:
        if expectation.done and "number" in key:
            return f"{shown}; see the dialect key `{key}`"
    return shown


def _in_words(name: str) -> str:
    return name.removeprefix(f"{FACT} ").strip()


# Settling: was it done? -----------------------------------------------------------------------------------------------


def extent_of(target: Target, index: int, live: LiveTarget) -> Extent:
    """Return how much of what a request should do is seen in ``live``."""
    expected = predict_one(target.effects, index)
    read = snapshot_of(live, {aspect for aspect, _ in expected})
    comparison = compare(expected, target.others.items(), read, ASPECTS)
    verdicts: set[str] = set()
    for effect in target.requests[index].effects:
        thing = effect.thing
        is_unseen = thing in comparison.unseen
        if is_unseen and _shows_the_same(thing, expected[thing], comparison.values.get(thing)):
            verdicts.add("unshown")
        else:
            verdicts.add(comparison.verdicts[thing])
    if verdicts == {"predicted"}:
        return "all"
    if verdicts == {"before"}:
        return "none"
    if verdicts <= {"before", "unshown"}:
        return "unshown"
    return "hidden" if verdicts <= {"before", "unshown", "hidden"} else "some"


def _shows_the_same(thing: Thing, expectation: Expected, live: Json) -> bool:
    """Return whether reading shows of a thing what it showed before a request."""
    before = expectation.before
    if expectation.secret:
        return False
    if live is None:
        return before in (None, "", [])
    return is_equal(before, live, ASPECTS[thing[0]])


def elsewhere(target: Target, live: LiveTarget) -> str:
    """Return where a clip to be deleted is now, if another user has renamed or moved it; else an empty text."""
    asset = live.asset
    if (
        asset is None
        or not deletes_asset(target)
        or same_text(asset.title, target.address_after.name)
    ):
        return ""
    return f"the clip is {show_folder((*(asset.folder or ()), asset.title or ''))!r} now"


def can_see(effects: Iterable[Effect]) -> bool:
    """Return whether reading can show anything of these effects."""
    for effect in effects:
        is_run = isinstance(ASPECTS[effect.aspect], Operation)
        if not is_run and not effect.secret and effect.key != EVERY:
            return True
    return False


# Verification: is it as predicted, and all else as it was? ----------------------------------------------------------


class Verification(Struct, frozen=True):
    """What the last read of a target shows.

    ``left`` is how the run left what it made and changed: live key and value by aspect and key. ``remembered`` are the
    items that the ledger keeps of what reading does not show, ``None`` forgets one. ``seen`` counts what reading shows;
    ``unseen`` are the aspects of what it does not show, or not the whole of. ``awaited`` is what accepted requests made
    and reading does not show, or shows more than once, with its value.
    """

    differences: tuple[Difference, ...] = ()
    left: dict[str, Json] = {}
    remembered: dict[str, Json] = {}
    seen: int = 0
    unseen: tuple[AspectName, ...] = ()
    notes: tuple[str, ...] = ()
    awaited: dict[Thing, Json] = {}


def things_to_verify(target: Target, effects: Sequence[Effect]) -> list[Thing]:
    """Return what the last read must show: what these effects touch, what the tasks hold, and the rest of these lists.

    XMP fields take a request of their own, so they are read again only if some were written.
    """
    things = [effect.thing for effect in effects]
    touched = {aspect for aspect, _ in things}
    things += held_things(target, effects)
    things += [thing for thing in target.others.things if thing[0] in touched or thing[1]]
    return things + target.depends_on.things


def held_things(target: Target, effects: Iterable[Effect]) -> list[Thing]:
    """Return what the tasks hold; XMP fields, which take a request of their own, only where some are written."""
    touched = {effect.aspect for effect in effects}
    things: list[Thing] = []
    for effect in target.holding or ():
        if effect.aspect in touched or not ASPECTS[effect.aspect].needs((effect.key,)).xmp:
            things.append(effect.thing)
    return things


def verify(
    target: Target, results: Sequence[RequestResult], live: LiveTarget, *, can_see: bool = True
) -> Verification:
    """Hold what was read against the prediction of the requests that were done: the first ones.

    What no request names must not be lost, and must not move within a list that was written to; else it is a note.
    ``can_see`` false: nothing was read, because reading shows nothing of what was done.
    """
    done = [result.outcome for result in results].count("done")
    named = predict(target.effects, done)
    expected = named
    read: Snapshot = {}
    if can_see:
        expected = {**predict([target.holding or ()], 1), **named}
        read, comparison = _compared(target, live, expected)
    else:
        comparison = compare(expected, (), read, ASPECTS)
    differing: dict[Thing, Difference] = {}
    for thing, expectation in expected.items():
        if expectation.done and comparison.verdicts[thing] in ("before", "else"):
            differing[thing] = _difference(thing, expectation, comparison)
    differences = [*differing.values()]
    awaited: dict[Thing, Json] = {}
    if differing:
        awaited = _awaited(target, results, differing, comparison)
    bystanders = _bystanders(target, comparison, named, read, differences)
    differences += bystanders.differences
    if where := elsewhere(target, live):
        differences.append(_unnamed(ASSET, where))
    done_things = [thing for thing, expectation in named.items() if expectation.done]
    shown = [thing for thing in done_things if comparison.verdicts[thing] != "hidden"]
    return Verification(
        differences=tuple(differences),
        left=_left(target, results, live, done_things, named, comparison),
        remembered=_remembered(done_things, named, comparison),
        seen=len(shown),
        unseen=tuple([ASPECTS[thing[0]].name for thing in comparison.unseen if thing in named]),
        notes=tuple(bystanders.notes),
        awaited=awaited,
    )


def _awaited(
    target: Target,
    results: Sequence[RequestResult],
    differing: Mapping[Thing, Difference],
    comparison: Comparison,
) -> dict[Thing, Json]:
    """Return what accepted requests made, and reading does not show, or shows more than once."""
    made = accepted_new(target, results)
    awaited: dict[Thing, Json] = {}
    for thing, difference in differing.items():
        is_missing = difference.live in (None, False) and not difference.shown_as
        if thing in made and (is_missing or thing in comparison.twice):
            awaited[thing] = made[thing]
    return awaited


def accepted_new(target: Target, results: Sequence[RequestResult]) -> dict[Thing, Json]:
    """Return what accepted requests made, with its value: items of lists, and what shows slowly."""
    made: dict[Thing, Json] = {}
    for request, result in zip(target.requests, results, strict=False):
        if not _was_accepted(result):
            continue
        for effect in request.effects:
            is_new = effect.before is None and isinstance(ASPECTS[effect.aspect], ListAspect)
            is_made = effect.after is not None and (is_new or effect.slow)
            if is_made and not effect.secret:
                made[effect.thing] = effect.after
    return made


def _was_accepted(result: RequestResult) -> bool:
    return result.outcome == "done" and result.status is not None and result.status < 400


class _Bystanders(NamedTuple):
    """What differs of what no request names, and what is only noted."""

    differences: list[Difference]
    notes: list[str]


def _bystanders(
    target: Target,
    comparison: Comparison,
    named: Mapping[Thing, Expected],
    read: Snapshot,
    found: Sequence[Difference],
) -> _Bystanders:
    """Return what became of all that no request names; ``found`` are the differences of what requests name."""
    others = (
        comparison.lost,
        comparison.moved,
        comparison.changed,
        comparison.new,
        comparison.changed_dependencies,
    )
    if not any(others):
        return _Bystanders([], [])
    seemingly_desired = {(difference.thing[0], difference.shown_as) for difference in found}
    new = [thing for thing in comparison.new if thing not in seemingly_desired]
    unwanted = _unwanted(target, [*new, *_maybe_new(comparison, read)], read)
    differences = _lost_or_moved(comparison, found)
    for thing in unwanted:
        differences.append(_unnamed(thing, "is new, and the tasks want no other"))
    has_moved_files = "files" in target.altered  # by a command of its own
    if named and not has_moved_files:
        for name in _changed_dependencies(target, comparison, named):
            if thing_of(name) not in seemingly_desired:
                differences.append(
                    _unnamed(thing_of(name), "changed meanwhile, and the plan depends on it")
                )
    notes: list[str] = []
    for thing in comparison.changed:
        notes.append(f"{_in_words(name_of(thing))} changed meanwhile, and no task names it")
    for thing in new:
        if thing not in unwanted:
            notes.append(f"{_in_words(name_of(thing))} is new, and no task names it")
    return _Bystanders(differences, notes)


def _lost_or_moved(comparison: Comparison, found: Sequence[Difference]) -> list[Difference]:
    """Return which items are gone or have moved, and which aspects, of which one digest is kept, show less."""
    differences: list[Difference] = []
    shows_less: list[Difference] = []
    reported_aspects = {difference.aspect for difference in found}
    for aspect, key in comparison.lost:
        if key:
            differences.append(_unnamed((aspect, key), "is gone, and no task names it"))
        elif aspect not in reported_aspects:
            shows_less.append(_unnamed((aspect, key), "shows less than before"))
    for thing in comparison.moved:
        differences.append(_unnamed(thing, "has moved, and no task names it"))
    return differences + shows_less


def _maybe_new(comparison: Comparison, read: Snapshot) -> list[Thing]:
    """Return what no task holds of lists that no request touches and that have changed: it may be new."""
    things: list[Thing] = []
    for aspect, key in comparison.changed:
        if not key:
            things += [(aspect, item) for item in read[aspect]]
    return [thing for thing in things if thing not in comparison.verdicts]


def _unwanted(target: Target, new: Iterable[Thing], read: Snapshot) -> dict[Thing, None]:
    """Return which new items are such that the tasks ask for no item like it."""
    unwanted: dict[Thing, None] = {}
    for name, key in new:
        for aspect, item in target.unwanted:
            if aspect == name and not ASPECTS[name].misses(item, read[name][key]):
                unwanted[name, key] = None
    return unwanted


def _changed_dependencies(
    target: Target, comparison: Comparison, done: Collection[Thing]
) -> list[str]:
    """Return the names of what the plan looked at, and that is not as it was though no request so far touched it.

    Once something is done, whole lists and facts are not among them: a clip that is still recorded grows.
    """
    if not done or not comparison.changed_dependencies:
        return comparison.changed_dependencies
    things = set(target.depends_on.things).difference(done)
    names: list[str] = []
    for name in comparison.changed_dependencies:
        thing = thing_of(name)
        if thing in things and thing[0] != FACT:
            names.append(name)
    return names


def _difference(thing: Thing, expectation: Expected, comparison: Comparison) -> Difference:
    aspect = ASPECTS[thing[0]]
    live, desired = comparison.values.get(thing), expectation.after
    if isinstance(desired, dict):
        desired = {**desired, **lost_attributes(expectation, live, aspect)}
        for name in aspect.kept:
            desired.pop(name, None)
    twice = _shown_twice(thing, live, comparison)
    if twice:
        desired, live = "once", f"twice: {' and '.join(twice)}"
    shown_as, why = "", ""
    if live is None and isinstance(aspect, ListAspect):
        new = [key for name, key in comparison.new if name == thing[0]]
        shown_as, why = aspect.shown_as(expectation.after, new)
    return Difference(aspect.name, _called(thing), desired, live, why, shown_as)


def _shown_twice(thing: Thing, live: Json, comparison: Comparison) -> list[str]:
    """Return the live items of which there is to be one, in words; none if there is one."""
    shown: list[str] = []
    if TWINS in mapping(live):
        for twin in each_of(live):
            name, value = next(iter(twin.items()))
            shown.append(f"{name} {value}")
    prefix = ASPECTS[thing[0]].prefix
    return shown + [f"{prefix}{key}" for key in comparison.twice.get(thing, ())]


def _called(thing: Thing) -> str:
    """Return the name of a thing in a plan, without its aspect: that of a new one is where it is to be."""
    return f"{ASPECTS[thing[0]].prefix}{thing[1]}" if thing[1] else ""


def _unnamed(thing: Thing, why: str) -> Difference:
    return Difference(ASPECTS[thing[0]].name, _called(thing), None, None, why)


def _left(
    target: Target,
    results: Sequence[RequestResult],
    live: LiveTarget,
    things: Iterable[Thing],
    named: Mapping[Thing, Expected],
    comparison: Comparison,
) -> dict[str, Json]:
    """Return how the run left each thing, and the clip. What was made is ours only if its request was accepted."""
    is_ours: dict[Thing, bool] = {}
    for request, result in zip(target.requests, results, strict=False):
        was_accepted = _was_accepted(result)
        for effect in request.effects:
            existed = effect.before is not None or effect.after is None
            is_ours[effect.thing] = was_accepted or existed
    left: dict[str, Json] = {}
    for thing in things:
        verdict = comparison.verdicts[thing]
        name = name_of(thing)
        if verdict == "predicted" and is_ours[thing]:
            left[name] = [comparison.keys.get(thing, thing[1]), comparison.values[thing]]
        elif verdict == "hidden" and not isinstance(ASPECTS[thing[0]], Operation):
            left[name] = [thing[1], named[thing].after]
    if live.asset is not None:
        left[LEFT_CLIP] = to_json(ClipIdentity.of(live.asset))
    return left


def _remembered(
    things: Iterable[Thing], named: Mapping[Thing, Expected], comparison: Comparison
) -> dict[str, Json]:
    """Return what the ledger keeps: the values, or attributes, that reading does not show. What differs is not kept."""
    kept: dict[str, Json] = {}
    for thing in things:
        name, key = thing
        aspect, verdict, value = ASPECTS[name], comparison.verdicts[thing], named[thing].after
        is_kept = verdict in ("predicted", "hidden") and not named[thing].secret
        if isinstance(aspect, Operation) or not is_kept:
            continue
        item = f"{name}:{comparison.keys.get(thing, key)}"
        hidden = aspect.hidden(value, comparison.values.get(thing))
        if verdict == "hidden" or (hidden and not isinstance(value, dict)):
            kept[item] = value
            continue
        kept[item] = None
        if hidden:
            kept[item] = {attribute: mapping(value)[attribute] for attribute in hidden}
        if name in NUMBERED and value is not None:
            kept[f"{BETWEEN}{key}"] = None
        if aspect.missing is UNSET:
            kept[f"reported:{key}"] = True
    return kept


# Where the target is --------------------------------------------------------------------------------------------------


def rename_of(target: Target) -> int | None:
    """Return the index of the request that renames the asset: from then on it has its other address."""
    return None if target.address == target.address_after else target.request_with(TITLE)


def deletes_asset(target: Target) -> bool:
    """Return whether the target is deleted."""
    return target.request_with(ASSET) is not None


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
    return await read_needed(
        reader, partial(shared.read, reader), target.database, address, known, needed
    )


async def _find(reader: Reader, target: Target, end: int) -> tuple[Address, Asset | None]:
    """Return the planned clip and where it is; raises ``AnotherClipError`` where another clip has its title.

    A deleted clip is gone if another one has its title.
    """
    altered = frozenset(target.altered)
    deletion, rename = target.request_with(ASSET), rename_of(target)
    places: tuple[Address, ...] = (target.address,)
    if deletion is not None:
        # By its title alone: an open file may answer to its key id for as long as it is open.
        places = (target.address_after,)
    elif rename is not None and rename < end:
        places = (target.address_after, target.address)  # the likeliest first
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
    may_be_deleted = deletion is not None and deletion < end
    if another is not None and not may_be_deleted:
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
    clip, title = target.clip, target.address_after.name
    known = {"orig_name": clip.orig_name, "create_time": clip.create_time, "frames": clip.frames}
    attributes = {name: str(value) for name, value in known.items() if value is not None}
    asset = Asset(title, link_id=clip.link_id, attributes=attributes)
    entries = await listed.read_entries(target.database, asset)
    for entry in entries.same:
        lacks_link_id = entry.link_id is None and clip.link_id is not None
        is_planned = (
            same_text(entry.title, title)
            or show_folder((*entry.folder, entry.title)) in target.places
        )
        if not is_planned and not lacks_link_id and not is_another_clip(clip, entry):
            return LiveTarget(
                asset=Asset(
                    entry.title,
                    folder=entry.folder,
                    link_id=entry.link_id,
                    finalized=entry.finalized,
                    attributes=entry.attributes,
                )
            )
    places: dict[Folder, None] = {}
    for effects in target.effects:
        for effect in effects:
            places |= dict.fromkeys(ASPECTS[effect.aspect].needs((effect.key,)).places)
    entries_at = await read_places(partial(shared.read, reader), target.database, places)
    left: dict[Folder, Sequence[Entry] | None] = {}
    for place, listed_entries in entries_at.items():
        left[place] = [
            entry for entry in listed_entries or () if compare_clips(asset, entry).answer != "other"
        ]
    return LiveTarget(places=left)


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


class SharedReads(Struct):
    """Readings of one server, made once for all callers that ask for the same at about the same time.

    A caller that asks during a reading waits for the next one, because that reading may have begun before the caller's
    last write was done. So a thousand verifications of one folder take a few readings, and none sees an old state.
    """

    _shelves: dict[tuple[str, Folder | None], _SharedAnswer] = {}
    _recent: tuple[datetime, Reader] | None = None

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

    async def _share(
        self, key: tuple[str, Folder | None], ask: Callable[[], Awaitable[Any]]
    ) -> Any:
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
