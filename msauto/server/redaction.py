"""Taking our own secrets out of what others say: a server may well repeat in an error what we sent it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from html import escape
from typing import Final
from urllib.parse import quote, quote_plus

from msauto.errors import MsautoError
from msauto.model.spec import ServerSpec
from msauto.server.shapes.failure import clean, show_body

_HIDDEN: Final = "***"
_SHORTEST: Final = 3
"""A shorter text is part of many words; hiding it would only tell what it is."""


_PART: Final = 8
"""So much of a secret's beginning is hidden as well: long answers are cut before they are shown."""


class Redaction:
    """The secrets of one server, in every form in which they are sent or may be repeated."""

    def __init__(self, spec: ServerSpec) -> None:
        forms = {form for secret in _secrets(spec) for form in _forms(secret)}
        # The longest first: what is part of another must not leave the rest of it.
        self._forms = sorted((form for form in forms if len(form) >= _SHORTEST), key=len, reverse=True)

    def hide(self, text: str) -> str:
        """Return the text with ``***`` in place of each secret, also of one that was cut off in the middle."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, _HIDDEN)
        for form in self._forms:
            if len(form) > _PART and form[:_PART] in text:
                text = text.replace(_longest_part(form, text), _HIDDEN)
        return text

    def clean(self, error: MsautoError) -> None:
        """Hide the secrets in an error, in place; what caused it is cut off where it shows one."""
        error.message, error.remedy = self.hide(error.message), self.hide(error.remedy)
        error.args = tuple(self.hide(part) if isinstance(part, str) else part for part in error.args)
        if any(self.hide(str(cause)) != str(cause) for cause in _causes(error)):
            error.__cause__ = error.__context__ = None


def _longest_part(form: str, text: str) -> str:
    return next(form[:length] for length in range(len(form), _PART - 1, -1) if form[:length] in text)


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting = [error.__cause__, error.__context__]
    while waiting:
        cause = waiting.pop()
        if cause is not None and id(cause) not in seen:
            seen.add(id(cause))
            yield cause
            waiting += [cause.__cause__, cause.__context__]


def _secrets(spec: ServerSpec) -> Iterator[str]:
    auth, proxy = spec.auth, spec.proxy
    held = [auth.password, auth.bearer, spec.tls.key_password, *(value for _, value in auth.headers)]
    yield from (secret.reveal() for secret in held if secret is not None)
    if auth.username is not None and auth.password is not None:
        yield _pair(auth.username, auth.password.reveal())
    if proxy is not None and proxy.password is not None:
        yield proxy.password.reveal()
        yield _pair(proxy.username or "", proxy.password.reveal())


def _pair(username: str, password: str) -> str:
    return base64.b64encode(f"{username}:{password}".encode()).decode()


def _forms(secret: str) -> Iterator[str]:
    """Yield a secret as it is, and as messages may have coded, stripped or squeezed it."""
    plain = {secret, secret.strip(), " ".join(secret.split()), clean(secret), show_body(secret.encode())}
    for text in plain:
        yield text
        yield repr(text)[1:-1]
        yield json.dumps(text)[1:-1]
        yield from (escape(text), escape(text, quote=False), quote(text), quote(text, safe=""), quote_plus(text))
        yield text.encode("utf-8", "surrogatepass").decode("latin-1")
