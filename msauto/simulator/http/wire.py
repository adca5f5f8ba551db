"""What comes over the wire, decoded once: raw paths, query strings, the backslash rule.

Source: interface "Folder" (a slash or backslash inside a name is written with a backslash escape, and the
whole value is URL-encoded) and "Asset" (`<NAME>@<TITLE>`, `<NAME>@<NS:ID>`). A path is cut at literal
slashes before anything is decoded, so `%5C%2F` inside a segment is an escaped slash.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

FolderPath = tuple[str, ...]

_HEX = {format(value, form).encode(): value for value in range(256) for form in ("02x", "02X")}
_HEX |= {pair[:1].upper() + pair[1:].lower(): value for pair, value in list(_HEX.items())}
_HEX |= {pair[:1].lower() + pair[1:].upper(): value for pair, value in list(_HEX.items())}


class MalformedRequestError(ValueError):
    """The request cannot be read: a broken percent or backslash escape, or bytes that are not UTF-8."""


@dataclass(frozen=True, slots=True)
class RequestAddress:
    """A storage path: the database, and either folders or an asset with what follows it.

    `asset` is None for a folder address. `namespace` is set for `NS:ID` addresses only.
    `tail` holds the decoded segments after the asset, such as `("PVW", "WP1")`.
    """

    database: str
    folder: FolderPath = ()
    asset: str | None = None
    namespace: str | None = None
    tail: tuple[str, ...] = ()


@dataclass(slots=True)
class HttpRequest:
    """One request as it arrived; `target` is the path and query exactly as on the wire."""

    method: str
    target: str
    raw_path: str
    raw_query: str
    headers: dict[str, str]
    body: bytes = b""
    params: list[tuple[str, str]] = field(default_factory=list)

    def param(self, name: str) -> str | None:
        """The first value of a parameter, or None."""
        return next((value for key, value in self.params if key == name), None)

    def all_params(self, name: str) -> list[str]:
        """Every value of a parameter, in the order sent."""
        return [value for key, value in self.params if key == name]


def decode_percent(raw: str) -> str:
    """Percent-decode once, strictly; raise MalformedRequestError for a broken escape or bytes that are not UTF-8."""
    if "%" not in raw and raw.isascii():
        return raw
    head, *parts = raw.encode("latin-1").split(b"%")
    decoded = bytearray(head)
    for part in parts:
        value = _HEX.get(part[:2])
        if value is None:
            raise MalformedRequestError(f"broken percent escape in {raw!r}")
        decoded.append(value)
        decoded += part[2:]
    try:
        return decoded.decode("utf-8")
    except UnicodeDecodeError:
        raise MalformedRequestError(f"not UTF-8: {raw!r}") from None


def split_escaped(text: str) -> FolderPath:
    r"""Split at unescaped slashes and undo the backslash rule: `a/b\/c` is ("a", "b/c")."""
    parts = [""]
    position = 0
    while position < len(text):
        char = text[position]
        if char == "\\":
            position += 1
            if text[position : position + 1] not in ("/", "\\"):
                raise MalformedRequestError(f"a backslash that escapes nothing in {text!r}")
            parts[-1] += text[position]
        elif char == "/":
            parts.append("")
        else:
            parts[-1] += char
        position += 1
    return tuple(parts)


def unescape(text: str) -> str:
    """Undo the backslash rule in one name; an unescaped slash is a character like any other here."""
    return "/".join(split_escaped(text)) if "\\" in text else text


def escape(name: str) -> str:
    """Write one name with the backslash rule."""
    return name.replace("\\", "\\\\").replace("/", "\\/")


def folder_of_text(text: str) -> FolderPath:
    """`Raw/2026` → ("Raw", "2026"); leading, trailing and doubled slashes name nothing."""
    return tuple(part for part in split_escaped(text) if part)


def folder_text(path: Iterable[str]) -> str:
    r"""("Raw", "A/B") → `Raw/A\/B`."""
    return "/".join(map(escape, path))


def decode_name(raw: str) -> str:
    """The raw path segment of a folder or an asset → its plain name: percent-decoded once, then the backslash rule.

    The interface has that rule for folder names and titles («Folder»); every other name is percent-decoded alone.
    """
    return unescape(decode_percent(raw))


def decode_query(raw: str, plus_is_space: bool = False) -> list[tuple[str, str]]:
    """All parameters in order, duplicates kept; `+` is a plus unless the dialect says otherwise."""
    if not raw:
        return []
    if plus_is_space:
        raw = raw.replace("+", " ")
    pairs = [part.partition("=") for part in raw.split("&") if part]
    return [(decode_percent(name), decode_percent(value)) for name, _, value in pairs]


def decode_address(segments: list[str], ns_id: bool = True, decoded_colon: bool = False) -> RequestAddress:
    """Raw segments after `/storage/` → Address.

    `ns_id`: a literal colon makes NS:ID. `decoded_colon`: a percent-encoded one does as well.
    """
    database, at, raw_asset = segments[0].partition("@")
    if not at:
        return RequestAddress(decode_percent(database), tuple(map(decode_name, segments[1:])))
    namespace, asset = _split_namespace(raw_asset, ns_id, decoded_colon)
    tail = tuple(map(decode_name, segments[1:]))
    return RequestAddress(decode_percent(database), (), asset, namespace, tail)


def _split_namespace(raw: str, ns_id: bool, decoded_colon: bool) -> tuple[str | None, str]:
    if ns_id and ":" in raw:
        namespace, _, identifier = raw.partition(":")
        return decode_name(namespace), decode_name(identifier)
    name = decode_name(raw)
    if ns_id and decoded_colon and ":" in name:
        namespace, _, identifier = name.partition(":")
        return namespace, identifier
    return None, name
