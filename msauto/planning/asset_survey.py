"""The survey of one asset: find the clip, evaluate what the tasks declare, read the rest, compare, plan."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import starmap
from typing import Any, Final

from msgspec import UNSET, Struct, field, structs

from msauto.aspects import ASPECTS, DELETION, merge_desired, operation, snapshot_of
from msauto.aspects.aspect import Reads
from msauto.aspects.downloads import fetched_file
from msauto.aspects.list_aspect import ListAspect
from msauto.aspects.plan_builder import (
    TASK,
    PlanBuilder,
    PlanContext,
    Trigger,
    adopted,
    doubts_in,
    is_kept,
    last_writer,
    refuse,
    things_left,
)
from msauto.aspects.positions import InAndOut
from msauto.errors import MissingError, MsautoError, PlanningError
from msauto.model import requests
from msauto.model.desired import (
    Desired,
    DesiredAsset,
    DesiredDownload,
    DesiredList,
    DesiredOperation,
    Handler,
    Intent,
    TaskSource,
)
from msauto.model.events import Notify, PlannedState, ignore
from msauto.model.facts import NoAssetError
from msauto.model.identity import ClipEntries, ClipIdentity, compare_clips, plain, same_text
from msauto.model.live import Folder, show_folder
from msauto.model.plan import (
    Address,
    EmptiedList,
    Outside,
    Request,
    Settlement,
    ShownItem,
    SkippedTarget,
    SkipReason,
    Target,
    TargetContext,
    TargetId,
)
from msauto.model.ports import HashFile, LiveTarget, Memory, Reader
from msauto.model.requests import asset_path, wire_address
from msauto.model.result import started
from msauto.model.server import ServerSpec
from msauto.model.snapshot import TITLE, Effect, Json, Snapshot, Thing, thing_of
from msauto.model.snapshot import after as snapshot_after
from msauto.planning.clip_finder import ClipFinder, Declared, check_guard, former_titles
from msauto.planning.deletion import (
    changed_by_others,
    changes_of_links,
    check_deletion,
    check_link_titles,
    check_renaming,
    with_places,
)
from msauto.planning.fact_layers import FoundClip, Layers, XmpAnswers, listed_otherwise
from msauto.planning.handlers import RecalledItems, due_handlers, recall
from msauto.planning.left_out import TargetChoice, check_protected, losses, protected
from msauto.planning.limits import Protection
from msauto.planning.similar_titles import SimilarTitles, not_found, with_nearest_folder
from msauto.planning.target_groups import IntentGroup, IntentGroupMember
from msauto.planning.target_reading import read_needed, with_digests
from msauto.secrets.redaction import Secrets


class SurveyContext(Struct, frozen=True):
    """What the survey of one server works with.

    ``hash_file`` finds downloads that exist already. ``protection`` also takes the links of assets that are deleted or
    lose something: folders are protected, too. ``pending`` are the assets (database, title) that an earlier run
    left something pending for, ``pending_of_targets`` those of them that a target is; ``forget`` treats that as
    settled. What was made before ``overdue`` would show by now. ``answers`` is how this server reports XMP fields.
    ``left_out`` is what tasks ask of this server that the plan leaves out.
    ``secrets`` are those known so far. ``choice`` narrows the run to some targets. ``similar`` finds live
    titles for errors. ``notify`` receives the progress.
    """

    server: ServerSpec
    reader: Reader
    memory: Memory
    hash_file: HashFile
    protection: Protection = field(default_factory=Protection)
    pending: frozenset[tuple[str, str]] = frozenset()
    pending_of_targets: set[tuple[str, str]] = set()
    forget: bool = False
    overdue: str = ""
    answers: XmpAnswers = field(default_factory=XmpAnswers)
    secrets: Secrets = field(default_factory=Secrets)
    similar: SimilarTitles = field(default_factory=SimilarTitles)
    choice: TargetChoice = field(default_factory=TargetChoice)
    left_out: tuple[Intent, ...] = ()
    notify: Notify = ignore


class SurveyedTarget(Struct):
    """The outcome of one target; ``target`` is kept only if it changes or is in error, ``skipped`` is why it is."""

    state: PlannedState
    target: Target | None = None
    warnings: tuple[str, ...] = ()
    settlements: tuple[Settlement, ...] = ()
    claimed_places: tuple[tuple[Folder, TaskSource], ...] = ()
    skipped: SkippedTarget | None = None


def skipped(
    context: SurveyContext, group: IntentGroup, reason: SkipReason, *warnings: str
) -> SurveyedTarget:
    """Return the outcome of a target that the run does not treat."""
    target = SkippedTarget(context.server.name, group.database, group.kind, group.name, reason)
    return SurveyedTarget("skipped", warnings=warnings, skipped=target)


_Evaluated = tuple[IntentGroupMember, Desired | None, dict[str, Any]]
"""A member, what it declares, and the facts that this depends on and the listing alone answered."""


class AssetSurvey:
    """One asset: ``group`` is what the tasks declare, ``layers`` what was read of the clip, which ``finder`` finds."""

    def __init__(self, context: SurveyContext, group: IntentGroup) -> None:
        self._context = context
        self._reader = context.reader
        self._group = group
        self._finder = ClipFinder(context.reader, group)
        self._layers = Layers(context.reader, group.database, self._finder, context.answers)

    async def __call__(self) -> SurveyedTarget:
        """Plan the asset. Raises ``DistinctClipsError`` for a group of several clips, and ``PostponedError``."""
        finder = self._finder
        pending = bool(self._context.pending) and self._has_pending()
        evaluated, unknown = await self._evaluate()
        clip = None
        if pending or any(desired is not None for _, desired, _ in evaluated):
            clip = await self._layers.clip()
        declared: list[Declared] = []
        for member, desired, listed in evaluated:
            if member.entry is not None:
                finder.check_entry(member, desired)
            if listed:
                desired = await self._by_own_answer(member, desired, listed)
            if desired is not None:
                declared.append((member, desired))
        if not declared and not unknown and not pending:
            return self._skipped("when", finder.warnings)
        for_clip, for_missing = await finder.divide(declared)
        missing = None
        if for_missing or unknown:
            missing = await self._check_missing(for_missing, unknown)
        if clip is None or (not for_clip and not pending):
            return self._without_clip(missing, for_missing, unknown)
        self._group = finder.named()
        if len(finder.clips) > 1:
            finder.check_aliases(for_clip)
        outcome = await self._compare(clip, for_clip)
        unread = [f"{clip.title}: {warning}" for warning in clip.asset.warnings]
        outcome.warnings = (*finder.warnings, *unread, *outcome.warnings)
        return outcome

    def _skipped(
        self,
        reason: SkipReason,
        warnings: Iterable[str] = (),
        settlements: tuple[Settlement, ...] = (),
    ) -> SurveyedTarget:
        outcome = skipped(self._context, self._group, reason, *warnings)
        outcome.settlements = settlements
        return outcome

    def _without_clip(
        self,
        missing: SkippedTarget | None,
        for_missing: Sequence[Declared],
        unknown: Sequence[IntentGroupMember],
    ) -> SurveyedTarget:
        """Return the outcome of a clip that is missing; ``missing`` is ``None`` where it is to be absent.

        It has the warnings of its tasks, else one that the clip is gone, or renamed.
        """
        warnings = self._finder.warnings
        members = [*(member for member, _ in for_missing), *unknown]
        if not members:
            return self._skipped("when", warnings)
        of_tasks: dict[str, None] = {}
        for member in members:
            if member.intent.if_missing:
                of_tasks[member.intent.if_missing] = None
        warnings += tuple(of_tasks)
        if missing is None:
            return SurveyedTarget("unchanged", warnings=warnings)
        if not of_tasks and missing.reason == "gone":
            warnings += (f"{missing.name}: {_gone(missing)}",)
        elif not of_tasks and missing.reason == "renamed":
            warnings += (f"{missing.name}: its clip has the title {missing.title!r} now",)
        return SurveyedTarget("skipped", warnings=warnings, skipped=missing)

    def _has_pending(self) -> bool:
        """Whether an earlier run left something pending for the asset of these tasks."""
        group = self._group
        names = {*group.names, group.name}
        if group.title_by_id:
            names.add(group.title_by_id)
        keys = {(group.database, plain(name)) for name in names}
        return not keys.isdisjoint(self._context.pending)

    async def _evaluate(self) -> tuple[list[_Evaluated], list[IntentGroupMember]]:
        """Return what each member declares, and the members that need facts of an asset that does not exist."""
        unknown: list[IntentGroupMember] = []
        evaluated: list[_Evaluated] = []
        for member in self._group.members:
            intent = member.intent
            listed = dict(member.listed)
            try:
                desired = await self._layers.evaluate(
                    intent.evaluate, member.entry, intent.source, listed=listed
                )
            except NoAssetError:
                unknown.append(member)
                continue
            evaluated.append((member, desired, listed))
        return evaluated, unknown

    async def _by_own_answer(
        self, member: IntentGroupMember, desired: Desired | None, listed: Mapping[str, Any]
    ) -> Desired | None:
        """Return what a member declares by the clip's own answer: ``listed`` is from a listing, which may lag."""
        answer = self._finder.answer_to(member)
        if answer is None:
            return desired
        now = listed_otherwise(listed, answer.asset)
        if not now:
            return desired
        intent = member.intent
        evaluate = partial(
            self._layers.evaluate, entry=member.entry, source=intent.source, answer=answer
        )
        if member.where is None or await evaluate(member.where):
            return await evaluate(intent.evaluate)
        differences: list[str] = []
        for name, value in now.items():
            differences.append(
                f"{name} is {listed[name]!r} in the listing and {value!r} in the answer"
            )
        self._finder.warnings += (
            f"{member.title!r} no longer fulfils `where` of {intent.source.description}: {', '.join(differences)}",
        )
        return None

    async def _check_missing(
        self, for_missing: Sequence[Declared], unknown: Sequence[IntentGroupMember]
    ) -> SkippedTarget | None:
        """Return why the asset is skipped, if it is missing; ``None``: it is to be absent, or it is there.

        Raises ``PlanningError`` for a task that wants it to be there.
        """
        found: SkippedTarget | None = None
        database = self._group.database
        if not await self._reader.has_database(database):
            source = self._group.members[0].intent.source
            raise await not_found(self._reader, self._context.server, "database", database, source)
        for member, desired in (*for_missing, *((member, None) for member in unknown)):
            absent = member.intent.absent
            missing = member.intent.missing
            if isinstance(desired, DesiredAsset):
                absent = absent or not desired.present
                missing = "skip" if desired.missing == "skip" else missing
            if absent:
                continue
            found = await self._why_missing(member)
            if missing != "skip":
                raise await self._error_of_missing(member, found)
        return found

    async def _why_missing(self, member: IntentGroupMember) -> SkippedTarget:
        """Return why an asset is not found, as far as the ledger knows the clip that had the title."""
        server = self._context.server.name
        database = self._group.database
        known: list[ClipIdentity] = []
        runs: list[str] = []
        for name in (member.title, *former_titles(member)):
            if not name:
                continue
            for record in self._context.memory.clips_of(server, database, name):
                known.append(record.target.clip)
                runs.append(record.run or last_writer(record.items))
        found = SkippedTarget(
            server, database, "asset", member.title or self._group.name, "missing"
        )
        today = await self._context.similar.title_today(self._reader, database, known)
        run = max(runs, default="")
        if today:
            return structs.replace(found, reason="renamed", title=today)
        if run:
            return structs.replace(found, reason="gone", run=run, at=started(run))
        return found

    async def _error_of_missing(
        self, member: IntentGroupMember, found: SkippedTarget
    ) -> MsautoError:
        """Return the error of a task whose asset is missing, and may not be."""
        former = former_titles(member)
        what = f"asset {found.name!r}"
        if former:
            what += f" (nor {', '.join(map(repr, former))})"
        why = "not found"
        if found.reason == "gone":
            why += f": it is {_gone(found)}"
            remedy = "bring it back, or remove its tasks; `missing: skip` skips it, and reports it each night"
        else:
            remedy = await self._remedy_for_missing(member.title, found.title)
        if found.title:
            why += f": its clip has the title {found.title!r} now"
        return refuse(
            f"server {found.server}, database {found.database}: {what} {why}",
            member.intent.named or member.intent.source,
            remedy,
            MissingError,
        )

    async def _remedy_for_missing(self, title: str | None, today: str) -> str:
        """Return what to do about a missing asset: its title today, the nearest live ones, if it is named by title."""
        otherwise = "correct the title, or write `missing: skip`"
        if not title:
            return otherwise
        if "*" in title or "?" in title:
            pattern = re.escape(title).replace(r"\*", ".*").replace(r"\?", ".")
            return f"for all such titles, write `select: {{where: asset.title is match('{pattern}$')}}`, or a loop"
        return await self._context.similar.remedy(
            self._reader, self._group.database, title, otherwise, today
        )

    # Comparing ---------------------------------------------------------------------------------------------------

    async def _compare(self, clip: FoundClip, for_clip: Sequence[Declared]) -> SurveyedTarget:
        """Compare the clip with what its tasks declare, and plan the difference and its handlers."""
        declared: list[DesiredAsset] = []
        runs: list[DesiredOperation] = []
        for _, part in for_clip:
            if isinstance(part, DesiredAsset):
                declared.append(part)
            elif isinstance(part, DesiredOperation):
                runs.append(part)
        desired = merge_desired(declared, clip.asset, clip.title) if declared else None
        if desired is not None and not self._may_go_on(clip, declared, desired):
            return self._skipped("unfinalized")
        entries = None
        if desired is not None and not desired.present:
            chosen = tuple([member.entry for member, _ in for_clip if member.entry is not None])
            entries = await check_deletion(
                self._reader, self._group.database, clip, chosen, desired
            )
            if entries is None:
                return SurveyedTarget("unchanged", warnings=desired.notes)
        identity = ClipIdentity.of(clip.asset)
        known = TargetId(
            self._context.server.name, self._group.database, "asset", clip.title, identity
        )
        recalled = await self._recall(known)
        settled = tuple(recalled.settlements)
        plan = await self._plan_context(clip, desired, runs, recalled, entries)
        builder = plan.builder
        if entries is not None and self._stays(plan, recalled, entries, declared[0].source):
            return SurveyedTarget("kept", None, tuple(builder.warnings), settled)
        await self._plan_changes(plan, for_clip, declared, desired, runs)
        if not await self._plan_handlers(plan, for_clip, desired):
            return self._skipped("left out", builder.warnings, settled)
        settlements = (*settled, *adopted(plan, recalled.kept, recalled.target))
        if not builder.changes:
            return self._without_changes(builder, settlements, is_concerned=bool(for_clip))
        if not recalled.items and not recalled.settlements:
            self._warn_of_another_recording(known, builder)
        return await self._changed(plan, clip, identity, settlements, deletes=entries is not None)

    async def _changed(
        self,
        plan: PlanContext,
        clip: FoundClip,
        identity: ClipIdentity,
        settlements: tuple[Settlement, ...],
        *,
        deletes: bool,
    ) -> SurveyedTarget:
        """Return the outcome of a clip that changes, with the places that a protection asks for."""
        depends_on = plan.builder.depends_on
        depends_on |= self._layers.depends_on
        for member in self._group.members:
            depends_on |= member.depends_on
            depends_on.update([f"fact {name}" for name in member.listed])
        folder = None if clip.asset.folder is None else show_folder(clip.asset.folder)
        address_after = Address(clip.title) if deletes else plan.address
        target = Target(
            server=plan.server.name,
            database=plan.database,
            kind="asset",
            name=clip.title,
            folder=folder,
            address=clip.address,
            address_after=address_after,
            clip=identity,
            rate=clip.asset.rate,
            places=tuple(map(show_folder, plan.places)),
        )
        live = self._layers.added_to(plan.live)
        outcome = finished(self._context, target, plan.builder, live, settlements)
        protection = self._context.protection
        if protection and outcome.target is not None and not deletes:
            always = bool(protection.read_only)
            outcome.target = await with_places(
                outcome.target, clip.asset, self._reader, always=always
            )
        return outcome

    def _without_changes(
        self, builder: PlanBuilder, settlements: tuple[Settlement, ...], *, is_concerned: bool
    ) -> SurveyedTarget:
        """Return the outcome of a clip that nothing changes; ``is_concerned``: by a task, not by what is pending."""
        if builder.is_in_doubt:
            return self._skipped("left out", builder.warnings, settlements)
        if not is_concerned:
            return self._skipped("when", builder.warnings, settlements)
        state: PlannedState = "kept" if builder.is_keeping else "unchanged"
        return SurveyedTarget(state, None, tuple(builder.warnings), settlements)

    def _stays(
        self,
        plan: PlanContext,
        recalled: RecalledItems,
        entries: ClipEntries,
        source: TaskSource,
    ) -> bool:
        """Return whether a clip is not deleted because others have changed it since a run wrote to it."""
        changed = changed_by_others(recalled, plan.live, plan.live_title, entries.same)
        run = recalled.run or last_writer(recalled.items)
        if not changed or not run:
            return False
        outside = Outside(changed, run, started(run))
        return is_kept(plan, (DELETION.name, plan.title), outside, None, source, None)

    async def _plan_changes(
        self,
        plan: PlanContext,
        for_clip: Sequence[Declared],
        declared: Sequence[DesiredAsset],
        desired: DesiredAsset | None,
        runs: Sequence[DesiredOperation],
    ) -> None:
        """Plan what the tasks want, unless that contradicts a task that is left out, or the titles of links."""
        try:
            _plan_tasks(plan, desired, runs)
        except MissingError as error:
            raise await with_nearest_folder(error, self._reader, plan.database) from None
        changes = plan.builder.changes
        if declared and self._group.protecting:
            reads = any(losses(changes))
            kept = await protected(
                self._group.protecting, self._layers, self._finder, for_clip, reads=reads
            )
            check_protected(plan, declared, kept)
        is_undo = bool(plan.required_live)
        for change in changes:
            if change.aspect == TITLE[0]:
                clip = FoundClip(plan.asset, plan.address, plan.live_title)
                await check_renaming(
                    self._reader, plan.database, clip, change.source, is_undo=is_undo
                )
        of_links = changes_of_links(changes)
        if of_links:
            home = None
            if desired is not None and desired.folder is not None:
                home = desired.folder.value
            await check_link_titles(
                self._reader, plan.database, plan.asset, of_links, home=home, are_links=is_undo
            )

    def _warn_of_another_recording(self, target: TargetId, builder: PlanBuilder) -> None:
        """Warn that runs knew another clip under the title: what others changed since is not known of this one."""
        now = target.clip
        records = self._context.memory.clips_of(target.server, target.database, target.name)
        for record in records:
            known = record.target.clip
            comparison = compare_clips(known, now)
            if comparison.answer != "other":
                continue
            shown = ""
            was = comparison.evidence
            if "create_time" in comparison.different:
                shown = f" (created {now.create_time})"
                was = f"created {known.create_time}"
            what = f"{target.name}: this is another recording{shown} than the one that earlier runs wrote to"
            builder.warnings.append(f"{what} ({was})")
            return

    def _may_go_on(
        self, clip: FoundClip, declared: Sequence[DesiredAsset], desired: DesiredAsset
    ) -> bool:
        """Return whether no task skips a clip that is still recorded; an error unless all tasks skip or allow it.

        Raises ``PlanningError`` also for a clip that is not in the folder that a task names.
        """
        if clip.asset.finalized is False and desired.unfinalized == "error":
            strictest = next(task for task in declared if task.unfinalized == "error")
            raise refuse(
                f"{clip.title!r} is still being recorded",
                strictest.source,
                "wait until it is finalized, or write `unfinalized: skip` or `allow`",
            )
        if clip.asset.finalized is False and desired.unfinalized == "skip":
            return False
        if desired.folder is not None:
            check_guard(clip.asset, clip.title, desired.folder)
            self._layers.depends_on.add("asset folder")
        return True

    async def _recall(self, target: TargetId) -> RecalledItems:
        """Return what the ledger remembers of a clip, whatever its title was then."""

        async def is_gone(kept: TargetId) -> bool:
            """Whether a title leads no longer to what may be the clip that had it: it may be this one."""
            if same_text(kept.name, target.name):
                return True
            answer = await self._reader.read_asset(target.database, Address(kept.name))
            return answer is None or compare_clips(kept.clip, answer).answer == "other"

        context = self._context
        recalled = await recall(
            context.memory,
            target,
            self._group.names,
            is_gone,
            forget=context.forget,
            overdue=context.overdue,
        )
        context.pending_of_targets.update(
            [(kept.database, kept.name) for kept in recalled.kept.values()]
        )
        return recalled

    async def _plan_context(
        self,
        clip: FoundClip,
        desired: DesiredAsset | None,
        runs: Sequence[DesiredOperation],
        recalled: RecalledItems,
        entries: ClipEntries | None,
    ) -> PlanContext:
        """Return what the aspects work with; ``entries`` are those of a clip that is to be deleted."""
        context = self._context
        address = clip.address
        server = context.server
        database = self._group.database
        title = clip.title
        if desired is not None and desired.title is not None:
            title = desired.title.value
        address_after = address if address.namespace else Address(title)
        before = after = asset_path(database, wire_address(server, address))
        if title != clip.title and not address.namespace:
            after = asset_path(database, wire_address(server, address_after))
        files: dict[str, str | None] = {}
        fetched: dict[str, str] = {}
        live = await self._read_rest(clip, desired, title, recalled.items)
        for run in runs:
            if not isinstance(run, DesiredDownload):
                continue
            files[run.dest] = await context.hash_file(run.dest)
            fetched[run.dest] = str(context.memory.recall(fetched_file(run.dest)).get("sha256"))
        plan = PlanContext(
            server=server,
            database=database,
            path_before=before,
            path=after,
            title=title,
            live_title=clip.title,
            asset=clip.asset,
            live=live,
            builder=PlanBuilder(),
            memory=recalled.items,
            is_known_clip=recalled.is_known_clip,
            address=address_after,
            files=files,
            fetched=fetched,
            batch=context.answers.batches.get(database),
            hide=context.secrets.mask,
        )
        if desired is not None:
            plan = structs.replace(plan, lossy=desired.lossy, required_live=desired.required_live)
        if entries is not None:
            plan = structs.replace(plan, places=entries.places)
        minds_others = desired is not None and desired.source.minds_others
        if recalled.is_crowded and (runs or minds_others):
            plan.warn(
                "so many clips report the same values that those of runs under other titles are not compared: what ran "
                "once or was changed outside under another title is not known"
            )
        return plan

    async def _read_rest(
        self, clip: FoundClip, desired: DesiredAsset | None, title: str, memory: Mapping[str, Json]
    ) -> LiveTarget:
        """Read what only the comparison needs: XMP fields, what is where links are to be, all links."""
        database = self._group.database
        things = [(doubt.aspect, doubt.key) for doubt in doubts_in(memory)]
        if desired is not None:
            things += self._asked_by_where()
            lists = _lists_minding_others(desired)
            if lists:
                things += _left_things(memory, lists)
        needed = _needs_of(things)
        if desired is not None:
            for name, part in desired.parts.items():
                needed.append(ASPECTS[name].reads(part, clip.asset, title))
            if database in self._context.answers.batches:
                # The batch makes the XMP fields unknown.
                needed = [reads._replace(xmp=frozenset()) for reads in needed]
        if desired is not None and not desired.present:
            needed.append(Reads(links=True))
            if desired.source.minds_others:
                needed += _needs_of(_left_things(memory, ASPECTS))
        known = LiveTarget(asset=clip.asset, xmp=self._layers.xmp, links=self._layers.links)
        reader = self._reader
        return await read_needed(reader, reader.read_folder, database, clip.address, known, needed)

    def _asked_by_where(self) -> Iterator[Thing]:
        """Yield what a ``where`` asked for by name and was not read so: verification reads it again."""
        known: Collection[str] = self._layers.named.asked if self._layers.named else ()
        for member in self._group.members:
            for name in member.depends_on:
                aspect, key = thing_of(name)
                if key not in known:
                    yield aspect, key

    async def _plan_handlers(
        self, plan: PlanContext, for_clip: Sequence[Declared], desired: DesiredAsset | None
    ) -> bool:
        """Plan the handlers that are due; what two of them run on this target, only once.

        Return whether the target may be planned: a deletion may have to wait for a handler in doubt.
        """
        known: list[Handler] = []
        for member in self._group.members:
            known += member.intent.notify
        if not known and not plan.memory:
            return True
        declared = [(member.intent.notify, part) for member, part in for_clip]
        due = due_handlers(known, declared, desired, plan.builder.changes, plan.memory)
        deletes = desired is not None and not desired.present
        planned: set[_RunByHandler] = set()
        for handler, since in due.calls:
            run = await self._layers.evaluate(handler.evaluate, None, handler.source)
            if isinstance(run, DesiredOperation):
                cause = Trigger(handler.name, since, before=deletes)
                _plan_unless_planned(plan, run, cause, planned)
        name = self._group.name
        plan.builder.warnings += [f"{name!r} is not deleted: {warning}" for warning in due.in_doubt]
        plan.builder.warnings += [f"{name}: {warning}" for warning in due.warnings]
        return not due.in_doubt


_RunByHandler = tuple[str, str, str]
"""When a handler runs (once, always, changed), and the aspect and key of what it runs."""


def _plan_unless_planned(
    plan: PlanContext, run: DesiredOperation, cause: Trigger, planned: set[_RunByHandler]
) -> None:
    """Plan what a handler runs, unless another one runs the same on this target."""
    alone = structs.replace(plan, builder=PlanBuilder())
    operation(run).run(alone, run, cause)
    things = {(str(change.after), *change.thing) for change in alone.builder.changes}
    if planned.isdisjoint(things):
        planned |= things
        operation(run).run(plan, run, cause)


def _gone(found: SkippedTarget) -> str:
    at = found.at.replace("T", " ")[:16]
    return f"gone: run {found.run} wrote it last, on {at} UTC"


def _lists_minding_others(desired: DesiredAsset) -> list[str]:
    """Return the lists of which ``exactly`` looks at what others have made or changed before it removes anything."""
    names: list[str] = []
    for name, part in desired.parts.items():
        exactly = part.exactly if isinstance(part, DesiredList) else None
        if exactly is not None and exactly.minds_others:
            names.append(name)
    return names


def _left_things(memory: Mapping[str, Json], aspects: Collection[str]) -> list[Thing]:
    """Return what runs have left of these aspects of a clip."""
    return [thing for thing, _, _ in things_left(memory) if thing[0] in aspects]


def _needs_of(things: Iterable[Thing]) -> list[Reads]:
    """Return what reading these things takes beside the asset; facts of the asset are among them."""
    keys_of: dict[str, set[str]] = {}
    for aspect, key in things:
        keys_of.setdefault(aspect, set()).add(key)
    return [ASPECTS[aspect].needs(keys) for aspect, keys in keys_of.items() if aspect in ASPECTS]


# Planning ------------------------------------------------------------------------------------------------------


def _plan_tasks(
    plan: PlanContext, desired: DesiredAsset | None, runs: Sequence[DesiredOperation]
) -> None:
    """Plan what the tasks want. Raises ``PlanningError`` with all that is wrong with it."""
    steps: list[Callable[[], None]] = []
    if desired is None or desired.present:
        parts = {} if desired is None else desired.parts
        for aspect in sorted({doubt.aspect for doubt in doubts_in(plan.memory)} - parts.keys()):
            steps.append(partial(ASPECTS[aspect].settle_doubts, plan))
    if desired is not None:
        plan.builder.warnings += desired.notes
        if desired.present:
            for name, part in desired.parts.items():
                steps.append(partial(ASPECTS[name].plan, plan, part))
            steps.append(partial(_check_editorial, plan))
        else:
            steps.append(partial(DELETION.plan, plan, desired.source))
    for run in runs:
        steps.append(partial(operation(run).run, plan, run, TASK))
    errors: list[MsautoError] = []
    for step in steps:
        try:
            step()
        except MsautoError as error:
            errors.append(error)
    if len(errors) > 1:
        raise PlanningError("\n".join(dict.fromkeys(map(str, errors))))
    if errors:
        raise errors[0]


def _check_editorial(context: PlanContext) -> None:
    """Warn of values that are valid, but probably mistakes. Raises ``PlanningError`` for what cannot be meant.

    Only what the run adds or changes, and its effect on the rest, is checked, not what is on the server already. What
    concerns one aspect alone is in its module.
    """
    if not context.builder.changes:
        return

    def after() -> Snapshot:
        effects: list[Effect] = []
        for request in context.builder.requests():
            effects += request.effects
        return snapshot_after(snapshot_of(context.live), effects)

    warnings: list[str] = []
    for check in context.builder.checks:
        warnings += check(context, after)
    if context.builder.placed:
        warnings += _outside_in_and_out(context, after)
    context.builder.warnings += [
        f"{context.title}: {warning}" for warning in dict.fromkeys(warnings)
    ]


def _outside_in_and_out(context: PlanContext, after: Callable[[], Snapshot]) -> Iterator[str]:
    """Yield what a task places outside the in and out points, where the run sets it or these points.

    Everything is within the clip, or its aspect refuses it.
    """
    builder = context.builder
    moves_points = "frames" in builder.altered
    snapshot = after() if moves_points else None
    span = InAndOut.of(context.asset, snapshot)
    length = context.asset.frames
    is_whole = length is not None and span.misses(0, length - 1) is None
    if is_whole or span.is_reversed:
        return
    set_here = {change.source.place for change in builder.changes}
    for what, first, last, source in builder.placed:
        if moves_points or source.place in set_here:
            where = span.misses(first, last)
            if where is not None:
                yield f"{what} {where} ({source.place})"


def finished(
    context: SurveyContext,
    target: Target,
    builder: PlanBuilder,
    live: LiveTarget,
    settlements: tuple[Settlement, ...] = (),
) -> SurveyedTarget:
    """Return the outcome of a target whose plan was built.

    Raises ``PlanningError`` for a request line that is longer than the server takes: it would be cut, or refused
    half-way.
    """
    warnings = tuple(builder.warnings)
    left_out = None
    if builder.is_in_doubt:
        left_out = SkippedTarget(
            target.server, target.database, target.kind, target.name, "left out"
        )
    if not builder.changes:
        state: PlannedState = "kept" if builder.is_keeping else "unchanged"
        if left_out is not None:
            state = "skipped"
        return SurveyedTarget(state, None, warnings, settlements, skipped=left_out)
    sent = builder.requests()
    most = context.server.request_line
    for request in sent:
        length = requests.request_line_length(request)
        if length > most:
            change = builder.changes[request.changes[0]]
            raise refuse(
                f"{change.aspect} {change.key}: its request line has {length} bytes, and the cap is {most}",
                change.source,
                "write a shorter value, or raise `request_line` of the server if it takes longer ones",
            )
    target = structs.replace(
        target,
        changes=tuple(builder.changes),
        requests=sent,
        wait=builder.wait,
        emptied=tuple(starmap(EmptiedList, builder.emptied)),
        context=shown_context(live, sent),
        unwanted=tuple(builder.unwanted),
        altered=tuple(sorted(builder.altered)),
        holding=tuple(builder.holding) or UNSET,
    )
    target = with_digests(target, live, builder.depends_on, context.secrets)
    claimed = tuple(builder.claimed_places)
    return SurveyedTarget("changed", target, warnings, settlements, claimed, left_out)


def shown_context(live: LiveTarget, sent: Sequence[Request]) -> TargetContext | None:
    """Return what surrounds the changes of an asset on a timeline."""
    if live.asset is None:
        return None
    touched: set[Thing] = set()
    for request in sent:
        for effect in request.effects:
            touched.add(effect.thing)
    untouched: list[ShownItem] = []
    if not _ON_TIMELINES.keys().isdisjoint([aspect for aspect, _ in touched]):
        for aspect in _ON_TIMELINES.values():
            untouched += aspect.untouched(live, touched)
    return TargetContext(live.asset.frames, tuple(untouched))


_ON_TIMELINES: Final = {
    name: aspect
    for name, aspect in ASPECTS.items()
    if isinstance(aspect, ListAspect) and aspect.positions
}
