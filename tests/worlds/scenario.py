"""Worlds as values: one for each seed and kinds of trouble."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import timedelta
from random import Random

from msauto.plugins.simulator.embedded import ServerState, SimDialect
from tests.worlds.troubles import ANYWHERE, KINDS
from tests.worlds.world import Change, Hook, Task, make_world


@dataclass(frozen=True)
class Scenario:
    """One run, and what follows it."""

    seed: int
    kinds: tuple[str, ...]
    state: ServerState = field(repr=False)
    tasks: tuple[Task, ...]
    server: SimDialect
    ours: dict[str, str]
    allowed: dict[str, int]
    hooks: tuple[Hook, ...] = ()
    faults: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    forks: int = 4
    undo: Change | None = None
    by_day: Change | None = None
    fields_are_ours: bool = False
    again: tuple[Task, ...] = ()
    earlier: tuple[Task, ...] = ()
    clock: timedelta = timedelta()

    def __str__(self) -> str:
        server = {
            name: value
            for name, value in asdict(self.server).items()
            if value != getattr(SimDialect(), name)
        }
        told = {
            "server": server,
            "ours": self.ours,
            "allowed": self.allowed,
            "tags": self.tags,
            "forks": self.forks,
        }
        lines = [f"{name}: {value}" for name, value in told.items() if value]
        lines += [f"before, and the clock jumps by {self.clock}: {task}" for task in self.earlier]
        lines += [f"task: {task}" for task in self.tasks]
        lines += [f"again: {task}" for task in self.again]
        lines += [f"then: {hook}" for hook in self.hooks]
        lines += [f"fault: {fault}" for fault in self.faults] + (
            ["and undone"] if self.undo else []
        )
        return "\n  ".join([f"seed {self.seed}, {', '.join(self.kinds)}", *lines])


def scenario(seed: int, *kinds: str) -> Scenario:
    """Make the world of a seed with these kinds of trouble."""
    world = make_world(Random(f"{seed} {kinds}"))
    if world.random.random() < 0.5 and not set(kinds) & ANYWHERE:
        world.tasks.clear()
    for kind in kinds:
        KINDS[kind](world)
    again = tuple(world.tasks if world.again is None else world.again)
    return Scenario(
        seed,
        kinds,
        world.state,
        tasks=tuple(world.tasks),
        server=SimDialect().with_values(world.server),
        ours=world.ours,
        allowed=world.allowed,
        hooks=tuple(world.hooks),
        faults=tuple(world.faults),
        tags=world.tags,
        forks=world.forks,
        undo=world.undo,
        by_day=world.by_day,
        fields_are_ours=world.fields_are_ours,
        again=again,
        earlier=tuple(world.earlier),
        clock=world.clock,
    )
