"""Texts that are marked as secret, in plain data: find them, and check where they are used."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from msauto.errors import MsautoError
from msauto.model.facts import XmpByName
from msauto.model.fields import LINK_FIELDS, MARKER_ATTRIBUTES, SEGMENT_ATTRIBUTES
from msauto.secrets.redaction import HIDDEN, SHORTEST, can_redact

TAG = "!secret"
DataPath = tuple[str | int, ...]


NAMED: Final = "{{ lookup('secret', "
"""How the template begins that ``!secret {name: NAME}`` is short for."""


class MarkedText(str):
    """A text that is secret, or that was made with a secret."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(HIDDEN)


_GROUPS: tuple[Any, ...] = (list, tuple, set, frozenset, type({}.values()), type({}.items()))


def holds_secret(value: Any) -> bool:
    """Return whether a value is a secret text, or contains one."""
    if isinstance(value, MarkedText):
        return True
    # Reading that one would request it.
    if isinstance(value, dict) and not isinstance(value, XmpByName):
        value = (*value, *value.values())
    return isinstance(value, _GROUPS) and any(map(holds_secret, value))


def leaves(data: Any, kind: type = object) -> list[tuple[DataPath, Any]]:
    """Return the values of a kind in plain data that are neither mappings nor lists, each after its path."""
    found: list[tuple[DataPath, Any]] = []
    waiting: list[tuple[DataPath, Any]] = [((), data)]
    while waiting:
        path, data = waiting.pop()
        if isinstance(data, dict):
            for part in reversed(data):
                waiting.append(((*path, part), data[part]))
        elif isinstance(data, list):
            for index in reversed(range(len(data))):
                waiting.append(((*path, index), data[index]))
        elif isinstance(data, kind):
            found.append((path, data))
    return found


# Where a secret is allowed --------------------------------------------------------------------------------------


def why_too_short(text: str) -> tuple[str, str]:
    """Return why a text cannot be redacted, as message and remedy, without showing it."""
    if not text.strip():
        return "the secret is empty", "set its value"
    return (
        f"a secret must have at least {SHORTEST} characters",
        "use a longer one: a shorter one cannot be redacted",
    )


def misplaced_secrets(
    data: Any, is_allowed: Callable[[DataPath], bool]
) -> list[tuple[DataPath, str, str]]:
    """Return the path of each secret that cannot be redacted where it is used, with message and remedy."""
    misplaced = []
    for path, text in leaves(data, MarkedText):
        if not is_allowed(path):
            misplaced.append((path, NOT_ALLOWED, ALLOWED))
        elif not can_redact(text) and text != HIDDEN:
            why = f"the secret gives fewer than {SHORTEST} characters here, and cannot be redacted"
            misplaced.append((path, why, _SEND))
    return misplaced


NOT_ALLOWED = "a secret is not allowed here: this value is shown in plans, logs and the ledger"
ALLOWED = (
    "use secrets only in texts that are written: fields, xmp, titles of segments, rss text, params"
)
_SEND = "send the secret itself, or a longer text"


def _names(fields: Iterable[Any]) -> str:
    names = [field.name for field in fields if field.may_be_secret]
    return f"(?:{'|'.join(names)})"


_ALLOWED: Mapping[str, str] = {
    "asset": (
        rf"fields\n{_names(LINK_FIELDS)}|xmp\n[^\n]+(?:\n\d+)?|segmentation\ntitle"
        rf"|segments\n\d+\n{_names(SEGMENT_ATTRIBUTES)}|markers\n\d+\n{_names(MARKER_ATTRIBUTES)}"
    ),
    "rss": r"items\n\d+\n(?:text|item\n(?:title|description|link))",
    "command": r"params\n[^\n]+",
    "thumbnail": r"params\n[^\n]+",
}
"""The values of each module that are only written, as paths whose parts are lines."""


def may_be_secret(module: str, path: DataPath) -> bool:
    """Return whether a value of a task may be secret; values that name or select a target may not."""
    return (
        module in _ALLOWED and re.fullmatch(_ALLOWED[module], "\n".join(map(str, path))) is not None
    )


LARGEST: Final = 65536
"""The largest secret, in bytes."""


def secret_in_file(path: Path, shown: str) -> str:
    """Return the secret that a file contains; ``shown`` is its name in errors. Raises ``MsautoError`` without it."""
    what = f"the file {shown!r}"
    remedy = (
        "use a file that contains only the secret; its path starts beside the file that names it"
    )
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "its name is not valid"
        raise MsautoError(f"cannot read {what}: {why}", remedy=remedy) from None
    return secret_in(data, what, remedy)


def secret_in(data: bytes, what: str, remedy: str) -> str:
    """Return the secret of a file or a program, without the line end. Raises ``MsautoError`` if it cannot be one."""
    if len(data) > LARGEST:
        raise MsautoError(f"{what} is too large for a secret", remedy=remedy)
    try:
        text = data.decode("utf-8-sig").removesuffix("\n").removesuffix("\r")
    except ValueError:
        raise MsautoError(f"{what} is not UTF-8 text", remedy=remedy) from None
    if not text:
        raise MsautoError(f"{what} is empty", remedy=remedy)
    return text


def secret_in_keyring(service: str, user: str) -> str:
    """Return the secret of a user in the system keyring. Raises ``MsautoError`` without it."""
    try:
        text = import_module("keyring").get_password(service, user)
    except ImportError:
        remedy = "pip install keyring, or use the environment or a file"
        raise MsautoError("the package keyring is not installed", remedy=remedy) from None
    except Exception as error:  # noqa: BLE001 - each backend raises errors of its own
        why = type(error).__name__
        raise MsautoError(
            f"cannot read the system keyring ({why})", remedy="unlock it, or use a file"
        ) from None
    if not text:
        remedy = f"keyring set {service} {user}"
        raise MsautoError(
            f"the system keyring has no secret of {user!r} for {service!r}", remedy=remedy
        )
    return str(text)
