"""What happens to a simulated server while msauto runs: every request, and who changed what, in order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import unquote

from msauto.model.events import Event as RunEvent
from msauto.model.events import PlanningEnded, TargetFinished
from msauto.plugins.simulator.embedded import Fault, LogEntry, ServerState, Simulator
from msauto.plugins.simulator.embedded.wire import ResourceNotFoundError, decode_address
from tests.worlds.picture import CHANNEL, Camera, Effect, Picture, effects
from tests.worlds.scenario import Scenario
from tests.worlds.world import Hook

WRITES = ("POST", "PUT", "DELETE")
Reads = frozenset[tuple[int, int | str]]
LIST = -1
"""In place of a clip: the entries of all clips."""


@dataclass(frozen=True)
class Event:
    """A request with what it changed, or a change by another user (no ``line``).

    ``request``: its number. ``late``: it is what a request before did later; ``mixed``: or several. ``after``: what
    then was. ``reads``: what a GET shows, each a clip or the channel, and an entry or ``xmp``. ``paused``: two minutes
    passed with the change. ``hooked``: another user acted while the request was under way.
    """

    line: str
    effects: tuple[Effect, ...]
    after: Picture
    request: int = 0
    late: bool = False
    mixed: bool = False
    reads: Reads = frozenset()
    paused: bool = False
    hooked: bool = False

    @property
    def is_write(self) -> bool:
        return self.line.startswith(WRITES)


@dataclass
class Watch:
    """Keeps every event; it looks before and after each request.

    ``planned``: how many events came before the plan, ``finished``: before the end of each target.
    """

    sim: Simulator
    camera: Camera
    pause: Callable[[], None] = lambda: None
    before: Picture = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    planned: int | None = None
    finished: dict[str, int] = field(default_factory=dict)
    sent: list[LogEntry] = field(default_factory=list)
    _last: Picture = field(default_factory=dict)
    _late: set[int] = field(default_factory=set)
    _hooked: bool = False

    def start(self, scenario: Scenario) -> None:
        """Watch from now on, with the changes and the faults of the scenario."""
        self.before = self._last = self.camera.take(self.sim.state)
        self.sim.clear_log()
        self.sim.faults.clear()
        self.sim.faults.add(
            Fault(".", "before", change=self._begin), Fault(".", "after", change=self._end)
        )
        for hook in scenario.hooks:
            act = partial(self._act, hook)
            self.sim.faults.add(Fault(hook.match, hook.when, times=1, after=hook.skip, change=act))
        self.sim.faults.add(*scenario.faults)

    def stop(self) -> None:
        """Wait for late work, else it is done in the next world."""
        self.sim.deferred.finish()
        end = time.monotonic() + 5
        while (
            any(_is_late(entry) and not entry.done for entry in self.sim.writes())
            and time.monotonic() < end
        ):
            time.sleep(0.01)
        self._begin(self.sim.state)
        self.sent = self.sim.writes()
        self.sim.faults.clear()

    def notice(self, event: RunEvent) -> None:
        """Keep when the plan was complete, and when each target was finished."""
        if isinstance(event, PlanningEnded) and self.planned is None:
            self.planned = len(self.events)
        if isinstance(event, TargetFinished):
            self.finished[event.result.target.name] = len(self.events)

    # What others did, and what we did --------------------------------------------------------------------------

    def theirs(self) -> Iterator[tuple[int, Event]]:
        return ((place, event) for place, event in enumerate(self.events) if not event.line)

    def ours(self) -> Iterator[tuple[int, int, Event]]:
        """Yield each write that did something: when it was sent, when it was done, and what it did."""
        sent = {
            event.request: place
            for place, event in enumerate(self.events)
            if event.line and not event.late
        }
        for done, event in enumerate(self.events):
            if event.is_write and not event.mixed:
                yield sent[event.request], done, event

    @property
    def writes(self) -> list[str]:
        """The lines of what was sent."""
        return [entry.line for entry in self.sent]

    @property
    def end(self) -> Picture:
        return self._last

    def last_read(self, effect: Effect, until: int) -> int:
        """Return when a thing was read for the last time before an event, or -1."""
        if effect.thing.what == "field" and self.sim.dialect.link_fields == "hidden":
            return -1
        return max(
            (n for n, event in enumerate(self.events[:until]) if _shows(event, effect)), default=-1
        )

    def last_get(self, write: Event, until: int) -> int:
        """Return when the address of a write was read for the last time before an event, or -1."""
        path = write.line.partition(" ")[2].partition("?")[0]
        return max(
            (n for n, event in enumerate(self.events[:until]) if event.line == f"GET {path}"),
            default=-1,
        )

    def last_list(self, until: int) -> int:
        """Return when all entries were listed for the last time before an event, or -1."""
        return max(
            (n for n, event in enumerate(self.events[:until]) if (LIST, "") in event.reads),
            default=-1,
        )

    def at(self, place: int) -> Picture:
        """What was there right after an event; -1: before all."""
        return self.events[place].after if place >= 0 else self.before

    # Hooks of the simulator ------------------------------------------------------------------------------------

    def _begin(self, state: ServerState) -> None:
        """What changed between two requests is the late work of a write before."""
        self._hooked = False
        late = [
            entry
            for entry in self.sim.writes()
            if _is_late(entry) and entry.done and entry.number not in self._late
        ]
        self._late |= {entry.number for entry in late}
        now = self.camera.take(state)
        if now != self._last:
            line, number = (late[0].line, late[0].number) if late else ("", 0)
            self._note(now, line, request=number, late=True, mixed=len(late) > 1)

    def _act(self, hook: Hook, state: ServerState) -> None:
        self._begin(state)
        self._hooked = True
        if hook.pause:
            self.pause()
        hook.change(state)
        self._note(self.camera.take(state), "", paused=hook.pause)

    def _end(self, state: ServerState) -> None:
        entry = self.sim.log[-1]
        reads = self._reads(entry, state)
        self._note(
            self.camera.take(state),
            entry.line,
            request=entry.number,
            reads=reads,
            hooked=self._hooked,
        )

    def _note(self, now: Picture, line: str, **more: Any) -> None:
        self.events.append(Event(line, tuple(effects(self._last, now)), now, **more))
        self._last = now

    def _reads(self, entry: LogEntry, state: ServerState) -> Reads:
        """Return what a GET shows: entries of clips, XMP fields, the channel, or a list of all entries."""
        path = entry.target.partition("?")[0]
        if entry.method != "GET" or not set(entry.fault.split()) <= {"before", "after"}:
            return frozenset()
        if path == "/rss/ticker":
            return frozenset({(CHANNEL, "")})
        if "format=" in entry.target:
            return frozenset()
        if "@" not in path:
            return frozenset(
                {(LIST, unquote(path.removeprefix("/storage/NEWS").removeprefix("/")))}
            )
        address = decode_address(path.removeprefix("/storage/").split("/"))
        try:
            found = state.find(
                state.databases["NEWS"], address.namespace, address.asset or "", self.sim.dialect
            )
        except ResourceNotFoundError:
            return frozenset()
        if self.sim.dialect.title_twins != "both":
            found = found[:1]
        return frozenset(
            (each.clip.home.link_id, "xmp" if address.tail else each.link_id) for each in found
        )


def _shows(event: Event, effect: Effect) -> bool:
    """Whether a read shows a thing."""
    thing = effect.thing
    match thing.what:
        case "xmp":
            return (thing.clip, "xmp") in event.reads
        case "link":
            folder = (effect.after or effect.before or ("",))[0]
            listed = any(
                clip == LIST and f"{folder}/".startswith(f"{path}/".lstrip("/"))
                for clip, path in event.reads
            )
            return listed or (thing.clip, thing.which) in event.reads
        case "field":
            return (thing.clip, thing.which[0]) in event.reads
    return any(clip == thing.clip and entry != "xmp" for clip, entry in event.reads)


def _is_late(entry: LogEntry) -> bool:
    return any(kind in entry.fault for kind in ("late:", "lag:", "deferred:"))
