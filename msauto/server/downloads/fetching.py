"""Resumable downloads: an interrupted download continues if the server confirms that the file is the same.

The rest is requested with ``Range`` and ``If-Range`` (RFC 9110, 13.1.5): the part if the file is unchanged, else the
complete file. That needs a validator of the server: a strong ETag, or a date at least a second older than the answer.
Parts of different files are never joined: without a validator, and if the answer is not exactly the part requested,
the download starts again. How it works for users: ``docs/how-to/downloads.md``.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final

from msauto.errors import DownloadError, InDoubtError, ServerError
from msauto.model.ports import Clock, DownloadObserver, PartialDownload
from msauto.server.availability import with_retries
from msauto.server.downloads.part_file import PartFile, open_part
from msauto.server.parsers.xml import unreadable
from msauto.server.transport import Headers

_PIECE: Final = 2**20
_PROGRESS: Final = 2**20  # bytes: an attempt that brings less counts towards the limit of attempts
WORTH: Final = 2**20
"""Bytes: a smaller part is not kept for the next run."""
CHECKPOINT: Final = 8 * 2**20
"""Bytes: at most this much is fetched again by the next run after this one is killed."""
_SETTLE: Final = 1.0  # seconds; RFC 9110, 8.8.2.2: a file may change twice within the second that a date names
_STRONG_TAG = re.compile(r'"[!#-~]*"')
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)", re.IGNORECASE)
_NO_PARTS: Final = frozenset({400, 412, 416, 417, 501})  # answers of servers that do not support ranges


@dataclass(frozen=True, slots=True)
class StreamedBody:
    """An answer before its body. ``headers`` by lower-case name; ``coded``: the content was decompressed.

    ``read`` returns the next bytes, none at the end. ``judge`` raises a ``ServerError`` unless the answer is a complete
    file.
    """

    status: int
    headers: Mapping[str, str]
    coded: bool
    read: Callable[[], Awaitable[bytes]]
    judge: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class FetchResult:
    """A saved file: its size in bytes, and its SHA-256 in hex."""

    size: int
    sha256: str


class _RangeMismatchError(InDoubtError):
    """The answer is not the part that was requested."""


class ResumableDownload:
    """The download of one file to ``dest``. ``ask`` sends the request with more headers; ``seconds`` is its time-out.

    ``path`` is that of the request. ``watch`` observes the progress, and keeps the part for the next run.
    """

    def __init__(
        self,
        ask: Callable[[Headers], AbstractAsyncContextManager[StreamedBody]],
        path: str,
        dest: Path,
        clock: Clock,
        watch: DownloadObserver,
        seconds: float,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._ask = ask
        self._path = path
        self._dest = dest
        self._clock = clock
        self._watch = watch
        self._seconds = seconds
        self._jitter = jitter
        self._file: PartFile | None = None
        self._validator = ""
        self._total: int | None = None
        self._waiting = bytearray()  # received, not yet written
        self._at = 0  # its position in the file
        self._parts = True  # no wrong part was received
        self._best = 0  # the largest size so far
        self._kept = 0  # bytes of this part that the observer has kept
        self._is_kept = watch.part is not None  # the observer keeps a part

    async def run(self) -> FetchResult:
        """Fetch the file; raises ``ServerError`` or ``DownloadError`` and then leaves ``dest`` unchanged."""
        try:
            await self._take_up()
            await with_retries(self._attempt, self._clock, jitter=self._jitter, progressed=self._made_progress)
            file = self._open
            fetched = FetchResult(file.size, await asyncio.to_thread(file.finish))
        except DownloadError:
            self._forget()  # a part must not fill up the disk
            raise
        except BaseException:
            self._leave()
            raise
        self._forget()
        return fetched

    @property
    def size(self) -> int:
        """The bytes received so far."""
        return self._file.size if self._file else 0

    @property
    def _open(self) -> PartFile:
        assert self._file is not None  # set by the first answer
        return self._file

    async def _take_up(self) -> None:
        left = self._watch.part
        if left is None or left.request != self._path:
            return
        self._file = await _opened(self._dest, left)
        if self.size:
            self._validator, self._total = left.validator, left.total
            self._best = self._kept = self.size

    # Attempts --------------------------------------------------------------------------------------------------

    def _made_progress(self, error: ServerError) -> bool:
        """Return whether an attempt made progress, so that the next one starts further on than any before."""
        self._parts = self._parts and not isinstance(error, _RangeMismatchError)
        if not (self._can_resume and self.size >= self._best + _PROGRESS):
            return False
        self._best = self.size
        return True

    @property
    def _can_resume(self) -> bool:
        return bool(self._parts and self._validator and self.size)

    async def _attempt(self) -> None:
        headers: Headers = ()
        if self._can_resume:
            headers = (("Range", f"bytes={self.size}-"), ("If-Range", self._validator))
        self._watch.asked(self.size if headers else 0, self._seconds)
        async with self._ask(headers) as arrival:
            if headers and arrival.status in _NO_PARTS:
                raise _RangeMismatchError(f"the server does not send a part of the file, and answers {arrival.status}")
            if headers and arrival.status == 206:
                await self._receive(arrival, self._part_end(arrival))
            else:
                await arrival.judge()
                await self._receive(arrival, await self._begin(arrival))
        await self._check_end()
        if not self.size:
            raise unreadable("the answer is an empty file", "check the server: it created no media")

    async def _check_end(self) -> None:
        """Raise for an incomplete file, by the length in the header, else by the lengths inside the file."""
        if self._total is not None and self.size < self._total:
            why = f"{self.size} of {self._total} bytes arrived"
        elif self._total is None and await asyncio.to_thread(self._open.breaks_off):
            why = f"{self.size} bytes arrived, and the file is incomplete; the server sent no length"
        else:
            return
        raise InDoubtError(f"the download was interrupted: {why}", remedy="check the server's log and the network")

    async def _begin(self, arrival: StreamedBody) -> int | None:
        """Start the file with this answer; return its length."""
        if self._file is None:
            self._file = await _opened(self._dest, None)
        elif self.size:
            await asyncio.to_thread(self._file.restart)
        self._kept = 0
        # A range does not count decompressed bytes.
        self._validator = "" if arrival.coded else _validator(arrival.headers)
        length = arrival.headers.get("content-length", "")
        self._total = int(length) if length.isdecimal() and not arrival.coded else None
        return self._total

    def _part_end(self, arrival: StreamedBody) -> int:
        """Return the end of a part. Raises unless it belongs to the same file and starts where ours ends."""
        content_range = arrival.headers.get("content-range", "")
        found = _CONTENT_RANGE.fullmatch(content_range.strip())
        if found is None or arrival.coded:
            raise _RangeMismatchError(f"the part has no valid Content-Range: {content_range[:80]!r}")
        first, last = int(found[1]), int(found[2])
        total = self._total if found[3] == "*" else int(found[3])
        if first != self.size or last < first or (total is not None and last >= total):
            raise _RangeMismatchError(f"the part is not the one requested: {content_range[:80]!r}")
        if self._total is not None and total != self._total:
            raise _RangeMismatchError("the length of the file has changed")
        if self._validator not in {arrival.headers.get("etag"), arrival.headers.get("last-modified")}:
            raise _RangeMismatchError("the part does not confirm that the file is the same")
        if total is None:  # without the length the end of the file is unknown
            raise _RangeMismatchError("the part does not give the length of the file")
        self._total = total
        return last + 1

    async def _receive(self, arrival: StreamedBody, end: int | None) -> None:
        self._at = self.size
        try:
            while chunk := await arrival.read():
                self._waiting += chunk
                if end is not None and self.size + len(self._waiting) > end:
                    self._waiting.clear()
                    raise _RangeMismatchError("more bytes arrived than the server announced")
                self._watch.received(self.size + len(self._waiting), self._total)
                if len(self._waiting) >= _PIECE:
                    await self._flush()
        except ServerError:
            await self._flush()
            raise
        await self._flush()

    async def _flush(self) -> None:
        await asyncio.to_thread(self._open.append, bytes(self._waiting), self._at)
        self._waiting.clear()
        self._at = self.size
        if self._may_keep and self.size - self._kept >= CHECKPOINT:
            self._keep(await asyncio.to_thread(self._open.sync))

    # The part for the next run -----------------------------------------------------------------------------------

    @property
    def _may_keep(self) -> bool:
        return self._watch.keeps and self._can_resume and self._open.is_found_again

    def _keep(self, sha256: str) -> None:
        self._watch.keep(
            PartialDownload(self._open.path.name, self._path, self.size, sha256, self._validator, self._total),
        )
        self._kept, self._is_kept = self.size, True

    def _leave(self) -> None:
        """Keep the part for the next run, if that can resume it and it is large enough. Does not wait."""
        try:
            if self._file is not None:
                self._file.append(bytes(self._waiting), self._at)
            if not (self._may_keep and self.size >= WORTH):
                self._forget()
                return
            self._keep(self._open.sync())
        except DownloadError:
            self._forget()
        else:
            self._open.leave()

    def _forget(self) -> None:
        """Delete the part, unless it was moved to its destination."""
        if self._file is not None:
            self._file.drop()
        if self._is_kept:
            self._watch.keep(None)


async def _opened(dest: Path, left: PartialDownload | None) -> PartFile:
    opening = asyncio.ensure_future(asyncio.to_thread(open_part, dest, left))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_leave_opened)
        raise


def _leave_opened(opening: asyncio.Future[PartFile]) -> None:
    if opening.exception() is None:
        opening.result().leave()


class SilentDownloadObserver:
    """A download without progress display, and of which no part is kept."""

    part: PartialDownload | None = None
    keeps = False

    def keep(self, part: PartialDownload | None) -> None:
        """Do nothing."""

    def asked(self, received: int, seconds: float) -> None:
        """Do nothing."""

    def received(self, size: int, total: int | None) -> None:
        """Do nothing."""


def _validator(headers: Mapping[str, str]) -> str:
    """Return the validator of a file; empty without a reliable one."""
    tag = headers.get("etag", "").strip()
    if _STRONG_TAG.fullmatch(tag):
        return tag
    modified = headers.get("last-modified", "").strip()
    try:
        age = parsedate_to_datetime(headers.get("date", "")) - parsedate_to_datetime(modified)
    except (ValueError, TypeError, OverflowError):
        return ""
    return modified if age.total_seconds() >= _SETTLE and modified.isascii() and modified.isprintable() else ""
