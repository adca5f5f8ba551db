"""A media server as an inventory declares it: address, authentication, TLS, time-outs, version, dialect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msauto.interface.dialect import Dialect

DEFAULT_PORT = 7901
"""Interface, «Limits»: the port is one of the few fixed constants."""


class Secret:
    """A text that must never be shown. Only :meth:`reveal` returns it, where it is sent."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text itself."""
        return self._text

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Time-outs in seconds: to connect, between bytes of an answer, for a listing, for a web proxy being created.

    A whole answer may take ten times as long. A download must receive 64 KiB within one time-out.
    """

    connect: float = 5.0
    read: float = 30.0
    listing: float = 300.0
    proxy: float = 3600.0


@dataclass(frozen=True, slots=True)
class Auth:
    """Credentials: at most one of basic and bearer, and any headers (interface, «Authentication»)."""

    username: str | None = None
    password: Secret | None = None
    bearer: Secret | None = None
    headers: tuple[tuple[str, Secret], ...] = ()


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS for an ``https`` server; paths of PEM files. ``verify=False`` accepts any certificate.

    ``key_password`` decrypts the key.
    """

    verify: bool = True
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    key_password: Secret | None = None


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """One media server: the ``server:`` block of a host.

    ``url``: scheme, host and port without a path; ``version``: the product version as numbers, ``None``: newest;
    ``timezone``: an IANA name for times without a time zone; ``request_line``: the limit in bytes.
    ``requests_per_second``: ``None``: unlimited. ``worker``: the resources of the Dask workers that
    may reach it, each with its amount.
    """

    name: str
    url: str
    version: tuple[int, ...] | None = None
    timezone: str | None = None
    auth: Auth = Auth()
    tls: Tls = Tls()
    timeouts: Timeouts = Timeouts()
    connections: int = 16
    requests_per_second: float | None = None
    request_line: int = 8000
    dialect: Dialect = Dialect()
    worker: Mapping[str, float] = field(default_factory=dict)
    variables: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
