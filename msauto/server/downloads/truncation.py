"""Whether a file is incomplete by its own structure, for answers that end with the connection.

Such an answer (HTTP/1.0, without a length) may have been cut off (RFC 9112, 6.3). MP4 and PNG consist of pieces with a
length; other formats, and unusual files, are taken as complete.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

Look = Callable[[int, int], bytes]
"""Returns the bytes at a position of the file; fewer at its end."""

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_FIRST_BOXES: Final = frozenset({b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide"})
_MOST_PIECES: Final = 1_000_000  # hours of fragments; a longer file is not checked to its end


def breaks_off(look: Look, size: int) -> bool:
    """Return whether a film or picture of ``size`` bytes is incomplete."""
    head = look(0, 8)
    if head == _PNG:
        return _picture_breaks_off(look, size)
    return head[4:] in _FIRST_BOXES and _film_breaks_off(look, size)


def _film_breaks_off(look: Look, size: int) -> bool:
    """Walk the boxes of an MP4 (ISO/IEC 14496-12, 4.2); without its ``moov`` it cannot be played."""
    place, playable = 0, False
    for _ in range(_MOST_PIECES):
        if size - place < 8:
            return place > size or not playable
        length, kind = _head(look, place)
        if length == 1:
            if size - place < 16:
                return True
            length = int.from_bytes(look(place + 8, 8), "big")
        if length < 8:
            return False  # 0: the box extends to the end of the file; else the file is unusual
        playable = playable or kind == b"moov"
        place += length
    return False


def _picture_breaks_off(look: Look, size: int) -> bool:
    """Walk the chunks of a PNG (its specification, 5.3), of which the last is ``IEND``."""
    place = len(_PNG)
    for _ in range(_MOST_PIECES):
        if size - place < 12:
            return True
        length, kind = _head(look, place)
        place += 12 + length
        if kind == b"IEND":
            return place > size
    return False


def _head(look: Look, place: int) -> tuple[int, bytes]:
    """Return the length and the type of a piece."""
    head = look(place, 8)
    return int.from_bytes(head[:4], "big"), head[4:]
