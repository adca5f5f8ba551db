"""Filters between values and texts: JSON, YAML, Base64, hashes."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from datetime import date
from fractions import Fraction
from typing import Any

from jinja2.exceptions import SecurityError

from msauto.errors import InputError
from msauto.playbook.templates.registry import template_filter
from msauto.playbook.yaml.document import nearest
from msauto.playbook.yaml.loader import dump_yaml, load_yaml, plain

MAX_INDENT = 16
_UUID = uuid.UUID("361E6D51-FAEC-444A-9079-341386DA8E2E")  # Ansible's namespace: to_uuid gives the same as there


def _json_value(value: object) -> object:
    """Convert a value that JSON does not know."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Fraction):
        return str(value)
    raise TypeError(f"JSON cannot represent {type(value).__name__}")


@template_filter
def to_json(value: Any, indent: int | None = None, sort_keys: bool = False) -> str:
    """A value as JSON.

    Example: {'a': [1]} | to_json
    """
    if indent is not None and indent > MAX_INDENT:
        raise SecurityError(f"the indentation is at most {MAX_INDENT}")
    return json.dumps(plain(value), ensure_ascii=False, indent=indent, sort_keys=sort_keys, default=_json_value)


@template_filter
def tojson(value: Any, indent: int | None = None, sort_keys: bool = False) -> str:
    """Another name of to_json.

    Example: {'a': true} | tojson
    """
    return to_json(value, indent, sort_keys)


@template_filter
def to_nice_json(value: Any, indent: int = 4, sort_keys: bool = True) -> str:
    """A value as JSON, indented and sorted.

    Example: {'a': 1} | to_nice_json(indent=2)
    """
    return to_json(value, indent, sort_keys)


@template_filter
def from_json(value: Any) -> Any:
    """The value of a JSON text.

    Example: '{"a": [1]}' | from_json
    """
    try:
        return json.loads(str(value))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"invalid JSON: {error}") from error


@template_filter
def to_yaml(value: Any, indent: int = 2, sort_keys: bool = False) -> str:
    """A value as YAML.

    Example: words | to_yaml
    """
    if not 2 <= indent <= MAX_INDENT:
        raise SecurityError(f"the indentation of YAML is 2 to {MAX_INDENT}")
    return dump_yaml(value, indent=indent, sort_keys=sort_keys)


@template_filter
def to_nice_yaml(value: Any, indent: int = 2, sort_keys: bool = True) -> str:
    """A value as YAML, sorted.

    Example: {'b': 1, 'a': 2} | to_nice_yaml
    """
    return to_yaml(value, indent, sort_keys)


@template_filter
def from_yaml(value: Any) -> Any:
    """The value of a YAML text.

    Example: 'a: no' | from_yaml
    """
    try:
        return plain(load_yaml(str(value).encode(), "from_yaml").data)
    except InputError as error:
        raise ValueError(f"invalid YAML: {error.problems[0].message}") from error


@template_filter
def hash_(value: Any, kind: str = "sha1") -> str:
    """A digest of a text: sha1, md5, sha256, sha512, …

    Example: 'News' | hash('md5')
    """
    if kind not in hashlib.algorithms_guaranteed or kind.startswith("shake"):
        raise ValueError(f"unknown hash {kind!r}; {nearest(kind, ['md5', 'sha1', 'sha256', 'sha512'])}")
    return hashlib.new(kind, str(value).encode(), usedforsecurity=False).hexdigest()


@template_filter
def sha1(value: Any) -> str:
    """The SHA-1 of a text.

    Example: 'News' | sha1
    """
    return hash_(value)


@template_filter
def checksum(value: Any) -> str:
    """The SHA-1 of a text.

    Example: 'News' | checksum
    """
    return hash_(value)


@template_filter
def md5(value: Any) -> str:
    """The MD5 of a text.

    Example: 'News' | md5
    """
    return hash_(value, "md5")


@template_filter
def b64encode(value: Any, encoding: str = "utf-8") -> str:
    """A text as Base64.

    Example: 'News' | b64encode
    """
    return base64.b64encode(str(value).encode(encoding)).decode()


@template_filter
def b64decode(value: Any, encoding: str = "utf-8") -> str:
    """The text of a Base64 text.

    Example: 'TmV3cw==' | b64decode
    """
    try:
        return base64.b64decode(str(value), validate=True).decode(encoding)
    except (ValueError, LookupError) as error:
        raise ValueError("this is not the Base64 of a text") from error


@template_filter
def to_uuid(value: Any) -> str:
    """A UUID, always the same for the same text.

    Example: 'News' | to_uuid
    """
    return str(uuid.uuid5(_UUID, str(value)))
