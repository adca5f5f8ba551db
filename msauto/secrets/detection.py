"""Detection of secrets in encodings that :mod:`.encodings` does not list: decode, normalize, then search."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import unescape
from typing import Final
from unicodedata import normalize
from urllib.parse import unquote

SHORTEST: Final = 8
"""Shorter secrets are not searched for: without case and spaces, they are part of many words."""

_ESCAPED = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]{1,6})\}|U([0-9A-Fa-f]{8}))")
_INVISIBLE = re.compile(r"[\s\\\u00ad\u200b-\u200d\u2060\ufeff]+")


def normalized(secrets: Iterable[str]) -> frozenset[str]:
    """Return the secrets as :func:`is_readable` expects them."""
    return frozenset(text for text in map(_normalized, secrets) if len(text) >= SHORTEST)


def is_readable(text: str, secrets: frozenset[str]) -> bool:
    """Return whether a text contains one of the :func:`normalized` secrets, in any case or common encoding."""
    if not secrets:
        return False
    views = frozenset(_decoded_views(text))
    return any(secret in view for secret in secrets for view in views)


def _decoded_views(text: str) -> Iterable[str]:
    plain = _ESCAPED.sub(_character, unescape(unescape(text)))
    twice = unquote(unquote(plain.replace("+", " ")))
    yield from map(_normalized, (text, plain, unquote(plain), twice, unquote(plain, encoding="latin-1")))


def _character(escape: re.Match[str]) -> str:
    number = int(next(filter(None, escape.groups())), 16)
    return chr(number) if number <= 0x10FFFF else escape[0]


def _normalized(text: str) -> str:
    return _INVISIBLE.sub("", normalize("NFKC", text).casefold())
