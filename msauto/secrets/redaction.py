"""The secret texts of a run, and their redaction in all that is shown or kept.

A secret is found as it is, in the encodings of messages, requests and documents, and by its beginning where a message
was cut off. A message in which it is readable in any other way is not shown at all.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from html import escape, unescape
from typing import Final
from urllib.parse import quote, quote_plus, unquote

from msauto.errors import InputError, MsautoError, Problem, ServerError
from msauto.primitives.normal_form import normal_form

HIDDEN: Final = "***"
DETECTED: Final = f"{HIDDEN} (the message repeats a secret in another encoding)"
"""Replaces a message in which a secret is readable, but in none of the known encodings."""

SHORTEST: Final = 4
"""A shorter text cannot be a secret: it is part of many words, so redacting it would reveal it."""
_SHORTEST_PART: Final = 8
"""From this length, the beginning of a secret is redacted as well, and case and spaces do not matter."""
_FEW: Final = 100

_LOSSY: Final = "surrogatepass"
_PERCENT = re.compile(r"%[0-9A-F]{2}")
_ESCAPED = re.compile(
    r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]{1,6})\}|U([0-9A-Fa-f]{8}))"
)
_INVISIBLE = re.compile(r"[\s\\\u00ad\u200b-\u200d\u2060\ufeff]+")


def can_redact(text: str) -> bool:
    """Return whether a text is long enough to be redacted."""
    return len(text.strip()) >= SHORTEST


class Secrets:
    """The secret texts of a run, which never show in its ``repr``. Templates add more of them while they are used."""

    def __init__(self, texts: Iterable[str] = (), *, shortest: int = SHORTEST) -> None:
        self._shortest = shortest
        self.texts: set[str] = set()
        """The texts themselves: to compare with, never to show."""
        self._forms: dict[str, set[str]] = {}  # by their first characters
        self._readable: set[str] = set()  # without case and spaces
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        """Add a secret text, unless it is too short to be redacted."""
        if text in self.texts or len(text.strip()) < self._shortest:
            return
        self.texts.add(str(text))
        for form in encoded_forms(text):
            if len(form.strip()) >= self._shortest:
                self._forms.setdefault(form[: self._shortest], set()).add(form)
        readable = _normalized(text)
        if len(readable) >= _SHORTEST_PART:
            self._readable.add(readable)

    def __repr__(self) -> str:
        return f"Secrets({HIDDEN})" if self.texts else "Secrets()"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secrets) and other.texts == self.texts

    __hash__ = None  # type: ignore[assignment]

    def occurs_in(self, text: str) -> bool:
        """Return whether a text contains a secret in any encoding."""
        return bool(self._spans(text))

    def redact(self, text: str) -> str:
        """Return the text with ``***`` in place of each secret."""
        return _without(text, self._spans(text))

    def mask(self, text: str) -> str:
        """Return ``***`` for a text that contains a secret."""
        return HIDDEN if self.occurs_in(text) else text

    def redact_message(self, text: str) -> str:
        """Return a message with ``***`` in place of each secret, even if the secret is truncated."""
        text = _without(text, self._spans(text, cut=True))
        if self._readable and text:
            for view in frozenset(_decoded(text)):
                if any(map(view.__contains__, self._readable)):
                    return DETECTED
        return text

    def redact_path(self, path: str) -> str:
        """Return a request's path without secrets; if decoding it still reveals one, without its query."""
        redacted = self.redact(path)
        decoded = unquote(unquote(redacted.replace("+", " ")))
        if self._spans(decoded):
            return f"{redacted.partition('?')[0]}?{HIDDEN}"
        return redacted

    def redact_error(self, error: MsautoError) -> None:
        """Redact an error in place; drop its cause if that contains a secret."""
        error.message = self.redact_message(error.message)
        error.remedy = self.redact_message(error.remedy)
        args = []
        for part in error.args:
            if isinstance(part, str):
                part = self.redact_message(part)
            args.append(part)
        error.args = tuple(args)
        if isinstance(error, InputError):
            error.problems = tuple(map(self.redact_problem, error.problems))
        if isinstance(error, ServerError):
            error.request = self.redact_path(error.request)
        if self._occurs_in_any(_causes(error)):
            error.__cause__ = error.__context__ = None

    def redact_problem(self, problem: Problem) -> Problem:
        """Return a problem whose texts and excerpt are redacted."""
        return replace(
            problem,
            message=self.redact_message(problem.message),
            remedy=self.redact_message(problem.remedy),
            excerpt=self.redact_message(problem.excerpt),
        )

    @contextmanager
    def redacted_errors(self) -> Iterator[None]:
        """Redact each error that is raised inside."""
        try:
            yield
        except MsautoError as error:
            if self.texts:
                self.redact_error(error)
            raise
        except Exception as error:
            if self.texts and self._occurs_in_any((error, *_causes(error))):
                message = (
                    f"msauto itself failed: {type(error).__name__}; its message contains a secret"
                )
                remedy = "this is a bug in msauto: report it without the secret"
                raise MsautoError(message, remedy=remedy) from None
            raise

    def _occurs_in_any(self, errors: Iterable[BaseException]) -> bool:
        return any(self.redact_message(str(error)) != str(error) for error in errors)

    def _spans(self, text: str, *, cut: bool = False) -> list[tuple[int, int]]:
        """Return where secrets are, in order and apart; with ``cut``, also the beginnings of secrets."""
        spans: list[tuple[int, int]] = []
        if len(self._forms) < _FEW and not any(map(text.__contains__, self._forms)):
            return spans
        for start in range(len(text) - self._shortest + 1):
            end = start
            forms = self._forms.get(text[start : start + self._shortest])
            if forms:
                end = max(end, start + _longest(text, start, forms, cut=cut))
            if spans and start < spans[-1][1]:
                begin, earlier_end = spans[-1]
                spans[-1] = begin, max(end, earlier_end)
            elif end > start:
                spans.append((start, end))
        return spans


def _longest(text: str, start: int, forms: Iterable[str], *, cut: bool) -> int:
    """Return the length of the longest form at a place; with ``cut``, also of the beginning of one."""
    longest = 0
    for form in forms:
        needed = min(_SHORTEST_PART, len(form)) if cut else len(form)
        alike = _signs_alike(text, start, form)
        if alike >= needed:
            longest = max(longest, alike)
    return longest


def _signs_alike(text: str, start: int, form: str) -> int:
    """Return how many signs of a form a text has from a place on."""
    for number, sign in enumerate(form):
        if not text.startswith(sign, start + number):
            return number
    return len(form)


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    shown: list[str] = []
    end_before = 0
    for start, end in spans:
        shown += (text[end_before:start], HIDDEN)
        end_before = end
    return "".join((*shown, text[end_before:]))


def encoded_forms(secret: str) -> Iterator[str]:
    """Yield a secret as a server or a message may repeat it: stripped, by line, in another normal form or encoding."""
    shapes: dict[str, None] = {}
    for text in (secret, normal_form(secret), normal_form(secret, "NFD")):
        joined = " ".join(text.split())
        for shape in (text, joined, text.replace("\r\n", "\n"), *text.splitlines()):
            shapes[shape] = None
            shapes[shape.strip()] = None
    for shape in shapes:
        yield from _encodings(shape)


def _encodings(text: str) -> Iterator[str]:
    yield text
    yield repr(text)[1:-1]
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    html = escape(text)
    yield html
    yield escape(text, quote=False)
    yield html.replace("&#x27;", "&apos;")
    yield html.replace("&#x27;", "&#39;").replace("&quot;", "&#34;")
    path = quote(text, errors=_LOSSY)
    part = quote(text, safe="", errors=_LOSSY)
    for quoted in (path, part, quote_plus(text, errors=_LOSSY)):
        yield quoted
        yield quoted.replace("%0A", "%0a")
        yield _PERCENT.sub(lambda match: match[0].lower(), quoted)
    data = text.encode("utf-8", _LOSSY)
    yield data.decode("latin-1")
    for code in (base64.b64encode(data), base64.urlsafe_b64encode(data)):
        yield code.decode("ascii").rstrip("=")


def _decoded(text: str) -> Iterator[str]:
    """Yield what a reader could make of a text, without case and spaces."""
    plain = _ESCAPED.sub(_character, unescape(unescape(text)))
    twice = unquote(unquote(plain.replace("+", " ")))
    yield from map(
        _normalized, (text, plain, unquote(plain), twice, unquote(plain, encoding="latin-1"))
    )


def _character(escaped: re.Match[str]) -> str:
    number = int(next(filter(None, escaped.groups())), 16)
    return chr(number) if number <= 0x10FFFF else escaped[0]


def _normalized(text: str) -> str:
    return _INVISIBLE.sub("", normal_form(text, "NFKC").casefold())


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the causes of an error, each once."""
    seen: set[int] = set()
    waiting = [error.__cause__, error.__context__]
    while waiting:
        cause = waiting.pop()
        if cause is not None and id(cause) not in seen:
            seen.add(id(cause))
            yield cause
            waiting += [cause.__cause__, cause.__context__]


# Names that hold secrets, and lines that cannot be parsed ---------------------------------------------------------

SECRET_WORDS: Final = (
    *("password", "passwd", "pwd", "passphrase", "pass", "secret", "token", "bearer", "credential"),
    *("authorization", "auth", "api_key", "access_key", "secret_key", "private_key"),
)
"""The ends of such names, in any case; ``_`` also stands for ``-`` or nothing (``apiKey``)."""

_WHOLE: Final = frozenset({"pass", "auth", "pwd"})
"""Words that other words end with (``bypass``): no letter may precede them."""


def _pattern(word: str) -> str:
    before = r"(?<![a-z])" if word in _WHOLE else ""
    return before + word.replace("_", "[_-]?")


SECRET_NAME: Final = rf"(?:{'|'.join(map(_pattern, SECRET_WORDS))})s?(?:[_-]?\d+)?"
"""A regular expression for the end of such a name, for searches that ignore case."""

_NAME = re.compile(rf"(?is).*{SECRET_NAME}")
USER_IN_URL: Final = re.compile(r"(?<=://)[^/@\s:]*+:[^/@\s]*+(?=@)")
"""User and password in a URL."""


def is_secret_name(name: str) -> bool:
    """Return whether a variable or key of this name holds a secret.

    >>> is_secret_name("studio_api_key"), is_secret_name("password_file"), is_secret_name("bypass")
    (True, False, False)
    """
    return _NAME.fullmatch(name) is not None


# These compile when the first file is wrong.
_KEY = rf"(?i){SECRET_NAME}[\"']?\s*[:=]\s*|^\s*\?\s.*{SECRET_NAME}[\"']?\s*$"
_TAGGED = r"(?:^|[\s\[{,:-])!(?:!|<!?)?(?>secret|[A-Za-z]\S*)\s*"
"""A tag, correctly spelled or not, and the spaces after it."""
_NEXT = r"\s*(?:#|-(?:\s|$)|[^\s#-][^#]*?:(?:\s|$))"
"""A line that starts something else; any other line counts as a badly indented part of the value above it."""
_BLOCK_KEY = r"[\s?-]*+[\"']?[\w.-]*+"
_QUOTED = {'"': r'(?:[^"\\]|\\.)*"', "'": r"(?:[^']|'')*'(?!')"}


def redact_lines(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the lines of a text that cannot be parsed (YAML or TOML) with ``***`` in place of each secret.

    Secrets are the value of a secret name, a tagged one, one in a URL. When in doubt, a line is redacted: a value may
    continue on the next lines, whatever they look like.
    """
    value = _OpenValue()
    shown = []
    for line in lines:
        if value.continues_in(line):
            text = line.lstrip()
            if text:
                line = line[: len(line) - len(text)] + HIDDEN
            shown.append(line)
            continue
        value = _OpenValue()
        matches = filter(None, (re.search(_KEY, line), re.search(_TAGGED, line)))
        match = min(matches, key=re.Match.start, default=None)
        if match is not None:
            value = _value_after(match)
            if line[match.end() :].strip():
                line = line[: match.end()] + HIDDEN
        shown.append(USER_IN_URL.sub(HIDDEN, line))
    return tuple(shown)


@dataclass(slots=True)
class _OpenValue:
    """A secret value that may continue on the next lines.

    ``quote`` ends it if it is an open text. ``column`` is that of its key, below which lines are indented further; -1
    without one. ``is_listed``: it may be a list, whose dashes may be in the column of the key.
    """

    quote: str = ""
    column: int = -1
    is_listed: bool = False

    def continues_in(self, line: str) -> bool:
        """Return whether a line belongs to the value; the quotation mark may end it there."""
        if self.quote:
            if re.match(_QUOTED[self.quote], line):
                self.quote = ""
            return True
        if self.column < 0:
            return False
        text = line.lstrip()
        indent = _width(line, len(line) - len(text))
        is_item = self.is_listed and indent >= self.column and text.startswith("-")
        return is_item or indent > self.column or re.match(_NEXT, line) is None


def _value_after(match: re.Match[str]) -> _OpenValue:
    """Return the value after a secret key, or after a tag."""
    line = match.string
    starts_line = re.fullmatch(_BLOCK_KEY, line[: match.start()]) is not None
    before_key = None
    if starts_line and match.re.pattern == _KEY:
        before_key = " \t-?"
    column = _width(line, len(line) - len(line.lstrip(before_key)))
    value = line[match.end() :]
    is_listed = value.strip()[:1] in {"", "#"}
    begun = re.sub(r"^(?:[&!]\S*\s+)*", "", value)
    quote = begun[:1]
    if quote not in _QUOTED or re.match(_QUOTED[quote], begun[1:]):
        quote = ""
    return _OpenValue(quote, column, is_listed)


def _width(line: str, length: int) -> int:
    return len(line[:length].expandtabs())
