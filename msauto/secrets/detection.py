"""Secrets in a form that nobody has foreseen: read as anybody would read them, whatever they were coded in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import unescape
from typing import Final
from unicodedata import normalize
from urllib.parse import unquote

SHORTEST: Final = 8
"""A shorter secret is not looked for in this way: without capitals and blanks it stands in many words."""

_ESCAPED = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]{1,6})\}|U([0-9A-Fa-f]{8}))")
_UNSEEN = re.compile(r"[\s\\\u00ad\u200b-\u200d\u2060\ufeff]+")


def bare(secrets: Iterable[str]) -> frozenset[str]:
    """Return secrets as :func:`shows_through` looks for them."""
    return frozenset(text for text in map(_bare, secrets) if len(text) >= SHORTEST)


def shows_through(text: str, secrets: frozenset[str]) -> bool:
    """Tell whether one of the ``bare`` secrets can be read in a text, in any normal form, case or usual coding."""
    if not secrets:
        return False
    views = frozenset(_views(text))
    return any(secret in view for secret in secrets for view in views)


def _views(text: str) -> Iterable[str]:
    plain = _ESCAPED.sub(_sign, unescape(unescape(text)))
    twice = unquote(unquote(plain.replace("+", " ")))
    yield from map(_bare, (text, plain, unquote(plain), twice, unquote(plain, encoding="latin-1")))


def _sign(found: re.Match[str]) -> str:
    number = int(next(filter(None, found.groups())), 16)
    return chr(number) if number <= 0x10FFFF else found[0]


def _bare(text: str) -> str:
    return _UNSEEN.sub("", normalize("NFKC", text).casefold())
