"""Tables for terminals: cells wrap where a line does not fit."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest
from typing import Final

from msauto.report.sanitizing import display_width, pad, split_at_width, visible, without_command
from msauto.report.terminal.lines import BOLD, paint, words, wrap

_GAP: Final = 2
_NARROWEST: Final = 12
_WRAPPED: Final = 3
"""The most lines of a cell."""


def render_table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    colour: bool,
    width: int | None = None,
    whole: Collection[str] = (),
) -> str:
    """Return a table with a header line; it ends with a newline.

    Cells are made visible. ``width``: the columns of the terminal; ``None``: nothing is cut. The first column, which
    names the row, and those in ``whole`` are never cut. If a line does not fit, the cells of the others wrap, three
    lines at most (in a table of two columns any number). If even that does not fit, the others go below, indented.
    Every row has as many cells as ``headers``.
    """
    shown = [list(headers), *([visible(cell) for cell in row] for row in rows)]
    lines = aligned(shown) if width is None else [*_fitted(shown, width, whole)]
    lines = [without_command(line) for line in lines]
    lines[0] = paint(lines[0], BOLD, colour=colour)
    return "".join(f"{line}\n" for line in lines)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a line for each row of visible cells, whose columns are as wide as their widest cell."""
    columns = _column_widths(rows)
    return [_line(row, columns) for row in rows]


def _fitted(rows: Sequence[Sequence[str]], width: int, whole: Collection[str]) -> Iterator[str]:
    kept = [index for index, name in enumerate(rows[0]) if index == 0 or name in whole]
    columns = _column_widths(rows)
    while _line_width(columns) > width:
        free = [index for index in range(len(columns)) if index not in kept and columns[index] > _NARROWEST]
        if not free:
            break
        columns[max(free, key=columns.__getitem__)] -= 1
    most = _WRAPPED if len(columns) > 2 else None
    for number, row in enumerate(rows):
        if _line_width(columns) <= width:
            cells = [_cell(cell, space, most) for cell, space in zip(row, columns, strict=True)]
            yield from (_line(line, columns) for line in zip_longest(*cells, fillvalue=""))
            continue
        yield _line([row[index] for index in kept], [columns[index] for index in kept])
        below = " · ".join(cell for index, cell in enumerate(row) if index not in kept and cell)
        if below and number:
            yield from (f"  {line}" for line in _cell(below, max(_NARROWEST, width - _GAP), most))


def _cell(text: str, width: int, most: int | None) -> list[str]:
    """Return the lines of a cell; after ``most`` lines the rest is cut, which ``…`` shows."""
    if display_width(text) <= width:
        return [text]
    lines = ["".join(span.text for span in row) for row in wrap(words(text, hang=0), width)]
    if most is not None and len(lines) > most:
        lines[most - 1 :] = [f"{split_at_width(lines[most - 1], width - 1)[0]}…"]
    return lines


def _column_widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(display_width, column)) for column in zip(*rows, strict=True)]


def _line_width(columns: Sequence[int]) -> int:
    return sum(columns) + _GAP * (len(columns) - 1)


def _line(cells: Sequence[str], columns: Sequence[int]) -> str:
    return (" " * _GAP).join(map(pad, cells, columns)).rstrip()
