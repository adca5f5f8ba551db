"""The survey of one server: read, evaluate, read more, compare; and the plan that the surveys of all servers make.

It works target by target and drops live state as soon as it is compared.
"""

from __future__ import annotations

import os.path
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

from msgspec import Struct, structs

from msauto.aspects import CHANNEL_ITEMS, DELETION, operation
from msauto.aspects.merging import Merging
from msauto.aspects.plan_builder import TASK, PlanBuilder, PlanContext, refuse
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
    TaskSource,
)
from msauto.model.events import Notify, ignore
from msauto.model.facts import Facts
from msauto.model.identity import compare_clips, plain
from msauto.model.live import Asset, parse_folder, show_folder
from msauto.model.plan import Address, InputHash, Limits, Plan, PlannedServer, Settlement, Target, TargetId
from msauto.model.ports import LiveTarget
from msauto.model.timecode import TimecodeError
from msauto.planning.asset_survey import (
    AssetSurvey,
    SurveyContext,
    SurveyedTarget,
    finished,
    in_error,
)
from msauto.planning.clip_finder import DistinctClipsError
from msauto.planning.fact_layers import XmpAnswers
from msauto.planning.handlers import recall
from msauto.planning.left_out import asks_for_something, check_items, find_clips, protect_by_title, protect_otherwise
from msauto.planning.limits import refusals
from msauto.planning.renames import PostponedError
from msauto.planning.similar_titles import not_found
from msauto.planning.target_groups import Grouping, IntentGroup, merge_groups, named_by
from msauto.secrets.redaction import HIDDEN, Secrets

D = TypeVar("D", DesiredChannel, DesiredXmpBatch)
Planned = tuple[IntentGroup, SurveyedTarget]


class Survey(Struct, frozen=True):
    """The plan of one server. ``targets`` are those that change or are in error, in the order of the playbooks.

    ``is_unreachable``: the server does not answer at all.
    """

    server: str
    targets: tuple[Target, ...] = ()
    unchanged: int = 0
    kept: int = 0
    skipped: int = 0
    left_out: int = 0
    reads: int = 0
    warnings: tuple[str, ...] = ()
    settlements: tuple[Settlement, ...] = ()
    is_unreachable: bool = False


async def survey(intents: Sequence[Intent], context: SurveyContext, *, forks: int) -> Survey:
    """Plan one server, at most ``forks`` targets at once. An error of a target becomes its ``error``."""
    server, of_databases, rest = context.server, list[Intent](), list[Intent]()
    for intent in intents:
        (of_databases if isinstance(intent.ref, DatabaseRef) else rest).append(intent)
    context = structs.replace(context, pending=context.memory.pending(server.name))
    databases = await Grouping(server, context.reader, 1, context.answers).groups(of_databases)
    outcomes = [await _plan(context, group) for group in filter(_choice(context, databases), databases)]
    loaded = [each.target for each in outcomes if each.target is not None and each.target.changes]
    context = structs.replace(context, answers=XmpAnswers({each.database: each.changes[0].source for each in loaded}))
    outcomes += await _plan_after_databases(context, rest, len(outcomes), forks)
    targets = [each.target for each in outcomes if each.target is not None]
    first = min((target.batch for target in targets), default=0)
    states = Counter(each.state for each in outcomes)
    warnings = [warning for outcome in outcomes for warning in outcome.warnings]
    return Survey(
        server.name,
        # A database target is in the first batch: it precedes all assets of its server.
        tuple([structs.replace(each, batch=first) if each.kind == "database" else each for each in targets]),
        states["unchanged"] + states["kept"],
        states["kept"],
        states["skipped"],
        states["left out"],
        context.reader.reads,
        (*warnings, *context.answers.warnings()),
        tuple([settlement for outcome in outcomes for settlement in outcome.settlements]),
    )


async def _plan_after_databases(
    context: SurveyContext, intents: Sequence[Intent], before: int, forks: int
) -> list[SurveyedTarget]:
    """Plan assets and channels, each clip and each place once; ``before`` targets of databases precede them."""
    grouping = Grouping(context.server, context.reader, forks, context.answers)
    groups = await grouping.groups(intents)
    protect_by_title(groups, context.left_out)
    is_chosen = _choice(context, groups)
    chosen = list(filter(is_chosen, groups))
    context.notify(events.TargetsFound(context.server.name, before + len(chosen)))
    planned = list(zip(chosen, await concurrent_list(partial(_plan, context), chosen, limit=forks), strict=True))
    others = [] if len(chosen) == len(groups) else [group for group in groups if not is_chosen(group)]
    planned, named = await _named_otherwise(context, planned, others, grouping)
    planned = await _with_one_target_a_clip(context, planned, named)
    return _without_shared_places(context, await _without_named_links(context, planned, named))


def _choice(context: SurveyContext, groups: Sequence[IntentGroup]) -> Callable[[IntentGroup], bool]:
    """Return whether to plan a group, as a function. What cannot be read may hold a chosen target, and is kept."""
    is_chosen = context.choice.among(name for group in groups for name in group.all_names)
    return lambda group: is_chosen is None or is_chosen(group.all_names) or group.is_unknown


async def _named_otherwise(
    context: SurveyContext, planned: Sequence[Planned], others: Sequence[IntentGroup], grouping: Grouping
) -> tuple[list[Planned], list[IntentGroup]]:
    """Return the groups of ``others``, and of what is left out, that may name a clip which loses something, or a link.

    The clips of targets in error are found as well. What is left out and names a losing target by its title, as a
    select does, is added to it, and it is planned again: the outcomes are returned, too.
    """
    lost = [(group, each.target) for group, each in planned if each.target is not None and each.target.loses]
    lost = [(group, target) for group, target in lost if group.kind == "asset"]
    in_error = [group for group, each in planned if lost and each.state == "error" and group.kind == "asset"]
    await find_clips(context.reader, in_error)
    unread = [group.members[0].intent for group in in_error if group.is_unknown]
    known = {id(member.intent) for group, _ in planned if group.clip is not None for member in group.protecting}
    left_out = [each for each in (*context.left_out, *unread) if id(each) not in known]
    named: list[IntentGroup] = []
    again: dict[int, SurveyedTarget] = {}
    for database in dict.fromkeys(group.database for group, _ in lost):
        losing = [(group, target) for group, target in lost if group.database == database]
        groups = [group for group in others if (group.kind, group.database) == ("asset", database)]
        intents = [each for each in left_out if getattr(each.ref, "database", "") == database]
        if not groups and not intents:
            continue
        before = [len(group.protecting) for group, _ in losing]
        try:
            named += await protect_otherwise(grouping, losing, groups, intents)
        except Exception as error:  # noqa: BLE001 - it is that of these targets, and of no other one
            again |= {id(group): _failed(context, group, error) for group, _ in losing}
        more = [group for (group, _), count in zip(losing, before, strict=True) if len(group.protecting) > count]
        again |= {id(group): await plan_group(context, group) for group in more}
    return [(group, again.get(id(group), each)) for group, each in planned], named


async def _with_one_target_a_clip(
    context: SurveyContext, planned: Sequence[Planned], others: Sequence[IntentGroup]
) -> list[Planned]:
    """Return the groups and their outcomes, with one for all groups that lead to the same clip under other names.

    ``others`` are not planned, unless they are of the clip of one that is.
    """
    groups = [*(group for group, _ in planned), *others]
    clips: dict[int, list[int]] = {}
    for number, group in enumerate(groups):
        if group.clip is not None:
            clips.setdefault(group.clip, []).append(number)
    outcomes: list[Planned | None] = [*planned, *(None for _ in others)]
    # More names than MOST_LINKS for one clip means that the server reports the same for all clips.
    for first, *more in (numbers for numbers in clips.values() if 1 < len(numbers) <= MOST_LINKS):
        if outcomes[first] is None:
            continue
        with suppress(DistinctClipsError):  # their answers only looked like one clip
            merged = merge_groups([groups[number] for number in (first, *more)])
            outcomes[first] = merged, await plan_group(context, merged)
            for number in more:
                outcomes[number] = None
    return [each for each in outcomes if each is not None]


async def _without_named_links(
    context: SurveyContext, planned: Sequence[Planned], others: Sequence[IntentGroup]
) -> list[Planned]:
    """Return the groups and their outcomes; in error are deletions of a clip of which a task names what may be a link.

    What surely is a link of it is the same target, where such tasks contradict each other anyway. ``others`` are not
    planned, and still protect what they name.
    """
    deletions = {
        number: each.target
        for number, (_, each) in enumerate(planned)
        if each.target and each.target.places and any(change.aspect == DELETION.name for change in each.target.changes)
    }
    if not deletions:
        return list(planned)
    named: dict[tuple[str, str], list[IntentGroup]] = {}
    for group in (*(group for group, each in planned if each.state != "skipped"), *others):
        for name in {plain(name) for name in group.all_names}:
            named.setdefault((group.database, name), []).append(group)
    outcomes = list(planned)
    for number, target in deletions.items():
        group, _ = planned[number]
        for place in target.places:
            *_, title = ("", *parse_folder(place))
            groups = named.get((target.database, plain(title)), ())
            asking = (member for each in groups if each is not group for member in each.naming)
            member = next(filter(asks_for_something, asking), None)
            if member is None:
                continue
            answer = None
            with suppress(Exception):  # the task that names it has the error
                answer = await context.reader.read_asset(target.database, Address(title))
            if answer is None or compare_clips(target.clip, answer).answer != "other":
                error = refuse(
                    f"{group.name!r} is to be deleted, and {member.intent.source.description} names {place}, which may "
                    "be a link of it",
                    target.changes[0].source,
                    "remove one of the two tasks, or run the other one first, by itself",
                )
                outcomes[number] = group, _failed(context, group, error)
    return outcomes


def _without_shared_places(
    context: SurveyContext, planned: Sequence[tuple[IntentGroup, SurveyedTarget]]
) -> list[SurveyedTarget]:
    """Return the outcomes; in error are those that want one title in one folder, for a link or for the clip itself."""
    outcomes = [outcome for _, outcome in planned]
    wanted: dict[tuple[str, ...], dict[int, TaskSource]] = {}
    for number, outcome in enumerate(outcomes):
        if outcome.target is not None:
            for place, source in outcome.taken:
                wanted.setdefault((outcome.target.database, *map(plain, place)), {})[number] = source
    for (_, *names), sources in wanted.items():
        if len(sources) < 2:
            continue
        *folder, title = names
        named = " and ".join(f"{planned[number][0].name!r} by {each.description}" for number, each in sources.items())
        what = f"several clips are to have the title {title!r} in {show_folder(tuple(folder)) or '/'}: {named}"
        for number, source in sources.items():
            group = planned[number][0]
            error = refuse(what, source, "give all but one of them another title or another folder")
            outcomes[number] = _failed(context, group, error)
    return outcomes


async def _plan(context: SurveyContext, group: IntentGroup) -> SurveyedTarget:
    """Plan one group, and notify of it."""
    outcome = await plan_group(context, group)
    target = outcome.target or Target(context.server.name, group.database, group.kind, group.name)
    named = target.server, target.database, target.kind, target.name
    counts = len(target.changes), len(target.requests)
    context.notify(events.TargetPlanned(*named, outcome.state, *counts, target.error or ""))
    return outcome


async def plan_group(context: SurveyContext, group: IntentGroup) -> SurveyedTarget:
    """Plan one group; an error becomes the error of its target."""
    plan = {"rss_channel": _plan_channel, "database": _plan_database}.get(group.kind)
    try:
        if group.error is not None:
            raise group.error
        outcome = await (plan(context, group) if plan else AssetSurvey(context, group)())
    except PostponedError as postponed:
        outcome = SurveyedTarget("left out", warnings=(str(postponed),))
    except DistinctClipsError:
        raise
    except Exception as error:  # noqa: BLE001 - an error of one target never concerns another one
        return _failed(context, group, error)
    if outcome.target is not None and group.batch:
        outcome.target = structs.replace(outcome.target, batch=group.batch)
    return outcome


def _failed(context: SurveyContext, group: IntentGroup, error: Exception) -> SurveyedTarget:
    known = PlanningError(str(error)) if isinstance(error, TimecodeError) else described(error)
    return SurveyedTarget("error", structs.replace(in_error(context, group, known), batch=group.batch))


def failed_survey(server: str, intents: Sequence[Intent], error: Exception, notify: Notify = ignore) -> Survey:
    """Return the plan of a server that could not be read as a whole: all that its tasks ask is in error."""
    message = str(described(error))
    targets: dict[TargetId, Target] = {}
    for intent in intents:
        kind, database, name = named_by(intent.ref)
        target = Target(server, database, kind, name, error=message, batch=intent.batch)
        if target.id not in targets:
            targets[target.id] = target
            notify(events.TargetPlanned(server, database, kind, name, "error", 0, 0, message))
    is_unreachable = isinstance(error, UnreachableError)
    return Survey(server, tuple(targets.values()), is_unreachable=is_unreachable)


# Channels and databases ----------------------------------------------------------------------------------------


async def _plan_channel(context: SurveyContext, group: IntentGroup) -> SurveyedTarget:
    declared = _evaluate(group, DesiredChannel)
    if not declared:
        return SurveyedTarget("skipped")
    channel = await context.reader.read_channel(group.name)
    if channel is None:
        raise await not_found(context.reader, context.server, "channel", group.name, declared[0].source)
    memory = context.memory.recall(TargetId(context.server.name, "", "rss_channel", channel.name))
    title, address, live = f"channel {channel.name}", Address(channel.name), LiveTarget(channel=channel)

    def planned(channels: Sequence[DesiredChannel]) -> PlanBuilder:
        merging = Merging(None, "")
        desired = CHANNEL_ITEMS.merge(merging, channels)
        merging.check()
        builder = PlanBuilder()
        builder.warnings += desired.notes
        plan = PlanContext(context.server, "", "", "", title, channel.name, Asset(None), live, builder, memory)
        CHANNEL_ITEMS.plan(structs.replace(plan, still=desired.still, hide=context.secrets.mask), desired)
        return builder

    builder = planned(declared)
    for kept in (member.intent.evaluate(Facts(there=False)) for member in group.protecting):
        if isinstance(kept, DesiredChannel):
            check_items(declared, kept, lambda channels: planned(channels).changes, kept.source)
    target = Target(context.server.name, "", "rss_channel", channel.name, address=address, address_after=address)
    return finished(context, target, builder, live)


async def _plan_database(context: SurveyContext, group: IntentGroup) -> SurveyedTarget:
    batches = _evaluate(group, DesiredXmpBatch)
    if not batches:
        return SurveyedTarget("skipped")
    address = Address(group.database)
    target = Target(
        context.server.name, group.database, "database", group.database, address=address, address_after=address
    )
    recalled = recall(context.memory, [target.id], forget=context.forget)
    builder, name = PlanBuilder(), group.database
    plan = PlanContext(
        context.server, name, "", "", name, name, Asset(None), LiveTarget(), builder, memory=recalled.items
    )
    distinct: dict[tuple[str, bytes], DesiredXmpBatch] = {}
    for batch in batches:
        distinct.setdefault((batch.connector, batch.content), batch)
    for batch in distinct.values():
        operation(batch).run(plan, batch, TASK)
    outcome = finished(context, target, builder, LiveTarget(), recalled.settlements)
    if outcome.target is not None and not await context.reader.has_database(group.database):
        raise await not_found(context.reader, context.server, "database", group.database, batches[0].source)
    return outcome


def _evaluate(group: IntentGroup, kind: type[D]) -> list[D]:
    """Return what the tasks declare of a target that is not an asset: no facts exist."""
    evaluated = [member.intent.evaluate(Facts(there=False)) for member in group.members]
    return [desired for desired in evaluated if isinstance(desired, kind)]


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
    targets = (target for survey in surveys for target in survey.targets)
    plan = Plan(
        created=created,
        msauto=version,
        inputs=tuple(_hash_of(file, resolved.secrets) for file in resolved.inputs),
        targets=_refuse_shared_files(sorted(targets, key=lambda target: (target.batch, target.kind != "database"))),
        unchanged=sum(survey.unchanged for survey in surveys),
        kept=sum(survey.kept for survey in surveys),
        skipped=sum(survey.skipped for survey in surveys),
        left_out=sum(survey.left_out for survey in surveys),
        reads=sum(survey.reads for survey in surveys),
        warnings=(
            *resolved.warnings,
            *(f"{survey.server}: {warning}" for survey in surveys for warning in survey.warnings),
        ),
        servers=tuple(PlannedServer(each.server, each.unchanged, urls.get(each.server, "")) for each in surveys),
        batches=resolved.batches,
        settlements=tuple(settlement for survey in surveys for settlement in survey.settlements),
        secrets=resolved.secrets,
    )
    return structs.replace(plan, refusals=refusals(plan, limits))


def _hash_of(file: InputFile, secrets: Secrets) -> InputHash:
    """Return a file as the plan names it, without the hash if it holds a secret that could be guessed from it."""
    may_hold = secrets and (file.content is None or secrets.occurs_in(file.content.decode("utf-8", "replace")))
    return InputHash(file.path, HIDDEN if may_hold else file.sha256)


def _refuse_shared_files(targets: Sequence[Target]) -> tuple[Target, ...]:
    """Return the targets; two downloads into one file are an error of both of their targets.

    Some file systems take names for the same that differ in case, or in the composition of accents.
    """
    writers: dict[str, list[tuple[int, str]]] = {}
    shown_dests: dict[str, str] = {}
    for number, target in enumerate(targets):
        for request in (each for each in target.requests if each.dest is not None):
            place = str(target.changes[request.changes[0]].source.place)
            full = os.path.abspath(request.dest or "")  # noqa: PTH100 - no link is followed
            file = unicodedata.normalize("NFC", full).casefold()
            shown_dests.setdefault(file, request.dest or "")
            writers.setdefault(file, []).append((number, place))
    refused = list(targets)
    for file, those in writers.items():
        shown = [f"{targets[number].server} {targets[number].name!r} ({place})" for number, place in those[:2]]
        more = f" and {len(those) - 2} more" if len(those) > 2 else ""
        dest = shown_dests[file]
        error = (
            f"{those[0][1]}: {len(those)} downloads have the same destination {dest}: {' and '.join(shown)}{more}\n"
            "  → make `dest` unique, with {{ asset.title }} or {{ inventory_hostname }}"
        )
        for number in {number for number, _ in those} if len(those) > 1 else ():
            refused[number] = structs.replace(targets[number], changes=(), requests=(), error=error)
    return tuple(refused)
