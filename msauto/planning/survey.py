"""The survey of one server: read, evaluate, read more, compare; target by target, live state dropped once compared."""

from __future__ import annotations

from dataclasses import dataclass

from msauto.errors import MsautoError
from msauto.flow import concurrent_map
from msauto.model.plan import Address, Target, TargetId
from msauto.model.ports import Clock, Memory, Reader
from msauto.model.timecode import TimecodeError
from msauto.model.wanted import RssWanted, Work
from msauto.planning.draft import refuse
from msauto.planning.finding import Outcome, World, survey_asset
from msauto.planning.grouping import Group, group_intents
from msauto.planning.layers import Layers
from msauto.planning.target import plan_channel
from msauto.planning.unite import unite_channel


@dataclass(frozen=True, slots=True)
class Survey:
    """What planning found of one server. ``targets`` are those changed or in error, in order of first mention."""

    server: str
    targets: tuple[Target, ...] = ()
    unchanged: int = 0
    skipped: int = 0
    reads: int = 0
    warnings: tuple[str, ...] = ()


async def survey(
    work: Work, reader: Reader, memory: Memory, clock: Clock, *, forks: int, find_links: bool = False
) -> Survey:
    """Plan one server, at most ``forks`` targets at once. Errors stay with their target: nothing is raised for one.

    ``find_links`` also reads where assets that are to be deleted are linked: for limits that protect folders.
    """
    del clock  # templates have their own `now`; kept in the seam for waits that later aspects need
    world = World(work.server, reader, memory, find_links)
    groups = await group_intents(work, reader, forks)

    async def plan(group: Group) -> Outcome:
        return await _plan_group(world, group)

    targets, warnings, counts = list[Target](), list[str](), {"changed": 0, "unchanged": 0, "skipped": 0}
    async for outcome in concurrent_map(plan, groups, limit=forks):
        counts[outcome.state] += 1
        targets += [outcome.target] if outcome.target else []
        warnings += outcome.warnings
    return Survey(
        work.server.name, tuple(targets), counts["unchanged"], counts["skipped"], reader.reads, tuple(warnings)
    )


async def _plan_group(world: World, group: Group) -> Outcome:
    try:
        if group.error is not None:
            raise group.error
        if group.kind == "rss_channel":
            return await _plan_channel(world, group)
        if group.kind == "database":
            return await _plan_database(world, group)
        return await survey_asset(world, group)
    except (MsautoError, TimecodeError) as error:
        return Outcome("changed", _in_error(world, group, error))


def _in_error(world: World, group: Group, error: Exception) -> Target:
    address = group.by_id[0] if group.by_id else Address(group.name)
    return Target(
        world.server.name,
        group.database,
        group.kind,
        group.name,
        error=str(error),
        address=address,
        address_after=address,
    )


# Channels and databases ----------------------------------------------------------------------------------------


async def _plan_channel(world: World, group: Group) -> Outcome:
    layers = Layers(world.reader, "", _nothing)
    said = [await layers.evaluate(member.intent.evaluate) for member in group.members]
    wanteds = [wanted for wanted in said if isinstance(wanted, RssWanted)]
    if not wanteds:
        return Outcome("skipped")
    channel = await world.reader.read_channel(group.name)
    if channel is None:
        raise refuse(
            f"server {world.server.name} has no RSS channel {group.name!r}",
            wanteds[0].source,
            "look at the channels with `msauto show channels`; a channel is made in the feed service",
        )
    memory = world.memory.recall(TargetId(world.server.name, "", "rss_channel", channel.name))
    return Outcome.of(*plan_channel(world.server, channel, unite_channel(wanteds), memory))


async def _plan_database(world: World, group: Group) -> Outcome:
    layers = Layers(world.reader, group.database, _nothing)
    for member in group.members:
        if await layers.evaluate(member.intent.evaluate) is not None:
            raise refuse("a database as a whole has nothing that can be planned", member.intent.source)
    return Outcome("skipped")


async def _nothing() -> None:
    return None
