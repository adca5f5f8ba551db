"""Progress of planning and applying on a terminal: one line that is redrawn, and erased at the end.

::

    [======>         ] planning 120/300 targets · 40/s · 3 s elapsed · 5 s left · 1 in error
    [====>           ] 12/40 targets · 31/96 requests · 4.1/s · 8 s elapsed · 16 s left · 1 in doubt · Evening News

An :class:`~msauto.model.events.Observer`. If the stream is not a terminal, it writes a plain line now and then instead.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, TextIO

from msauto.model import events
from msauto.model.plan import Target
from msauto.report.sanitizing import display_width, shorten, show
from msauto.report.sentences import TargetKey, plural, target_key
from msauto.report.value_texts import show_seconds

Mode = Literal["auto", "plain", "none"]
_ERASE: Final = "\r\x1b[2K"
_BAR: Final = 16
_COLUMNS: Final = 80
_PAUSE: Final = 0.1
"""Seconds between two drawings."""
_PLAIN: Final = 5.0
"""Seconds between two plain lines."""
_RARELY: Final = 30.0
"""Seconds between two plain lines of a long run whose stream is not a terminal: a log should not be flooded."""
_EARLIEST_RATE: Final = 2.0
"""Seconds after which a rate, and the time left, mean something."""

Part = tuple[int, str]
"""A part of the line, and its rank: where the line is too long, those of the highest rank are left out."""


@dataclass(slots=True)
class _PendingWait:
    """A restore or a download: since when it is awaited, for how long at most, and the bytes received."""

    since: float
    most: float
    received: int = 0
    total: int | None = None
    silent: bool = True


@dataclass(slots=True)
class _Planning:
    """How far planning is. ``reading`` names the servers whose targets are not known yet."""

    reading: set[str]
    found: int = 0
    planned: int = 0
    errors: int = 0

    @property
    def done(self) -> int:
        return self.planned

    @property
    def whole(self) -> int:
        """The targets known so far: those of a database are planned before the others are found."""
        return max(self.found, self.planned)

    @property
    def open_end(self) -> bool:
        return bool(self.reading)

    def note(self, event: events.Event, now: float) -> None:
        del now
        if isinstance(event, events.TargetsFound):
            self.found += event.targets
            self.reading.discard(event.server)
        elif isinstance(event, events.TargetPlanned):
            self.planned += 1
            self.errors += event.state == "error"

    def counts(self) -> Iterator[Part]:
        yield 0, f"planning {self.planned}/{self.whole} targets" if self.whole else "planning"
        if self.reading:
            servers = next(iter(self.reading)) if len(self.reading) == 1 else plural(len(self.reading), "server")
            yield 1, f"reading {show(servers, limit=30)}"

    def details(self, now: float) -> Iterator[Part]:
        del now
        if self.errors:
            yield 1, f"{self.errors} in error"


@dataclass(slots=True)
class _Applying:
    """How far a run is."""

    targets: int
    requests: int
    finished: int = 0
    settled: int = 0
    bad: dict[str, int] = field(default_factory=lambda: {"failed": 0, "unverified": 0})
    in_doubt: set[TargetKey] = field(default_factory=set)
    under_way: dict[TargetKey, Target] = field(default_factory=dict)
    restores: dict[TargetKey, _PendingWait] = field(default_factory=dict)
    downloads: dict[TargetKey, _PendingWait] = field(default_factory=dict)

    @property
    def done(self) -> int:
        return self.settled if self.requests else self.finished

    @property
    def whole(self) -> int:
        return self.requests or self.targets

    @property
    def open_end(self) -> bool:
        """Whether the rate does not show when the run ends: a restore or a file may need minutes."""
        return bool(self.restores or self.downloads)

    def note(self, event: events.Event, now: float) -> None:
        if isinstance(event, events.TargetStarted):
            self.under_way[target_key(event.target)] = event.target
        elif isinstance(event, events.RequestInDoubt):
            self.in_doubt.add(target_key(event.target))
        elif isinstance(event, events.RequestSettled):
            self.settled += 1
            self.downloads.pop(target_key(event.target), None)
            self.in_doubt.discard(target_key(event.target))
        elif isinstance(event, events.TargetFinished):
            self._finish(event)
        else:
            self._wait(event, now)

    def _wait(self, event: events.Event, now: float) -> None:
        if isinstance(event, events.WaitingForRestore):
            self.restores[target_key(event.target)] = _PendingWait(now - event.waited, event.wait)
        elif isinstance(event, events.DownloadAsked):
            self.downloads[target_key(event.target)] = _PendingWait(now, event.time_limit, event.received)
        elif isinstance(event, events.DownloadReceived) and target_key(event.target) in self.downloads:
            download = self.downloads[target_key(event.target)]
            download.received, download.total, download.silent = event.received, event.total, False

    def _finish(self, event: events.TargetFinished) -> None:
        key = target_key(event.result.target)
        self.finished += 1
        for waiting in (self.under_way, self.restores, self.downloads):
            waiting.pop(key, None)
        self.in_doubt.discard(key)
        if event.result.outcome in self.bad:
            self.bad[event.result.outcome] += 1

    def counts(self) -> Iterator[Part]:
        yield 0, f"{self.finished}/{self.targets} targets"
        yield 1, f"{self.settled}/{self.requests} requests"

    def details(self, now: float) -> Iterator[Part]:
        yield from ((1, f"{number} {outcome}") for outcome, number in self.bad.items() if number)
        if self.in_doubt:
            yield 1, f"{len(self.in_doubt)} in doubt"
        if self.under_way:
            yield 5, show(next(reversed(self.under_way.values())).name, limit=30)
        silent = [each for each in self.downloads.values() if each.silent]
        coming = [each for each in self.downloads.values() if not each.silent]
        if self.restores:
            yield 2, _waiting("restore", self.restores.values(), now)
        if silent:
            yield 2, _waiting("file", silent, now)
        if coming:
            yield 2, f"{plural(len(coming), 'download')} {_bytes(coming)}"


class ProgressDisplay:
    """Draws events on ``stream`` (stderr).

    ``monotonic`` returns seconds. ``mode`` is that of ``--progress``: with ``auto`` the stream decides whether there is
    a live line, or plain lines, which become rarer. ``width`` returns the columns of the terminal, for each drawing,
    because windows change. As a context manager it erases itself at the end. Call :meth:`erase` before other output.
    """

    def __init__(
        self,
        stream: TextIO,
        monotonic: Callable[[], float],
        *,
        mode: Mode = "auto",
        width: Callable[[], int] | None = None,
    ) -> None:
        self._stream = stream
        self._monotonic = monotonic
        self._mode = mode
        self._live = mode == "auto" and stream.isatty()
        self._width = width or (lambda: _columns(stream))
        self._drawn = False
        self._phase: _Planning | _Applying | None = None
        self._began = self._last = self._pause = 0.0

    def __enter__(self) -> ProgressDisplay:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Erase the line; later events are not drawn."""
        self.erase()
        self._mode = "none"

    def notify(self, event: events.Event) -> None:
        """Count the event, and draw if the pause is over."""
        if isinstance(event, events.PlanningStarted):
            self._begin(_Planning(set(event.servers)))
        elif isinstance(event, events.RunStarted):
            self._begin(_Applying(event.targets, event.requests))
        elif isinstance(event, events.PlanningEnded | events.RunEnded):
            self._phase = None
            self.erase()
        elif self._phase is not None:
            self._phase.note(event, self._monotonic())
            self.tick()

    def tick(self) -> None:
        """Draw if the pause is over, also without an event: the waiting times grow."""
        if self._phase is not None and self._monotonic() - self._last >= self._pause:
            self._draw(self._phase)

    def erase(self) -> None:
        """Erase the line; the next event draws it again."""
        if self._drawn:
            self._write(_ERASE)
            self._drawn = False

    def _begin(self, phase: _Planning | _Applying) -> None:
        self._phase = phase
        self._began = self._last = self._monotonic()
        self._pause = _PAUSE if self._live else _PLAIN
        if self._live:
            self._draw(phase)

    def _draw(self, phase: _Planning | _Applying) -> None:
        if self._mode == "none":
            return
        self._last = now = self._monotonic()
        parts = [*phase.counts(), *self._times(phase, now), *phase.details(now)]
        if self._live:
            # A live line must not wrap, otherwise it cannot be erased.
            line = _fitted([(3, _bar(phase)), *parts], self._width() - 1)
            self._write(f"{_ERASE}{line}")
            self._drawn = True
            return
        if self._mode == "auto":
            self._pause = min(2 * self._pause, _RARELY)
        self._write(f"{_joined(parts)}\n")

    def _times(self, phase: _Planning | _Applying, now: float) -> Iterator[Part]:
        """Yield the rate, the time since the phase began, and about how long it will take."""
        elapsed = now - self._began
        if elapsed < _EARLIEST_RATE:
            return
        rate = phase.done / elapsed
        if rate:
            yield 4, _rate(rate)
        yield 3, f"{show_seconds(elapsed)} elapsed"
        left = max(0, phase.whole - phase.done)
        if phase.done > 1 and left and not phase.open_end:
            yield 2, f"{show_seconds(max(1.0, left / rate))} left"

    def _write(self, text: str) -> None:
        encoding = getattr(self._stream, "encoding", None) or "utf-8"  # it may lack the dots
        self._stream.write(text.encode(encoding, "replace").decode(encoding))
        self._stream.flush()


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or _COLUMNS
    except (OSError, ValueError):
        return _COLUMNS


def _fitted(parts: list[Part], width: int) -> str:
    """Return the line of the parts that fit, those of the lowest rank first."""
    kept: list[Part] = []
    for part in sorted(parts, key=lambda part: part[0]):
        with_it = [each for each in parts if each in kept or each is part]
        kept = with_it if display_width(_joined(with_it)) <= width or not kept else kept
    return shorten(_joined(kept), width)


def _joined(parts: list[Part]) -> str:
    return " · ".join(text for _, text in parts).replace("] · ", "] ", 1)


def _bar(phase: _Planning | _Applying) -> str:
    filled = min(_BAR, _BAR * phase.done // phase.whole) if phase.whole else 0
    return f"[{'=' * filled}{'>' if filled < _BAR else ''}{' ' * (_BAR - filled - 1)}]"


def _rate(rate: float) -> str:
    """Return ``41/s``, ``4.1/s`` or ``12/min``."""
    if rate >= 10:
        return f"{rate:.0f}/s"
    return f"{rate:.1f}/s" if rate >= 1 else f"{60 * rate:.0f}/min"


def _waiting(what: str, waits: Collection[_PendingWait], now: float) -> str:
    """Return how long the longest wait has lasted, and its limit."""
    longest = min(waits, key=lambda each: each.since)
    waited = show_seconds(now - longest.since)
    return f"waiting for {plural(len(waits), what)} ({waited} of at most {show_seconds(longest.most)})"


def _bytes(downloads: Collection[_PendingWait]) -> str:
    """Return ``12.5 of 40.0 MB``: all downloads together, with the total if the size of each is known."""
    received = sum(each.received for each in downloads) / 1e6
    totals = [each.total for each in downloads]
    whole = [total for total in totals if total is not None]
    return f"{received:.1f} of {sum(whole) / 1e6:.1f} MB" if len(whole) == len(totals) else f"{received:.1f} MB"
