"""The encoded forms in which a secret may occur in a text, and a search for thousands of them at once."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from html import escape
from typing import Final
from unicodedata import normalize
from urllib.parse import quote, quote_plus

SHORTEST: Final = 4
"""A shorter text cannot be a secret: it is part of many words, so redacting it would reveal it."""

_FEW: Final = 200
"""Up to this number, forms are searched for one by one; more of them are indexed by their first characters."""
_LOSSY: Final = "surrogatepass"
_PERCENT = re.compile(r"%[0-9A-F]{2}")


def can_redact(text: str) -> bool:
    """Return whether a text is long enough to be redacted."""
    return len(text.strip()) >= SHORTEST


def encoded_forms(text: str) -> Iterator[str]:
    """Yield a text as it is, and in the encodings of messages, requests and documents."""
    yield text
    yield repr(text)[1:-1]
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield escape(text)
    yield escape(text, quote=False)
    yield escape(text).replace("&#x27;", "&apos;")
    yield escape(text).replace("&#x27;", "&#39;").replace("&quot;", "&#34;")
    for percent in (quote(text, errors=_LOSSY), quote(text, safe="", errors=_LOSSY), quote_plus(text, errors=_LOSSY)):
        yield from (percent, percent.replace("%0A", "%0a"), _PERCENT.sub(lambda match: match[0].lower(), percent))
    data = text.encode("utf-8", _LOSSY)
    yield data.decode("latin-1")
    for code in (base64.b64encode(data), base64.urlsafe_b64encode(data)):
        yield code.decode("ascii").rstrip("=")


def _variants(secret: str) -> Iterator[str]:
    """Yield a secret as a server may repeat it: stripped, in another normal form; each line of several."""
    for text in dict.fromkeys((secret, normalize("NFC", secret), normalize("NFD", secret))):
        yield from (text, text.strip(), " ".join(text.split()), text.replace("\r\n", "\n"))
        yield from (line.strip() for line in text.splitlines())


def longest_first(form: str) -> tuple[int, str]:
    """Sort key for forms: a part of a longer form comes after it, so that the longer form is replaced whole."""
    return -len(form), form


class SecretEncodings:
    """An immutable set of encoded forms, with a fast search."""

    __slots__ = ("_by_beginning", "all")

    def __init__(self, forms: frozenset[str]) -> None:
        self.all = forms
        self._by_beginning: dict[str, dict[int, set[str]]] = {}
        for form in forms if len(forms) > _FEW else ():
            self._by_beginning.setdefault(form[:SHORTEST], {}).setdefault(len(form), set()).add(form)

    @classmethod
    def of(cls, secrets: Iterable[str]) -> SecretEncodings:
        """Return the forms of secrets."""
        forms = (
            form for secret in secrets for text in dict.fromkeys(_variants(secret)) for form in encoded_forms(text)
        )
        return cls(frozenset(filter(can_redact, forms)))

    def present(self, text: str) -> set[str]:
        """Return the forms that occur in a text."""
        if not self._by_beginning:
            return {form for form in self.all if form in text}
        found: set[str] = set()
        for start in range(len(text) - SHORTEST + 1):
            for length, forms in self._by_beginning.get(text[start : start + SHORTEST], {}).items():
                here = text[start : start + length]
                if here in forms:
                    found.add(here)
        return found


def merged(parts: tuple[SecretEncodings, ...], more: SecretEncodings) -> tuple[SecretEncodings, ...]:
    """Add a part. Parts of similar size become one, so that there are few, and each form is indexed seldom."""
    while parts and len(parts[-1].all) < 2 * len(more.all):
        more = SecretEncodings(parts[-1].all | more.all)
        parts = parts[:-1]
    return (*parts, more)
