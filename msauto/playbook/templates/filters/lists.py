"""Filters of lists and mappings, as in Ansible. Items need not be hashable: lists of mappings are common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jinja2 import pass_environment
from jinja2.environment import Environment
from jinja2.filters import make_attrgetter
from jinja2.runtime import Undefined

from msauto.playbook.templates.registry import template_filter


def items_of(value: Any, name: str) -> list[Any]:
    """Return a list; raises ``TypeError`` for anything else (a text would be a list of its letters)."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"{name} needs a list, not {type(value).__name__}")
    return list(value)


class SeenValues:
    """A set of values, in which hashable ones are found in constant time."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self._hashable: set[Any] = set()
        self._others: list[Any] = []
        for value in values:
            self.add(value)

    def __contains__(self, value: object) -> bool:
        try:
            return value in self._hashable
        except TypeError:
            return value in self._others

    def add(self, value: Any) -> bool:
        """Add a value; return whether it is new."""
        if value in self:
            return False
        try:
            self._hashable.add(value)
        except TypeError:
            self._others.append(value)
        return True


def _unique(values: Iterable[Any]) -> list[Any]:
    seen = SeenValues()
    return [value for value in values if seen.add(value)]


@template_filter
@pass_environment
def unique(environment: Environment, value: Any, case_sensitive: bool = True, attribute: Any = None) -> list[Any]:
    """Each item once; case-sensitive.

    Example: ['a', 'A', 'a'] | unique
    """
    getter = make_attrgetter(environment, attribute)
    seen = SeenValues()

    def key(item: Any) -> Any:
        found = getter(item)
        return found.lower() if isinstance(found, str) and not case_sensitive else found

    return [item for item in items_of(value, "unique") if seen.add(key(item))]


@template_filter
def union(first: Any, second: Any) -> list[Any]:
    """The items of either list.

    Example: [1, 2] | union([2, 3])
    """
    return _unique([*items_of(first, "union"), *items_of(second, "union")])


@template_filter
def intersect(first: Any, second: Any) -> list[Any]:
    """The items of both lists.

    Example: [1, 2] | intersect([2, 3])
    """
    other = SeenValues(items_of(second, "intersect"))
    return [each for each in _unique(items_of(first, "intersect")) if each in other]


@template_filter
def difference(first: Any, second: Any) -> list[Any]:
    """The items of the first list that are not in the second.

    Example: [1, 2, 3] | difference([2])
    """
    other = SeenValues(items_of(second, "difference"))
    return [each for each in _unique(items_of(first, "difference")) if each not in other]


@template_filter
def flatten(value: Any, levels: int | None = None, skip_nulls: bool = True) -> list[Any]:
    """Nested lists as one list; levels=1 flattens one level.

    Example: [1, [2, [3]]] | flatten(levels=1)
    """
    found: list[Any] = []
    for each in items_of(value, "flatten"):
        if isinstance(each, list | tuple) and (levels is None or levels > 0):
            found.extend(flatten(each, None if levels is None else levels - 1, skip_nulls))
        elif not (skip_nulls and each in (None, "None", "null")):
            found.append(each)
    return found


@template_filter
def zip_(*lists: Any) -> list[list[Any]]:
    """Lists side by side, as long as the shortest.

    Example: words | zip([1, 2])
    """
    return [list(each) for each in zip(*(items_of(each, "zip") for each in lists), strict=False)]


# Mappings -------------------------------------------------------------------------------------------------------

_ListMerge = Callable[[list[Any], list[Any]], list[Any]]
_LIST_MERGES: dict[str, _ListMerge] = {
    "replace": lambda old, new: new,  # noqa: ARG005 - the other choices use it
    "keep": lambda old, new: old,  # noqa: ARG005
    "append": lambda old, new: [*old, *new],
    "prepend": lambda old, new: [*new, *old],
    "append_rp": lambda old, new: [*(each for each in old if each not in new), *new],
    "prepend_rp": lambda old, new: [*new, *(each for each in old if each not in new)],
}


@template_filter
def combine(first: Any, *others: Any, recursive: bool = False, list_merge: str = "replace") -> dict[str, Any]:
    """Merged mappings, the later over the earlier; recursive=true merges inner ones; list_merge='append' joins lists.

    Example: {'a': {'x': 1}} | combine({'a': {'y': 2}}, recursive=true)
    """
    if list_merge not in _LIST_MERGES:
        raise ValueError(f"unknown list_merge {list_merge!r}: {', '.join(_LIST_MERGES)}")
    result: dict[str, Any] = {}
    for each in flatten([first, *others]):
        if not isinstance(each, Mapping):
            raise TypeError(f"combine needs mappings, not {type(each).__name__}")
        result = _combined(result, each, recursive, _LIST_MERGES[list_merge])
    return result


def _combined(left: Mapping[str, Any], right: Mapping[str, Any], recursive: bool, merge: _ListMerge) -> dict[str, Any]:
    result = dict(left)
    for key, value in right.items():
        old = result.get(key)
        if recursive and isinstance(value, Mapping) and isinstance(old, Mapping):
            result[key] = _combined(old, value, recursive, merge)
        elif isinstance(value, list) and isinstance(old, list):
            result[key] = merge(old, value)
        else:
            result[key] = value
    return result


@template_filter
def dict2items(value: Any, key_name: str = "key", value_name: str = "value") -> list[dict[str, Any]]:
    """A mapping as a list of key and value.

    Example: {'a': 1} | dict2items
    """
    if not isinstance(value, Mapping):
        raise TypeError("dict2items needs a mapping")
    return [{key_name: key, value_name: each} for key, each in value.items()]


@template_filter
def items2dict(value: Any, key_name: str = "key", value_name: str = "value") -> dict[str, Any]:
    """A list of key and value as a mapping.

    Example: [{'key': 'a', 'value': 1}] | items2dict
    """
    found: dict[str, Any] = {}
    for each in items_of(value, "items2dict"):
        if not isinstance(each, Mapping) or not {key_name, value_name} <= each.keys():
            raise TypeError(f"items2dict needs mappings with {key_name!r} and {value_name!r}")
        found[str(each[key_name])] = each[value_name]
    return found


# Choices --------------------------------------------------------------------------------------------------------


@template_filter
def mandatory(value: Any, msg: str | None = None) -> Any:
    """The value, or an error if it is undefined.

    Example: database | mandatory
    """
    if isinstance(value, Undefined):
        if msg:
            raise ValueError(str(msg))
        str(value)  # raises, with the name
    return value


@template_filter
def ternary(value: Any, yes: Any, no: Any, none: Any = None) -> Any:
    """One value or another, by a condition.

    Example: (1 > 2) | ternary('yes', 'no')
    """
    return none if value is None and none is not None else (yes if value else no)
