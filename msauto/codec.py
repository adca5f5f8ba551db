"""Frozen values to JSON and back, by their types."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from fractions import Fraction
from functools import lru_cache
from inspect import cleandoc
from typing import Any, NoReturn, TypeVar

import msgspec

from msauto.primitives.decimals import MOST_LONG, is_bounded, read_whole, show_cut

T = TypeVar("T")

_LONGEST = 100  # characters of a number
_ATTRIBUTE = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
"""One attribute in a docstring, and the words for it."""
RATE = r"^[1-9][0-9]{0,9}/[1-9][0-9]{0,9}$(?!\n)"
"""A rate as text: ``30000/1001``."""


def to_json(value: object) -> Any:
    """Return a value as JSON objects, tuples (for lists) and scalars."""
    return msgspec.to_builtins(value, enc_hook=_encode)


def from_json(kind: type[T], data: object) -> T:
    """Return the value of type ``kind``, strictly. A ``ValueError`` names the place: ``$.targets[0].kind``."""
    try:
        return msgspec.convert(data, kind, dec_hook=_decode)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


def parse_json(text: str | bytes, **more: Any) -> Any:
    """Return the value of a JSON text from outside, whose numbers are bounded. Raises ``ValueError``.

    >>> parse_json('{"frames": 250}')
    {'frames': 250}
    """
    return json.loads(text, parse_int=_whole, parse_float=_decimal, parse_constant=_refuse, **more)


def _whole(text: str) -> int:
    number = read_whole(text, MOST_LONG)
    return _refuse(text) if number is None else number


def _decimal(text: str) -> float:
    if len(text) > _LONGEST:
        _refuse(text)
    number = float(text)
    return number if is_bounded(number) else _refuse(text)


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"the number {show_cut(text)} is out of range")


def to_key(value: object) -> bytes:
    """Return bytes that are equal for equal values: JSON, unless a text is not valid Unicode."""
    try:
        return msgspec.json.encode(value, enc_hook=_encode, order="deterministic")
    except UnicodeEncodeError:
        return repr(value).encode("utf-8", "backslashreplace")


class LazyItems(list[Any]):
    """A list whose items become JSON objects one at a time, each when it is reached.

    A document of 100,000 targets is written without a copy of all of them.
    """

    def __init__(self, values: Iterable[object], convert: Callable[[Any], Any] = to_json) -> None:
        super().__init__(values)
        self._convert = convert

    def __iter__(self) -> Iterator[Any]:
        return map(self._convert, super().__iter__())

    def then(self, convert: Callable[[Any], Any]) -> LazyItems:
        """Return the list with a further step of conversion."""
        return LazyItems(super().__iter__(), lambda value: convert(self._convert(value)))


def dump(value: object) -> str:
    """Return a value as JSON text."""
    return msgspec.json.encode(value, enc_hook=_encode).decode("utf-8")


def load(kind: type[T], text: str) -> T:
    """Return the value of type ``kind`` that :func:`dump` wrote. Raises ``ValueError`` for anything else."""
    try:
        return msgspec.json.decode(text, type=kind, dec_hook=_decode)
    except msgspec.DecodeError as error:
        raise ValueError(f"not a valid {kind}: {error}") from None


def describe_types(kind: type) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the JSON Schema of a type, and those of the types in it by name.

    A property has the words for it under ``Attributes:`` in the docstring of its type.
    """
    (root,), parts = msgspec.json.schema_components(
        [kind], schema_hook=_schema, ref_template="#/$defs/{name}"
    )
    for part in parts.values():
        part.pop("title", None)
        _, _, attributes = cleandoc(part.pop("description", "")).partition("\nAttributes:\n")
        for name, words in _ATTRIBUTE.findall(attributes):
            described = part["properties"][name]
            described.pop("description", None)
            part["properties"][name] = {"description": " ".join(words.split()), **described}
    return root, parts


def schema_document(
    title: str, content: Mapping[str, Any], parts: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a JSON Schema as a document; ``parts`` are the types that its content refers to."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return {**head, **content, "$defs": dict(sorted(parts.items()))}


def json_text(value: object) -> str:
    """Return a date or a rate as JSON shows it to people: ``json`` calls it for values that it does not know."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Fraction):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _encode(value: object) -> object:
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}"
    if isinstance(value, str | int):  # a subclass, which msgspec does not know
        return str(value) if isinstance(value, str) else int(value)
    raise NotImplementedError(f"{type(value).__name__} has no JSON form")


def _decode(_: type, value: object) -> object:
    """Return a rate: the only type of ours that msgspec does not know."""
    return _rate(str(value))


@lru_cache(maxsize=64)
def _rate(text: str) -> Fraction:
    if not re.search(RATE, text):
        raise ValueError(f"invalid rate {text!r}")
    return Fraction(text)


def _schema(kind: type) -> dict[str, Any]:
    return {"type": "string", "pattern": RATE} if kind is Fraction else {}
