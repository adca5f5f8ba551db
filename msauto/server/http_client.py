"""Exchanges with one media server: authentication, time-outs, limits, read-only mode.

A read is tried again, by :mod:`msauto.retry_policy`; a write is not: see :mod:`msauto.applying`. The typed calls:
:class:`msauto.server.client.AsyncMediaServer`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Final, Self, TypeVar

from msgspec import structs

from msauto import errors
from msauto.circuit_breaker import Asked, BreakerState, account_remedy, contact_of
from msauto.concurrency import SystemClock
from msauto.model.live import Listing
from msauto.model.plan import Request
from msauto.model.ports import Answer, Clock, DownloadObserver
from msauto.model.requests import PROFILES, request_line_length
from msauto.model.server import Auth, ServerSpec
from msauto.primitives.decimals import MOST_LONG, read_whole
from msauto.retry_policy import LONGEST_PAUSE, READ_RETRIES, pause_before_read
from msauto.server import error_answers, transport
from msauto.server.access import base_url, headers, secrets_of, tls
from msauto.server.downloads import FetchResult, save_body
from msauto.server.error_answers import RawAnswer
from msauto.server.listing import ListingReading, read_arriving
from msauto.server.pacing import Pacer, Permit
from msauto.server.xml import MAX_BYTES, too_large, unreadable

T = TypeVar("T")
_Arriving = transport.ArrivingAnswer | transport.HttpxAnswer

_WHOLE_FILE: Final = frozenset({200, 203})
ANSWER_BYTES: Final = 64 * 2**20
"""The size limit of other answers: an asset with 100,000 markers, a channel with as many items."""
_COMPRESSED: Final = (("Accept-Encoding", "gzip, deflate"),)
# Media does not shrink, and its length is announced.
_UNCOMPRESSED: Final = (("Accept-Encoding", "identity"),)
_LARGE: Final = 2**18
"""Bytes from which on an answer is parsed in a thread, which takes up to seconds: other tasks do not wait for it."""
_WHOLE: Final = 10  # a complete answer may take this many times the time-out between bytes
_MAYBE_HTTPS: Final = "; if the server has TLS, write https:// in its `url`"
# With TLS 1.3 a server rejects the client certificate only after the handshake.
_MAYBE_TLS: Final = (
    "; a server that expects another client certificate also closes the connection: check `tls`"
)


class HttpClient:
    """Sends requests to one media server, and judges the answers.

    ``read_only`` refuses everything but GET and HEAD before anything is sent.
    ``reads`` counts the reads, without further attempts. ``admit`` is called at the last moment before each write, and
    may raise an ``MsautoError``: then it is not sent.

    With ``gives_up``, every request fails at once after the circuit breaker of the server has opened.
    """

    def __init__(
        self,
        spec: ServerSpec,
        *,
        read_only: bool = False,
        clock: Clock | None = None,
        admit: Callable[[], None] = lambda: None,
        gives_up: bool = False,
    ) -> None:
        self.spec = spec
        self.read_only = read_only
        self.reads = 0
        self.given_up: errors.ServerError | None = None
        """The error that opened the circuit breaker."""
        self._gives_up = gives_up
        self._answered = False
        self._breaker = BreakerState()
        self._admit = admit
        self._clock = clock or SystemClock()
        self.pacer = Pacer(self.spec, self._clock)
        # Held while a large answer arrives and is parsed, which takes hundreds of MiB.
        self._large = asyncio.Lock()
        self._headers = headers(self.spec)
        self._base = base_url(self.spec)
        self._secrets = secrets_of(self.spec)
        times = spec.timeouts
        self._limits = {
            False: transport.TimeLimits(
                times.connect, times.read, "read", total=_WHOLE * times.read
            ),
            True: transport.TimeLimits(
                times.connect, times.listing, "listing", total=_WHOLE * times.listing
            ),
        }
        self._transport: transport.ExactTransport | transport.HttpxTransport
        if spec.transport is not None:
            self._transport = transport.HttpxTransport(self._base, spec.transport)
        else:
            self._transport = transport.ExactTransport(self._base, tls=tls(self.spec))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._transport.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._transport.aclose()

    async def permit(self) -> SendingPermit:
        """Wait until a write may be sent, by the rate and by the concurrent requests of the server."""
        permit = await self.pacer.permit()
        permit.hold()
        return SendingPermit(self, permit)

    async def send(self, request: Request) -> Answer:
        """Send a write once, or a read with retries. Raises ``NotSentError``, ``InDoubtError``, ``RejectedError``.

        The content of the answer is ignored, except that an error text or an error document is an error.
        """
        if request.method in transport.READS:
            reply = await self.read(request, lambda reply: reply)
        else:
            reply = await self.write(request)
        shown = error_answers.show_body(reply.data, reply.charset)
        return Answer(reply.status, self._secrets.redact_message(shown))

    async def write(self, request: Request, permit: Permit | None = None) -> RawAnswer:
        """Send a write as :meth:`send` does, with a permit, or with the next one."""
        # A batch of metadata may take as long as a large listing.
        is_batch = request.method == "PUT" and request.path.startswith("/storage/")

        async def judged(response: _Arriving) -> RawAnswer:
            try:
                reply = await self._reply(response, MAX_BYTES if is_batch else ANSWER_BYTES)
            except errors.UnreadableError as error:  # it was sent, and may have been done
                raise errors.InDoubtError(error.message, remedy=error.remedy) from error
            error_answers.judge_status(reply, self.spec.dialect)
            error_answers.judge_write(reply, self.spec.dialect)
            return reply

        return await self._exchange(request, self._limits[is_batch], judged, permit=permit)

    async def read(
        self, request: Request, parse: Callable[[RawAnswer], T], *, listing: bool = False
    ) -> T:
        """Send a read, up to four times, and return the parsed answer.

        A ``listing`` may take longer and be larger. A status of 300 and above is an error. An answer that can be parsed
        is never an error, whatever its text.
        """

        async def parsed(response: _Arriving) -> T:
            async with AsyncExitStack() as turn:
                reply = await self._reply(response, MAX_BYTES if listing else ANSWER_BYTES, turn)
                error_answers.judge_status(reply, self.spec.dialect)
                try:
                    if len(reply.data) < _LARGE:
                        return parse(reply)
                    return await asyncio.to_thread(parse, reply)
                except errors.UnreadableError:
                    error_answers.judge_body(reply, self.spec.dialect)
                    raise

        return await self._exchange(request, self._limits[listing], parsed)

    async def read_listing(
        self, request: Request, begin: Callable[[str | None], ListingReading]
    ) -> Listing:
        """Send a read as :meth:`read` does, and parse its answer while it arrives, without holding it.

        ``begin`` gets the charset of the HTTP header and returns the parser of one answer.
        """

        async def parsed(response: _Arriving) -> Listing:
            if response.status >= 300:
                reply = await self._reply(response, MAX_BYTES)
                error_answers.judge_status(reply, self.spec.dialect)
            charset = error_answers.charset_of(response.header("content-type"))

            def judge(head: bytes) -> None:
                reply = RawAnswer(response.status, head, charset)
                error_answers.judge_body(reply, self.spec.dialect)

            return await read_arriving(response.read, begin(charset), judge)

        return await self._exchange(request, self._limits[True], parsed)

    async def ask(self, request: Request) -> RawAnswer:
        """Send a read once and return the answer with any status, for `msauto probe`."""
        if request.method not in transport.READS:
            raise ValueError(f"{request.method} is not a read")
        return await self._exchange(
            request,
            self._limits[False],
            lambda response: self._reply(response, ANSWER_BYTES),
            once=True,
        )

    async def download(self, request: Request, dest: Path, *, seconds: float | None = None) -> int:
        """Save the answer to a read as a complete file, or not at all; return its size in bytes.

        An interrupted download starts again. ``seconds`` (default ``timeouts.read``) is the time limit for each 64 KiB.
        """
        return (await self.fetch_file(request, dest, None, seconds=seconds)).size

    async def fetch(self, request: Request, watch: DownloadObserver) -> Answer:
        """Save the answer to a planned download as its ``dest``: the complete file, or nothing."""
        if request.dest is None:
            raise ValueError("the request names no file")
        # The server may create a proxy on request (interface, «Web proxy»).
        is_proxy = request.path.partition("?")[0].rpartition("/")[2] in PROFILES
        seconds = self.spec.timeouts.proxy if is_proxy else None
        dest = Path(request.dest)
        fetched = await self.fetch_file(request, dest, watch, seconds=seconds, planned=dest)
        return Answer(200, sha256=fetched.sha256)

    async def fetch_file(
        self,
        request: Request,
        dest: Path,
        watch: DownloadObserver | None,
        *,
        seconds: float | None = None,
        planned: Path | None = None,
    ) -> FetchResult:
        """As :meth:`download`, with an observer; ``planned`` as in :func:`~msauto.server.downloads.save_body`."""
        times = self.spec.timeouts
        time_limit = seconds or times.read
        setting = "read" if time_limit == times.read else "proxy"
        limits = transport.TimeLimits(times.connect, time_limit, setting, pace=time_limit)

        async def saved(response: _Arriving) -> FetchResult:
            await self._judge_download(response)
            length = response.header("content-length")
            if response.header("content-encoding"):
                length = ""
            total = read_whole(length, MOST_LONG, least=0)
            return await save_body(response.read, dest, total, watch, planned)

        return await self._exchange(request, limits, saved, more=_UNCOMPRESSED, watch=watch)

    def hide(self, text: str) -> str:
        """Return a text with the secrets of this server redacted."""
        return self._secrets.redact_message(text)

    # One exchange ----------------------------------------------------------------------------------------------

    async def _exchange(
        self,
        request: Request,
        limits: transport.TimeLimits,
        take: Callable[[_Arriving], Awaitable[T]],
        *,
        more: transport.Headers = _COMPRESSED,
        permit: Permit | None = None,
        watch: DownloadObserver | None = None,
        once: bool = False,
    ) -> T:
        """Send a request, and return what ``take`` makes of its answer, which is then closed.

        A read is tried again after a transient error, unless it is sent ``once``. ``watch`` learns of each attempt, and
        the circuit breaker what becomes of the request.
        """
        self._check(request)
        is_read = request.method in transport.READS
        self.reads += is_read
        retries = READ_RETRIES if is_read and not once else 0
        number = 0
        while True:
            try:
                if watch is not None:
                    watch.asked(limits.read)
                granted = permit or await self.pacer.permit()
                sending = self._sending(request, limits, more, granted)
                async with aclosing(await sending) as response:
                    self._judge_head(request, response, granted)
                    taken = await take(response)
            except errors.ServerError as error:
                pause = _pause_before_retry(error, number) if number < retries else None
                if pause is None:
                    self._note(error, request)
                    raise
            else:
                if self._breaker.failures:
                    self._breaker = self._breaker.answered()
                return taken
            number += 1
            await self._clock.sleep(pause)

    def _sending(
        self,
        request: Request,
        limits: transport.TimeLimits,
        more: transport.Headers,
        permit: Permit,
    ) -> Awaitable[_Arriving]:
        """Return what sends a request; a write is admitted first."""
        headers = [*self._headers, *more]
        content = None
        if request.body is not None:
            headers.append(("Content-Type", request.body.media_type))
            content = request.body.content
        if request.method not in transport.READS:
            try:
                self._admit()
            except BaseException:
                permit.release()
                raise
        return self._transport.send(request.method, request.path, headers, content, limits, permit)

    def _judge_head(self, request: Request, response: _Arriving, permit: Permit) -> None:
        """Let the pacer learn the status; raise for a part of an answer, which no read asks for."""
        self._answered = True
        retry_after = None if response.status < 300 else self._retry_after(response)
        permit.answered(response.status, retry_after)
        if request.method in transport.READS:
            error_answers.judge_range(response.status, response.header("content-range"))

    async def _reply(
        self, response: _Arriving, most: int, turn: AsyncExitStack | None = None
    ) -> RawAnswer:
        """Return the answer with its body, or with the beginning of an error's body; its permit is released.

        Raises for a larger one. With ``turn``, what is large arrives one answer at a time, until that is closed.
        """
        failed = response.status >= 300
        if failed:
            most = error_answers.ERROR_BYTES
        chunks = []
        size = 0
        length = read_whole(response.header("content-length"), MOST_LONG)
        if not failed and length is not None and length > most:
            raise too_large(most)
        while size <= most and (chunk := await response.read()):
            chunks.append(chunk)
            size += len(chunk)
            if turn is not None and size >= _LARGE:
                await turn.enter_async_context(self._large)
                turn = None
        await response.aclose()
        if size > most and not failed:
            raise too_large(most)
        data = b"".join(chunks)[:most]
        kind = response.header("content-type")
        reply = RawAnswer(response.status, data, error_answers.charset_of(kind), kind)
        if not failed:
            return reply
        return structs.replace(
            reply,
            retry_after=self._retry_after(response),
            location=error_answers.clean(response.header("location")),
            challenge=error_answers.clean(response.header("www-authenticate")),
            server=self._base,
        )

    def _retry_after(self, response: _Arriving) -> float | None:
        return error_answers.read_retry_after(response.header("retry-after"), self._clock.now())

    async def _judge_download(self, response: _Arriving) -> None:
        kind = response.header("content-type").partition(";")[0].strip().lower()
        if response.status >= 300 or kind in {
            "text/html",
            "text/xml",
            "application/xml",
            "text/plain",
        }:
            reply = await self._reply(response, error_answers.ERROR_BYTES)
            error_answers.judge_status(reply, self.spec.dialect)
            error_answers.judge_body(reply, self.spec.dialect)
            body = error_answers.show_body(reply.data, reply.charset)
            raise unreadable(f"the answer is not a media file but {kind}: {body}")
        if response.status not in _WHOLE_FILE:
            raise unreadable(
                f"the answer has the status {response.status}, not that of a complete file",
                "check the server",
            )

    # Checks and messages ---------------------------------------------------------------------------------------

    def _check(self, request: Request) -> None:
        if self.read_only and request.method not in transport.READS:
            raise errors.RefusedError(
                f"server {self.spec.name}: {_shown(request)} was not sent: this client is read-only",
                remedy="open it without `read_only`",
            )
        length = request_line_length(request)
        if length > self.spec.request_line:
            raise errors.NotSentError(
                f"not sent: the request line has {length} bytes, more than the limit of {self.spec.request_line}",
                server=self.spec.name,
                request=_shown(request),
                remedy="shorten the values, or raise `request_line` of the server if it accepts longer lines",
            )
        if self.given_up is not None:
            raise self.given_up.with_traceback(None)

    def _note(self, error: errors.ServerError, request: Request) -> None:
        """Set the server and the request of an error, and report it to the circuit breaker.

        A plan keeps the error of each target: the frames that it came through hold the answer, and are let go.
        """
        error.__traceback__ = None
        error.__context__ = None
        error.server = error.server or self.spec.name
        error.request = error.request or _shown(request)
        if isinstance(error, errors.UnreachableError | errors.InDoubtError):
            error.url = self.spec.url
        if isinstance(error, errors.InDoubtError):
            if self.spec.url.startswith("https:"):
                error.remedy += _MAYBE_TLS
            elif not self._answered:
                error.remedy += _MAYBE_HTTPS
        if isinstance(error, errors.RejectedError):
            asked: Asked = "read" if request.method in transport.READS else "write"
            has_account = self.spec.auth != Auth() or self.spec.tls.cert is not None
            remedy = account_remedy(error.status, asked, has_account=has_account)
            error.remedy = remedy or error.remedy
        self._secrets.redact_error(error)
        self._breaker = self._breaker.after_read(error)
        if self._gives_up and self._breaker.open:
            error.request = ""  # the error is the same for all targets
            self.given_up = self.given_up or error

    @property
    def unreachable(self) -> bool:
        """Whether the server as a whole does not answer; rejected credentials are an answer."""
        return self.given_up is not None and contact_of(self.given_up) != "unauthorized"


class SendingPermit:
    """Implements the port ``WritePermit``: the permission to send one write with this client."""

    def __init__(self, client: HttpClient, permit: Permit) -> None:
        self._client = client
        self._permit = permit
        self.release = permit.release

    async def send(self, request: Request) -> Answer:
        """Send the write, once."""
        return Answer((await self._client.write(request, self._permit)).status)


def _shown(request: Request) -> str:
    path = request.path
    if len(path) > 200:
        path = f"{path[:199]}…"
    return f"{request.method} {path}"


def _pause_before_retry(error: errors.ServerError, attempt: int) -> float | None:
    """Return the seconds until a read is tried again after failed attempt number ``attempt``, from 0; ``None``: never.

    It is tried again if no complete answer came, or a busy server's or a gateway's (:func:`contact_of`).
    """
    asked = getattr(error, "retry_after", None) or 0.0
    is_transient = contact_of(error) in {"unreachable", "silent", "busy"}
    # An attempt before the time of Retry-After is useless, and a longer wait is too long.
    if not is_transient or isinstance(error, transport.TooSlowError) or asked > LONGEST_PAUSE:
        return None
    return pause_before_read(asked, attempt)
