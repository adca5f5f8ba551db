"""Checks before an asset is deleted, and before a link is removed or changed: the title must lead to the right entry.

The interface deletes by title or key id. A link is an entry of the same clip in another folder, and a server may delete
the clip for it. So the whole database is listed once in a run, to know every entry of the clip.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec import structs

from msauto.aspects import ASPECTS
from msauto.aspects.comparison import entry_called
from msauto.aspects.link import why_ambiguous
from msauto.aspects.plan_builder import refuse
from msauto.errors import PlanningError
from msauto.model.clip_entries import are_one_clip, read_entries_of
from msauto.model.desired import DesiredAsset, TaskSource
from msauto.model.identity import compare_clips, differing, plain, same_folder, same_text
from msauto.model.live import Asset, ClipEntries, Entry, Folder, parse_folder, show_folder
from msauto.model.plan import Address, Change, Target
from msauto.model.ports import Reader
from msauto.planning.fact_layers import FoundClip

_MOST_LISTED: Final = 10


def places_of(asset: Asset, title: str, entries: ClipEntries) -> tuple[Folder, ...]:
    """Return folder and title of every entry that shows the clip, except the target itself."""
    own = _own_entry(asset, title, entries.same)
    at_home = own is not None and asset.folder is not None and same_folder(own.folder, asset.folder)
    if own is not None and not (at_home and same_text(own.title, title)):
        own = None  # a link, or listed under a title that the answer does not show: the target is known by neither
    return tuple((*entry.folder, entry.title) for entry in entries.same if entry is not own)


async def with_places(target: Target, asset: Asset, reader: Reader) -> Target:
    """Return a target that loses something with the entries that show it; any other target is not changed."""
    if not target.loses:
        return target
    titled = structs.replace(asset, title=asset.title or target.name)
    places = places_of(titled, target.name, await read_entries_of(reader, target.database, titled, in_doubt=True))
    return structs.replace(target, places=tuple(map(show_folder, places)))


def is_home_of(target: Target, asset: Asset) -> bool:
    """Return whether the clip of an answer may live where it did when the target was planned."""
    homes = [show_folder(each) for each in (asset.folder, asset.folder_otherwise) if each is not None]
    return target.folder is None or not homes or any(same_text(home, target.folder) for home in homes)


async def why_not_deleted(
    target: Target, index: int, asset: Asset, listed: Reader, recent: Reader, *, again: bool
) -> str | None:
    """Return what has changed, so that the planned DELETE must not be sent; ``None`` if it may. Raises ``MsautoError``.

    ``index`` is that of the next request. ``asset`` is the answer just now, and ``listed`` has just read the listing of
    the database; ``recent`` has answers of other clips, not older than a minute. ``again``: the DELETE was sent before,
    and the server may show its effect late.
    """
    left = dict.fromkeys(number for request in target.requests[index:] for number in request.changes)
    changes = [target.changes[number] for number in left]
    if _removed_links(changes):
        try:
            await check_link_titles(listed, target.database, asset, target.name, changes)
        except PlanningError as error:
            return error.message
        return None
    if not is_home_of(target, asset):
        return f"it is in {show_folder(asset.folder or ())!r}, and was in {target.folder!r}"
    titled = structs.replace(asset, title=asset.title or target.name)
    entries, new = await _entries_now(target, titled, listed, recent)
    if new:  # a clip that this run renames, or has just deleted, is not new
        entries, new = await _entries_now(target, titled, listed.fresh(), recent)
    if new:
        return f"{', '.join(new)} {'shows' if len(new) == 1 else 'show'} it, too"
    if again and entries.namesakes:
        return f"two clips have the title {target.name!r}: {_listed([*entries.same, *entries.namesakes])}"
    if again and not target.clip.is_known:
        return "the server reports nothing that distinguishes it from another clip of this title"
    return None


async def _entries_now(target: Target, asset: Asset, listed: Reader, recent: Reader) -> tuple[ClipEntries, list[str]]:
    """Return the entries of a clip, and the places of those that the plan did not show."""
    entries = await read_entries_of(recent, target.database, asset, listed=listed, in_doubt=True)
    shown = {plain(place) for place in target.places}
    places = map(show_folder, places_of(asset, target.name, entries))
    return entries, [place for place in places if plain(place) not in shown]


class _Own(NamedTuple):
    """The entries of a clip that an answer may be of: those of its ``link_id``, and those of the title asked for."""

    by_id: list[Entry]
    called: list[Entry]

    @classmethod
    def of(cls, asset: Asset, title: str, entries: Sequence[Entry]) -> _Own:
        return cls(
            [entry for entry in entries if asset.link_id is not None and entry.link_id == asset.link_id],
            [entry for entry in entries if same_text(entry.title, title)],
        )


def _own_entry(asset: Asset, title: str, entries: Sequence[Entry]) -> Entry | None:
    """Return the entry with this title: the one of that ``link_id``, else the one in the home folder."""
    by_id, called = _Own.of(asset, title, entries)
    home = [entry for entry in called if asset.folder is not None and same_folder(entry.folder, asset.folder)]
    alone = called if len(called) == 1 else []
    return next(iter([*by_id, *home, *alone]), None)


async def check_deletion(
    reader: Reader, database: str, found: FoundClip, chosen: Sequence[Entry], desired: DesiredAsset
) -> ClipEntries | None:
    """Return the entries that show the clip, or ``None`` where it is deleted already and only held open.

    ``chosen`` are the entries that a select chose. Raises ``PlanningError`` where the task names a link instead of the
    clip, where links show the clip and the task does not consent, and where another clip has the same title.
    """
    titled = structs.replace(found.asset, title=found.asset.title or found.title)
    entries = await read_entries_of(reader, database, titled, in_doubt=True)
    by_id = bool(found.address.namespace)
    if by_id and not entries.same:
        # Where the title no longer leads to the clip, it was deleted while open (interface, «States»).
        answer = await reader.read_asset(database, Address(found.title))
        if answer is None or differing(answer, found.asset):
            return None
    await _check_is_no_link(reader, database, found, chosen, entries, desired.source)
    if found.asset.title is None and not by_id and entries.same:
        _check_is_called(found.title, entries.same, desired.source)
    namesakes = [entry for entry in entries.namesakes if entry.title == titled.title]
    if namesakes and not by_id and desired.folder is None:
        raise refuse(
            f"two clips have the title {found.title!r}: {_listed([*entries.same, *namesakes])}",
            desired.source,
            "write the `folder:` of the clip, or address it by a key field with `id:`",
        )
    own = _own_entry(found.asset, found.title, entries.same)
    if any(entry is not own for entry in entries.same) and not desired.with_links:
        raise refuse(
            f"{found.title!r} has several entries ({_listed(entries.same)}), and a clip is not deleted while links "
            "show it",
            desired.source,
            "remove the links first, or write `with_links: true` to delete the clip with all its links",
        )
    return entries


async def _check_is_no_link(
    reader: Reader, database: str, found: FoundClip, chosen: Sequence[Entry], entries: ClipEntries, source: TaskSource
) -> None:
    """Refuse to delete a clip for an entry outside its home folder.

    In an unknown home folder, an entry that is younger than the one that answers is a link.
    """
    home, mine = found.asset.folder, found.asset.link_id
    if found.asset.folder_otherwise is not None:
        return
    by_id, called = _Own.of(found.asset, found.title, entries.same)
    named = chosen or (by_id if found.address.namespace else called)
    at_home = [entry for entry in named if home is None or same_folder(entry.folder, home)]
    if home is None and mine is not None:
        at_home = [entry for entry in named if entry.link_id is None or entry.link_id <= mine]
    if not named or (at_home and not await _is_younger_link(reader, database, found, called, entries)):
        return
    raise refuse(
        f"the entry {_listed(named[:1])} is a link, and a clip is not deleted through a link; entries of the clip: "
        f"{_listed(entries.same)}",
        source,
        "address the clip by its own title, or select it in its home folder",
    )


async def _is_younger_link(
    reader: Reader, database: str, found: FoundClip, called: Sequence[Entry], entries: ClipEntries
) -> bool:
    """Return whether all older entries of the clip have another title: a link is created after its clip.

    Without a file, at least one of them must surely be of the clip.
    """
    mine = found.asset.link_id
    older = [each for each in entries.same if mine is not None and each.link_id is not None and each.link_id < mine]
    if not older or any(entry in called for entry in older):
        return False
    if found.asset.hires or found.asset.archive:
        return True
    titled = structs.replace(found.asset, title=found.asset.title or found.title)
    sure = (await read_entries_of(reader, database, titled)).same
    return any(entry in sure for entry in older)


def _check_is_called(title: str, same: Sequence[Entry], source: TaskSource) -> None:
    """Refuse to delete a clip whose answer has no title, where no entry that shows it has the title asked for."""
    if not any(same_text(entry.title, title) for entry in same):
        raise refuse(
            f"the server answers {title!r} with the clip that it lists as {_listed(same)}",
            source,
            "write the title exactly as the server shows it",
        )


def _listed(entries: Sequence[Entry]) -> str:
    shown = ", ".join(show_folder((*entry.folder, entry.title)) for entry in entries[:_MOST_LISTED])
    return shown + (f" and {len(entries) - _MOST_LISTED} more" if len(entries) > _MOST_LISTED else "")


# Links that are removed or changed by their title --------------------------------------------------------------
#
# The interface cannot remove a link. With `link_delete: by_title`, msauto sends a DELETE of the link's title.
# Where two links, or another clip, have that title, the wrong thing would be deleted.


async def check_link_titles(reader: Reader, database: str, asset: Asset, title: str, changes: Sequence[Change]) -> None:
    """Raise ``PlanningError`` for a removed link whose title leads to something else or to several entries.

    It is also raised for a link whose fields change, if its title does not surely lead to it.
    """
    for change in changes:
        if ASPECTS[change.aspect].deletes == "link" and isinstance(change.after, dict):
            await _check_address(reader, database, asset, change)
    removed = _removed_links(changes)
    if not removed:
        return
    links = await reader.read_links(database, asset)
    asset = structs.replace(asset, title=asset.title or title)
    for change in removed:
        why = why_ambiguous(parse_folder(change.key)[-1], links)
        why = why or await _why_not_removed(reader, database, asset, change)
        if why is not None:
            raise refuse(f"the link {change.key} cannot be removed: {why}", change.source, "remove it by hand")


def _removed_links(changes: Sequence[Change]) -> list[Change]:
    return [change for change in changes if ASPECTS[change.aspect].deletes == "link" and change.action == "delete"]


async def _why_not_removed(reader: Reader, database: str, asset: Asset, change: Change) -> str | None:
    """Return why a DELETE of the link's title may not mean this link."""
    *folder, called = parse_folder(change.key)
    answer = await reader.read_asset(database, Address(called))
    if answer is None:
        return "its title leads nowhere, so no request can mean it"
    why = await _why_another_entry(reader, database, asset, (tuple(folder), called), answer)
    why = why or _why_not_a_link(asset, tuple(folder), answer)
    if why is not None or not change.losses:
        return why
    # No task names an entry that `exactly` removes: it must surely be a link.
    if await are_one_clip(reader, database, asset, structs.replace(answer, title=called)):
        return None
    return "the server reports nothing that distinguishes it from another clip of the same length and creation time"


async def _why_another_entry(
    reader: Reader, database: str, asset: Asset, link: tuple[Folder, str], answer: Asset
) -> str | None:
    """Return why the answer to a link's title may be of another entry.

    A ``link_id`` that the link has and its clip does not have shows that the answer is of the link.
    """
    entry, answered = await _entry_at(reader, database, *link), answer.link_id
    listed = None if entry is None else entry.link_id
    if None not in {answered, listed} and answered not in {listed, asset.link_id}:
        return "its title leads to another entry, which would be deleted"
    if listed is not None and listed == answered != asset.link_id:
        return None
    found = await reader.read_entries(database, structs.replace(answer, title=link[1]))
    others = [each for each in (*found.same, *found.namesakes) if each != entry and same_text(each.title, link[1])]
    return f"{_listed(others)} has its title, too" if others else None


async def _entry_at(reader: Reader, database: str, folder: Folder, title: str) -> Entry | None:
    listing = await reader.read_folder(database, folder)
    return entry_called(listing.entries if listing else (), folder, title)


async def _check_address(reader: Reader, database: str, asset: Asset, change: Change) -> None:
    """Refuse to set the fields of a link by a title that leads elsewhere; a new link's title must be free."""
    *folder, title = parse_folder(change.key)
    answer = await reader.read_asset(database, Address(title))
    if change.action == "add":
        if answer is None:
            return
        why = "another entry has its title already"
    elif answer and differing(asset, answer):
        why = "another clip has its title"
    else:
        entry = await _entry_at(reader, database, tuple(folder), title)
        if answer and entry and answer.link_id is not None and answer.link_id == entry.link_id:
            return
        ids = ["no link_id" if each is None or each.link_id is None else str(each.link_id) for each in (answer, entry)]
        found_in = f"read by title: {ids[0]}, in its folder: {ids[1]}"
        why = f"its title leads to another entry, or the server does not report to which ({found_in})"
    raise refuse(
        f"the fields of the link {change.key} cannot be set: {why}",
        change.source,
        "give the link a unique title, or set its fields by hand",
    )


def _why_not_a_link(asset: Asset, folder: Folder, answer: Asset) -> str | None:
    """Return why an entry in that folder, whose title got that answer, may not be a link of the asset.

    Where the server reports the link's own folder, only the ``link_id`` decides: a link is created after its clip, so
    an entry whose number is not greater may be the clip itself.
    """
    same = compare_clips(asset, answer).answer
    if same == "other":
        return "another clip has its title and would be deleted"
    if same == "unknown":
        return "the server reports too little to decide whether its title leads to this clip"
    if answer.folder is None or not same_folder(answer.folder, folder):
        return None  # the home folder is another one, so this is a link
    if None in (asset.link_id, answer.link_id) or int(answer.link_id or 0) <= int(asset.link_id or 0):
        return "it is in the folder that the server reports for the clip, and it may be the clip itself"
    return None
