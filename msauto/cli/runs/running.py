"""Applying a plan under a person's eyes: progress on the terminal, Ctrl-C that stops cleanly."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from msauto.aio import apply_plan
from msauto.applying.executor import Cancellation
from msauto.cli.flags import Flags
from msauto.cli.output import say
from msauto.errors import MsautoError
from msauto.ledger import Ledger
from msauto.model.plan import Plan
from msauto.model.ports import Clock
from msauto.model.result import Result
from msauto.model.server import ServerSpec
from msauto.report.progress import ProgressDisplay

SIGNALS = (signal.SIGINT, signal.SIGTERM)


async def run_plan(
    plan: Plan,
    specs: tuple[ServerSpec, ...],
    ledger: Ledger,
    clock: Clock,
    flags: Flags,
    playbooks: tuple[str, ...],
    *,
    frozen: Callable[[], str | None],
    notes: Mapping[str, str],
) -> Result:
    """Apply the plan; the first Ctrl-C finishes the requests in flight, the second stops at once."""
    stop = Cancellation()
    loop = asyncio.get_running_loop()

    def interrupted() -> None:
        progress.erase()
        if not stop.requested:
            say("Stopping after the requests under way; Ctrl-C again stops at once.")
        stop()

    try:
        with ProgressDisplay(sys.stderr, clock) as progress:
            for number in SIGNALS:
                loop.add_signal_handler(number, interrupted)
            async with _ticking(progress):
                result = await apply_plan(
                    plan,
                    specs,
                    ledger=ledger,
                    clock=clock,
                    observer=progress,
                    forks=flags.forks,
                    playbooks=playbooks,
                    cancellation=stop,
                    frozen=frozen,
                    notes=notes,
                )
        _prune(ledger, flags)
        return result
    finally:
        _ignore_from_now_on(loop)


def _ignore_from_now_on(loop: asyncio.AbstractEventLoop) -> None:
    """Let no further Ctrl-C come between what was done and its report; ``main`` gives the handler back.

    The signal is held back meanwhile, for asyncio puts Python's own handler in place, which raises.
    """
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


@asynccontextmanager
async def _ticking(progress: ProgressDisplay) -> AsyncIterator[None]:
    """Let the display tell of the time while nothing happens: a server may need minutes to make a file."""

    async def tick() -> None:
        while True:
            await asyncio.sleep(1)
            progress.tick()

    ticking = asyncio.ensure_future(tick())
    try:
        yield
    finally:
        ticking.cancel()


def _prune(ledger: Ledger, flags: Flags) -> None:
    """Forget old runs, as the settings say; where that fails, the run before it is none the worse."""
    settings = flags.settings
    try:
        ledger.prune(keep_runs=settings.keep_runs, keep_days=settings.keep_days)
    except MsautoError as error:
        say(f"Warning: old runs stay in the ledger: {error.message}")
