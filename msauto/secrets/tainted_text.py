"""Texts that are marked as secret, in plain data: find them, and check where they are used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msauto.interface.fields import LINK_FIELDS, MARKER_ATTRIBUTES, SEGMENT_ATTRIBUTES
from msauto.model.facts import XmpByName
from msauto.secrets.redaction import HIDDEN, SHORTEST, can_redact

TAG = "!secret"
DataPath = tuple[str | int, ...]


class TaintedText(str):
    """A text that is secret, or that was made with a secret."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(HIDDEN)


def is_tainted(value: Any) -> bool:
    """Return whether a value is a tainted text, or contains one."""
    if isinstance(value, TaintedText):
        return True
    if isinstance(value, XmpByName):
        return False  # all of it comes from the server, and reading it would request it
    if isinstance(value, dict):
        return any(map(is_tainted, value.values())) or any(isinstance(key, TaintedText) for key in value)
    views = list | tuple | set | frozenset | type({}.values()) | type({}.items())
    return isinstance(value, views) and any(map(is_tainted, value))


def leaves(data: Any, path: DataPath = ()) -> Iterator[tuple[DataPath, Any]]:
    """Yield the values in plain data that are neither mappings nor lists, each after its path."""
    waiting = [(path, data)]
    while waiting:
        path, data = waiting.pop()
        if isinstance(data, dict):
            waiting += [((*path, part), value) for part, value in reversed(data.items())]
        elif isinstance(data, list):
            waiting += [((*path, part), data[part]) for part in reversed(range(len(data)))]
        else:
            yield path, data


def tainted_paths(data: Any) -> Iterator[tuple[DataPath, TaintedText]]:
    """Yield each tainted text in plain data with the path to it."""
    return ((path, leaf) for path, leaf in leaves(data) if isinstance(leaf, TaintedText))


# Where a secret is allowed --------------------------------------------------------------------------------------


def why_too_short(text: str) -> tuple[str, str]:
    """Return why a text cannot be redacted, as message and remedy, without showing it."""
    if not text.strip():
        return "the secret is empty", "set its value"
    return f"a secret must have at least {SHORTEST} characters", "use a longer one: a shorter one cannot be redacted"


def misplaced_secrets(data: Any, is_allowed: Callable[[DataPath], bool]) -> Iterable[tuple[DataPath, str, str]]:
    """Yield the path of each secret that cannot be redacted where it is used, with message and remedy."""
    for path, text in tainted_paths(data):
        if not is_allowed(path):
            yield path, NOT_ALLOWED, ALLOWED
        elif not can_redact(text) and text != HIDDEN:
            yield path, f"the secret gives fewer than {SHORTEST} characters here, and cannot be redacted", _SEND


NOT_ALLOWED = "a secret is not allowed here: this value is shown in plans, logs and the ledger"
ALLOWED = "use secrets only in texts that are written: fields, xmp, titles of segments, rss text, params"
_SEND = "send the secret itself, or a longer text"

_ALLOWED: Mapping[str, frozenset[tuple[str, ...]]] = {
    "asset": frozenset(
        {
            *(("fields", each.name) for each in LINK_FIELDS if each.may_be_secret),
            ("xmp", "*"),
            ("xmp", "*", "#"),
            ("segmentation", "title"),
            *(("segments", "#", each.name) for each in SEGMENT_ATTRIBUTES if each.may_be_secret),
            *(("markers", "#", each.name) for each in MARKER_ATTRIBUTES if each.may_be_secret),
        }
    ),
    "rss": frozenset({("items", "#", "text"), *(("items", "#", "item", n) for n in ("title", "description", "link"))}),
    "command": frozenset({("params", "*")}),
    "thumbnail": frozenset({("params", "*")}),
}
"""The values of each module that are only written: ``*`` is any name, ``#`` any index of a list."""


def may_be_secret(module: str, path: DataPath) -> bool:
    """Return whether a value of a task may be secret; values that name or select a target may not."""
    return any(_matches(path, allowed) for allowed in _ALLOWED.get(module, ()))


def _matches(path: DataPath, allowed: tuple[str, ...]) -> bool:
    return len(path) == len(allowed) and all(
        isinstance(part, int) if pattern == "#" else isinstance(part, str) and pattern in {"*", part}
        for part, pattern in zip(path, allowed, strict=True)
    )
