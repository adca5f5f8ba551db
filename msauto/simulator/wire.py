"""Decoding of raw paths and query strings, and the backslash rule.

Source: interface "Folder" (a slash or backslash inside a name is written with a backslash escape, and the
whole value is URL-encoded) and "Asset" (`<NAME>@<TITLE>`, `<NAME>@<NS:ID>`). A path is split at literal
slashes before decoding, so `%5C%2F` inside a segment is an escaped slash.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

FolderPath = tuple[str, ...]
READS = ("GET", "HEAD")

_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


class MalformedRequestError(ValueError):
    """A broken percent or backslash escape, or bytes that are not UTF-8."""


class RefusalError(Exception):
    """The server refuses the request; `status` is the status in the dialect `errors=status`."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class ResourceNotFoundError(Exception):
    """The object does not exist (interface "Errors": the error text Object not found)."""


@dataclass(frozen=True, slots=True)
class RequestAddress:
    """A storage path: the database, and either folders or an asset with the segments after it.

    A folder address has no `asset`. Only an `NS:ID` address has a `namespace`.
    `tail` contains the decoded segments after the asset, such as `("PVW", "WP1")`.
    """

    database: str
    folder: FolderPath = ()
    asset: str | None = None
    namespace: str | None = None
    tail: tuple[str, ...] = ()


@dataclass(slots=True)
class HttpRequest:
    """One request; `target` is the path and query exactly as on the wire."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""
    params: list[tuple[str, str]] = field(default_factory=list)

    def param(self, name: str) -> str | None:
        """Return the first value of a parameter, or None."""
        return next((value for key, value in self.params if key == name), None)

    def required(self, name: str) -> str:
        """Return the first value of a parameter; RefusalError if it is missing."""
        value = self.param(name)
        if value is None:
            raise RefusalError(400, f"{name} is missing")
        return value

    def all_params(self, name: str) -> list[str]:
        """Return every value of a parameter, in the order sent."""
        return [value for key, value in self.params if key == name]


def decode_percent(raw: str) -> str:
    """Percent-decode once; MalformedRequestError for a broken escape or bytes that are not UTF-8."""
    if _BROKEN_ESCAPE.search(raw):
        raise MalformedRequestError(f"broken percent escape in {raw!r}")
    try:
        return unquote_to_bytes(raw.encode("utf-8", "surrogateescape")).decode("utf-8")
    except UnicodeDecodeError:
        raise MalformedRequestError(f"not UTF-8: {raw!r}") from None


def split_escaped(text: str) -> FolderPath:
    r"""Split at unescaped slashes and undo the backslash rule: `a/b\/c` is ("a", "b/c")."""
    parts = [""]
    characters = iter(text)
    for character in characters:
        if character == "/":
            parts.append("")
            continue
        if character == "\\":
            character = next(characters, "")
            if character not in ("/", "\\"):
                raise MalformedRequestError(f"a backslash without a character to escape in {text!r}")
        parts[-1] += character
    return tuple(parts)


def unescape(text: str) -> str:
    """Undo the backslash rule in one name; an unescaped slash stays."""
    return "/".join(split_escaped(text)) if "\\" in text else text


def escape(name: str) -> str:
    """Write one name with the backslash rule."""
    return name.replace("\\", "\\\\").replace("/", "\\/")


def folder_of_text(text: str) -> FolderPath:
    """`Raw/2026` → ("Raw", "2026"); leading, trailing and repeated slashes are ignored."""
    return tuple(part for part in split_escaped(text) if part)


def folder_text(path: Iterable[str]) -> str:
    r"""("Raw", "A/B") → `Raw/A\/B`."""
    return "/".join(map(escape, path))


def decode_name(raw: str) -> str:
    """The raw path segment of a folder or an asset → its plain name (interface "Folder": the backslash rule)."""
    return unescape(decode_percent(raw))


def decode_query(raw: str, plus_is_space: bool = False) -> list[tuple[str, str]]:
    """Return all parameters in order, with duplicates."""
    if not raw:
        return []
    if plus_is_space:
        raw = raw.replace("+", " ")
    pairs = [part.partition("=") for part in raw.split("&") if part]
    return [(decode_percent(name), decode_percent(value)) for name, _, value in pairs]


def decode_address(segments: list[str], ns_id: bool = True, decoded_colon: bool = False) -> RequestAddress:
    """Raw segments after `/storage/` → Address.

    `ns_id`: a literal colon separates NS:ID. `decoded_colon`: a percent-encoded colon does as well.
    """
    database, at, raw_asset = segments[0].partition("@")
    if not at:
        return RequestAddress(decode_percent(database), tuple(map(decode_name, segments[1:])))
    tail = tuple(map(decode_name, segments[1:]))
    if ns_id and ":" in raw_asset:
        namespace, _, asset = map(decode_name, raw_asset.partition(":"))
        return RequestAddress(decode_percent(database), (), asset, namespace, tail)
    asset = decode_name(raw_asset)
    if ns_id and decoded_colon and ":" in asset:
        namespace, _, asset = asset.partition(":")
        return RequestAddress(decode_percent(database), (), asset, namespace, tail)
    return RequestAddress(decode_percent(database), (), asset, None, tail)
