"""The endpoints of the interface, and the simulator on HTTP: in a thread, or in the foreground (`msauto simulate`)."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import errno
import gc
import hmac
import json
import logging
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Self, TextIO

from msgspec import Struct, field, structs

from msauto.plugins.simulator.embedded.commands import (
    COMMANDS,
    CommandCall,
    delete_asset,
    load_batch,
)
from msauto.plugins.simulator.embedded.dialect import SimDialect
from msauto.plugins.simulator.embedded.faults import Deferred, Fault, Faults, answer_with
from msauto.plugins.simulator.embedded.rss import (
    channel_xml,
    channels_xml,
    delete_item,
    find_channel,
    put_item,
)
from msauto.plugins.simulator.embedded.seed import load_state, save_state, state_from_seed
from msauto.plugins.simulator.embedded.state import ServerState, SimDatabase, SimEntry
from msauto.plugins.simulator.embedded.storage import (
    clip_xml,
    databases_parts,
    folder_parts,
    proxy_answer,
    thumbnail_answer,
    xmp_answer,
)
from msauto.plugins.simulator.embedded.wire import (
    READS,
    HttpAnswer,
    HttpRequest,
    MalformedRequestError,
    RefusalError,
    RequestAddress,
    ResourceNotFoundError,
    decode_address,
    decode_percent,
    decode_query,
    not_found_answer,
    refusal_answer,
    success_answer,
    text_answer,
    xml_answer,
)

if TYPE_CHECKING:
    from aiohttp import web


class SimServer:
    """A media server without a network. Its state and its dialect can be changed and replaced at any time."""

    def __init__(self, state: ServerState, dialect: SimDialect, restore_seconds: float) -> None:
        self.state = state
        self.dialect = dialect
        self._restore_seconds = restore_seconds

    def answer(self, request: HttpRequest, *, pretend: bool = False) -> HttpAnswer:
        """Do what the request asks for. `pretend`: a write is not done, but answered as after success."""
        try:
            return self._unauthorized(request) or self._answer(request, pretend=pretend)
        except ResourceNotFoundError:
            return not_found_answer(self.dialect)
        except RefusalError as refusal:
            return refusal_answer(refusal, self.dialect)
        except MalformedRequestError as problem:
            return text_answer(f"Error: {problem}", 400, done=False)

    def _answer(self, request: HttpRequest, *, pretend: bool) -> HttpAnswer:
        if pretend and request.method not in READS:
            return success_answer(self.dialect, None)
        limit = int(self.dialect.line_limit)
        if limit and len(request.target) > limit:
            return text_answer("Error: the request line is too long", 414, done=False)
        path, _, query = request.target.partition("?")
        request.params = decode_query(query)
        top, *segments = path.removeprefix("/").split("/")
        if segments and segments[-1] == "":
            segments.pop()
        if top == "storage":
            return self._storage(request, segments)
        if top == "rss":
            return self._rss(request, segments)
        raise ResourceNotFoundError

    def _unauthorized(self, request: HttpRequest) -> HttpAnswer | None:
        """Return a 401 for a request without the right credentials: the interface specifies no authentication."""
        dialect = self.dialect
        if dialect.auth == "none":
            return None
        pair = base64.b64encode(f"ops:{dialect.auth_secret}".encode()).decode()
        header, desired, challenge = {
            "basic": ("Authorization", f"Basic {pair}", 'Basic realm="media"'),
            "bearer": ("Authorization", f"Bearer {dialect.auth_secret}", "Bearer"),
            "header": ("X-Auth-Token", dialect.auth_secret, ""),
        }[dialect.auth]
        given = request.headers.get(header, "").encode("utf-8", "surrogateescape")
        if hmac.compare_digest(given, desired.encode()):
            return None
        answer = text_answer("Error: authentication required", 401, done=False)
        if challenge:
            answer.headers["WWW-Authenticate"] = challenge
        return answer

    def _storage(self, request: HttpRequest, segments: list[str]) -> HttpAnswer:
        if not segments:
            _only_read(request)
            return xml_answer(databases_parts(self.state, self.dialect), self.dialect)
        dialect = self.dialect
        address = decode_address(segments, dialect.ns_id == "yes", dialect.title_address == "ns")
        database = self.state.databases.get(address.database)
        if database is None:
            raise ResourceNotFoundError
        if address.asset is not None:
            return self._asset(request, database, address)
        if request.method == "PUT" and not address.folder:
            load_batch(database, request.required("connector"), request.body)
            return self._success()
        _only_read(request)
        return xml_answer(folder_parts(database, address.folder, request, dialect), dialect)

    def _asset(
        self, request: HttpRequest, database: SimDatabase, address: RequestAddress
    ) -> HttpAnswer:
        entries = self.state.find(database, address.namespace, address.asset or "", self.dialect)
        entry = entries[0]
        match request.method, *address.tail:
            case ("POST",):
                return self._command(request, database, entry)
            case ("DELETE",):
                delete_asset(database, entry, self.dialect)
                return self._success()
            case _:
                _only_read(request)
        match address.tail:
            case ("GETUSERFIELDS",):
                return xmp_answer(entry.clip, request.all_params("field"), self.dialect)
            case ("GETICON",):
                return thumbnail_answer(request, entry)
            case ("PVW", profile) | (profile,):
                return proxy_answer(request, database, entry, profile)
            case (_, *_):
                raise ResourceNotFoundError
        twins = [entry for entry in entries if entry.is_home]
        if len(twins) > 1 and self.dialect.title_twins == "both":
            clips = [clip_xml(entry, self.dialect) for entry in twins]
            return xml_answer(f"<Clips>{''.join(clips)}</Clips>", self.dialect)
        if address.namespace in (None, "title") and self.dialect.link_titles in ("clip", "other"):
            entry = structs.replace(entry, title=address.asset or "")  # the title asked for
        return xml_answer(clip_xml(entry, self.dialect), self.dialect)

    def _command(self, request: HttpRequest, database: SimDatabase, entry: SimEntry) -> HttpAnswer:
        name = request.param("command") or ""
        if name not in COMMANDS:
            raise RefusalError(400, f"unknown command {name}")
        COMMANDS[name](
            CommandCall(self.state, database, entry, request, self.dialect, self._restore_seconds)
        )
        return self._success(entry)

    def _rss(self, request: HttpRequest, segments: list[str]) -> HttpAnswer:
        match (request.method, [decode_percent(segment) for segment in segments]):
            case ("GET" | "HEAD", []):
                return xml_answer(channels_xml(self.state), self.dialect)
            case ("GET" | "HEAD", [name]):
                return xml_answer(
                    channel_xml(find_channel(self.state, name), self.dialect), self.dialect
                )
            case ("PUT", [name, file]):
                put_item(find_channel(self.state, name), file, request.body, self.dialect)
                return self._success()
            case ("DELETE", [name]):
                delete_item(find_channel(self.state, name), request.required("guid"), self.dialect)
                return self._success()
            case (_, [] | [_] | [_, _]):
                raise RefusalError(405, f"{request.method} is not supported here")
            case _:
                raise ResourceNotFoundError

    def _success(self, entry: SimEntry | None = None) -> HttpAnswer:
        shown = None
        if entry and self.dialect.command_body == "clip":
            shown = clip_xml(entry, self.dialect)
        return success_answer(self.dialect, shown)


def _only_read(request: HttpRequest) -> None:
    if request.method not in READS:
        raise RefusalError(405, f"{request.method} is not supported here")


_LINE_LIMIT = 2**20  # bytes of a request line or header, far above what the dialect limits
_LOG_LIMIT = 10**6
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_LOGGER = logging.getLogger("msauto.plugins.simulator.embedded")


class LogEntry(Struct):
    """One request. `target` is the path and query exactly as on the wire; `status` 0 means that no answer was sent.

    `done`: whether the server did the work. `fault`: the fault that was applied, such as `cut_after`.
    """

    number: int
    method: str
    target: str
    body: bytes = b""
    status: int = 0
    fault: str = ""
    done: bool = False
    time: float = field(default_factory=time.time)

    @property
    def line(self) -> str:
        """`METHOD target`: the text that the patterns of faults are matched with."""
        return f"{self.method} {self.target}"


class Simulator(SimServer):
    """An embedded media server on loopback, in its own thread.

        with Simulator(faults=["cut_after@POST .*CREATEMARKER*1"]) as sim:
            send requests to sim.url, and use sim.state, sim.log, sim.faults and sim.dialect

    state: the content, or a seed (`sample`, `empty`, `bulk:N`). state_file: keeps the state; an existing file is read.
    dialect: a SimDialect or `key=value` texts. faults: Fault values or texts. port: 0 takes any free port.
    restore_seconds: the duration of RESTORE. `deferred` holds the work of requests that a fault put off.
    log_file: receives each request as a line of JSON, before its answer is sent; `log` has the latest million.
    Raises ValueError for an unknown seed, dialect or fault, or an invalid state file.
    """

    def __init__(
        self,
        state: ServerState | str = "sample",
        dialect: SimDialect | Iterable[str] = (),
        faults: Iterable[Fault | str] = (),
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        restore_seconds: float = 0.0,
        state_file: str | Path | None = None,
        log_file: str | Path | None = None,
    ) -> None:
        self._state_file = Path(state_file) if state_file else None
        if self._state_file:
            self._state_file.parent.mkdir(parents=True, exist_ok=True)
        if self._state_file and self._state_file.exists():
            state = load_state(self._state_file)
        elif isinstance(state, str):
            state = state_from_seed(state)
        given = dialect if isinstance(dialect, SimDialect) else SimDialect.parse(dialect)
        super().__init__(state, given, restore_seconds)
        self.faults = Faults(faults)
        self.deferred = Deferred()
        self._host = host
        self._port = self.port = port
        self._log: deque[LogEntry] = deque(maxlen=_LOG_LIMIT)
        self._numbers = count(1)
        self._log_path = Path(log_file) if log_file else None
        self._log_file: TextIO | None = None
        self._thread: threading.Thread | None = None
        self._stop: Callable[[], object] = lambda: None
        self._saving: asyncio.TimerHandle | None = None
        self._pause = 0.5  # seconds from a write until the state is saved

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self.port}"

    @property
    def log(self) -> list[LogEntry]:
        """Every request, oldest first (a copy)."""
        return list(self._log)

    def writes(self) -> list[LogEntry]:
        """Return the requests other than GET and HEAD."""
        return [entry for entry in self.log if entry.method not in READS]

    def clear_log(self) -> None:
        """Remove all requests from the log; the numbers continue."""
        self._log.clear()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def start(self) -> None:
        """Serve from a thread, and return when it answers; OSError if the port or the log file cannot be used."""
        listening = self._open()
        started, ended = threading.Event(), threading.Event()

        def run() -> None:
            try:
                asyncio.run(self._serve(listening, started.set))
            finally:
                ended.set()
                started.set()

        self._thread = threading.Thread(target=run, name="simulator", daemon=True)
        self._thread.start()
        started.wait()
        if ended.is_set():
            raise RuntimeError("the simulator did not start; its thread has printed the reason")

    def stop(self) -> None:
        """Close every connection, save the state, end the thread; a second call does nothing."""
        if self._thread is not None:
            self._stop()
            self._thread.join()
            self._thread = None

    def run(self, on_started: Callable[[str], None]) -> None:
        """Serve in this thread until SIGINT, SIGTERM or SIGHUP; OSError as `start`. `on_started` receives the URL."""
        listening = self._open()
        gc.freeze()  # a large state lives as long as the process: the collector need not visit it
        signals = [signal.SIGINT, signal.SIGTERM]
        hang_up = getattr(signal, "SIGHUP", None)
        # As `nohup` sets it.
        if hang_up is not None and signal.getsignal(hang_up) is not signal.SIG_IGN:
            signals.append(hang_up)
        asyncio.run(self._serve(listening, lambda: on_started(self.url), signals=signals))

    def _open(self) -> socket.socket:
        """Open the listening socket and the log."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        try:
            listening = socket.create_server((self._host, self._port), family=family, backlog=2048)
        except OSError as problem:
            reason = (
                "is taken"
                if problem.errno == errno.EADDRINUSE
                else f"cannot be used: {problem.strerror}"
            )
            raise OSError(problem.errno, f"port {self._port} on {self._host} {reason}") from None
        self.port = int(listening.getsockname()[1])
        try:
            if self._log_path is not None:
                self._log_file = self._log_path.open("a", encoding="utf-8", buffering=1)
        except OSError:
            listening.close()
            raise
        return listening

    async def _serve(
        self,
        listening: socket.socket,
        ready: Callable[[], object],
        signals: Iterable[signal.Signals] = (),
    ) -> None:
        # aiohttp takes a tenth of a second to import, which only a running server needs.
        from aiohttp import web

        loop, stopping = asyncio.get_running_loop(), asyncio.Event()
        self._stop = partial(loop.call_soon_threadsafe, stopping.set)
        for number in signals:
            # Windows does not support signal handlers; there Ctrl-C ends asyncio.run.
            with contextlib.suppress(NotImplementedError):
                loop.add_signal_handler(number, stopping.set)
        _LOGGER.addFilter(_is_our_mistake)
        server = web.Server(
            self._exchange,
            logger=_LOGGER,
            access_log=None,
            max_line_size=_LINE_LIMIT,
            max_field_size=_LINE_LIMIT,
        )
        accepting = await loop.create_server(server, sock=listening)
        try:
            ready()
            await stopping.wait()
        finally:
            accepting.close()
            for connection in server.connections:
                if connection.transport is not None:
                    connection.transport.abort()
            self._save()
            if self._log_file is not None:
                self._log_file.close()

    async def _exchange(self, received: web.BaseRequest) -> web.StreamResponse:
        """Log and answer one request, with its faults."""
        request = HttpRequest(received.method, received.raw_path, received.headers)
        if request.method not in READS:
            request.body = await _body(received)
        entry = LogEntry(next(self._numbers), request.method, request.target, request.body)
        self._log.append(entry)
        self.deferred.pass_request()
        faults = self.faults.take(entry.line)
        entry.fault = " ".join([fault.kind for fault in faults])
        self._change(faults, "before")

        def work() -> HttpAnswer:
            answer = self.answer(request)
            entry.done = answer.done
            if faults:
                answer.whole_body()  # a long listing is that from before the hooks
            if answer.done and request.method not in READS:
                self._save_soon()
            return answer

        faults_of_answer = [fault for fault in faults if not fault.change]
        if faults_of_answer:
            pretend = partial(self.answer, request, pretend=True)
            answer = await answer_with(faults_of_answer[0], work, pretend, self.deferred)
        else:
            answer = work()
        self._change(faults, "after")
        entry.status = answer.status
        self._write_log(entry)
        return await _send(received, answer)

    def _write_log(self, entry: LogEntry) -> None:
        if self._log_file is not None:
            body = entry.body.decode("utf-8", "backslashreplace")
            fields = structs.asdict(entry) | {"body": body}
            self._log_file.write(json.dumps(fields, ensure_ascii=False) + "\n")

    def _change(self, faults: list[Fault], when: str) -> None:
        for hook in faults:
            if hook.change and hook.kind.startswith(when):
                hook.change(self.state)
                self._save_soon()

    def _save_soon(self) -> None:
        if self._state_file is not None and self._saving is None:
            self._saving = asyncio.get_running_loop().call_later(self._pause, self._save)

    def _save(self) -> None:
        """Save the state. The pause grows with the duration, so that saving does not take all the time."""
        if self._saving is not None:
            self._saving.cancel()
            self._saving = None
        if self._state_file is not None:
            started = time.perf_counter()
            save_state(self.state, self._state_file)
            self._pause = max(0.5, 10 * (time.perf_counter() - started))


def _is_our_mistake(record: logging.LogRecord) -> bool:
    """Whether aiohttp reports more than a client that went away, or did not send HTTP and got a 400."""
    from aiohttp import http, web

    theirs = (ConnectionError, http.HttpProcessingError, web.RequestPayloadError)
    return not (record.exc_info and isinstance(record.exc_info[1], theirs))


async def _body(received: web.BaseRequest) -> bytes:
    if received.headers.get("Expect", "").lower() == "100-continue":
        await received.writer.write(_CONTINUE)
    return await received.content.read()


async def _send(received: web.BaseRequest, answer: HttpAnswer) -> web.StreamResponse:
    """Send an answer; the bytes on the wire are those of the answer, also where its length is wrong."""
    from aiohttp import web

    headers = {"Content-Type": answer.content_type, **answer.headers}
    if answer.status == 0 and received.transport is not None:
        received.transport.abort()
    if answer.status == 0 or answer.parts is None or received.method == "HEAD":
        return web.Response(status=answer.status or 500, body=answer.whole_body(), headers=headers)
    response = web.StreamResponse(status=answer.status, headers=headers)
    response.content_length = answer.length
    await response.prepare(received)
    for part in answer.parts:
        await response.write(part)
        await asyncio.sleep(answer.pause)  # also serves other requests during a long listing
    if answer.cut and received.transport is not None:
        received.transport.close()
    return response
