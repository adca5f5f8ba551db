"""A large document while it arrives: never held whole, neither as bytes nor as a tree.

What :func:`~.xml.parse_document` forgives and refuses of a whole one, this forgives and refuses of one
that comes in pieces: encodings, wrappers, a stray end behind the root; web pages, DTDs, an early end.
"""

from __future__ import annotations

from typing import Final, Protocol

from msauto.server.parsers.encoding import Transcoder
from msauto.server.parsers.xml import (
    MAX_BYTES,
    ParserTarget,
    PushParser,
    begin,
    hold_back,
    may_have_stray_end,
    no_encoding,
    refuse_html,
    too_large,
    without_stray_end,
)

PIECE: Final = 2**16
"""What is parsed in one go takes some milliseconds: nobody else waits longer than that."""


class BoundedTarget(ParserTarget, Protocol):
    """A target that looks, between pieces, whether what it holds is still within bounds."""

    def check_text(self) -> None:
        """Raise where a single text is endless."""


class StreamingDocument:
    """Reads a document into a target, piece by piece. Raises ``UnreadableError`` as soon as it is none.

    ``piece`` bytes are parsed in one go; the first as many must show what the document is.
    """

    def __init__(self, target: BoundedTarget, charset: str | None = None, *, piece: int = PIECE) -> None:
        self._target = target
        self._charset = charset
        self._piece = piece
        self._parser = PushParser(target)
        self._head = bytearray()
        self._transcoder: Transcoder | None = None
        self._held = b""
        self._strays = False
        self._length = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes, of any number."""
        self._length += len(data)
        if self._length > MAX_BYTES:
            raise too_large()
        for start in range(0, len(data), self._piece):
            self._take(data[start : start + self._piece])

    def close(self) -> None:
        """End the document; returning means that it was whole."""
        self._clean(b"", final=True)
        self._parser.feed(without_stray_end(self._held))
        self._parser.close()

    def _take(self, data: bytes) -> None:
        if self._transcoder is not None:
            self._clean(data)
            return
        self._head += data
        if not self._head.strip():
            self._head.clear()
        if len(self._head) >= self._piece:
            self._clean(b"")

    def _clean(self, data: bytes, *, final: bool = False) -> None:
        """Make UTF-8 of bytes and parse them; the first time, of the head."""
        first = self._transcoder is None
        if self._transcoder is None:
            data = bytes(self._head)
            self._head.clear()
            refuse_html(data)
            self._transcoder = Transcoder(data, self._charset)
        clean = self._transcoder.feed(data, final=final)
        if clean is None:
            raise no_encoding(self._charset)
        if first:
            clean = begin(clean)
            self._strays = may_have_stray_end(clean)
        self._parse(clean)

    def _parse(self, clean: bytes) -> None:
        if self._strays:
            clean = self._held + clean
            end = hold_back(clean)
            clean, self._held = clean[:end], clean[end:]
        self._parser.feed(clean)
        self._target.check_text()
