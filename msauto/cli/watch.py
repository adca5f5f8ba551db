"""What follows a command while it works: the progress display, and its events as JSON lines (``--events``)."""

from __future__ import annotations

import errno
import functools
import os
import select
import stat
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext, redirect_stdout, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from msauto.cli.flags import Decorator, option, with_options
from msauto.cli.interrupts import importing
from msauto.cli.output import is_dumb, print_message
from msauto.concurrency import SystemClock
from msauto.errors import exit_code_of
from msauto.exit_codes import INTERRUPTED, OK
from msauto.file_access import EVENTS, WriteAccess, is_stream
from msauto.report.sanitizing import visible

if TYPE_CHECKING:
    from msauto.model.events import Event
    from msauto.report.progress import Mode

STDOUT: Final = "-"
_READER: Final = 5000
"""Milliseconds to wait for the reader of a pipe: a reader that hangs must not hold up a run."""


class EventFile:
    """Writes lines to a file, a pipe or stdout, each whole with one call, so that a killed command leaves whole lines.

    Raises ``OSError``; :class:`~msauto.errors.MsautoError` for a file that holds something else.
    """

    def __init__(self, name: str, outputs: WriteAccess) -> None:
        if name == STDOUT:
            self._number, self._closes = sys.stdout.fileno(), False
        else:
            # A pipe without a reader would block.
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
            path = outputs.file(name, EVENTS)
            if not is_stream(name):
                flags |= getattr(os, "O_NOFOLLOW", 0)
            self._number, self._closes = os.open(path, flags, 0o600), True
        self._regular = self._closes and stat.S_ISREG(os.fstat(self._number).st_mode)
        if self._regular:
            os.ftruncate(self._number, 0)
        self._writable = select.poll()
        self._writable.register(self._number, select.POLLOUT)

    def write(self, line: str) -> None:
        """Write one line, or nothing of it."""
        content = line.encode("utf-8", "backslashreplace")
        if not self._writable.poll(_READER):
            raise TimeoutError(errno.ETIMEDOUT, "its reader has stopped reading")
        size = os.fstat(self._number).st_size
        written = os.write(self._number, content)
        if written != len(content):
            if self._regular:
                os.ftruncate(self._number, size)
            raise OSError(errno.ENOSPC, "only a part of a line could be written")

    def close(self) -> None:
        """Close, unless it is stdout."""
        if self._closes:
            with suppress(OSError):
                os.close(self._number)


class RunWatch:
    """Receives the events of a command; nothing that fails here changes what the command does.

    It opens the file of the events; a failure is a warning.
    """

    def __init__(
        self, progress: Mode = "auto", events: str | None = None, outputs: WriteAccess | None = None
    ) -> None:
        with importing():
            from msauto.report.event_lines import EventLines
            from msauto.report.progress import ProgressDisplay

        clock = SystemClock()
        self._display = ProgressDisplay(
            sys.stderr, clock.monotonic, mode=progress, redraws=not is_dumb()
        )
        self._lines = EventLines(
            lambda: f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z", clock.monotonic
        )
        self._name = events
        self._file: EventFile | None = None
        if events is not None:
            try:
                self._file = EventFile(events, outputs or WriteAccess((Path.cwd(),)))
            except (OSError, ValueError) as error:
                self._warn(error)

    def notify(self, event: Event) -> None:
        """Write an event, and show it."""
        if self._file is not None:
            self._write(event)
        try:
            self._display.notify(event)
        except Exception:  # noqa: BLE001 - whatever the error, the run goes on
            return

    def erase(self) -> None:
        """Erase the progress before other output."""
        with suppress(OSError):
            self._display.erase()

    @asynccontextmanager
    async def ticking(self) -> AsyncIterator[None]:
        """Show the progress each second while nothing happens: a server may need minutes; erase it at the end."""
        import asyncio

        async def tick() -> None:
            while True:
                await asyncio.sleep(1)
                with suppress(Exception):
                    self._display.tick()

        ticking = asyncio.ensure_future(tick())
        try:
            yield
        finally:
            ticking.cancel()
            self.erase()

    def end(self, code: int, reason: str) -> None:
        """Erase the progress, and write the last event."""
        from msauto.model.events import CommandEnded

        self.erase()
        self._write(CommandEnded(code, reason))
        if self._file is not None:
            self._file.close()

    def _write(self, event: Event) -> None:
        if self._file is None:
            return
        try:
            line = self._lines.line(event)
            if line is not None:
                self._file.write(line)
        except Exception as error:  # noqa: BLE001 - whatever the error, the run goes on
            self._file.close()
            self._file = None
            self._warn(error)

    def _warn(self, error: Exception) -> None:
        self.erase()
        name = "stdout" if self._name == STDOUT else visible(str(self._name))
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        print_message(
            f"Warning: cannot write events to {name}: {reason}\n  → no more events are written; nothing else changes"
        )


_OPTIONS: tuple[Decorator, ...] = (
    option(
        "--events FILE|-",
        "Write what happens to FILE as JSON lines; - is stdout, and the plan then goes to stderr.",
        type=click.Path(dir_okay=False, allow_dash=True),
    ),
    click.option(
        "--progress",
        type=click.Choice(["auto", "plain", "none"]),
        default="auto",
        help="Show progress on stderr: a line that is redrawn on a terminal, plain lines, or nothing.",
    ),
)


def watch_flags(function: Callable[..., int]) -> Callable[..., int]:
    """Give a command ``--events`` and ``--progress`` as one ``watch`` value; apply it above ``shared_flags``."""

    @functools.wraps(function)
    def command(*, events: str | None, progress: Mode, **own: Any) -> int:
        if events == STDOUT and (own["form"] != "text" or own.get("out") == STDOUT):
            raise click.UsageError(
                "--events - and the result would both write to stdout: write the events to a file"
            )
        with importing():
            from msauto.api.attempts import Attempt, reason_of
            from msauto.api.inputs import outputs_of

        named = own.get("playbooks") or ()
        watch = RunWatch(progress, events, outputs_of(named, own.get("config")) if events else None)

        attempt = click.get_current_context().find_object(Attempt)
        redirected = redirect_stdout(sys.stderr) if events == STDOUT else nullcontext()
        try:
            with redirected:
                code = function(watch=watch, **own)
        except KeyboardInterrupt as interrupt:
            watch.end(INTERRUPTED, str(interrupt) or "interrupted")
            raise
        except Exception as error:
            watch.end(exit_code_of(error), reason_of(error))
            raise
        reason = ""
        if attempt is not None and code != OK:
            reason = attempt.reason
        watch.end(code, reason)
        return code

    return with_options(command, _OPTIONS)
