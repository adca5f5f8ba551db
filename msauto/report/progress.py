"""Progress of an applying run on a terminal: one live line that leaves nothing behind.

::

    [=======>            ] 12/40 targets · 31/96 requests · 1 failed · Evening News · 2 restores waited for (3 min of at
    most 30 min) · 1 file waited for (4 min of at most 1 h) · 1 download 12.5 of 40.0 MB

An :class:`~msauto.model.events.Observer`. Where the stream is no terminal, a plain line every half a minute instead.
While nothing happens, :meth:`Progress.tick` shows that time goes by.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, Protocol, TextIO

from msauto.model.events import (
    DownloadAsked,
    DownloadReceived,
    Event,
    RequestSettled,
    RunEnded,
    RunStarted,
    TargetFinished,
    TargetStarted,
    WaitingForRestore,
)
from msauto.model.plan import Target
from msauto.report.sanitizing import shorten, show
from msauto.report.sentences import plural
from msauto.report.values import show_seconds

_ERASE: Final = "\r\x1b[2K"
_BAR: Final = 20
_COLUMNS: Final = 80
_PAUSE: Final = 0.1
"""Seconds between two drawings: enough for the eye, and nothing beside a request."""


class Ticks(Protocol):
    """The part of a :class:`~msauto.model.ports.Clock` that is needed here."""

    def monotonic(self) -> float:
        """Seconds that never go back."""


_Key = tuple[str, str, str, str]


def _key(target: Target) -> _Key:
    return (target.server, target.database, target.kind, target.name)


@dataclass(slots=True)
class _PendingWait:
    """What is waited for since when (of the clock), at most for how long; and how much of a file has come."""

    since: float
    most: float
    received: int = 0
    total: int | None = None
    silent: bool = True


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or _COLUMNS
    except (OSError, ValueError):
        return _COLUMNS


class ProgressDisplay:
    """Draws events on ``stream`` (standard error). ``live``: it is a terminal (asked, unless said).

    ``width`` tells the columns of the terminal, anew for each drawing, for windows change.
    Without ``live``, a line every ``every`` seconds, ``None`` for none at all. As a context manager it erases
    itself on the way out, whatever happened; :meth:`erase` lets others write in between.
    """

    def __init__(
        self,
        stream: TextIO,
        clock: Ticks,
        *,
        live: bool | None = None,
        width: Callable[[], int] | None = None,
        every: float | None = 30.0,
    ) -> None:
        self._stream = stream
        self._clock = clock
        self._live = stream.isatty() if live is None else live
        self._width = width or (lambda: _columns(stream))
        self._every = _PAUSE if self._live else every
        self._drawn = False
        self._last = clock.monotonic()
        self._targets = self._requests = 0
        self._finished = self._settled = 0
        self._bad = {"failed": 0, "unverified": 0}
        self._under_way: dict[_Key, Target] = {}
        self._restores: dict[_Key, _PendingWait] = {}
        self._downloads: dict[_Key, _PendingWait] = {}
        self._running = False

    def __enter__(self) -> ProgressDisplay:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Erase for good: what is told afterwards is not drawn any more."""
        self.erase()
        self._every = None

    def notify(self, event: Event) -> None:
        """Count the event, and draw if it is time."""
        self._note(event)
        if isinstance(event, RunEnded):
            self.erase()
        elif self._is_due(event):
            self._last = self._clock.monotonic()
            self._draw()

    def tick(self) -> None:
        """Draw if it is time, though nothing has happened: what is waited for gets older."""
        if self._running and self._is_due(None):
            self._last = self._clock.monotonic()
            self._draw()

    def erase(self) -> None:
        """Take the live line away; the next event draws it anew."""
        if self._drawn:
            self._write(_ERASE)
            self._drawn = False

    def _note(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            self._targets, self._requests = event.targets, event.requests
            self._running = True
        elif isinstance(event, TargetStarted):
            self._under_way[_key(event.target)] = event.target
        elif isinstance(event, RequestSettled):
            self._settled += 1
            self._downloads.pop(_key(event.target), None)
        elif isinstance(event, WaitingForRestore):
            self._restores[_key(event.target)] = _PendingWait(self._clock.monotonic() - event.waited, event.wait)
        elif isinstance(event, DownloadAsked):
            self._downloads[_key(event.target)] = _PendingWait(
                self._clock.monotonic(), event.time_limit, event.received
            )
        elif isinstance(event, DownloadReceived):
            self._receive(event)
        elif isinstance(event, RunEnded):
            self._running = False
        elif isinstance(event, TargetFinished):
            self._finish(event)

    def _receive(self, event: DownloadReceived) -> None:
        download = self._downloads.get(_key(event.target))
        if download is not None:
            download.received, download.total, download.silent = event.received, event.total, False

    def _finish(self, event: TargetFinished) -> None:
        self._finished += 1
        self._under_way.pop(_key(event.result.target), None)
        self._restores.pop(_key(event.result.target), None)
        self._downloads.pop(_key(event.result.target), None)
        if event.result.outcome in self._bad:
            self._bad[event.result.outcome] += 1

    def _is_due(self, event: Event | None) -> bool:
        if self._every is None:
            return False
        return (self._live and isinstance(event, RunStarted)) or self._clock.monotonic() - self._last >= self._every

    def _draw(self) -> None:
        # Only a live line must not wrap, for else it could not be erased; a log takes all of it.
        line = self._line()
        self._write(f"{_ERASE}{shorten(line, self._width() - 1)}" if self._live else f"{line}\n")
        self._drawn = self._live

    def _write(self, text: str) -> None:
        encoding = getattr(self._stream, "encoding", None) or "utf-8"  # a terminal may not know our dots
        self._stream.write(text.encode(encoding, "replace").decode(encoding))
        self._stream.flush()

    def _line(self) -> str:
        parts = [f"{self._finished}/{self._targets} targets", f"{self._settled}/{self._requests} requests"]
        parts += [f"{number} {outcome}" for outcome, number in self._bad.items() if number]
        parts += [show(next(reversed(self._under_way.values())).name, limit=30)] if self._under_way else []
        silent = [each for each in self._downloads.values() if each.silent]
        coming = [each for each in self._downloads.values() if not each.silent]
        parts += [self._waiting("restore", self._restores.values())] if self._restores else []
        parts += [self._waiting("file", silent)] if silent else []
        parts += [f"{plural(len(coming), 'download')} {_bytes(coming)}"] if coming else []
        return " · ".join([f"{self._bar()} {parts[0]}" if self._live else parts[0], *parts[1:]])

    def _waiting(self, what: str, waits: Collection[_PendingWait]) -> str:
        """Tell of the one that has waited longest: since when, and until when."""
        longest = min(waits, key=lambda each: each.since)
        waited = show_seconds(self._clock.monotonic() - longest.since)
        return f"{plural(len(waits), what)} waited for ({waited} of at most {show_seconds(longest.most)})"

    def _bar(self) -> str:
        whole = self._requests or self._targets
        done = self._settled if self._requests else self._finished
        filled = min(_BAR, _BAR * done // whole) if whole else 0
        return f"[{'=' * filled}{'>' if filled < _BAR else ''}{' ' * (_BAR - filled - 1)}]"


def _bytes(downloads: Collection[_PendingWait]) -> str:
    """Write ``12.5 of 40.0 MB``: all downloads together, and the whole where each has told it."""
    received = sum(each.received for each in downloads) / 1e6
    totals = [each.total for each in downloads]
    whole = [total for total in totals if total is not None]
    return f"{received:.1f} of {sum(whole) / 1e6:.1f} MB" if len(whole) == len(totals) else f"{received:.1f} MB"
