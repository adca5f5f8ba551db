"""Tests, as in ``when: asset.title is match("EP")``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from msauto.playbook.templates.filters.lists import SeenValues, items_of
from msauto.playbook.templates.filters.numbers import to_bool
from msauto.playbook.templates.filters.strings import pattern
from msauto.playbook.yaml.document import nearest

_KINDS = {"search": "search", "match": "match", "fullmatch": "fullmatch"}


def _regex(
    value: Any, find: str, ignorecase: bool = False, multiline: bool = False, match_type: str = "search"
) -> bool:
    if match_type not in _KINDS:
        raise ValueError(f"regex knows no {match_type!r}; {nearest(match_type, _KINDS)}")
    compiled = pattern(find, value, ignorecase, multiline)
    return getattr(compiled, match_type)(str(value)) is not None


def _match(value: Any, find: str, ignorecase: bool = False, multiline: bool = False) -> bool:
    return _regex(value, find, ignorecase, multiline, "match")


def _search(value: Any, find: str, ignorecase: bool = False, multiline: bool = False) -> bool:
    return _regex(value, find, ignorecase, multiline)


_SIGNS = {"==": (0,), "eq": (0,), "=": (0,), "!=": (-1, 1), "<>": (-1, 1), "ne": (-1, 1), "<": (-1,), "lt": (-1,)}
_SIGNS |= {"<=": (-1, 0), "le": (-1, 0), ">": (1,), "gt": (1,), ">=": (0, 1), "ge": (0, 1)}


def _version(value: Any, other: Any, operator: str = "==") -> bool:
    if operator not in _SIGNS:
        raise ValueError(f"version knows no {operator!r}; {nearest(operator, _SIGNS)}")
    left, right = _version_key(value), _version_key(other)
    length = max(len(left), len(right))
    one, two = (key + (0,) * (length - len(key)) for key in (left, right))
    return (one > two) - (one < two) in _SIGNS[operator]


def _version_key(value: Any) -> tuple[int, ...]:
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})*", str(value)):
        raise ValueError(f"{str(value)[:40]!r} is no version")
    return tuple(int(part) for part in str(value).split("."))


def _subset(value: Any, other: Any) -> bool:
    there = SeenValues(items_of(other, "subset"))
    return all(each in there for each in items_of(value, "subset"))


def _contains(value: Any, item: Any) -> bool:
    """The other way round than ``in``: made for ``selectattr('tags', 'contains', 'news')``."""
    if isinstance(value, str | list | tuple | Mapping):
        return item in value
    raise TypeError(f"contains needs a list, a text or a mapping, not {type(value).__name__}")


def _truthy(value: Any, convert_bool: bool = False) -> bool:
    return to_bool(value) if convert_bool and isinstance(value, str) else bool(value)


def _all(value: Any) -> bool:
    return all(items_of(value, "all"))


def _any(value: Any) -> bool:
    return any(items_of(value, "any"))


TESTS: dict[str, Callable[..., bool]] = {
    "all": _all,
    "any": _any,
    "contains": _contains,
    "falsy": lambda value, convert_bool=False: not _truthy(value, convert_bool),
    "match": _match,
    "nan": lambda value: isinstance(value, float) and value != value,
    "regex": _regex,
    "search": _search,
    "subset": _subset,
    "issubset": _subset,
    "superset": lambda value, other: _subset(other, value),
    "issuperset": lambda value, other: _subset(other, value),
    "truthy": _truthy,
    "version": _version,
    "version_compare": _version,
}
