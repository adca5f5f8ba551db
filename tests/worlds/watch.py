"""What happens to a simulated server while a command runs: every request, and who changed what, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from msauto.simulator import Fault, LogEntry, ServerState, Simulator
from tests.worlds.picture import Effect, Picture, effects, picture
from tests.worlds.scenario import Scenario

HOOK = "hook"
WRITES = ("POST", "PUT", "DELETE")


@dataclass(frozen=True)
class Event:
    """A request with what it changed, or the change by another user (``line`` is HOOK); ``after``: what then was."""

    line: str
    effects: tuple[Effect, ...]
    after: Picture

    @property
    def method(self) -> str:
        return self.line.partition(" ")[0]

    @property
    def address(self) -> str:
        """The path, up to the query."""
        return self.line.partition(" ")[2].partition("?")[0]


@dataclass
class Watch:
    """Keeps what the server held before, and every event; it looks before and after each request."""

    sim: Simulator
    before: Picture = field(default_factory=lambda: Picture({}, ()))
    events: list[Event] = field(default_factory=list)
    _last: Picture = field(default_factory=lambda: Picture({}, ()))

    def start(self, scenario: Scenario, pause: Callable[[], None]) -> None:
        """Watch from now on, with the change and the faults of the scenario; ``pause`` lets two minutes pass."""
        self.before = self._last = picture(self.sim.state)
        self.events.clear()
        self.sim.clear_log()
        self.sim.faults.clear()
        self.sim.faults.add(Fault(".", "before", change=self._begin), Fault(".", "after", change=self._end))
        if scenario.hook and scenario.change:
            when, match, skip, _ = scenario.hook
            self.sim.faults.add(Fault(match, when, times=1, after=skip, change=partial(self._hook, scenario, pause)))
        self.sim.faults.add(*scenario.faults)

    def stop(self) -> None:
        self._begin(self.sim.state)
        self.sim.faults.clear()

    @property
    def writes(self) -> list[LogEntry]:
        return self.sim.writes()

    @property
    def hook(self) -> int | None:
        """The place of the change by another user among the events."""
        return next((place for place, event in enumerate(self.events) if event.line == HOOK), None)

    def ours(self) -> Iterator[tuple[int, Event, Effect]]:
        """Yield each thing that our requests changed, and the place among the events where its request came.

        Late work after a change by another user is left out: no client can prevent that.
        """
        for place, event in enumerate(self.events):
            sent = next(number for number, each in enumerate(self.events) if each.line == event.line)
            if event.line != HOOK and not (self.hook is not None and sent < self.hook < place):
                yield from ((sent, event, effect) for effect in event.effects)

    def _begin(self, state: ServerState) -> None:
        """What changed between two requests is the late work of a write before."""
        now = picture(state)
        if now != self._last:
            late = next((entry.line for entry in reversed(self.writes) if is_late(entry)), "")
            self._note(late, now)

    def _hook(self, scenario: Scenario, pause: Callable[[], None], state: ServerState) -> None:
        self._begin(state)
        if scenario.pause:
            pause()
        if scenario.change is not None:
            scenario.change(state)
        self._note(HOOK, picture(state))

    def _end(self, state: ServerState) -> None:
        self._note(self.sim.log[-1].line, picture(state))

    def _note(self, line: str, now: Picture) -> None:
        self.events.append(Event(line, tuple(effects(self._last, now)), now))
        self._last = now


def is_late(entry: LogEntry) -> bool:
    return "late:" in entry.fault or "lag:" in entry.fault
