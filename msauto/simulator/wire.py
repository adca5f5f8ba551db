"""Decoding of raw paths and query strings, and the backslash rule.

Source: interface "Folder" (a slash or backslash inside a name is written with a backslash escape, and the
whole value is URL-encoded) and "Asset" (`<NAME>@<TITLE>`, `<NAME>@<NS:ID>`). A path is split at literal
slashes before decoding, so `%5C%2F` inside a segment is an escaped slash.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
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


def decode_query(raw: str) -> list[tuple[str, str]]:
    """Return all parameters in order, with duplicates; a plus sign is one."""
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


_CODE = re.compile(r"(\d+):([0-5]\d):([0-5]\d)(?:([:;])(\d+)|\.(\d+))?")
_DROPPING = (Fraction(30000, 1001), Fraction(60000, 1001))


def parse_frames(text: str, rate: Fraction) -> int:
    """A position or duration → frames at this rate; ValueError for an invalid one."""
    if re.fullmatch(r"\d+", text, re.ASCII):
        return int(text)
    match = _CODE.fullmatch(text)
    if match is None:
        raise ValueError(f"not a valid position: {text!r}")
    hours, minutes, seconds = (int(part) for part in match.group(1, 2, 3))
    if match[4] is None:
        whole = Fraction((hours * 60 + minutes) * 60 + seconds) + Fraction(f"0.{match[6] or 0}")
        return round(whole * rate)
    return _code_frames((hours * 60 + minutes, seconds, int(match[5])), rate, match[4] == ";")


def _code_frames(code: tuple[int, int, int], rate: Fraction, drop: bool) -> int:
    minutes, seconds, frame = code
    nominal = -(-rate.numerator // rate.denominator)
    if frame >= nominal:
        raise ValueError(f"frame {frame} is out of range at {nominal} frames per second")
    count = (minutes * 60 + seconds) * nominal + frame
    if not drop:
        return count
    if rate not in _DROPPING:
        raise ValueError("this rate does not support drop frame")
    skipped = nominal // 15
    if minutes % 10 and seconds == 0 and frame < skipped:
        raise ValueError("drop frame skips this time code")
    return count - skipped * (minutes - minutes // 10)


def format_frames(frames: int, rate: Fraction) -> str:
    """Frames → non-drop `HH:MM:SS:FF`; the hours can exceed 24."""
    nominal = -(-rate.numerator // rate.denominator)
    seconds, frame = divmod(frames, nominal)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}:{frame:02d}"


def format_length(frames: int, rate: Fraction) -> str:
    """Frames → real time `HH:MM:SS.sss`, without a fraction of 0 (the mam shape)."""
    millis = round(frames / rate * 1000)
    seconds, rest = divmod(millis, 1000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{rest:03d}" if rest else text


@lru_cache(maxsize=64)
def frame_time(rate: Fraction) -> str:
    """Return the duration of a frame in seconds with ten decimals, `0.0400000000`."""
    ticks = round(10**10 / rate)
    return f"{ticks // 10**10}.{ticks % 10**10:010d}"
