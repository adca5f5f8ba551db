"""Progress of planning and applying on a terminal: one line that is redrawn, and erased at the end.

::

    [======>         ] planning 120/300 targets · 40/s · 3 s elapsed · 5 s left · 1 in error
    [====>           ] 12/40 targets · 31/96 requests · 4.1/s · 8 s elapsed · 16 s left · 1 in doubt · Evening News

If the stream is not a terminal, it writes a plain line now and then instead.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from operator import attrgetter, itemgetter
from typing import Final, Literal, TextIO

from msgspec import Struct, field

from msauto.model import events
from msauto.model.plan import Target, TargetKey, target_key
from msauto.report.sanitizing import display_width, shorten, show
from msauto.report.texts import plural, show_seconds

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

_TROUBLE: Final = {"error": "in error", "failed": "failed", "unverified": "unverified"}
"""The outcomes that are counted on the line, and how they are shown."""

Part = tuple[int, str]
"""A part of the line, and its rank: where the line is too long, those of the highest rank are left out."""


class _Wait(Struct):
    """A restore, or a file of which nothing came yet: since when it is awaited, for how long at most."""

    what: str
    since: float
    most: float


class _PhaseCounts(Struct):
    """How far planning or a run is; planning finds its ``targets`` and has no ``requests``.

    ``reading``: the servers whose targets are not known yet. ``outcomes``: those of finished and states of planned
    targets. ``downloads``: the bytes of each file that came so far, and its size where it is known.
    """

    began: float
    planning: bool
    targets: int = 0
    requests: int = 0
    finished: int = 0
    settled: int = 0
    reading: set[str] = set()
    outcomes: Counter[str] = field(default_factory=Counter)
    in_doubt: set[TargetKey] = set()
    under_way: dict[TargetKey, str] = {}
    waits: dict[TargetKey, _Wait] = {}
    downloads: dict[TargetKey, tuple[int, int | None]] = {}

    @property
    def done(self) -> int:
        if self.requests:
            return self.settled
        return self.finished

    @property
    def whole(self) -> int:
        """What is to be done as far as it is known: targets of a database are planned before the others are found."""
        return self.requests or max(self.targets, self.finished)

    def note(self, event: events.Event, now: float) -> None:
        match event:
            case events.TargetsFound(server, targets):
                self.targets += targets
                self.reading.discard(server)
            case events.TargetPlanned():
                self.finished += 1
                self.outcomes[event.state] += 1
            case events.TargetStarted(target):
                self.under_way[target_key(target)] = target.name
            case events.RequestInDoubt(target):
                self.in_doubt.add(target_key(target))
            case events.WaitingForRestore(target, waited, wait):
                self.waits[target_key(target)] = _Wait("restore", now - waited, wait)
            case events.DownloadAsked(target, _, time_limit):
                self._forget(target)
                self.waits[target_key(target)] = _Wait("file", now, time_limit)
            case events.DownloadReceived(target, _, received, total):
                self.waits.pop(target_key(target), None)
                self.downloads[target_key(target)] = received, total
            case events.RequestSettled(target):
                self.settled += 1
                self._forget(target)
            case events.TargetFinished(result):
                self.finished += 1
                self.outcomes[result.outcome] += 1
                self.under_way.pop(target_key(result.target), None)
                self._forget(result.target)

    def _forget(self, target: Target) -> None:
        if not (self.in_doubt or self.waits or self.downloads):
            return
        key = target_key(target)
        self.in_doubt.discard(key)
        self.waits.pop(key, None)
        self.downloads.pop(key, None)

    def parts(self, now: float) -> Iterator[Part]:
        """Yield what is done, the times, then what goes wrong, is under way or is awaited."""
        if not self.planning:
            yield 0, f"{self.finished}/{self.targets} targets"
            yield 1, f"{self.settled}/{self.requests} requests"
        elif self.whole:
            yield 0, f"planning {self.done}/{self.whole} targets"
        else:
            yield 0, "planning"
        if self.reading:
            servers = plural(len(self.reading), "server")
            if len(self.reading) == 1:
                (servers,) = self.reading
            yield 1, f"reading {show(servers, limit=30)}"
        yield from self._times(now - self.began)
        for outcome, shown in _TROUBLE.items():
            if self.outcomes[outcome]:
                yield 1, f"{self.outcomes[outcome]} {shown}"
        if self.in_doubt:
            yield 1, f"{len(self.in_doubt)} in doubt"
        if self.under_way:
            yield 5, show(next(reversed(self.under_way.values())), limit=30)
        for what in ("restore", "file"):
            waits = [wait for wait in self.waits.values() if wait.what == what]
            if waits:
                longest = min(waits, key=attrgetter("since"))
                waited = show_seconds(now - longest.since)
                most = show_seconds(longest.most)
                yield 2, f"waiting for {plural(len(waits), what)} ({waited} of at most {most})"
        if self.downloads:
            yield 2, f"{plural(len(self.downloads), 'download')} {self._received()}"

    def _received(self) -> str:
        """Return how much of all downloads has come, and of how much where that is known."""
        received = whole = 0
        is_known = True
        for received_of_file, size in self.downloads.values():
            received += received_of_file
            whole += size or 0
            is_known = is_known and size is not None
        if is_known:
            return f"{received / 1e6:.1f} of {whole / 1e6:.1f} MB"
        return f"{received / 1e6:.1f} MB"

    def _times(self, elapsed: float) -> Iterator[Part]:
        """Yield the rate (``41/s``, ``4.1/s``, ``12/min``), the time since the phase began, and the time left.

        A restore or a file may need minutes, and servers that are read may have any number of targets: with them the
        rate does not show when the phase ends.
        """
        if elapsed < _EARLIEST_RATE:
            return
        rate = self.done / elapsed
        if rate >= 1:
            digits = 0 if rate >= 10 else 1
            yield 4, f"{rate:.{digits}f}/s"
        elif rate:
            yield 4, f"{60 * rate:.0f}/min"
        yield 3, f"{show_seconds(elapsed)} elapsed"
        to_do = self.whole - self.done
        is_steady = not (self.reading or self.waits or self.downloads)
        if is_steady and self.done > 1 and to_do > 0:
            yield 2, f"{show_seconds(max(1.0, to_do / rate))} left"

    def bar(self) -> str:
        filled = 0
        if self.whole:
            filled = min(_BAR, _BAR * self.done // self.whole)
        drawn = "=" * filled
        if filled < _BAR:
            drawn = f"{drawn}>"
        return f"[{drawn:{_BAR}}]"


class ProgressDisplay:
    """Draws events on ``stream`` (stderr).

    ``monotonic`` returns seconds. ``mode`` is that of ``--progress``: with ``auto`` the stream decides whether there is
    a live line, or plain lines, which become rarer. ``width`` returns the columns of the terminal, for each drawing,
    because windows change. Call :meth:`erase` before other output, and at the end.
    """

    def __init__(
        self,
        stream: TextIO,
        monotonic: Callable[[], float],
        *,
        mode: Mode = "auto",
        redraws: bool = True,
        width: Callable[[], int] | None = None,
    ) -> None:
        self._stream = stream
        self._monotonic = monotonic
        self._mode = mode
        self._live = mode == "auto" and redraws and stream.isatty()
        self._width = width or (lambda: _columns(stream))
        self._drawn = False
        self._phase: _PhaseCounts | None = None
        self._last = self._pause = 0.0

    def notify(self, event: events.Event) -> None:
        """Count the event, and draw if the pause is over."""
        now = self._monotonic()
        match event:
            case events.PlanningStarted(servers):
                self._begin(_PhaseCounts(now, planning=True, reading=set(servers)))
            case events.RunStarted(_, targets, requests):
                self._begin(_PhaseCounts(now, planning=False, targets=targets, requests=requests))
            case events.PlanningEnded() | events.RunEnded():
                self._phase = None
                self.erase()
            case _ if self._phase is not None:
                self._phase.note(event, now)
                self.tick()

    def tick(self) -> None:
        """Draw if the pause is over, also without an event: the waiting times grow."""
        now = self._monotonic()
        if self._phase is not None and now - self._last >= self._pause:
            self._draw(self._phase, now)

    def erase(self) -> None:
        """Erase the line; the next event draws it again."""
        if self._drawn:
            self._write(_ERASE)
            self._drawn = False

    def _begin(self, phase: _PhaseCounts) -> None:
        self._phase = phase
        self._last = phase.began
        self._pause = _PAUSE if self._live else _PLAIN
        if self._live:
            self._draw(phase, phase.began)

    def _draw(self, phase: _PhaseCounts, now: float) -> None:
        if self._mode == "none":
            return
        self._last = now
        parts = [*phase.parts(now)]
        if self._live:
            # A live line must not wrap, otherwise it cannot be erased.
            line = _fitted([(3, phase.bar()), *parts], self._width() - 1)
            self._write(f"{_ERASE}{line}")
            self._drawn = True
            return
        if self._mode == "auto":
            self._pause = min(2 * self._pause, _RARELY)
        self._write(f"{_joined(parts)}\n")

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
    for part in sorted(parts, key=itemgetter(0)):
        with_part = [own for own in parts if own in kept or own is part]
        if not kept or display_width(_joined(with_part)) <= width:
            kept = with_part
    return shorten(_joined(kept), width)


def _joined(parts: list[Part]) -> str:
    return " · ".join(text for _, text in parts).replace("] · ", "] ", 1)
