"""Filters between values and texts: JSON, YAML, base 64, hashes, names of types."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from collections.abc import Callable
from datetime import date
from fractions import Fraction
from typing import Any

from jinja2.exceptions import SecurityError

from msauto.errors import InputError
from msauto.playbook.yaml.document import nearest
from msauto.playbook.yaml.loader import dump_yaml, load_yaml, plain

MAX_INDENT = 16
_UUID = uuid.UUID("361E6D51-FAEC-444A-9079-341386DA8E2E")  # Ansible's own, so that to_uuid gives what it gives there


def _told(value: object) -> object:
    """Make a value that JSON does not know one that it knows."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Fraction):
        return str(value)
    raise TypeError(f"{type(value).__name__} is no value that JSON could hold")


def _to_json(value: Any, indent: int | None = None, sort_keys: bool = False) -> str:
    if indent is not None and indent > MAX_INDENT:
        raise SecurityError("the indentation is too wide")
    return json.dumps(plain(value), ensure_ascii=False, indent=indent, sort_keys=sort_keys, default=_told)


def _to_nice_json(value: Any, indent: int = 4, sort_keys: bool = True) -> str:
    return _to_json(value, indent, sort_keys)


def _from_json(value: Any) -> Any:
    try:
        return json.loads(str(value))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"this is no JSON: {error}") from error


def _to_nice_yaml(value: Any, indent: int = 2, sort_keys: bool = True) -> str:
    if not 2 <= indent <= MAX_INDENT:
        raise SecurityError(f"the indentation of YAML is 2 to {MAX_INDENT}")
    return dump_yaml(value, indent=indent, sort_keys=sort_keys)


def _from_yaml(value: Any) -> Any:
    try:
        return plain(load_yaml(str(value).encode(), "from_yaml").data)
    except InputError as error:
        raise ValueError(f"this is no YAML: {error.problems[0].message}") from error


def _hash(value: Any, kind: str = "sha1") -> str:
    if kind not in hashlib.algorithms_guaranteed or kind.startswith("shake"):
        raise ValueError(f"there is no hash {kind!r}; {nearest(kind, ['md5', 'sha1', 'sha256', 'sha512'])}")
    return hashlib.new(kind, str(value).encode(), usedforsecurity=False).hexdigest()


def _b64decode(value: Any, encoding: str = "utf-8") -> str:
    try:
        return base64.b64decode(str(value), validate=True).decode(encoding)
    except (ValueError, LookupError) as error:
        raise ValueError("this is no base 64 of a text") from error


def _type_debug(value: Any) -> str:
    """The type as Python names it; a number or text that remembers its writing is just that."""
    return next((kind.__name__ for kind in (bool, int, float, str) if isinstance(value, kind)), type(value).__name__)


DATA_FILTERS: dict[str, Callable[..., Any]] = {
    "b64decode": _b64decode,
    "b64encode": lambda value, encoding="utf-8": base64.b64encode(str(value).encode(encoding)).decode(),
    "checksum": lambda value: _hash(value, "sha1"),
    "from_json": _from_json,
    "from_yaml": _from_yaml,
    "hash": _hash,
    "md5": lambda value: _hash(value, "md5"),
    "sha1": lambda value: _hash(value, "sha1"),
    "to_json": _to_json,
    "to_nice_json": _to_nice_json,
    "to_nice_yaml": _to_nice_yaml,
    "to_uuid": lambda value: str(uuid.uuid5(_UUID, str(value))),
    "to_yaml": dump_yaml,
    "tojson": _to_json,
    "type_debug": _type_debug,
}
