"""Lines of styled text, wrapped to the width of a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from msauto.report.sanitizing import display_width, split_at_width, without_command
from msauto.report.terminal.styles import paint

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


@dataclass(slots=True)
class _TerminalRow:
    """One line on the terminal while it is filled."""

    spans: list[TextSpan] = field(default_factory=list)
    used: int = 0

    def add(self, span: TextSpan) -> None:
        self.spans.append(span)
        self.used += display_width(span.text)


def words(text: str, style: str = "", *, hang: int = 2) -> Line:
    """Return a line that may be broken at each space."""
    return Line((TextSpan(text, style, together=False),), hang)


def wrap(line: Line, width: int) -> list[tuple[TextSpan, ...]]:
    """Return the rows of a line: none is wider than ``width``, spaces at the end not counted.

    A span that is wider than a row is broken at its spaces, text without spaces that is wider than a row within it.
    """
    rows = [_TerminalRow()]
    for span in line.spans:
        if _fits(rows[-1], span.text, width):
            rows[-1].add(span)
            continue
        if span.together and display_width(span.text.rstrip()) <= width - line.hang:
            rows.append(_TerminalRow([TextSpan(" " * line.hang)], line.hang))
            rows[-1].add(span._replace(text=span.text.lstrip(" ")))
            continue
        for part in _parts(span, width - line.hang):
            if not _fits(rows[-1], part.text, width):
                rows.append(_TerminalRow([TextSpan(" " * line.hang)], line.hang))
                part = part._replace(text=part.text.lstrip(" ") or part.text)
            rows[-1].add(part)
    return [_trimmed(row.spans) for row in rows]


def _fits(row: _TerminalRow, text: str, width: int) -> bool:
    return row.used + display_width(text.rstrip()) <= width


def _parts(span: TextSpan, space: int) -> Iterator[TextSpan]:
    for word in re.findall(r"\s*\S+\s*", span.text) or [span.text]:
        rest = word
        while display_width(rest.rstrip()) > space:
            head, rest = split_at_width(rest, space)
            yield TextSpan(head, span.style)
        yield TextSpan(rest, span.style)


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


def render_lines(lines: Iterable[Line], *, width: int, colour: bool, ascii_only: bool = False) -> Iterator[str]:
    """Yield lines as text, wrapped to ``width`` columns, each with a newline."""
    for line in in_ascii(lines) if ascii_only else lines:
        for row in wrap(line, width) if line.wrapped else [line.spans]:
            yield without_command("".join(paint(span.text, span.style, colour=colour) for span in row)) + "\n"


def in_ascii(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield lines with ASCII for the signs of reports; what is in quotes comes from outside and stays as it is."""
    for line in lines:
        yield replace(line, spans=tuple(span._replace(text=_ascii(span.text)) for span in line.spans))


def _ascii(text: str) -> str:
    if text.isascii():
        return text
    parts = _QUOTED.split(text)
    for place in range(0, len(parts), 2):
        for sign, instead in _ASCII:
            parts[place] = parts[place].replace(sign, instead)
    return "".join(parts)
