"""Filters between values and texts: JSON, YAML, Base64."""

from __future__ import annotations

import base64
import json
from datetime import date
from fractions import Fraction
from typing import Any

from jinja2.exceptions import SecurityError

from msauto.documents.loader import dump_yaml, load_yaml, plain
from msauto.errors import InputError
from msauto.playbook.templates.registry import template_filter

MAX_INDENT = 16


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
def from_yaml(value: Any) -> Any:
    """The value of a YAML text.

    Example: 'a: no' | from_yaml
    """
    try:
        return plain(load_yaml(str(value).encode(), "from_yaml").data)
    except InputError as error:
        raise ValueError(f"invalid YAML: {error.problems[0].message}") from error


@template_filter
def b64encode(value: Any, encoding: str = "utf-8") -> str:
    """A text as Base64.

    Example: 'News' | b64encode
    """
    return base64.b64encode(str(value).encode(encoding)).decode()
