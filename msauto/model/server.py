"""A media server as an inventory declares it: its URL, authentication, TLS, time-outs, version, dialect."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import unquote, urlsplit
from zoneinfo import ZoneInfo

from msgspec import Struct

from msauto.model.timecode import FrameRates

if TYPE_CHECKING:
    import httpx2

Transport: TypeAlias = "httpx2.AsyncBaseTransport | httpx2.BaseTransport"
"""What replaces the network: a mock, an ASGI or WSGI app, or a proxy."""


def is_transport(value: object) -> bool:
    """Return whether a value is a transport of httpx2, without importing httpx2."""
    return hasattr(value, "handle_request") or hasattr(value, "handle_async_request")


# The dialect: the registry of its switches
#
# The inventory schema and ``docs/reference/dialect.md`` follow from it. A new switch has its name, choices, default and
# description here, and acts in one other module. Its place in ``msauto probe`` is :mod:`msauto.plugins.probe.probe`.


def _switch(default: str, description: str) -> Any:
    return field(default=default, metadata={"description": description})


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a server answers where the interface is silent (interface, «What is not specified»).

    The first value of each ``Literal`` is the default. The descriptions are Markdown.
    """

    not_found: Literal["auto", "status", "text"] = _switch(
        "auto",
        "How an answer reports that an object does not exist. `auto`: by status 404, or by an error text that begins "
        "with `Object not found`. `status`: only by 404. `text`: only by that text; a 404 is then an error like "
        "any other",
    )
    xmp_read: Literal["auto", "never"] = _switch(
        "auto",
        "Whether XMP fields are read. `auto`: by one request for all, or one for each field if the server needs "
        "that; an answer that cannot be read counts as not reported. `never`: compare with what was last written",
    )
    list_separator: str = _switch(
        ",",
        "What separates the values of an XMP field on the wire. A value that contains it is refused",
    )
    segment_update: Literal["recreate", "overwrite"] = _switch(
        "recreate",
        "How an existing segment is changed. `recreate`: deleted, then created (two requests). `overwrite`: "
        "created over it (one request). Both may lose what CREATESEGMENT cannot write, so both need "
        "[`lossy`](playbook.md#segments)",
    )
    segment_numbers: Literal["fixed", "by_start"] = _switch(
        "fixed",
        "What becomes of the numbers of segments after one is created or deleted. `fixed`: they stay. `by_start`: the "
        "server numbers all segments of the clip by their starts, from 1",
    )
    marker_update: Literal["full", "changed"] = _switch(
        "full",
        "What is sent for an existing marker. `full`: all its known fields, in case the server clears what is not "
        "sent. `changed`: only what differs",
    )
    folder_missing: Literal["refuse", "create"] = _switch(
        "refuse",
        "How a link into a folder that does not exist is treated. `refuse`: an error when planning. `create`: "
        "sent, because the server creates the folder",
    )
    link_delete: Literal["refuse", "by_title"] = _switch(
        "refuse",
        "How a link is removed. `refuse`: never, an error when planning. `by_title`: by DELETE with the link's "
        "title, only if that is not the asset's own title; it counts as a deletion",
    )
    link_title: Literal["unknown", "address", "none"] = _switch(
        "unknown",
        "What the title of a link leads to. `address`: to that link. `none`: to something else, or nowhere. "
        "`unknown` and `none`: the fields of a new link are refused when planning; for those of one that exists, "
        "its title is read, and must answer with the `link_id` of the link",
    )
    rss_update: Literal["put", "delete_put"] = _switch(
        "put",
        "How an existing RSS item is replaced. `delete_put`: deleted, then added",
    )
    rss_guid: Literal["item", "file", "stem"] = _switch(
        "item",
        "What the channel shows as guid. The guid of the playbook (`item`), the file name (`file`), or the file "
        "name without its ending (`stem`)",
    )
    rss_body: Literal["auto", "text", "item"] = _switch(
        "auto",
        "How an RSS item is sent. `auto`: as a text for a `.txt` name, as an RSS `item` document for an `.xml` "
        "name. `text`, `item`: always so. An item that is sent as a text is compared as a text; a link or date, "
        "which no text carries, is refused when planning unless the channel shows it already",
    )
    shows_after: int = field(
        default=0,
        metadata={
            "description": "After how many seconds the server surely shows what was done, such as those between two "
            "versions of a feed. Applying waits so long. What an accepted request made and does not show is made again "
            "only after that time; with `0`, applying waits a few seconds, and it is not made again by itself"
        },
    )
    position_origin: Literal["file", "in"] = _switch(
        "file",
        "Where positions count from. The first frame of the file, or the IN point (`first_frame`). Playbooks "
        "always count from the first frame of the file",
    )
    title_address: Literal["plain", "ns"] = _switch(
        "plain",
        "How a title with a colon is addressed. `plain`: percent-encoded. `ns`: with `title:` in front, which "
        "needs version 2.9.69. A title without a colon never needs it",
    )

    # Questions that several packages ask. Every other key is used in one module (tests/lint/dialect_keys.py).

    @property
    def longest_delay(self) -> timedelta:
        """After what time the server surely shows what was done; none: that is not known."""
        return timedelta(seconds=self.shows_after)

    @property
    def removes_links(self) -> bool:
        """Whether a link can be removed: by a DELETE of its title."""
        return self.link_delete == "by_title"

    @property
    def counts_from_in(self) -> bool:
        """Whether positions count from the IN point."""
        return self.position_origin == "in"

    @property
    def numbers_by_start(self) -> bool:
        """Whether the numbers of segments follow their starts."""
        return self.segment_numbers == "by_start"

    @property
    def ending_decides(self) -> bool:
        """Return whether the ending of a file's name decides if an RSS item is a text or an ``item`` document."""
        return self.rss_body == "auto"

    def sends_document(self, file: str) -> bool:
        """Return whether an RSS item is sent as an ``item`` document or a text."""
        return self.rss_body == "item" or (self.ending_decides and file.lower().endswith(".xml"))


# The URL, and whether two of them are of one server

ONE_HOST = (
    "use one host, and name the media databases with `database:` of the play, a block or the task"
)
"""What to do about two hosts that are one server."""

DEFAULT_PORT = 7901
"""The port of the interface (interface, «Requests»)."""
_LOOPBACK = frozenset({"127.0.0.1", "::1"})
_AFTER_USER = re.compile(r"(?:\[[0-9A-Fa-f:.]+(?:%[^\[\]]+)?\]|[^\[\]:]*)(?::[0-9]*)?")
"""A host and a port. Brackets elsewhere are an error for some versions of Python only."""
_ZONE = re.compile(r"^([^%]*:[^%]*)%25(?=.)")
"""Before the zone of a link-local address: ``%25eth0`` in RFC 6874, ``%eth0`` as people write it."""


class UrlError(ValueError):
    """A text that is not a URL of a server; the message is a predicate: ``must …``."""


class ServerUrl(Struct, frozen=True):
    """``url`` is scheme, host and port alone; ``username`` and ``password`` are decoded."""

    url: str
    host: str
    username: str | None = None
    password: str | None = None


def parse_server_url(text: str) -> ServerUrl:
    """Parse a URL. Raises :class:`UrlError`, which does not show the text, because it may hold a password.

    Scheme, host and port alone: a path, a query or a fragment would never reach the server.

    >>> parse_server_url("HTTP://Studio-A/").url
    'http://studio-a:7901'
    >>> parse_server_url("http://[fe80::1%25eth0]").url
    'http://[fe80::1%eth0]:7901'
    """
    text = text.strip()
    try:
        parts = urlsplit(text)
        port = parts.port
        host = parts.hostname
    except ValueError as error:
        raise UrlError("cannot be read as a URL") from error
    if not _AFTER_USER.fullmatch(parts.netloc.rpartition("@")[2]):
        raise UrlError("cannot be read as a URL")
    if parts.scheme not in {"http", "https"} or not host:
        raise UrlError("must begin with http:// or https:// and name a host")
    if port == 0:
        raise UrlError("must not have the port 0")
    if parts.path.rstrip("/") or "?" in text or "#" in text:
        raise UrlError("must be scheme, host and port only")
    if not text.isprintable() or any(sign.isspace() for sign in parts.netloc):
        raise UrlError("must not contain characters that are invalid in a host name")
    host = _ZONE.sub(r"\1%", host)
    named = f"[{host}]" if ":" in host else host
    url = f"{parts.scheme}://{named}:{port or DEFAULT_PORT}"
    if parts.username is None and parts.password is None:
        return ServerUrl(url, host)
    if not parts.username:
        raise UrlError("must name a user before the @")
    return ServerUrl(url, host, unquote(parts.username), unquote(parts.password or ""))


def with_scheme(address: str) -> str:
    """Return the address of a server as a URL: one without a scheme is http."""
    return address if "://" in address else f"http://{address}"


def server_key(url: str) -> str:
    """Return a text that is the same for two URLs of one server: its host and port.

    Letter case, a trailing slash or dot, the default port and the notation of an IP address make no difference. Neither
    do the names of this machine (``localhost``, ``127.0.0.1``, ``0.0.0.0``, ``[::1]``) and the scheme: one port is one
    server. Names are not looked up: :func:`~msauto.server.access.check_addresses` does that once a run connects.

    >>> server_key("http://127.0.0.1/") == server_key("http://LOCALHOST:7901")
    True
    """
    try:
        parts = urlsplit(url.strip())
        host = (parts.hostname or "").rstrip(".")
        port = parts.port
    except ValueError:
        return url
    return f"{host_key(host)}:{DEFAULT_PORT if port is None else port}" if host else url


def host_key(host: str) -> str:
    """Return a text that is the same for two notations of one IP address; a name is left as it is."""
    with suppress(ValueError):
        address = ip_address(host)
        address = getattr(address, "ipv4_mapped", None) or address
        host = str(address)
        host = "localhost" if host in _LOOPBACK or address.is_unspecified else host
    return host


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine by its name or address: what is sent to it crosses no network."""
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name.partition("%")[0]).is_loopback
    except ValueError:
        return False


def is_sent_openly(url: str) -> bool:
    """Return whether others on the network can read what is sent to a URL."""
    parts = urlsplit(url)
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")


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


class Timeouts(Struct, frozen=True):
    """Time-outs in seconds: to connect, between bytes of an answer, for a listing, for a web proxy being created.

    A whole answer may take ten times as long. A download must receive 64 KiB within one time-out.
    """

    connect: float = 5.0
    read: float = 30.0
    listing: float = 300.0
    proxy: float = 3600.0


class Auth(Struct, frozen=True):
    """Credentials: at most one of basic and bearer, and any headers (inventory, «The server block»)."""

    username: str | None = None
    password: Secret | None = None
    bearer: Secret | None = None
    headers: tuple[tuple[str, Secret], ...] = ()


class PlacedPath(str):
    """A path, and the ``place`` where an inventory names it."""

    __slots__ = ("place",)
    place: str


class Tls(Struct, frozen=True):
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
    ``requests_per_second``: ``None``: unlimited. ``frame_rates``: what a ``frame_time`` of few digits stands for.
    ``worker``: the resources of the Dask workers that may reach it, each with its amount. ``transport`` replaces the
    network; who made it closes it. ``flag``: what leads a command to it if no inventory does.
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
    frame_rates: FrameRates = ()
    dialect: Dialect = Dialect()
    worker: Mapping[str, float] = field(default_factory=dict)
    transport: Transport | None = field(default=None, compare=False, repr=False)
    flag: str = field(default="", compare=False, repr=False)

    def command(self, words: str) -> str:
        """Return a command of msauto about this server."""
        return f"msauto {words}{self.flag}"


def zone_of(spec: ServerSpec) -> ZoneInfo | None:
    """Return the time zone of a server's times that show none; ``None`` is that of this machine."""
    return ZoneInfo(spec.timezone) if spec.timezone else None
