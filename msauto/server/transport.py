"""Send exact bytes, once, over an aiohttp session.

The existing bridges are unsafe here. They rewrite paths (``%40`` becomes ``@``, dot segments vanish). aiohttp sends
idempotent methods again on a dropped kept-alive connection. Errors after sending are reported as connect errors.
``tests/wire`` tests this transport against raw sockets.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

import aiohttp
import yarl
from msgspec import Struct

from msauto.errors import InDoubtError, MsautoError, NotSentError, UnreachableError
from msauto.model.server import Transport
from msauto.server.pacing import Permit

if TYPE_CHECKING:
    import httpx2

Headers = Sequence[tuple[str, str]]

# Many servers close an idle connection after five seconds. A write on a connection that is being closed is in doubt,
# so ours are closed a little earlier.
_IDLE_SECONDS: Final = 4.0
_HEAD_BYTES: Final = 65536
_PACE_BYTES: Final = 65536
_ANSWERS_BESIDE: Final = 12
"""The answers on other connections after which one that is idle, and still open, shows that the server keeps them."""
_CLOSING_SECONDS: Final = 0.2
_CLOSING_STEPS: Final = 50
"""The seconds, at most, to wait for TLS connections to close: both sides send a close message."""
READS: Final = frozenset({"GET", "HEAD"})
_LONGEST_REASON: Final = 4096
_PARSER = re.compile(r"message=(?:'|\")(.+?)(?:'|\")>?\Z")

# Raised only while a connection is being opened: nothing of the request was sent.
_NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)
# A TimeoutError is an OSError.
_FAILURES = (
    aiohttp.ClientError,
    OSError,
    asyncio.IncompleteReadError,
    ValueError,
)
_NEW_SOCKETS: Final = ContextVar[list[socket.socket]](
    "new sockets of the request that is being sent"
)


class TooSlowError(InDoubtError):
    """The answer arrives too slowly. Another attempt would take as long."""


class TimeLimits(Struct, frozen=True):
    """The time-outs of one exchange in seconds: ``connect``, ``read`` between bytes, and one that bounds the answer.

    That is ``total`` for the complete answer, or ``pace`` for each 64 KiB of it: these raise :class:`TooSlowError`.
    ``setting`` is the key of ``timeouts`` that ``read`` is from, for messages.
    """

    connect: float
    read: float
    setting: str
    total: float | None = None
    pace: float | None = None


class ExactTransport:
    """Sends each request once, byte for byte. Follows no redirects, keeps no cookies, ignores the environment.

    Raises :class:`NotSentError` if the request was certainly not sent, else :class:`InDoubtError`, also while the body
    is read. The permit of a request is released when its answer is closed, or with the error.

    Some servers close each connection after their answer without announcing it. A write on such a connection would be
    in doubt, although the server never received it. So a write uses an old connection only after this server has
    answered on one, or has left the first one open while it answered on others. No request uses one after an old
    connection was dropped.
    """

    def __init__(self, url: str, *, tls: ssl.SSLContext | bool = True) -> None:
        self._origin = str(yarl.URL(url).origin())
        # The zone of a link-local address is a name of this machine: no server gets it (RFC 6874).
        self._host: list[tuple[str, str]] = []
        if "%" in self._origin:
            host = self._origin.partition("//")[2]
            self._host.append(("Host", re.sub("%[^]]*", "", host)))
        self._tls = tls
        # By whether their connections are kept.
        self._sessions: dict[bool, aiohttp.ClientSession] = {}
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._closed = False
        self._first: _FirstConnection | None = None  # of those that are kept
        self._keeps = False  # the server keeps connections open
        self._drops = False  # the server has dropped a used connection

    async def send(
        self,
        method: str,
        target: str,
        headers: Headers,
        content: bytes | None,
        limits: TimeLimits,
        permit: Permit,
    ) -> ArrivingAnswer:
        """Send the request to the target; return the answer when its head has arrived."""
        new_sockets: list[socket.socket] = []
        _NEW_SOCKETS.set(new_sockets)
        deadline = limits.pace and asyncio.get_running_loop().time() + limits.connect + limits.pace
        try:
            is_kept = not self._drops and (
                method in READS or self._keeps or True not in self._sessions
            )
            session = self._session(kept=is_kept)
            sending = session.request(
                method,
                yarl.URL(self._origin + target, encoded=True),
                headers=[*self._host, *headers],
                data=content or None,
                # aiohttp gives a type also to a write without a body. All else that it would add is among the headers.
                skip_auto_headers=None if method in READS else ("Content-Type",),
                allow_redirects=False,
                timeout=_client_timeout(limits),
            )
            if deadline is None:
                response = await sending
            else:
                async with asyncio.timeout_at(deadline):
                    response = await sending
        except BaseException as error:
            if isinstance(error, TimeoutError):
                permit.overloaded()
            permit.release()
            ours = _classified(error, limits) if isinstance(error, _FAILURES) else error
            self._drops = self._drops or (isinstance(ours, InDoubtError) and not new_sockets)
            if ours is error:
                raise
            raise ours from error
        answer = ArrivingAnswer(response, permit, limits, deadline, response.status)
        if not self._keeps:
            self._learn(answer, new_sockets, is_kept=is_kept)
        return answer

    def _learn(
        self, answer: ArrivingAnswer, new_sockets: Sequence[socket.socket], *, is_kept: bool
    ) -> None:
        """Note what an answer shows of whether the server keeps connections open."""
        first = self._first
        if not new_sockets:
            self._keeps = True
        elif first is not None:
            first.answers_beside += first.answer.is_closed
            if first.answers_beside >= _ANSWERS_BESIDE:
                self._keeps = first.socket.fileno() >= 0
                self._first = None
        elif is_kept:
            self._first = _FirstConnection(answer, new_sockets[-1])

    async def aclose(self) -> None:
        """Close all connections."""
        self._closed = True
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()
        for _ in range(_CLOSING_STEPS):
            if all(open_socket.fileno() < 0 for open_socket in self._sockets):
                break
            await asyncio.sleep(_CLOSING_SECONDS / _CLOSING_STEPS)

    def _socket(self, info: tuple[Any, ...]) -> socket.socket:
        made = socket.socket(info[0], info[1], info[2])
        self._sockets.add(made)
        _NEW_SOCKETS.get().append(made)
        return made

    def _session(self, *, kept: bool) -> aiohttp.ClientSession:
        if self._closed:
            raise NotSentError("the client is closed", remedy="open a new one")
        if kept not in self._sessions:
            keeping: dict[str, Any] = (
                {"keepalive_timeout": _IDLE_SECONDS} if kept else {"force_close": True}
            )
            # The number of connections is bounded by the permits, so that waiting for one is not a connect time-out.
            self._sessions[kept] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0, ssl=self._tls, socket_factory=self._socket, **keeping
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                middlewares=(_once,),
                max_line_size=_HEAD_BYTES,
                max_field_size=_HEAD_BYTES,
            )
        return self._sessions[kept]


async def _once(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Classify the errors after which aiohttp would send an idempotent request again; it does not know ours."""
    try:
        return await handler(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _classified(error) from error


@dataclass(slots=True)
class ArrivingAnswer:
    """An answer whose body is read piece by piece. It must be closed, which releases its connection and permit."""

    _response: aiohttp.ClientResponse
    _permit: Permit
    _limits: TimeLimits
    _deadline: float | None
    status: int
    _received: int = 0
    is_closed: bool = False

    def header(self, name: str) -> str:
        """Return a header, with all its values; empty without it."""
        text = ", ".join(self._response.headers.getall(name, ()))
        if text.isascii():
            return text
        try:
            text.encode()
        except UnicodeEncodeError:  # aiohttp decodes UTF-8, and keeps other bytes as surrogates
            return text.encode("utf-8", "surrogateescape").decode("latin-1")
        return text

    async def read(self) -> bytes:
        """Return the next bytes of the decompressed body; none at its end."""
        try:
            if self._limits.pace is None:
                return await self._response.content.readany()
            async with asyncio.timeout_at(self._deadline):
                chunk = await self._response.content.readany()
        except _FAILURES as error:
            if isinstance(error, TimeoutError):
                self._permit.overloaded()
            raise _classified(error, self._limits) from error
        self._received += len(chunk)
        if self._received >= _PACE_BYTES:  # it arrived in time: the same time for the next
            self._received = 0
            self._deadline = asyncio.get_running_loop().time() + self._limits.pace
        return chunk

    async def aclose(self) -> None:
        """Release the connection and the permit, once."""
        if self.is_closed:
            return
        self.is_closed = True
        if self._response.content.at_eof():
            self._response.release()
        else:
            self._response.close()
        self._permit.release()


@dataclass(slots=True)
class _FirstConnection:
    """The connection of the first answer, and how many answers came on others since that one is read."""

    answer: ArrivingAnswer
    socket: socket.socket
    answers_beside: int = 0


class HttpxTransport:
    """A transport of httpx2 in place of the network, such as ``httpx2.MockTransport``; a sync one runs in a thread."""

    def __init__(self, url: str, transport: Transport) -> None:
        self._url = url
        self._transport = transport

    async def send(
        self,
        method: str,
        target: str,
        headers: Headers,
        content: bytes | None,
        limits: TimeLimits,
        permit: Permit,
    ) -> HttpxAnswer:
        """Send the request. Its extension ``target`` is the exact target, which httpx2 may rewrite in its URL."""
        import httpx2

        timeout = {"connect": limits.connect, "read": limits.read}
        encoded = [(name.encode(), text.encode()) for name, text in headers]
        extensions = {"target": target.encode("ascii"), "timeout": timeout}
        request = httpx2.Request(
            method, self._url + target, headers=encoded, content=content, extensions=extensions
        )
        try:
            if isinstance(self._transport, httpx2.AsyncBaseTransport):
                response = await self._transport.handle_async_request(request)
            else:
                response = await asyncio.to_thread(self._transport.handle_request, request)
                response = httpx2.Response(
                    response.status_code, headers=response.headers, content=response.read()
                )
        except BaseException as error:
            if isinstance(error, httpx2.TimeoutException):
                permit.overloaded()
            permit.release()
            # It is not ours: its classification is not reliable.
            if isinstance(error, httpx2.TransportError):
                raise InDoubtError(
                    f"the connection failed: {error}", remedy="check the server"
                ) from error
            raise
        return HttpxAnswer(response, permit)

    async def aclose(self) -> None:
        """Close nothing: who made the transport closes it."""


class HttpxAnswer:
    """An answer of httpx2, with the methods of :class:`ArrivingAnswer`."""

    def __init__(self, response: httpx2.Response, permit: Permit) -> None:
        self._permit = permit
        self.status = response.status_code
        self._response = response
        self._chunks = response.aiter_bytes()

    def header(self, name: str) -> str:
        """Return a header; empty without it."""
        return str(self._response.headers.get(name, ""))

    async def read(self) -> bytes:
        """Return the next bytes of the body; none at its end."""
        return await anext(self._chunks, b"")

    async def aclose(self) -> None:
        """Close the answer, and release the permit."""
        self._permit.release()
        await self._response.aclose()


@lru_cache(maxsize=64)
def _client_timeout(limits: TimeLimits) -> aiohttp.ClientTimeout:
    # `connect` covers looking up the name, connecting and the TLS handshake.
    return aiohttp.ClientTimeout(
        limits.total and limits.connect + limits.total, limits.connect, limits.read
    )


def _classified(error: Exception, limits: TimeLimits | None = None) -> MsautoError:
    """Return our error for a failure: not sent, or in doubt."""
    if isinstance(error, _NOT_SENT):
        return _not_sent(error)
    if isinstance(error, aiohttp.ServerTimeoutError) or (
        isinstance(error, TimeoutError) and error.errno is not None
    ):
        setting = limits.setting if limits else "read"
        remedy = f"check the server; raise `timeouts.{setting}` if the server is slow"
        return InDoubtError("no answer within the time allowed", remedy=remedy)
    if isinstance(error, TimeoutError) and limits is not None:
        message = f"the answer was incomplete after {limits.total or 0:g} s, although bytes of it kept arriving"
        if limits.pace is not None:
            message = (
                f"less than {_PACE_BYTES // 1024} KiB of the answer arrived in {limits.pace:g} s"
            )
        return TooSlowError(
            message, remedy="check the server and the network; raise `timeouts` if they are slow"
        )
    if isinstance(error, aiohttp.ClientResponseError):
        return InDoubtError(
            f"the answer is not valid HTTP: {_short(error.message)}",
            remedy="check what answers at the server's address and port",
        )
    return InDoubtError(
        f"the connection closed before the answer was complete: {_reason(error)}",
        remedy="check the server's log and the network",
    )


def _not_sent(error: Exception) -> MsautoError:
    message = "no connection"
    remedy = "check that the server runs, its address and its port"
    match error:
        case aiohttp.ConnectionTimeoutError():
            remedy = "check the address, the network and the server; raise `timeouts.connect` if the network is slow"
            return UnreachableError("no connection within the time allowed", remedy=remedy)
        case aiohttp.ClientConnectorDNSError():
            message = "the host name cannot be resolved"
            remedy = "check the host name in the inventory"
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            message = "no secure connection"
            remedy = "check `tls` in the inventory: ca, cert, verify"
    reason = _reason(error)
    if reason in _NO_TLS:
        message = "no secure connection"
        remedy = "use http:// in the URL of the inventory, if the server has no TLS"
        reason = "the server does not answer with TLS (https)"
    return UnreachableError(f"{message}: {reason}", remedy=remedy)


_NO_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"})
"""OpenSSL's reasons for an answer that is not TLS."""


_ALERT: Final = re.compile(r"\[SSL: (\w+ALERT\w+)\]")
"""The reason for which the other side closed the connection."""


def _reason(error: Exception) -> str:
    inner = getattr(error, "os_error", None) or getattr(error, "certificate_error", None) or error
    text = str(inner)
    alert = _ALERT.search(text)
    if alert:  # its errno belongs to OpenSSL, too
        return alert[1]
    if isinstance(inner, ssl.SSLError):  # its errno belongs to OpenSSL, not to the system
        return _short(getattr(inner, "verify_message", "") or inner.reason or text)
    number = getattr(inner, "errno", None)
    # asyncio's own text is about its calls; name resolution has numbers below 0.
    if number and number > 0:
        text = os.strerror(number)
    else:
        text = str(getattr(inner, "strerror", None) or text)
    inside = _PARSER.search(text[:_LONGEST_REASON])
    if inside:
        text = inside[1]
    return _short(text) or type(error).__name__


def _short(text: str) -> str:
    return " ".join(text.split())[:200]
