"""Redaction of our own secrets in answers: an error of a server may repeat what we sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msauto.errors import MsautoError
from msauto.model.server import ServerSpec
from msauto.secrets.detection import normalized
from msauto.secrets.encodings import encoded_forms
from msauto.secrets.taint import HIDDEN, causes, redact_beginnings, redact_detected
from msauto.server.connection import basic_credentials
from msauto.server.parsers.answer_classes import clean, show_body

_SHORTEST: Final = 3
"""A shorter text is part of many words; redacting it would reveal it."""


class EchoRedactor:
    """Redacts the secrets of one server, in all forms in which they are sent or may be repeated."""

    def __init__(self, spec: ServerSpec) -> None:
        secrets = tuple(_secrets(spec))
        forms = {form for secret in secrets for form in _forms(secret)}
        # The longest first, so that a form that is part of another leaves no rest of it.
        self._forms = sorted((form for form in forms if len(form) >= _SHORTEST), key=len, reverse=True)
        self._normalized = normalized(secrets)

    def hide(self, text: str) -> str:
        """Return the text with ``***`` in place of each secret, also of one that was truncated."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, HIDDEN)
        return redact_detected(redact_beginnings(text, self._forms), self._normalized)

    def clean(self, error: MsautoError) -> None:
        """Redact the secrets in an error, in place. A cause that shows one is removed."""
        error.message, error.remedy = self.hide(error.message), self.hide(error.remedy)
        error.args = tuple(self.hide(part) if isinstance(part, str) else part for part in error.args)
        if any(self.hide(str(cause)) != str(cause) for cause in causes(error)):
            error.__cause__ = error.__context__ = None


def _secrets(spec: ServerSpec) -> Iterator[str]:
    auth, proxy = spec.auth, spec.proxy
    held = [auth.password, auth.bearer, spec.tls.key_password, *(value for _, value in auth.headers)]
    yield from (secret.reveal() for secret in held if secret is not None)
    if auth.username is not None and auth.password is not None:
        yield basic_credentials(auth.username, auth.password)
    if proxy is not None and proxy.password is not None:
        yield proxy.password.reveal()
        yield basic_credentials(proxy.username or "", proxy.password)


def _forms(secret: str) -> Iterator[str]:
    """Yield a secret, and the forms in which messages may have encoded, stripped or shortened it."""
    plain = {secret, secret.strip(), " ".join(secret.split()), clean(secret), show_body(secret.encode())}
    for text in plain:
        yield from encoded_forms(text)
