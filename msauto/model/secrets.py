"""Texts that must not show: what a playbook marks as ``secret``, and all texts that were made with one.

:class:`SecretsFound` collects them while templates are evaluated; :class:`Secrets` is what it comes to, a value that
takes them out of other texts, in every form in which they may stand there.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from html import escape
from typing import Final
from unicodedata import normalize
from urllib.parse import quote, quote_plus, unquote

from msauto.errors import InputError, MsautoError, Problem, ServerError
from msauto.model.disguise import bare, shows_through

HIDDEN: Final = "***"
SHORTEST: Final = 4
"""A shorter text is part of many words: hiding it would only tell what it is, so it cannot be a secret."""

DISGUISED: Final = f"{HIDDEN} (what was said repeats a secret in another form)"
"""What a message becomes in which a secret can be read, but in no form that was foreseen."""

STAND_IN: Final = re.compile(r"\*\*\*\{[0-9a-f]{32}\}")
"""What the ledger keeps in place of a secret, where it must know the same one again."""

PART: Final = 8
"""So much of a secret's beginning is hidden as well: long messages are cut before they are shown."""


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


_LOSSY: Final = "surrogatepass"
_SIGN = re.compile(r"%[0-9A-F]{2}")


_FEW: Final = 200
"""So many forms are looked for one by one; of more, each place of a text is looked up among their beginnings."""


def _longest_first(form: str) -> tuple[int, str]:
    return -len(form), form


class Secrets:
    """Secret texts; none of them ever shows in the ``repr`` of this."""

    __slots__ = ("_bare", "_begin", "_forms", "_texts")

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts = frozenset(text for text in texts if can_hide(text))
        self._bare = bare(self._texts)
        forms = {form for text in self._texts for said in _said(text) for form in coded(said)}
        # The longest first: what is part of another must not leave the rest of it.
        self._forms = tuple(sorted((form for form in forms if can_hide(form)), key=_longest_first))
        self._begin: dict[str, list[str]] = {}
        for form in self._forms if len(self._forms) > _FEW else ():
            self._begin.setdefault(form[:SHORTEST], []).append(form)

    @property
    def texts(self) -> frozenset[str]:
        """The texts themselves: for comparing, never for showing."""
        return self._texts

    def __bool__(self) -> bool:
        return bool(self._texts)

    def __repr__(self) -> str:
        return f"Secrets({HIDDEN})" if self._texts else "Secrets()"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secrets) and other._texts == self._texts

    def __hash__(self) -> int:
        return hash(self._texts)

    def in_(self, text: str) -> bool:
        """Tell whether a secret stands in a text, in any form; a stand-in of the ledger counts as one."""
        return bool(self._present(text)) or STAND_IN.search(text) is not None

    def hide(self, text: str) -> str:
        """Return the text with ``***`` in place of each secret."""
        return self.hide_coded(STAND_IN.sub(HIDDEN, text))

    def hide_coded(self, text: str) -> str:
        """Return a text with ``***`` in place of each secret; stand-ins stay as they are."""
        for form in self._present(text):
            text = text.replace(form, HIDDEN)
        return text

    def _present(self, text: str) -> Sequence[str]:
        """Return the forms that stand in a text, the longest first; of very many, only those that begin somewhere."""
        if not self._begin:
            return [form for form in self._forms if form in text]
        found: set[str] = set()
        for start in range(len(text) - SHORTEST + 1):
            forms = self._begin.get(text[start : start + SHORTEST])
            found.update(form for form in forms or () if text.startswith(form, start))
        return sorted(found, key=_longest_first)

    def hide_cut(self, text: str) -> str:
        """Return a message with ``***`` in place of each secret, also of one that was cut off in the middle."""
        if not text:
            return text
        return hide_disguised(hide_parts(self.hide(text), self._forms), self._bare)

    def hide_path(self, path: str) -> str:
        """Return a request's path with ``***`` for each secret; where one is still there once decoded, without query.

        What no form has foreseen must not slip through: rather too much is hidden.
        """
        found = self.hide(path)
        decoded = unquote(unquote(found.replace("+", " ")))
        return f"{found.partition('?')[0]}?{HIDDEN}" if any(text in decoded for text in self._texts) else found

    def clean(self, error: MsautoError) -> None:
        """Take the secrets out of an error, in place; what caused it is cut off where it shows one."""
        error.message, error.remedy = self.hide_cut(error.message), self.hide_cut(error.remedy)
        error.args = tuple(self.hide_cut(part) if isinstance(part, str) else part for part in error.args)
        if isinstance(error, InputError):
            error.problems = tuple(map(self.hide_problem, error.problems))
        if isinstance(error, ServerError):
            error.request = self.hide_path(error.request)
        if any(self.in_(str(cause)) for cause in causes(error)):
            error.__cause__ = error.__context__ = None

    def hide_problem(self, problem: Problem) -> Problem:
        """Return a problem that shows no secret, nor does its excerpt."""
        return replace(
            problem,
            message=self.hide_cut(problem.message),
            remedy=self.hide_cut(problem.remedy),
            excerpt=self.hide_cut(problem.excerpt),
        )


NO_SECRETS: Final = Secrets()


class SecretsFound:
    """Collects secret texts as they come up: evaluation is late, so it is handed in and asked at the end."""

    __slots__ = ("_known", "_texts")

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts = set(texts)
        self._known: Secrets | None = None

    def add(self, text: str) -> None:
        """Note a secret text."""
        if text not in self._texts:
            self._texts.add(text)
            self._known = None

    def __bool__(self) -> bool:
        return bool(self._texts)

    def __repr__(self) -> str:
        return f"SecretsFound({HIDDEN})" if self._texts else "SecretsFound()"

    def known(self) -> Secrets:
        """Return all that came up so far."""
        if self._known is None:
            self._known = Secrets(self._texts)
        return self._known

    @contextmanager
    def kept_out_of_errors(self) -> Iterator[None]:
        """Let no error out that shows a secret."""
        try:
            yield
        except MsautoError as error:
            if self:
                self.known().clean(error)
            raise
        except Exception as error:
            if self and any(self.known().in_(str(each)) for each in (error, *causes(error))):
                message = f"msauto itself failed: {type(error).__name__}, of which a secret is part and is not shown"
                raise MsautoError(message, remedy="this is a bug of msauto: report it without the secret") from None
            raise


def hide_parts(text: str, forms: Iterable[str]) -> str:
    """Return the text with ``***`` in place of the beginnings of forms (``PART`` signs and more)."""
    for form in forms:
        if len(form) > PART and form[:PART] in text:
            longest = next(form[:length] for length in range(len(form), PART - 1, -1) if form[:length] in text)
            text = text.replace(longest, HIDDEN)
    return text


def hide_disguised(text: str, secrets: frozenset[str]) -> str:
    """Return a message, or that it is hidden: whatever a server makes of what it was sent must not slip through."""
    return DISGUISED if shows_through(text, secrets) else text


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield what an error came from, each once."""
    seen: set[int] = set()
    waiting = [error.__cause__, error.__context__]
    while waiting:
        cause = waiting.pop()
        if cause is not None and id(cause) not in seen:
            seen.add(id(cause))
            yield cause
            waiting += [cause.__cause__, cause.__context__]


def _said(secret: str) -> Iterator[str]:
    """Yield a secret as others may say it: stripped, squeezed, in another normal form; of several lines also each."""
    for text in dict.fromkeys((secret, normalize("NFC", secret), normalize("NFD", secret))):
        yield from (text, text.strip(), " ".join(text.split()), text.replace("\r\n", "\n"))
        yield from (line.strip() for line in text.splitlines())
