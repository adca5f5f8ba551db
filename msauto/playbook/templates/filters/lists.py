"""Filters of lists and mappings, as Ansible has them. Items need not be hashable: lists of mappings are everyday."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jinja2 import pass_environment
from jinja2.environment import Environment
from jinja2.exceptions import SecurityError
from jinja2.filters import make_attrgetter
from jinja2.runtime import Undefined

MAX_ITEMS = 100_000
"""The most items that ``product`` and its like may make."""


def items_of(value: Any, name: str) -> list[Any]:
    """Return a list; ``TypeError`` for what is none (a text would fall into its letters)."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"{name} needs a list, not {type(value).__name__}")
    return list(value)


class SeenValues:
    """Remembers values, hashable ones in constant time."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self._quick: set[Any] = set()
        self._slow: list[Any] = []
        for value in values:
            self.add(value)

    def __contains__(self, value: object) -> bool:
        try:
            return value in self._quick
        except TypeError:
            return value in self._slow

    def add(self, value: Any) -> bool:
        """Remember a value; tell whether it is new."""
        if value in self:
            return False
        try:
            self._quick.add(value)
        except TypeError:
            self._slow.append(value)
        return True


def _unique(values: Iterable[Any]) -> list[Any]:
    seen = SeenValues()
    return [value for value in values if seen.add(value)]


@pass_environment
def _unique_filter(
    environment: Environment, value: Any, case_sensitive: bool = True, attribute: Any = None
) -> list[Any]:
    """As in Ansible: ``a`` and ``A`` are two, unlike in Jinja."""
    getter = make_attrgetter(environment, attribute)
    seen = SeenValues()

    def key(item: Any) -> Any:
        found = getter(item)
        return found.lower() if isinstance(found, str) and not case_sensitive else found

    return [item for item in items_of(value, "unique") if seen.add(key(item))]


def _union(first: Any, second: Any) -> list[Any]:
    return _unique([*items_of(first, "union"), *items_of(second, "union")])


def _intersect(first: Any, second: Any) -> list[Any]:
    other = SeenValues(items_of(second, "intersect"))
    return [each for each in _unique(items_of(first, "intersect")) if each in other]


def _difference(first: Any, second: Any) -> list[Any]:
    other = SeenValues(items_of(second, "difference"))
    return [each for each in _unique(items_of(first, "difference")) if each not in other]


def _symmetric_difference(first: Any, second: Any) -> list[Any]:
    return [*_difference(first, second), *_difference(second, first)]


def _flatten(value: Any, levels: int | None = None, skip_nulls: bool = True) -> list[Any]:
    found: list[Any] = []
    for each in items_of(value, "flatten"):
        if isinstance(each, list | tuple) and (levels is None or levels > 0):
            found.extend(_flatten(each, None if levels is None else levels - 1, skip_nulls))
        elif not (skip_nulls and each in (None, "None", "null")):
            found.append(each)
    return found


def _bounded(size: int, name: str) -> None:
    if size > MAX_ITEMS:
        raise SecurityError(f"{name} makes more than {MAX_ITEMS:,} items")


def _product(*lists: Any) -> list[list[Any]]:
    pools = [items_of(each, "product") for each in lists]
    _bounded(math.prod(map(len, pools)), "product")
    return [list(each) for each in itertools.product(*pools)]


def _combinations(value: Any, size: int) -> list[list[Any]]:
    pool = items_of(value, "combinations")
    _bounded(math.comb(len(pool), size), "combinations")
    return [list(each) for each in itertools.combinations(pool, size)]


def _permutations(value: Any, size: int | None = None) -> list[list[Any]]:
    pool = items_of(value, "permutations")
    _bounded(len(pool), "permutations")
    _bounded(math.perm(len(pool), size) if len(pool) < MAX_ITEMS else 0, "permutations")
    return [list(each) for each in itertools.permutations(pool, size)]


def _zip(*lists: Any) -> list[list[Any]]:
    return [list(each) for each in zip(*(items_of(each, "zip") for each in lists), strict=False)]


def _zip_longest(*lists: Any, fillvalue: Any = None) -> list[list[Any]]:
    pools = [items_of(each, "zip_longest") for each in lists]
    return [list(each) for each in itertools.zip_longest(*pools, fillvalue=fillvalue)]


# Mappings -------------------------------------------------------------------------------------------------------


def _combine(first: Any, *others: Any, recursive: bool = False, list_merge: str = "replace") -> dict[str, Any]:
    if list_merge not in _LIST_MERGES:
        raise ValueError(f"list_merge knows no {list_merge!r}: {', '.join(_LIST_MERGES)}")
    result: dict[str, Any] = {}
    for each in _flatten([first, *others]):
        if not isinstance(each, Mapping):
            raise TypeError(f"combine needs mappings, not {type(each).__name__}")
        result = _combined(result, each, recursive, _LIST_MERGES[list_merge])
    return result


_LIST_MERGES: dict[str, Callable[[list[Any], list[Any]], list[Any]]] = {
    "replace": lambda old, new: new,  # noqa: ARG005 - the other choices use it
    "keep": lambda old, new: old,  # noqa: ARG005
    "append": lambda old, new: [*old, *new],
    "prepend": lambda old, new: [*new, *old],
    "append_rp": lambda old, new: [*(each for each in old if each not in new), *new],
    "prepend_rp": lambda old, new: [*new, *(each for each in old if each not in new)],
}


def _combined(
    left: Mapping[str, Any],
    right: Mapping[str, Any],
    recursive: bool,
    merge: Callable[[list[Any], list[Any]], list[Any]],
) -> dict[str, Any]:
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


def _dict2items(value: Any, key_name: str = "key", value_name: str = "value") -> list[dict[str, Any]]:
    if not isinstance(value, Mapping):
        raise TypeError("dict2items needs a mapping")
    return [{key_name: key, value_name: each} for key, each in value.items()]


def _items2dict(value: Any, key_name: str = "key", value_name: str = "value") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in items_of(value, "items2dict"):
        if not isinstance(each, Mapping) or not {key_name, value_name} <= each.keys():
            raise TypeError(f"items2dict needs mappings with {key_name!r} and {value_name!r}")
        found[str(each[key_name])] = each[value_name]
    return found


@pass_environment
def _extract(environment: Environment, key: Any, container: Any, morekeys: Any = None) -> Any:
    """``'a' | extract(map)``: made for ``map('extract', map)``."""
    found = environment.getitem(container, key)
    for each in morekeys if isinstance(morekeys, list) else [] if morekeys is None else [morekeys]:
        found = environment.getitem(found, each)
    return found


def _subelements(value: Any, path: Any, skip_missing: bool = False) -> list[list[Any]]:
    """Each element with each item of a list inside it, as pairs."""
    steps = list(path) if isinstance(path, list) else str(path).split(".")
    found: list[list[Any]] = []
    for element in value.values() if isinstance(value, Mapping) else items_of(value, "subelements"):
        inner = element
        for step in steps:
            inner = inner.get(step) if isinstance(inner, Mapping) else None
        if inner is None and skip_missing:
            continue
        if not isinstance(inner, list):
            raise TypeError(f"subelements finds no list {'.'.join(map(str, steps))!r} in an element")
        found.extend([element, item] for item in inner)
    return found


def _mandatory(value: Any, msg: str | None = None) -> Any:
    if isinstance(value, Undefined):
        if msg:
            raise ValueError(str(msg))
        str(value)  # raises, with the name
    return value


def _ternary(value: Any, yes: Any, no: Any, none: Any = None) -> Any:
    return none if value is None and none is not None else (yes if value else no)


LIST_FILTERS: dict[str, Callable[..., Any]] = {
    "combinations": _combinations,
    "combine": _combine,
    "dict2items": _dict2items,
    "difference": _difference,
    "extract": _extract,
    "flatten": _flatten,
    "intersect": _intersect,
    "items2dict": _items2dict,
    "mandatory": _mandatory,
    "permutations": _permutations,
    "product": _product,
    "subelements": _subelements,
    "symmetric_difference": _symmetric_difference,
    "ternary": _ternary,
    "union": _union,
    "unique": _unique_filter,
    "zip": _zip,
    "zip_longest": _zip_longest,
}
