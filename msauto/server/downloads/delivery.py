"""Send a planned request, which is a write or a download that is saved; read and write local files."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

from msauto.model.plan import Request
from msauto.model.ports import Answer, DownloadObserver
from msauto.server.client import AsyncMediaServer

_PROXY = "WP"


class LocalDisk:
    """The files of this machine; paths are relative to the working folder, as in a plan."""

    async def sha256(self, path: str) -> str | None:
        """Return the SHA-256 of a file in hex; ``None`` for a missing or unreadable file."""
        return await asyncio.to_thread(_sha256, Path(path))


class Delivery:
    """Sends writes through a client, and saves the answers to downloads (``dest``) as files."""

    def __init__(self, client: AsyncMediaServer) -> None:
        self._client = client

    async def send(self, request: Request) -> Answer:
        """Send a write, once."""
        return await self._client.send(request)

    async def fetch(self, request: Request, watch: DownloadObserver) -> Answer:
        """Download a complete file, or nothing."""
        if request.dest is None:
            raise ValueError("the request names no file")
        timeouts, last = self._client.spec.timeouts, request.path.partition("?")[0].rpartition("/")[2]
        # The server may create a proxy on request (interface, «Web proxy»).
        seconds = timeouts.proxy if last.startswith(_PROXY) else timeouts.read
        fetched = await self._client.fetch(request, Path(request.dest), watch, seconds=seconds)
        return Answer(200, sha256=fetched.sha256)


def _sha256(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
