"""The client of one media server: auth, TLS, time-outs, limits, read-only mode. A library of its own.

::

    async with AsyncMediaServer("http://studio-a:7901") as server:
        clip = await server.asset("NEWS", "Evening News")
        await server.set_field("NEWS", "Evening News", "comment", "Ready")

Reads are tried again when that may help; a write is sent once, and only reading again tells what came of one whose
answer was lost (:class:`msauto.errors.FateUnknownError`). For scripts without asyncio: :class:`msauto.MediaServer`.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar
from urllib.parse import unquote, urlsplit

import httpx2

from msauto.errors import AddressError, FateUnknownError, MsautoError, NotSentError, RefusedError, ServerError
from msauto.model.plan import Request
from msauto.model.ports import Answer, Clock
from msauto.model.spec import DEFAULT_PORT, Auth, Secret, ServerSpec, Tls
from msauto.server.answers import Reply, judge_body, judge_status, judge_write, read_retry_after
from msauto.server.download import save
from msauto.server.listing_answer import Reading, read_arriving
from msauto.server.redaction import Redaction
from msauto.server.requests import request_line_length
from msauto.server.retries import SystemClock, with_retries
from msauto.server.shapes.failure import clean, show_body
from msauto.server.transport import TARGET, ExactTransport
from msauto.server.verbs import Verbs
from msauto.server.xml import MAX_BYTES, unreadable
from msauto.version import __version__

T = TypeVar("T")

_READS: Final = frozenset({"GET", "HEAD"})
_ERROR_BYTES: Final = 2**20
# With TLS 1.3 a server says only after the handshake that it wants another certificate of ours.
_MAYBE_TLS: Final = "; a server that wants another client certificate ends so as well: check `tls`"


class AsyncMediaServer(Verbs):
    """One media server, asynchronously. Give it a URL, or the spec of an inventory.

    ``read_only`` refuses everything but GET and HEAD before anything leaves. ``transport`` replaces the network.
    ``reads`` counts the reads asked for, without repetitions.
    """

    def __init__(
        self,
        server: ServerSpec | str,
        *,
        read_only: bool = False,
        transport: httpx2.AsyncBaseTransport | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.spec = spec_of(server) if isinstance(server, str) else server
        self.read_only = read_only
        self.reads = 0
        self._clock = clock or SystemClock()
        self._headers = _headers(self.spec)
        self._base = httpx2.URL(_base_url(self.spec))
        self._secrets = Redaction(self.spec)
        self._transport = transport or ExactTransport(
            connections=self.spec.connections, tls=_tls(self.spec), proxy=self.spec.proxy
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._transport.aclose()

    async def send(self, request: Request) -> Answer:
        """Send a write, once; a read is tried again. Raises ``NotSentError``, ``FateUnknownError``, ``RejectedError``.

        Nothing in the answer is relied on, but an error text or an error document in it is an error.
        """
        if request.method in _READS:
            return await self.read(request, self._answer)
        self._check(request)

        async def write() -> Answer:
            reply = await self._exchange(request, self._write_timeout(request))
            judge_status(reply, self.spec.dialect)
            judge_write(reply, self.spec.dialect)
            return self._answer(reply)

        return await self._told(request, write)

    async def read(self, request: Request, parse: Callable[[Reply], T], *, seconds: float | None = None) -> T:
        """Send a read, up to four times, and return what ``parse`` makes of the answer.

        ``seconds`` between bytes, default ``timeouts.read``. A status of 300 and above is an error.
        """
        self._check(request)
        self.reads += 1

        async def attempt() -> Reply:
            reply = await self._exchange(request, seconds or self.spec.timeouts.read)
            judge_status(reply, self.spec.dialect)
            return reply

        async def read() -> T:
            return parse(await with_retries(attempt, self._clock))

        return await self._told(request, read)

    async def read_listing(self, request: Request, begin: Callable[[str | None], Reading[T]]) -> T:
        """Send a read as :meth:`read` does, and parse its answer while it arrives: it may be too large to be held.

        ``begin`` gets the charset that HTTP names, and returns what parses one answer.
        """
        self._check(request)
        self.reads += 1

        async def attempt() -> T:
            async with self._open(request, self.spec.timeouts.listing) as response:
                if response.status_code >= 300:
                    judge_status(await self._reply(response, MAX_BYTES), self.spec.dialect)
                charset = response.charset_encoding

                def judge(head: bytes) -> None:
                    judge_body(Reply(response.status_code, head, charset), self.spec.dialect)

                async with aclosing(response.aiter_bytes()) as chunks:
                    return await read_arriving(chunks, begin(charset), judge)

        return await self._told(request, lambda: with_retries(attempt, self._clock))

    async def ask(self, request: Request, *, seconds: float | None = None) -> Reply:
        """Send a read once, and return the answer as it came, whatever its status says: for `msauto probe`."""
        if request.method not in _READS:
            raise ValueError(f"{request.method} is no read")
        self._check(request)
        self.reads += 1
        return await self._told(request, lambda: self._exchange(request, seconds or self.spec.timeouts.read))

    async def download(self, request: Request, dest: Path, *, seconds: float | None = None) -> int:
        """Save the answer to a read as a file, whole or not at all; return its size in bytes."""
        self._check(request)
        self.reads += 1

        async def attempt() -> int:
            async with self._open(request, seconds or self.spec.timeouts.read, identity=True) as response:
                await self._judge_download(response)
                async with aclosing(self._media(response)) as chunks:
                    return await save(chunks, dest)

        return await self._told(request, lambda: with_retries(attempt, self._clock))

    def hide(self, text: str) -> str:
        """Return a text with this server's secrets taken out of it."""
        return self._secrets.hide(text)

    # One exchange ----------------------------------------------------------------------------------------------

    async def _exchange(self, request: Request, seconds: float) -> Reply:
        async with self._open(request, seconds) as response:
            return await self._reply(response, MAX_BYTES)

    @asynccontextmanager
    async def _open(
        self,
        request: Request,
        seconds: float,
        *,
        identity: bool = False,
    ) -> AsyncIterator[httpx2.Response]:
        headers = [*self._headers, (b"Accept-Encoding", b"identity" if identity else b"gzip, deflate")]
        if request.body is not None:
            headers.append((b"Content-Type", request.body.media_type.encode("ascii")))
        message = httpx2.Request(
            request.method,
            self._base,
            headers=headers,
            content=request.body.content if request.body else None,
            extensions={
                TARGET: request.path.encode("ascii"),
                "timeout": {"connect": self.spec.timeouts.connect, "read": seconds},
            },
        )
        try:
            response = await self._transport.handle_async_request(message)
        except httpx2.TransportError as error:  # of a transport that is not ours, whose word is not relied on
            raise FateUnknownError(f"the connection failed: {error}", remedy="look at the server") from error
        try:
            yield response
        finally:
            await response.aclose()

    async def _reply(self, response: httpx2.Response, most: int) -> Reply:
        data = bytearray()
        async for chunk in response.aiter_bytes():
            data += chunk
            if len(data) > most:
                raise unreadable(f"the answer is larger than {most // 2**20} MiB", "ask for less: single folders")
        return Reply(
            status=response.status_code,
            data=bytes(data),
            charset=response.charset_encoding,
            media_type=response.headers.get("content-type", ""),
            retry_after=read_retry_after(response.headers.get("retry-after"), self._clock.now()),
            location=clean(response.headers.get("location", "")),
        )

    async def _judge_download(self, response: httpx2.Response) -> None:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status_code >= 300 or kind in {"text/html", "text/xml", "application/xml", "text/plain"}:
            reply = await self._reply(response, _ERROR_BYTES)
            judge_status(reply, self.spec.dialect)
            judge_body(reply, self.spec.dialect)
            raise unreadable(f"the answer is no media file but {kind}: {show_body(reply.data, reply.charset)}")

    async def _media(self, response: httpx2.Response) -> AsyncGenerator[bytes, None]:
        empty = True
        async for chunk in response.aiter_bytes():
            empty = empty and not chunk
            yield chunk
        if empty:
            raise unreadable("the answer is an empty file", "look at the server: it made no media")

    def _answer(self, reply: Reply) -> Answer:
        return Answer(reply.status, self._secrets.hide(show_body(reply.data, reply.charset)))

    def _write_timeout(self, request: Request) -> float:
        # A batch of metadata may keep the server busy as long as a large listing does.
        batch = request.method == "PUT" and request.path.startswith("/storage/")
        return self.spec.timeouts.listing if batch else self.spec.timeouts.read

    # Checks and messages ---------------------------------------------------------------------------------------

    def _check(self, request: Request) -> None:
        if self.read_only and request.method not in _READS:
            raise RefusedError(
                f"server {self.spec.name}: {_shown(request)} was not sent: this client only reads",
                remedy="open it without `read_only`",
            )
        length = request_line_length(request)
        if length > self.spec.request_line:
            raise NotSentError(
                f"not sent: the request line has {length} bytes, more than the {self.spec.request_line} allowed",
                server=self.spec.name,
                request=_shown(request),
                remedy="shorten the values, or raise `request_line` of the server if it takes longer ones",
            )

    async def _told(self, request: Request, work: Callable[[], Awaitable[T]]) -> T:
        """Await ``work()``; an error learns which server and which request it is about."""
        try:
            return await work()
        except ServerError as error:
            error.server = error.server or self.spec.name
            error.request = error.request or _shown(request)
            if isinstance(error, FateUnknownError) and self.spec.url.startswith("https:"):
                error.remedy += _MAYBE_TLS
            self._secrets.clean(error)
            raise


def spec_of(url: str) -> ServerSpec:
    """Return the spec of a server named by its host; the port is 7901 if the URL has none.

    A user name and password in the URL become HTTP basic authentication. Raises ``AddressError``.
    """
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port or DEFAULT_PORT
    except ValueError as error:
        # Where a password holds a slash, what cannot be read is the password.
        why = "" if "@" in url else f": {error}"
        raise AddressError(f"the server's URL cannot be read{why}", remedy="write http://host:7901") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path not in {"", "/"} or parts.query:
        shown = "this URL" if "@" in url else f"{parts.scheme}://{parts.hostname or ''}{parts.path}"
        raise AddressError(
            f"{shown} is no address of a media server",
            remedy="write http://host:7901, without a path",
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    auth = Auth()
    if parts.username:
        auth = Auth(username=unquote(parts.username), password=Secret(unquote(parts.password or "")))
    return ServerSpec(name=parts.hostname, url=f"{parts.scheme}://{host}:{port}", auth=auth)


def _base_url(spec: ServerSpec) -> str:
    plain = spec_of(spec.url)
    if plain.auth != Auth():
        raise AddressError(f"server {spec.name}: its URL holds a password", remedy="say it as `auth`")
    return plain.url


def _shown(request: Request) -> str:
    path = request.path if len(request.path) <= 200 else f"{request.path[:199]}…"
    return f"{request.method} {path}"


def _headers(spec: ServerSpec) -> list[tuple[bytes, bytes]]:
    headers = [(b"User-Agent", f"msauto/{__version__}".encode()), (b"Accept", b"*/*")]
    auth = spec.auth
    for user in (auth.username, spec.proxy.username if spec.proxy else None):
        if user is not None and ":" in user:
            raise AddressError(f"server {spec.name}: a user name holds a colon", remedy="no server can tell them apart")
    if auth.username is not None:
        pair = f"{auth.username}:{auth.password.reveal() if auth.password else ''}"
        headers.append((b"Authorization", b"Basic " + base64.b64encode(pair.encode())))
    if auth.bearer is not None:
        headers.append((b"Authorization", b"Bearer " + _header_value(auth.bearer, "bearer", spec)))
    headers.extend((name.encode("ascii", "replace"), _header_value(value, name, spec)) for name, value in auth.headers)
    return headers


def _header_value(secret: Secret, name: str, spec: ServerSpec) -> bytes:
    text = secret.reveal()
    if not text.isprintable():
        raise AddressError(
            f"server {spec.name}: the value of auth {name!r} holds a line end or another control character",
            remedy="check where the secret comes from: a file often ends with a line end",
        )
    return text.encode()


def _tls(spec: ServerSpec) -> ssl.SSLContext | bool:
    if not spec.url.startswith("https:") or spec.tls == Tls():
        return True
    tls = spec.tls
    try:
        context = ssl.create_default_context(cafile=tls.ca)
        if tls.cert:
            password = tls.key_password.reveal() if tls.key_password else ""
            # Without a password of ours OpenSSL would ask for one on the terminal, and wait.
            context.load_cert_chain(tls.cert, tls.key, password=lambda: password)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise _tls_error(spec, error) from None
    if not tls.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _tls_error(spec: ServerSpec, error: Exception) -> MsautoError:
    files = ", ".join(name for name in (spec.tls.ca, spec.tls.cert, spec.tls.key) if name)
    return NotSentError(
        f"the TLS files cannot be used ({files}): {error}",
        server=spec.name,
        remedy="`tls` needs PEM files: ca, and cert with its key in the same file or as key; "
        "`key_password` for a key that is encrypted",
    )
