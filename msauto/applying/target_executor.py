"""Applies one target: carries out the commands of the state machine, and records their results."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import Final, NamedTuple, TypeVar

from msgspec import Struct, structs

from msauto.applying import states, verification
from msauto.applying.apply_context import ApplyContext, ServerConnection
from msauto.applying.states import State
from msauto.applying.target_memory import TargetMemory
from msauto.applying.verification import Guard, Verification
from msauto.aspects import NUMBERED, is_deletion
from msauto.circuit_breaker import TargetContact
from msauto.concurrency import ConcurrencySlot
from msauto.errors import (
    AnotherClipError,
    DownloadError,
    LedgerError,
    MsautoError,
    NotSentError,
    RejectedError,
    UnreachableError,
    one_line,
)
from msauto.model import events
from msauto.model.live import Asset
from msauto.model.plan import Request, Target
from msauto.model.ports import LiveTarget, Reader, WritePermit
from msauto.model.requests import is_repeatable
from msauto.model.result import TargetResult
from msauto.model.snapshot import Effect, Thing, thing_of
from msauto.planning import deletion
from msauto.planning.target_reading import why_title_is_taken

T = TypeVar("T")


class DownloadProgress(Struct):
    """Implements the port ``DownloadObserver`` for one request."""

    notify: events.Notify
    target: Target
    index: int

    def asked(self, seconds: float) -> None:
        """Notify that the server was asked; it may be creating the file."""
        self.notify(events.DownloadAsked(self.target, self.index, seconds))

    def received(self, size: int, total: int | None) -> None:
        """Notify how much was received."""
        self.notify(events.DownloadReceived(self.target, self.index, size, total))


class _ReasonsToCheck(NamedTuple):
    """Why a target is read again before a request.

    ``is_old``: planning, or the last reading, is longer ago than a minute. ``deletes``: the request deletes something,
    or is a handler that precedes the deletion. ``is_resent``: the server has rejected it. ``is_guarded``: it waits
    until earlier effects show. ``follows_rename``: by the request before it. ``is_renumbered``: that one may have given
    items other numbers.
    """

    is_old: bool
    deletes: bool
    is_resent: bool
    is_guarded: bool
    follows_rename: bool
    is_renumbered: bool


_NEVER: Final = datetime.min.replace(tzinfo=UTC)


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
        self._began = context.clock.monotonic()
        # What an earlier process has read may be hours old.
        self._read_at = _NEVER if resumed else context.read_since or context.clock.now()
        self._read_link = "", _NEVER  # the one whose title led to it, and when
        self._all_sent: float | None = None
        self._verification = Verification()
        self.result: TargetResult | None = None

    async def run(self) -> None:
        """Apply the target. Sets ``result`` whatever happens; if cancelled, a request in progress is unverified."""
        try:
            while self._progress.state is not State.FINISHED:
                match self._progress.state:
                    case State.READY:
                        event = await self._write_ahead(self._progress.index)
                    case State.SENT:
                        event = await self._send(self._progress.index)
                    case State.SETTLING:
                        event = await self._settle(self._progress.index)
                    case State.VERIFYING:
                        event = await self._verify()
                    case _:
                        event = await self._pause()
                policy = self._contact.policy(self._context.policy)
                self._advance(states.step(self._progress, event, policy))
        except asyncio.CancelledError:
            self._stop_at_once()
            raise
        except Exception as error:  # noqa: BLE001 - an error of one target must not affect the others
            self._advance(states.abandon(self._progress, one_line(error), cancelled=False))
        finally:
            self._release_permit()
            self._finish()

    def _stop_at_once(self) -> None:
        """End a target that was cancelled. A download changes nothing on the server, so it is not in doubt."""
        progress = self._progress
        requests = self._target.requests
        if progress.state is State.SENT and requests[progress.index].dest is not None:
            failed = states.Failed("stopped at once: the file was not fetched")
            cancelled = structs.replace(progress, cancelled=True)
            self._advance(states.step(cancelled, failed, self._context.policy))
        self._advance(states.abandon(self._progress, "stopped at once"))

    def _advance(self, progress: states.TargetProgress) -> None:
        """Adopt a progress, and record the request that it settled."""
        index = len(self._progress.results)
        self._progress = progress
        if len(progress.results) == index:
            return
        context, target = self._context, self._target
        result = progress.results[index]
        settled = partial(context.journal.settled, context.run, target, index, result)
        context.commits.note(settled)
        context.notify(events.RequestSettled(target, index, result))
        self._memory.request_settled(index, progress.results)
        self._contact.settled(target.requests[index], result, target.name)

    async def _write_ahead(self, index: int) -> states.Event:
        """Take a permit, then check what must be checked, then journal: nothing else may wait before the request."""
        obstacle = self._why_not(index) or await self._obstacle(index)
        if obstacle is not None:
            return obstacle
        context, target = self._context, self._target
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

    async def _obstacle(self, index: int) -> states.Event | None:
        """Take a permit, and return why the request must not be sent, if it must not.

        What an accepted request was to make may show late: then the check is made again.
        """
        pauses = list(self._contact.policy(self._context.policy).read_pauses)
        while True:
            if self._target.requests[index].dest is None:
                self._permit = await self._server.sender.permit()
            obstacle = (
                self._why_not(index) or await self._check(index) or await self._check_link(index)
            )
            if obstacle is None:
                return None
            self._release_permit()
            if not isinstance(obstacle, Guard):
                return obstacle
            if not obstacle.late or not pauses:
                return self._blocked(obstacle.why)
            await self._context.clock.sleep(pauses.pop(0))

    def _blocked(self, why: str) -> states.Blocked:
        """Return why nothing more is sent: before the first request, in the middle, or after one in doubt."""
        if isinstance(self._progress.failure, states.Rejected):
            return states.Blocked(f"not sent again: {why}", in_doubt=True)
        return states.Blocked(f"changed since it was planned: {why}")

    def _why_not(self, index: int) -> states.RunCancelled | states.Blocked | None:
        """Return why the request must not be sent; the first one also if a later one must not."""
        if self._context.cancellation.requested:
            return states.RunCancelled()
        requests = self._target.requests
        if index > 0:
            requests = requests[index : index + 1]
        reason = self._contact.breaker.state.why_not(requests, self._target.server)
        return None if reason is None else states.Blocked(reason)

    def _release_permit(self) -> None:
        if self._permit is not None:
            self._permit.release()
            self._permit = None

    async def _check(self, index: int) -> Guard | states.AnotherClip | states.Blocked | None:
        """Return why a request must not be sent, where that must be asked; ``None``: it may be."""
        target = self._target
        reasons = self._reasons_to_check(index)
        if target.kind == "database" or not any(reasons):
            return None
        first = 0 if reasons.is_guarded else index
        effects = [*chain.from_iterable(target.effects[first:])]
        if index > 0 and not reasons.follows_rename and not verification.can_see(effects):
            return None
        try:
            live = await self._read_before(index, effects, reasons)
            why = await self._why_another(index, live.asset, reasons)
        except AnotherClipError as error:
            return states.AnotherClip(error.message)
        except Exception as error:  # noqa: BLE001 - whatever the error, nothing was seen
            return states.Blocked(
                f"it cannot be read again before it is changed: {one_line(error)}",
                in_doubt=reasons.is_resent,
            )
        if why is not None:
            return Guard(why)
        if target.kind == "asset" and live.asset is None:
            may_show_late = reasons.follows_rename or reasons.is_renumbered
            return Guard("it no longer exists", late=may_show_late)
        guard = verification.guard(target, index, live, self._context.secrets)
        return guard if guard.why else None

    def _reasons_to_check(self, index: int) -> _ReasonsToCheck:
        is_recent = verification.is_recent(self._read_at, self._context.clock.now())
        return _ReasonsToCheck(
            is_old=not is_recent,
            deletes=self._deletes(index),
            is_resent=isinstance(self._progress.failure, states.Rejected),
            is_guarded=self._target.requests[index].guarded,
            follows_rename=index > 0 and verification.rename_of(self._target) == index - 1,
            is_renumbered=index > 0 and self._may_be_renumbered(index),
        )

    async def _check_link(self, index: int) -> Guard | states.Blocked | None:
        """Return why the fields of a link must not be set, read at its title just now; a new one may show late."""
        target, request = self._target, self._target.requests[index]
        key = deletion.link_to_set(request)
        if key is None:
            return None
        now = self._context.clock.now()
        link, read = self._read_link
        is_checked = link == key and verification.is_recent(read, now)
        if is_checked and self._progress.failure is None:
            return None
        reader = self._server.reader.fresh(homes=True)
        try:
            why = await self._ask(
                deletion.why_not_set(reader, target.database, target.clip, key, target.altered)
            )
        except Exception as error:  # noqa: BLE001 - whatever the error, nothing was seen
            return self._blocked(f"the title of the link {key} cannot be read: {one_line(error)}")
        if why is not None:
            return Guard(why, late=request.guarded)
        self._read_link = key, now
        return None

    async def _read_before(
        self, index: int, effects: Sequence[Effect], reasons: _ReasonsToCheck
    ) -> LiveTarget:
        """Read what a request depends on.

        What other targets have just read is new enough before the first request; for a deletion, it is not.
        """
        target = self._target
        now = self._context.clock.now()
        reader = None
        things = target.depends_on.things
        if index == 0:
            things = [thing_of(name) for name in target.depends_on.names]
            things += verification.held_things(target, effects)
            if reasons.is_old and not reasons.deletes:
                reader = self._server.shared.recent(self._server.reader, now)
        live = await self._read(index, (*things, *_things(effects)), reader)
        self._read_at = now
        return live

    async def _why_another(
        self, index: int, asset: Asset | None, reasons: _ReasonsToCheck
    ) -> str | None:
        """Return why a request would meet another clip, or an entry of the clip that the plan does not know."""
        target, server = self._target, self._server
        if asset is None:
            return None
        recent = server.shared.recent(server.reader, self._read_at)
        if reasons.deletes:
            listed = await self._ask(server.shared.listed(server.reader, target.database))
            return await self._ask(
                deletion.why_not_deleted(
                    target, index, asset, listed, recent, is_resent=reasons.is_resent
                )
            )
        if reasons.is_old and index == 0:
            return await self._ask(why_title_is_taken(target, recent, asset))
        return None

    def _deletes(self, index: int) -> bool:
        """Return whether a request deletes something, or precedes the deletion of the asset."""
        target = self._target
        if target.kind != "asset":
            return False
        requests = target.requests[index : index + 1]
        if index == 0 and verification.deletes_asset(target):
            requests = target.requests
        for request in requests:
            for number in request.changes:
                if is_deletion(target.changes[number]):
                    return True
        return False

    def _may_be_renumbered(self, index: int) -> bool:
        """Return whether a request addresses by number after one that may have given items other numbers."""
        for request in self._target.requests[index - 1 : index + 1]:
            if NUMBERED.isdisjoint([effect.aspect for effect in request.effects]):
                return False
        return True

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
        # Other targets wait for an answer, and a file may take an hour.
        if contact.breaker.state.failures:
            await self._ping()
            if contact.shut_out:
                reason = contact.breaker.state.why_not((request,), self._target.server)
                return states.Failed(str(reason))
        try:
            progress = DownloadProgress(self._context.notify, self._target, index)
            answer = await self._server.sender.fetch(request, progress)
        except Exception as error:  # noqa: BLE001 - after any error the file is not complete
            contact.failed(error, "download")
            message = one_line(error)
            if isinstance(error, DownloadError):
                message += f"\n  → {error.remedy}"
            return states.Failed(message, getattr(error, "status", None))
        contact.answered()
        self._memory.downloaded(index, answer.sha256)
        return states.Accepted(answer.status)

    async def _pause(self) -> states.Event:
        context, progress = self._context, self._progress
        if progress.state is State.WAITING_FOR_RESTORE:
            context.notify(
                events.WaitingForRestore(self._target, self._elapsed(), self._target.wait)
            )
            self._slot.leave()
        if progress.state not in {State.BACKING_OFF, State.WAITING_FOR_RESTORE}:
            await context.clock.sleep(progress.pause)
        elif not await context.cancellation.sleep(context.clock, progress.pause):
            return states.RunCancelled()
        await self._slot.enter()
        return states.PauseEnded()

    async def _settle(self, index: int) -> states.Event:
        effects = self._target.requests[index].effects
        if not verification.can_see(effects):
            if isinstance(self._progress.failure, states.InDoubt):
                await self._ping()
            return states.EffectsRead("hidden")
        try:
            live = await self._read(index + 1, _things(effects))
            target = self._target
            # It may show that later requests do not fit any more.
            self._read_at = _NEVER
            return states.EffectsRead(
                verification.extent_of(target, index, live), verification.elsewhere(target, live)
            )
        except AnotherClipError as error:
            return states.AnotherClip(error.message)
        except Exception as error:  # noqa: BLE001 - whatever the error, nothing was seen
            return states.Unreadable(one_line(error))

    async def _verify(self) -> states.Event:
        target, progress = self._target, self._progress
        effects: list[Effect] = []
        for effects_of_request in target.effects[: progress.done]:
            effects += effects_of_request
        can_see = verification.can_see(effects)
        try:
            live = await self._read(progress.index, verification.things_to_verify(target, effects))
        except AnotherClipError as error:
            return states.AnotherClip(error.message)
        except Exception as error:  # noqa: BLE001 - whatever the error, nothing is verified
            if can_see:
                return states.Unreadable(one_line(error), self._elapsed())
        if not can_see:  # what is run
            live = LiveTarget()
        self._verification = verified = verification.verify(
            target, progress.results, live, can_see=can_see
        )
        if can_see:
            self._memory.verified(live, verified)
        else:
            self._memory.keep(verified.remembered)
        different = {difference.thing for difference in verified.differences}
        slow = {effect.thing for effect in effects if effect.slow}
        return states.TargetRead(
            verified.differences, self._elapsed(), bool(different) and different <= slow
        )

    # Reading: every answer, and every error, is reported to the circuit breaker ------------------------------------

    def _read(
        self, end: int, things: Iterable[Thing], reader: Reader | None = None
    ) -> Awaitable[LiveTarget]:
        """Read these things of the target, of which the requests before ``end`` may have been done."""
        if self._contact.shut_out:
            raise UnreachableError("not asked again, because the server rejects our credentials")
        reader = reader or self._server.reader.fresh(homes=True)
        return self._ask(
            verification.read_again(reader, self._server.shared, self._target, end, things)
        )

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
            answer = await reading
        except AnotherClipError:
            self._contact.answered()
            raise
        except Exception as error:
            self._contact.failed(error, "read")
            raise
        self._contact.answered()
        return answer

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
            self._verification = Verification()
            self._memory.another_clip(progress.results)
        self._contact.end(failed=outcome in {"failed", "unverified"})
        results, verified = progress.all_results, self._verification
        result = TargetResult(
            self._target,
            outcome,
            message,
            results,
            progress.differences,
            verified.left,
            verified.seen,
            verified.unseen,
            context.clock.monotonic() - self._began,
            verified.notes,
        )
        self.result = structs.replace(result, left={})  # for the ledger alone
        self._memory.target_finished(results)
        if self._started:
            context.commits.note(partial(context.journal.finished, context.run, result))
        context.notify(events.TargetFinished(self.result))


def _event_of(
    error: Exception, request: Request
) -> states.NotSent | states.Rejected | states.InDoubt:
    """Return what an error shows about a write: not sent, rejected, or in doubt."""
    if isinstance(error, NotSentError):
        return states.NotSent(one_line(error))
    if isinstance(error, RejectedError):
        return states.Rejected(
            error.status, one_line(error), error.retry_after, is_repeatable(request)
        )
    return states.InDoubt(one_line(error))


def _things(effects: Iterable[Effect]) -> list[Thing]:
    return [effect.thing for effect in effects]
