"""Fetching a file that may break off: it goes on where it stopped, if the server says that the file is the same.

A part is asked for with ``Range`` and ``If-Range`` (RFC 9110, 13.1.5): "this part if the file is still that one, else
the whole". So the server needs a word for the very content: a strong ETag, or a date that is older than the answer by
a second at least. Two different files are never glued: without such a word, and where an answer is not to the letter
what was asked for, it begins again.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msauto.errors import DownloadError, InDoubtError, ServerError
from msauto.model.ports import Clock, DownloadObserver, PartialDownload
from msauto.server.availability.retry_policy import RETRIES, may_pass, pause_after
from msauto.server.parsers.xml import unreadable

if TYPE_CHECKING:
    from msauto.server.downloads.part_file import PartFile

Headers = Sequence[tuple[bytes, bytes]]

_PIECE: Final = 2**20
_PROGRESS: Final = 2**20  # bytes: a try that brings less counts as one of the few that are allowed
WORTH: Final = 2**20
"""Bytes: less is fetched anew by the next run rather than kept for it."""
CHECKPOINT: Final = 8 * 2**20
"""Bytes: so much at most is fetched again by the next run where this one is killed."""
_SETTLE: Final = 1.0  # seconds; RFC 9110, 8.8.2.2: a file may change twice within the second that a date names
_STRONG_TAG = re.compile(r'"[!#-~]*"')
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)", re.IGNORECASE)
_NO_PARTS: Final = frozenset({400, 412, 416, 417, 501})  # what a server says that does not like to be asked for a part


@dataclass(frozen=True, slots=True)
class StreamedBody:
    """An answer whose body is still to come. ``headers`` by lower-case name; ``coded``: the bytes were unpacked.

    ``judge`` raises a ``ServerError`` unless the answer is a whole file.
    """

    status: int
    headers: Mapping[str, str]
    coded: bool
    chunks: AsyncIterator[bytes]
    judge: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class FetchResult:
    """A file in its place: its bytes, and their SHA-256 in hex."""

    size: int
    sha256: str


class _RangeMismatchError(InDoubtError):
    """A part came that is not the one asked for."""


class ResumableDownload:
    """One file on its way to ``dest``. ``ask`` sends the request with more headers; ``seconds`` is its time-out.

    ``path`` is the request's; ``watch`` is told how it goes, and keeps what is left where it breaks off for good.
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
        self._waiting = bytearray()  # what came and is not written yet, or is just being written
        self._at = 0  # where it goes
        self._parts = True  # the server has not been seen to give wrong ones
        self._best = 0  # the most bytes that ever were there at once
        self._kept = 0  # bytes of this beginning that the watch keeps
        self._told = watch.part is not None  # the watch keeps something

    async def run(self) -> FetchResult:
        """Fetch; raises ``ServerError`` or ``DownloadError``, and ``dest`` is then as it was."""
        try:
            await self._take_up()
            await self._try()
            file = self._open
            fetched = FetchResult(file.size, await asyncio.to_thread(file.finish))
        except DownloadError:
            self._forget()  # where the disk is full, half a film is in the way
            raise
        except BaseException:
            self._leave()
            raise
        self._forget()
        return fetched

    @property
    def size(self) -> int:
        """The bytes that are there."""
        return self._file.size if self._file else 0

    @property
    def _open(self) -> PartFile:
        assert self._file is not None  # an answer came, and its bytes went somewhere
        return self._file

    async def _take_up(self) -> None:
        left = self._watch.part
        if left is None or left.request != self._path:
            return
        self._file = await _opened(self._dest, left)
        if self.size:
            self._validator, self._total = left.validator, left.total
            self._best = self._kept = self.size

    # Tries -----------------------------------------------------------------------------------------------------

    async def _try(self) -> None:
        tries = 0
        while True:
            try:
                await self._attempt()
            except ServerError as error:
                if isinstance(error, _RangeMismatchError):
                    self._parts = False
                if self._has_come_on():
                    tries = 0
                if not may_pass(error) or tries >= RETRIES:
                    raise
                pause = pause_after(error, tries, self._jitter())
            else:
                return
            tries += 1
            await self._clock.sleep(pause)

    def _has_come_on(self) -> bool:
        """Tell whether a try has brought the file on, so that the next one begins further on than any before."""
        if not (self._goes_on and self.size >= self._best + _PROGRESS):
            return False
        self._best = self.size
        return True

    @property
    def _goes_on(self) -> bool:
        return bool(self._parts and self._validator and self.size)

    async def _attempt(self) -> None:
        headers = self._range()
        self._watch.asked(self.size if headers else 0, self._seconds)
        async with self._ask(headers) as arrival:
            if headers and arrival.status in _NO_PARTS:
                raise _RangeMismatchError(f"the server gives no part of the file, and answers {arrival.status}")
            if headers and arrival.status == 206:
                await self._receive(arrival, self._part_end(arrival))
            else:
                await arrival.judge()
                await self._receive(arrival, await self._begin(arrival))
        await self._check_end()
        if not self.size:
            raise unreadable("the answer is an empty file", "look at the server: it made no media")

    async def _check_end(self) -> None:
        """Raise where there is more of the file: by the length that the server told, else by what it says of itself."""
        if self._total is not None and self.size < self._total:
            why = f"{self.size} of {self._total} bytes came"
        elif self._total is None and await asyncio.to_thread(self._open.breaks_off):
            why = f"{self.size} bytes came, and they say that there is more; the server told no length"
        else:
            return
        raise InDoubtError(f"the file broke off: {why}", remedy="look at the server's log and the network")

    def _range(self) -> Headers:
        if not self._goes_on:
            return ()
        first = b"bytes=%d-" % self.size
        return ((b"Range", first), (b"If-Range", self._validator.encode("ascii")))

    async def _begin(self, arrival: StreamedBody) -> int | None:
        """Take the answer as the whole file; return where it ends."""
        if self._file is None:
            self._file = await _opened(self._dest, None)
        elif self.size:
            await asyncio.to_thread(self._file.restart)
        self._kept = 0
        # Bytes that were unpacked are not those that a range counts.
        self._validator = "" if arrival.coded else _validator(arrival.headers)
        length = arrival.headers.get("content-length", "")
        self._total = int(length) if length.isdecimal() and not arrival.coded else None
        return self._total

    def _part_end(self, arrival: StreamedBody) -> int:
        """Return where a part ends that is, to the letter, of the same file and begins where ours ends."""
        told = arrival.headers.get("content-range", "")
        found = _CONTENT_RANGE.fullmatch(told.strip())
        if found is None or arrival.coded:
            raise _RangeMismatchError(f"the part that came does not say what it is of the file: {told[:80]!r}")
        first, last = int(found[1]), int(found[2])
        total = self._total if found[3] == "*" else int(found[3])
        if first != self.size or last < first or (total is not None and last >= total):
            raise _RangeMismatchError(f"another part came than was asked for: {told[:80]!r}")
        if self._total is not None and total != self._total:
            raise _RangeMismatchError("the file has another length by now")
        if self._validator not in {arrival.headers.get("etag"), arrival.headers.get("last-modified")}:
            raise _RangeMismatchError("the part that came does not say that the file is still the same")
        if total is None:  # it may be shorter than what was asked for: nobody could tell when the file is whole
            raise _RangeMismatchError("the part that came does not say how long the file is")
        self._total = total
        return last + 1

    async def _receive(self, arrival: StreamedBody, end: int | None) -> None:
        self._at = self.size
        try:
            async for chunk in arrival.chunks:
                self._waiting += chunk
                if end is not None and self.size + len(self._waiting) > end:
                    self._waiting.clear()
                    raise _RangeMismatchError("more bytes came than the server said")
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

    # What is left ----------------------------------------------------------------------------------------------

    @property
    def _may_keep(self) -> bool:
        return self._watch.keeps and self._goes_on and self._open.is_found_again

    def _keep(self, sha256: str) -> None:
        self._watch.keep(
            PartialDownload(self._open.path.name, self._path, self.size, sha256, self._validator, self._total),
        )
        self._kept, self._told = self.size, True

    def _leave(self) -> None:
        """Keep what came for the next run if that can go on with it and it is worth it. Without waiting."""
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
        """Take away what is left of the beginning, if it is not in its place."""
        if self._file is not None:
            self._file.drop()
        if self._told:
            self._watch.keep(None)


async def _opened(dest: Path, left: PartialDownload | None) -> PartFile:
    opening = asyncio.ensure_future(asyncio.to_thread(_open_part, dest, left))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_leave_opened)
        raise


def _open_part(dest: Path, left: PartialDownload | None) -> PartFile:
    try:
        from msauto.server.downloads.part_file import open_part
    except ImportError as error:
        raise DownloadError(
            "this system has no file locks (Python module `fcntl`), so msauto cannot save files safely",
            remedy="download files on Linux or macOS",
        ) from error
    return open_part(dest, left)


def _leave_opened(opening: asyncio.Future[PartFile]) -> None:
    if opening.exception() is None:
        opening.result().leave()


class SilentDownloadObserver:
    """A download that nobody looks at, and of which nothing is kept."""

    part: PartialDownload | None = None
    keeps = False

    def keep(self, part: PartialDownload | None) -> None:
        """Do nothing."""

    def asked(self, received: int, seconds: float) -> None:
        """Do nothing."""

    def received(self, size: int, total: int | None) -> None:
        """Do nothing."""


def _validator(headers: Mapping[str, str]) -> str:
    """Return the server's word for the very content of a file; empty where it has none that can be relied on."""
    tag = headers.get("etag", "").strip()
    if _STRONG_TAG.fullmatch(tag):
        return tag
    modified = headers.get("last-modified", "").strip()
    try:
        age = parsedate_to_datetime(headers.get("date", "")) - parsedate_to_datetime(modified)
    except (ValueError, TypeError, OverflowError):
        return ""
    return modified if age.total_seconds() >= _SETTLE and modified.isascii() and modified.isprintable() else ""
