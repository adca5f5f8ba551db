"""The client without asyncio: its methods run the async ones in an event loop in a thread."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from contextvars import copy_context
from functools import partial, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from msauto.errors import NotSentError
from msauto.model.server import Auth, ServerSpec, Timeouts, Tls, Transport
from msauto.server.client import AsyncMediaServer

P = ParamSpec("P")
R = TypeVar("R")


def blocking(
    method: Callable[Concatenate[AsyncMediaServer, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[MediaServer, P], R]:
    """Return a method of :class:`AsyncMediaServer` as one that blocks: same signature, result and errors."""

    @wraps(method)
    def call(server: MediaServer, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return server.portal.run(method(server.server, *args, **kwargs))

    return call


class Portal:
    """An event loop in a thread of its own, started at first use, for work that its callers wait for.

    Threads may share it. After a fork, a new one is needed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._closing = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Run to the end and return the result.

        Whatever interrupts the caller, such as Ctrl-C, cancels the work, and is raised when that has ended: so requests
        in flight are finished and recorded first. A second Ctrl-C cancels it again.
        """
        ended, interruptions, cancelled = Future[R](), list[BaseException](), list[BaseException]()
        task: asyncio.Task[R] | None = None

        def go_on() -> None:
            nonlocal task
            if task is None:
                task = asyncio.ensure_future(work)
                task.add_done_callback(partial(_settle, ended))
            while len(cancelled) < len(interruptions):
                cancelled.append(interruptions[len(cancelled)])
                task.cancel()

        while not ended.done():
            try:
                self._call(go_on)
                wait([ended])
            except NotSentError:
                if not interruptions:
                    work.close()
                raise
            except BaseException as stop:  # noqa: BLE001 - what a signal handler raises: raised below
                interruptions.append(stop)
        if interruptions:
            raise interruptions[-1]
        return ended.result()

    def close(self, last: Callable[[], Coroutine[Any, Any, None]] | None = None) -> None:
        """Run ``last``, stop the loop and join its thread; does nothing if it was never started."""
        try:
            if (
                last is not None
                and self._thread is not None
                and not self._is_closed
                and self._process == os.getpid()
            ):
                self.run(last())
        finally:
            with self._lock:
                loop, thread, self._thread, self._is_closed = self._loop, self._thread, None, True
            if loop is not None and thread is not None and self._process == os.getpid():
                loop.call_soon_threadsafe(self._closing.set)
                thread.join()

    def _call(self, function: Callable[[], None]) -> None:
        """Call a function in the loop, in the caller's context."""
        with self._lock:
            if self._is_closed:
                raise NotSentError("the client is closed", remedy="open a new one")
            if self._process != os.getpid():
                raise NotSentError(
                    "the client was opened before this process forked", remedy="open a new one here"
                )
            if self._loop is None or self._thread is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._serve, args=[self._loop], name="msauto", daemon=True
                )
            if self._thread.ident is None:  # also after an interruption just before its start
                self._thread.start()
            self._loop.call_soon_threadsafe(function, context=copy_context())

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(self._closing.wait())


def _settle(ended: Future[R], task: asyncio.Task[R]) -> None:
    """Pass on what came of a task."""
    if task.cancelled():
        ended.set_exception(asyncio.CancelledError())
    elif error := task.exception():
        ended.set_exception(error)
    else:
        ended.set_result(task.result())


class MediaServer:
    """One media server, for scripts: the parameters and methods of :class:`AsyncMediaServer`, as blocking ones.

    Threads may share it, and it works inside a running event loop. After a fork, open a new one.

    >>> with MediaServer("http://studio-a:7901") as server:
    ...     clip = server.asset("NEWS", "Long Film")
    ...     answer = server.create_marker("NEWS", "Long Film", frame="00:00:10:00", fields={"title": "Ad break"})
    >>> clip.frames, clip.fps, clip.duration, clip.folder
    (162500, 25, 6500.0, ('Films',))
    >>> answer.status
    200
    """

    def __init__(
        self,
        server: ServerSpec | str,
        *,
        auth: Auth | tuple[str, str] | None = None,
        timeout: Timeouts | float | None = None,
        verify: Tls | bool | str | Path = True,
        transport: Transport | None = None,
        read_only: bool = False,
    ) -> None:
        self.server = AsyncMediaServer(
            server,
            auth=auth,
            timeout=timeout,
            verify=verify,
            transport=transport,
            read_only=read_only,
        )
        self.portal = Portal()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<MediaServer {self.spec.name}: {self.spec.url}>"

    def close(self) -> None:
        """Close all connections and stop the thread."""
        self.portal.close(self.server.aclose)

    @property
    def spec(self) -> ServerSpec:
        """The server's settings."""
        return self.server.spec

    send = blocking(AsyncMediaServer.send)
    download = blocking(AsyncMediaServer.download)
    databases = blocking(AsyncMediaServer.databases)
    list = blocking(AsyncMediaServer.list)
    list_folders = blocking(AsyncMediaServer.list_folders)
    list_mam = blocking(AsyncMediaServer.list_mam)
    asset = blocking(AsyncMediaServer.asset)
    xmp = blocking(AsyncMediaServer.xmp)
    thumbnail = blocking(AsyncMediaServer.thumbnail)
    download_proxy = blocking(AsyncMediaServer.download_proxy)
    delete = blocking(AsyncMediaServer.delete)
    load_xmp = blocking(AsyncMediaServer.load_xmp)
    command = blocking(AsyncMediaServer.command)
    restore = blocking(AsyncMediaServer.restore)
    copy_link = blocking(AsyncMediaServer.copy_link)
    set_field = blocking(AsyncMediaServer.set_field)
    set_user_fields = blocking(AsyncMediaServer.set_user_fields)
    create_segment = blocking(AsyncMediaServer.create_segment)
    create_segmentation = blocking(AsyncMediaServer.create_segmentation)
    delete_segment = blocking(AsyncMediaServer.delete_segment)
    create_marker = blocking(AsyncMediaServer.create_marker)
    delete_marker = blocking(AsyncMediaServer.delete_marker)
    export_version = blocking(AsyncMediaServer.export_version)
    copy_program_fields = blocking(AsyncMediaServer.copy_program_fields)
    move_to_asset = blocking(AsyncMediaServer.move_to_asset)
    channels = blocking(AsyncMediaServer.channels)
    channel = blocking(AsyncMediaServer.channel)
    put_rss = blocking(AsyncMediaServer.put_rss)
    delete_rss = blocking(AsyncMediaServer.delete_rss)
