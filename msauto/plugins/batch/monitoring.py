"""Messages about a batch to other systems: heartbeats, notices, report files, metrics, and a line for systemd.

They have 10 seconds in all, and never change what a batch does, or its exit code.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from base64 import b64encode
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.parse import unquote_to_bytes, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener
from uuid import NAMESPACE_URL, uuid5

from msgspec import Struct, structs

from msauto.documents.document import SourceNode
from msauto.errors import InputError, MsautoError, Problem
from msauto.exit_codes import LOCKED, OK, REFUSED
from msauto.file_access import METRICS, PAGE, REPORT, check_replaced
from msauto.file_writing import write_file
from msauto.ledger.ledger import Ledger, LedgerPlace
from msauto.model.result import parse_time, seconds_between
from msauto.playbook.hosts import secret_of
from msauto.playbook.input_files import beside
from msauto.plugins.batch.batch_file import BatchFile, outputs_of_batch
from msauto.plugins.batch.batch_result import (
    BatchResult,
    MessageKind,
    SentMessage,
    SentMessages,
    past_results,
)
from msauto.plugins.batch.pages import page_name, render_index
from msauto.plugins.batch.schema import Event, NotifyArgs, PagesArgs, ReportArgs, SecretSource
from msauto.plugins.batch.summary import SUMMARY_FORMS, BatchForm, render_text, week_of
from msauto.report.templates import template
from msauto.secrets.redaction import Secrets

_SECONDS: Final = 10.0
_AT_START: Final = 2.0
_MARGIN: Final = (
    0.5  # seconds, so that a process that hangs is killed within the time of the message
)
_MOST_BYTES: Final = 90_000  # healthchecks keeps 100 kB of a body
_REPORT_MODE, _METRICS_MODE = 0o640, 0o644
_WIDE_FORMS: Final = {ord(sign): ord(sign) + 0xFEE0 for sign in "@<>[]`|*~#"}
_LINKS: Final = (("://", "：//"), ("www.", "www．"))
"""What messengers act on, and how it looks without that meaning: a notice has no mentions and no links."""
_TO_THE_INDEX: Final = '<p class="more"><a href="index.html">All nights</a></p></header>'
"""What closes the header of the page of a night, which a report does not have: there is no index beside it."""


def events_of(result: BatchResult) -> tuple[Event, ...]:
    """Return what happened, in the order of its urgency."""
    was_missed = result.outcome == "missed"
    codes: set[int | None] = set()
    if not was_missed:
        codes = {job.code for job in result.jobs if job.code} or {result.code}
    happened: dict[Event, bool] = {
        "failed": bool(codes - {None, OK, REFUSED, LOCKED}),
        "refused": REFUSED in codes,
        "locked": LOCKED in codes,
        "missed": was_missed or bool(result.missed),
        "drift": result.drift_changed,
        "changed": any(job.summary.get("changed") for job in result.jobs),
        "recovered": result.recovered,
        "ok": result.code == 0,
    }
    return tuple(event for event, did in happened.items() if did)


class Message(Struct, frozen=True):
    """A message that is still to be sent.

    ``send`` gets the address, if the message has one, and the seconds it has; it raises an error if the message was not
    delivered. ``address`` raises ``MsautoError`` if it is a secret that cannot be read.
    """

    unsent: SentMessage
    send: Callable[[str, float], object]
    address: Callable[[], str] = str


class Monitor(Struct):
    """What a batch reports to other systems.

    ``heartbeat``: whether this run counts for the check. ``ledger`` holds the runs. ``left``: seconds that monitoring
    still has.
    """

    batch: BatchFile
    env: Mapping[str, str]
    heartbeat: bool = True
    ledger: LedgerPlace | None = None
    left: float = _SECONDS

    def started(self, run: str) -> SentMessages:
        """Report that the jobs start."""
        return self._deliver([*self._heartbeats("start", run, "")], _AT_START)

    def ended(self, result: BatchResult) -> SentMessages:
        """Report a result: files, the heartbeat, and notices to those who subscribed to what happened."""
        recap = render_text(result, self.ledger)
        messages = [*self._files(result)]
        messages += self._heartbeats(str(result.code), result.run, recap)
        happened = events_of(result)
        title = f"msauto {result.heading}"
        for notify, node in self._subscribers():
            events = tuple(event for event in happened if event in notify.on)
            if events:
                kind = "warning" if "drift" in events else "success"
                if result.code:
                    kind = "failure"
                send = partial(_send_notice, title, recap, kind)
                messages.append(self._to(notify.to, node, "notice", send, events))
        return self._deliver(messages, self.left)

    def unreachable_addresses(self) -> Iterator[Problem]:
        """Send a test to every address; yield an error for each that did not accept it.

        It does not change the state of a check.
        """
        batch = self.batch.name
        text = f"This is a test: the batch {batch} of msauto can reach this address."
        messages = [*self._heartbeats("log", f"test of {batch}", text)]
        nodes = [self.batch.node.child("heartbeat") for _ in messages]
        for notify, node in self._subscribers():
            send = partial(_send_notice, f"msauto {batch}: test", text, "info")
            messages.append(self._to(notify.to, node, "notice", send))
            nodes.append(node)
        for node, sent in zip(nodes, self._deliver(messages, self.left), strict=True):
            if sent.error:
                message = f"the test to {sent.to} was not delivered: {sent.error}"
                problem = node.problem(message, "correct the address")
                yield replace(problem, excerpt="")  # it would show the address

    def _deliver(self, messages: Sequence[Message], seconds: float) -> SentMessages:
        begun = time.monotonic()
        delivered = deliver(messages, min(seconds, self.left))
        self.left -= time.monotonic() - begun
        return delivered

    def _heartbeats(self, signal: str, run: str, body: str) -> Iterator[Message]:
        value = self.batch.args.heartbeat
        if value is not None and self.heartbeat:
            send = partial(_send_heartbeat, signal, run, body)
            yield self._to(value, self.batch.node.child("heartbeat"), "heartbeat", send)

    def _subscribers(self) -> Iterator[tuple[NotifyArgs, SourceNode]]:
        for index, notify in enumerate(self.batch.args.notify or ()):
            yield notify, self.batch.node.child("notify", index, "to")

    def _to(
        self,
        value: str | SecretSource,
        node: SourceNode,
        kind: MessageKind,
        send: Callable[[str, float], object],
        events: tuple[Event, ...] = (),
    ) -> Message:
        """Return a message to an address: a text, or the source of a secret one.

        Of a text only the scheme is shown: other parts of a URL may be secret.
        """
        address: Callable[[], str]
        if isinstance(value, SecretSource):
            ((source, name),) = value.model_dump(exclude_none=True).items()
            place = node.child(source)
            address = partial(_secret_address, source, name, place, self.env, self.batch.name)
            shown = f"{source} {name}"
        else:
            scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]*(?=://)", value)
            address = partial(str, value)
            shown = f"{scheme[0]}://…" if scheme else "://…"
        return Message(SentMessage(kind=kind, to=shown, events=events), send, address)

    def _files(self, result: BatchResult) -> Iterator[Message]:
        """Yield the dated summaries, each of which removes those older than ``keep_days``, and the metrics."""
        batch, metrics, reports = self.batch, self.batch.args.metrics, self.batch.args.reports
        kept = defaultdict[str, list[ReportArgs | PagesArgs]](list)
        if reports is not None:
            for report_form in reports.formats or ["text"]:
                kept[report_form] = [reports]
        if batch.pages is not None:
            kept["html"].append(batch.pages)
        name = page_name(result, batch.schedule.zone)
        for form, folders in kept.items():
            ending, render = SUMMARY_FORMS[form]
            files = []
            for args in folders:
                folder = Path(beside(batch.file, args.dir))
                path = folder / f"{name}.{ending}"
                files.append((path, args))
            shown = ", ".join(str(path) for path, _ in files)
            write = partial(self._write_reports, result, render, files)
            yield Message(SentMessage(kind="report", to=shown), write)
        if metrics is not None and result.outcome != "locked":  # those of the run in progress stay
            path = Path(beside(batch.file, metrics.file))
            yield Message(
                SentMessage(kind="metrics", to=str(path)),
                partial(self._write_metrics, result, path),
            )

    def _write_metrics(self, result: BatchResult, path: Path, *_: object) -> None:
        """Write the metrics, in the folder of the node exporter: wherever it is, over metrics of msauto alone."""
        check_replaced(path, METRICS)
        write_file(path, [metrics_text(result)], _METRICS_MODE)

    def _write_reports(
        self,
        result: BatchResult,
        render: BatchForm,
        files: Sequence[tuple[Path, ReportArgs | PagesArgs]],
        *_: object,
    ) -> None:
        """Write a form of the summary, and remove older files; beside the page of a night, the index."""
        text = render(result, self.ledger)
        outputs = outputs_of_batch(self.batch)
        started = parse_time(result.started).astimezone(self.batch.schedule.zone)
        for named, args in files:
            path = outputs.path(str(named), REPORT)
            path.parent.mkdir(parents=True, exist_ok=True)
            is_page = isinstance(args, PagesArgs)
            check_replaced(path, PAGE if path.suffix == ".html" else REPORT)
            shown = text.replace("</header>", _TO_THE_INDEX, 1) if is_page else text
            write_file(path, [shown], _REPORT_MODE)
            if args.keep_days is not None:
                self._remove_older(path, started.date() - timedelta(days=args.keep_days))
            if is_page:
                self._write_index(path.parent, result)

    def _remove_older(self, path: Path, oldest: date) -> None:
        name, ending = re.escape(self.batch.name), re.escape(path.suffix)
        dated = re.compile(rf"{name}-(\d{{4}}-\d\d-\d\d)T\d{{6}}{ending}")
        for file in path.parent.iterdir():
            report = dated.fullmatch(file.name)
            if report and report[1] < str(oldest):
                file.unlink(missing_ok=True)

    def _write_index(self, folder: Path, result: BatchResult) -> None:
        nights = [result]
        if self.ledger is not None:
            with Ledger.open(self.ledger, readonly=True) as ledger:
                past = past_results(ledger, self.batch.id)
                nights += [night for night in past if night.run != result.run]
        pages = {file.name for file in folder.iterdir()}
        week = week_of(result, self.ledger, tonight=True)
        index = render_index(nights, self.batch.schedule, pages, week)
        check_replaced(folder / "index.html", PAGE)
        write_file(folder / "index.html", index, _REPORT_MODE)


def deliver(messages: Sequence[Message], seconds: float) -> SentMessages:
    """Send messages at the same time; return what came of each after at most so many seconds.

    An error never shows an address that is a secret.
    """
    errors: dict[int, str] = {}

    def send(number: int, message: Message) -> None:
        secrets = Secrets()
        try:
            address = message.address()
            _, _, location = address.partition("://")
            parts = re.split(r"[/:@?&=,]+", location)  # messages of libraries repeat them
            secrets = Secrets([address, *parts])
            message.send(address, seconds)
        except Exception as error:  # noqa: BLE001 - monitoring never stops a batch
            errors[number] = secrets.redact_message(_reason(error))
        else:
            errors[number] = ""

    threads = []
    for numbered in enumerate(messages):
        thread = Thread(target=send, args=numbered, daemon=True)
        thread.start()
        threads.append(thread)
    end = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    late = f"no answer within {seconds:.1f} s"
    return tuple(
        structs.replace(message.unsent, error=errors.get(number, late))
        for number, message in enumerate(messages)
    )


def _reason(error: Exception) -> str:
    if isinstance(error, InputError) and error.problems:
        return error.problems[0].message
    if isinstance(error, MsautoError):
        return error.message
    text = str(getattr(error, "strerror", None) or error)
    return " ".join(text.split()) or type(error).__name__


def _secret_address(
    source: str, name: str, node: SourceNode, env: Mapping[str, str], batch: str
) -> str:
    """Return the address; ``batch`` is the keyring's user. Raises ``InputError``, which does not show it."""
    if source == "env":
        if not env.get(name):
            remedy = "set it in the environment of the scheduled run"
            raise node.error(f"the environment variable {name} is not set", remedy)
        return env[name]
    if source == "credential":
        folder = env.get("CREDENTIALS_DIRECTORY")
        if folder is None:
            raise node.error(
                "$CREDENTIALS_DIRECTORY is not set", "systemd sets it: see `msauto schedule print`"
            )
        name = str(Path(folder).absolute() / name)
    return secret_of(source, name, batch, node).reveal().strip()


# Heartbeats -----------------------------------------------------------------------------------------------------------


class _NoRedirects(HTTPRedirectHandler):
    """Makes a redirect an error: urllib would follow it with a GET, without the body."""

    def redirect_request(self, *_: object) -> None:
        """Return no request."""


def _send_heartbeat(signal: str, run: str, body: str, url: str, seconds: float) -> None:
    """POST in the protocol of healthchecks: ``start``, an exit code or ``log``; the run id is made from ``run``."""
    try:
        parts = urlsplit(url)
        is_web = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_web = False
    if not is_web:
        raise MsautoError(
            "the heartbeat is not an http or https URL", remedy="use the ping URL of the check"
        )
    query = "&".join(filter(None, (parts.query, f"rid={uuid5(NAMESPACE_URL, run)}")))
    login, _, host = parts.netloc.rpartition("@")
    path = f"{parts.path.rstrip('/')}/{signal}"
    address = urlunsplit(parts._replace(netloc=host, path=path, query=query, fragment=""))
    headers = {"Content-Type": "text/plain; charset=utf-8", "User-Agent": "msauto"}
    if login:
        user, _, password = login.partition(":")
        credentials = unquote_to_bytes(f"{user}:{password}")
        headers["Authorization"] = f"Basic {b64encode(credentials).decode()}"
    request = Request(address, body.encode()[-_MOST_BYTES:], headers, method="POST")  # noqa: S310 - http, above
    try:
        with build_opener(_NoRedirects).open(request, timeout=seconds):
            pass
    except HTTPError as error:
        error.close()
        raise MsautoError(
            f"the answer has the status {error.code}", remedy="check the URL"
        ) from None
    except URLError as error:
        raise MsautoError(f"it cannot be reached: {error.reason}", remedy="check the URL") from None


# Notices --------------------------------------------------------------------------------------------------------------


def plain_notice(text: str) -> str:
    """Return a text in which a messenger finds no mention, link or markup.

    >>> plain_notice("by @everyone [x](http://a)")
    'by ＠everyone ［x］(http：//a)'
    """
    for sign, instead in _LINKS:
        text = text.replace(sign, instead)
    return text.translate(_WIDE_FORMS)


def _send_notice(title: str, body: str, kind: str, url: str, seconds: float) -> None:
    """Send a notice to an Apprise URL; ``kind`` is info, success, warning or failure.

    Apprise runs in a process of its own: a service that hangs would otherwise hold up the end of this one.
    """
    message = {"url": url, "title": plain_notice(title), "body": plain_notice(body), "kind": kind}
    command = [sys.executable, "-P", "-m", "msauto.plugins.batch.send_notice"]
    try:
        done = subprocess.run(  # noqa: S603 - this program
            command,
            input=json.dumps(message),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=max(0.1, seconds - _MARGIN),
            check=False,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise MsautoError(f"no answer within {seconds:.1f} s", remedy="check the address") from None
    if done.returncode != 0:
        lines = done.stdout.strip().splitlines() or ["the service did not accept it"]
        raise MsautoError(lines[-1], remedy="check the address")


# Files ----------------------------------------------------------------------------------------------------------------


def metrics_text(result: BatchResult) -> str:
    """Return the metrics for Prometheus. Jobs that this run did not include keep their last result."""
    return template("plugins/batch/metrics.prom.j2").render(
        result=result,
        jobs=(*result.jobs, *result.earlier),
        duration=seconds_between,
        timestamp=lambda moment: 0.0 if moment is None else parse_time(moment).timestamp(),
    )


def notify_systemd(env: Mapping[str, str], text: str) -> None:
    """Show a text in ``systemctl status``, where systemd runs this process."""
    address = env.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        if address.startswith("@"):
            address = f"\0{address[1:]}"
        channel.connect(address)
        channel.send(f"STATUS={' '.join(text.split())}".encode())
