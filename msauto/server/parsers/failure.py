"""Telling an error from an answer (interface, «Errors»: the body of an error is not shown; field notes, rules)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from msauto.errors import UnreadableError
from msauto.server.parsers.xml import Element, attributes, decode_text, local, looks_like_html, parse_document, unwrap

ERROR_ROOTS: Final = frozenset({"error", "errors", "fault", "exception", "failure"})
_SHAPES = frozenset({"clip", "storedtree", "mam", "rss", "feed", "rdf", "databases", "channels"})
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_TAGS = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_NOT_FOUND = re.compile(r"(?:error\b[\s:]*(?:\d+\b)?[\s:.-]*)?object not found", re.IGNORECASE)
_ERROR = re.compile(r"error", re.IGNORECASE)
_LENGTH = 300
_SHOWN_BYTES: Final = 16384  # more could not be shown, and to find the ends of tags that have none costs the square


@dataclass(frozen=True, slots=True)
class Failure:
    """What an error answer says; ``not_found`` for the one error text that the interface names."""

    text: str
    not_found: bool


def parse_failure(data: bytes, charset: str | None = None) -> Failure | None:
    """Return what the body says if it is an error text or an error document; else ``None``.

    To be asked only of a body that is not what was asked for: a clip may well be called ``Error``.
    """
    if looks_like_html(data):
        return None
    text = decode_text(data[:65536], charset).lstrip("\ufeff").strip()
    if not text.startswith("<"):
        return _of_pieces([text]) if _NOT_FOUND.match(text) or _ERROR.match(text) else None
    try:
        return _of_document(unwrap(parse_document(data, charset)))
    except UnreadableError:
        return None


def is_error_document(root: Element) -> bool:
    """Tell an error document by its root's name."""
    return local(root).lower() in ERROR_ROOTS


def show_body(data: bytes, charset: str | None = None) -> str:
    """Return a body as one short line for a message: no tags, no control characters."""
    text = decode_text(data[:_SHOWN_BYTES], charset)
    return clean(_TAGS.sub(" ", text) if "<" in text else text)


def clean(text: str) -> str:
    """Return a foreign text as one line of at most 300 characters, safe for a terminal."""
    line = " ".join(_CONTROL.sub(" ", text).split())
    return line if len(line) <= _LENGTH else f"{line[: _LENGTH - 1]}…"


def _of_document(root: Element) -> Failure | None:
    pieces = [str(piece).strip() for piece in root.itertext() if str(piece).strip()]
    if is_error_document(root):
        told = [value for element in root.iter() for value in attributes(element).values() if value.strip()]
        return _of_pieces([*pieces, *told] or [local(root)])
    single = len(pieces) == 1 and local(root).lower() not in _SHAPES
    if single and (_NOT_FOUND.match(pieces[0]) or _ERROR.match(pieces[0])):
        return _of_pieces(pieces)
    return None


def _of_pieces(pieces: list[str]) -> Failure:
    return Failure(clean(" ".join(pieces)), any(_NOT_FOUND.match(piece) for piece in pieces))
