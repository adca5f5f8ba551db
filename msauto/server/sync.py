"""The client without asyncio: its methods run the async ones in an event loop in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from msauto.errors import NotSentError
from msauto.model.server import ServerSpec
from msauto.server.client import AsyncMediaServer

P = ParamSpec("P")
R = TypeVar("R")


class BlockingMethod(Generic[P, R]):
    """A method of :class:`AsyncMediaServer` as one that blocks: same parameters, same result, same errors."""

    def __init__(self, method: Callable[Concatenate[AsyncMediaServer, P], Coroutine[Any, Any, R]]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, instance: None, owner: type[MediaServer]) -> Self: ...
    @overload
    def __get__(self, instance: MediaServer, owner: type[MediaServer]) -> Callable[P, R]: ...
    def __get__(self, instance: MediaServer | None, owner: type[MediaServer]) -> Self | Callable[P, R]:
        """Bind to an instance."""
        if instance is None:
            return self

        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            return instance.portal.run(self._method(instance.server, *args, **kwargs))

        call.__doc__ = self.__doc__
        call.__name__ = getattr(self._method, "__name__", "call")
        return call


class Portal:
    """An event loop in a separate thread, started at first use. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Run to the end and return the result; an interruption cancels the work."""
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._started())
        except BaseException:
            work.close()
            raise
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run ``last``, stop the loop and join its thread; does nothing if it was never started."""
        if self._loop is not None and not self._closed:
            try:
                self.run(last())
            finally:
                self._stop()
        self._closed = True

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._closed:
                raise NotSentError("the client is closed", remedy="open a new one")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="msauto", daemon=True)
                self._thread.start()
            return self._loop

    def _stop(self) -> None:
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop, self._thread, self._closed = None, None, True
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()


class MediaServer:
    """One media server, for scripts: the methods of :class:`AsyncMediaServer`, as blocking ones.

    ::

        with MediaServer("http://studio-a:7901") as server:
            clip = server.asset("NEWS", "Evening News")
            server.set_field("NEWS", "Evening News", "comment", "Ready")
    """

    def __init__(self, server: ServerSpec | str, *, read_only: bool = False) -> None:
        self.server = AsyncMediaServer(server, read_only=read_only)
        self.portal = Portal()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections and stop the thread."""
        self.portal.close(self.server.aclose)

    @property
    def spec(self) -> ServerSpec:
        """The server's settings."""
        return self.server.spec

    send = BlockingMethod(AsyncMediaServer.send)
    download = BlockingMethod(AsyncMediaServer.download)
    databases = BlockingMethod(AsyncMediaServer.databases)
    list = BlockingMethod(AsyncMediaServer.list)
    list_folders = BlockingMethod(AsyncMediaServer.list_folders)
    list_mam = BlockingMethod(AsyncMediaServer.list_mam)
    asset = BlockingMethod(AsyncMediaServer.asset)
    xmp = BlockingMethod(AsyncMediaServer.xmp)
    thumbnail = BlockingMethod(AsyncMediaServer.thumbnail)
    download_proxy = BlockingMethod(AsyncMediaServer.download_proxy)
    delete = BlockingMethod(AsyncMediaServer.delete)
    load_xmp = BlockingMethod(AsyncMediaServer.load_xmp)
    command = BlockingMethod(AsyncMediaServer.command)
    restore = BlockingMethod(AsyncMediaServer.restore)
    copy_link = BlockingMethod(AsyncMediaServer.copy_link)
    set_field = BlockingMethod(AsyncMediaServer.set_field)
    set_user_fields = BlockingMethod(AsyncMediaServer.set_user_fields)
    create_segment = BlockingMethod(AsyncMediaServer.create_segment)
    create_segmentation = BlockingMethod(AsyncMediaServer.create_segmentation)
    delete_segment = BlockingMethod(AsyncMediaServer.delete_segment)
    create_marker = BlockingMethod(AsyncMediaServer.create_marker)
    delete_marker = BlockingMethod(AsyncMediaServer.delete_marker)
    export_version = BlockingMethod(AsyncMediaServer.export_version)
    copy_program_fields = BlockingMethod(AsyncMediaServer.copy_program_fields)
    move_to_asset = BlockingMethod(AsyncMediaServer.move_to_asset)
    channels = BlockingMethod(AsyncMediaServer.channels)
    channel = BlockingMethod(AsyncMediaServer.channel)
    put_rss = BlockingMethod(AsyncMediaServer.put_rss)
    delete_rss = BlockingMethod(AsyncMediaServer.delete_rss)
