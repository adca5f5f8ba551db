r"""Text from outside made visible and harmless, and its width on a terminal.

A title must neither control the terminal nor look like another title. Control characters, terminal escapes,
bidirectional and zero-width characters are written as ``\x1b``, ``\u202e`` and so on. A zero-width joiner between two
emoji is kept: it joins them into one. Names are shown as ranges: ``EP001…EP297`` stands for 297 names only where every
number between is one of them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import accumulate, takewhile
from operator import eq
from typing import Final, NamedTuple

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"})
_BLANK_SIGNS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Blank although their category is not (Hangul fillers, blank Braille, joiners), and variation selectors."""
_ESCAPED = frozenset('"\\')
_OURS = ("→", " · ", "…")
"""Marks of reports: a text that contains one is quoted, so that it cannot imitate a report."""

_EMOJI = "\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff"
_SKIN_TONES = "\U0001f3fb-\U0001f3ff"
_JOINED = re.compile(
    f"(?<=[{_EMOJI}])[{_SKIN_TONES}]|(?<=[{_EMOJI}{_SKIN_TONES}])\u200d[{_EMOJI}][{_SKIN_TONES}]?"
)
"""What a terminal shows within the columns of the emoji before it."""

_COMMAND = re.compile(r"^(\s*):(?=:)|#(?=#\w*\[)")
"""How a line begins, or what is in it, that a CI system takes for a command."""

Piece = tuple[str, int]
"""One character with its accents as it is shown, and its width in columns."""
_LONGEST_PIECE: Final = 32
"""Characters of a piece, as many as Unicode's stream-safe texts have; further accents are a piece without a width."""
_CHARACTERS_OF_A_COLUMN: Final = 8
"""More of them in a column are accents that you cannot distinguish."""
_NARROWEST: Final = 12


def is_hidden(sign: str) -> bool:
    """Return whether a character is invisible, or controls a terminal."""
    if " " <= sign <= "~":
        return False
    category = unicodedata.category(sign)
    if category == "Zs":
        return sign not in {" ", "\u3000"}
    return category in _HIDDEN or _BLANK_SIGNS.match(sign) is not None


def _is_plain(text: str) -> bool:
    """Return whether a text is printable ASCII: nothing hidden, and each character one column wide."""
    return text.isascii() and text.isprintable()


def _is_verbatim(text: str, *, in_quotes: bool) -> bool:
    """Return whether a text is shown as it is, each character one column wide."""
    return _is_plain(text) and not (in_quotes and _ESCAPED.intersection(text))


def _hides(text: str) -> bool:
    """Return whether a text has hidden characters."""
    if text.isprintable() and not _BLANK_SIGNS.search(text):
        return False
    return any(map(is_hidden, text))


def visible(text: str) -> str:
    """Escape hidden characters and keep all others: for messages and places."""
    if not _hides(text):
        return text
    return "".join(shown for shown, _ in _pieces(text, in_quotes=False))


def visible_lines(text: str) -> list[str]:
    """Return the lines of a message, each escaped; a tab becomes one space."""
    return [visible(line.replace("\t", " ")) for line in text.replace("\r\n", "\n").split("\n")]


def message_lines(text: str) -> list[str]:
    """Return the lines of a message, at least one, as :func:`visible_lines`, without indents and empty lines."""
    lines = [line.strip() for line in visible_lines(text)]
    return [*filter(None, lines)] or [""]


def without_command(line: str) -> str:
    r"""Return a line of output that a CI system does not take for a command, such as ``::error`` at its beginning.

    >>> without_command("  ::error::x"), without_command("a::b"), without_command("a ##[error]x")
    ('  \\x3a:error::x', 'a::b', 'a \\x23#[error]x')
    """
    return _COMMAND.sub(_escaped_sign, line) if "::" in line or "##" in line else line


def _escaped_sign(command: re.Match[str]) -> str:
    """Return the beginning of a command with its first sign escaped."""
    begun = command[0]
    return f"{begun[:-1]}\\x{ord(begun[-1]):x}"


@lru_cache(maxsize=4096)
def sign_width(sign: str) -> int:
    """Return the width of a character in columns: 0 (accents), 1 or 2 (Chinese, Japanese, Korean, emoji)."""
    if " " <= sign <= "~":
        return 1
    if unicodedata.category(sign) in {"Mn", "Me"} or "\u1160" <= sign <= "\u11ff":
        return 0
    if unicodedata.east_asian_width(sign) in {"W", "F"}:
        return 2
    return 1


def display_width(text: str) -> int:
    """Return the width of a text in columns; it must contain no control characters."""
    if text.isascii():
        return len(text)
    return sum(map(sign_width, _JOINED.sub("", text)))


def parts_of_width(text: str, width: int) -> Iterator[str]:
    """Yield a visible text in parts that are at most ``width`` columns wide, but have at least a sign."""
    part: list[str] = []
    used = 0
    for shown, columns in _pieces(text, in_quotes=False):
        if part and used + columns > width:
            yield "".join(part)
            part = []
            used = 0
        part.append(shown)
        used += columns
    yield "".join(part)


def pad(text: str, width: int) -> str:
    """Add spaces up to ``width`` columns."""
    return text + " " * (width - display_width(text))


def show(text: str, *, limit: int | None = None, quoted: bool = False) -> str:
    r"""Return a text from outside on one line: as it is, or quoted if it could mislead.

    Quoted are empty texts, spaces at the ends or in a row, hidden characters and marks of reports. A backslash is an
    escape only inside quotes. ``limit`` (columns) cuts the middle out and shows how many characters.

    >>> show("Part 1"), show("two\nlines"), show("abcdefghijklmnopqrstuvwxyz", limit=20)
    ('Part 1', '"two\\nlines"', 'abcdefghi[…12…]vwxyz')
    """
    in_quotes = quoted or _needs_quotes(text)
    text = _cut(text, limit, in_quotes=in_quotes)
    if in_quotes:
        return f'"{text}"'
    return text


def show_pair(before: str, after: str, *, limit: int | None = None) -> tuple[str, str]:
    """Return two texts that differ, in quotes, cut so that the first difference stays visible."""
    skip = 0
    if limit is not None:
        widest = max(_width(before, limit), _width(after, limit))
        alike = len([*takewhile(bool, map(eq, before, after))])
        if widest > limit and alike > limit // 3:
            skip = alike - 4
    old = _cut(before, limit, skip, in_quotes=True)
    new = _cut(after, limit, skip, in_quotes=True)
    return f'"{old}"', f'"{new}"'


def shorten(text: str, limit: int) -> str:
    """Cut the middle out of a visible text."""
    return _cut(text, limit, in_quotes=False)


def _needs_quotes(text: str) -> bool:
    if not text or text != text.strip() or "  " in text or text[0] == '"':
        return True
    for mark in _OURS:
        if mark in text:
            return True
    return _hides(text) and _hides(_JOINED.sub("", text))


def _pieces(text: str, *, in_quotes: bool) -> Iterator[Piece]:
    joined: set[int] = set()
    if not text.isascii():
        for match in _JOINED.finditer(text):
            joined.update(range(*match.span()))
    piece = ""
    columns = 0
    for place, sign in enumerate(text):
        if place in joined:
            shown, width = sign, 0
        elif is_hidden(sign):
            shown = sign.encode("unicode_escape").decode()
            width = len(shown)
        elif in_quotes and sign in _ESCAPED:
            shown, width = f"\\{sign}", 2
        else:
            shown, width = sign, sign_width(sign)
        if piece and width == 0 and len(piece) < _LONGEST_PIECE:
            piece += shown
            continue
        if piece:
            yield piece, columns
        piece, columns = shown, width
    if piece:
        yield piece, columns


def _ends(text: str, limit: int, in_quotes: bool) -> tuple[list[Piece], int]:
    """Return the pieces of a text, and how many characters of its middle these do not hold.

    A long text is cut to what can be shown of it before anything is measured. A piece that never fits takes the place
    of its middle.
    """
    most = _CHARACTERS_OF_A_COLUMN * max(limit, _NARROWEST)
    omitted = len(text) - 2 * most
    if omitted <= 0:
        return list(_pieces(text, in_quotes=in_quotes)), 0
    head = _pieces(text[:most], in_quotes=in_quotes)
    tail = _pieces(text[-most:], in_quotes=in_quotes)
    return [*head, ("", limit + most), *tail], omitted


def _width(text: str, limit: int) -> int:
    """Return the width of a text in quotes, or more than ``limit`` for a longer one."""
    if _is_verbatim(text, in_quotes=True):
        return len(text)
    pieces, _ = _ends(text, limit, in_quotes=True)
    return _columns(pieces)


def _columns(pieces: Iterable[Piece]) -> int:
    return sum(width for _, width in pieces)


def _cut(text: str, limit: int | None, skip: int = 0, *, in_quotes: bool) -> str:
    """Return a text without its first ``skip`` characters, and without its middle where it is wider than ``limit``."""
    is_whole = not skip and (limit is None or len(text) <= limit)
    if is_whole and _is_verbatim(text, in_quotes=in_quotes):
        return text
    lead = f"[…{skip}…]" if skip else ""
    text = text[skip:]
    if limit is None:
        return lead + _text(_pieces(text, in_quotes=in_quotes))
    pieces, omitted = _ends(text, limit, in_quotes)
    if _columns(pieces) + len(lead) <= limit:
        return lead + _text(pieces)
    # Without the piece that takes the place of what is omitted.
    total = len(pieces) + max(0, omitted - 1)
    space = max(_NARROWEST, limit - len(lead) - len(f"[…{total}…]"))
    for_head = space * 2 // 3
    head = _fit(pieces, for_head)
    tail = _fit(pieces[::-1], space - for_head)
    hidden = total - head - tail
    if hidden <= 0:
        return lead + _text(pieces)
    beginning = _text(pieces[:head])
    ending = _text(pieces[len(pieces) - tail :])
    return f"{lead}{beginning}[…{hidden}…]{ending}"


def _fit(pieces: list[Piece], space: int) -> int:
    widths = accumulate(width for _, width in pieces)
    return len([*takewhile(space.__ge__, widths)])


def _text(pieces: Iterable[Piece]) -> str:
    return "".join(text for text, _ in pieces)


_NUMBER: Final = re.compile(r"(.*?)([0-9]{1,15})([^0-9]*)", re.DOTALL)
"""What is before the last number of a name, that number, and what is after it."""
_SHORTEST: Final = 3
"""Names from which on a range is shorter than the list of them."""


_SEPARATOR: Final = re.compile("[,;…]|: ")
"""What a list of names, or a range, has between them."""


class NameRange(NamedTuple):
    """One name (``size`` 1, ``first`` and ``last`` equal), or all ``size`` names from ``first`` to ``last``.

    The names of a range differ only in their last number, which counts up by one with the same zero padding.
    """

    first: str
    last: str
    size: int


def name_ranges(names: Iterable[str]) -> tuple[NameRange, ...]:
    """Return names as ranges, in the order of the first name of each; a repeated name is listed again.

    >>> [tuple(each) for each in name_ranges(["EP009", "Film", "EP010", "EP011", "EP013"])]
    [('EP009', 'EP011', 3), ('Film', 'Film', 1), ('EP013', 'EP013', 1)]
    """
    places: dict[str, int] = {}
    ranges = []
    for place, name in enumerate(names):
        if places.setdefault(name, place) != place:
            ranges.append((place, NameRange(name, name, 1)))
    for run in _runs(places):
        parts = [run]
        if len(run) < _SHORTEST:
            parts = [[name] for name in run]
        for part in parts:
            place = min(map(places.__getitem__, part))
            ranges.append((place, NameRange(part[0], part[-1], len(part))))
    ranges.sort()
    return tuple(names_of_range for _, names_of_range in ranges)


def show_range(names: NameRange) -> str:
    """Return a name, or the first and the last name of a range with their number; visible.

    A name that could be taken for a list or a range is quoted.

    >>> show_range(NameRange("EP001", "EP297", 297)), show_range(NameRange("A, B", "A, B", 1))
    ('EP001…EP297 (297)', '"A, B"')
    """
    first = show_name(names.first)
    if names.size == 1:
        return first
    return f"{first}…{show_name(names.last)} ({names.size})"


def show_name(name: str) -> str:
    """Return a name as in a list of names; visible."""
    return show(name, quoted=_SEPARATOR.search(name) is not None)


def _runs(names: Iterable[str]) -> Iterator[list[str]]:
    """Yield names in runs of consecutive numbers; a name without a number is a run by itself."""
    families: dict[tuple[str, str], dict[str, str]] = {}
    for name in names:
        match = _NUMBER.fullmatch(name)
        before, digits, after = name, "", ""
        if match:
            before, digits, after = match.groups()
        families.setdefault((before, after), {})[digits] = name
    for family in families.values():
        run: list[str] = []
        expected = ""
        for digits in sorted(family, key=lambda digits: (int(digits or 0), len(digits))):
            if run and digits != expected:
                yield run
                run = []
            run.append(family[digits])
            expected = str(int(digits) + 1).zfill(len(digits)) if digits else ""
        yield run
