"""Cells of CSV: each is quoted, and none is a formula to a spreadsheet, whatever it takes for the separator.

https://owasp.org/www-community/attacks/CSV_Injection
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from typing import Final

_NUMBER: Final = re.compile(r"[-+]?[0-9]+(?:[.,:][0-9]+)*(?:[eE][-+]?[0-9]+)?%?")
_PARTS: Final = re.compile(r"(?<=[;|\t\r\n])")
"""What another separator than the comma, or a line end that is not taken for quoted, makes of a cell."""
_FORMULA: Final = re.compile(r"'*[\s\x00-\x1f\u200b-\u200f\u2060\ufeff]*[-=+@＝＋－＠]")
_BLANK: Final = re.compile(r"'*[\t\r\n]")
"""How a cell begins that a spreadsheet may run. The sign that defuses it counts, so that it can be taken away again."""


def csv_line(cells: Iterable[str]) -> str:
    """Return a line of CSV; each cell is quoted and defused."""
    line = io.StringIO(newline="")
    csv.writer(line, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(map(defused, cells))
    return line.getvalue()


def defused(cell: str) -> str:
    """Return a cell that no spreadsheet takes for a formula, by a ``'`` in front; a number stays as it is.

    >>> defused("=1+1"), defused(" @x"), defused("'=1+1"), defused("a;=1"), defused("1=1"), defused("-5")
    ("'=1+1", "' @x", "''=1+1", "a;'=1", '1=1', '-5')
    """
    if _NUMBER.fullmatch(cell):
        return cell
    shown = ""
    for part in _PARTS.split(cell):
        if _FORMULA.match(part):
            shown += "'"
        shown += part
    return f"'{shown}" if _BLANK.match(shown) else shown


def as_written(cell: str) -> str:
    """Return what :func:`defused` defused.

    >>> as_written("'=1+1"), as_written("a;'=1"), as_written("'90s")
    ('=1+1', 'a;=1', "'90s")
    """
    if _BLANK.match(cell):
        cell = cell.removeprefix("'")
    written = ""
    for part in _PARTS.split(cell):
        is_defused = _FORMULA.match(part)
        written += part.removeprefix("'") if is_defused else part
    return written
