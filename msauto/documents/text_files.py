"""The text of a file that others wrote: its encoding, and what separates the values of a table."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from typing import Final


class TextFileError(ValueError):
    """A file that cannot be read as what it should be; ``line``: the line or row, from 1.

    ``unknown``: a name that is not known, and those that are.
    """

    def __init__(
        self,
        message: str,
        remedy: str = "",
        line: int | None = None,
        *,
        unknown: tuple[str, Iterable[str]] = ("", ()),
    ) -> None:
        super().__init__(message)
        self.remedy = remedy
        self.line = line
        self.unknown = unknown


_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ENCODINGS: Final = re.compile(
    r"(?i)(?:ascii|big5|cp|euc|gb|iso|koi8|latin|mac|shift|utf|windows)[\w-]*"
)
"""Encodings of texts; others that Python has, such as punycode, take long."""


def decode(content: bytes, encoding: str = "") -> str:
    """Return the text of a file: by its byte order mark, else UTF-16 if every second byte is 0, else UTF-8."""
    marked = next((name for mark, name in _BYTE_ORDER_MARKS if content.startswith(mark)), None)
    wide = "utf-16-le" if content[1:2] == b"\x00" else ""
    try:
        if encoding and not _ENCODINGS.fullmatch(encoding):
            raise LookupError
        return content.decode(marked or encoding or wide or "utf-8")
    except UnicodeDecodeError as error:
        remedy = "save it as UTF-8, or name its encoding: encoding='cp1252'"
        line = content.count(b"\n", 0, error.start) + 1
        raise TextFileError(
            f"the file is not {marked or encoding or 'UTF-8'}", remedy, line
        ) from error
    except LookupError as error:
        raise TextFileError(
            f"unknown encoding {encoding!r}", "write encoding='cp1252' or 'mac_roman'"
        ) from error


_MOST_VALUES: Final = 3_000_000
"""The most values of a table or of JSON: each takes some 100 bytes of memory."""
_VALUES_OF_ROW: Final = 4
"""As many values as a row takes memory of its own."""


def check_table_size(text: str, between: str) -> None:
    """Raise :class:`TextFileError` for a table that takes too much memory, before it is read."""
    rows = text.count("\n") + text.count("\r") - text.count("\r\n")
    _check_values(text.count(between) + _VALUES_OF_ROW * rows)


def check_json_size(text: str) -> None:
    """Raise :class:`TextFileError` for JSON that takes too much memory, before it is read."""
    _check_values(sum(map(text.count, "[{,:")))


def _check_values(number: int) -> None:
    """Raise for too many values. Signs in texts are counted, too: the number is never too low."""
    if number > _MOST_VALUES:
        why = f"the file has more than {_MOST_VALUES:,} values; each row of a table counts as {_VALUES_OF_ROW} more"
        raise TextFileError(why, "split the file")


def header_delimiter(text: str) -> str:
    """Return what separates the names of a CSV header: the most frequent of comma, semicolon and tab outside quotes."""
    header = re.sub(r'"[^"]*"', "", text.lstrip("\r\n").partition("\n")[0])
    best = max(";\t,", key=header.count)  # of as many, not the comma: it occurs in names
    return best if best in header else ","
