"""The monitoring of one run of a batch. It has 10 seconds in all, and never changes an exit code."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Final

from msgspec import structs

from msauto.batch.batch_file import BatchFile
from msauto.batch.batch_result import BatchResult, SentMessage
from msauto.batch.batch_run import moment_of, seconds_between
from msauto.batch.batch_summary import SUMMARY_FORMS, heading_of, render_text
from msauto.batch.monitoring.heartbeat import send_heartbeat
from msauto.batch.monitoring.notices import events_of, send_notice
from msauto.documents.document import SourceNode
from msauto.errors import InputError, MsautoError
from msauto.file_writing import write_file
from msauto.playbook.input_files import beside
from msauto.playbook.inventory.server_block import secret_of_file, secret_of_keyring
from msauto.playbook.schema.batch import ReportArgs, ReportFormat, SecretSource
from msauto.report.templates import template
from msauto.secrets.redaction import Secrets

_SECONDS: Final = 10.0
_AT_START: Final = 2.0
_REPORT_MODE: Final = 0o640
_SHORTEST_PART: Final = 4


@dataclass(slots=True)
class Monitor:
    """What a batch reports to other systems.

    ``heartbeat``: whether this run counts for the check. ``left``: seconds that monitoring still has.
    """

    batch: BatchFile
    env: Mapping[str, str]
    heartbeat: bool = True
    left: float = _SECONDS

    def started(self, run: str) -> tuple[SentMessage, ...]:
        """Report that the jobs start."""
        return self._deliver([*self._heartbeats("start", run, "")], _AT_START)

    def ended(self, result: BatchResult) -> tuple[SentMessage, ...]:
        """Report a result: files, the heartbeat, and notices to those who subscribed to what happened."""
        recap = render_text(result, self.batch.schedule.timezone)
        messages = [*self._files(result), *self._heartbeats(str(result.code), result.run, recap)]
        for index, notify in enumerate(self.batch.args.notify or ()):
            events = tuple(event for event in events_of(result) if event in notify.on)
            if events:
                kind = "failure" if result.code else "warning" if "drift" in events else "success"
                notice = partial(send_notice, title=f"msauto {heading_of(result)}", body=recap, kind=kind)
                messages.append(self._to(self._subscriber(index), SentMessage(kind="notice", events=events), notice))
        return self._deliver(messages, self.left)

    def test(self) -> tuple[SentMessage, ...]:
        """Send a test to every address; it does not change the state of a check."""
        text = f"This is a test: the batch {self.batch.name} of msauto can reach this address."
        notice = partial(send_notice, title=f"msauto {self.batch.name}: test", body=text)
        addresses = map(self._subscriber, range(len(self.batch.args.notify or ())))
        notices = [self._to(address, SentMessage(kind="notice"), notice) for address in addresses]
        return self._deliver([*self._heartbeats("log", f"test of {self.batch.name}", text), *notices], self.left)

    def _deliver(self, messages: Sequence[Message], seconds: float) -> tuple[SentMessage, ...]:
        begun = time.monotonic()
        delivered = deliver(messages, min(seconds, self.left))
        self.left -= time.monotonic() - begun
        return delivered

    def _heartbeats(self, signal: str, run: str, body: str) -> Iterator[Message]:
        value = self.batch.args.heartbeat
        if value is not None and self.heartbeat:
            address = MessageAddress(value, self.batch.node.child("heartbeat"))
            send = partial(send_heartbeat, signal=signal, run=run, body=body)
            yield self._to(address, SentMessage(kind="heartbeat"), send)

    def _subscriber(self, index: int) -> MessageAddress:
        notify = (self.batch.args.notify or ())[index]
        return MessageAddress(notify.to, self.batch.node.child("notify", index, "to"))

    def _to(self, address: MessageAddress, delivery: SentMessage, send: Callable[..., None]) -> Message:
        """Return a message to an address that may be secret."""
        delivery = structs.replace(delivery, to=address.shown)
        try:
            url = address.read(self.batch, self.env)
        except MsautoError as error:
            return Message(delivery, partial(_fail, error))
        return Message(delivery, lambda seconds: send(url, seconds=seconds), _secrets_of(url))

    def _files(self, result: BatchResult) -> Iterator[Message]:
        batch, reports, metrics = self.batch, self.batch.args.reports, self.batch.args.metrics
        if reports is not None:
            for form in reports.formats or ["text"]:
                unsent = SentMessage(kind="report", to=str(_report_path(batch, reports, result, form)))
                yield Message(unsent, partial(_write_report, batch, reports, result, form))
        if metrics is not None and result.outcome != "locked":  # those of the run in progress stay
            path = Path(beside(batch.file, metrics.file))
            yield Message(
                SentMessage(kind="metrics", to=str(path)), lambda _: write_file(path, [metrics_text(result)], 0o644)
            )


def _fail(error: Exception, _: float) -> None:
    raise error


def metrics_text(result: BatchResult) -> str:
    """Return the metrics for Prometheus. Jobs that this run did not include keep their last result."""
    return template("batch/monitoring/metrics.prom.j2").render(
        result=result,
        jobs=(*result.jobs, *result.earlier),
        duration=seconds_between,
        timestamp=lambda moment: 0.0 if moment is None else moment_of(moment).timestamp(),
    )


# Messages -------------------------------------------------------------------------------------------------------------


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


# Addresses ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MessageAddress:
    """Where to send messages: a text, or the source of a secret one, and its place in the batch file."""

    value: str | SecretSource
    node: SourceNode

    @property
    def shown(self) -> str:
        """What may be shown of it: the source of a secret, else the scheme: other parts of a URL may be secret."""
        if isinstance(self.value, SecretSource):
            ((kind, name),) = self.value.model_dump(exclude_none=True).items()
            return f"{kind} {name}"
        scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]*(?=://)", self.value)
        return f"{scheme[0] if scheme else ''}://…"

    def read(self, batch: BatchFile, env: Mapping[str, str]) -> str:
        """Return the address itself; raises :class:`InputError`, which does not show it."""
        source = self.value
        if not isinstance(source, SecretSource):
            return str(source)
        if source.env is not None:
            text = env.get(source.env, "")
            if not text:
                remedy = "set it in the environment of the scheduled run"
                raise self.node.child("env").error(f"the environment variable {source.env} is not set", remedy)
            return text
        if source.keyring is not None:
            return secret_of_keyring(source.keyring, batch.name, self.node.child("keyring")).reveal().strip()
        if source.file is not None:
            return secret_of_file(source.file, self.node.child("file")).reveal().strip()
        folder = env.get("CREDENTIALS_DIRECTORY")
        if folder is None:
            remedy = "systemd sets it: see `msauto schedule print --for systemd`"
            raise self.node.child("credential").error("$CREDENTIALS_DIRECTORY is not set", remedy)
        path = Path(folder).absolute() / str(source.credential)
        return secret_of_file(str(path), self.node.child("credential")).reveal().strip()


def _secrets_of(address: str) -> Secrets:
    """Return an address and its parts as secrets: messages of libraries repeat some of them."""
    parts = re.split(r"[/:@?&=,]+", address.partition("://")[2])
    return Secrets([address, *(part for part in parts if len(part) >= _SHORTEST_PART)])


# Report files ---------------------------------------------------------------------------------------------------------


def _report_path(batch: BatchFile, args: ReportArgs, result: BatchResult, form: ReportFormat) -> Path:
    """Return the path of the report file of a run; its date is in the time zone of the schedule."""
    name = f"{batch.name}-{_started(batch, result):%Y-%m-%dT%H%M%S}.{SUMMARY_FORMS[form][0]}"
    return Path(beside(batch.file, args.dir)) / name


def _write_report(batch: BatchFile, args: ReportArgs, result: BatchResult, form: ReportFormat, _: float) -> None:
    """Write the summary in a form, and remove files of this form older than ``keep_days``; raises ``OSError``."""
    path = _report_path(batch, args, result, form)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, [SUMMARY_FORMS[form][1](result, batch.schedule.timezone)], _REPORT_MODE)
    if args.keep_days is not None:
        oldest = f"{_started(batch, result).date() - timedelta(days=args.keep_days)}"
        name = re.compile(rf"{re.escape(batch.name)}-(\d{{4}}-\d\d-\d\d)T\d{{6}}{re.escape(path.suffix)}")
        for each in path.parent.iterdir():
            if (found := name.fullmatch(each.name)) and found[1] < oldest:
                each.unlink(missing_ok=True)


def _started(batch: BatchFile, result: BatchResult) -> datetime:
    return moment_of(result.started).astimezone(batch.schedule.zone)
