"""Send exact bytes, once: an httpx2 transport over an aiohttp session.

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
from collections.abc import AsyncIterator, Awaitable, Mapping
from types import SimpleNamespace
from typing import Any, Final, TypeVar
from weakref import WeakSet

import aiohttp
import httpx2
import yarl

from msauto.errors import InDoubtError, MsautoError, NotSentError, UnreachableError
from msauto.model.server import Proxy
from msauto.server.connection import basic_credentials

T = TypeVar("T")

TARGET: Final = "target"
"""The request extension that holds the request target as bytes: httpx2 would rewrite a path in a URL."""
CODED: Final = "coded"
"""The response extension that is true if the content was compressed, so that its bytes are not those sent."""

# Many servers close an idle connection after five seconds. A write on a connection that is being closed is in doubt,
# so ours are closed a little earlier.
_IDLE_SECONDS: Final = 4.0
_HEAD_BYTES: Final = 65536
_PACE_BYTES: Final = 65536
_CLOSING_SECONDS: Final = 0.2
_CLOSING_STEPS: Final = 50
"""The seconds, at most, to wait for TLS connections to close: both sides send a close message."""
_READS: Final = frozenset({"GET", "HEAD"})
_PARSER = re.compile(r"message=(?:'|\")(.+?)(?:'|\")>?\Z")
_DECODED: Final = frozenset({b"content-encoding", b"content-length", b"transfer-encoding"})

# Raised only while a connection is being opened: nothing of the request was sent.
# A proxy that refuses CONNECT has not connected to the server either.
_NOT_SENT = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
    aiohttp.ClientHttpProxyError,
)
_BROKEN = (aiohttp.ClientError, OSError, asyncio.TimeoutError, asyncio.IncompleteReadError, ValueError)


class TooSlowError(InDoubtError):
    """The answer arrives too slowly. Another attempt would take as long."""


class ExactTransport(httpx2.AsyncBaseTransport):
    """Sends each request once, byte for byte. Follows no redirects, keeps no cookies, ignores the environment.

    ``connections`` is the number of concurrent requests; others wait without a time limit. Raises
    :class:`NotSentError` if the request was certainly not sent, else :class:`InDoubtError`, also while the body is
    read. The time-outs of a request (extension ``timeout``) are ``connect``, ``read`` between bytes, and either
    ``total`` for the complete answer or ``pace`` for each 64 KiB of it: these two raise :class:`TooSlowError`.

    Some servers close each connection after their answer without announcing it. A write on such a connection would be
    in doubt, although the server never received it. So a write uses an old connection only after this server has
    answered on one, and no request does after an old connection was dropped.
    """

    def __init__(self, *, connections: int = 16, tls: ssl.SSLContext | bool = True, proxy: Proxy | None = None) -> None:
        self._tls = tls
        self._proxy = proxy
        self._for_proxy = _for_proxy(proxy)
        self._free = asyncio.Semaphore(connections)
        self._sessions: dict[bool, aiohttp.ClientSession] = {}  # by whether their connections are kept
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._closed = False
        self._keeps = False  # the server has answered on a used connection
        self._drops = False  # the server has dropped a used connection

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request to the extension ``target``, else to the path of the URL."""
        await self._free.acquire()
        try:
            time_limit = _AnswerTimeout(request.extensions.get("timeout") or {})
            response = await self._send(request, time_limit)
        except BaseException:
            self._free.release()
            raise
        return httpx2.Response(
            response.status,
            headers=_headers(response),
            stream=_Stream(response, self._free, time_limit),
            request=request,
            extensions={CODED: "Content-Encoding" in response.headers},
        )

    async def aclose(self) -> None:
        """Close all connections."""
        self._closed = True
        for session in self._sessions.values():
            await session.close()
        if self._sessions:
            await asyncio.sleep(0)  # plain sockets close their transports before the loop ends
            self._sessions.clear()
        for _ in range(_CLOSING_STEPS):
            if all(each.fileno() < 0 for each in self._sockets):
                break
            await asyncio.sleep(_CLOSING_SECONDS / _CLOSING_STEPS)

    def _socket(self, info: tuple[Any, ...]) -> socket.socket:
        made = socket.socket(info[0], info[1], info[2])
        self._sockets.add(made)
        return made

    async def _send(self, request: httpx2.Request, time_limit: _AnswerTimeout) -> aiohttp.ClientResponse:
        content = await request.aread()
        seconds = request.extensions.get("timeout") or {}
        way = SimpleNamespace(used=False)  # whether the connection had been used before
        session = self._open(kept=not self._drops and (self._keeps or request.method in _READS))
        try:
            response = await time_limit.bound(
                session.request(
                    request.method,
                    _exact_url(request),
                    headers=self._headers(request),
                    skip_auto_headers=("Content-Type", "User-Agent", "Accept", "Accept-Encoding"),
                    data=content or None,
                    allow_redirects=False,
                    # `connect` covers looking up the name, connecting and the TLS handshake.
                    timeout=aiohttp.ClientTimeout(None, seconds.get("connect"), seconds.get("read")),
                    trace_request_ctx=way,
                    proxy=self._proxy.url if self._proxy else None,
                    proxy_headers=self._for_proxy if request.url.scheme == "https" else None,
                )
            )
        except _NOT_SENT as error:
            raise _not_sent(error) from error
        except InDoubtError:
            self._drops = self._drops or way.used
            raise
        except _BROKEN as error:
            raise _in_doubt(error) from error
        self._keeps = self._keeps or way.used
        return response

    def _headers(self, request: httpx2.Request) -> list[tuple[str, str]]:
        headers = [(name.decode("ascii"), value.decode("utf-8")) for name, value in request.headers.raw]
        # Through a tunnel (https) CONNECT authenticates with the proxy; the server must not see the password.
        return [*headers, *(self._for_proxy.items() if request.url.scheme == "http" else ())]

    def _open(self, *, kept: bool) -> aiohttp.ClientSession:
        if self._closed:
            raise NotSentError("the client is closed", remedy="open a new one")
        if kept not in self._sessions:
            keeping: dict[str, Any] = {"keepalive_timeout": _IDLE_SECONDS} if kept else {"force_close": True}
            # The number of connections is bounded by the semaphore, so that waiting for one is not a connect time-out.
            self._sessions[kept] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ssl=self._tls, socket_factory=self._socket, **keeping),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                middlewares=(_once,),
                trace_configs=[_tracing()],
                max_line_size=_HEAD_BYTES,
                max_field_size=_HEAD_BYTES,
            )
        return self._sessions[kept]


def _tracing() -> aiohttp.TraceConfig:
    async def note(_: aiohttp.ClientSession, context: Any, __: aiohttp.TraceConnectionReuseconnParams) -> None:
        context.trace_request_ctx.used = True

    tracing = aiohttp.TraceConfig()
    tracing.on_connection_reuseconn.append(note)
    return tracing


async def _once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Classify errors before aiohttp sees them: after some it would send an idempotent request again.

    It calls its handler in a loop, for ``ClientOSError`` and ``ServerDisconnectedError`` only. Our errors are neither,
    so the loop ends.
    """
    try:
        return await handler(request)
    except _NOT_SENT as error:
        raise _not_sent(error) from error
    except _BROKEN as error:
        raise _in_doubt(error) from error


class _AnswerTimeout:
    """The deadline of an answer, without which an answer that trickles would never end."""

    __slots__ = ("_connect", "_length", "_pace", "_total", "_when")

    def __init__(self, seconds: Mapping[str, float | None]) -> None:
        self._connect = seconds.get("connect") or 0.0
        self._pace = seconds.get("pace")
        self._total = seconds.get("total")
        self._length = 0
        self._when: float | None = None
        self._begin(self._connect)

    def _begin(self, more: float = 0.0) -> None:
        bound = self._pace or self._total
        self._length = 0
        self._when = None if bound is None else asyncio.get_running_loop().time() + bound + more

    def note(self, length: int) -> None:
        """Count received bytes; with a pace, each 64 KiB extend the deadline."""
        self._length += length
        if self._pace is not None and self._length >= _PACE_BYTES:
            self._begin()

    async def bound(self, work: Awaitable[T]) -> T:
        """Await. Raises :class:`TooSlowError` after the deadline."""
        try:
            async with asyncio.timeout_at(self._when) as bounds:
                return await work
        except TimeoutError:
            if not bounds.expired():
                raise
            raise _too_slow(self._pace, self._total) from None


class _Stream(httpx2.AsyncByteStream):
    """The decompressed body. Releases the connection and its slot once, when read or closed."""

    def __init__(self, response: aiohttp.ClientResponse, free: asyncio.Semaphore, time_limit: _AnswerTimeout) -> None:
        self._response = response
        self._free: asyncio.Semaphore | None = free
        self._time_limit = time_limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            while chunk := await self._time_limit.bound(self._response.content.readany()):
                self._time_limit.note(len(chunk))
                yield chunk
        except _BROKEN as error:
            raise _in_doubt(error) from error

    async def aclose(self) -> None:
        if self._free is None:
            return
        free, self._free = self._free, None
        self._response.release() if self._response.content.at_eof() else self._response.close()
        free.release()


def _for_proxy(proxy: Proxy | None) -> dict[str, str]:
    if proxy is None or proxy.username is None:
        return {}
    return {"Proxy-Authorization": f"Basic {basic_credentials(proxy.username, proxy.password)}"}


def _exact_url(request: httpx2.Request) -> yarl.URL:
    target = request.extensions.get(TARGET, request.url.raw_path)
    url = request.url
    port = f":{url.port}" if url.port is not None else ""
    host = f"[{url.host}]" if ":" in url.host else url.raw_host.decode("ascii")
    return yarl.URL(f"{url.scheme}://{host}{port}{bytes(target).decode('ascii')}", encoded=True)


def _headers(response: aiohttp.ClientResponse) -> list[tuple[bytes, bytes]]:
    # aiohttp has decompressed the content, which httpx2 would otherwise do again.
    decoded = "Content-Encoding" in response.headers
    return [(name, value) for name, value in response.raw_headers if not decoded or name.lower() not in _DECODED]


def _not_sent(error: Exception) -> MsautoError:
    message, remedy = "no connection", "check that the server runs, its address and its port"
    match error:
        case aiohttp.ConnectionTimeoutError():
            remedy = "check the address, the network and the server; raise `timeouts.connect` if the network is slow"
            return UnreachableError("no connection within the time allowed", remedy=remedy)
        case aiohttp.ClientHttpProxyError():
            message = f"the proxy did not connect to the server: {error.status} {error.message}"[:200]
            remedy = "check `proxy` in the server's inventory entry, and what the proxy allows"
            return UnreachableError(message, remedy=remedy)
        case aiohttp.ClientProxyConnectionError():
            message, remedy = "no connection to the proxy", "check `proxy` in the server's inventory entry"
        case aiohttp.ClientConnectorDNSError():
            message, remedy = "the host name cannot be resolved", "check the host name in the inventory"
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            message, remedy = "no secure connection", "check `tls` in the inventory: ca, cert, verify"
    return UnreachableError(f"{message}: {_reason(error)}", remedy=remedy)


def _in_doubt(error: Exception) -> MsautoError:
    if isinstance(error, (asyncio.TimeoutError, aiohttp.ServerTimeoutError)):
        return InDoubtError(
            "no answer within the time allowed", remedy="check the server; raise `timeouts.read` if the server is slow"
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


def _too_slow(pace: float | None, total: float | None) -> TooSlowError:
    message = (
        f"less than {_PACE_BYTES // 1024} KiB of the answer arrived in {pace:g} s"
        if pace is not None
        else f"the answer was incomplete after {total or 0:g} s, although bytes of it kept arriving"
    )
    return TooSlowError(message, remedy="check the server and the network; raise `timeouts` if they are slow")


def _reason(error: Exception) -> str:
    inner = getattr(error, "os_error", None) or getattr(error, "certificate_error", None) or error
    if isinstance(inner, ssl.SSLError):  # its errno belongs to OpenSSL, not to the system
        return _short(getattr(inner, "verify_message", "") or inner.reason or str(inner))
    number = getattr(inner, "errno", None)  # asyncio's own text is about its calls; name resolution has numbers below 0
    text = os.strerror(number) if number and number > 0 else getattr(inner, "strerror", None) or str(inner)
    inside = _PARSER.search(str(text))
    return _short(inside[1] if inside else str(text)) or type(error).__name__


def _short(text: str) -> str:
    return " ".join(text.split())[:200]
