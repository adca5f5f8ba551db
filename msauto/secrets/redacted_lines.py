"""Redaction of the lines of a text that cannot be parsed (invalid YAML or TOML).

When in doubt, a line is redacted: a value may continue on the next lines, whatever they look like.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msauto.secrets.redaction import HIDDEN
from msauto.secrets.secret_names import SECRET_NAME, USER_IN_URL

_KEY = re.compile(rf"(?i){SECRET_NAME}[\"']?\s*[:=]\s*|^\s*\?\s.*{SECRET_NAME}[\"']?\s*$")
_TAGGED = re.compile(r"(?:^|[\s\[{,:-])!(?:!|<!?)?(?>secret|[A-Za-z]\S*)\s*")
"""A tag, correctly spelled or not, and the spaces after it."""
_NEXT = re.compile(r"\s*(?:#|-(?:\s|$)|[^\s#-][^#]*?:(?:\s|$))")
"""A line that starts something else; any other line counts as a badly indented part of the value above it."""
_BLOCK_KEY = re.compile(r"[\s?-]*[\"']?[\w.-]*")
_QUOTED = {'"': re.compile(r'(?:[^"\\]|\\.)*"'), "'": re.compile(r"(?:[^']|'')*'(?!')")}


def redact_lines(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the lines with ``***`` in place of each secret: the value of a secret name, a tagged one, one in a URL."""
    redactor = _LineRedactor()
    return tuple(map(redactor.redact, lines))


class _LineRedactor:
    """Goes through the lines, and knows whether the last value may continue."""

    def __init__(self) -> None:
        self._quote = ""  # the quote that ends an open text
        self._column = -1  # of the key whose value may continue in lines that are indented further; -1: none
        self._items = False  # the value may be a list, whose dashes may be in the column of the key

    def redact(self, line: str) -> str:
        if not self._continues(line):
            return USER_IN_URL.sub(HIDDEN, self._before_secret(line))
        text = line.lstrip()
        return line[: len(line) - len(text)] + HIDDEN if text else line

    def _continues(self, line: str) -> bool:
        """Return whether a line belongs to the secret above it."""
        if self._quote:
            if _QUOTED[self._quote].match(line):
                self._quote = ""
            return True
        if self._column < 0:
            return False
        indent = _width(line, len(line) - len(line.lstrip()))
        item = self._items and indent >= self._column and line.lstrip().startswith("-")
        return item or indent > self._column or _NEXT.match(line) is None

    def _before_secret(self, line: str) -> str:
        """Return a line up to the first secret that starts in it."""
        self._column = -1
        found = min(filter(None, (_KEY.search(line), _TAGGED.search(line))), key=re.Match.start, default=None)
        if found is None:
            return line
        value = line[found.end() :]
        starts_line = found.re is _KEY and _BLOCK_KEY.fullmatch(line[: found.start()]) is not None
        self._column = _width(line, len(line) - len(line.lstrip(" \t-?" if starts_line else None)))
        self._items = not value.strip() or value.lstrip().startswith("#")
        self._quote = _open_quote(value)
        return line[: found.end()] + (HIDDEN if value.strip() else value)


def _width(line: str, length: int) -> int:
    return len(line[:length].expandtabs())


def _open_quote(value: str) -> str:
    """Return the quote that a value starts with and does not close."""
    text = re.sub(r"^(?:[&!]\S*\s+)*", "", value)
    quote = text[:1]
    return quote if quote in _QUOTED and not _QUOTED[quote].match(text, 1) else ""
