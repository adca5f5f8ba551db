"""The keys of inventories and of the ``server:`` block."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, get_type_hints
from zoneinfo import ZoneInfo

from pydantic import ConfigDict, PlainValidator, RootModel, WithJsonSchema, create_model

from msauto.interface.dialect import Dialect
from msauto.interface.server_url import ServerUrl, UrlError, parse_server_url
from msauto.playbook.schema.strict_model import Model, Needs, OneOf, key, need
from msauto.playbook.schema.values import (
    TEMPLATED,
    Between,
    Flag,
    Name,
    Opt,
    Quoted,
    Seconds,
    SecretText,
    Value,
    invalid,
)


def _version(value: Any) -> tuple[int, ...]:
    if isinstance(value, bool) or not isinstance(value, str):
        written = getattr(value, "text", str(value).lower())
        raise invalid(f"must be text, not {written}", f'quote it: "{written}"')
    if not re.fullmatch(r"\d{1,6}(\.\d{1,6}){0,5}", value.strip()):
        raise invalid(f"{value[:40]!r} is not a valid version", 'write it as "2.9.87"')
    return tuple(int(part) for part in value.strip().split("."))


def _timezone(value: Any) -> str:
    name = value if isinstance(value, str) else ""
    try:
        ZoneInfo(name)
    except (OSError, ValueError, KeyError) as error:
        raise invalid(f"unknown time zone {str(value)[:40]!r}", "use an IANA name such as Europe/Oslo") from error
    return name


def _separator(value: Any) -> str:
    if isinstance(value, str) and value:
        return value
    raise invalid("must be text with at least one character")


def _url(value: Any) -> str:
    """Scheme, host and port; port 7901 where it has none (interface, «Limits»)."""
    return _read_url(value, ("http", "https"), "http://host:7901", "declare it under auth: {basic: {...}}").shown()


def _proxy_url(value: Any) -> str:
    """Scheme, host and port of an HTTP proxy; there is no port that all proxies have."""
    example = "http://proxy:3128"
    found = _read_url(
        value, ("http",), example, "set it next to the URL: proxy: {url: ..., username: ..., password: ...}"
    )
    if found.port is None:
        raise invalid("must begin with http://, name a host and a port", f"write {example}")
    return found.shown()


def _read_url(value: Any, schemes: Sequence[str], example: str, password: str) -> ServerUrl:
    """Return a URL without a user; ``password`` tells where a password is declared instead."""
    try:
        found = parse_server_url(value if isinstance(value, str) else "", schemes)
    except UrlError as error:
        raise invalid(str(error), f"write {example}") from error
    if found.username is not None:
        raise invalid("must not contain a password", password)
    return found


_Url = Annotated[
    str,
    PlainValidator(_url),
    WithJsonSchema({"type": "string", "pattern": r"^\s*[Hh][Tt][Tt][Pp][Ss]?://(?!\S*:0+/*\s*$)[^/?#@\s]+/*\s*$"}),
]
_ProxyUrl = Annotated[
    str,
    PlainValidator(_proxy_url),
    WithJsonSchema({"type": "string", "pattern": r"^\s*[Hh][Tt][Tt][Pp]://(?!\S*:0+/*\s*$)[^/?#@\s]+:\d+/*\s*$"}),
]
_Connections = Annotated[int, Between(1, 1024)]
_RequestLine = Annotated[int, Between(256, 2**20)]  # every server takes the least; none takes lines of megabytes
_Version = Annotated[
    tuple[int, ...],
    PlainValidator(_version),
    WithJsonSchema({"type": "string", "pattern": r"^\s*\d{1,6}(\.\d{1,6}){0,5}\s*$"}),
]
TimezoneName = Annotated[str, PlainValidator(_timezone), WithJsonSchema({"type": "string"})]
_Separator = Annotated[str, PlainValidator(_separator), WithJsonSchema({"type": "string", "minLength": 1})]

_DIALECT_WORDS = {
    "not_found": "how the server tells that there is no such thing",
    "xmp_read": "whether XMP fields are read",
    "list_separator": "what separates the values of an XMP field",
    "segment_update": "how an existing segment is changed",
    "marker_update": "which fields are sent for an existing marker",
    "folder_missing": "what a link into an unknown folder means",
    "link_delete": "how a link is removed",
    "link_title": "how a link's new title is written",
    "listing_depth": "whether a listing shows the folders below as well",
    "rss_update": "how an existing RSS item is replaced",
    "rss_guid": "what identifies an RSS item",
    "rss_body": "what an RSS item is sent as",
    "position_origin": "where positions count from",
    "title_address": "how a title with a colon is written in an address",
}


def _dialect_fields() -> dict[str, Any]:
    hints = get_type_hints(Dialect)
    found: dict[str, Any] = {}
    for each in dataclasses.fields(Dialect):
        kind: Any = _Separator if hints[each.name] is str else hints[each.name]
        words = _DIALECT_WORDS.get(each.name, each.name.replace("_", " "))
        found[each.name] = (Annotated[kind | None, TEMPLATED], key(f"{words}; default {each.default}"))
    return found


DialectArgs = create_model("DialectArgs", __base__=Model, __doc__="How the server answers.", **_dialect_fields())


_IN_PLACE = "the password: take it from the environment, {{ env.NAME }}"
_IN_FILE = "a file that holds the password, beside the inventory"
_IN_KEYRING = "the service under which the system keyring holds the user's password"
_SOURCES = ("password", "password_file", "password_keyring")
_BOTH = ("has both {0} and {1}", "keep one of them")


class BasicArgs(Model):
    """HTTP basic authentication."""

    rules: ClassVar = (OneOf(_SOURCES, _BOTH, ("has no password", "add password, password_file or password_keyring")),)

    username: Value[Quoted] = need("the user")
    password: Opt[SecretText] = key(_IN_PLACE)
    password_file: Opt[Name] = key(_IN_FILE)
    password_keyring: Opt[Name] = key(_IN_KEYRING)


class HttpProxyArgs(Model):
    """An HTTP proxy on the way to the server."""

    rules: ClassVar = (
        OneOf(_SOURCES, _BOTH),
        *(Needs(each, ("username",), "has a password but no username", "add username") for each in _SOURCES),
    )

    url: Value[_ProxyUrl] = need("http://host:port")
    username: Opt[Quoted] = key("the user that the proxy wants")
    password: Opt[SecretText] = key(_IN_PLACE)
    password_file: Opt[Name] = key(_IN_FILE)
    password_keyring: Opt[Name] = key(_IN_KEYRING)


class AuthArgs(Model):
    """How to get in: basic or bearer, and any headers."""

    rules: ClassVar = (OneOf(("basic", "bearer", "bearer_file", "bearer_keyring"), _BOTH),)

    basic: Opt[BasicArgs] = key("HTTP basic authentication")
    bearer: Opt[SecretText] = key("a bearer token")
    bearer_file: Opt[Name] = key("a file that holds the bearer token, beside the inventory")
    bearer_keyring: Opt[Name] = key("the service under which the system keyring holds the token of this host")
    headers: Opt[dict[str, Value[SecretText]]] = key("headers to send along")


class TlsArgs(Model):
    """TLS towards an https server; paths of PEM files beside the inventory."""

    verify: Opt[Flag] = key("check the server's certificate; default true")
    ca: Opt[Name] = key("the authority to trust")
    cert: Opt[Name] = key("our own certificate")
    key_password: Opt[SecretText] = key("what opens the key, if it is encrypted")
    key: Opt[Name] = key("the key of our certificate")


class TimeoutArgs(Model):
    """Time-outs in seconds: more than 0, a week (604800) at most."""

    connect: Opt[Seconds] = key("to connect; default 5")
    read: Opt[Seconds] = key("between bytes of an answer; default 30")
    listing: Opt[Seconds] = key("for a listing; default 300")
    proxy: Opt[Seconds] = key("for a viewing copy that is made meanwhile; default 3600")


class ServerArgs(Model):
    """A media server."""

    url: Value[_Url] = need("http://host or https://host; port 7901 if none is given")
    version: Opt[_Version] = key('the product version, quoted: "2.9.87"; default: the newest')
    timezone: Opt[TimezoneName] = key("the time zone of the server's times, such as Europe/Oslo")
    auth: Opt[AuthArgs] = key("how to get in")
    tls: Opt[TlsArgs] = key("TLS")
    proxy: Opt[HttpProxyArgs] = key("an HTTP proxy on the way; default none, and the environment is not looked at")
    timeouts: Opt[TimeoutArgs] = key("time-outs in seconds")
    connections: Opt[_Connections] = key("connections at once, 1 to 1024; default 16")
    request_line: Opt[_RequestLine] = key("the longest request line in bytes, 256 to 1048576; default 8000")
    dialect: Opt[DialectArgs] = key("how the server answers where the interface is silent")


class HostArgs(Model):
    """A host: its server and any other variables."""

    model_config = ConfigDict(extra="allow")

    server: Opt[ServerArgs] = key("the media server")


class GroupArgs(Model):
    """A group of hosts."""

    hosts: dict[str, HostArgs | None] | None = key("hosts, each with its variables")
    vars: dict[str, Any] | None = key("variables of all hosts in it")
    children: dict[str, GroupArgs | None] | None = key("groups in it")


class InventoryArgs(RootModel[dict[str, GroupArgs | None]]):
    """An inventory: groups at the top, usually only ``all``."""
