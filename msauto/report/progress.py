"""Progress of a run on a terminal: one line that is redrawn, and erased at the end.

::

    [=======>            ] 12/40 targets · 31/96 requests · 1 failed · Evening News · waiting for 2 restores (3 min of
    at most 30 min) · 1 download 12.5 of 40.0 MB

An :class:`~msauto.model.events.Observer`. If the stream is not a terminal, it writes a line every 30 seconds instead.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, TextIO

from msauto.model import events
from msauto.model.plan import Target
from msauto.report.sanitizing import shorten, show
from msauto.report.sentences import TargetKey, plural, target_key
from msauto.report.value_texts import show_seconds

_ERASE: Final = "\r\x1b[2K"
_BAR: Final = 20
_COLUMNS: Final = 80
_PAUSE: Final = 0.1
"""Seconds between two drawings."""


@dataclass(slots=True)
class _PendingWait:
    """A restore or a download: since when it is awaited, for how long at most, and the bytes received."""

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
    """Draws events on ``stream`` (stderr).

    ``monotonic`` returns seconds. ``live``: the stream is a terminal; unless given, the stream decides. ``width``
    returns the columns of the terminal, for each drawing, because windows change. Without ``live``, the display
    writes a line every ``every`` seconds; ``None``: nothing. As a context manager it erases itself at the end. Call
    :meth:`erase` before other output.
    """

    def __init__(
        self,
        stream: TextIO,
        monotonic: Callable[[], float],
        *,
        live: bool | None = None,
        width: Callable[[], int] | None = None,
        every: float | None = 30.0,
    ) -> None:
        self._stream = stream
        self._monotonic = monotonic
        self._live = stream.isatty() if live is None else live
        self._width = width or (lambda: _columns(stream))
        self._every = _PAUSE if self._live else every
        self._drawn = False
        self._last = monotonic()
        self._targets = self._requests = 0
        self._finished = self._settled = 0
        self._bad = {"failed": 0, "unverified": 0}
        self._under_way: dict[TargetKey, Target] = {}
        self._restores: dict[TargetKey, _PendingWait] = {}
        self._downloads: dict[TargetKey, _PendingWait] = {}
        self._running = False

    def __enter__(self) -> ProgressDisplay:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Erase the line; later events are not drawn."""
        self.erase()
        self._every = None

    def notify(self, event: events.Event) -> None:
        """Count the event, and draw if the pause is over."""
        self._note(event)
        if isinstance(event, events.RunEnded):
            self.erase()
        else:
            self._draw(at_once=self._live and isinstance(event, events.RunStarted))

    def tick(self) -> None:
        """Draw if the pause is over, without an event: the waiting times grow."""
        if self._running:
            self._draw()

    def erase(self) -> None:
        """Erase the line; the next event draws it again."""
        if self._drawn:
            self._write(_ERASE)
            self._drawn = False

    def _note(self, event: events.Event) -> None:
        if isinstance(event, events.RunStarted):
            self._targets, self._requests = event.targets, event.requests
            self._running = True
        elif isinstance(event, events.TargetStarted):
            self._under_way[target_key(event.target)] = event.target
        elif isinstance(event, events.RequestSettled):
            self._settled += 1
            self._downloads.pop(target_key(event.target), None)
        elif isinstance(event, events.WaitingForRestore):
            self._restores[target_key(event.target)] = _PendingWait(self._monotonic() - event.waited, event.wait)
        elif isinstance(event, events.DownloadAsked):
            self._downloads[target_key(event.target)] = _PendingWait(
                self._monotonic(), event.time_limit, event.received
            )
        elif isinstance(event, events.DownloadReceived):
            self._receive(event)
        elif isinstance(event, events.RunEnded):
            self._running = False
        elif isinstance(event, events.TargetFinished):
            self._finish(event)

    def _receive(self, event: events.DownloadReceived) -> None:
        download = self._downloads.get(target_key(event.target))
        if download is not None:
            download.received, download.total, download.silent = event.received, event.total, False

    def _finish(self, event: events.TargetFinished) -> None:
        self._finished += 1
        self._under_way.pop(target_key(event.result.target), None)
        self._restores.pop(target_key(event.result.target), None)
        self._downloads.pop(target_key(event.result.target), None)
        if event.result.outcome in self._bad:
            self._bad[event.result.outcome] += 1

    def _draw(self, *, at_once: bool = False) -> None:
        now = self._monotonic()
        if self._every is None or not (at_once or now - self._last >= self._every):
            return
        self._last = now
        line = self._line()
        # A live line must not wrap, otherwise it cannot be erased; a log gets the whole line.
        self._write(f"{_ERASE}{shorten(line, self._width() - 1)}" if self._live else f"{line}\n")
        self._drawn = self._live

    def _write(self, text: str) -> None:
        encoding = getattr(self._stream, "encoding", None) or "utf-8"  # it may lack the dots
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
        """Return how long the longest wait has lasted, and its limit."""
        longest = min(waits, key=lambda each: each.since)
        waited = show_seconds(self._monotonic() - longest.since)
        return f"waiting for {plural(len(waits), what)} ({waited} of at most {show_seconds(longest.most)})"

    def _bar(self) -> str:
        whole = self._requests or self._targets
        done = self._settled if self._requests else self._finished
        filled = min(_BAR, _BAR * done // whole) if whole else 0
        return f"[{'=' * filled}{'>' if filled < _BAR else ''}{' ' * (_BAR - filled - 1)}]"


def _bytes(downloads: Collection[_PendingWait]) -> str:
    """Return ``12.5 of 40.0 MB``: all downloads together, with the total if the size of each is known."""
    received = sum(each.received for each in downloads) / 1e6
    totals = [each.total for each in downloads]
    whole = [total for total in totals if total is not None]
    return f"{received:.1f} of {sum(whole) / 1e6:.1f} MB" if len(whole) == len(totals) else f"{received:.1f} MB"
