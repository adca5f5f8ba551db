"""Tests, as in ``when: asset.title is match("EP")``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msauto.documents.document import nearest
from msauto.playbook.templates.filters.lists import SeenValues, items_of
from msauto.playbook.templates.filters.numbers import bool_
from msauto.playbook.templates.filters.strings import pattern
from msauto.playbook.templates.registry import template_test

_KINDS = ("search", "match", "fullmatch")


@template_test
def regex(value: Any, find: str, ignorecase: bool = False, multiline: bool = False, match_type: str = "search") -> bool:
    """A regular expression matches; match_type is search, match or fullmatch.

    Example: 'EP 12' is regex('EP [0-9]+', match_type='fullmatch')
    """
    if match_type not in _KINDS:
        raise ValueError(f"unknown match_type {match_type!r}; {nearest(match_type, _KINDS)}")
    compiled = pattern(find, value, ignorecase, multiline)
    return getattr(compiled, match_type)(str(value)) is not None


@template_test
def match(value: Any, find: str, ignorecase: bool = False, multiline: bool = False) -> bool:
    """A regular expression matches at the beginning.

    Example: 'EP 12' is match('EP')
    """
    return regex(value, find, ignorecase, multiline, "match")


@template_test
def search(value: Any, find: str, ignorecase: bool = False, multiline: bool = False) -> bool:
    """A regular expression matches anywhere.

    Example: 'EP 12' is search('12$')
    """
    return regex(value, find, ignorecase, multiline)


_ORDER = {"==": (0,), "eq": (0,), "=": (0,), "!=": (-1, 1), "<>": (-1, 1), "ne": (-1, 1), "<": (-1,), "lt": (-1,)}
_ORDER |= {"<=": (-1, 0), "le": (-1, 0), ">": (1,), "gt": (1,), ">=": (0, 1), "ge": (0, 1)}


@template_test
def version(value: Any, other: Any, operator: str = "==") -> bool:
    """Compares versions: ==, !=, <, <=, >, >=.

    Example: '2.9.87' is version('2.10', '<')
    """
    if operator not in _ORDER:
        raise ValueError(f"unknown operator {operator!r}; {nearest(operator, _ORDER)}")
    left, right = _version_key(value), _version_key(other)
    length = max(len(left), len(right))
    one, two = (key + (0,) * (length - len(key)) for key in (left, right))
    return (one > two) - (one < two) in _ORDER[operator]


def _version_key(value: Any) -> tuple[int, ...]:
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})*", str(value)):
        raise ValueError(f"{str(value)[:40]!r} is not a valid version")
    return tuple(int(part) for part in str(value).split("."))


@template_test
def subset(value: Any, other: Any) -> bool:
    """All items are in the other list.

    Example: [1] is subset([1, 2])
    """
    there = SeenValues(items_of(other, "subset"))
    return all(each in there for each in items_of(value, "subset"))


@template_test
def superset(value: Any, other: Any) -> bool:
    """All items of the other list are in this one.

    Example: [1, 2] is superset([1])
    """
    return subset(other, value)


@template_test
def contains(value: Any, item: Any) -> bool:
    """A list, text or mapping contains it.

    The opposite of ``in``, for ``selectattr('tags', 'contains', 'news')``.

    Example: words is contains('news')
    """
    if isinstance(value, str | list | tuple | Mapping):
        return item in value
    raise TypeError(f"contains needs a list, a text or a mapping, not {type(value).__name__}")


@template_test
def truthy(value: Any, convert_bool: bool = False) -> bool:
    """Not empty; convert_bool=true reads words such as no.

    Example: 'no' is truthy(convert_bool=true)
    """
    return bool_(value) if convert_bool and isinstance(value, str) else bool(value)


@template_test
def falsy(value: Any, convert_bool: bool = False) -> bool:
    """False, empty or null.

    Example: '' is falsy
    """
    return not truthy(value, convert_bool)
