"""The secret texts of a run, and their redaction in messages, errors and request paths.

:class:`SecretsFound` collects them while templates are evaluated. :class:`Secrets` is an immutable set of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Final
from urllib.parse import unquote

from msauto.errors import InputError, MsautoError, Problem, ServerError
from msauto.secrets.detection import is_readable, normalized
from msauto.secrets.encodings import SecretEncodings, can_redact, longest_first, merged
from msauto.secrets.secret_sources import SecretSources

HIDDEN: Final = "***"
DETECTED: Final = f"{HIDDEN} (the message repeats a secret in another encoding)"
"""Replaces a message in which a secret is readable, but in none of the known encodings."""

TOKEN_PATTERN: Final = re.compile(r"\*\*\*\{[0-9a-f]{32}\}")
"""What the ledger keeps in place of a secret, so that it can recognize the same one again."""

SHORTEST_BEGINNING: Final = 8
"""The beginning of a secret is redacted from this length: long messages are cut off before they are shown."""


class Secrets:
    """Secret texts, which never show in its ``repr``."""

    def __init__(
        self,
        texts: Iterable[str] = (),
        known: Secrets | None = None,
        sources: SecretSources | None = None,
        *,
        partly: bool = False,
    ) -> None:
        """``known``: secrets that are among ``texts``, and whose encodings are reused.

        ``partly``: only the secret itself is hidden in a text that contains it, as the rest comes from a plan file.
        """
        self.partly = partly
        self.sources = sources or SecretSources()
        """Where the texts come from, as far as it is known."""
        self.texts = frozenset(filter(can_redact, texts))
        """The texts themselves: to compare with, never to show."""
        self.parts: tuple[SecretEncodings, ...] = known.parts if known is not None else ()
        new = self.texts - known.texts if known is not None else self.texts
        if new:
            self.parts = merged(self.parts, SecretEncodings.of(new))

    def __bool__(self) -> bool:
        return bool(self.texts)

    def __repr__(self) -> str:
        return f"Secrets({HIDDEN})" if self.texts else "Secrets()"

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Secrets) and other.texts == self.texts)

    def __hash__(self) -> int:
        return hash(self.texts)

    def occurs_in(self, text: str) -> bool:
        """Return whether a text contains a secret in any encoding, or a token of the ledger."""
        return bool(self._present(text)) or TOKEN_PATTERN.search(text) is not None

    def redact(self, text: str) -> str:
        """Return the text with ``***`` in place of each secret and each token."""
        return self.redact_except_tokens(TOKEN_PATTERN.sub(HIDDEN, text))

    def redact_except_tokens(self, text: str) -> str:
        """Return the text with ``***`` in place of each secret."""
        for form in self._present(text):
            text = text.replace(form, HIDDEN)
        return text

    def mask(self, text: str) -> str:
        """Return ``***`` for a text that contains a secret; with ``partly``, the text without it."""
        return self.redact(text) if self.partly else HIDDEN if self.occurs_in(text) else text

    def present_as_is(self, text: str) -> Sequence[str]:
        """Return the secrets that a text contains unencoded, the longest first."""
        return [form for form in self._present(text) if form in self.texts]

    def _present(self, text: str) -> Sequence[str]:
        """Return the encoded secrets that occur in a text, the longest first."""
        return sorted({form for part in self.parts for form in part.present(text)}, key=longest_first)

    @cached_property
    def _all_forms(self) -> tuple[str, ...]:
        return tuple(sorted(frozenset().union(*(part.all for part in self.parts)), key=longest_first))

    @cached_property
    def _normalized(self) -> frozenset[str]:
        return normalized(self.texts)

    def redact_message(self, text: str) -> str:
        """Return a message with ``***`` in place of each secret, even if the secret is truncated."""
        if not text:
            return text
        return redact_detected(redact_beginnings(self.redact(text), self._all_forms), self._normalized)

    def redact_path(self, path: str) -> str:
        """Return a request's path without secrets; if decoding it still reveals one, without its query."""
        redacted = self.redact(path)
        decoded = unquote(unquote(redacted.replace("+", " ")))
        return f"{redacted.partition('?')[0]}?{HIDDEN}" if self._present(decoded) else redacted

    def redact_error(self, error: MsautoError) -> None:
        """Redact an error in place; drop its cause if that contains a secret."""
        error.message, error.remedy = self.redact_message(error.message), self.redact_message(error.remedy)
        error.args = tuple(self.redact_message(part) if isinstance(part, str) else part for part in error.args)
        if isinstance(error, InputError):
            error.problems = tuple(map(self.redact_problem, error.problems))
        if isinstance(error, ServerError):
            error.request = self.redact_path(error.request)
        if any(self.occurs_in(str(cause)) for cause in causes(error)):
            error.__cause__ = error.__context__ = None

    def redact_problem(self, problem: Problem) -> Problem:
        """Return a problem whose texts and excerpt are redacted."""
        return replace(
            problem,
            message=self.redact_message(problem.message),
            remedy=self.redact_message(problem.remedy),
            excerpt=self.redact_message(problem.excerpt),
        )


NO_SECRETS: Final = Secrets()


class SecretsFound:
    """Collects secret texts while templates are evaluated; :meth:`known` returns those found so far."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts = set(texts)
        self._known = NO_SECRETS
        self.sources = SecretSources()
        self._grew = bool(self._texts)

    def add(self, text: str) -> None:
        """Add a secret text."""
        if text not in self._texts:
            self._texts.add(text)
            self._grew = True

    def __bool__(self) -> bool:
        return bool(self._texts)

    def __repr__(self) -> str:
        return f"SecretsFound({HIDDEN})" if self._texts else "SecretsFound()"

    def known(self) -> Secrets:
        """Return all secrets found so far."""
        if self._grew:
            self._known, self._grew = Secrets(self._texts, self._known, self.sources), False
        return self._known

    def texts(self) -> frozenset[str]:
        """Return the texts found so far: to compare with, never to show."""
        return frozenset(self._texts)

    def snapshot(self) -> SecretsFound:
        """Return a copy of what was found so far."""
        copy = SecretsFound(self._texts)
        copy.sources = self.sources.copy()
        return copy

    def since(self, before: SecretsFound) -> SecretsFound:
        """Return what was found after a snapshot."""
        found = SecretsFound(self._texts - before.texts())
        found.sources = self.sources.since(before.sources)
        return found

    def merge(self, other: SecretsFound) -> None:
        """Add what was found elsewhere."""
        for text in other.texts():
            self.add(text)
        self.sources.merge(other.sources)

    @contextmanager
    def redacted_errors(self) -> Iterator[None]:
        """Redact each error that is raised inside."""
        try:
            yield
        except MsautoError as error:
            if self:
                self.known().redact_error(error)
            raise
        except Exception as error:
            if self and any(self.known().occurs_in(str(each)) for each in (error, *causes(error))):
                message = f"msauto itself failed: {type(error).__name__}; its message contains a secret"
                raise MsautoError(message, remedy="this is a bug in msauto: report it without the secret") from None
            raise


def redact_beginnings(text: str, forms: Iterable[str]) -> str:
    """Return the text with ``***`` in place of each beginning of an encoded secret."""
    for form in forms:
        if len(form) > SHORTEST_BEGINNING and form[:SHORTEST_BEGINNING] in text:
            lengths = range(len(form), SHORTEST_BEGINNING - 1, -1)
            text = text.replace(next(form[:length] for length in lengths if form[:length] in text), HIDDEN)
    return text


def redact_detected(text: str, secrets: frozenset[str]) -> str:
    """Return a message, or :data:`DETECTED` if one of the normalized secrets is readable in it."""
    return DETECTED if is_readable(text, secrets) else text


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the causes of an error, each once."""
    seen: set[int] = set()
    waiting = [error.__cause__, error.__context__]
    while waiting:
        cause = waiting.pop()
        if cause is not None and id(cause) not in seen:
            seen.add(id(cause))
            yield cause
            waiting += [cause.__cause__, cause.__context__]
