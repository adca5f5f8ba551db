"""One target's life: carries out what ``step`` commands, and tells the journal, the memory and the observer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from msgspec import structs

from msauto.applying import memory_writes as keeping
from msauto.applying.cancellation import Cancellation
from msauto.applying.circuit_breaker import CircuitBreaker, contact_of
from msauto.applying.download_progress import DownloadProgress
from msauto.applying.group_commit import Call, GroupCommit
from msauto.applying.states import (
    Answered,
    AnswerLost,
    Command,
    Event,
    ExpectationRead,
    Failed,
    Finish,
    Journalled,
    NotJournalled,
    NotSent,
    Pause,
    PauseEnded,
    ReadExpectation,
    Rejected,
    RetryPolicy,
    RunCancelled,
    Send,
    State,
    TargetProgress,
    Transition,
    Unreadable,
    Verified,
    Verify,
    WriteAhead,
)
from msauto.applying.transitions import abandon, begin, conclude, step
from msauto.concurrency import ConcurrencySlot
from msauto.errors import MsautoError, NotSentError, RejectedError, UnreachableError
from msauto.model import events
from msauto.model.plan import Aspect, Json, Request, Target, TargetId
from msauto.model.ports import Clock, Journal, LiveTarget, Memory, Reader, Sender
from msauto.model.result import TargetResult
from msauto.verification import verifying as proving
from msauto.verification.memory_updates import learned, memories

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ServerConnection:
    """The ports of one server, the folder readings that its proofs share, and how it stands in the run."""

    reader: Reader
    sender: Sender
    folders: proving.SharedFolders = field(default_factory=proving.SharedFolders, compare=False, repr=False)
    standing: CircuitBreaker = field(default_factory=CircuitBreaker, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ApplyContext:
    """What all targets of a run share."""

    run: str
    journal: Journal
    memory: Memory
    clock: Clock
    observer: events.Observer
    gate: GroupCommit
    stop: Cancellation
    policy: RetryPolicy

    def tell(self, event: events.Event) -> None:
        """Tell the observer; what it does wrong is not the run's affair."""
        with suppress(Exception):
            self.observer.tell(event)


class TargetExecutor:
    """Applies one target: :meth:`live` ends with its result, whatever happens; only cancelling leaves it early."""

    def __init__(
        self,
        context: ApplyContext,
        server: ServerConnection,
        target: Target,
        place: ConcurrencySlot,
        again: Transition | None = None,
    ) -> None:
        self._context = context
        self._server = server
        self._target = target
        self._place = place
        self._progress: TargetProgress
        self._again = again  # the turn with which a life goes on that a dead run has begun
        self._begun = again is not None
        self._guarded = False
        self._all_sent: float | None = None
        self._ahead: int | None = None
        self._files: dict[int, str] = {}
        self._learned: dict[str, Json] = {}
        self._shown: tuple[int, tuple[Aspect, ...]] = (0, ())  # what the proof has seen, and what it cannot
        self._proved: list[tuple[TargetId, dict[str, Json]]] = []  # what the last proof says is to be kept
        self._reach_before = server.standing.reach
        self._locked_out = False  # this very target was not let in
        self._silent = ""  # why the server could not be reached when it was last asked
        self.result: TargetResult | None = None

    async def live(self) -> None:
        """Run to the end. Sets ``result``, also when cancelled: the fate of what was under way is then unknown."""
        try:
            await self._run()
        except asyncio.CancelledError:
            if self._is_fetching():
                self._take(step(self._progress, Failed("stopped at once: the file was not fetched"), self._patience))
            self._take(abandon(self._progress, "stopped at once"))
            raise
        except Exception as error:  # noqa: BLE001 - one target's mishap must not become the others'
            self._take(abandon(self._progress, f"internal error: {_words(error)}"))
        finally:
            self._finish()

    async def _run(self) -> None:
        first = self._again or begin(len(self._target.requests), wait=self._target.wait)
        command = self._take(first)
        while not isinstance(command, Finish):
            event = await self._carry_out(command)
            command = self._take(step(self._progress, event, self._patience))

    def _is_fetching(self) -> bool:
        """Tell whether a download is under way: it changes nothing on the server, so its fate is known."""
        sending = self._progress.state is State.SENDING
        return sending and self._target.requests[self._progress.index].dest is not None

    @property
    def _patience(self) -> RetryPolicy:
        policy = self._context.policy
        reach = self._server.standing.reach
        in_doubt = reach.locked_out or reach.missed_before(self._reach_before) > 0
        return policy.in_doubt if in_doubt else policy

    def _take(self, turn: Transition) -> Command:
        """Make a turn's progress ours, and record what it settled."""
        self._progress = turn.progress
        if turn.settled is not None:
            result = turn.progress.results[turn.settled]
            context = self._context
            context.gate.note(partial(context.journal.settled, context.run, self._target, turn.settled, result))
            context.tell(events.RequestSettled(self._target, turn.settled, result))
            self._note(self._settled_items(turn.settled))
        return turn.command

    async def _carry_out(self, command: Command) -> Event:
        match command:
            case WriteAhead(index):
                return await self._write_ahead(index)
            case Send(index):
                return await self._send(index)
            case ReadExpectation(index):
                return await self._look(index)
            case Pause():
                return await self._pause(command)
            case Verify():
                return await self._prove()
            case Finish():
                raise AssertionError("nothing is left to carry out")

    # Writing ---------------------------------------------------------------------------------------------------

    async def _write_ahead(self, index: int) -> Event:
        context, target = self._context, self._target
        if context.stop.requested:
            return RunCancelled()
        if self._server.standing.reach.given_up:
            return NotJournalled(self._server.standing.reach.words(target.server, context.run))
        if target.requests[index].guarded and not self._guarded:
            held_back = await self._hold_back(index)
            if held_back is not None:
                return NotJournalled(held_back)
        calls: list[Call] = [partial(context.journal.sending, context.run, target, index)]
        if index == 0 and not self._progress.tries:
            self._begun = True
            context.tell(events.TargetStarted(target))
            calls = [partial(context.journal.planned, context.run, target), self._forget, *calls]
        items = keeping.ahead(target, index, context.run)
        calls += [partial(context.memory.remember, each, items) for each in self._ids()[:1] if items]
        self._ahead = index
        try:
            await context.gate.write(*calls)
        except MsautoError as error:
            return NotJournalled(_words(error))
        return Journalled()

    async def _hold_back(self, index: int) -> str | None:
        """Return why a guarded request is not sent; ``None`` once all before it was seen, which is asked once."""
        try:
            missing = proving.not_seen(proving.only(self._target, 0, index), await self._read(0, index))
        except Exception as error:  # noqa: BLE001 - whatever kept us from reading, nothing was seen
            return f"the rest was not sent, for the target cannot be read: {_words(error)}"
        self._guarded = not missing
        if missing:
            return f"the rest was not sent, for what was written is not seen, or not recognised: {', '.join(missing)}"
        return None

    def _forget(self) -> None:
        """Forget what is about to be written anew: should the run die, nothing is known of it but by reading."""
        written = keeping.written(self._target)
        for target in self._ids():
            known = self._context.memory.recall(target)
            gone = {item: None for item in known if keeping.is_of(item, written)}
            if gone:
                self._context.memory.remember(target, gone)
        if keeping.loads_xmp(self._target):
            # Whichever clips the batch names: what was last written of a field that is not reported may be gone.
            self._context.memory.forget_assets(self._target.server, self._target.database, "xmp:")

    def _ids(self) -> tuple[TargetId, ...]:
        """Return what memories are kept under: after the run, and before it if the asset is renamed."""
        after = self._target.id
        if proving.rename_of(self._target) is None or self._target.address.namespace:
            return (after,)
        return (after, structs.replace(after, name=self._target.address.name))

    async def _send(self, index: int) -> Event:
        self._context.tell(events.RequestSending(self._target, index, self._progress.tries))
        request = self._target.requests[index]
        if request.dest is not None:
            return await self._fetch(request, index)
        try:
            answer = await self._server.sender.send(request)
        except Exception as error:  # noqa: BLE001 - what we do not know the meaning of, we do not know the fate of
            self._hear(error, read=False)
            return _unanswered(error)
        self._hear()
        return Answered(answer.status)

    async def _fetch(self, request: Request, index: int) -> Event:
        """Download: it changes nothing on the server, so whatever goes wrong, it is known that it was not done."""
        context, standing = self._context, self._server.standing
        if standing.reach.in_doubt:  # a film may be made for an hour, and others wait for our word
            await self._knock()
            if self._locked_out:
                return Failed(standing.reach.words(self._target.server, context.run))
        try:
            remembered = context.memory.recall(self._ids()[0])
            watch = DownloadProgress(self._target, index, remembered, self._note, context.tell)
            answer = await self._server.sender.fetch(request, watch)
        except Exception as error:  # noqa: BLE001 - a file that is not there whole is not there
            self._hear(error, read=False)  # one that breaks off is no silence
            return Failed(_words(error), getattr(error, "status", None))
        self._hear()
        self._files[index] = answer.sha256
        return Answered(answer.status)

    async def _pause(self, pause: Pause) -> Event:
        context = self._context
        if pause.aside:
            context.tell(events.WaitingForRestore(self._target, self._elapsed(), self._target.wait))
            self._place.leave()
        if not pause.stoppable:
            await context.clock.sleep(pause.seconds)
        elif not await context.stop.sleep(context.clock, pause.seconds):
            return RunCancelled()
        await self._place.enter()
        return PauseEnded()

    # Reading ---------------------------------------------------------------------------------------------------

    async def _look(self, index: int) -> Event:
        if not proving.can_see(proving.only(self._target, index, index + 1)):
            if isinstance(self._progress.trouble, AnswerLost):
                await self._knock()
            return ExpectationRead("hidden")
        try:
            live = await self._read(index, index + 1)
            return ExpectationRead(proving.verdict_of(self._target.requests[index], live))
        except Exception as error:  # noqa: BLE001 - whatever kept us from reading, nothing was seen
            return Unreadable(_words(error))

    async def _knock(self) -> None:
        """Ask the server whether it is still there: by what it answers at once."""
        reader, target = self._server.reader.fresh(), self._target
        with suppress(Exception):
            if target.kind == "rss_channel":
                await self._asked(reader.read_channel(target.address.name))
            else:
                await self._asked(reader.has_database(target.database))

    async def _prove(self) -> Event:
        done = proving.only(self._target, 0, self._progress.done)
        if not proving.can_see(done):
            self._note(memories(done, LiveTarget()))
            self._shown = proving.shown(done, LiveTarget())
            return Verified((), self._elapsed())
        try:
            live = await self._read(0, self._progress.done)
            differences = proving.differences_of(done, live)
        except Exception as error:  # noqa: BLE001 - whatever kept us from reading, nothing is proved
            return Unreadable(_words(error), self._elapsed())
        self._learned, self._shown = learned(done, live), proving.shown(done, live)
        self._proved = keeping.proved(done, live, differences, self._ids(), self._context.memory.recall)
        return Verified(differences, self._elapsed())

    async def _read(self, first: int, end: int) -> LiveTarget:
        """Read what the requests from ``first`` to before ``end`` are about."""
        places = proving.addresses(self._target, max(end, self._progress.index))
        part = proving.only(self._target, first, end)
        if self._locked_out:  # once is enough: asking on could lock the account
            raise UnreachableError("it was not asked any more, for the server does not let us in")
        return await self._asked(proving.read_again(self._server.reader.fresh(), self._server.folders, part, places))

    async def _asked(self, reading: Awaitable[T]) -> T:
        """Return what a reading gives; note what it says of the way to the server."""
        try:
            found = await reading
        except Exception as error:
            self._hear(error, read=True)
            raise
        self._hear()
        return found

    def _hear(self, error: Exception | None = None, *, read: bool = False) -> None:
        """Take note of what an answer, or its lack, says of the way to the server."""
        standing = self._server.standing
        contact = "answered" if error is None else contact_of(error, read=read)
        if contact is None:
            return
        self._silent = _words(error) if error is not None and contact == "silent" else ""
        if error is not None and contact == "locked out":
            standing.learn(standing.reach.not_let_in(_words(error)))
            self._locked_out = True
        elif contact == "answered":
            standing.learn(standing.reach.answered())

    def _elapsed(self) -> float:
        """Seconds since all was sent."""
        now = self._context.clock.monotonic()
        if self._all_sent is None:
            self._all_sent = now
        return now - self._all_sent

    # Keeping ---------------------------------------------------------------------------------------------------

    def _settled_items(self, index: int) -> dict[str, Json]:
        """Return what is to be kept at once of a request that is settled, proved or not."""
        results = self._progress.results
        items = keeping.settled(self._target, index, results, self._context.run)
        if results[index].outcome == "done" and index in self._files:
            items |= keeping.fetched(self._target, index, self._files[index])
        return items

    def _note(self, items: dict[str, Json]) -> None:
        """Keep items of the target, whatever it is called before and after the run."""
        for target in self._ids() if items else ():
            self._context.gate.note(partial(self._context.memory.remember, target, items))

    def _finish(self) -> None:
        outcome, message = conclude(self._progress)
        context, standing = self._context, self._server.standing
        if self._silent and outcome in {"failed", "unverified"}:
            standing.learn(standing.reach.missed_by(self._reach_before, self._silent))
        results, differences = self._progress.all_results, self._progress.differences
        self.result = TargetResult(self._target, outcome, message, results, differences, self._learned, *self._shown)
        for name, items in self._proved:
            context.gate.note(partial(context.memory.remember, name, items))
        if self._ahead is not None and self._progress.all_results[self._ahead].outcome == "not sent":
            self._note(keeping.undone(self._target, self._ahead, context.run, touched=self._ahead > 0))
        if self._begun:
            context.gate.note(partial(context.journal.finished, context.run, self.result))
        context.tell(events.TargetFinished(self.result))


def _unanswered(error: Exception) -> NotSent | Rejected | AnswerLost:
    """Return what an error says of a write: that it never left, was refused, or may have been done."""
    if isinstance(error, NotSentError):
        return NotSent(_words(error))
    if isinstance(error, RejectedError):
        return Rejected(error.status, _words(error), error.retry_after)
    return AnswerLost(_words(error))


def _words(error: BaseException) -> str:
    """Return an error in one line."""
    text = error.message if isinstance(error, MsautoError) else str(error)
    return " ".join(text.split()) or type(error).__name__
