"""Find the clip of a group under each of its names, and decide which entry of the clip each task declares."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import NamedTuple

from msgspec import Struct, structs

from msauto.aspects import ASPECTS
from msauto.aspects.comparison import entry_called
from msauto.aspects.plan_builder import refuse
from msauto.errors import MsautoError
from msauto.model.clip_entries import are_one_clip, clip_key, is_listed_in
from msauto.model.desired import Desired, DesiredAsset, Sourced, TitleRef
from msauto.model.facts import Facts, Need
from msauto.model.identity import is_known_otherwise, lives_in, same_folder, same_text
from msauto.model.live import Asset, Folder, show_folder
from msauto.model.plan import Address
from msauto.model.ports import Reader
from msauto.planning.fact_layers import FoundClip
from msauto.planning.renames import Rename
from msauto.planning.target_groups import IntentGroup, IntentGroupMember, check_entry, titles_like
from msauto.primitives.normal_form import normal_form

Declared = tuple[IntentGroupMember, Desired]
"""A member of a group, and what it declares."""


class DistinctClipsError(Exception):
    """Groups were merged because their answers looked like one clip, but they are several."""


class NamedClip(NamedTuple):
    """One name of a group, and the clip found under it."""

    part: IntentGroup
    clip: FoundClip


class ClipFinder(Struct, eq=False):
    """Finds the clip of a group under each name: by id, by title, else by a former title.

    ``clips`` are what the names lead to, ``of_member`` that of each task, ``main`` the one under which the clip is
    planned. ``keeps_former_title`` (undo): another clip now has the title that it had.
    """

    reader: Reader
    group: IntentGroup
    clips: list[NamedClip] = []
    of_member: dict[IntentGroupMember, NamedClip] = {}
    main: NamedClip | None = None
    keeps_former_title: bool = False
    warnings: tuple[str, ...] = ()

    async def __call__(self) -> FoundClip | None:
        """Return the clip, or ``None``. Raises ``DistinctClipsError`` where the names lead to several clips."""
        for part in self.group.parts:
            clip = await self._locate(part)
            if clip is not None:
                named = NamedClip(part, clip)
                self.clips.append(named)
                self.of_member |= dict.fromkeys((*part.members, *part.protecting), named)
        if not self.clips:
            return None
        if len(self.clips) > 1 and not await self._are_one([clip for _, clip in self.clips]):
            raise DistinctClipsError
        planned = [named for named in self.clips if named.part.members] or self.clips
        self.main = planned[0] if len(planned) == 1 else await self._main_name(planned)
        key = clip_key(self.main.clip.asset)
        self.group.clip = None if key is None else hash((self.group.database, key))
        return self.main.clip

    async def _main_name(self, clips: Sequence[NamedClip]) -> NamedClip:
        """Return the main name of a clip with several names: an id, a name to be changed, the entry in its home folder.

        The order of the tasks does not matter, because the ledger keeps its memories under this name.
        """
        renamed: NamedClip | None = None  # under this name the clip gets another title
        by_id: list[NamedClip] = []
        for named in clips:
            if named.part.by_id:
                by_id.append(named)
            elif renamed is None and not same_text(named.clip.title, named.part.name):
                renamed = named
        for named in by_id:
            if renamed is None or same_text(named.clip.title, renamed.clip.title):
                return named
        if renamed is not None:
            return renamed
        homes = [named for named in clips if await self._is_at_home(named)]
        return min(homes or clips, key=lambda named: named.clip.title)

    async def _is_at_home(self, named: NamedClip) -> bool:
        asset = named.clip.asset
        home = asset.folder
        if home is None:
            return False
        for member in named.part.members:
            if member.entry is not None and same_folder(member.entry.folder, home):
                return True
        return is_listed_in(asset, await self.reader.read_folder(named.part.database, home))

    async def _locate(self, part: IntentGroup) -> FoundClip | None:
        if part.by_id is not None:
            address, answer = part.by_id
            return None if answer is None else FoundClip(answer, address, answer.title or part.name)
        clips: dict[Address, FoundClip] = {}
        rename = part.rename or Rename(part.name)
        titles: Sequence[str] = (rename.title, *rename.was)
        if rename.passed_on or rename.next_titles:
            titles = await rename.sought(self._read, _namer(part).intent.source)
        for title in titles:
            asset = await self._read(title)
            if asset is not None and asset.title == title:
                clip: FoundClip | None = FoundClip(asset, Address(title), title)
            else:
                clip = await self._by_other_form(part, title, asset)
            if clip is not None:
                clips.setdefault(clip.address, clip)
        if len(clips) > 1:
            return await self._choose(part, list(clips.values()))
        return next(iter(clips.values()), None)

    async def _choose(self, part: IntentGroup, clips: Sequence[FoundClip]) -> FoundClip | None:
        """Return one of several clips found under the titles of a name."""
        if await self._are_one(clips):
            return await self._one_of(part, clips)
        if _may_stay(part):
            self.keeps_former_title = True
            kept = clips[-1]
            self.warnings += (
                f"{kept.title}: the title is not changed, because another clip now has {part.name!r}",
            )
            return kept
        raise refuse(
            f"both {clips[0].title!r} and {clips[1].title!r} exist: the asset is ambiguous",
            _namer(part).intent.source,
            "rename or delete one of them, or remove the former title from `was`",
        )

    async def _are_one(self, clips: Sequence[FoundClip]) -> bool:
        """Whether all answers are of one clip."""
        for other in clips[1:]:
            if not await are_one_clip(
                self.reader, self.group.database, clips[0].asset, other.asset
            ):
                return False
        return True

    async def _one_of(self, part: IntentGroup, clips: Sequence[FoundClip]) -> FoundClip:
        """Return the entry of a clip found under several titles: the one that undo names, else the one at home.

        The others are links with a former title, or already with the new one. Where a server reports the own folder of
        each, the first one counts: it has the title that is asked for.
        """
        known: set[int | None] = set()
        for member in part.naming:
            if isinstance(member.intent.ref, TitleRef):
                known.add(member.intent.ref.link_id)
        for clip in clips:
            if clip.asset.link_id is not None and clip.asset.link_id in known:
                return clip
        homes = [clip for clip in clips if await self._is_at_home(NamedClip(part, clip))]
        return (homes or clips)[0]

    async def _by_other_form(
        self, part: IntentGroup, name: str, asset: Asset | None
    ) -> FoundClip | None:
        """Return the only clip whose title is equal after Unicode NFC; ``asset`` is the answer to exactly this one.

        Where a server finds titles exactly, the one of another form is not deleted; a warning names it.
        """
        asked = name
        for form in sorted({normal_form(name), normal_form(name, "NFD")} - {name}):
            if asset is None:
                asked = form
                asset = await self._read(form)
        if asset is None:
            return None
        if asked != name and all(member.intent.absent for member in part.naming):
            self._warn_of_other_form(name, asked)
            return None
        titles = await titles_like(self.reader, part.database, asset)
        if len(titles) > 1:
            raise refuse(
                f"{name!a} leads to {asset.title!a}, and several titles differ only in their "
                f"Unicode normalization: {', '.join(map(ascii, titles))}",
                part.naming[0].intent.source,
                "write the title exactly as the server does, address the clip by `id:`, or rename one of them",
            )
        return FoundClip(asset, Address(asked), asked)

    def _warn_of_other_form(self, name: str, live: str) -> None:
        what = f"{name!a} is not deleted: only {live!a} exists, whose title differs in its Unicode normalization"
        self.warnings += (f"{what}; write it exactly as the server does to delete it",)

    def _read(self, name: str) -> Awaitable[Asset | None]:
        return self.reader.read_asset(self.group.database, Address(name))

    # What each member declares, once the clip is found ---------------------------------------------------------

    def answer_to(self, member: IntentGroupMember) -> FoundClip | None:
        """Return the answer to the name by which a member names the clip; ``None`` if it was not found or sought."""
        named = self.of_member.get(member)
        return None if named is None else named.clip

    def check_entry(self, member: IntentGroupMember, desired: Desired | None) -> None:
        """Raise ``PlanningError`` where a select chose another clip than the one found under its title."""
        entry = member.entry
        answer = self.answer_to(member)
        if entry is None or answer is None:
            return
        if desired is not None or _needs_clip(member):
            check_entry(entry, answer.asset, member.intent.source)
        listed = entry.link_id
        answered = answer.asset.link_id
        is_another_entry = is_known_otherwise(listed, answered)
        if is_another_entry and isinstance(desired, DesiredAsset):
            place = show_folder((*entry.folder, entry.title))
            why = f"the title of {place} leads to another (link_id {answered}, not {listed})"
            _refuse_link_fields(desired, why)

    async def divide(
        self, declared: Sequence[Declared], renaming: Sequence[Declared] = ()
    ) -> tuple[list[Declared], list[Declared]]:
        """Return what concerns the clip that was found, with the title to set, and what concerns a missing one.

        ``renaming``: what may rename the clip, beside that.
        """
        renames = False
        for member, desired in (*declared, *renaming):
            if isinstance(desired, DesiredAsset) and desired.present and former_titles(member):
                renames = True
        for_clip: list[Declared] = []
        for_missing: list[Declared] = []
        for member, desired in declared:
            named = self.of_member.get(member)
            deletes = isinstance(desired, DesiredAsset) and not desired.present
            may_rename = renames and not deletes
            if named is not None and self._is_for_clip(member, named, renames=may_rename):
                is_gone = deletes and await self._is_gone(member, named.clip, desired)
                if not is_gone:
                    for_clip.append((member, self._for_main(member, named, desired)))
                    continue
            for_missing.append((member, desired))
        return for_clip, for_missing

    async def _is_gone(
        self, member: IntentGroupMember, answer: FoundClip, desired: Desired
    ) -> bool:
        """Return whether the clip that a member deletes is gone, and only another one of that title left.

        The other one has another form of the title, or is in another folder.
        A folder that lists the title holds a link, or a clip to which the title does not lead: then the guard fails.
        """
        asset = answer.asset
        title = answer.title
        if member.title is not None and member.title != title and same_text(member.title, title):
            is_gone = await self._read(member.title) is None  # the server finds titles exactly
            if is_gone:
                self._warn_of_other_form(member.title, title)
            return is_gone
        if not isinstance(desired, DesiredAsset) or desired.folder is None:
            return False
        folder = desired.folder.value
        if lives_in(asset, folder) is not False:
            return False
        listing = await self.reader.read_folder(self.group.database, folder)
        if listing is not None and entry_called(listing.entries, folder, title) is not None:
            return False
        home = show_folder(asset.folder or ()) or "/"
        named = show_folder(folder) or "/"
        self.warnings += (
            f"{title!r} in {home} is not deleted: the task names the one in {named}, and none is there",
        )
        return True

    def _is_for_clip(self, member: IntentGroupMember, named: NamedClip, *, renames: bool) -> bool:
        """Whether what a member declares is for the clip that its name leads to.

        ``renames``: a task renames the clip. Then any other title that it may have counts as well.
        """
        if member.title is None or same_text(member.title, named.clip.title):
            return True
        if same_text(member.title, named.part.name):  # the title that the clip is to get
            return not self.keeps_former_title or _may_stay(named.part)
        for former in former_titles(member):
            if same_text(former, named.clip.title):
                return True
        return renames and any(same_text(member.title, name) for name in named.part.names)

    def _for_main(self, member: IntentGroupMember, named: NamedClip, desired: Desired) -> Desired:
        """Return what a member declares as it is for the main entry, with the title to set where that is a former one.

        A title that is not to be set only names the clip. The folder of another entry is checked here, and done with.
        """
        if member.title is None or not isinstance(desired, DesiredAsset):
            return desired
        assert self.main is not None
        part = named.part
        asset = named.clip.asset
        title = named.clip.title
        is_main = same_text(self.main.clip.title, title)
        if desired.folder is not None and not is_main:
            check_guard(asset, title, desired.folder)
            desired = structs.replace(desired, folder=None)
        parts = dict(desired.parts)
        title_declared: Sourced[str] | None = parts.pop("title", None)
        if desired.present and not is_main:
            entry = title if self.group.merged else None
            for name, value in parts.items():
                parts[name] = ASPECTS[name].for_clip(value, asset, entry)
        has_former = same_text(member.title, part.name) and not same_text(title, part.name)
        is_renamed = desired.present and has_former and not self.keeps_former_title
        if is_renamed:
            parts["title"] = Sourced(part.name, (title_declared or desired).source)
        return structs.replace(desired, parts=parts)

    def check_aliases(self, declared: Sequence[Declared]) -> None:
        """Refuse link fields that a task declares for another entry of the clip: the wrong entry would get them.

        A select that chose a link may also have chosen the clip under its main name: then it declares them for both.
        """
        assert self.main is not None
        main = self.main.clip.title
        selected_by: set[int] = set()  # the tasks that select the clip under its main name
        on_others: list[tuple[IntentGroupMember, DesiredAsset, str]] = []
        for member, desired in declared:
            clip = self.answer_to(member)
            if clip is None:
                continue
            if not same_text(main, clip.title):
                if isinstance(desired, DesiredAsset):
                    on_others.append((member, desired, clip.title))
            elif member.entry is not None:
                selected_by.add(id(member.intent))
        for member, desired, title in on_others:
            if member.entry is None or id(member.intent) not in selected_by:
                why = f"{title!r} and {main!r} are two entries of one clip, declared otherwise"
                _refuse_link_fields(desired, why)

    def named(self) -> IntentGroup:
        """Return the group under the main name of the clip."""
        assert self.main is not None
        if self.keeps_former_title:
            title = self.main.clip.title
            return structs.replace(self.group, name=title, rename=Rename(title))
        if self.group.merged:
            return structs.replace(self.group, name=self.main.part.name)
        return self.group


def check_guard(asset: Asset, title: str, guard: Sourced[Folder]) -> None:
    """Raise ``PlanningError`` where the home folder of a clip is not the one that its task names."""
    if lives_in(asset, guard.value):
        return
    home = "the server does not report its folder"
    if asset.folder is not None:
        home = f"it is in {show_folder(asset.folder) or '/'}"
    if asset.folder_otherwise is not None:
        otherwise = show_folder(asset.folder_otherwise) or "/"
        home += f" or {otherwise}: this server may put the name of the database in front"
    raise refuse(
        f"{title!r} must be in {show_folder(guard.value) or '/'}, but {home}",
        guard.source,
        "correct the folder, or check that the title is that of the right clip",
    )


def _refuse_link_fields(desired: DesiredAsset, why: str) -> None:
    """Refuse the fields that a task declares for an entry which the title of the target does not lead to."""
    for aspect, part in desired.parts.items():
        if not ASPECTS[aspect].per_entry:
            continue
        for name, sourced in part.items():
            raise refuse(
                f"the {aspect} {name} is declared for one entry of the clip: {why}",
                sourced.source,
                "declare the fields of a link under `links:` of the clip, or in a separate run",
            )


def _needs_clip(member: IntentGroupMember) -> bool:
    """Whether what a member declares depends on more than its entry of the listing."""
    try:
        member.intent.evaluate(Facts(entry=member.entry))
    except (Need, MsautoError) as error:
        return isinstance(error, Need)
    return False


def former_titles(member: IntentGroupMember) -> tuple[str, ...]:
    """Return the former titles that a member names."""
    return member.intent.ref.was if isinstance(member.intent.ref, TitleRef) else ()


def _namer(group: IntentGroup) -> IntentGroupMember:
    """Return the member that names former titles."""
    naming = group.naming
    return next(filter(former_titles, naming), naming[0])


def _may_stay(group: IntentGroup) -> bool:
    """Whether the clip may keep a former title: only undo declares it."""
    for member in group.naming:
        if not isinstance(member.intent.ref, TitleRef) or not member.intent.ref.may_stay:
            return False
    return True
