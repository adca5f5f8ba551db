"""Texts that are marked as secret, in plain data: find them, and check where they are used."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msauto.interface.fields import LINK_FIELDS, MARKER_ATTRIBUTES, SEGMENT_ATTRIBUTES
from msauto.model.facts import XmpByName
from msauto.secrets.redaction import HIDDEN, SHORTEST, can_redact

TAG = "!secret"
DataPath = tuple[str | int, ...]


class MarkedText(str):
    """A text that is secret, or that was made with a secret."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(HIDDEN)


_GROUPS: tuple[Any, ...] = (list, tuple, set, frozenset, type({}.values()), type({}.items()))


def holds_secret(value: Any) -> bool:
    """Return whether a value is a secret text, or contains one."""
    if isinstance(value, dict) and not isinstance(value, XmpByName):  # reading that one would request it
        value = (*value, *value.values())
    return isinstance(value, MarkedText) or (isinstance(value, _GROUPS) and any(map(holds_secret, value)))


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


def secret_paths(data: Any) -> Iterator[tuple[DataPath, MarkedText]]:
    """Yield each secret text in plain data with the path to it."""
    return ((path, leaf) for path, leaf in leaves(data) if isinstance(leaf, MarkedText))


# Where a secret is allowed --------------------------------------------------------------------------------------


def why_too_short(text: str) -> tuple[str, str]:
    """Return why a text cannot be redacted, as message and remedy, without showing it."""
    if not text.strip():
        return "the secret is empty", "set its value"
    return f"a secret must have at least {SHORTEST} characters", "use a longer one: a shorter one cannot be redacted"


def misplaced_secrets(data: Any, is_allowed: Callable[[DataPath], bool]) -> Iterable[tuple[DataPath, str, str]]:
    """Yield the path of each secret that cannot be redacted where it is used, with message and remedy."""
    for path, text in secret_paths(data):
        if not is_allowed(path):
            yield path, NOT_ALLOWED, ALLOWED
        elif not can_redact(text) and text != HIDDEN:
            yield path, f"the secret gives fewer than {SHORTEST} characters here, and cannot be redacted", _SEND


NOT_ALLOWED = "a secret is not allowed here: this value is shown in plans, logs and the ledger"
ALLOWED = "use secrets only in texts that are written: fields, xmp, titles of segments, rss text, params"
_SEND = "send the secret itself, or a longer text"


def _names(fields: Iterable[Any]) -> str:
    return f"(?:{'|'.join(each.name for each in fields if each.may_be_secret)})"


_ALLOWED: Mapping[str, re.Pattern[str]] = {
    "asset": re.compile(
        rf"fields\n{_names(LINK_FIELDS)}|xmp\n[^\n]+(?:\n\d+)?|segmentation\ntitle"
        rf"|segments\n\d+\n{_names(SEGMENT_ATTRIBUTES)}|markers\n\d+\n{_names(MARKER_ATTRIBUTES)}"
    ),
    "rss": re.compile(r"items\n\d+\n(?:text|item\n(?:title|description|link))"),
    "command": re.compile(r"params\n[^\n]+"),
    "thumbnail": re.compile(r"params\n[^\n]+"),
}
"""The values of each module that are only written, as paths whose parts are lines."""


def may_be_secret(module: str, path: DataPath) -> bool:
    """Return whether a value of a task may be secret; values that name or select a target may not."""
    return module in _ALLOWED and _ALLOWED[module].fullmatch("\n".join(map(str, path))) is not None
