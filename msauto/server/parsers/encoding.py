"""The encoding of an answer, and its conversion to UTF-8: complete, or while it arrives.

Real servers declare one encoding over HTTP and another in the document, or none (field notes). Candidates are tried
in order; the first that can decode the bytes is used.
"""

from __future__ import annotations

import codecs
import re
from functools import cache, lru_cache

_TEXT_CODEC = re.compile(
    r"utf-8|utf-(16|32)(-[lb]e)?|ascii|iso8859-\d+|cp\d+|koi8-[rut]|mac-\w+|gb\w+|big5\w*|shift_jis\w*|euc_\w+"
)
_DECLARED = re.compile(rb"""\A\s*+(?:<xml\s*+>\s*+)?<\?xml\s[^>]*?encoding\s*=\s*["']([\w.:-]+)["']""", re.IGNORECASE)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"<\x00", "utf-16-le"),
    (b"\x00<", "utf-16-be"),
)
_MARKS = tuple(mark for mark, _ in _BOMS)


class Transcoder:
    """Converts any encoding to UTF-8, piece by piece. ``head`` is the beginning, ``charset`` that of the HTTP header.

    While all bytes are ASCII, which most encodings share, no encoding is chosen.
    """

    def __init__(self, head: bytes, charset: str | None) -> None:
        marked = [codec for mark, codec in _BOMS if head.startswith(mark)] if head.startswith(_MARKS) else []
        declared = _DECLARED.match(head[:512])
        self._names = tuple(marked[:1]) or _codecs(charset, declared and declared[1])
        self._is_ascii_common = all(map(_holds_ascii, self._names))
        self._decoder: codecs.IncrementalDecoder | None = None

    def feed(self, data: bytes, *, final: bool = False) -> bytes | None:
        """Return the next bytes as UTF-8; ``None`` if no candidate can decode them."""
        if self._decoder is None and self._is_ascii_common and data.isascii():
            return data
        for name in self._names:
            decoder = self._decoder or codecs.getincrementaldecoder(name)()
            try:
                text = decoder.decode(data, final)
            except UnicodeError:
                continue
            clean = data if name == "utf-8" else text.encode("utf-8", "surrogatepass")
            if self._decoder is None:
                self._names, self._decoder = (name,), decoder
                clean = clean.removeprefix(codecs.BOM_UTF8)
            return clean
        return None


@cache
def _holds_ascii(name: str) -> bool:
    every = bytes(range(128))
    try:
        return every.decode(name) == every.decode("ascii")
    except UnicodeError:
        return False


@lru_cache(maxsize=64)
def _codecs(charset: str | None, declared: bytes | None) -> tuple[str, ...]:
    """Return the codecs to try without a byte order mark: HTTP, declaration (RFC 7303), UTF-8.

    A declared UTF-8 precedes the HTTP header, because text that is valid UTF-8 is almost always UTF-8. The default
    charset of a web server is often wrong, and any bytes are valid in an eight-bit encoding.
    """
    named = [_codec(charset), _codec(declared.decode("ascii", "replace") if declared else None)]
    known = [name for name in named if name]
    if named[1] == "utf-8":
        known.reverse()
    return tuple(dict.fromkeys([*known, "utf-8"]))


def _codec(name: str | None) -> str | None:
    try:
        found = codecs.lookup(name.strip("\"' ")).name if name else None
    except (LookupError, ValueError):
        return None
    return found if found and _TEXT_CODEC.fullmatch(found) else None
