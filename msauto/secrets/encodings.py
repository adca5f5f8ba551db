"""The forms in which secrets may stand in a text, and finding them: thousands cost little more than a few."""

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
"""A shorter text is part of many words: hiding it would only tell what it is, so it cannot be a secret."""

_FEW: Final = 200
"""So many forms are looked for one by one; of more, each place of a text is looked up among their beginnings."""
_LOSSY: Final = "surrogatepass"
_SIGN = re.compile(r"%[0-9A-F]{2}")


def can_hide(text: str) -> bool:
    """Tell whether a text is long enough to be hidden."""
    return len(text.strip()) >= SHORTEST


def coded(text: str) -> Iterator[str]:
    """Yield a text as it is, and as messages, requests and documents may have coded it."""
    yield text
    yield repr(text)[1:-1]
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield escape(text)
    yield escape(text, quote=False)
    yield escape(text).replace("&#x27;", "&apos;")
    yield escape(text).replace("&#x27;", "&#39;").replace("&quot;", "&#34;")
    for percent in (quote(text, errors=_LOSSY), quote(text, safe="", errors=_LOSSY), quote_plus(text, errors=_LOSSY)):
        yield from (percent, percent.replace("%0A", "%0a"), _SIGN.sub(lambda found: found[0].lower(), percent))
    data = text.encode("utf-8", _LOSSY)
    yield data.decode("latin-1")
    for code in (base64.b64encode(data), base64.urlsafe_b64encode(data)):
        yield code.decode("ascii").rstrip("=")


def sourced(secret: str) -> Iterator[str]:
    """Yield a secret as others may say it: stripped, squeezed, in another normal form; of several lines also each."""
    for text in dict.fromkeys((secret, normalize("NFC", secret), normalize("NFD", secret))):
        yield from (text, text.strip(), " ".join(text.split()), text.replace("\r\n", "\n"))
        yield from (line.strip() for line in text.splitlines())


def longest_first(form: str) -> tuple[int, str]:
    """Order forms so that what is part of another does not leave the rest of it."""
    return -len(form), form


class SecretEncodings:
    """The forms of some secrets; a frozen value, to which :meth:`plus` another one is added without coding anew."""

    __slots__ = ("_begin", "all")

    def __init__(self, forms: frozenset[str]) -> None:
        self.all = forms
        self._begin: dict[str, dict[int, set[str]]] = {}
        for form in forms if len(forms) > _FEW else ():
            self._begin.setdefault(form[:SHORTEST], {}).setdefault(len(form), set()).add(form)

    @classmethod
    def of(cls, secrets: Iterable[str]) -> SecretEncodings:
        """Return the forms of secrets."""
        each = (form for secret in secrets for text in dict.fromkeys(sourced(secret)) for form in coded(text))
        return cls(frozenset(filter(can_hide, each)))

    def plus(self, more: SecretEncodings) -> SecretEncodings:
        """Return the forms of both."""
        return SecretEncodings(self.all | more.all)

    def present(self, text: str) -> set[str]:
        """Return the forms that stand in a text."""
        if not self._begin:
            return {form for form in self.all if form in text}
        found: set[str] = set()
        for start in range(len(text) - SHORTEST + 1):
            for length, forms in self._begin.get(text[start : start + SHORTEST], {}).items():
                here = text[start : start + length]
                if here in forms:
                    found.add(here)
        return found


def grown(parts: tuple[SecretEncodings, ...], more: SecretEncodings) -> tuple[SecretEncodings, ...]:
    """Return parts and one more; those of like size become one, so that there are few, and each form moves seldom."""
    while parts and len(parts[-1].all) < 2 * len(more.all):
        *rest, last = parts
        parts, more = tuple(rest), last.plus(more)
    return (*parts, more)
