"""Small real ports: a media server in memory whose every answer can be scripted, a journal and a memory in dicts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from msgspec import structs

from msauto.applying import executor
from msauto.applying.apply_context import ServerConnection
from msauto.applying.executor import ServersHere
from msauto.errors import (
    InDoubtError,
    LedgerError,
    NotSentError,
    RejectedError,
    ServerError,
    UnreachableError,
    UnreadableError,
)
from msauto.model.desired import SelectRef, TaskSource
from msauto.model.events import Event
from msauto.model.identity import ClipEntries, ClipIdentity
from msauto.model.live import Asset, Entry, Folder, Link, Listing, Marker, RssChannel, Xmp
from msauto.model.plan import Address, Change, Plan, Request, Target, TargetId
from msauto.model.ports import Answer, DownloadObserver, NamedKind, Reader
from msauto.model.result import RequestResult, Result, TargetResult
from msauto.model.snapshot import Effect, Json, Seen, digest
from tests.entries import listed_entry
from tests.small_ports import DictMemory

SOURCE = TaskSource("news.yml", 1, 1, "t")
START = datetime(2026, 11, 20, 10, 15, tzinfo=UTC)


class Clock:
    """Time passes by sleeping alone."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)
        self.seconds += seconds


@dataclass
class World:
    """The server's truth, what was asked of it, and what it will do: ``responses`` by path, one for each send.

    Responses: ``ok``, ``refused``, ``cut before``, ``cut after``, ``swallowed`` (accepted, never done), ``late N`` and
    ``cut late N`` (done N seconds later), ``hang``, or ``STATUS``, ``STATUS after`` (refused though done).
    """

    clock: Clock = field(default_factory=Clock)
    assets: dict[str, Asset] = field(default_factory=dict)
    xmp: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    folders: dict[Folder, list[Entry]] = field(default_factory=dict)
    channels: dict[str, RssChannel] = field(default_factory=dict)
    databases: set[str] = field(default_factory=lambda: {"NEWS"})
    effects: dict[str, Callable[[World], object]] = field(default_factory=dict)
    responses: dict[str, list[str]] = field(default_factory=dict)
    sent: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    later: list[tuple[float, str]] = field(default_factory=list)
    unreadable: int = 0  # so many reads fail
    busy: int = 0
    busiest: int = 0
    on_send: Callable[[str], object] = len
    asked: int = 0
    permits: int = 0  # that are held
    state: Callable[[World], str] = lambda _: (
        "up"
    )  # or: down, mute (takes what is sent, answers nothing), 401

    def act(self, path: str) -> None:
        self.done.append(path)
        effect = self.effects.get(path)
        if effect is not None:
            effect(self)

    def ask(self) -> None:
        """Count whatever is asked, and answer as a server does that is not up."""
        self.asked += 1
        state = self.state(self)
        if state != "up":
            raise _NOT_UP.get(state) or RejectedError(f"the server says {state}", status=int(state))

    def settle(self) -> None:
        due = [each for each in self.later if each[0] <= self.clock.seconds]
        self.later = [each for each in self.later if each not in due]
        for _, path in due:
            self.act(path)

    def change(self, title: str, **values: Any) -> None:
        self.assets[title] = structs.replace(self.assets[title], **values)

    def set_field(self, title: str, name: str, value: str) -> None:
        self.change(title, attributes={**self.assets[title].attributes, name: value})


_NOT_UP: Mapping[str, ServerError] = {
    "down": UnreachableError("no connection: Connection refused"),
    "mute": InDoubtError("no answer within the time allowed"),
}


@dataclass
class WorldPermit:
    sender: WorldSender
    held: bool = True

    async def send(self, request: Request) -> Answer:
        assert self.held
        try:
            return await self.sender.send(request)
        finally:
            self.release()

    def release(self) -> None:
        self.sender.world.permits -= self.held
        self.held = False


@dataclass
class WorldSender:
    world: World

    async def send(self, request: Request) -> Answer:
        world, path = self.world, request.path
        world.on_send(path)
        world.ask()
        world.settle()
        responses = world.responses.get(path, [])
        response = responses.pop(0) if responses else "ok"
        if response == "refused":
            raise NotSentError("connection refused")
        world.sent.append(path)
        world.busy += 1
        world.busiest = max(world.busiest, world.busy)
        try:
            await asyncio.sleep(0)
            return await self._answer(path, response)
        finally:
            world.busy -= 1

    async def fetch(self, request: Request, watch: DownloadObserver) -> Answer:
        return await self.send(request)

    async def permit(self) -> WorldPermit:
        self.world.permits += 1
        return WorldPermit(self)

    async def _answer(self, path: str, response: str) -> Answer:
        kind, _, rest = response.partition(" ")
        if kind == "hang":
            await asyncio.Event().wait()
        if kind == "crash":
            raise ZeroDivisionError("a mistake in the sender")
        if response in {"ok", "cut after"} or rest == "after":
            self.world.act(path)
        if "late" in response:
            self.world.later.append(
                (self.world.clock.seconds + float(response.rsplit(maxsplit=1)[-1]), path)
            )
        if kind == "cut":
            raise InDoubtError("the connection was cut")
        if kind.isdigit():
            raise RejectedError(f"the server says {kind}", status=int(kind))
        return Answer(200)


@dataclass
class WorldReader:
    world: World
    reads: int = 0
    whole: tuple[str, ...] = ()

    async def _read(self, what: str) -> None:
        self.world.settle()
        self.world.reads.append(what)
        await asyncio.sleep(0)
        self.world.ask()
        if self.world.unreadable:
            self.world.unreadable -= 1
            raise UnreadableError("the answer is garbage")

    async def read_asset(self, database: str, address: Address) -> Asset | None:
        await self._read(f"asset {address.name}")
        return self.world.assets.get(address.name)

    async def read_xmp(self, database: str, address: Address, names: frozenset[str]) -> Xmp | None:
        await self._read(f"xmp {address.name}")
        return self.world.xmp.get(address.name, {})

    async def read_folder(self, database: str, folder: Folder) -> Listing | None:
        entries = self.world.folders.get(folder)
        await self._read("folder " + "/".join(folder))
        return None if entries is None else Listing(folder, tuple(self.world.folders[folder]))

    async def read_select(self, select: SelectRef) -> Sequence[Entry] | None:
        raise NotImplementedError

    async def read_links(self, database: str, asset: Asset) -> tuple[Link, ...]:
        raise NotImplementedError

    async def read_entries(
        self, database: str, asset: Asset, *, in_doubt: bool = False
    ) -> ClipEntries:
        await self._read(f"entries {database}")
        return ClipEntries(asset)

    async def read_channel(self, name: str) -> RssChannel | None:
        await self._read(f"channel {name}")
        return self.world.channels.get(name)

    async def has_database(self, name: str) -> bool:
        await self._read(f"database {name}")
        return name in self.world.databases

    async def read_names(self, kind: NamedKind, database: str = "") -> tuple[str, ...] | None:
        await self._read(f"names of {kind}s")
        return tuple(self.world.databases)

    def fresh(self, *, homes: bool = False) -> Reader:
        return WorldReader(self.world)


class DictJournal:
    """A journal that keeps lines; ``fails_at`` makes the n-th transaction fail."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, ...]] = []
        self.states: dict[tuple[str, int], str] = {}
        self.outcomes: dict[str, str] = {}
        self.transactions = 0
        self.fails_at = 0
        self.ended: Result | None = None

    @contextmanager
    def together(self, *, alone: bool = False) -> Iterator[None]:
        self.transactions += 1
        if self.transactions == self.fails_at:
            raise LedgerError("the ledger cannot grow: the disk is full")
        yield

    def commit(self, calls: Sequence[Callable[[], object]]) -> Future[None]:
        with self.together():
            for call in calls:
                call()
        durable: Future[None] = Future()
        durable.set_result(None)
        return durable

    def check(self) -> None:
        pass

    def start(self, plan: Plan, playbooks: Sequence[str]) -> str:
        self.lines.append(("start",))
        return "run-1"

    def adopt(self, target: TargetId, thing: str, key: str, left: Json) -> None:
        self.lines.append(("adopt", target.name, thing, key, str(left)))

    def reopen(self, run: str, targets: Sequence[Target]) -> bool:
        self.lines.append(("reopen", run))
        return True

    def leave(self, run: str) -> None:
        self.lines.append(("leave", run))

    def sending(self, run: str, target: Target, index: int) -> None:
        self.lines.append(("sending", target.requests[index].path))
        self.states[target.name, index] = "sending"

    def settled(self, run: str, target: Target, index: int, result: RequestResult) -> None:
        self.lines.append(("settled", target.requests[index].path, result.outcome))
        self.states[target.name, index] = result.outcome

    def finished(self, run: str, result: TargetResult) -> None:
        self.lines.append(("finished", result.target.name, result.outcome))
        self.outcomes[result.target.name] = result.outcome

    def end(self, run: str, result: Result) -> None:
        self.lines.append(("end",))
        self.ended = result


class Events:
    def __init__(self) -> None:
        self.told: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.told.append(event)
        raise RuntimeError("an observer's mistake is not the run's affair")


async def apply(
    plan: Plan,
    servers: Mapping[str, ServerConnection],
    *ports: Any,
    forks: int,
    frozen: Callable[[], str | None] = lambda: None,
    **options: Any,
) -> Result:
    """Apply a plan to servers, in this process."""
    slots = asyncio.Semaphore(forks)
    connections = {name: structs.replace(each, slots=slots) for name, each in servers.items()}
    servers_of = partial(ServersHere, connections=connections, frozen=frozen)
    return await executor.apply(servers_of, plan, *ports, **options)


@dataclass
class Stage:
    """Everything that ``apply`` needs, and a short way to call it."""

    world: World = field(default_factory=World)
    journal: DictJournal = field(default_factory=DictJournal)
    memory: DictMemory = field(default_factory=DictMemory)
    events: Events = field(default_factory=Events)

    def server(self) -> ServerConnection:
        return ServerConnection(
            WorldReader(self.world), WorldSender(self.world), asyncio.Semaphore(4)
        )

    async def apply(self, *targets: Target, forks: int = 4, **options: Any) -> Result:
        return await self.apply_plan(plan_of(*targets), forks=forks, **options)

    async def apply_plan(self, plan: Plan, forks: int = 4, **options: Any) -> Result:
        return await apply(
            plan,
            {"studio-a": self.server()},
            self.journal,
            self.memory,
            self.world.clock,
            self.events,
            forks=forks,
            **options,
        )

    def run_plan(self, plan: Plan) -> Result:
        return asyncio.run(self.apply_plan(plan))

    def run(self, *targets: Target, **options: Any) -> Result:
        return asyncio.run(self.apply(*targets, **options))


def plan_of(*targets: Target) -> Plan:
    return Plan("2026-11-20T10:15:00Z", "0.1.0", targets=targets)


# Targets, with their assets and effects in the world -------------------------------------------------------------


def fields_target(
    world: World, title: str = "Film", count: int = 3, *, reported: bool = True
) -> Target:
    """An asset of which ``count`` fields change from ``old`` to ``new``, a request each."""
    names = [f"user_{number}" for number in range(count)]
    world.assets[title] = Asset(
        title, link_id=7, attributes=dict.fromkeys(names, "old") if reported else {}
    )
    requests = []
    for number, name in enumerate(names):
        path = f"/{title}?set={name}"
        if reported:
            world.effects[path] = _setting(title, name)
        effect = Effect("field", name, "old" if reported else None, "new", visible=reported)
        requests.append(Request("POST", path, changes=(number,), effects=(effect,)))
    changes = tuple(
        Change("change", "field", name, "old", "new", "live", True, SOURCE) for name in names
    )
    return asset_target(title, changes, tuple(requests))


def asset_target(
    title: str, changes: tuple[Change, ...], requests: tuple[Request, ...], **options: Any
) -> Target:
    place = Address(title)
    target = Target(
        "studio-a",
        "NEWS",
        "asset",
        title,
        None,
        "",
        changes,
        requests,
        None,
        place,
        place,
        ClipIdentity(7),
    )
    return structs.replace(target, **options)


def marker_target(world: World, title: str = "Film") -> Target:
    """A new marker beside an old one that looks the same."""
    old = Marker(1, 750, {"track": "Cue Point", "title": "Ad"})
    world.assets[title] = Asset(title, link_id=7, markers=(old,))

    def create(world: World) -> None:
        markers = world.assets[title].markers
        world.change(title, markers=(*markers, structs.replace(old, uid=len(markers) + 1)))

    want: Json = {"frame": 750, "track": "Cue Point", "title": "Ad"}
    world.effects["/marker"] = create
    change = Change("add", "marker", "Cue Point@750", None, want, "live", True, SOURCE)
    request = Request("POST", "/marker", (0,), effects=(Effect("marker", "new 1", None, want),))
    others = Seen.of({"marker 1": digest(want, (750, "Cue Point"))})
    return asset_target(title, (change,), (request,), others=others)


def rename_target(world: World, old: str = "Raw", new: str = "Film") -> Target:
    """A renamed asset, of which a field changes afterwards under its new name."""
    world.assets[old] = Asset(old, link_id=7, attributes={"comment": "old"})

    def rename(world: World) -> None:
        world.assets[new] = structs.replace(world.assets.pop(old), title=new)

    world.effects["/rename"] = rename
    world.effects["/comment"] = lambda world: world.set_field(new, "comment", "new")
    changes = (
        Change("change", "title", "title", old, new, "live", True, SOURCE),
        Change("change", "field", "comment", "old", "new", "live", True, SOURCE),
    )
    requests = (
        Request("POST", "/rename", (0,), effects=(Effect("title", "", old, new),)),
        Request("POST", "/comment", (1,), effects=(Effect("field", "comment", "old", "new"),)),
    )
    return structs.replace(asset_target(old, changes, requests), address_after=Address(new))


def delete_target(world: World, title: str = "Film") -> Target:
    world.assets[title] = Asset(title, link_id=7)
    world.effects["/delete"] = lambda world: world.assets.pop(title)
    change = Change("delete", "asset", title, {}, None, "live", False, SOURCE)
    request = Request("DELETE", "/delete", (0,), effects=(Effect("asset", "", before=True),))
    return asset_target(title, (change,), (request,))


def restore_target(
    world: World, title: str = "Film", *, takes: float = 100, wait: float = 300
) -> Target:
    """A restore whose file is on disk ``takes`` seconds after the request."""
    world.assets[title] = Asset(title, link_id=7, hires="")
    world.effects["/file"] = lambda world: world.change(title, hires="$(video_path)/film.mxf")
    world.effects["/restore"] = lambda world: world.later.append(
        (world.clock.seconds + takes, "/file")
    )
    change = Change("run", "restore", "hires", "", True, "live", False, SOURCE)
    request = Request(
        "POST",
        "/restore",
        (0,),
        effects=(Effect("restore", "hires", before=False, after=True, slow=True),),
    )
    return asset_target(title, (change,), (request,), wait=wait)


def link_target(world: World, title: str, folder: str = "Tonight") -> Target:
    world.assets[title] = Asset(title, link_id=7)
    world.folders.setdefault((folder,), [])
    path = f"/link/{title}"
    world.effects[path] = lambda world: world.folders[folder,].append(
        listed_entry((folder,), title)
    )
    key = f"{folder}/{title}"
    change = Change("add", "link", key, None, {}, "live", False, SOURCE)
    return asset_target(
        title, (change,), (Request("POST", path, (0,), effects=(Effect("link", key, None, {}),)),)
    )


def command_target(world: World, title: str = "Film", run: str = "once") -> Target:
    world.assets[title] = Asset(title, link_id=7)
    change = Change("run", "command", "COPY", None, {}, "live", False, SOURCE)
    request = Request(
        "POST",
        f"/{title}?command=COPY",
        (0,),
        effects=(Effect("command", "COPY", None, run, visible=False),),
    )
    return asset_target(title, (change,), (request,))


def _setting(title: str, name: str) -> Callable[[World], None]:
    return lambda world: world.set_field(title, name, "new")
