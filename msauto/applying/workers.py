"""Applies the servers of a run on the workers of a cluster, each by one of them, in one run of the shared ledger.

If a worker is lost, another attempt continues its server: what the ledger records as finished is not repeated, and what
it records as started is settled by reading. A worker that the command awaits no more finishes the requests
under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

from msgspec import Struct, structs

from msauto.applying.apply_context import ApplyContext
from msauto.applying.circuit_breaker import BreakerState, CircuitBreaker
from msauto.applying.executor import BatchFailures, OnResult, Targets, not_attempted, result_of
from msauto.concurrency import run_unless
from msauto.errors import MsautoError, one_line
from msauto.model import events
from msauto.model.plan import Target
from msauto.model.result import RequestResult, TargetRecord, TargetResult

_CHECK_SECONDS: Final = 0.5
_NO_TARGET: Final = Target("", "", "asset", "")


class AppliedServer(Struct, frozen=True):
    """What came of the targets of a server, without the targets: the command has them."""

    results: Mapping[int, TargetResult]
    breaker: BreakerState


def without_target(result: TargetResult) -> TargetResult:
    """Return a result without its target, which may hold secrets."""
    return structs.replace(result, target=_NO_TARGET)


class RunWorkers(Protocol):
    """The workers of a run, and what the shared ledger knows of it; errors are ``MsautoError``."""

    async def apply(
        self,
        server: str,
        targets: Targets,
        failures: BatchFailures,
        breaker: BreakerState,
        on_report: Callable[[tuple[int, TargetResult]], None],
    ) -> AppliedServer:
        """Apply targets of a server; ``on_report`` gets each result as soon as it is known, if it arrives."""

    def check(self) -> None:
        """Raise if the session is lost, and with it the locks."""

    def stop_starting(self) -> None:
        """Let the workers finish the targets in progress, and start no others."""

    async def wait_until_ended(self, server: str) -> bool:
        """Wait, for a bounded time, until no worker can send anything to the server; return whether that is so."""

    def records(self, targets: Targets) -> Mapping[int, TargetRecord]:
        """Return what the ledger records of targets, by their positions in the plan."""


class ServersOnWorkers:
    """Implements :class:`~msauto.applying.executor.Servers` on workers.

    After any error of a worker no target is started. The results of targets that no worker has reported are those of
    the ledger. ``unsettled``: it does not know some of them, so that the next run must read these targets.
    """

    def __init__(self, context: ApplyContext, workers: RunWorkers, frozen: Callable[[], str | None]) -> None:
        self._context = context
        self._workers = workers
        self._frozen = frozen
        self._stopped = asyncio.Event()
        self._error = ""
        self._known: set[int] = set()
        self.unsettled = False

    async def apply(
        self, server: str, targets: Targets, failures: BatchFailures, breaker: CircuitBreaker, on_result: OnResult
    ) -> None:
        """Implement :meth:`~msauto.applying.executor.Servers.apply`."""
        note = partial(self._note, targets, failures, breaker, on_result)
        if failures.stop_reason() is not None or self._context.cancellation.requested:
            return
        reason = self._error or self._frozen()
        if not reason:
            watching = asyncio.ensure_future(self._watch(failures))
            is_over = False
            try:
                working = self._work(server, targets, failures, breaker, note)
                is_over = await run_unless(working, self._stopped) and not self._error
            finally:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
                if not is_over:
                    await self._collect(server, targets, note)
            reason = self._error
        for number, target in targets.items() if reason else ():
            if number not in self._known:
                on_result(number, not_attempted(self._context, target, reason))

    async def _work(
        self,
        server: str,
        targets: Targets,
        failures: BatchFailures,
        breaker: CircuitBreaker,
        note: Callable[[tuple[int, TargetResult]], None],
    ) -> None:
        try:
            applied = await self._workers.apply(server, targets, failures, breaker.state, note)
        except MsautoError as error:
            self._fail(error)
            return
        breaker.state = applied.breaker
        for found in applied.results.items():
            note(found)

    def _note(
        self,
        targets: Targets,
        failures: BatchFailures,
        breaker: CircuitBreaker,
        on_result: OnResult,
        found: tuple[int, TargetResult],
    ) -> None:
        """Take the result of a target; the first time, notify as if it were applied now."""
        number, result = found
        result = structs.replace(result, target=targets[number])
        failures.note(result, breaker)
        if number in self._known:
            return
        self._known.add(number)
        on_result(number, result)
        if result.outcome != "not attempted":
            self._context.notify(events.TargetStarted(result.target))
            for index, request in enumerate(result.requests):
                if request.outcome != "not sent":
                    self._context.notify(events.RequestSettled(result.target, index, request))
        self._context.notify(events.TargetFinished(result))

    async def _watch(self, failures: BatchFailures) -> None:
        """Stop the workers once the run is cancelled or the session is lost.

        Once the batch has failed, they still finish the targets in progress.
        """
        try:
            while not self._context.cancellation.requested:
                if failures.stop_reason() is not None:
                    self._workers.stop_starting()
                await self._context.cancellation.sleep(self._context.clock, _CHECK_SECONDS)
                self._workers.check()
        except MsautoError as error:
            self._fail(error)
        self._stopped.set()

    def _fail(self, error: MsautoError) -> None:
        self._error = self._error or one_line(error)
        self.unsettled = True
        self._stopped.set()

    async def _collect(self, server: str, targets: Targets, note: Callable[[tuple[int, TargetResult]], None]) -> None:
        """Take the results that no worker has reported from the ledger, once the worker has stopped."""
        records: Mapping[int, TargetRecord] = {}
        has_ended = cancelled = False
        try:
            has_ended = await self._workers.wait_until_ended(server)
        except asyncio.CancelledError:
            cancelled = True
        except MsautoError as error:
            self._fail(error)
        with suppress(MsautoError):
            records = self._workers.records(targets)
        for number, target in targets.items():
            record = records.get(number)
            if record is not None and record.outcome is not None:
                note((number, result_of(record)))
            elif record is None or record.begun is not None or not has_ended:
                self.unsettled = True
                message = "its worker has not reported; the next run settles it by reading"
                requests = (RequestResult("unverified", message=message),) * len(target.requests)
                note((number, TargetResult(target, "unverified", message, requests)))
        if cancelled:
            raise asyncio.CancelledError
