"""How reports are laid out: the options, styled lines wrapped to a terminal, and tables.

Only this module writes escape sequences.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from msgspec import Struct, structs

from msauto.errors import MsautoError
from msauto.report.sanitizing import display_width, pad, parts_of_width, visible, without_command

if TYPE_CHECKING:
    from msauto.report.clip_timeline import StillPlace


class Layout(Struct, frozen=True):
    """How to show a plan or a result.

    ``verbosity`` 1 unfolds it, shows values whole and adds the requests; 2 adds the source of each change. ``width``:
    columns of the terminal. ``ascii_only``: no other signs than ASCII, except in titles. ``summary``: counts,
    deletions and refusals alone. ``name``: the playbook, by which CI finds its comment again. ``keep_going``: targets
    in error are left out. ``error``: why the command ends without applying the plan. ``stills``: pictures of clips.
    ``refusals``: false where a question or an error follows that names them.
    ``by``: who made it, as ``user@host``.
    """

    colour: bool = False
    verbosity: int = 0
    width: int = 80
    ascii_only: bool = False
    summary: bool = False
    name: str = "plan"
    keep_going: bool = False
    error: MsautoError | None = None
    stills: Mapping[StillPlace, bytes] = {}
    refusals: bool = True
    by: str = ""


PLAIN: Final = Layout()

Style = Literal["", "bold", "dim", "red", "green", "yellow", "magenta", "cyan"]
_CODES: Final[Mapping[Style, int]] = {
    "bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "magenta": 35, "cyan": 36
}  # fmt: skip

_QUOTED: Final = re.compile(r'("(?:[^"\\]|\\.)*+(?:"|\\?\Z))')
"""Linear: a quote that does not end goes up to the end, so that no sign is read twice."""
_WORD: Final = re.compile(r"(?:\A\s*)?\S+\s*")
"""Linear: spaces are read from the beginning, or after other text."""
_ARROW: Final = re.compile(r"(?=→ |-> )")
_ASCII: Final = ((" · ", " / "), ("→", "->"), ("…", "..."))
"""The signs of reports, and what replaces them on a terminal that has ASCII only."""


class TextSpan(NamedTuple):
    """Visible text in one style; with ``together`` it is kept on one line where it fits on one."""

    text: str
    style: Style = ""
    together: bool = True


class Line(Struct, frozen=True):
    """Spans that follow each other; what does not fit goes on below, indented by ``hang`` columns.

    Without ``wrapped`` it is left to the terminal to break the line: a request is copied whole. ``laid_out``: it is
    a line of a table, shown as it is.
    """

    spans: tuple[TextSpan, ...]
    hang: int = 2
    wrapped: bool = True
    laid_out: bool = False


def paint(text: str, style: Style, *, colour: bool) -> str:
    """Colour one line of visible text; return an empty text as it is."""
    is_coloured = colour and style and text
    if is_coloured:
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m"
    return text


def words(text: str, style: Style = "", *, hang: int = 2) -> Line:
    """Return a line that may be broken at each space."""
    return Line((TextSpan(text, style, together=False),), hang)


def with_commas(spans: Sequence[TextSpan]) -> list[TextSpan]:
    """Return spans with a comma after each but the last one."""
    separated = [span._replace(text=f"{span.text}, ") for span in spans[:-1]]
    return [*separated, *spans[-1:]]


def listing(text: str, *, hang: int = 2) -> Line:
    """Return a line of names that is broken after commas, so that no name is in two parts."""
    spans = [TextSpan(part) for part in text.split(", ")]
    return Line(tuple(with_commas(spans)), hang)


def wrap(line: Line, width: int) -> list[tuple[TextSpan, ...]]:
    """Return the rows of a line: none is wider than ``width``, spaces at the end not counted.

    A span that is wider than a row is broken at its spaces, text without spaces that is wider than a row within it.
    """
    if sum(display_width(span.text) for span in line.spans) <= width:
        return [_trimmed(line.spans)]
    rows: list[list[TextSpan]] = [[]]
    used = 0
    for span in line.spans:
        for text in _unbroken(span, width - line.hang, width - used):
            if used + display_width(text.rstrip()) > width:
                rows.append([TextSpan(" " * line.hang)])
                used = line.hang
                text = text.lstrip(" ") or text
            rows[-1].append(TextSpan(text, span.style))
            used += display_width(text)
    return [*map(_trimmed, rows)]


def _unbroken(span: TextSpan, space: int, rest: int) -> Iterator[str]:
    """Yield what stays on one row: all of a span, its two sides of an arrow, or words, cut where a row is too short.

    A path is not: it is copied whole.
    """
    if span.together and display_width(span.text.rstrip()) <= max(space, rest):
        yield span.text
        return
    sides = _ARROW.split(span.text) if span.together else []
    if len(sides) == 2 and max(map(display_width, sides)) <= space:
        yield from sides
        return
    for word in _WORD.findall(span.text) or [span.text]:
        bare = word.rstrip()
        is_path = bare.startswith("/") and bare.isascii()
        if is_path or display_width(bare) <= space:
            yield word
            continue
        *parts, last = parts_of_width(bare, space)
        yield from parts
        yield last + word[len(bare) :]


def _trimmed(spans: Sequence[TextSpan]) -> tuple[TextSpan, ...]:
    """Return the spans of a row, without spaces at its end; neighbours of one style are joined."""
    joined: list[tuple[list[str], Style]] = []
    for span in spans:
        if joined and (joined[-1][1] == span.style or not span.text.strip()):
            joined[-1][0].append(span.text)
        else:
            joined.append(([span.text], span.style))
    row = [TextSpan("".join(parts), style) for parts, style in joined]
    while row and not row[-1].text.strip():
        row.pop()
    if not row:
        return ()
    last = row.pop()
    return (*row, last._replace(text=last.text.rstrip()))


def render_lines(lines: Iterable[Line], layout: Layout) -> Iterator[str]:
    """Yield lines as text, wrapped, each with a newline."""
    for line in lines:
        rows: Sequence[Sequence[TextSpan]] = [line.spans]
        if not line.laid_out:
            if layout.ascii_only:
                spans = [span._replace(text=in_ascii(span.text)) for span in line.spans]
                line = structs.replace(line, spans=tuple(spans))
            rows = wrap(line, layout.width) if line.wrapped else [line.spans]
        for row in rows:
            shown = "".join([paint(span.text, span.style, colour=layout.colour) for span in row])
            yield f"{without_command(shown)}\n"


def in_ascii(text: str) -> str:
    """Return text with ASCII for the signs of reports; what is in quotes comes from outside and stays as it is."""
    if text.isascii():
        return text
    parts = _QUOTED.split(text)
    for place in range(0, len(parts), 2):
        for sign, instead in _ASCII:
            parts[place] = parts[place].replace(sign, instead)
    return "".join(parts)


Rows = Sequence[Sequence[str]]
"""The rows of a table: its cells."""
_GAP: Final = 2
_NARROWEST: Final = 12
_NARROWEST_VALUE: Final = 20
_WRAPPED: Final = 3
"""The most lines of a cell."""


def render_table(
    headers: Sequence[str],
    rows: Rows,
    *,
    colour: bool,
    width: int | None = None,
    whole: Collection[str] = (),
    narrowest: int = _NARROWEST,
    styles: Mapping[str, Mapping[str, Style]] = MappingProxyType({}),
) -> str:
    """Return a table with a header line; it ends with a newline.

    Cells are made visible. ``width``: the columns of the terminal; ``None``: nothing is cut. The first column, which
    names the row, and those in ``whole`` are never cut. If a line does not fit, the cells of the others wrap, three
    lines at most (in a table of two columns any number). If they would be narrower than ``narrowest``, they go below,
    indented.
    Every row has as many cells as ``headers``. ``styles``: for a column, the style of a cell by its text.
    """
    shown = [[*headers]]
    for row in rows:
        shown.append([*map(visible, row)])
    looks: Looks = [{}] * len(headers)
    if colour:
        looks = [styles.get(name, {}) for name in headers]
    if width is None:
        lines = aligned(shown, looks)
    else:
        lines = [*_fitted(shown, width, whole, narrowest, looks)]
    head, *others = map(without_command, lines)
    return "\n".join([paint(head, "bold", colour=colour), *others, ""])


Looks = Sequence[Mapping[str, Style]]
"""For each column, the style of a cell by its text."""


def aligned(rows: Rows, looks: Looks = ()) -> list[str]:
    """Return a line for each row of visible cells, whose columns are as wide as their widest cell."""
    columns = column_widths(rows)
    return [_line(row, columns, looks) for row in rows]


def value_table(rows: Rows, layout: Layout) -> Iterator[Line]:
    """Yield the lines of a table of values, which are all shown whole; the first row has the headings.

    If a line does not fit, its cells wrap; if even that does not fit, each follows the first cell, with its heading.
    """
    shown = rows
    if layout.ascii_only:
        shown = [[*map(in_ascii, row)] for row in rows]
    margin = " " * _GAP
    columns = _narrowed(shown, layout.width - _GAP, range(1, len(rows[0])), _NARROWEST_VALUE)
    if columns:
        for row in shown:
            style: Style = "dim" if row is shown[0] else ""
            for line in _wrapped_row(row, columns, None):
                yield Line((TextSpan(f"{margin}{line}", style),), laid_out=True)
        return
    (_, *headings), *lines = rows
    for name, *cells in lines:
        spans = []
        for heading, cell in zip(headings, cells, strict=True):
            if cell:
                spans.append(TextSpan(f"{heading} {cell}"))
        yield Line((TextSpan(f"{margin}{name}  "), *with_commas(spans)), 6)


def _narrowed(rows: Rows, width: int, flexible: Sequence[int], narrowest: int) -> list[int]:
    """Return the columns of a table, of which the widest become narrower until a line fits; empty if none does.

    ``flexible``: the columns that may.
    """
    columns = column_widths(rows)
    for index in flexible:
        columns[index] = min(columns[index], max(width, narrowest))
    gaps = _GAP * (len(columns) - 1)
    while sum(columns) + gaps > width:
        widest = max(flexible, key=columns.__getitem__, default=None)
        if widest is None or columns[widest] <= narrowest:
            return []
        columns[widest] -= 1
    return columns


def _wrapped_row(
    row: Sequence[str], columns: Sequence[int], most: int | None, looks: Looks = ()
) -> Iterator[str]:
    cells = [_cell(cell, space, most) for cell, space in zip(row, columns, strict=True)]
    for line in zip_longest(*cells, fillvalue=""):
        yield _line(line, columns, looks)


def _fitted(
    rows: Rows, width: int, whole: Collection[str], narrowest: int, looks: Looks
) -> Iterator[str]:
    """Yield the lines of a table: its widest columns become narrower until a line fits, or their cells go below."""
    kept = []
    flexible = []
    for index, name in enumerate(rows[0]):
        if index == 0 or name in whole:
            kept.append(index)
        else:
            flexible.append(index)
    most = _WRAPPED if len(rows[0]) > 2 else None
    columns = _narrowed(rows, width, flexible, narrowest)
    if columns:
        for row in rows:
            yield from _wrapped_row(row, columns, most, looks)
        return
    kept_cells = [[row[index] for index in kept] for row in rows]
    head, *lines = aligned(kept_cells, [*map(looks.__getitem__, kept)])
    yield head
    for line, row in zip(lines, rows[1:], strict=True):
        yield line
        below = " · ".join(filter(None, (row[index] for index in flexible)))
        if below:
            for part in _cell(below, max(_NARROWEST, width - _GAP), most):
                yield f"  {part}"


def _cell(text: str, width: int, most: int | None) -> list[str]:
    """Return the lines of a cell; after ``most`` lines the rest is cut, which ``…`` shows."""
    if display_width(text) <= width:
        return [text]
    hang = len(text) - len(text.lstrip(" "))
    lines = ["".join(span.text for span in row) for row in wrap(words(text, hang=hang), width)]
    if most is not None and len(lines) > most:
        lines[most - 1 :] = [f"{next(parts_of_width(lines[most - 1], width - 1))}…"]
    return lines


def column_widths(rows: Rows) -> list[int]:
    """Return the columns that the widest cell of each column of a table takes."""
    return [max(map(display_width, column)) for column in zip(*rows, strict=True)]


def _line(cells: Sequence[str], columns: Sequence[int], looks: Looks) -> str:
    shown = [*map(pad, cells, columns)]
    for place, look in enumerate(looks):
        cell = cells[place]
        style = look.get(cell)
        if style:
            padding = shown[place].removeprefix(cell)
            shown[place] = paint(cell, style, colour=True) + padding
    return (" " * _GAP).join(shown).rstrip()
