"""Checks before an asset is deleted, and before a link is removed or changed: the title must lead to the right entry.

The interface deletes by title or key id. A link is an entry of the same clip in another folder, and a server may delete
the clip for it. So the whole database is listed once in a run, to know every entry of the clip.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from msgspec import structs

from msauto.aspects import ASPECTS, snapshot_of
from msauto.aspects.comparison import entry_called
from msauto.aspects.link import cannot_be_set, why_ambiguous
from msauto.aspects.plan_builder import refuse, things_left
from msauto.errors import PlanningError
from msauto.model.clip_entries import (
    MOST_LINKS,
    are_one_clip,
    entries_in_doubt,
    has_answered,
)
from msauto.model.desired import DesiredAsset, TaskSource
from msauto.model.identity import (
    ClipEntries,
    ClipIdentity,
    compare_clips,
    is_another_clip,
    lives_in,
    plain,
    same_folder,
    same_text,
)
from msauto.model.live import Asset, Entry, Folder, parse_folder, show_folder
from msauto.model.plan import Address, Change, Request, Target
from msauto.model.ports import LiveTarget, Reader
from msauto.model.snapshot import Json, part_digest
from msauto.planning.fact_layers import FoundClip
from msauto.planning.handlers import RecalledItems

_MOST_LISTED: Final = 10


async def with_places(target: Target, asset: Asset, reader: Reader, *, always: bool) -> Target:
    """Return a target that loses something, or ``always``, with the entries that show it."""
    if not (target.loses or always):
        return target
    places = (await entries_in_doubt(reader, target.database, asset)).places
    return structs.replace(target, places=tuple(map(show_folder, places)))


async def why_not_deleted(
    target: Target, index: int, asset: Asset, listed: Reader, recent: Reader, *, is_resent: bool
) -> str | None:
    """Return what has changed, so that the planned DELETE must not be sent; ``None`` if it may. Raises ``MsautoError``.

    ``index`` is that of the next request. ``asset`` is the answer just now, and ``listed`` has just read the listing of
    the database; ``recent`` has answers of other clips, not older than a minute. ``is_resent``: the DELETE was sent
    before, and the server may show its effect late.
    """
    of_links = _link_changes_from(target, index)
    if any(change.action == "delete" for change in of_links):
        try:
            await check_link_titles(listed, target.database, asset, of_links, are_links=True)
        except PlanningError as error:
            return error.message
        return None
    if target.folder is not None and lives_in(asset, parse_folder(target.folder)) is False:
        return f"it is in {show_folder(asset.folder or ())!r}, and was in {target.folder!r}"
    entries = await entries_in_doubt(recent, target.database, asset, listed=listed)
    new_places = _places_not_planned(target, entries)
    if new_places:
        # A clip that this run renames, or has just deleted, is not new.
        entries = await entries_in_doubt(recent, target.database, asset, listed=listed.fresh())
        new_places = _places_not_planned(target, entries)
    if new_places:
        verb = "shows" if len(new_places) == 1 else "show"
        return f"{', '.join(new_places)} {verb} it, too"
    if is_resent and entries.namesakes:
        return f"two clips have the title {target.name!r}: {_listed([*entries.same, *entries.namesakes])}"
    if is_resent and not target.clip.is_known:
        return "the server reports nothing that distinguishes it from another clip of this title"
    return None


def _link_changes_from(target: Target, index: int) -> list[Change]:
    """Return the changes of links that the requests from an index on make."""
    numbers: dict[int, None] = {}
    for request in target.requests[index:]:
        numbers |= dict.fromkeys(request.changes)
    return changes_of_links([target.changes[number] for number in numbers])


def _places_not_planned(target: Target, entries: ClipEntries) -> list[str]:
    """Return where entries show a clip that the plan does not name."""
    planned = set(map(plain, target.places))
    places = [show_folder(place) for place in entries.places]
    return [place for place in places if plain(place) not in planned]


def changed_by_others(
    recalled: RecalledItems, live: LiveTarget, title: str, entries: Sequence[Entry]
) -> list[Json]:
    """Return what others have changed of a clip, or made, since a run wrote to it last; not what they removed.

    ``entries`` show it: others may have renamed one that runs wrote to by another title than the one asked for.
    """
    changed: dict[str, None] = {}
    if recalled.title and not same_text(recalled.title, title):
        changed["title"] = None
    for entry in entries:
        if not same_text(recalled.titles.get(entry.link_id, entry.title), entry.title):
            changed["title"] = None
    snapshot = snapshot_of(live)
    for (name, key), left, _ in things_left(recalled.items):
        value = snapshot.get(name, {}).get(key)
        if value is not None and ASPECTS[name].misses(left, value):
            changed[f"{name} {key}".strip()] = None
    touched = {name.partition(" ")[0] for name in changed}
    for name, digest in recalled.seen.items():
        part = snapshot.get(name)
        if part and name not in touched and part_digest(part) != digest:
            changed[name] = None
    return list(changed)


async def check_deletion(
    reader: Reader, database: str, clip: FoundClip, chosen: Sequence[Entry], desired: DesiredAsset
) -> ClipEntries | None:
    """Return the entries that show the clip, or ``None`` where it is deleted already and only held open.

    ``chosen`` are the entries that a select chose. Raises ``PlanningError`` where the task names a link instead of the
    clip, where links show the clip and the task does not consent, and where another clip has the same title.
    """
    asset = clip.asset
    title = clip.title
    source = desired.source
    entries = await entries_in_doubt(reader, database, asset)
    by_id = bool(clip.address.namespace)
    if by_id and not entries.same:
        # Where the title no longer leads to the clip, it was deleted while open (interface, «States»).
        answer = await reader.read_asset(database, Address(title))
        if answer is None or compare_clips(answer, asset).answer == "other":
            return None
    _check_entry(clip, entries, chosen, source)
    namesakes = [entry for entry in entries.namesakes if entry.title == asset.title]
    if namesakes and not by_id and desired.folder is None:
        raise refuse(
            f"two clips have the title {title!r}: {_listed([*entries.same, *namesakes])}",
            source,
            "write the `folder:` of the clip, or address it by a key field with `id:`",
        )
    _check_consent(clip, entries, desired)
    return entries


def _check_entry(
    clip: FoundClip, entries: ClipEntries, chosen: Sequence[Entry], source: TaskSource
) -> None:
    """Refuse to delete a clip through a link, or by a title that none of its entries has."""
    by_id = bool(clip.address.namespace)
    called = [entry for entry in entries.same if same_text(entry.title, clip.title)]
    named: Sequence[Entry] = chosen or called
    if by_id and not chosen:
        named = [entry for entry in entries.same if entry is entries.own]
    if named and all(lives_in(clip.asset, entry.folder) is False for entry in named):
        raise refuse(
            f"the entry {_listed(named[:1])} is a link, and a clip is not deleted through a link; entries of the clip: "
            f"{_listed(entries.same)}",
            source,
            "address the clip by its own title, or select it in its home folder",
        )
    if not by_id and entries.same and not called:
        raise refuse(
            f"the server answers {clip.title!r} with the clip that it lists as {_listed(entries.same)}",
            source,
            "write the title exactly as the server shows it",
        )


def _check_consent(clip: FoundClip, entries: ClipEntries, desired: DesiredAsset) -> None:
    """Refuse to delete a clip that other entries may show, until the task consents and names which one is the clip."""
    asset = clip.asset
    title = clip.title
    source = desired.source
    own = entries.own
    others = [entry for entry in entries.same if entry is not own]
    if others and not desired.with_links:
        first = compare_clips(asset, others[0])
        doubt = (
            ""
            if first.answer == "same"
            else f"; {_listed(others[:1])} may be one ({first.evidence})"
        )
        raise refuse(
            f"{title!r} has several entries ({_listed(entries.same)}), and a clip is not deleted while links show it"
            f"{doubt}",
            source,
            "remove the links first, or write `with_links: true` to delete the clip with all its links",
        )
    if entries.rivals and not clip.address.namespace and desired.folder is None:
        remedy = "address the clip by a key field with `id:`"
        if asset.folder is not None:
            remedy += ", or write the `folder:` in which the clip itself lives, not its link"
        raise refuse(
            f"{title!r} may be a link of {_listed(entries.rivals)}: the server does not show which of them is the clip "
            f"({compare_clips(asset, entries.rivals[0]).evidence})",
            source,
            remedy,
        )


def _listed(entries: Sequence[Entry]) -> str:
    places = [show_folder((*entry.folder, entry.title)) for entry in entries[:_MOST_LISTED]]
    shown = ", ".join(places)
    more = len(entries) - len(places)
    return f"{shown} and {more} more" if more else shown


# Renaming ------------------------------------------------------------------------------------------------------


async def check_renaming(
    reader: Reader, database: str, clip: FoundClip, source: TaskSource, *, is_undo: bool
) -> None:
    """Refuse to rename a clip by the title of a link: it must be the title of the entry in the clip's own folder.

    Undo has found the entry that its run renamed. Where the server reports no folder, all entries are looked at.
    """
    asset = clip.asset
    title = clip.title
    if asset.folder is None:
        entries = (await reader.read_entries(database, asset)).same
    else:
        listing = await reader.read_folder(database, asset.folder)
        entries = () if listing is None else tuple(listing.entries)
    has_own = False
    others: list[Entry] = []
    for entry in entries:
        is_at_home = lives_in(asset, entry.folder) is not False
        if not is_at_home or compare_clips(asset, entry).answer != "same":
            continue
        if has_answered(asset, entry) and same_text(entry.title, title):
            has_own = True
        else:
            others.append(entry)
    verb = "is"
    if has_own:
        verb = "may be"
        is_known = is_undo or bool(clip.address.namespace)
        others = [] if is_known else await _of_one_clip(reader, database, asset, others)
    if others:
        raise refuse(
            f"{title!r} {verb} a link of {_listed(others)}, and a clip is not renamed through a link",
            source,
            "write the title of the clip itself in `was`, or address the clip by a key field with `id:`",
        )


async def _of_one_clip(
    reader: Reader, database: str, asset: Asset, entries: Sequence[Entry]
) -> list[Entry]:
    """Return the entries whose own answers are surely of the clip: a listing alone may show too little."""
    surely: list[Entry] = []
    for entry in entries[:MOST_LINKS]:
        answer = await reader.read_asset(database, Address(entry.title))
        if answer is not None and await are_one_clip(reader, database, asset, answer):
            surely.append(entry)
    return surely


# Links that are removed or changed by their title --------------------------------------------------------------
#
# The interface cannot remove a link. With `link_delete: by_title`, msauto sends a DELETE of the link's title.
# Where two links, or another clip, have that title, the wrong thing would be deleted.


def changes_of_links(changes: Sequence[Change]) -> list[Change]:
    """Return the changes of links."""
    return [change for change in changes if ASPECTS[change.aspect].deletes == "link"]


async def check_link_titles(
    reader: Reader,
    database: str,
    asset: Asset,
    changes: Sequence[Change],
    *,
    home: Folder | None = None,
    are_links: bool = False,
) -> None:
    """Raise ``PlanningError`` for a removed link whose title leads to something else or to several entries.

    It is also raised for a link whose fields change, if its title does not surely lead to it. ``changes`` are those of
    links. ``home`` is the folder of the clip as its task names it. ``are_links``: the plan found that what is removed
    are links, or a run made them.
    """
    for change in changes:
        if isinstance(change.after, dict):
            await _check_address(reader, database, asset, change)
    removed = [change for change in changes if change.action == "delete"]
    links = await reader.read_links(database, asset) if removed else ()
    for change in removed:
        place = parse_folder(change.key)
        remedy = "remove it by hand"
        why = why_ambiguous(place[-1], links) or await _why_not_removed(
            reader, database, asset, change
        )
        # A server may report any folder as that of the clip: `folder:` counts for links elsewhere that a task names.
        is_named_elsewhere = (
            home is not None and not change.losses and not same_folder(home, place[:-1])
        )
        is_link = are_links or is_named_elsewhere
        if why is None and not is_link and not await _is_away(reader, database, asset, place):
            why = "the server does not show which of the two is the clip, and which is the link"
            if home is None and asset.folder is not None and not change.losses:
                remedy += ", or write the `folder:` in which the clip itself lives, not its link"
        if why is not None:
            raise refuse(f"the link {change.key} cannot be removed: {why}", change.source, remedy)


async def _why_not_removed(
    reader: Reader, database: str, asset: Asset, change: Change
) -> str | None:
    """Return why a DELETE of the link's title may not mean this link."""
    place = parse_folder(change.key)
    answer = await reader.read_asset(database, Address(place[-1]))
    if answer is None:
        return "its title leads nowhere, so no request can mean it"
    why = await _why_another_entry(reader, database, asset, place, answer)
    if why is not None:
        return why
    comparison = compare_clips(asset, answer)
    if comparison.answer == "other":
        return "another clip has its title and would be deleted"
    if comparison.answer == "unknown":
        return f"the server reports too little to decide whether its title leads to this clip ({comparison.evidence})"
    # No task names an entry that `exactly` removes: it must surely be a link.
    if change.losses and not await are_one_clip(reader, database, asset, answer):
        return f"it may be another clip ({comparison.evidence})"
    return None


async def _is_away(reader: Reader, database: str, asset: Asset, place: Folder) -> bool:
    """Return whether the server shows that a link is one: outside the folder of its clip, or in the clip's own list."""
    answer = await reader.read_asset(database, Address(place[-1]))
    if answer is not None and lives_in(answer, place[:-1]) is False:
        return True
    return any(same_folder((*link.folder, link.title), place) for link in asset.links or ())


async def _why_another_entry(
    reader: Reader, database: str, asset: Asset, place: Folder, answer: Asset
) -> str | None:
    """Return why the answer to a link's title may be of another entry.

    A ``link_id`` that the link has and its clip does not have shows that the answer is of the link.
    """
    entry = await _entry_at(reader, database, place)
    answered = answer.link_id
    listed = None if entry is None else entry.link_id
    if answered is not None and listed is not None:
        if answered != listed:
            return "its title leads to another entry, which would be deleted"
        if answered != asset.link_id:
            return None
    entries = await reader.read_entries(database, answer)
    others: list[Entry] = []
    for other in (*entries.same, *entries.namesakes):
        if other != entry and same_text(other.title, place[-1]):
            others.append(other)
    return f"{_listed(others)} has its title, too" if others else None


async def _entry_at(reader: Reader, database: str, place: Folder) -> Entry | None:
    listing = await reader.read_folder(database, place[:-1])
    return None if listing is None else entry_called(listing.entries, place[:-1], place[-1])


async def _check_address(reader: Reader, database: str, asset: Asset, change: Change) -> None:
    """Refuse to set the fields of a link by a title that leads elsewhere; a new link's title must be free."""
    title = parse_folder(change.key)[-1]
    if change.action != "add":
        why = await why_not_set(reader, database, ClipIdentity.of(asset), change.key)
    elif await reader.read_asset(database, Address(title)) is not None:
        why = cannot_be_set(change.key, "another entry has its title already")
    else:
        return
    if why is not None:
        remedy = "give the link a unique title, or set its fields by hand"
        raise refuse(why, change.source, remedy)


async def why_not_set(
    reader: Reader, database: str, clip: ClipIdentity, key: str, altered: Collection[str] = ()
) -> str | None:
    """Return why the fields of a link must not be sent to its title; ``None`` where it surely leads to the link.

    The answer has the ``link_id`` that the entry has in its folder, and that is not the one of the clip. ``altered``
    are the values that the requests of the run may change.
    """
    place = parse_folder(key)
    answer = await reader.read_asset(database, Address(place[-1]))
    if answer is None:
        return cannot_be_set(key, "its title leads nowhere")
    if is_another_clip(structs.replace(clip, link_id=None), answer, altered):
        return cannot_be_set(key, "another clip has its title")
    entry = await _entry_at(reader, database, place)
    in_folder = None if entry is None else entry.link_id
    leads_to_link = answer.link_id is not None and answer.link_id == in_folder
    if leads_to_link and in_folder != clip.link_id:
        return None
    link_ids = f"read by title: {_called(answer.link_id)}, in its folder: {_called(in_folder)}"
    why = f"its title leads to another entry, or the server does not report to which ({link_ids})"
    return cannot_be_set(key, why)


def link_to_set(request: Request) -> str | None:
    """Return the key of the link whose fields a request sets by its title."""
    for effect in request.effects:
        is_there = effect.before is not None and effect.after is not None
        if is_there and ASPECTS[effect.aspect].deletes == "link":
            return effect.key
    return None


def _called(link_id: int | None) -> str:
    return "no link_id" if link_id is None else str(link_id)
