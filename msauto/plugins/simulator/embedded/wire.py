"""What is on the wire: raw paths and query strings in, answers out.

Source: interface, «Addresses». A path is split at literal slashes before decoding, so `%5C%2F` inside a segment is an
escaped slash. The XML of answers is made by joining strings, in the encoding and frame of the dialect.
"""

from __future__ import annotations

import codecs
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from typing import Self
from urllib.parse import unquote_to_bytes
from xml.sax import saxutils

from msgspec import Struct

from msauto.plugins.simulator.embedded.dialect import SimDialect

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
    """The object does not exist."""


class RequestAddress(Struct, frozen=True):
    """A storage path: the database, and either folders or an asset with the segments after it.

    A folder address has no `asset`. Only an `NS:ID` address has a `namespace`.
    `tail` contains the decoded segments after the asset, such as `("PVW", "WP1")`.
    """

    database: str
    folder: FolderPath = ()
    asset: str | None = None
    namespace: str | None = None
    tail: tuple[str, ...] = ()


class HttpRequest(Struct):
    """One request; `target` is the path and query exactly as on the wire."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""
    params: list[tuple[str, str]] = []

    def param(self, name: str) -> str | None:
        """Return the first value of a parameter, or None."""
        for key, value in self.params:
            if key == name:
                return value
        return None

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
                raise MalformedRequestError(
                    f"a backslash without a character to escape in {text!r}"
                )
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
    """The raw path segment of a folder or an asset → its plain name (interface, «Addresses»: the backslash rule)."""
    return unescape(decode_percent(raw))


def decode_query(raw: str) -> list[tuple[str, str]]:
    """Return all parameters in order, with duplicates; a plus sign is one."""
    params = []
    for part in filter(None, raw.split("&")):
        name, _, value = part.partition("=")
        params.append((decode_percent(name), decode_percent(value)))
    return params


def decode_address(
    segments: list[str], ns_id: bool = True, decoded_colon: bool = False
) -> RequestAddress:
    """Raw segments after `/storage/` → Address.

    `ns_id`: a literal colon separates NS:ID. `decoded_colon`: a percent-encoded colon does as well.
    """
    database, at, raw_asset = segments[0].partition("@")
    below = tuple(map(decode_name, segments[1:]))
    if not at:
        return RequestAddress(decode_percent(database), below)
    asset, namespace = decode_name(raw_asset), None
    if ns_id and ":" in raw_asset:
        namespace, _, asset = map(decode_name, raw_asset.partition(":"))
    elif ns_id and decoded_colon and ":" in asset:
        namespace, _, asset = asset.partition(":")
    return RequestAddress(decode_percent(database), (), asset, namespace, below)


_CODE = re.compile(r"(\d+):([0-5]\d):([0-5]\d)(?:([:;])(\d+)|\.(\d+))?")
_DROPPING = (Fraction(30000, 1001), Fraction(60000, 1001))


def parse_frames(text: str, rate: Fraction) -> int:
    """A position or duration → frames at this rate; ValueError for an invalid one."""
    if re.fullmatch(r"\d+", text, re.ASCII):
        return int(text)
    match = _CODE.fullmatch(text)
    if match is None:
        raise ValueError(f"not a valid position: {text!r}")
    hours, minutes, seconds = map(int, match.group(1, 2, 3))
    minutes += hours * 60
    if match[4] is None:
        exact = Fraction(minutes * 60 + seconds) + Fraction(f"0.{match[6] or 0}")
        return round(exact * rate)
    frame = int(match[5])
    nominal = -(-rate.numerator // rate.denominator)
    if frame >= nominal:
        raise ValueError(f"frame {frame} is out of range at {nominal} frames per second")
    count = (minutes * 60 + seconds) * nominal + frame
    if match[4] == ":":
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


PLAIN = "text/plain; charset=utf-8"
NAMESPACE = "urn:media-storage:1"
GARBAGE = b"\x00\xff\xfe<" + random.Random(1).randbytes(60)  # no text in any encoding
_CHUNK = 65536  # characters
# XML 1.0 cannot contain these characters, not even as references.
_IMPOSSIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_SPECIAL = re.compile('[&<>"\r\n\t\x00-\x1f\ufffe\uffff\ud800-\udfff]')
_ROOT = re.compile(r"<[\w:.-]+")
_TEXT = re.compile(r"(?<=[^/])>([^<]*[^<\s][^<]*)</")


class HttpAnswer(Struct):
    """A response; `status` 0 closes the connection without one. `done`: whether the work was done.

    `parts`: a body that is made while it is sent, with a `pause` after each part.
    `length`: the Content-Length of `parts`; without it they are sent chunked. `cut`: close the connection at the end.
    """

    status: int = 200
    body: bytes = b""
    content_type: str = PLAIN
    headers: dict[str, str] = {}
    done: bool = True
    parts: Iterator[bytes] | None = None
    pause: float = 0.0
    length: int | None = None
    cut: bool = False

    def whole_body(self) -> bytes:
        """Return the whole body."""
        if self.parts is not None:
            self.body += b"".join(self.parts)
            self.parts = None
        return self.body

    def slowly(self, seconds: float) -> Self:
        """Send the body in ten parts over the seconds."""
        body, self.length, self.pause = self.whole_body(), len(self.body), seconds / 10
        step = max(1, -(-len(body) // 10))
        self.parts = (body[place : place + step] for place in range(0, len(body), step))
        return self

    def cut_at(self, most: int, seconds: float = 0.0) -> Self:
        """Send at most so many bytes of the body, wait, and close the connection."""
        body = self.whole_body()
        # If the whole body is sent, the Content-Length is one byte too large.
        self.parts, self.length = iter([body[:most]]), max(len(body), most + 1)
        self.pause, self.cut = seconds, True
        return self


def text_answer(text: str, status: int = 200, done: bool = True) -> HttpAnswer:
    """Return an answer in plain text."""
    return HttpAnswer(status, text.encode(), done=done)


def xml_answer(root: str | Iterable[str], dialect: SimDialect, done: bool = True) -> HttpAnswer:
    """Return an XML document with this root element; one in parts, the first with the start tag, is made while sent."""
    if isinstance(root, str):
        texts: Iterator[str] = iter(["".join(_framed([root], dialect))])
    else:
        texts = _joined(_framed(root, dialect))
    encoder = codecs.getincrementalencoder(dialect.xml_encoding)("xmlcharrefreplace")
    pieces = map(encoder.encode, texts)
    answer = HttpAnswer(200, next(pieces), f"text/xml; charset={dialect.xml_encoding}", done=done)
    second = next(pieces, None)
    if second is not None:
        answer.parts = chain((answer.body, second), pieces)
        answer.body = b""
    return answer


def _framed(parts: Iterable[str], dialect: SimDialect) -> Iterator[str]:
    yield f'<?xml version="1.0" encoding="{dialect.xml_encoding}"?>\n'
    if dialect.xml_wrapper == "xml":
        yield "<xml>\n"
    parts = iter(parts)
    start = next(parts)
    # RSS and Atom roots have a namespace already.
    if dialect.xml_namespace == "default" and " xmlns=" not in start[: start.find(">")]:
        start = _ROOT.sub(lambda match: f'{match[0]} xmlns="{NAMESPACE}"', start, count=1)
    parts = chain((start,), parts)
    if dialect.xml_layout == "indented":
        parts = (_TEXT.sub(r">\n    \1\n  </", part) for part in parts)
    yield from parts
    if dialect.xml_wrapper != "none":
        yield "\n</xml>"


def _joined(parts: Iterable[str]) -> Iterator[str]:
    """Join small parts into pieces of about `_CHUNK` characters."""
    piece: list[str] = []
    length = 0
    for part in parts:
        piece.append(part)
        length += len(part)
        if length >= _CHUNK:
            yield "".join(piece)
            piece, length = [], 0
    yield "".join(piece)


def not_found_answer(dialect: SimDialect) -> HttpAnswer:
    """Return the answer for an object that does not exist."""
    message = "Object not found"
    if dialect.not_found == "200_xml":
        return xml_answer(element("error", message), dialect, done=False)
    status, _, form = dialect.not_found.partition("_")
    if form == "empty":
        message = ""
    return text_answer(message, int(status), done=False)


def refusal_answer(refusal: RefusalError, dialect: SimDialect) -> HttpAnswer:
    """Return the answer for a refusal: the interface does not specify its form."""
    if dialect.errors == "200_text":
        return text_answer(f"Error: {refusal.text}", done=False)
    if dialect.errors == "200_xml":
        inner = element("code", str(refusal.status)) + element("message", refusal.text)
        return xml_answer(f"<error>{inner}</error>", dialect, done=False)
    return text_answer(f"Error: {refusal.text}", refusal.status, done=False)


def success_answer(dialect: SimDialect, clip_xml: str | None) -> HttpAnswer:
    """Return the answer for a successful command: the interface does not specify its form.

    `clip_xml`: the clip that the dialect shows.
    """
    match dialect.command_body:
        case "ok_text":
            return text_answer("OK")
        case "ok_xml" | "clip":
            return xml_answer(clip_xml or element("result", "OK"), dialect)
        case "garbage":
            return HttpAnswer(200, GARBAGE, "application/octet-stream")
        case _:
            return HttpAnswer()


def escape_text(value: str) -> str:
    """Escape character data; a character that is not valid in XML becomes U+FFFD."""
    if _SPECIAL.search(value) is None:
        return value
    return saxutils.escape(_IMPOSSIBLE.sub("\ufffd", value), {"\r": "&#13;"})


def escape_attribute(value: str) -> str:
    """Escape an attribute's value, without the quotes; line ends and tabs become references."""
    if _SPECIAL.search(value) is None:
        return value
    return escape_text(value).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")


def element(name: str, content: str) -> str:
    """Return `<name>content</name>`, the content escaped."""
    return f"<{name}>{escape_text(content)}</{name}>"


def attr_element(name: str, content: str) -> str:
    """Return `<Attr name="...">content</Attr>`."""
    return f'<Attr name="{escape_attribute(name)}">{escape_text(content)}</Attr>'
