"""The simulator in a thread (tests, the demo) or in the foreground (`msauto simulate`)."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import signal
import socket
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Self

from msauto.simulator.dialect import SimDialect
from msauto.simulator.faults import Fault, Faults
from msauto.simulator.http.app import App
from msauto.simulator.http.log import LogEntry, RequestLog
from msauto.simulator.resources.routes import Routes
from msauto.simulator.state.seed import state_from_seed
from msauto.simulator.state.state import ServerState
from msauto.simulator.state.state_file import StateFile, load_state

if TYPE_CHECKING:
    from msauto.simulator.http.listener import Listener


class Simulator:
    """An embedded media server on loopback, in its own thread.

        with Simulator(faults=["cut_after@POST .*CREATEMARKER*1"]) as sim:
            send requests to sim.url, and use sim.state, sim.log, sim.faults and sim.dialect

    state: the content, or a seed (`sample`, `empty`, `bulk:N`). state_file: keeps the state; an existing file is read.
    dialect: a SimDialect or `key=value` texts. faults: Fault values or texts. port: 0 takes any free port.
    restore_seconds, proxy_seconds: the duration of RESTORE, and of making a web proxy.
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
        proxy_seconds: float = 0.0,
        state_file: str | Path | None = None,
        log_file: str | Path | None = None,
    ) -> None:
        self._state_file = StateFile(Path(state_file)) if state_file else None
        self._log_file = Path(log_file) if log_file else None
        if self._state_file and self._state_file.path.exists():
            state = load_state(self._state_file.path)
        elif isinstance(state, str):
            state = state_from_seed(state)
        given = dialect if isinstance(dialect, SimDialect) else SimDialect.parse(dialect)
        self._routes = Routes(state, given, restore_seconds, proxy_seconds)
        self.faults = Faults()
        self.faults.add(*faults)
        self._host = host
        self._log = RequestLog()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listener: Listener | None = None
        self._saving: asyncio.TimerHandle | None = None
        self._port = self.port = port

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`."""
        return f"http://[{self._host}]:{self.port}" if ":" in self._host else f"http://{self._host}:{self.port}"

    @property
    def state(self) -> ServerState:
        """The content; can be changed in place."""
        return self._routes.state

    @state.setter
    def state(self, state: ServerState) -> None:
        self._routes.state = state

    @property
    def dialect(self) -> SimDialect:
        """The dialect; can be set while the simulator runs."""
        return self._routes.dialect

    @dialect.setter
    def dialect(self, dialect: SimDialect) -> None:
        self._routes.dialect = dialect

    @property
    def log(self) -> list[LogEntry]:
        """Every request, oldest first (a copy)."""
        return self._log.entries()

    def writes(self) -> list[LogEntry]:
        """Return the requests other than GET and HEAD."""
        return [entry for entry in self.log if entry.method not in ("GET", "HEAD")]

    def clear_log(self) -> None:
        """Remove all requests from the log."""
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
            self._signal_stop()
            self._thread.join()
            self._thread = None

    def run(self, on_started: Callable[[str], None]) -> None:
        """Serve in the calling thread until SIGINT or SIGTERM; OSError as `start`. `on_started` receives the URL."""
        listening = self._open()
        gc.freeze()  # a large state lives as long as the process: the collector need not visit it
        asyncio.run(self._serve(listening, lambda: on_started(self.url), signals=True))

    def _open(self) -> socket.socket:
        """Open the listening socket and the log."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        try:
            listening = socket.create_server((self._host, self._port), family=family, backlog=2048)
        except OSError as problem:
            reason = "is taken" if problem.errno == errno.EADDRINUSE else f"cannot be used: {problem.strerror}"
            raise OSError(problem.errno, f"port {self._port} on {self._host} {reason}") from None
        self.port = int(listening.getsockname()[1])
        try:
            self._log = RequestLog(self._log_file)
        except OSError:
            listening.close()
            raise
        return listening

    async def _serve(self, listening: socket.socket, ready: Callable[[], object], signals: bool = False) -> None:
        # uvicorn takes a tenth of a second to import, which only a running server needs.
        from msauto.simulator.http.listener import Listener

        self._loop = asyncio.get_running_loop()
        self._listener = Listener(App(self._routes, self.faults, self._log, self._save_soon), ready)
        for number in (signal.SIGINT, signal.SIGTERM) if signals else ():
            # Windows does not support signal handlers; there Ctrl-C ends asyncio.run.
            with contextlib.suppress(NotImplementedError):
                self._loop.add_signal_handler(number, self._signal_stop)
        try:
            await self._listener.serve([listening])
        finally:
            if self._saving is not None:
                self._saving.cancel()
            self._save()
            self._log.close()

    def _signal_stop(self) -> None:
        if self._loop is not None and self._listener is not None:
            self._loop.call_soon_threadsafe(self._listener.stop)

    def _save_soon(self) -> None:
        if self._state_file is not None and self._saving is None:
            self._saving = asyncio.get_running_loop().call_later(self._state_file.pause, self._save)

    def _save(self) -> None:
        self._saving = None
        if self._state_file is not None:
            self._state_file.save(self.state)
