"""Applies one target: carries out the commands of the state machine, and records their results."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from msgspec import structs

from msauto.applying import states, verification
from msauto.applying.apply_context import ApplyContext, ServerConnection
from msauto.applying.circuit_breaker import TargetContact
from msauto.applying.states import RetryPolicy, State
from msauto.applying.target_memory import TargetMemory
from msauto.applying.verification import Comparison
from msauto.aspects import is_deletion
from msauto.concurrency import ConcurrencySlot
from msauto.errors import (
    AnotherClipError,
    LedgerError,
    MsautoError,
    NotSentError,
    RejectedError,
    UnreachableError,
    one_line,
)
from msauto.model import events
from msauto.model.plan import Request, Target
from msauto.model.ports import LiveTarget, WritePermit
from msauto.model.requests import is_repeatable
from msauto.model.result import TargetResult
from msauto.planning import deletion, target_reading

T = TypeVar("T")


class DownloadProgress:
    """Implements the port ``DownloadObserver`` for one request."""

    def __init__(self, context: ApplyContext, target: Target, index: int) -> None:
        self._notify = context.notify
        self._request = (target, index)

    def asked(self, seconds: float) -> None:
        """Notify that the server was asked; it may be creating the file."""
        self._notify(events.DownloadAsked(*self._request, seconds))

    def received(self, size: int, total: int | None) -> None:
        """Notify how much was received."""
        self._notify(events.DownloadReceived(*self._request, size, total))


class TargetExecutor:
    """Applies one target with :meth:`run`; ``resumed`` is the progress to continue with after a crash."""

    def __init__(
        self,
        context: ApplyContext,
        server: ServerConnection,
        contact: TargetContact,
        target: Target,
        slot: ConcurrencySlot,
        resumed: states.TargetProgress | None = None,
    ) -> None:
        self._context = context
        self._server = server
        self._target = target
        self._slot = slot
        self._contact = contact
        self._memory = TargetMemory(context, target)
        self._progress = resumed or states.begin(len(target.requests), wait=target.wait)
        self._permit: WritePermit | None = None  # to send the request that is journalled
        self._started = resumed is not None
        self._guard_holds = False
        self._began = context.clock.monotonic()
        self._all_sent: float | None = None
        self._comparison = Comparison()
        self.result: TargetResult | None = None

    async def run(self) -> None:
        """Apply the target. Sets ``result`` whatever happens; if cancelled, a request in progress is unverified."""
        try:
            while self._progress.state is not State.FINISHED:
                event = await self._carry_out()
                self._advance(states.step(self._progress, event, self._policy))
        except asyncio.CancelledError:
            progress = self._progress
            if progress.state is State.SENT and self._target.requests[progress.index].dest is not None:
                # A download changes nothing on the server, so it is not in doubt.
                failed = states.Failed("stopped at once: the file was not fetched")
                self._advance(states.step(structs.replace(progress, cancelled=True), failed, self._policy))
            self._advance(states.abandon(self._progress, "stopped at once"))
            raise
        except Exception as error:  # noqa: BLE001 - an error of one target must not affect the others
            self._advance(states.abandon(self._progress, f"internal error: {one_line(error)}", cancelled=False))
        finally:
            self._release_permit()
            self._finish()

    @property
    def _policy(self) -> RetryPolicy:
        policy = self._context.policy
        return policy.half_open if self._contact.half_open else policy

    def _advance(self, progress: states.TargetProgress) -> None:
        """Adopt a progress, and record the request that it settled."""
        settled, self._progress = self._progress.index, progress
        if progress.index > settled:
            context, results = self._context, progress.results
            context.commits.note(partial(context.journal.settled, context.run, self._target, settled, results[settled]))
            context.notify(events.RequestSettled(self._target, settled, results[settled]))
            self._memory.request_settled(settled, results)
            self._contact.settled(self._target.requests[settled], results[settled], self._target.name)

    async def _carry_out(self) -> states.Event:
        """Do what the state asks for."""
        match self._progress.state:
            case State.READY:
                return await self._write_ahead(self._progress.index)
            case State.SENT:
                return await self._send(self._progress.index)
            case State.SETTLING:
                return await self._settle(self._progress.index)
            case State.VERIFYING:
                return await self._verify()
        return await self._pause()

    async def _write_ahead(self, index: int) -> states.Event:
        context, target = self._context, self._target
        event: states.Event | None = self._why_not(index)
        if event is None and target.requests[index].guarded and not self._guard_holds:
            event = await self._check_guard(index)
        if event is None:
            event = await self._check_again(index)
        if event is not None:
            return event
        if target.requests[index].dest is None:
            # Nothing may wait between the journal and the server, so the permit comes first.
            self._permit = await self._server.sender.permit()
            if (event := self._why_not(index)) is not None:
                self._release_permit()
                return event
        first = index == 0 and not self._progress.tries
        if first:
            self._started = True
            context.notify(events.TargetStarted(target))
        sending = partial(context.journal.sending, context.run, target, index)
        try:
            await context.commits.write(sending, *self._memory.before_request(index, first=first))
        except MsautoError as error:
            self._release_permit()
            return states.Blocked(one_line(error))
        return states.Journalled()

    def _why_not(self, index: int) -> states.RunCancelled | states.Blocked | None:
        """Return why the request must not be sent; the first one also if a later one must not."""
        if self._context.cancellation.requested:
            return states.RunCancelled()
        requests = self._target.requests[index : index + 1 if index else None]
        reason = self._contact.breaker.state.why_not(requests, self._target.server, self._context.run)
        return None if reason is None else states.Blocked(reason)

    def _release_permit(self) -> None:
        if self._permit is not None:
            self._permit.release()
            self._permit = None

    async def _check_guard(self, index: int) -> states.AnotherClip | states.Blocked | None:
        """Return why a guarded request must not be sent; ``None`` once reading shows all requests before it."""
        try:
            part = verification.only(self._target, 0, index)
            missing = verification.not_seen(part, await self._read(part, index))
        except AnotherClipError as error:
            return states.AnotherClip(error.message)
        except Exception as error:  # noqa: BLE001 - whatever the error, nothing was seen
            return states.Blocked(f"the rest was not sent, because the target cannot be read: {one_line(error)}")
        self._guard_holds = not missing
        if missing:
            names = ", ".join(missing)
            return states.Blocked(f"the rest was not sent, because reading does not show what was written: {names}")
        return None

    async def _check_again(self, index: int) -> states.Blocked | None:
        """Return why a request must not be sent any more: a deletion, and the first write some time after planning.

        A deletion that may have been done before is settled by what is read.
        """
        context, target, progress = self._context, self._target, self._progress
        since, now = context.read_since if index == 0 and not progress.tries else None, context.clock.now()
        is_old = since is not None and not verification.is_recent(since, now)
        deletes = target.kind == "asset" and any(
            is_deletion(target.changes[each]) for each in target.requests[index].changes
        )
        if not is_old and not deletes:
            return None
        maybe_done = isinstance(progress.failure, states.Rejected)
        why, recent = None, self._server.shared.recent(self._server.reader, now)
        try:
            if is_old:
                why = await self._ask(target_reading.what_changed(target, recent))
            if deletes and why is None:
                listed = await self._ask(self._server.shared.listed(self._server.reader, target.database))
                why = await self._ask(deletion.why_not_deleted(target, listed, recent, again=maybe_done))
        except Exception as error:  # noqa: BLE001 - whatever the error, nothing was seen
            return states.Blocked(f"it cannot be read again before it is changed: {one_line(error)}", maybe_done)
        if why is None:
            return None
        return states.Blocked(
            f"not sent again: {why}" if maybe_done else f"changed since it was planned: {why}", maybe_done
        )

    async def _send(self, index: int) -> states.Event:
        self._context.notify(events.RequestSending(self._target, index, self._progress.tries))
        request = self._target.requests[index]
        if request.dest is not None:
            return await self._download(request, index)
        assert self._permit is not None  # taken before the write-ahead
        try:
            answer = await self._permit.send(request)
        except LedgerError as error:  # the ledger was lost after the request was journalled
            return states.NotSent(one_line(error))
        except Exception as error:  # noqa: BLE001 - after an unknown error the request is in doubt
            self._contact.failed(error, "write")
            event = _event_of(error, request)
            if isinstance(event, states.InDoubt):
                self._context.notify(events.RequestInDoubt(self._target, index, one_line(error)))
            return event
        finally:
            self._release_permit()
        self._contact.answered()
        return states.Accepted(answer.status)

    async def _download(self, request: Request, index: int) -> states.Event:
        """Download a file. It changes nothing on the server, so an error is never in doubt."""
        contact = self._contact
        if contact.breaker.state.failures:  # other targets wait for an answer, and a file may take an hour
            await self._ping()
            if contact.shut_out:
                reason = contact.breaker.state.why_not((request,), self._target.server, self._context.run)
                return states.Failed(str(reason))
        try:
            progress = DownloadProgress(self._context, self._target, index)
            answer = await self._server.sender.fetch(request, progress)
        except Exception as error:  # noqa: BLE001 - after any error the file is not complete
            contact.failed(error, "download")
            return states.Failed(one_line(error), getattr(error, "status", None))
        contact.answered()
        self._memory.downloaded(index, answer.sha256)
        return states.Accepted(answer.status)

    async def _pause(self) -> states.Event:
        context, progress = self._context, self._progress
        if progress.state is State.WAITING_FOR_RESTORE:
            context.notify(events.WaitingForRestore(self._target, self._elapsed(), self._target.wait))
            self._slot.leave()
        if progress.state not in {State.BACKING_OFF, State.WAITING_FOR_RESTORE}:
            await context.clock.sleep(progress.pause)
        elif not await context.cancellation.sleep(context.clock, progress.pause):
            return states.RunCancelled()
        await self._slot.enter()
        return states.PauseEnded()

    async def _settle(self, index: int) -> states.Event:
        part = verification.only(self._target, index, index + 1)
        if not verification.can_see(part):
            if isinstance(self._progress.failure, states.InDoubt):
                await self._ping()
            return states.ExpectationRead("hidden")
        try:
            live = await self._read(part, index + 1)
            return states.ExpectationRead(verification.verdict_of(part, live))
        except AnotherClipError as error:
            return states.AnotherClip(error.message)
        except Exception as error:  # noqa: BLE001 - whatever the error, nothing was seen
            return states.Unreadable(one_line(error))

    async def _verify(self) -> states.Event:
        done = verification.only(self._target, 0, self._progress.done)
        can_see = verification.can_see(done)
        try:
            live = await self._read(done, self._progress.index)
        except AnotherClipError as error:
            return states.AnotherClip(error.message)
        except Exception as error:  # noqa: BLE001 - whatever the error, nothing is verified
            if can_see:
                return states.Unreadable(one_line(error), self._elapsed())
        if not can_see:  # what is run
            live = LiveTarget()
        self._comparison = comparison = verification.compare(done, live)
        if can_see:
            self._memory.verified(done, live, comparison)
        else:
            self._memory.keep(comparison.remembered)
        return states.TargetRead(comparison.differences, self._elapsed())

    # Reading: every answer, and every error, is reported to the circuit breaker ------------------------------------

    async def _read(self, part: Target, sent: int) -> LiveTarget:
        """Read what the requests of ``part`` change; ``sent``: how many requests of the target may have been done."""
        if self._contact.shut_out:
            raise UnreachableError("not asked again, because the server rejects our credentials")
        reader, places = self._server.reader.fresh(), verification.addresses(self._target, sent)
        return await self._ask(verification.read_again(reader, self._server.shared, part, places))

    async def _ping(self) -> None:
        """Find out whether the server can be reached, by a read that it answers at once."""
        reader, target = self._server.reader.fresh(), self._target
        with suppress(Exception):
            if target.kind == "rss_channel":
                await self._ask(reader.read_channel(target.address.name))
            else:
                await self._ask(reader.has_database(target.database))

    async def _ask(self, reading: Awaitable[T]) -> T:
        try:
            found = await reading
        except AnotherClipError:
            self._contact.answered()
            raise
        except Exception as error:
            self._contact.failed(error, "read")
            raise
        self._contact.answered()
        return found

    def _elapsed(self) -> float:
        """Seconds since the first call, which follows the last request."""
        now = self._context.clock.monotonic()
        if self._all_sent is None:
            self._all_sent = now
        return now - self._all_sent

    def _finish(self) -> None:
        context, progress = self._context, self._progress
        outcome, message = states.conclude(progress)
        if progress.another:
            self._comparison = Comparison()
            self._memory.another_clip(progress.results)
        self._contact.end(failed=outcome in {"failed", "unverified"})
        results, found = progress.all_results, self._comparison
        self.result = TargetResult(
            self._target,
            outcome,
            message,
            results,
            progress.differences,
            found.learned,
            found.seen,
            found.unseen,
            context.clock.monotonic() - self._began,
        )
        self._memory.target_finished(results)
        if self._started:
            context.commits.note(partial(context.journal.finished, context.run, self.result))
        context.notify(events.TargetFinished(self.result))


def _event_of(error: Exception, request: Request) -> states.NotSent | states.Rejected | states.InDoubt:
    """Return what an error shows about a write: not sent, rejected, or in doubt."""
    if isinstance(error, NotSentError):
        return states.NotSent(one_line(error))
    if isinstance(error, RejectedError):
        return states.Rejected(error.status, one_line(error), error.retry_after, is_repeatable(request))
    return states.InDoubt(one_line(error))
