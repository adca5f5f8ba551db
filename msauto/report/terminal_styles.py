"""Colour and tables for terminals; the only module that writes escape sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msauto.report.sanitizing import display_width, pad, shorten, visible

BOLD: Final = "1"
DIM: Final = "2"
RED: Final = "31"
GREEN: Final = "32"
YELLOW: Final = "33"
MAGENTA: Final = "35"
CYAN: Final = "36"

_GAP: Final = 2
_NARROWEST: Final = 12


def paint(text: str, style: str, *, colour: bool) -> str:
    """Colour one line of visible text; return an empty text as it is."""
    return f"\x1b[{style}m{text}\x1b[0m" if colour and style and text else text


def render_table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, colour: bool, width: int | None = None
) -> str:
    """Return a table with a header line; it ends with a newline.

    Cells are made visible. ``width``: the columns of the terminal; the widest columns are cut in the middle until a
    line fits, but not below 12 columns. Every row has as many cells as ``headers``.
    """
    shown = [[visible(cell) for cell in row] for row in rows]
    columns = _column_widths([list(headers), *shown])
    if width is not None:
        columns = _narrowed(columns, width)
    head = paint(_line(headers, columns), BOLD, colour=colour)
    return "".join(f"{line}\n" for line in (head, *(_line(row, columns) for row in shown)))


def align(rows: Sequence[Sequence[str]], *, most: int = 32) -> list[list[str]]:
    """Pad the cells of each column except the last to one width.

    Cells wider than ``most``, and cells followed only by empty ones, do not widen their column.
    """
    columns = _column_widths([[_measured(row, index, most) for index in range(len(row))] for row in rows])
    return [[*(pad(cell, width) for cell, width in zip(row[:-1], columns, strict=False)), row[-1]] for row in rows]


def _measured(row: Sequence[str], index: int, most: int) -> str:
    return row[index] if any(row[index + 1 :]) and display_width(row[index]) <= most else ""


def _column_widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(display_width, column)) for column in zip(*rows, strict=True)]


def _narrowed(columns: list[int], width: int) -> list[int]:
    narrowed = list(columns)
    excess = sum(narrowed) + _GAP * (len(narrowed) - 1) - width
    while excess > 0 and max(narrowed) > _NARROWEST:
        narrowed[narrowed.index(max(narrowed))] -= 1
        excess -= 1
    return narrowed


def _line(cells: Sequence[str], columns: Sequence[int]) -> str:
    fitted = (pad(cell if display_width(cell) <= width else shorten(cell, width), width)
              for cell, width in zip(cells, columns, strict=True))  # fmt: skip
    return (" " * _GAP).join(fitted).rstrip()
