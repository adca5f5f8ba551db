"""The monitoring of one run of a batch. It has 10 seconds in all, and never changes an exit code."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import structs

from msauto.batch.batch_file import BatchFile
from msauto.batch.batch_result import BatchResult, SentMessage
from msauto.batch.batch_run import moment_of, seconds_between
from msauto.batch.batch_summary import heading_of, render_text
from msauto.batch.monitoring.addresses import MessageAddress, secrets_of
from msauto.batch.monitoring.deliveries import Message, deliver
from msauto.batch.monitoring.heartbeat import send_heartbeat
from msauto.batch.monitoring.notices import events_of, send_notice
from msauto.batch.monitoring.report_files import report_path, write_report
from msauto.errors import MsautoError
from msauto.file_writing import write_file
from msauto.playbook.input_files import beside
from msauto.report.templates import template

_SECONDS: Final = 10.0
_AT_START: Final = 2.0


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
        return Message(delivery, lambda seconds: send(url, seconds=seconds), secrets_of(url))

    def _files(self, result: BatchResult) -> Iterator[Message]:
        batch, reports, metrics = self.batch, self.batch.args.reports, self.batch.args.metrics
        if reports is not None:
            for form in reports.formats or ["text"]:
                unsent = SentMessage(kind="report", to=str(report_path(batch, reports, result, form)))
                yield Message(unsent, partial(_without_time, write_report, batch, reports, result, form))
        if metrics is not None and result.outcome != "locked":  # those of the run in progress stay
            path = Path(beside(batch.file, metrics.file))
            yield Message(
                SentMessage(kind="metrics", to=str(path)), lambda _: write_file(path, [metrics_text(result)], 0o644)
            )


def _without_time(function: Callable[..., None], *arguments: object) -> None:
    function(*arguments[:-1])  # the last are the seconds, which a file does not need


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
