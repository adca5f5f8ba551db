"""Colour and tables for terminals; the only module that writes escape sequences."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Final

from msauto.report.sanitizing import display_width, pad, sign_width, visible, without_command

BOLD: Final = "1"
DIM: Final = "2"
RED: Final = "31"
GREEN: Final = "32"
YELLOW: Final = "33"
MAGENTA: Final = "35"
CYAN: Final = "36"

_GAP: Final = 2
_NARROWEST: Final = 12
_WRAPPED: Final = 3
"""The most lines of a cell."""


def paint(text: str, style: str, *, colour: bool) -> str:
    """Colour one line of visible text; return an empty text as it is."""
    return f"\x1b[{style}m{text}\x1b[0m" if colour and style and text else text


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
    shown = [[visible(cell) for cell in row] for row in rows]
    columns = _column_widths([list(headers), *shown])
    kept = {index for index, name in enumerate(headers) if index == 0 or name in whole}
    if width is None or _line_width(columns) <= width:
        lines = [_line(row, columns) for row in (headers, *shown)]
    else:
        most = _WRAPPED if len(headers) > 2 else None
        narrow = _narrowed(columns, width, kept)
        wrap = _wrapped_rows if _line_width(narrow) <= width else _stacked_rows
        lines = [*wrap([headers, *shown], narrow, kept, width, most)]
    lines = [without_command(line) for line in lines]
    lines[0] = paint(lines[0], BOLD, colour=colour)
    return "".join(f"{line}\n" for line in lines)


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


def _line_width(columns: Sequence[int]) -> int:
    return sum(columns) + _GAP * (len(columns) - 1)


def _narrowed(columns: Sequence[int], width: int, kept: Collection[int]) -> list[int]:
    """Return the columns, those not kept narrower until a line fits, but not below 12; the widest first."""
    narrowed = list(columns)
    excess = _line_width(narrowed) - width
    free = [index for index in range(len(narrowed)) if index not in kept]
    while excess > 0 and free:
        widest = max(free, key=narrowed.__getitem__)
        if narrowed[widest] <= _NARROWEST:
            break
        narrowed[widest] -= 1
        excess -= 1
    return narrowed


def _wrapped_rows(
    rows: Iterable[Sequence[str]], columns: Sequence[int], kept: Collection[int], width: int, most: int | None
) -> Iterator[str]:
    """Yield the lines of rows whose cells wrap within their columns."""
    del kept, width
    for row in rows:
        cells = [wrap(cell, space, most) for cell, space in zip(row, columns, strict=True)]
        yield from (_line(line, columns) for line in zip_longest(*cells, fillvalue=""))


def _stacked_rows(
    rows: Iterable[Sequence[str]], columns: Sequence[int], kept: Collection[int], width: int, most: int | None
) -> Iterator[str]:
    """Yield for each row a line of the columns that are kept, and the other cells below it."""
    above = sorted(kept)
    head = True
    for row in rows:
        yield _line([row[index] for index in above], [columns[index] for index in above])
        below = " · ".join(cell for index, cell in enumerate(row) if index not in kept and cell)
        if below and not head:
            yield from (f"  {line}" for line in wrap(below, max(_NARROWEST, width - 2), most))
        head = False


def wrap(text: str, width: int, most: int | None = None) -> list[str]:
    """Return the lines of a visible text, broken at blanks, and within words that are too long.

    After ``most`` lines the rest is cut, which ``…`` shows.
    """
    lines = [""]
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if display_width(joined) <= width:
            lines[-1] = joined
            continue
        *full, last = _broken(word, width)
        lines = [*(lines if lines[-1] else lines[:-1]), *full, last]
    if most is not None and len(lines) > most:
        end, *_ = _broken(lines[most - 1], width - 1)
        lines = [*lines[: most - 1], f"{end}…"]
    return lines


def _broken(word: str, width: int) -> list[str]:
    """Return the parts of a text without spaces, each of which fits; an accent stays with its letter."""
    parts, space = [""], width
    for sign in word:
        needed = sign_width(sign)
        if needed > space:
            parts.append("")
            space = width
        parts[-1] += sign
        space -= needed
    return parts


def _line(cells: Sequence[str], columns: Sequence[int]) -> str:
    return (" " * _GAP).join(map(pad, cells, columns)).rstrip()
