"""Frozen values to JSON and back, by their fields: old rows stay readable when a class gains a field with a default."""

from __future__ import annotations

import base64
import json
import types
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")


def dump(value: object) -> str:
    """Return a value as JSON text, fields that have their default left out."""
    return json.dumps(_encode(value), ensure_ascii=False, separators=(",", ":"))


def load(kind: type[T], text: str) -> T:
    """Return the value of class ``kind`` that :func:`dump` wrote; raises ``ValueError`` for anything else."""
    try:
        return cast("T", _decode(kind, json.loads(text)))
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"no {kind.__name__}: {error}") from error


def load_list(kind: type[T], text: str) -> tuple[T, ...]:
    """Return the values of a JSON list."""
    return tuple(load(kind, json.dumps(item)) for item in json.loads(text))


def _encode(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        told = ((field, getattr(value, field.name)) for field in fields(value))
        return {field.name: _encode(each) for field, each in told if each != field.default}
    if isinstance(value, (list, tuple)):
        return [_encode(each) for each in value]
    if isinstance(value, dict):
        return {str(name): _encode(each) for name, each in value.items()}
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return str(value) if isinstance(value, Fraction) else value


def _decode(kind: Any, value: Any) -> Any:
    origin = get_origin(kind)
    if origin in {types.UnionType, Union} and type(None) in get_args(kind):
        return None if value is None else _decode_some(kind, value)
    if origin is tuple:
        return _decode_tuple(get_args(kind), value)
    if isinstance(kind, type) and is_dataclass(kind):
        types_of = _types(kind)
        return kind(**{name: _decode(types_of[name], each) for name, each in value.items() if name in types_of})
    if kind is bytes:
        return base64.b64decode(value)
    return Fraction(value) if kind is Fraction else value


def _decode_some(kind: Any, value: Any) -> Any:
    """Decode an optional value; a union of more than one class (``Json``) is JSON already."""
    options = [option for option in get_args(kind) if option is not type(None)]
    return _decode(options[0], value) if len(options) == 1 else value


def _decode_tuple(parts: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    if len(parts) == 2 and parts[1] is Ellipsis:
        return tuple(_decode(parts[0], each) for each in value)
    return tuple(_decode(part, each) for part, each in zip(parts, value, strict=True))


@cache
def _types(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
