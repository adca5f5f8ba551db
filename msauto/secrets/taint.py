"""Texts that must not show: what a playbook marks as ``secret``, and all texts that were made with one.

:class:`SecretsFound` collects them while templates are evaluated; :class:`Secrets` is what it comes to, a value that
takes them out of other texts, in every form in which they may stand there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final
from urllib.parse import unquote

from msauto.errors import InputError, MsautoError, Problem, ServerError
from msauto.secrets.detection import bare, shows_through
from msauto.secrets.encodings import SecretEncodings, can_hide, grown, longest_first

HIDDEN: Final = "***"
DISGUISED: Final = f"{HIDDEN} (what was said repeats a secret in another form)"
"""What a message becomes in which a secret can be read, but in no form that was foreseen."""

STAND_IN: Final = re.compile(r"\*\*\*\{[0-9a-f]{32}\}")
"""What the ledger keeps in place of a secret, where it must know the same one again."""

PART: Final = 8
"""So much of a secret's beginning is hidden as well: long messages are cut before they are shown."""


class Secrets:
    """Secret texts; none of them ever shows in the ``repr`` of this."""

    __slots__ = ("_messages", "_parts", "_texts")

    def __init__(self, texts: Iterable[str] = (), known: Secrets | None = None) -> None:
        """``known``: secrets that are among these, whose forms need not be made again."""
        self._texts = frozenset(filter(can_hide, texts))
        self._parts: tuple[SecretEncodings, ...] = () if known is None else known.parts
        new = self._texts if known is None else self._texts - known.texts
        if new:
            self._parts = grown(self._parts, SecretEncodings.of(new))
        self._messages: tuple[tuple[str, ...], frozenset[str]] | None = None

    @property
    def texts(self) -> frozenset[str]:
        """The texts themselves: for comparing, never for showing."""
        return self._texts

    @property
    def parts(self) -> tuple[SecretEncodings, ...]:
        """The forms of all of them, in few parts: who knows more secrets goes on from there."""
        return self._parts

    def __bool__(self) -> bool:
        return bool(self._texts)

    def __repr__(self) -> str:
        return f"Secrets({HIDDEN})" if self._texts else "Secrets()"

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Secrets) and other._texts == self._texts)

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

    def standing_in(self, text: str) -> Sequence[str]:
        """Return the secrets that stand in a text as they are, the longest first."""
        return [form for form in self._present(text) if form in self._texts]

    def _present(self, text: str) -> Sequence[str]:
        """Return the forms that stand in a text, the longest first: a part of another must not leave its rest."""
        found = {form for part in self._parts for form in part.present(text)}
        return sorted(found, key=longest_first) if found else ()

    def _for_messages(self) -> tuple[tuple[str, ...], frozenset[str]]:
        """Return all forms, the longest first, and the secrets as they are looked for in disguise."""
        if self._messages is None:
            forms = frozenset().union(*(part.all for part in self._parts))
            self._messages = (tuple(sorted(forms, key=longest_first)), bare(self._texts))
        return self._messages

    def hide_cut(self, text: str) -> str:
        """Return a message with ``***`` in place of each secret, also of one that was cut off in the middle."""
        if not text:
            return text
        forms, bare_texts = self._for_messages()
        return hide_disguised(hide_parts(self.hide(text), forms), bare_texts)

    def hide_path(self, path: str) -> str:
        """Return a request's path with ``***`` for each secret; where one is still there once decoded, without query.

        What no form has foreseen must not slip through: rather too much is hidden.
        """
        found = self.hide(path)
        decoded = unquote(unquote(found.replace("+", " ")))
        return f"{found.partition('?')[0]}?{HIDDEN}" if self._present(decoded) else found

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

    __slots__ = ("_grew", "_known", "_texts")

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts = set(texts)
        self._known = NO_SECRETS
        self._grew = bool(self._texts)

    def add(self, text: str) -> None:
        """Note a secret text."""
        if text not in self._texts:
            self._texts.add(text)
            self._grew = True

    def __bool__(self) -> bool:
        return bool(self._texts)

    def __repr__(self) -> str:
        return f"SecretsFound({HIDDEN})" if self._texts else "SecretsFound()"

    def known(self) -> Secrets:
        """Return all that came up so far."""
        if self._grew:
            self._known, self._grew = Secrets(self._texts, self._known), False
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
