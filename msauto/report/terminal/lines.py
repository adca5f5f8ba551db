"""Lines of styled text, wrapped to the width of a terminal; the only module that writes escape sequences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from msauto.report.layout import Layout
from msauto.report.sanitizing import display_width, split_at_width, without_command

BOLD: Final = "1"
DIM: Final = "2"
RED: Final = "31"
GREEN: Final = "32"
YELLOW: Final = "33"
MAGENTA: Final = "35"
CYAN: Final = "36"

_QUOTED: Final = re.compile(r'("(?:[^"\\]|\\.)*")')
_ASCII: Final = ((" · ", " / "), ("→", "->"), ("…", "..."))
"""The signs of reports, and what replaces them on a terminal that has ASCII only."""


class TextSpan(NamedTuple):
    """Visible text in one style; with ``together`` it is kept on one line where it fits on one."""

    text: str
    style: str = ""
    together: bool = True


@dataclass(frozen=True, slots=True)
class Line:
    """Spans that follow each other; what does not fit goes on below, indented by ``hang`` columns.

    Without ``wrapped`` it is left to the terminal to break the line: a request is copied whole.
    """

    spans: tuple[TextSpan, ...]
    hang: int = 2
    wrapped: bool = True


def paint(text: str, style: str, *, colour: bool) -> str:
    """Colour one line of visible text; return an empty text as it is."""
    return f"\x1b[{style}m{text}\x1b[0m" if colour and style and text else text


def words(text: str, style: str = "", *, hang: int = 2) -> Line:
    """Return a line that may be broken at each space."""
    return Line((TextSpan(text, style, together=False),), hang)


def wrap(line: Line, width: int) -> list[tuple[TextSpan, ...]]:
    """Return the rows of a line: none is wider than ``width``, spaces at the end not counted.

    A span that is wider than a row is broken at its spaces, text without spaces that is wider than a row within it.
    """
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
    return [_trimmed(row) for row in rows]


def _unbroken(span: TextSpan, space: int, left: int) -> Iterator[str]:
    """Yield what stays on one row: all of a span, or the texts between its spaces, cut where a row is too short."""
    if span.together and display_width(span.text.rstrip()) <= max(space, left):
        yield span.text
        return
    for word in re.findall(r"\s*\S+\s*", span.text) or [span.text]:
        while display_width(word.rstrip()) > space:
            head, word = split_at_width(word, space)
            yield head
        yield word


def _trimmed(spans: Sequence[TextSpan]) -> tuple[TextSpan, ...]:
    """Return the spans of a row, without spaces at its end; neighbours of one style are joined."""
    joined: list[TextSpan] = []
    for span in spans:
        if joined and (joined[-1].style == span.style or not span.text.strip()):
            joined[-1] = TextSpan(joined[-1].text + span.text, joined[-1].style)
        else:
            joined.append(span)
    while joined and not joined[-1].text.strip():
        joined.pop()
    return (*joined[:-1], TextSpan(joined[-1].text.rstrip(), joined[-1].style)) if joined else ()


def render_lines(lines: Iterable[Line], layout: Layout) -> Iterator[str]:
    """Yield lines as text, wrapped, each with a newline."""
    for line in lines:
        if layout.ascii_only:
            line = replace(line, spans=tuple(span._replace(text=_ascii(span.text)) for span in line.spans))
        for row in wrap(line, layout.width) if line.wrapped else [line.spans]:
            yield without_command("".join(paint(span.text, span.style, colour=layout.colour) for span in row)) + "\n"


def _ascii(text: str) -> str:
    """Return text with ASCII for the signs of reports; what is in quotes comes from outside and stays as it is."""
    if text.isascii():
        return text
    parts = _QUOTED.split(text)
    for place in range(0, len(parts), 2):
        for sign, instead in _ASCII:
            parts[place] = parts[place].replace(sign, instead)
    return "".join(parts)
