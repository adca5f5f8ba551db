"""A listing parsed while it arrives: of a big house neither the bytes nor a tree are ever held."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final, Protocol, TypeVar

from msauto.errors import UnreadableError
from msauto.server.parsers.xml import PIECE

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")

_JUDGED: Final = 2**20
"""Bytes of which it is told whether they are an error: of what is none, no more is kept."""


class StreamedAnswer(Protocol[T_co]):
    """Parses an answer piece by piece; both methods raise ``UnreadableError``."""

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""

    def close(self) -> T_co:
        """Return what was read; the answer is over."""


async def read_arriving(chunks: AsyncIterator[bytes], reading: StreamedAnswer[T], judge: Callable[[bytes], None]) -> T:
    """Parse an answer as it arrives, in pieces between which others get their turn.

    Where it is not what was asked for, ``judge`` gets its beginning, and raises if that is an error.
    """
    head = bytearray()
    try:
        async for chunk in chunks:
            head += chunk[: max(0, _JUDGED - len(head))]
            for start in range(0, len(chunk), PIECE):
                reading.feed(chunk[start : start + PIECE])
                await asyncio.sleep(0)
        return reading.close()
    except UnreadableError:
        while len(head) < _JUDGED and (chunk := await anext(chunks, b"")):
            head += chunk
        judge(bytes(head[:_JUDGED]))
        raise
