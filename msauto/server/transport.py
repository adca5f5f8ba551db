"""Exact bytes, one send: an httpx2 transport over an aiohttp session.

The ready-made bridges are unsafe here: they rewrite paths (``%40`` becomes ``@``, dot segments vanish), aiohttp
sends idempotent methods again on a dropped kept-alive connection, and errors after sending come back as connect
errors. ``tests/wire`` proves this one against raw sockets.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self, TypeVar
from weakref import WeakSet

import aiohttp
import httpx2
import yarl

from msauto.errors import InDoubtError, MsautoError, NotSentError, UnreachableError
from msauto.model.server import Proxy

T = TypeVar("T")

TARGET: Final = "target"
"""The request extension that holds the request target as bytes: httpx2 would rewrite a path in a URL."""
CODED: Final = "coded"
"""The response extension that tells whether the content was coded (gzip), so that its bytes are not the server's."""

# Many servers close an idle connection after five seconds. A write on a connection that is being closed has an
# unknown fate, so ours are given up a little earlier.
_IDLE_SECONDS: Final = 4.0
_HEAD_BYTES: Final = 65536
_PACE_BYTES: Final = 65536
_FAREWELL: Final = 0.2
_FAREWELL_TURNS: Final = 50
"""So many seconds, at most, connections of TLS that are being closed are waited for: both sides say farewell there."""
_READS: Final = frozenset({"GET", "HEAD"})
_PARSER = re.compile(r"message=(?:'|\")(.+?)(?:'|\")>?\Z")
_DECODED: Final = frozenset({b"content-encoding", b"content-length", b"transfer-encoding"})

# Raised only while a connection is being made: nothing of the request has left.
# A proxy that refuses CONNECT has opened no way to the server either.
_NOT_SENT = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
    aiohttp.ClientHttpProxyError,
)
_BROKEN = (aiohttp.ClientError, OSError, asyncio.TimeoutError, asyncio.IncompleteReadError, ValueError)


class TooSlowError(InDoubtError):
    """The answer comes, but so slowly that it would never end: asking again would take as long once more."""


class ExactTransport(httpx2.AsyncBaseTransport):
    """Sends each request once, byte for byte; follows no redirects, keeps no cookies, looks at no environment.

    ``connections`` is how many requests are under way at once; others wait, however long. Raises
    :class:`NotSentError` where it is certain that nothing left, else :class:`FateUnknownError`; both also while the
    body is read. The time-outs of a request (extension ``timeout``) are ``connect``, ``read`` between bytes, and one of
    ``total`` for the whole answer, or ``pace`` for each 64 KiB of it: then :class:`TooSlowError`.

    Many a server closes each connection after its answer without saying so: a write on one that is being closed would
    have an unknown fate, though nobody ever saw it. So a write goes on a used connection only once this server has
    been seen to keep one, and nothing does any more once a used connection has dropped.
    """

    def __init__(self, *, connections: int = 16, tls: ssl.SSLContext | bool = True, proxy: Proxy | None = None) -> None:
        self._tls = tls
        self._proxy = proxy
        self._for_proxy = _for_proxy(proxy)
        self._free = asyncio.Semaphore(connections)
        self._sessions: dict[bool, aiohttp.ClientSession] = {}  # by whether their connections are kept
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._closed = False
        self._keeps = False  # a used connection has brought an answer
        self._drops = False  # a used connection has brought none

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request; the target is the extension ``target``, or else the URL's own path."""
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
            await asyncio.sleep(0)  # lets plain sockets close their transports before the loop ends
            self._sessions.clear()
        for _ in range(_FAREWELL_TURNS):
            if all(each.fileno() < 0 for each in self._sockets):
                break
            await asyncio.sleep(_FAREWELL / _FAREWELL_TURNS)

    def _socket(self, info: tuple[Any, ...]) -> socket.socket:
        made = socket.socket(info[0], info[1], info[2])
        self._sockets.add(made)
        return made

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        await self.aclose()

    async def _send(self, request: httpx2.Request, time_limit: _AnswerTimeout) -> aiohttp.ClientResponse:
        content = await request.aread()
        way = _Route()
        session = self._open(kept=self._may_reuse(request.method))
        try:
            response = await time_limit.bound(
                session.request(
                    request.method,
                    _exact_url(request),
                    headers=self._headers(request),
                    skip_auto_headers=("Content-Type", "User-Agent", "Accept", "Accept-Encoding"),
                    data=content or None,
                    allow_redirects=False,
                    timeout=_timeout(request.extensions.get("timeout") or {}),
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
            raise _fate_unknown(error) from error
        self._keeps = self._keeps or way.used
        return response

    def _may_reuse(self, method: str) -> bool:
        return not self._drops and (self._keeps or method in _READS)

    def _headers(self, request: httpx2.Request) -> list[tuple[str, str]]:
        headers = [(name.decode("ascii"), value.decode("utf-8")) for name, value in request.headers.raw]
        # Through a tunnel (https) the proxy is told by CONNECT, and the server must not learn of it.
        return [*headers, *(self._for_proxy.items() if request.url.scheme == "http" else ())]

    def _open(self, *, kept: bool) -> aiohttp.ClientSession:
        if self._closed:
            raise NotSentError("the client is closed", remedy="open a new one")
        if kept not in self._sessions:
            keeping: dict[str, Any] = {"keepalive_timeout": _IDLE_SECONDS} if kept else {"force_close": True}
            # The number of connections is bounded by the semaphore, so that waiting for one is no connect time-out.
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


@dataclass(slots=True)
class _Route:
    """Which way a request went: on a connection that had been used before, or on a new one."""

    used: bool = False


def _tracing() -> aiohttp.TraceConfig:
    async def note(_: aiohttp.ClientSession, context: Any, __: aiohttp.TraceConnectionReuseconnParams) -> None:
        context.trace_request_ctx.used = True

    tracing = aiohttp.TraceConfig()
    tracing.on_connection_reuseconn.append(note)
    return tracing


async def _once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Tell errors apart before aiohttp sees them: on some it would send an idempotent request again.

    It does so by calling its handler in a loop, on ``ClientOSError`` and ``ServerDisconnectedError`` alone; ours are
    neither, so the loop ends.
    """
    try:
        return await handler(request)
    except _NOT_SENT as error:
        raise _not_sent(error) from error
    except _BROKEN as error:
        raise _fate_unknown(error) from error


class _AnswerTimeout:
    """Until when an answer must be there: bytes that trickle would else keep us for ever."""

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
        """Take note of bytes that came: where the pace counts, there is new time."""
        self._length += length
        if self._pace is not None and self._length >= _PACE_BYTES:
            self._begin()

    async def bound(self, work: Awaitable[T]) -> T:
        """Await; raise :class:`TooSlowError` where the time is over."""
        try:
            async with asyncio.timeout_at(self._when) as bounds:
                return await work
        except TimeoutError:
            if not bounds.expired():
                raise
            raise _too_slow(self._pace, self._total) from None


class _Stream(httpx2.AsyncByteStream):
    """The body, decompressed; gives the connection and its place back once, when read or closed."""

    def __init__(self, response: aiohttp.ClientResponse, free: asyncio.Semaphore, time_limit: _AnswerTimeout) -> None:
        self._response = response
        self._free: asyncio.Semaphore | None = free
        self._patience = time_limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            while chunk := await self._patience.bound(self._response.content.readany()):
                self._patience.note(len(chunk))
                yield chunk
        except _BROKEN as error:
            raise _fate_unknown(error) from error

    async def aclose(self) -> None:
        if self._free is None:
            return
        free, self._free = self._free, None
        self._response.release() if self._response.content.at_eof() else self._response.close()
        free.release()


def _for_proxy(proxy: Proxy | None) -> dict[str, str]:
    if proxy is None or proxy.username is None:
        return {}
    pair = f"{proxy.username}:{proxy.password.reveal() if proxy.password else ''}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


def _exact_url(request: httpx2.Request) -> yarl.URL:
    target = request.extensions.get(TARGET, request.url.raw_path)
    url = request.url
    port = f":{url.port}" if url.port is not None else ""
    host = f"[{url.host}]" if ":" in url.host else url.raw_host.decode("ascii")
    return yarl.URL(f"{url.scheme}://{host}{port}{bytes(target).decode('ascii')}", encoded=True)


def _headers(response: aiohttp.ClientResponse) -> list[tuple[bytes, bytes]]:
    # aiohttp has undone the coding of the content, which httpx2 would otherwise undo once more.
    decoded = "Content-Encoding" in response.headers
    return [(name, value) for name, value in response.raw_headers if not decoded or name.lower() not in _DECODED]


def _timeout(seconds: Mapping[str, float | None]) -> aiohttp.ClientTimeout:
    # `connect` covers looking up the name, connecting and the TLS handshake.
    return aiohttp.ClientTimeout(total=None, connect=seconds.get("connect"), sock_read=seconds.get("read"))


def _not_sent(error: Exception) -> MsautoError:
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return UnreachableError(
            "no connection within the time allowed",
            remedy="check the address, the network and the server; raise `timeouts.connect` if it is just far away",
        )
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return UnreachableError(
            f"the proxy opens no way to the server: {error.status} {error.message}"[:200],
            remedy="check `proxy` in the server's inventory entry, and what the proxy allows",
        )
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return UnreachableError(
            f"no connection to the proxy: {_reason(error)}", remedy="check `proxy` in the server's inventory entry"
        )
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return UnreachableError(
            f"its name cannot be looked up: {_reason(error)}", remedy="check the host name in the inventory"
        )
    if isinstance(error, (aiohttp.ClientConnectorCertificateError, aiohttp.ClientSSLError)):
        return UnreachableError(
            f"no safe connection: {_reason(error)}", remedy="check `tls` in the inventory: ca, cert, verify"
        )
    return UnreachableError(
        f"no connection: {_reason(error)}", remedy="check that the server runs, its address and its port"
    )


def _fate_unknown(error: Exception) -> MsautoError:
    if isinstance(error, (asyncio.TimeoutError, aiohttp.ServerTimeoutError)):
        return InDoubtError(
            "no answer within the time allowed", remedy="look at the server; raise `timeouts.read` if it is just slow"
        )
    if isinstance(error, aiohttp.ClientResponseError):
        return InDoubtError(
            f"the answer is no HTTP that can be read: {_short(error.message)}",
            remedy="look at what answers at the server's address and port",
        )
    return InDoubtError(
        f"the connection broke before the whole answer came: {_reason(error)}",
        remedy="look at the server's log and the network",
    )


def _too_slow(pace: float | None, total: float | None) -> TooSlowError:
    told = (
        f"less than {_PACE_BYTES // 1024} KiB of the answer came in {pace:g} s"
        if pace is not None
        else f"the answer was not whole after {total or 0:g} s, though bytes of it came all the time"
    )
    return TooSlowError(told, remedy="look at the server and the network; raise `timeouts` if it is just slow")


def _reason(error: Exception) -> str:
    inner = getattr(error, "os_error", None) or getattr(error, "certificate_error", None) or error
    if isinstance(inner, ssl.SSLError):  # its errno is one of OpenSSL, not of the system
        return _short(getattr(inner, "verify_message", "") or inner.reason or str(inner))
    number = getattr(inner, "errno", None)  # asyncio's own words are about its calls; look-ups of names count below 0
    text = os.strerror(number) if number and number > 0 else getattr(inner, "strerror", None) or str(inner)
    inside = _PARSER.search(str(text))
    return _short(inside[1] if inside else str(text)) or type(error).__name__


def _short(text: str) -> str:
    return " ".join(text.split())[:200]
