"""The address of a shared ledger."""

from __future__ import annotations

from typing import Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec import Struct

from msauto.errors import MsautoError

SCHEMES = ("postgresql", "postgres")
_SECRET = frozenset(
    {"password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"}
)


class PasswordSource(Struct, frozen=True):
    """Where a password is: an environment variable, a file (its path), or a service of the system keyring."""

    kind: Literal["env", "file", "keyring"]
    name: str


class LedgerUrl(Struct, frozen=True):
    """Where the shared ledger is: a URL of libpq without a password, such as ``postgresql://msauto@db/msauto``.

    Without ``password``, libpq takes it from ``PGPASSWORD``, its password file or its service file.
    """

    url: str
    password: PasswordSource | None = None

    @property
    def scheme(self) -> str:
        """The scheme of the URL, which decides what opens it."""
        return urlsplit(self.url).scheme

    @property
    def user(self) -> str:
        """The user that the URL names, or nothing."""
        parts = urlsplit(self.url)
        return unquote(parts.username or "") or dict(parse_qsl(parts.query)).get("user", "")

    def __str__(self) -> str:
        return self.url


def parse_ledger_url(text: str) -> LedgerUrl:
    """Return the address of a shared ledger; raises ``MsautoError``, a predicate that does not show the text."""
    text = text.strip()
    try:
        parts = urlsplit(text)
        secret = parts.password is not None or any(
            name.lower() in _SECRET for name, _ in parse_qsl(parts.query, True)
        )
    except ValueError as error:
        raise MsautoError("cannot be read as a URL", remedy=_REMEDY) from error
    place = text.partition(":")[2]
    if parts.scheme not in SCHEMES or not place.startswith("//"):
        raise MsautoError("must begin with postgresql://", remedy=_REMEDY)
    if secret:
        remedy = "use password_env, password_file or password_keyring, or libpq's PGPASSWORD or service file"
        raise MsautoError("must not contain a password", remedy=f"remove it, and {remedy}")
    if any(not sign.isprintable() or sign.isspace() for sign in text):
        raise MsautoError(
            "must not contain spaces or control characters", remedy="write them as %20, for example"
        )
    return LedgerUrl(f"{parts.scheme}:{place}")


def is_ledger_url(text: str) -> bool:
    """Return whether a text is meant as a URL, not as a folder."""
    return text.strip().lower().startswith(tuple(f"{scheme}:" for scheme in SCHEMES))


_REMEDY = "write it as postgresql://USER@HOST:PORT/DATABASE, or postgresql:///?service=NAME"
