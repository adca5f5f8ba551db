"""The text of a file that others wrote: its encoding, and what separates the values of a table."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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
_NO_TEXT: Final = ("the file is not a text", "export its content as a text, such as CSV")


def decode(content: bytes, encoding: str = "") -> str:
    """Return the text of a file: by its byte order mark, else UTF-16 if every second byte is 0, else UTF-8.

    NUL and SUB at the end fill the blocks of old systems; another NUL is in no text.
    """
    marked = next((name for mark, name in _BYTE_ORDER_MARKS if content.startswith(mark)), None)
    wide = ""
    if b"\x00" in content[:2]:
        wide = "utf-16-le" if content[1:2] == b"\x00" else "utf-16-be"
    try:
        if encoding and not _ENCODINGS.fullmatch(encoding):
            raise LookupError
        text = content.decode(marked or encoding or wide or "utf-8").rstrip("\0\x1a")
    except UnicodeDecodeError as error:
        if b"\0" in content:
            raise TextFileError(*_NO_TEXT) from error
        remedy = "save it as UTF-8, or name its encoding: encoding='cp1252'"
        line = content.count(b"\n", 0, error.start) + 1
        raise TextFileError(
            f"the file is not {marked or encoding or 'UTF-8'}", remedy, line
        ) from error
    except LookupError as error:
        raise TextFileError(
            f"unknown encoding {encoding!r}", "write encoding='cp1252' or 'mac_roman'"
        ) from error
    if "\0" in text:
        raise TextFileError(*_NO_TEXT)
    return text


_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_LONGEST_LINE: Final = 10_000
_MOST_LINES: Final = 250_000
_MOST_CHARACTERS: Final = 16 * 2**20


def lines_of(text: str) -> Iterator[tuple[int, str]]:
    """Return the lines of a text with their numbers: only CR and LF end one."""
    return enumerate(_LINE_END.split(text), 1)


def check_text_size(text: str) -> None:
    """Raise :class:`TextFileError` for a text without bounds of its own that takes too much memory."""
    if len(text) > _MOST_CHARACTERS:
        raise TextFileError(f"the file has more than {_MOST_CHARACTERS:,} characters", "split it")


def check_lines(text: str) -> None:
    """Raise :class:`TextFileError` for too many lines, and for one that is too long; cells of tables may be longer."""
    for number, line in lines_of(text):
        if number > _MOST_LINES:
            raise TextFileError(f"the file has more than {_MOST_LINES:,} lines", "split it", number)
        if len(line) > _LONGEST_LINE:
            why = f"the line has {len(line):,} characters, more than {_LONGEST_LINE:,}"
            raise TextFileError(why, "export the file again, or shorten its texts", number)


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


Row = tuple[int, Sequence[str]]
"""The number of a line, from 1, and the values of the row that begins there."""
_SEPARATOR_LINE: Final = re.compile(r'"?sep=(.)"?(?=[\r\n]|$)', re.IGNORECASE)
"""The first line in which a table names what separates its values."""


def table_rows(text: str, separator: str = "", header: int = 1) -> tuple[list[Row], str]:
    """Return the rows of CSV from the line of the header on, and the separator; raises :class:`TextFileError`.

    The separator is the one given, else that of a first line ``sep=;``, else of the header.
    """
    named = _SEPARATOR_LINE.match(text)
    first = max(header, 2) if named else header
    below = text
    if first > 1:
        parts = _LINE_END.split(text, maxsplit=first - 1)
        below = parts[-1]
        if len(parts) < first:
            raise TextFileError(f"the file has no line {first}", "correct header=")
    between = separator or (named[1] if named else header_delimiter(below))
    check_table_size(below, between)
    reader = csv.reader(io.StringIO(below, newline=""), delimiter=between, strict=True)
    line = first
    rows: list[Row] = []
    try:
        for cells in reader:
            rows.append((line, cells))
            line = first + reader.line_num
    except (csv.Error, TypeError) as error:
        why = f"the file is not valid CSV: {error}"
        raise TextFileError(why, "check its quotes, and delimiter=", line) from error
    return rows, between


def check_header(line: int, names: Iterable[str]) -> None:
    """Raise :class:`TextFileError` for a name that two columns have: the values of one would be lost."""
    for name, number in Counter(names).items():
        if name and number > 1:
            why = f"the header has the name {name!r} twice"
            raise TextFileError(why, "rename or remove one of the columns", line)


def header_delimiter(text: str) -> str:
    """Return what separates the names of a CSV header: the most frequent of comma, semicolon and tab outside quotes."""
    header = re.sub(r'"[^"]*"', "", text.lstrip("\r\n").partition("\n")[0])
    best = max(";\t,", key=header.count)  # of as many, not the comma: it occurs in names
    return best if best in header else ","
