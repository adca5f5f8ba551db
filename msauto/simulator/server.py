"""The simulator in a thread (tests, the demo), and in the foreground (`msauto simulate`)."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import json
import signal
import socket
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from msauto.simulator.dialect import SimDialect
from msauto.simulator.faults import Fault, Faults
from msauto.simulator.http.app import App
from msauto.simulator.http.control import Control
from msauto.simulator.http.log import LogEntry, RequestLog
from msauto.simulator.resources.routes import Routes
from msauto.simulator.state.seed import state_from_seed
from msauto.simulator.state.state import ServerState
from msauto.simulator.state.state_file import StateFile, load_state, state_from_json, state_to_json

if TYPE_CHECKING:
    from msauto.simulator.http.listener import Listener

DEFAULT_PORT = 7901
# A reset goes back to a copy of the first house; a copy of a benchmark's house would cost more than it is worth.
_RESET_LIMIT = 20_000


class Simulator:
    """An embedded media server on loopback, in a thread of its own.

        with Simulator(faults=["cut_after@POST .*CREATEMARKER*1"]) as sim:
            requests go to sim.url; sim.state, sim.log and sim.faults tell and change what happens

    house: what it holds; default the seeded one. state_file: kept there, and read from there if it exists.
    dialect: a SimDialect or `key=value` texts. faults: Fault values or texts. port: 0 takes any free one.
    restore_seconds, proxy_seconds: how long RESTORE and the making of a web proxy take.
    """

    def __init__(
        self,
        state: ServerState | None = None,
        dialect: SimDialect | Iterable[str] = (),
        faults: Iterable[Fault | str] = (),
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        restore_seconds: float = 0.0,
        proxy_seconds: float = 0.0,
        state_file: str | Path | None = None,
        log_file: str | Path | None = None,
    ) -> None:
        self._state_file = StateFile(Path(state_file)) if state_file else None
        self._log_file = Path(log_file) if log_file else None
        start = self._first_state(state)
        self._snapshot = json.dumps(state_to_json(start)) if start.size() <= _RESET_LIMIT else None
        given = dialect if isinstance(dialect, SimDialect) else SimDialect.parse(dialect)
        self._routes = Routes(start, given, restore_seconds, proxy_seconds)
        self.faults = Faults()
        self.faults.add(*faults)
        self._address = (host, port)
        self._log = RequestLog()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listener: Listener | None = None
        self._saving: asyncio.TimerHandle | None = None
        self.port = port

    def _first_state(self, state: ServerState | None) -> ServerState:
        if self._state_file and self._state_file.path.exists():
            return load_state(self._state_file.path)
        return state if state is not None else state_from_seed("sample")

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`."""
        host = self._address[0]
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    @property
    def state(self) -> ServerState:
        """What it holds; read and changed in place, it is the live state."""
        return self._routes.state

    @state.setter
    def state(self, state: ServerState) -> None:
        self._routes.state = state

    @property
    def dialect(self) -> SimDialect:
        """How it answers; may be set while it runs."""
        return self._routes.dialect

    @dialect.setter
    def dialect(self, dialect: SimDialect) -> None:
        self._routes.dialect = dialect

    @property
    def restore_seconds(self) -> float:
        """How long a RESTORE takes; may be set while it runs."""
        return self._routes.restore_seconds

    @restore_seconds.setter
    def restore_seconds(self, seconds: float) -> None:
        self._routes.restore_seconds = seconds

    @property
    def log(self) -> list[LogEntry]:
        """Every request, oldest first (a copy)."""
        return self._log.entries()

    def writes(self) -> list[LogEntry]:
        """The requests other than GET and HEAD."""
        return self._log.writes()

    def clear_log(self) -> None:
        """Forget the requests so far."""
        self._log.clear()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Bind (OSError when the port is taken) and serve from a thread; returns when it answers."""
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
            raise RuntimeError("the simulator did not start; its thread has told why")

    def stop(self) -> None:
        """Close every connection, save the state, end the thread; a second time does nothing."""
        if self._thread is not None:
            self._signal_stop()
            self._thread.join()
            self._thread = None

    def run(self, on_started: Callable[[str], None]) -> None:
        """Serve in the calling thread until SIGINT or SIGTERM."""
        listening = self._open()
        asyncio.run(self._serve(listening, lambda: on_started(self.url), signals=True))

    def _open(self) -> socket.socket:
        """The listening socket and the log, or neither."""
        listening = self._bind()
        try:
            self._log = RequestLog(self._log_file)
        except OSError:
            listening.close()
            raise
        return listening

    def _bind(self) -> socket.socket:
        host, port = self._address
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            listening = socket.create_server((host, port), family=family, backlog=2048)
        except OSError as problem:
            reason = "is taken" if problem.errno == errno.EADDRINUSE else f"cannot be used: {problem.strerror}"
            raise OSError(problem.errno, f"port {port} on {host} {reason}") from None
        self.port = int(listening.getsockname()[1])
        return listening

    async def _serve(self, listening: socket.socket, ready: Callable[[], object], signals: bool = False) -> None:
        # uvicorn takes a tenth of a second to import: not for those who only import the package.
        from msauto.simulator.http.listener import Listener

        control = Control(self._routes, self.faults, self._log, self._again)
        app = App(self._routes, self.faults, self._log, control, self._written)
        self._loop = asyncio.get_running_loop()
        self._listener = Listener(app, ready)
        if signals:
            self._catch_signals()
        try:
            await self._listener.serve([listening])
        finally:
            self._stopped()
            self._log.close()

    def _catch_signals(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            # Windows loops take no handlers; there Ctrl-C ends asyncio.run.
            with contextlib.suppress(NotImplementedError):
                asyncio.get_running_loop().add_signal_handler(number, self._signal_stop)

    def _signal_stop(self) -> None:
        if self._loop is not None and self._listener is not None:
            self._loop.call_soon_threadsafe(self._listener.stop)

    def _written(self) -> None:
        if self._state_file is None or self._saving is not None or self._loop is None:
            return
        self._saving = self._loop.call_later(self._state_file.pause, self._save)

    def _save(self) -> None:
        self._saving = None
        if self._state_file is not None:
            self._state_file.save(self.state)

    def _again(self) -> ServerState:
        if self._snapshot is None:
            raise ValueError("the house is too big to be reset")
        return state_from_json(json.loads(self._snapshot))

    def _stopped(self) -> None:
        if self._saving is not None:
            self._saving.cancel()
        self._save()


def serve(
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    state_file: str | Path | None = None,
    dialect: SimDialect | Iterable[str] = (),
    faults: Iterable[Fault | str] = (),
    log_file: str | Path | None = None,
    restore_seconds: float = 5.0,
    proxy_seconds: float = 0.0,
    seed: str = "sample",
    on_started: Callable[[str], None] = lambda _: None,
) -> None:
    """Run in the foreground until SIGINT or SIGTERM, then save the state.

    seed: `sample`, `empty` or `bulk:N`; not used when the state file exists. `on_started` gets the URL.
    Raises OSError when the port cannot be had, ValueError for an unknown dialect, fault, seed or state file.
    """
    there = state_file is not None and Path(state_file).exists()
    simulator = Simulator(
        None if there else state_from_seed(seed),
        dialect,
        faults,
        host=host,
        port=port,
        restore_seconds=restore_seconds,
        proxy_seconds=proxy_seconds,
        state_file=state_file,
        log_file=log_file,
    )
    # A big house lives as long as the process: the collector need not look at it again.
    gc.freeze()
    simulator.run(on_started)
