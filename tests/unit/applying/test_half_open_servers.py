"""Targets that wait at the circuit breaker of a server: which it lets through and when; none waits without need."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from msauto.applying.apply_context import Cancellation, ServerConnection
from msauto.errors import UnreachableError
from msauto.model.desired import Batch
from msauto.model.plan import Plan, Request, Target
from msauto.model.ports import Answer
from msauto.model.result import Result, TargetResult
from msauto.model.snapshot import Effect
from tests.examples import examples
from tests.unit.applying.applying_world import (
    Stage,
    World,
    WorldReader,
    WorldSender,
    apply,
    command_target,
    fields_target,
    restore_target,
)
from tests.unit.applying.virtual_time import VirtualClock, run_in_virtual_time

Spans = tuple[tuple[float, float], ...]
"""When a server is not to be reached: from, to before."""


@dataclass
class SlowSender(WorldSender):
    """Takes a moment for each write, so that many are under way when a server goes."""

    seconds: float = 0.0

    async def send(self, request: Request) -> Answer:
        await asyncio.sleep(self.seconds)
        if request.dest is not None:
            self.world.on_send(request.path)
            self.world.ask()
            await asyncio.sleep(3000)  # the server makes it
            return Answer(200, sha256="0")
        return await super().send(request)


class Servers:
    """Servers with their histories, and what was seen of them; ``seconds`` is what a write takes."""

    def __init__(self, seconds: float = 0.05) -> None:
        self.seconds = seconds
        self.sender: SlowSender | None = None
        self.stage = Stage(World(clock=VirtualClock()))
        self.worlds: dict[str, World] = {}
        self.answers: dict[str, list[float]] = {}
        self.sends: dict[str, list[float]] = {}

    def add(self, name: str, history: list[tuple[Spans, str]]) -> World:
        world = World(clock=self.stage.world.clock)
        answers, sends = self.answers.setdefault(name, [0.0]), self.sends.setdefault(name, [])
        world.on_send = lambda _: sends.append(world.clock.seconds)

        def state(world: World) -> str:
            now = world.clock.seconds
            found = next((how for spans, how in history for a, b in spans if a <= now < b), "up")
            if found == "up":
                answers.append(now)
            return found

        world.state = state
        self.worlds[name] = world
        return world

    def server(self, name: str) -> ServerConnection:
        sender = self.sender or SlowSender(self.worlds[name], self.seconds)
        return ServerConnection(WorldReader(self.worlds[name]), sender, asyncio.Semaphore(4))

    async def apply(
        self,
        targets: list[Target],
        forks: int,
        *,
        stop: Cancellation | None = None,
        frozen: Callable[[], str | None] = lambda: None,
        batches: tuple[Batch, ...] = (),
    ) -> Result:
        stage = self.stage
        plan = Plan("", "", targets=tuple(targets), batches=batches)
        servers = {name: self.server(name) for name in self.worlds}
        clock = stage.world.clock
        return await apply(
            plan,
            servers,
            stage.journal,
            stage.memory,
            clock,
            stage.events,
            forks=forks,
            cancellation=stop,
            frozen=frozen,
        )


def down(*spans: tuple[float, float]) -> list[tuple[Spans, str]]:
    return [(spans, "down")]


def films(world: World, count: int, server: str = "studio-a") -> list[Target]:
    return [
        structs.replace(fields_target(world, f"Film {number}", 1), server=server)
        for number in range(count)
    ]


def count(result: Result, outcome: str) -> int:
    return sum(target.outcome == outcome for target in result.targets)


def test_an_admitted_target_waits_again_if_the_server_fails_again() -> None:
    site = Servers()
    targets = films(site.add("studio-a", down((1, 4), (6, 12))), 300)
    result = run_in_virtual_time(site.apply(targets, 4))
    assert count(result, "not attempted") == 0
    assert count(result, "changed") >= 300 - 2 * (4 + 1)


async def _ends_at(
    site: Servers, targets: list[Target], forks: int = 4, **options: Any
) -> tuple[Result, float]:
    result = await site.apply(targets, forks, **options)
    return result, site.stage.world.clock.seconds


def test_targets_of_a_server_in_doubt_wait_without_a_task_for_each() -> None:
    site = Servers()
    here, there = site.add("studio-a", down((1, 999))), site.add("studio-b", [])
    busiest = 0

    def count_tasks(_: str) -> None:
        nonlocal busiest
        busiest = max(busiest, len(asyncio.all_tasks()))

    there.on_send = count_tasks
    result = run_in_virtual_time(site.apply(films(here, 500) + films(there, 100, "studio-b"), 4))
    assert count(result, "changed") >= 100
    assert 0 < busiest < 20


def test_no_target_waits_that_a_freeze_blocks() -> None:
    site = Servers()
    targets = films(site.add("studio-a", down((1, 999))), 500)
    clock = site.stage.world.clock
    frozen = lambda: "frozen" if clock.seconds > 2 else None  # noqa: E731
    result, seconds = run_in_virtual_time(_ends_at(site, targets, frozen=frozen))
    assert {target.message for target in result.targets if target.outcome == "not attempted"} == {
        "frozen"
    }
    assert seconds < 60


def test_no_target_waits_once_too_much_has_failed() -> None:
    site = Servers()
    here, there = site.add("studio-a", down((1, 999))), site.add("studio-b", [])
    others = films(there, 400, "studio-b")
    there.responses[others[-1].requests[0].path] = ["500"]
    batches = (Batch("play", ("studio-a", "studio-b"), max_fail=50.0),)
    mixed = []
    for ours, other in zip(films(here, 400), others, strict=True):
        mixed += [ours, other]
    result, seconds = run_in_virtual_time(_ends_at(site, mixed, batches=batches))
    assert "max_fail_percentage" in result.targets[-2].message
    assert seconds < 60


def test_no_target_waits_once_the_ledger_cannot_be_written() -> None:
    site = Servers()
    targets = films(site.add("studio-a", down((1, 999))), 500)
    journal = site.stage.journal

    async def main() -> tuple[Result, float]:
        asyncio.get_running_loop().call_later(
            4, lambda: setattr(journal, "fails_at", journal.transactions + 1)
        )
        return await _ends_at(site, targets)

    result, seconds = run_in_virtual_time(main())
    assert "disk is full" in result.targets[-1].message
    assert seconds < 60


@pytest.mark.parametrize("back", [4, 8])
def test_a_probe_that_waits_for_a_download_blocks_no_other_target(back: float) -> None:
    """A request that is answered at once shows whether the server is back; a film may take an hour."""
    site = Servers()
    world = site.add("studio-a", down((0, back)))
    targets = films(world, 60)
    before, after = targets[:4], targets[4:]
    proxies = [_proxy_target(world, f"Copy {number}") for number in range(2)]
    result = run_in_virtual_time(site.apply([*before, *proxies, *after], 4))
    names = {target.name for target in after}
    for each in result.targets:
        if each.target.name in names:
            assert each.outcome == "changed"
    assert max(site.sends["studio-a"]) < 60, "nobody waits for the film"


def test_a_probe_with_rejected_credentials_requests_no_download() -> None:
    site = Servers()
    world = site.add("studio-a", [(((0, 4),), "down"), (((4, 999),), "401")])
    targets = films(world, 4)
    for number in range(9):
        targets.append(_proxy_target(world, f"Copy {number}"))
    result = run_in_virtual_time(site.apply(targets, 4))
    probe, *rest = result.targets[4:]
    assert probe.outcome == "failed"
    assert "rejects our account" in probe.message
    assert [each.outcome for each in rest] == ["not attempted"] * 8
    assert len(site.sends["studio-a"]) == 4 * 3, "nobody asked for a film"


def _proxy_target(world: World, title: str) -> Target:
    target = command_target(world, title)
    effect = Effect("proxy", f"out/{title}.mp4", None, {}, visible=False)
    return structs.replace(
        target,
        requests=(Request("GET", f"/{title}/WP1", (0,), effects=(effect,), dest="out/film.mp4"),),
    )


def test_a_probe_that_continues_when_the_server_fails_again_skips_no_pause() -> None:
    """It began in the first failure; in the second, its result is as old as those of the requests begun with it."""
    site = Servers(seconds=0.5)
    history: list[tuple[Spans, str]] = [
        (((3.0, 4.0),), "502"),
        (((7.0, 11.0),), "mute"),
        (((13.0, 10_000.0),), "mute"),
    ]
    world = site.add("studio-a", history)
    commands = {3, 6, 13, 14, 19}
    kinds = ["command" if number in commands else "fields" for number in range(20)]
    result, seconds = run_in_virtual_time(
        _ends_at(site, _targets(world, "studio-a", kinds), forks=5)
    )
    assert "no longer be reached" in result.targets[-1].message
    _check_patience(site, "studio-a", result, seconds)


@dataclass
class OneAnswer(SlowSender):
    """Answers the first film alone, some turns of the event loop after the second one has had its last try."""

    turns: int = 0
    first: str = ""

    async def send(self, request: Request) -> Answer:
        if request.path != self.first:
            raise UnreachableError("no connection: Connection refused")
        await asyncio.sleep(2.5)
        for _ in range(self.turns):
            await asyncio.sleep(0)
        return await WorldSender.send(self, request)


@pytest.mark.parametrize("turns", range(8))
def test_a_target_that_is_admitted_while_another_one_fails_counts_as_begun_before(
    turns: int,
) -> None:
    """Whichever turn its task begins in: the server is given up only after both pauses."""
    site = Servers()
    world = site.add("studio-a", [])
    targets = films(world, 8)
    site.sender = OneAnswer(world, turns=turns, first=targets[0].requests[0].path)
    result, seconds = run_in_virtual_time(_ends_at(site, targets, forks=2))
    assert "no longer be reached" in result.targets[-1].message
    assert seconds >= 2.5 + 2 + 10


# Any history -----------------------------------------------------------------------------------------------------

_GONE = st.lists(
    st.tuples(st.sampled_from([0.3, 1.0, 3.0, 14.0]), st.sampled_from([1.0, 4.0, 11.0, 30.0])),
    max_size=5,
)
_HOW = st.sampled_from(["down", "down", "mute", "502"])


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[Spans, str]]:
    """Up and gone in transitions, and at the end up, or gone for good."""
    now = 0.0
    found: list[tuple[Spans, str]] = []
    for up, gone in draw(_GONE):
        found.append((((now + up, now + up + gone),), draw(_HOW)))
        now += up + gone
    if draw(st.booleans()):
        found.append((((now + 2.0, 10_000.0),), draw(_HOW)))
    return found


def _targets(world: World, server: str, kinds: list[str]) -> list[Target]:
    made = []
    for number, kind in enumerate(kinds):
        title = f"{server} {number}"
        if kind == "restore":
            target = restore_target(world, title, takes=20, wait=60)
            path = f"/restore/{title}"
            world.effects[f"/file/{title}"] = _file(title)
            world.effects[path] = _restoring(title)
            target = structs.replace(
                target, requests=(structs.replace(target.requests[0], path=path),)
            )
        else:
            target = (command_target if kind == "command" else fields_target)(world, title)
        made.append(structs.replace(target, server=server))
    return made


def _file(title: str) -> Callable[[World], object]:
    return lambda world: world.change(title, hires="$(video_path)/film.mxf")


def _restoring(title: str) -> Callable[[World], object]:
    return lambda world: world.later.append((world.clock.seconds + 20, f"/file/{title}"))


_KINDS = st.one_of(
    st.lists(st.sampled_from(["fields", "fields", "command", "restore"]), min_size=1, max_size=20),
    st.integers(20, 60).map(lambda many: ["fields"] * many),
)


@pytest.mark.scale
@settings(max_examples=examples(400), deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["studio-a", "studio-b", "studio-c"]),
        st.tuples(histories(), _KINDS),
        min_size=1,
    ),
    st.integers(1, 6),
    st.sampled_from([0.05, 0.5]),
    st.one_of(st.just([]), st.lists(st.floats(0, 60), max_size=2)),
)
def test_with_any_server_history_every_target_ends_and_no_server_is_overloaded(
    servers: dict[str, tuple[list[tuple[Spans, str]], list[str]]],
    forks: int,
    pace: float,
    stops: list[float],
) -> None:
    site = Servers(pace)
    lists = [
        _targets(site.add(name, history), name, kinds) for name, (history, kinds) in servers.items()
    ]
    targets = [
        each
        for transition in range(60)
        for mine in lists
        for each in mine[transition : transition + 1]
    ]

    async def main() -> tuple[Result, float]:
        stop = Cancellation()
        for when in stops:
            asyncio.get_running_loop().call_later(when, stop)
        result = await site.apply(targets, forks, stop=stop)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert not others, "somebody still waits"
        return result, site.stage.world.clock.seconds

    result, seconds = run_in_virtual_time(main())
    assert [each.target for each in result.targets] == targets
    assert seconds < 60 * 3 * 120
    for name, world in site.worlds.items():
        _check_truth(world, [each for each in result.targets if each.target.server == name])
        _check_not_hammered(site, name, servers[name][0], forks)
        if not stops:
            _check_patience(site, name, result, seconds)


def _check_truth(world: World, results: list[TargetResult]) -> None:
    """Nothing is done twice, and the result of a target is true."""
    for each in results:
        paths = [request.path for request in each.target.requests]
        done = [world.done.count(path) for path in paths]
        assert max(done) <= 1
        assert each.outcome != "changed" or min(done) == 1
        assert each.outcome != "not attempted" or not set(paths) & set(world.sent)


def _check_not_hammered(
    site: Servers, name: str, history: list[tuple[Spans, str]], forks: int
) -> None:
    """While it is gone, no more writes are tried than were under way, each three times, and three probes'."""
    for spans, _ in history:
        for begin, end in spans:
            tried = sum(begin <= when < end for when in site.sends[name])
            assert tried <= 3 * 3 * forks + 3


def _check_patience(site: Servers, name: str, result: Result, seconds: float) -> None:
    """A server is given up only after it has been silent for both pauses."""
    left = [
        each
        for each in result.targets
        if each.target.server == name and each.outcome == "not attempted"
    ]
    if left and "no longer be reached" in left[0].message:
        heard = [*site.answers[name], seconds]
        assert max(after - before for before, after in pairwise(heard)) >= 12


@pytest.mark.parametrize("forks", [1, 3])
def test_a_probe_that_is_abandoned_leaves_no_waiting_target(forks: int) -> None:
    site = Servers()
    targets = films(site.add("studio-a", down((0.2, 999))), 50)

    async def main() -> Result:
        stop = Cancellation()
        asyncio.get_running_loop().call_later(5.0, stop)
        asyncio.get_running_loop().call_later(5.0, stop)
        return await site.apply(targets, forks, stop=stop)

    result = run_in_virtual_time(main())
    assert result.interrupted
    assert len(result.targets) == 50
    assert isinstance(site.stage.journal.ended, Result)
