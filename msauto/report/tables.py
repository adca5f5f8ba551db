"""Tables for a terminal, aligned by what a reader sees: Cyrillic, Chinese and accents included."""

from __future__ import annotations

from collections.abc import Sequence

from msauto.report.ansi import BOLD, paint
from msauto.report.sanitizing import display_width, pad, shorten, visible

_GAP = 2
_NARROWEST = 12


def render_table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, colour: bool, width: int | None = None
) -> str:
    """Write a table with a header line; ends with a newline.

    Cells are foreign text and are made visible. With ``width`` (columns of the terminal) the widest columns are
    cut in the middle until a line fits, but never below 12 columns. Every row needs as many cells as ``headers``.
    """
    shown = [[visible(cell) for cell in row] for row in rows]
    columns = _column_widths([list(headers), *shown])
    if width is not None:
        columns = _narrowed(columns, width)
    head = paint(_line(headers, columns), BOLD, colour=colour)
    return "".join(f"{line}\n" for line in (head, *(_line(row, columns) for row in shown)))


def align(rows: Sequence[Sequence[str]], *, most: int = 32) -> list[list[str]]:
    """Pad the cells of each column but the last to one width.

    Cells wider than ``most``, and those with nothing after them, do not widen the others.
    """
    if not rows:
        return []
    columns = _column_widths([[_measured(row, index, most) for index in range(len(row))] for row in rows])
    return [[*(pad(cell, width) for cell, width in zip(row[:-1], columns, strict=False)), row[-1]] for row in rows]


def _measured(row: Sequence[str], index: int, most: int) -> str:
    return row[index] if any(row[index + 1 :]) and display_width(row[index]) <= most else ""


def _column_widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(display_width, column)) for column in zip(*rows, strict=True)]


def _narrowed(columns: list[int], width: int) -> list[int]:
    narrowed = list(columns)
    over = sum(narrowed) + _GAP * (len(narrowed) - 1) - width
    while over > 0 and max(narrowed) > _NARROWEST:
        widest = narrowed.index(max(narrowed))
        narrowed[widest] -= 1
        over -= 1
    return narrowed


def _line(cells: Sequence[str], columns: Sequence[int]) -> str:
    fitted = (
        cell if display_width(cell) <= width else shorten(cell, width)
        for cell, width in zip(cells, columns, strict=True)
    )
    return (" " * _GAP).join(pad(cell, width) for cell, width in zip(fitted, columns, strict=True)).rstrip()
