"""The boundary of secrets while a plan is applied: the journal and the observer receive redacted values.

The executor sends the real plan. What it records and reports passes through here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import replace

from msauto.model import events
from msauto.model.plan import Plan, Target
from msauto.model.ports import Journal
from msauto.model.result import RequestResult, Result, TargetResult
from msauto.secrets.redactor import Redactor


class RedactedJournal:
    """A journal that receives no secret; each target is redacted to the same value every time."""

    def __init__(self, journal: Journal, redactor: Redactor) -> None:
        self._journal = journal
        self._redactor = redactor

    def together(self) -> AbstractContextManager[None]:
        """Make the calls inside durable as one."""
        return self._journal.together()

    def commit(self, calls: Sequence[Callable[[], object]]) -> Future[None]:
        """Make the calls durable as one, without waiting for it."""
        return self._journal.commit(calls)

    def start(self, plan: Plan, playbooks: Sequence[str]) -> str:
        """Open a run with its plan."""
        return self._journal.start(self._redactor.plan(plan), playbooks)

    def reopen(self, run: str, targets: Sequence[Target]) -> bool:
        """Go on writing about a run that died."""
        return self._journal.reopen(run, tuple(map(self._redactor.target, targets)))

    def leave(self, run: str) -> None:
        """Let go of a run that was reopened."""
        self._journal.leave(run)

    def planned(self, run: str, target: Target) -> None:
        """All requests of a target, before its first is sent."""
        self._journal.planned(run, self._redactor.target(target))

    def sending(self, run: str, target: Target, index: int) -> None:
        """The request is about to leave."""
        self._journal.sending(run, self._redactor.target(target), index)

    def settled(self, run: str, target: Target, index: int, result: RequestResult) -> None:
        """Pass on the result of the request."""
        self._journal.settled(run, self._redactor.target(target), index, self._redactor.request_result(result))

    def finished(self, run: str, result: TargetResult) -> None:
        """Pass on the result of the target."""
        self._journal.finished(run, self._redactor.target_result(result))

    def end(self, run: str, result: Result) -> None:
        """Close the run."""
        self._journal.end(run, self._redactor.result(result))


class RedactedObserver:
    """An observer that receives no secret."""

    def __init__(self, observer: events.Observer, redactor: Redactor) -> None:
        self._observer = observer
        self._redactor = redactor

    def notify(self, event: events.Event) -> None:
        """Pass on what may be shown."""
        redactor = self._redactor
        if isinstance(event, events.RequestSettled):
            result = redactor.request_result(event.result)
            event = replace(event, target=redactor.target(event.target), result=result)
        elif isinstance(event, events.TargetFinished):
            event = replace(event, result=redactor.target_result(event.result))
        elif isinstance(event, events.RunEnded):
            event = replace(event, result=redactor.result(event.result))
        elif not isinstance(event, events.RunStarted):
            event = replace(event, target=redactor.target(event.target))
        self._observer.notify(event)
