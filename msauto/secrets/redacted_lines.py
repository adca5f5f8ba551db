"""The lines of a text whose structure is not known (it is no YAML, no TOML) without what looks like a secret.

What is in doubt is hidden: a value may go on in the lines below, whatever they look like.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msauto.secrets.names import SECRET_NAME, USER_IN_URL
from msauto.secrets.taint import HIDDEN

_KEY = re.compile(rf"(?i){SECRET_NAME}[\"']?\s*[:=]\s*|^\s*\?\s.*{SECRET_NAME}[\"']?\s*$")
_TAGGED = re.compile(r"(?:^|[\s\[{,:-])!(?:!|<!?)?(?>secret|[A-Za-z]\S*)\s*")
"""A tag, rightly spelt or not, and the blanks behind it."""
_NEXT = re.compile(r"\s*(?:#|-(?:\s|$)|[^\s#-][^#]*?:(?:\s|$))")
"""A line that begins something else: any other is taken for a part of the value above that is ill indented."""
_BLOCK_KEY = re.compile(r"[\s?-]*[\"']?[\w.-]*")
_QUOTED = {'"': re.compile(r'(?:[^"\\]|\\.)*"'), "'": re.compile(r"(?:[^']|'')*'(?!')")}


def redact_lines(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the lines with ``***`` in place of each secret: of a secret name, tagged, or in a URL."""
    return tuple(_RedactedLine().all(lines))


class _RedactedLine:
    """Goes through the lines, and knows whether the last value may go on."""

    def __init__(self) -> None:
        self._quote = ""  # what closes a text that is still open
        self._column = -1  # of the key whose value may go on in lines that stand further right; -1: none
        self._items = False  # the value may be a list, whose dashes may stand below the key

    def all(self, lines: Sequence[str]) -> Iterator[str]:
        for line in lines:
            yield self._hidden(line) if self._goes_on(line) else USER_IN_URL.sub(HIDDEN, self._begun(line))

    def _hidden(self, line: str) -> str:
        text = line.lstrip()
        return line[: len(line) - len(text)] + HIDDEN if text else line

    def _goes_on(self, line: str) -> bool:
        """Tell whether a line belongs to the secret above it."""
        if self._quote:
            if _QUOTED[self._quote].match(line):
                self._quote = ""
            return True
        if self._column < 0:
            return False
        indent = _width(line, len(line) - len(line.lstrip()))
        item = self._items and indent >= self._column and line.lstrip().startswith("-")
        return item or indent > self._column or _NEXT.match(line) is None

    def _begun(self, line: str) -> str:
        """Return a line up to the first secret that begins in it."""
        self._column = -1
        found = min(filter(None, (_KEY.search(line), _TAGGED.search(line))), key=re.Match.start, default=None)
        if found is None:
            return line
        value = line[found.end() :]
        begins = found.re is _KEY and _BLOCK_KEY.fullmatch(line[: found.start()]) is not None
        self._column = _width(line, _key_column(line) if begins else len(line) - len(line.lstrip()))
        self._items = not value.strip() or value.lstrip().startswith("#")
        self._quote = _open_quote(value)
        return line[: found.end()] + (HIDDEN if value.strip() else value)


def _key_column(line: str) -> int:
    """Return where the first key of a line stands, behind the dashes of lists."""
    return len(line) - len(line.lstrip(" \t-?"))


def _width(line: str, length: int) -> int:
    return len(line[:length].expandtabs())


def _open_quote(value: str) -> str:
    """Return the quote that a value begins with and does not close."""
    text = re.sub(r"^(?:[&!]\S*\s+)*", "", value)
    quote = text[:1]
    return quote if quote in _QUOTED and not _QUOTED[quote].match(text, 1) else ""
