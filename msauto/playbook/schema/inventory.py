"""The keys of inventories and of the ``server:`` block."""

import dataclasses
from typing import Annotated, Any, ClassVar, get_type_hints

from pydantic import ConfigDict, Field, create_model

from msauto.documents import key_rules as rule
from msauto.documents import value_types as types
from msauto.documents.strict_model import VARIABLES, DocumentModel, Model, key, need
from msauto.documents.value_types import (
    Name,
    Opt,
    Quoted,
    Read,
    Seconds,
    Value,
    between,
    invalid,
    matching,
)
from msauto.model.server import Dialect, UrlError, parse_server_url
from msauto.model.timecode import FrameRates, TimecodeError, frame_rates


def _url(value: Any) -> str:
    """Scheme, host and port; port 7901 where it has none."""
    try:
        parts = parse_server_url(value if isinstance(value, str) else "")
    except UrlError as error:
        raise invalid(str(error), "write http://host:7901") from error
    if parts.username is not None:
        raise invalid("must not contain a password", "declare it under auth: {basic: {...}}")
    return parts.url


_HOST = r"(?!\S*:0+/*\s*$)[^/?#@\s]+"
_Url = Annotated[
    str, Read(_url, type="string", pattern=rf"^\s*[Hh][Tt][Tt][Pp][Ss]?://{_HOST}/*\s*$")
]
_RequestsPerSecond = Annotated[float, between(0.1, 10_000)]
# Every server takes the least; none takes lines of megabytes.
_RequestLine = Annotated[int, between(256, 2**20)]
_Version = Annotated[
    tuple[int, ...],
    matching(
        r"^\s*[0-9]{1,6}(\.[0-9]{1,6}){0,5}\s*$",
        "{} is not a valid version",
        'write it as "2.9.87"',
        convert=lambda text: tuple(int(part) for part in text.strip().split(".")),
        to_text=types.strict_text,
    ),
]


_LONGEST_DELAY = 3600


def _dialect_fields() -> dict[str, Any]:
    hints = get_type_hints(Dialect)
    fields: dict[str, Any] = {}
    for option in dataclasses.fields(Dialect):
        kind: Any = hints[option.name]
        if kind is str:
            kind = Annotated[str, Field(min_length=1)]
        elif kind is int:
            kind = Annotated[int, between(0, _LONGEST_DELAY)]
        description = f"{option.metadata['description']}; default {option.default}"
        fields[option.name] = (Annotated[kind | None, types.TEMPLATED], key(description))
    return fields


DialectArgs = create_model(
    "DialectArgs",
    __base__=Model,
    __doc__="Server behavior that the interface does not specify.",
    **_dialect_fields(),
)


_SOURCES = ("password", "password_file", "password_keyring", "password_secret")
_BOTH = ("has both {0} and {1}", "keep one of them")


class BasicArgs(Model):
    """HTTP basic authentication."""

    rules: ClassVar = (
        rule.one_of(
            _SOURCES,
            _BOTH,
            ("has no password", f"add {', '.join(_SOURCES[:-1])} or {_SOURCES[-1]}"),
        ),
    )

    username: Value[Quoted] = need("user name")
    password: Opt[str] = key("password; take it from the environment: {{ env.NAME }}")
    password_file: Opt[Name] = key("file with the password, relative to the inventory")
    password_keyring: Opt[Name] = key("service name of the password in the system keyring")
    password_secret: Opt[Name] = key(
        "name of the password in [secrets] of the settings, where a command prints it"
    )


class AuthArgs(Model):
    """Authentication: basic or bearer, and additional headers."""

    rules: ClassVar = (
        rule.one_of(("basic", "bearer", "bearer_file", "bearer_keyring", "bearer_secret"), _BOTH),
    )

    basic: Opt[BasicArgs] = key("HTTP basic authentication")
    bearer: Opt[str] = key("bearer token")
    bearer_file: Opt[Name] = key("file with the bearer token, relative to the inventory")
    bearer_keyring: Opt[Name] = key("service name of this host's token in the system keyring")
    bearer_secret: Opt[Name] = key(
        "name of the token in [secrets] of the settings, where a command prints it"
    )
    headers: Opt[dict[str, Value[str]]] = key("additional headers")


class TlsArgs(Model):
    """TLS options of an https server; paths of PEM files are relative to the inventory."""

    verify: Opt[bool] = key("verify the server certificate; default true")
    ca: Opt[Name] = key("certificate authority to trust")
    cert: Opt[Name] = key("client certificate")
    key_password: Opt[str] = key("password of an encrypted key")
    key: Opt[Name] = key("key of the client certificate")


class TimeoutArgs(Model):
    """Timeouts in seconds: more than 0, at most a week (604800)."""

    connect: Opt[Seconds] = key("connecting; default 5")
    read: Opt[Seconds] = key("between bytes of a response; default 30")
    listing: Opt[Seconds] = key("a listing; default 300")
    proxy: Opt[Seconds] = key("a viewing copy that the server creates; default 3600")


def _frame_rates(value: Any) -> FrameRates:
    try:
        return frame_rates(value)
    except TimecodeError as error:
        raise invalid(str(error), error.remedy) from error


_RATE = {"type": ["number", "string"]}
_FrameRates = Annotated[
    FrameRates,
    Read(
        _frame_rates,
        "a rate, or a mapping to rates",
        anyOf=[_RATE, {"type": "object", "additionalProperties": _RATE}],
    ),
]
_URL = "http://host or https://host; default port 7901"


class ServerKeys(Model):
    """Keys of a media server; those of its groups and of its host are merged."""

    shorthand: ClassVar = "url"

    url: Opt[_Url] = key(_URL)
    version: Opt[_Version] = key('product version, quoted: "2.9.87"; default: the newest')
    timezone: Opt[types.TimezoneName] = key(
        "time zone of the times that the server reports without one, such as Europe/Oslo"
    )
    auth: Opt[AuthArgs] = key("authentication")
    tls: Opt[TlsArgs] = key("TLS options")
    timeouts: Opt[TimeoutArgs] = key("timeouts in seconds")
    connections: Opt[Annotated[int, between(1, 1024)]] = key(
        "maximum number of connections, 1 to 1024; default 16"
    )
    requests_per_second: Opt[_RequestsPerSecond] = key(
        "maximum rate of requests, 0.1 to 10000; default unlimited"
    )
    request_line: Opt[_RequestLine] = key(
        "maximum length of a request line in bytes, 256 to 1048576; default 8000"
    )
    frame_rate: Opt[_FrameRates] = key(
        "frames per second, where a frame_time fits several rates or none; or a mapping from each frame_time"
    )
    dialect: Opt[DialectArgs] = key("server behavior that the interface does not specify")


class ServerArgs(ServerKeys):
    """A media server, with the keys of its groups and of its host."""

    url: Value[_Url] = need(_URL)


class HostArgs(Model):
    """A host: its server, and variables."""

    model_config = ConfigDict(extra="allow")

    server: Opt[ServerKeys] = key("media server")


class GroupArgs(Model):
    """A group of hosts."""

    hosts: dict[str, HostArgs | None] | None = key("hosts with their variables")
    vars: dict[str, Any] | None = key(
        "variables of all hosts of the group", json_schema_extra=VARIABLES
    )
    children: "dict[str, GroupArgs | None] | None" = key("groups inside the group")


class InventoryArgs(DocumentModel[dict[str, GroupArgs | None]]):
    """An inventory: groups at the top level, usually only ``all``."""
