"""What a plan leaves out still protects what it names: nothing else removes it, and contradictions are errors.

Left out are tasks (``--tags``, ``--skip-tags``), targets that are not chosen (``--target``), and what is in error
(``--keep-going``). Nothing of them is planned. What names a target by one of its titles is known without reading. What
may name it otherwise is looked up only where the target loses something. :class:`TargetChoice` is what ``--target``
chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

from msgspec import Struct, structs

from msauto.aspects import ASPECTS, merge_desired
from msauto.aspects.merging import Merging
from msauto.aspects.plan_builder import PlanBuilder, PlanContext, refuse
from msauto.errors import MsautoError, PlanningError, close_names
from msauto.model.clip_entries import entries_in_doubt
from msauto.model.desired import (
    ChannelRef,
    DesiredAsset,
    DesiredChannel,
    DesiredList,
    Intent,
    TaskSource,
    TitleRef,
)
from msauto.model.facts import Facts, Need, NoAssetError
from msauto.model.identity import matches, plain
from msauto.model.plan import Change, Target
from msauto.model.ports import Reader
from msauto.model.timecode import TimecodeError
from msauto.planning.clip_finder import ClipFinder, Declared, check_guard
from msauto.planning.fact_layers import Layers
from msauto.planning.target_groups import Grouping, IntentGroup, IntentGroupMember, may_choose

P = TypeVar("P", bound=DesiredList[Any] | DesiredChannel)
Losing = tuple[IntentGroup, Target]
"""An asset that loses something: what is declared for it, and what is planned."""
_INVALID: Final = (MsautoError, TimecodeError, NoAssetError, Need)
"""What a task raises that is in error itself, or needs more facts."""


class TargetChoice(Struct):
    """Globs of titles. No glob means every target: then nothing is asked of it.

    A target is chosen by its title, a former title of it, its key id, or the name of the channel or database.
    ``matched`` are the globs that matched something, on any server, and ``known`` all names that there were.
    """

    globs: Sequence[str] = ()
    matched: set[str] = set()
    known: dict[str, None] = {}

    def among(self, known: Iterable[str]) -> Callable[[Iterable[str]], bool]:
        """Return whether a target with some names is planned, as a function of them.

        ``known`` are the names of all targets of a server: a glob that is one of them chooses that name alone, so that
        the title ``News [a]`` does not choose ``News a``.
        """
        titles = dict.fromkeys(known)
        self.known |= titles
        form_of = {glob: plain(glob) for glob in self.globs}
        exact = {plain(title) for title in titles}.intersection(form_of.values())

        def is_chosen(names: Iterable[str]) -> bool:
            forms = {plain(name) for name in names}
            is_matched = False
            for glob, form in form_of.items():
                if form in exact:
                    is_match = form in forms
                else:
                    is_match = matches(form, forms)
                if is_match:
                    self.matched.add(glob)
                    is_matched = True
            return is_matched

        return is_chosen

    def merge(self, other: TargetChoice) -> None:
        """Add what the same globs matched elsewhere."""
        self.matched |= other.matched
        self.known |= other.known

    @property
    def warnings(self) -> tuple[str, ...]:
        """A warning that the plan is not complete, if it is narrowed."""
        if not self.globs:
            return ()
        globs = ", ".join(map(repr, dict.fromkeys(self.globs)))
        return (f"--target narrows this plan to {globs}; plan without it to see the rest",)

    def require_matches(self) -> None:
        """Raise :class:`MsautoError` if a glob matched nothing."""
        for glob in self.globs:
            if glob not in self.matched:
                near = close_names(plain(glob), list(self.known), 1, 0.5)
                remedy = (
                    f"did you mean {near[0]!r}?"
                    if near
                    else "name a title, a channel or a glob such as 'EP*'"
                )
                raise MsautoError(
                    f"--target {glob!r} matches no target of the playbooks", remedy=remedy
                )


def protect_by_title(groups: Sequence[IntentGroup], left_out: Sequence[Intent]) -> None:
    """Give each group the tasks that are left out and name it by its title, a former one, or its channel."""
    named: dict[tuple[str, str, str], list[IntentGroup]] = {}
    for group in groups:
        for name in group.plain_names:
            named.setdefault((group.kind, group.database, name), []).append(group)
    for intent in left_out:
        ref = intent.ref
        if isinstance(ref, TitleRef):
            keys = [("asset", ref.database, title) for title in _titles_in(ref)]
            member = IntentGroupMember(intent, ref.title)
        elif isinstance(ref, ChannelRef):
            keys = [("rss_channel", "", plain(ref.channel))]
            member = IntentGroupMember(intent)
        else:
            continue
        protected_groups: dict[int, IntentGroup] = {}
        for key in keys:
            for group in named.get(key, ()):
                protected_groups[id(group)] = group
        for group in protected_groups.values():
            group.protecting += (member,)


async def protect_otherwise(
    grouping: Grouping,
    losing: Sequence[Losing],
    others: Sequence[IntentGroup],
    left_out: Sequence[Intent],
) -> list[IntentGroup]:
    """Return the groups that may name the clip of an asset which loses something otherwise, looked for if possible.

    ``losing`` are assets of one database, ``others`` groups that are not planned. The tasks ``left_out`` that name a
    losing asset by its title, as a select does, are added to its group. Raises ``ServerError``.
    """
    titles: set[str] = set()
    for _, target in losing:
        titles |= await _titles_of(grouping.reader, target)
    near: list[IntentGroup] = []
    for group in others:
        if group.by_id or not titles.isdisjoint(group.plain_names):
            near.append(group)
    asked: list[Intent] = []
    for intent in left_out:
        if not isinstance(intent.ref, TitleRef) or not titles.isdisjoint(_titles_in(intent.ref)):
            asked.append(intent)
    protecting: list[IntentGroup] = []
    if asked:
        groups = await structs.replace(grouping, losing_titles=titles).groups(asked)
        protecting = [group for group in groups if not _protect_same(losing, group)]
    await find_clips(grouping.reader, [*near, *protecting])
    for group in protecting:
        group.protecting = tuple(group.members)
        group.members = []
    return [*near, *protecting]


def _protect_same(losing: Sequence[Losing], group: IntentGroup) -> bool:
    """Give the losing groups that a group names by a title its tasks; return whether there is one."""
    names = group.plain_names
    is_named = False
    for losing_group, _ in losing:
        if names.isdisjoint(losing_group.plain_names):
            continue
        is_named = True
        known = {id(member.intent) for member in losing_group.protecting}
        for member in group.members:
            if id(member.intent) not in known:
                losing_group.protecting += (member,)
    return is_named


async def find_clips(reader: Reader, groups: Sequence[IntentGroup]) -> None:
    """Find the clips of groups, to detect those of one clip."""
    for group in groups:
        if group.clip is None:
            with suppress(Exception):  # a clip that cannot be found is that of no other group
                await ClipFinder(reader, group)()


def asks_for_something(member: IntentGroupMember) -> bool:
    """Return whether a task may ask for anything but that its asset is absent."""
    try:
        desired = member.intent.evaluate(Facts(entry=member.entry))
    except Exception:  # noqa: BLE001 - the task that names it has the error
        return not member.intent.absent
    if isinstance(desired, DesiredAsset):
        return desired.present
    return desired is not None


def _titles_in(ref: TitleRef) -> set[str]:
    """Return the titles by which a task names its asset."""
    return {plain(title) for title in (ref.title, *ref.was)}


async def _titles_of(reader: Reader, target: Target) -> set[str]:
    """Return the titles of all entries that may show the clip of a target."""
    asset = await reader.read_asset(target.database, target.address)
    if asset is None:
        return {plain(target.name)}
    entries = await entries_in_doubt(reader, target.database, asset)
    return {plain(target.name), *(plain(entry.title) for entry in entries.same)}


async def protected(
    protecting: Sequence[IntentGroupMember],
    layers: Layers,
    finder: ClipFinder,
    for_clip: Sequence[Declared],
    *,
    reads: bool,
) -> list[DesiredAsset]:
    """Return what the tasks that are left out declare for the clip; one that is in error declares nothing.

    ``for_clip`` is what the plan declares for it. Without ``reads``, what needs more than was read declares nothing,
    and the plan does not depend on it. Warnings of what is left out do not concern the plan.
    """
    declared: list[DesiredAsset] = []
    warnings_before = finder.warnings
    used_before = set(layers.depends_on)
    for member in protecting:
        with suppress(*_INVALID):
            desired = await _declared_by(member, layers, finder, for_clip, reads=reads)
            if desired is not None:
                declared.append(desired)
    finder.warnings = warnings_before
    if not reads:
        layers.depends_on = used_before
    return declared


async def _declared_by(
    member: IntentGroupMember,
    layers: Layers,
    finder: ClipFinder,
    for_clip: Sequence[Declared],
    *,
    reads: bool,
) -> DesiredAsset | None:
    """Return what one task that is left out declares for the clip; ``None``: nothing, or not for this clip."""
    answer = finder.answer_to(member)
    evaluate = partial(
        layers.evaluate, entry=member.entry, source=member.intent.source, answer=answer, reads=reads
    )
    if member.where and not await evaluate(partial(may_choose, member.where)):
        return None
    desired = await evaluate(member.intent.evaluate)
    if desired is None:
        return None
    for_this_clip, _ = await finder.divide([(member, desired)], renaming=for_clip)
    for _, part in for_this_clip:
        if isinstance(part, DesiredAsset):
            if part.folder is not None and answer is not None:
                check_guard(answer.asset, answer.title, part.folder)
            return part
    return None


# Contradictions -------------------------------------------------------------------------------------------------------


def check_protected(
    plan: PlanContext, declared: Sequence[DesiredAsset], kept: Sequence[DesiredAsset]
) -> None:
    """Raise ``PlanningError`` where what is planned for an asset contradicts what tasks that are left out declare."""
    merge = partial(merge_desired, asset=plan.asset, title=plan.live_title)
    for protecting in kept:
        if _error_of(merge, [protecting]) is not None:
            continue
        error = _error_of(merge, [*declared, protecting])
        if error is not None:
            raise _still_protects(error, protecting.source)
        for name, part in protecting.parts.items():
            planned = [desired.parts[name] for desired in declared if name in desired.parts]
            if not planned or not isinstance(part, DesiredList):
                continue
            if not any(ASPECTS[name].reads(part, plan.asset, plan.title)):
                check_items(planned, part, partial(_changes_of, plan, name), protecting.source)


def _changes_of(
    plan: PlanContext, name: str, parts: Sequence[DesiredList[Any]]
) -> Sequence[Change]:
    """Return the changes that tasks with these parts of one aspect would make."""
    merging = Merging(plan.asset, plan.title)
    merged = ASPECTS[name].merge(merging, parts)
    merging.check()
    builder = PlanBuilder()
    ASPECTS[name].plan(structs.replace(plan, builder=builder, lossy=True), merged)
    return builder.changes


def check_items(
    declared: Sequence[P],
    kept: P,
    changes_of: Callable[[Sequence[P]], Sequence[Change]],
    source: TaskSource,
) -> None:
    """Raise ``PlanningError`` where a list contradicts ``kept``, or loses an item that ``kept`` names.

    Two tasks may name one live item by different keys, which only a plan of both shows. An item that is in error by
    itself is not named.
    """
    if _error_of(changes_of, [kept]) is not None:
        valid: list[Any] = []
        for item in kept.items:
            alone = structs.replace(kept, items=(item,), exactly=None)
            if _error_of(changes_of, [alone]) is None:
                valid.append(item)
        kept = structs.replace(kept, items=tuple(valid), exactly=None)
    error = _error_of(changes_of, [*declared, kept])
    if error is not None:
        raise _still_protects(error, source)
    lost = {change.thing for change in losses(changes_of([*declared, kept]))}
    for change in losses(changes_of(declared)):
        if change.thing not in lost:
            what = f"{change.aspect} {change.key} is removed by {change.source.description}, and another task names it"
            error = refuse(
                what, change.source, "remove one of the two tasks, or declare the same in both"
            )
            raise _still_protects(error, source)


def losses(changes: Iterable[Change]) -> Iterator[Change]:
    """Yield the changes that remove something, or write over it without naming it."""
    for change in changes:
        if change.action == "delete" or change.losses:
            yield change


def _error_of(plan: Callable[[Any], object], declared: object) -> MsautoError | None:
    """Return the error of what tasks declare, if it has one."""
    try:
        plan(declared)
    except MsautoError as error:
        return error
    except TimecodeError as error:
        return PlanningError(str(error))
    return None


def _still_protects(error: MsautoError, source: TaskSource) -> PlanningError:
    """Return the error of a contradiction with a task that is left out."""
    message = f"{error.message}; {source.description} is left out of this plan, and still protects what it names"
    return PlanningError(message, place=error.place, remedy=error.remedy)
