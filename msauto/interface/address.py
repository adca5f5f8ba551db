r"""The only escaping: plain names to the bytes of a request target (interface, «Folder» and «Asset (clip)»).

Two rules, in this order. In folder names and asset titles a slash becomes ``\/`` and a backslash ``\\``; then
everything but the unreserved characters of RFC 3986 (letters, digits, ``- . _ ~``) is percent-encoded in UTF-8.
Everywhere else in msauto names are plain text.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import quote

from msauto.errors import AddressError
from msauto.interface.dialect import Dialect
from msauto.model.live import Folder, show_folder
from msauto.model.plan import Address


def asset_path(database: str, address: Address, *, dialect: Dialect = Dialect()) -> str:
    r"""Return the path of an asset by title or by ``NS:ID``, relative to the server.

    A title's own colon is encoded, so that it is never taken for the colon of ``NS:ID``; with the dialect
    ``title_address: ns`` such a title is addressed as ``title:…`` instead (see :func:`namespace_of`).

    >>> asset_path("NEWS", Address("Evening News"))
    '/storage/NEWS@Evening%20News'
    >>> asset_path("NEWS", Address("4711", namespace="handle"))
    '/storage/NEWS@handle:4711'
    """
    title = encode(escape_name(named(address.name, "an asset's title or identifier")))
    namespace = namespace_of(address, dialect)
    before = f"{encode(namespace)}:" if namespace else ""
    return f"/storage/{_database(database)}@{before}{title}"


def namespace_of(address: Address, dialect: Dialect) -> str:
    """Return the namespace that an address takes on the wire; empty for a title in its plain form.

    Only a title with a colon can be taken for ``NS:ID``: any other keeps the form that every version knows.
    """
    if address.namespace or dialect.title_address == "plain" or ":" not in address.name:
        return address.namespace
    return "title"


def folder_path(database: str, folder: Folder = ()) -> str:
    """Return the path of a folder's listing; the empty folder is the whole database.

    >>> folder_path("NEWS", ("Raw", "a/b"))
    '/storage/NEWS/Raw/a%5C%2Fb'
    """
    segments = [_segment(escape_name(named(name, "a folder's name"))) for name in folder]
    return "/".join(["/storage", _database(database), *segments])


def channel_path(channel: str) -> str:
    """Return the path of an RSS channel (interface, «RSS channel»)."""
    return f"/rss/{_segment(named(channel, 'an RSS channel'))}"


def rss_item_path(channel: str, file: str) -> str:
    """Return the path of a file in a channel (interface, «RSS add data»)."""
    return f"{channel_path(channel)}/{_segment(named(file, 'the file of an RSS item'))}"


def query(parameters: Iterable[tuple[str, str]]) -> str:
    """Return ``?name=value&…``, names and values percent-encoded, in the order given; empty for no parameters.

    >>> query([("name", "comment"), ("val", "50% & more")])
    '?name=comment&val=50%25%20%26%20more'
    """
    pairs = [f"{encode(named(name, 'a parameter'))}={encode(value)}" for name, value in parameters]
    return f"?{'&'.join(pairs)}" if pairs else ""


def folder_value(folder: Folder) -> str:
    r"""Return the value of COPYLINK's ``folder`` before :func:`query` encodes it: names escaped, joined by ``/``.

    >>> query([("folder", folder_value(("Playout", "To/night")))])
    '?folder=Playout%2FTo%5C%2Fnight'
    """
    for name in folder:
        named(name, "a folder's name")
    return show_folder(folder)


def escape_name(name: str) -> str:
    r"""Apply the backslash rule (interface, «Folder»): ``/`` becomes ``\/`` and ``\`` becomes ``\\``."""
    return name.replace("\\", "\\\\").replace("/", "\\/")


@lru_cache(maxsize=4096)  # a title is in several requests of its asset, a constant value in all assets
def encode(text: str) -> str:
    """Percent-encode everything but the unreserved characters of RFC 3986, in UTF-8.

    A new line is ``%0a``, in small letters as the interface writes it («PNG thumbnail»); all else in capitals.
    """
    try:
        return quote(text, safe="", errors="strict").replace("%0A", "%0a")
    except UnicodeEncodeError:
        shown = text.encode("utf-8", "backslashreplace").decode()
        raise AddressError(
            f"{shown!r} is not valid Unicode: it contains half of a surrogate pair",
            remedy="correct the text where it is written; it was probably read in the wrong encoding",
        ) from None


def _database(name: str) -> str:
    return _segment(named(name, "the database"))


def _segment(text: str) -> str:
    # A whole segment of dots would be a dot segment (RFC 3986, 5.2.4), which anything on the way may remove.
    encoded = encode(text)
    return encoded.replace(".", "%2E") if encoded in {".", ".."} else encoded


def named(name: str, what: str) -> str:
    """Return a name; raises :class:`AddressError` for an empty one."""
    if not name:
        raise AddressError(f"the name of {what.removeprefix('the name of ')} is empty", remedy="give it a name")
    return name
