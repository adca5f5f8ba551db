"""The survey of one server: read, evaluate, read more, compare.

It works target by target and drops live state as soon as it is compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

from msgspec import Struct, structs

from msauto.aspects import ASPECTS
from msauto.aspects.merging import Merging
from msauto.aspects.plan_builder import PlanBuilder, refuse
from msauto.aspects.rss_arguments import merge_channels
from msauto.aspects.rss_item import ChannelContext, plan_items
from msauto.aspects.xmp_batch import plan_batch
from msauto.concurrency import concurrent_list
from msauto.errors import MsautoError
from msauto.model import events
from msauto.model.clip_entries import MOST_LINKS
from msauto.model.desired import DatabaseRef, DesiredChannel, DesiredXmpBatch, Intent, TaskSource
from msauto.model.facts import Facts
from msauto.model.identity import plain
from msauto.model.live import Folder, show_folder
from msauto.model.plan import Address, Settlement, Target, TargetId
from msauto.model.ports import LiveTarget
from msauto.model.timecode import TimecodeError
from msauto.planning.asset_survey import (
    AssetSurvey,
    SurveyContext,
    SurveyedTarget,
    finished,
    in_error,
)
from msauto.planning.clip_finder import DistinctClipsError, PostponedError
from msauto.planning.fact_layers import XmpAnswers
from msauto.planning.handlers import recall
from msauto.planning.target_groups import IntentGroup, group_intents, merge_groups
from msauto.planning.titles import not_found

D = TypeVar("D", DesiredChannel, DesiredXmpBatch)


class Survey(Struct, frozen=True):
    """The plan of one server. ``targets`` are those that change or are in error, in the order of the playbooks.

    ``is_unreachable``: the server does not answer at all.
    """

    server: str
    targets: tuple[Target, ...] = ()
    unchanged: int = 0
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
    databases = await group_intents(server, of_databases, context.reader, 1, context.answers)
    outcomes = [await _plan(context, group) for group in filter(_choice(context, databases), databases)]
    loaded = [each.target for each in outcomes if each.target is not None and each.target.changes]
    context = structs.replace(context, answers=XmpAnswers({each.database: each.changes[0].source for each in loaded}))
    outcomes += await _plan_after_databases(context, rest, len(outcomes), forks)
    targets = [each.target for each in outcomes if each.target is not None]
    first = min((target.batch for target in targets), default=0)
    states = Counter(each.state for each in outcomes)
    warnings = (warning for outcome in outcomes for warning in outcome.warnings)
    return Survey(
        server.name,
        # A database target is in the first batch: it precedes all assets of its server.
        tuple(structs.replace(each, batch=first) if each.kind == "database" else each for each in targets),
        states["unchanged"],
        states["skipped"],
        states["left out"],
        context.reader.reads,
        (*warnings, *context.answers.warnings()),
        tuple(settlement for outcome in outcomes for settlement in outcome.settlements),
    )


async def _plan_after_databases(
    context: SurveyContext, intents: Sequence[Intent], planned: int, forks: int
) -> list[SurveyedTarget]:
    """Plan assets and channels, each clip and each place once; ``planned`` targets of databases precede them."""
    groups = await group_intents(context.server, intents, context.reader, forks, context.answers)
    is_chosen = _choice(context, groups)
    chosen = list(filter(is_chosen, groups))
    context.notify(events.TargetsFound(context.server.name, planned + len(chosen)))
    outcomes = await concurrent_list(partial(_plan, context), chosen, limit=forks)
    if len(chosen) < len(groups) and any(each.target.loses for each in outcomes if each.target):
        # Another task may name the same clip by a link, and want what would be removed.
        chosen = groups
        outcomes = await concurrent_list(partial(plan_group, context), groups, limit=forks)
    one_a_clip = await _with_one_target_a_clip(context, chosen, outcomes)
    return _without_shared_places(context, [each for each in one_a_clip if is_chosen(each[0])])


def _choice(context: SurveyContext, groups: Sequence[IntentGroup]) -> Callable[[IntentGroup], bool]:
    """Return whether to plan a group, as a function. What cannot be read may hold a chosen target, and is kept."""
    takes = context.choice.among(name for group in groups for name in group.all_names)
    return lambda group: takes is None or takes(group.all_names) or group.is_unknown


async def _with_one_target_a_clip(
    context: SurveyContext, groups: Sequence[IntentGroup], outcomes: Sequence[SurveyedTarget]
) -> list[tuple[IntentGroup, SurveyedTarget]]:
    """Return the groups and their outcomes, with one for all groups that lead to the same clip under other names."""
    found = list(zip(groups, outcomes, strict=True))
    clips: dict[int, list[int]] = {}
    for number, group in enumerate(groups):
        if group.clip is not None:
            clips.setdefault(group.clip, []).append(number)
    replaced: set[int] = set()
    # More names than MOST_LINKS for one clip means that the server reports the same for all clips.
    for numbers in (numbers for numbers in clips.values() if 1 < len(numbers) <= MOST_LINKS):
        with suppress(DistinctClipsError):  # their answers only looked like one clip
            merged = merge_groups([groups[number] for number in numbers])
            found[numbers[0]] = merged, await plan_group(context, merged)
            replaced.update(numbers[1:])
    return [each for number, each in enumerate(found) if number not in replaced]


def _without_shared_places(
    context: SurveyContext, planned: Sequence[tuple[IntentGroup, SurveyedTarget]]
) -> list[SurveyedTarget]:
    """Return the outcomes; in error are those that want one title in one folder, for a link or for the clip itself."""
    outcomes = [outcome for _, outcome in planned]
    wanted: dict[tuple[str, ...], dict[int, TaskSource]] = {}
    for number, outcome in enumerate(outcomes):
        if outcome.target is not None:
            for place, source in _places_taken(outcome.target):
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
            target = structs.replace(in_error(context, group, error), batch=group.batch)
            outcomes[number] = SurveyedTarget("error", target)
    return outcomes


def _places_taken(target: Target) -> Iterator[tuple[Folder, TaskSource]]:
    """Yield folder and title of each link that a target gets or changes, and of a clip that gets a new title."""
    for change in target.changes:
        place = ASPECTS[change.aspect].takes(change, target)
        if place is not None:
            yield place, change.source


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
    except (MsautoError, TimecodeError) as error:
        outcome = SurveyedTarget("error", in_error(context, group, error))
    if outcome.target is not None and group.batch:
        outcome.target = structs.replace(outcome.target, batch=group.batch)
    return outcome


# Channels and databases ----------------------------------------------------------------------------------------


async def _plan_channel(context: SurveyContext, group: IntentGroup) -> SurveyedTarget:
    declared = _evaluate(group, DesiredChannel)
    if not declared:
        return SurveyedTarget("skipped")
    channel = await context.reader.read_channel(group.name)
    if channel is None:
        raise await not_found(context.reader, context.server, "channel", group.name, declared[0].source)
    memory = context.memory.recall(TargetId(context.server.name, "", "rss_channel", channel.name))
    merging = Merging(None, "")
    desired = merge_channels(declared, merging)
    merging.check()
    plan = ChannelContext(context.server, channel, memory, desired)
    plan.builder.warnings += desired.notes
    plan_items(plan)
    address = Address(channel.name)
    target = Target(context.server.name, "", "rss_channel", channel.name, address=address, address_after=address)
    return finished(context, target, plan.builder, LiveTarget(channel=channel))


async def _plan_database(context: SurveyContext, group: IntentGroup) -> SurveyedTarget:
    batches = _evaluate(group, DesiredXmpBatch)
    if not batches:
        return SurveyedTarget("skipped")
    address = Address(group.database)
    target = Target(
        context.server.name, group.database, "database", group.database, address=address, address_after=address
    )
    recalled = recall(context.memory, [target.id], forget=context.forget)
    builder = PlanBuilder()
    distinct: dict[tuple[str, bytes], DesiredXmpBatch] = {}
    for batch in batches:
        distinct.setdefault((batch.connector, batch.content), batch)
    for batch in distinct.values():
        plan_batch(context.server, group.database, batch, recalled.items, builder)
    outcome = finished(context, target, builder, LiveTarget(), recalled.settlements)
    if outcome.target is not None and not await context.reader.has_database(group.database):
        raise await not_found(context.reader, context.server, "database", group.database, batches[0].source)
    return outcome


def _evaluate(group: IntentGroup, kind: type[D]) -> list[D]:
    """Return what the tasks declare of a target that is not an asset: no facts exist."""
    evaluated = [member.intent.evaluate(Facts.none()) for member in group.members]
    return [desired for desired in evaluated if isinstance(desired, kind)]
