"""The survey of one server: read, evaluate, read more, compare; and the plan that the surveys of all servers make.

It works target by target and drops live state as soon as it is compared.
"""

from __future__ import annotations

import os.path
import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

from msgspec import UNSET, Struct, structs

from msauto.aspects import CHANNEL_ITEMS, DELETION, operation
from msauto.aspects.merging import Merging
from msauto.aspects.plan_builder import TASK, PlanBuilder, PlanContext, adopted, refuse
from msauto.circuit_breaker import cause_of
from msauto.concurrency import concurrent_list
from msauto.errors import PlanningError, UnreachableError, described
from msauto.model import events
from msauto.model.clip_entries import MOST_LINKS
from msauto.model.desired import (
    DatabaseRef,
    DesiredChannel,
    DesiredXmpBatch,
    InputFile,
    Intent,
    ResolvedPlaybooks,
    SelectRef,
    TaskSource,
)
from msauto.model.events import Notify, ignore
from msauto.model.facts import Facts
from msauto.model.identity import compare_clips, plain
from msauto.model.live import Asset, Folder, parse_folder, show_folder
from msauto.model.plan import (
    COUNTS,
    Address,
    InputHash,
    Limits,
    Plan,
    PlannedServer,
    Settlement,
    SkippedTarget,
    Target,
    TargetId,
)
from msauto.model.ports import LiveTarget
from msauto.model.timecode import TimecodeError
from msauto.planning.asset_survey import (
    AssetSurvey,
    SurveyContext,
    SurveyedTarget,
    finished,
    skipped,
)
from msauto.planning.clip_finder import DistinctClipsError
from msauto.planning.fact_layers import XmpAnswers
from msauto.planning.handlers import not_concerned, recall
from msauto.planning.left_out import (
    Losing,
    asks_for_something,
    check_items,
    find_clips,
    protect_by_title,
    protect_otherwise,
)
from msauto.planning.limits import refusals
from msauto.planning.renames import PostponedError
from msauto.planning.similar_titles import not_found
from msauto.planning.target_groups import (
    Grouping,
    IntentGroup,
    IntentGroupMember,
    merge_groups,
    named_by,
)
from msauto.secrets.redaction import HIDDEN, Secrets

D = TypeVar("D", DesiredChannel, DesiredXmpBatch)


class PlannedGroup(NamedTuple):
    """What tasks ask of one target, and what came of its survey."""

    group: IntentGroup
    outcome: SurveyedTarget


class Survey(Struct, frozen=True):
    """The plan of one server. ``targets`` are those that change or are in error, in the order of the playbooks.

    ``is_unreachable``: the server does not answer at all.
    """

    server: str
    targets: tuple[Target, ...] = ()
    unchanged: int = 0
    kept: int = 0
    skipped: tuple[SkippedTarget, ...] = ()
    reads: int = 0
    warnings: tuple[str, ...] = ()
    settlements: tuple[Settlement, ...] = ()
    is_unreachable: bool = False


async def survey(intents: Sequence[Intent], context: SurveyContext, *, forks: int) -> Survey:
    """Plan one server, at most ``forks`` targets at once. An error of a target becomes its ``error``."""
    server = context.server
    of_databases: list[Intent] = []
    of_the_rest: list[Intent] = []
    for intent in intents:
        if isinstance(intent.ref, DatabaseRef):
            of_databases.append(intent)
        else:
            of_the_rest.append(intent)
    context = structs.replace(context, pending=context.memory.pending(server.name))
    outcomes: list[SurveyedTarget] = []
    if of_databases:
        outcomes, loaded = await _plan_databases(context, of_databases)
        context = structs.replace(context, answers=XmpAnswers(loaded))
    grouping = Grouping(server, context.reader, forks, context.answers)
    chosen = await grouping.groups(of_the_rest)
    others: list[IntentGroup] = []
    if context.left_out:
        protect_by_title(chosen, context.left_out)
    if context.choice.globs:
        chosen, others = _divide(context, chosen)
    context.notify(events.TargetsFound(server.name, len(outcomes) + len(chosen)))
    found = await concurrent_list(partial(_plan_group, context), chosen, limit=forks)
    planned = [PlannedGroup(*pair) for pair in zip(chosen, found, strict=True)]
    silent = structs.replace(context, notify=ignore)  # of what is planned again
    planned, named = await _named_otherwise(silent, planned, others, grouping)
    planned = await _with_one_target_a_clip(silent, planned, named)
    planned = await _without_named_links(context, planned, named)
    outcomes += _without_shared_places(context, planned)
    for warning in grouping.nameless:
        outcomes.append(SurveyedTarget("skipped", warnings=(warning,)))
    untold = context.pending - context.pending_of_targets
    is_narrowed = context.left_out or context.choice.globs
    if untold and not is_narrowed:
        outcomes.append(await _tell_pending(context, untold))
    if context.protection:
        await _look_for_protected(context)
    return _survey_of(context, outcomes)


async def _plan_databases(
    context: SurveyContext, intents: Sequence[Intent]
) -> tuple[list[SurveyedTarget], dict[str, TaskSource]]:
    """Plan what precedes all assets, and return which databases an XMP batch changes, with the place of the task."""
    groups = await Grouping(context.server, context.reader, 1, context.answers).groups(intents)
    if context.choice.globs:
        groups, _ = _divide(context, groups)
    outcomes = [await _plan_group(context, group) for group in groups]
    loaded: dict[str, TaskSource] = {}
    for outcome in outcomes:
        target = outcome.target
        if target is not None and target.changes:
            loaded[target.database] = target.changes[0].source
    return outcomes, loaded


def _divide(
    context: SurveyContext, groups: Sequence[IntentGroup]
) -> tuple[list[IntentGroup], list[IntentGroup]]:
    """Return the groups that ``--target`` chooses, and the others.

    What cannot be read may hold a chosen target, and counts as chosen.
    """
    is_chosen = context.choice.among(name for group in groups for name in group.all_names)
    chosen: list[IntentGroup] = []
    others: list[IntentGroup] = []
    for group in groups:
        if is_chosen(group.all_names) or group.is_unknown:
            chosen.append(group)
        else:
            others.append(group)
    return chosen, others


async def _tell_pending(
    context: SurveyContext, untold: Collection[tuple[str, str]]
) -> SurveyedTarget:
    """Return what runs left pending for clips that no target is: others may have renamed them."""
    told = SurveyedTarget("skipped")
    for database, title in sorted(untold):
        for record in context.memory.clips_of(context.server.name, database, title):
            recalled = await recall(
                context.memory, record.target, forget=context.forget, overdue=context.overdue
            )
            told.settlements += tuple(recalled.settlements)
            told.warnings += tuple([f"{title}: {why}" for why in not_concerned(recalled.items)])
    return told


async def _look_for_protected(context: SurveyContext) -> None:
    """Find what is protected in each database that was listed as a whole: no request more is sent for it."""
    for database in tuple(context.reader.whole):
        entries = await context.reader.read_select(SelectRef(database, recursive=True))
        places = [(*entry.folder, entry.title) for entry in entries or ()]
        listing = await context.reader.read_folder(database, ())
        if listing is not None:  # a folder may be empty
            places += [(*folder, "") for folder in listing.folders]
        await context.protection.look_at(places, database)


def _survey_of(context: SurveyContext, outcomes: Sequence[SurveyedTarget]) -> Survey:
    """Return the plan of one server, whose targets have these outcomes."""
    targets: list[Target] = []
    warnings: list[str] = []
    settlements: list[Settlement] = []
    skipped_targets: list[SkippedTarget] = []
    states = Counter([outcome.state for outcome in outcomes])
    for outcome in outcomes:
        warnings += outcome.warnings
        settlements += outcome.settlements
        if outcome.skipped is not None:
            skipped_targets.append(outcome.skipped)
        if outcome.target is not None:
            targets.append(outcome.target)
    # A database target is in the first batch: it precedes all assets of its server.
    first = min([target.batch for target in targets], default=0)
    for number, target in enumerate(targets):
        if target.kind == "database":
            targets[number] = structs.replace(target, batch=first)
    return Survey(
        context.server.name,
        tuple(targets),
        states["unchanged"],
        states["kept"],
        tuple(skipped_targets),
        context.reader.reads,
        (*warnings, *context.answers.warnings()),
        tuple(settlements),
    )


async def _named_otherwise(
    context: SurveyContext,
    planned: list[PlannedGroup],
    others: Sequence[IntentGroup],
    grouping: Grouping,
) -> tuple[list[PlannedGroup], list[IntentGroup]]:
    """Return the groups of ``others``, and of what is left out, that may name a clip which loses something, or a link.

    The clips of targets in error are found as well. What is left out and names a losing target by its title, as a
    select does, is added to it, and it is planned again: the outcomes are returned, too.
    """
    losing: dict[str, list[Losing]] = {}
    failed: list[IntentGroup] = []
    for group, outcome in planned:
        target = outcome.target
        if group.kind != "asset" or target is None:
            continue
        if target.loses:
            losing.setdefault(group.database, []).append((group, target))
        if outcome.state == "error":
            failed.append(group)
    if not losing:
        return planned, []
    await find_clips(context.reader, failed)
    left_out = _left_out(context, planned, failed)
    named: list[IntentGroup] = []
    replanned: dict[int, SurveyedTarget] = {}
    for database, losing_here in losing.items():
        groups = [group for group in others if (group.kind, group.database) == ("asset", database)]
        intents = [intent for intent in left_out if getattr(intent.ref, "database", "") == database]
        if not groups and not intents:
            continue
        protecting_before = {id(group): len(group.protecting) for group, _ in losing_here}
        try:
            named += await protect_otherwise(grouping, losing_here, groups, intents)
        except Exception as error:  # noqa: BLE001 - it is that of these targets, and of no other one
            for group, _ in losing_here:
                replanned[id(group)] = _failed(context, group, error)
        for group, _ in losing_here:
            if len(group.protecting) > protecting_before[id(group)]:
                replanned[id(group)] = await _plan_group(context, group)
    again: list[PlannedGroup] = []
    for group, outcome in planned:
        again.append(PlannedGroup(group, replanned.get(id(group), outcome)))
    return again, named


def _left_out(
    context: SurveyContext, planned: Sequence[PlannedGroup], failed: Sequence[IntentGroup]
) -> list[Intent]:
    """Return the tasks that are left out, without those that protect a clip already.

    Of the ``failed`` groups, a task is among them of which no title is known: it may name any clip.
    """
    left_out = list(context.left_out)
    for group in failed:
        if group.is_unknown:
            left_out.append(group.members[0].intent)
    protecting: set[int] = set()
    for group, _ in planned:
        if group.clip is not None:
            protecting.update([id(member.intent) for member in group.protecting])
    return [intent for intent in left_out if id(intent) not in protecting]


async def _with_one_target_a_clip(
    context: SurveyContext, planned: Sequence[PlannedGroup], others: Sequence[IntentGroup]
) -> list[PlannedGroup]:
    """Return the groups and their outcomes, with one for all groups that lead to the same clip under other names.

    ``others`` are not planned, unless they are of the clip of one that is.
    """
    groups = [*(group for group, _ in planned), *others]
    clips: dict[int, list[int]] = {}
    for number, group in enumerate(groups):
        if group.clip is not None:
            clips.setdefault(group.clip, []).append(number)
    outcomes = dict(enumerate(planned))
    for numbers in clips.values():
        first = numbers[0]
        # More names than MOST_LINKS for one clip means that the server reports the same for all clips.
        is_one_clip = 1 < len(numbers) <= MOST_LINKS
        if not is_one_clip or first not in outcomes:
            continue
        with suppress(DistinctClipsError):  # their answers only looked like one clip
            merged = merge_groups([groups[number] for number in numbers])
            outcomes[first] = PlannedGroup(merged, await _plan_group(context, merged))
            for number in numbers[1:]:
                outcomes.pop(number, None)
    return list(outcomes.values())


async def _without_named_links(
    context: SurveyContext, planned: list[PlannedGroup], others: Sequence[IntentGroup]
) -> list[PlannedGroup]:
    """Return the groups and their outcomes; in error are deletions of a clip of which a task names what may be a link.

    What surely is a link of it is the same target, where such tasks contradict each other anyway. ``others`` are not
    planned, and still protect what they name.
    """
    deletions: dict[int, Target] = {}
    for number, (_, outcome) in enumerate(planned):
        target = outcome.target
        if target is not None and target.places and _deletes(target):
            deletions[number] = target
    if not deletions:
        return planned
    naming: list[IntentGroup] = []
    for group, outcome in planned:
        if outcome.skipped is None or outcome.skipped.reason == "left out":
            naming.append(group)
    named: dict[tuple[str, str], list[IntentGroup]] = {}
    for group in (*naming, *others):
        for name in group.plain_names:
            named.setdefault((group.database, name), []).append(group)
    outcomes = list(planned)
    for number, target in deletions.items():
        group, _ = planned[number]
        for place in target.places:
            *_, title = ("", *parse_folder(place))
            groups = named.get((target.database, plain(title)), ())
            member = _asking(groups, group)
            if member is None or await _shows_another_clip(context, target, title):
                continue
            error = refuse(
                f"{group.name!r} is to be deleted, and {member.intent.source.description} names {place}, which may "
                "be a link of it",
                target.changes[0].source,
                "remove one of the two tasks, or run the other one first, by itself",
            )
            outcomes[number] = PlannedGroup(group, _failed(context, group, error))
    return outcomes


def _deletes(target: Target) -> bool:
    return any(change.aspect == DELETION.name for change in target.changes)


def _asking(groups: Sequence[IntentGroup], deleted: IntentGroup) -> IntentGroupMember | None:
    """Return the first task that asks something of one of these groups, other than the one that is deleted."""
    for group in groups:
        if group is deleted:
            continue
        for member in group.naming:
            if asks_for_something(member):
                return member
    return None


async def _shows_another_clip(context: SurveyContext, target: Target, title: str) -> bool:
    """Return whether a title surely leads to another clip than that of a target."""
    with suppress(Exception):  # the task that names it has the error
        answer = await context.reader.read_asset(target.database, Address(title))
        return answer is not None and compare_clips(target.clip, answer).answer == "other"
    return False


def _without_shared_places(
    context: SurveyContext, planned: Sequence[PlannedGroup]
) -> list[SurveyedTarget]:
    """Return the outcomes; in error are those that want one title in one folder, for a link or for the clip itself."""
    outcomes = [outcome for _, outcome in planned]
    claimed: dict[tuple[str, Folder], dict[int, TaskSource]] = {}
    for number, outcome in enumerate(outcomes):
        if outcome.target is None:
            continue
        for place, source in outcome.claimed_places:
            key = outcome.target.database, tuple(map(plain, place))
            claimed.setdefault(key, {})[number] = source
    for (_, place), sources in claimed.items():
        if len(sources) < 2:
            continue
        claims: list[str] = []
        for number, source in sources.items():
            claims.append(f"{planned[number].group.name!r} by {source.description}")
        where = show_folder(place[:-1]) or "/"
        what = (
            f"several clips are to have the title {place[-1]!r} in {where}: {' and '.join(claims)}"
        )
        for number, source in sources.items():
            error = refuse(what, source, "give all but one of them another title or another folder")
            outcomes[number] = _failed(context, planned[number].group, error)
    return outcomes


async def _plan_group(context: SurveyContext, group: IntentGroup) -> SurveyedTarget:
    """Plan one group, and notify of it; an error becomes the error of its target."""
    try:
        if group.error is not None:
            raise group.error
        if group.kind == "rss_channel":
            outcome = await _plan_channel(context, group)
        elif group.kind == "database":
            outcome = await _plan_database(context, group)
        else:
            outcome = await AssetSurvey(context, group)()
    except PostponedError as postponed:
        outcome = skipped(context, group, "left out", str(postponed))
    except DistinctClipsError:
        raise
    except Exception as error:  # noqa: BLE001 - an error of one target never concerns another one
        outcome = _failed(context, group, error)
    if outcome.target is not None and group.batch:
        outcome.target = structs.replace(outcome.target, batch=group.batch)
    target = outcome.target or Target(context.server.name, group.database, group.kind, group.name)
    context.notify(
        events.TargetPlanned(
            target.server,
            target.database,
            target.kind,
            target.name,
            outcome.state,
            len(target.changes),
            len(target.requests),
            target.error or "",
            outcome.skipped.reason if outcome.skipped else "",
        )
    )
    return outcome


def _failed(context: SurveyContext, group: IntentGroup, error: Exception) -> SurveyedTarget:
    if isinstance(error, TimecodeError):
        error = PlanningError(str(error))
    error = described(error)
    address = group.by_id.address if group.by_id else Address(group.name)
    target = Target(
        context.server.name,
        group.database,
        group.kind,
        group.name,
        error=str(error),
        cause=cause_of(error) or UNSET,
        address=address,
        address_after=address,
        batch=group.batch,
    )
    return SurveyedTarget("error", target)


def failed_survey(
    server: str, intents: Sequence[Intent], error: Exception, notify: Notify = ignore
) -> Survey:
    """Return the plan of a server that could not be read as a whole: all that its tasks ask is in error."""
    message = str(described(error))
    targets: dict[TargetId, Target] = {}
    for intent in intents:
        kind, database, name = named_by(intent.ref)
        target = Target(server, database, kind, name, error=message, batch=intent.batch)
        if target.id not in targets:
            targets[target.id] = target
            notify(events.TargetPlanned(server, database, kind, name, "error", 0, 0, message))
    return Survey(
        server, tuple(targets.values()), is_unreachable=isinstance(error, UnreachableError)
    )


# Channels and databases ----------------------------------------------------------------------------------------


async def _plan_channel(context: SurveyContext, group: IntentGroup) -> SurveyedTarget:
    declared = _evaluate(group.members, DesiredChannel)
    if not declared:
        return skipped(context, group, "when")
    server = context.server
    channel = await context.reader.read_channel(group.name)
    if channel is None:
        raise await not_found(context.reader, server, "channel", group.name, declared[0].source)
    address = Address(channel.name)
    target = Target(
        server.name, "", "rss_channel", channel.name, address=address, address_after=address
    )
    recalled = await recall(
        context.memory, target.id, forget=context.forget, overdue=context.overdue
    )
    title = f"channel {channel.name}"
    live = LiveTarget(channel=channel)

    def planned(channels: Sequence[DesiredChannel]) -> PlanContext:
        merging = Merging(None, "")
        desired = CHANNEL_ITEMS.merge(merging, channels)
        merging.check()
        builder = PlanBuilder()
        builder.warnings += desired.notes
        plan = PlanContext(
            server, "", "", "", title, channel.name, Asset(None), live, builder, recalled.items
        )
        plan = structs.replace(plan, required_live=desired.required_live, hide=context.secrets.mask)
        CHANNEL_ITEMS.plan(plan, desired)
        return plan

    plan = planned(declared)
    for member in group.protecting:
        for kept in _evaluate([member], DesiredChannel):
            check_items(
                declared, kept, lambda channels: planned(channels).builder.changes, kept.source
            )
    settlements = (*recalled.settlements, *adopted(plan, recalled.kept, recalled.target))
    return finished(context, target, plan.builder, live, settlements)


async def _plan_database(context: SurveyContext, group: IntentGroup) -> SurveyedTarget:
    batches = _evaluate(group.members, DesiredXmpBatch)
    if not batches:
        return skipped(context, group, "when")
    server = context.server
    name = group.database
    live = LiveTarget()
    address = Address(name)
    target = Target(server.name, name, "database", name, address=address, address_after=address)
    recalled = await recall(context.memory, target.id, forget=context.forget)
    builder = PlanBuilder()
    plan = PlanContext(server, name, "", "", name, name, Asset(None), live, builder, recalled.items)
    distinct: dict[tuple[str, bytes], DesiredXmpBatch] = {}
    for batch in batches:
        distinct.setdefault((batch.connector, batch.content), batch)
    for batch in distinct.values():
        operation(batch).run(plan, batch, TASK)
    outcome = finished(context, target, builder, live, tuple(recalled.settlements))
    if outcome.target is not None and not await context.reader.has_database(name):
        raise await not_found(context.reader, server, "database", name, batches[0].source)
    return outcome


def _evaluate(members: Sequence[IntentGroupMember], kind: type[D]) -> list[D]:
    """Return what the tasks declare of a target that is not an asset: no facts exist."""
    declared: list[D] = []
    for member in members:
        desired = member.intent.evaluate(Facts(exists=False))
        if isinstance(desired, kind):
            declared.append(desired)
    return declared


# The whole plan ------------------------------------------------------------------------------------------------------


def assemble(
    resolved: ResolvedPlaybooks,
    surveys: Sequence[Survey],
    *,
    created: str,
    version: str,
    limits: Limits,
) -> Plan:
    """Return the plan of all surveys, with refusals. ``created`` is ISO 8601, ``version`` that of msauto."""
    urls = {work.server.name: work.server.url for work in resolved.work}
    counts: dict[str, Any] = dict.fromkeys(COUNTS, 0)
    targets: list[Target] = []
    warnings = list(resolved.warnings)
    servers: list[PlannedServer] = []
    settlements: list[Settlement] = []
    skipped_targets: list[SkippedTarget] = []
    for survey in surveys:
        for name in COUNTS:
            counts[name] += getattr(survey, name)
        targets += survey.targets
        warnings += [f"{survey.server}: {warning}" for warning in survey.warnings]
        url = urls.get(survey.server, "")
        servers.append(PlannedServer(survey.server, survey.unchanged, survey.kept, url))
        skipped_targets += survey.skipped
        settlements += survey.settlements
    targets.sort(key=lambda target: (target.batch, target.kind != "database"))
    plan = Plan(
        created=created,
        msauto=version,
        inputs=tuple([_hash_of(file, resolved.secrets) for file in resolved.inputs]),
        targets=_refuse_shared_files(targets),
        warnings=tuple(warnings),
        skipped=tuple(skipped_targets),
        servers=tuple(servers),
        batches=resolved.batches,
        settlements=tuple(settlements),
        secrets=resolved.secrets,
        **counts,
    )
    return structs.replace(plan, refusals=refusals(plan, limits))


def _hash_of(file: InputFile, secrets: Secrets) -> InputHash:
    """Return a file as the plan names it, without the hash if it holds a secret that could be guessed from it."""
    if secrets.texts:
        content = file.content
        if content is None or secrets.occurs_in(content.decode("utf-8", "replace")):
            return InputHash(file.path, HIDDEN)
    return InputHash(file.path, file.sha256)


def _refuse_shared_files(targets: Sequence[Target]) -> tuple[Target, ...]:
    """Return the targets; two downloads into one file are an error of both of their targets.

    Some file systems take names for the same that differ in case, or in the composition of accents.
    """
    writers: dict[str, list[_FileTaken]] = {}
    for number, target in enumerate(targets):
        for request in target.requests:
            if request.dest is None:
                continue
            place = str(target.changes[request.changes[0]].source.place)
            full = os.path.abspath(request.dest)  # noqa: PTH100 - no link is followed
            file = unicodedata.normalize("NFC", full).casefold()
            writers.setdefault(file, []).append(_FileTaken(number, place, request.dest))
    refused = list(targets)
    for downloads in writers.values():
        if len(downloads) < 2:
            continue
        shown: list[str] = []
        for download in downloads[:2]:
            target = targets[download.target]
            shown.append(f"{target.server} {target.name!r} ({download.place})")
        more = f" and {len(downloads) - 2} more" if len(downloads) > 2 else ""
        error = (
            f"{downloads[0].place}: {len(downloads)} downloads have the same destination {downloads[0].dest}: "
            f"{' and '.join(shown)}{more}\n"
            "  → make `dest` unique, with {{ asset.title }} or {{ inventory_hostname }}"
        )
        for download in downloads:
            number = download.target
            refused[number] = structs.replace(targets[number], changes=(), requests=(), error=error)
    return tuple(refused)


class _FileTaken(NamedTuple):
    """A download of a plan: the index of its target, where it is declared, and its file."""

    target: int
    place: str
    dest: str
