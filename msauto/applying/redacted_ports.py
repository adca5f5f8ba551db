"""The boundary of secrets while a plan is applied: the journal and the observer receive redacted values.

The executor sends the real plan. What it records and reports passes through here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from msgspec import structs

from msauto.model.events import Event, Observer, RequestInDoubt
from msauto.model.plan import Plan, Target
from msauto.model.ports import Journal
from msauto.model.result import RequestResult, Result, TargetResult
from msauto.secrets.redactor import Redactor

_REDACT: Final[Mapping[type, Callable[[Redactor, Any], object]]] = {
    Plan: Redactor.plan,
    Target: Redactor.target,
    RequestResult: Redactor.request_result,
    TargetResult: Redactor.target_result,
    Result: Redactor.result,
}


def redacted_journal(journal: Journal, redactor: Redactor) -> Journal:
    """Return a journal that receives no secret; each target is redacted to the same value every time."""
    return cast("Journal", _RedactedCalls(journal, redactor))


class _RedactedCalls:
    """Calls the methods of an object with redacted arguments."""

    def __init__(self, receiver: object, redactor: Redactor) -> None:
        self._receiver = receiver
        self._redactor = redactor

    def __getattr__(self, name: str) -> Callable[..., object]:
        method = getattr(self._receiver, name)
        return lambda *values: method(*(_redacted(self._redactor, value) for value in values))


class RedactedObserver:
    """An observer that receives no secret."""

    def __init__(self, observer: Observer, redactor: Redactor) -> None:
        self._observer = observer
        self._redactor = redactor

    def notify(self, event: Event) -> None:
        """Pass on what may be shown."""
        if isinstance(event, RequestInDoubt):
            event = structs.replace(event, reason=self._redactor.message(event.reason))
        shown = {name: _redacted(self._redactor, value) for name, value in structs.asdict(event).items()}
        self._observer.notify(structs.replace(event, **shown))


def _redacted(redactor: Redactor, value: Any) -> object:
    """Return a value, or each one of a sequence or mapping, as it may be shown."""
    if isinstance(value, tuple | list):
        return [_redacted(redactor, each) for each in value]
    if isinstance(value, dict):
        return {name: _redacted(redactor, each) for name, each in value.items()}
    redact = _REDACT.get(type(value))
    return value if redact is None else redact(redactor, value)
