"""Messages that are sent at the same time, and given up after a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Thread

from msgspec import structs

from msauto.batch.batch_result import SentMessage
from msauto.errors import InputError, MsautoError
from msauto.secrets.redaction import Secrets


@dataclass(frozen=True, slots=True)
class Message:
    """A message as a :class:`SentMessage` that is still to be sent.

    ``send`` gets the seconds it has, and raises an error if the message was not delivered. ``secrets`` are redacted in
    that error.
    """

    delivery: SentMessage
    send: Callable[[float], object]
    secrets: Secrets = field(default_factory=Secrets)


def deliver(messages: Sequence[Message], seconds: float) -> tuple[SentMessage, ...]:
    """Send messages at the same time; return what came of each after at most so many seconds."""
    errors: dict[int, str] = {}

    def send(number: int, message: Message) -> None:
        try:
            message.send(seconds)
        except Exception as error:  # noqa: BLE001 - monitoring never stops a batch
            errors[number] = message.secrets.redact_message(_reason(error))
        else:
            errors[number] = ""

    threads = [Thread(target=send, args=each, daemon=True) for each in enumerate(messages)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    late = f"no answer within {seconds:.1f} s"
    outcomes = [errors.get(number, late) for number in range(len(messages))]
    return tuple(structs.replace(each.delivery, error=error) for each, error in zip(messages, outcomes, strict=True))


def _reason(error: Exception) -> str:
    if isinstance(error, InputError) and error.problems:
        return error.problems[0].message
    if isinstance(error, MsautoError):
        return error.message
    return " ".join(str(getattr(error, "strerror", None) or error).split()) or type(error).__name__
