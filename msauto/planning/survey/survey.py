"""The survey of one server: read, evaluate, read more, compare; target by target, live state dropped once compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from msauto.concurrency import concurrent_map
from msauto.diffing.builder import refuse
from msauto.errors import MsautoError
from msauto.model.desired import DatabaseRef, DesiredChannel, DesiredXmpBatch, ServerIntents, TaskSource
from msauto.model.plan import Settlement, Target, TargetId
from msauto.model.ports import Disk, LiveTarget, Memory, NoDisk, Reader
from msauto.model.timecode import TimecodeError
from msauto.planning.fingerprint import slow_if_secret
from msauto.planning.survey.asset_plan import plan_channel, plan_database
from msauto.planning.survey.asset_survey import State, SurveyContext, SurveyedTarget, in_error, survey_asset
from msauto.planning.survey.clip_finder import DistinctClipsError
from msauto.planning.survey.fact_layers import Layers, XmpAnswers
from msauto.planning.survey.grouping import IntentGroup, group_intents, merge_groups
from msauto.planning.survey.merge import unite_channel
from msauto.planning.survey.recall import settlements_of
from msauto.secrets.taint import Secrets
from msauto.server.clip_identity import MOST_LINKS


@dataclass(frozen=True, slots=True)
class Survey:
    """What planning found of one server. ``targets`` are those changed or in error, in order of first mention."""

    server: str
    targets: tuple[Target, ...] = ()
    unchanged: int = 0
    skipped: int = 0
    left_out: int = 0
    reads: int = 0
    warnings: tuple[str, ...] = ()
    settlements: tuple[Settlement, ...] = ()


async def survey(
    work: ServerIntents,
    reader: Reader,
    memory: Memory,
    *,
    forks: int,
    find_links: bool = False,
    disk: Disk | None = None,
    forget_pending: bool = False,
    secrets: Callable[[], Secrets] = Secrets,
) -> Survey:
    """Plan one server, at most ``forks`` targets at once. Errors stay with their target: nothing is raised for one.

    ``find_links`` also reads where assets are linked that are to be deleted, or from which something is to be removed:
    for limits that protect folders. ``disk`` is where downloads may be already. ``forget_pending`` takes what earlier runs
    have left open as settled. ``secrets`` tells those that came up so far.
    """
    pending = memory.pending(work.server.name)
    world = SurveyContext(
        work.server, reader, memory, find_links, disk or NoDisk(), pending, forget_pending, secrets=secrets
    )
    whole = tuple(intent for intent in work.intents if isinstance(intent.ref, DatabaseRef))
    found = _Found()
    for group in await group_intents(replace(work, intents=whole), reader, 1):
        found.add(await _plan_group(world, group))
    world = replace(world, answers=XmpAnswers(_batches(found.targets)))
    rest = replace(work, intents=tuple(intent for intent in work.intents if not isinstance(intent.ref, DatabaseRef)))
    groups = await group_intents(rest, reader, forks, world.answers)

    async def plan(group: IntentGroup) -> SurveyedTarget:
        return await _plan_group(world, group)

    first = found.count
    async for outcome in concurrent_map(plan, groups, limit=forks):
        found.add(outcome)
    for numbers in found.same_clips():
        try:
            outcome = await _plan_group(world, merge_groups([groups[number - first] for number in numbers]))
        except DistinctClipsError:
            continue  # they only looked like one clip
        found.replace(numbers, outcome)
    told = found.survey(work.server.name, reader.reads)
    return replace(told, warnings=(*told.warnings, *world.answers.warnings()))


class _Found:
    """What came of the targets so far, by their number: those that are unchanged are counted, not kept."""

    def __init__(self) -> None:
        self._states: list[State | None] = []
        self._outcomes: dict[int, SurveyedTarget] = {}
        self._clips: dict[int, list[int]] = {}

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._states)

    @property
    def targets(self) -> list[Target]:
        """Those that change or are in error, in their order."""
        return [each.target for _, each in sorted(self._outcomes.items()) if each.target is not None]

    def add(self, outcome: SurveyedTarget) -> None:
        """Take what came of the next one."""
        number = len(self._states)
        self._states.append(outcome.state)
        if outcome.clip is not None:
            self._clips.setdefault(outcome.clip, []).append(number)
        self._keep(number, outcome)

    def same_clips(self) -> list[list[int]]:
        """Return the numbers of those that seem to lead to one clip by different names.

        Where more of them seem to, all clips of the server report the same.
        """
        return [numbers for numbers in self._clips.values() if 1 < len(numbers) <= MOST_LINKS]

    def replace(self, numbers: Sequence[int], outcome: SurveyedTarget) -> None:
        """Let one outcome stand for several, at the place of the first."""
        for number in numbers:
            self._states[number] = None
            self._outcomes.pop(number, None)
        self._states[numbers[0]] = outcome.state
        self._keep(numbers[0], outcome)

    def _keep(self, number: int, outcome: SurveyedTarget) -> None:
        if outcome.target is not None or outcome.warnings or outcome.settlements:
            self._outcomes[number] = outcome

    def survey(self, server: str, reads: int) -> Survey:
        """Return all of it."""
        targets = self.targets
        first = min((target.batch for target in targets), default=0)
        kept = [outcome for _, outcome in sorted(self._outcomes.items())]
        states = Counter(self._states)
        return Survey(
            server,
            tuple(_in_batch(target, first) for target in targets),
            states["unchanged"],
            states["skipped"],
            states["left out"],
            reads,
            tuple(warning for outcome in kept for warning in outcome.warnings),
            tuple(settlement for outcome in kept for settlement in outcome.settlements),
        )


def _in_batch(target: Target, first: int) -> Target:
    """A database goes before all assets of its server, whichever play speaks of them first."""
    return structs.replace(target, batch=first) if target.kind == "database" else target


def _batches(targets: Iterable[Target]) -> dict[str, TaskSource]:
    """Return the databases that a batch is pending for, and where the playbook says so."""
    return {target.database: target.changes[0].source for target in targets if target.changes}


async def _plan_group(world: SurveyContext, group: IntentGroup) -> SurveyedTarget:
    outcome = await _plan(world, group)
    return (
        outcome
        if outcome.target is None
        else replace(outcome, target=structs.replace(outcome.target, batch=group.batch))
    )


async def _plan(world: SurveyContext, group: IntentGroup) -> SurveyedTarget:
    try:
        if group.error is not None:
            raise group.error
        if group.kind == "rss_channel":
            return await _plan_channel(world, group)
        if group.kind == "database":
            return await _plan_database(world, group)
        return await survey_asset(world, group)
    except (MsautoError, TimecodeError) as error:
        return SurveyedTarget("changed", in_error(world, group, error))


# Channels and databases ----------------------------------------------------------------------------------------


async def _plan_channel(world: SurveyContext, group: IntentGroup) -> SurveyedTarget:
    layers = Layers(world.reader, "", _nothing)
    sourced = [await layers.evaluate(member.intent.evaluate) for member in group.members]
    wanteds = [desired for desired in sourced if isinstance(desired, DesiredChannel)]
    if not wanteds:
        return SurveyedTarget("skipped")
    channel = await world.reader.read_channel(group.name)
    if channel is None:
        raise refuse(
            f"server {world.server.name} has no RSS channel {group.name!r}",
            wanteds[0].source,
            "look at the channels with `msauto show channels`; a channel is made in the feed service",
        )
    memory = world.memory.recall(TargetId(world.server.name, "", "rss_channel", channel.name))
    target, warnings = plan_channel(world.server, channel, unite_channel(wanteds), memory)
    return SurveyedTarget.of(slow_if_secret(target, LiveTarget(channel=channel), world.secrets()), warnings)


async def _plan_database(world: SurveyContext, group: IntentGroup) -> SurveyedTarget:
    layers = Layers(world.reader, group.database, _nothing)
    sourced = [await layers.evaluate(member.intent.evaluate) for member in group.members]
    batches = [desired for desired in sourced if isinstance(desired, DesiredXmpBatch)]
    if not batches:
        return SurveyedTarget("skipped")
    name = TargetId(world.server.name, group.database, "database", group.database)
    memory = dict(world.memory.recall(name))
    settlements = settlements_of(name, memory) if world.forget else []
    memory |= {each.item: each.value for each in settlements}
    outcome = SurveyedTarget.of(*plan_database(world.server, group.database, batches, memory), tuple(settlements))
    if outcome.target is not None and not await world.reader.has_database(group.database):
        raise refuse(
            f"server {world.server.name} has no database {group.database!r}",
            batches[0].source,
            "look at the databases with `msauto show databases`",
        )
    return outcome


async def _nothing() -> None:
    return None
