"""What one template may cost: steps, and the size of all that it reads and makes. Both are counted, not timed.

A template that is evaluated for another one, such as a variable, shares its budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any

from jinja2.exceptions import SecurityError

MAX_STEPS = 300_000
"""The most loop items, operators and calls: they take about a second."""
MAX_SIZE = 20_000_000
"""The most characters and items that its operators and calls may read and make together."""

_BUDGET: ContextVar[list[int] | None] = ContextVar("budget", default=None)
_SHALLOW = {
    "attr", "batch", "count", "d", "default", "dict2items", "first", "groupby", "items", "items2dict", "last", "length",
    "list", "map", "mandatory", "reject", "rejectattr", "reverse", "select", "selectattr", "slice", "sort", "unique",
    "zip", "zip_longest",
}  # fmt: skip
"""Filters that do not read into the items of a list, or do so with another filter."""


@contextmanager
def budget() -> Iterator[None]:
    """Count what is evaluated inside; raises ``SecurityError`` there if it is too much."""
    if _BUDGET.get() is not None:
        yield
        return
    token = _BUDGET.set([MAX_STEPS, MAX_SIZE])
    try:
        yield
    finally:
        _BUDGET.reset(token)


def spend(steps: int, size: int = 0) -> None:
    """Count steps and a size."""
    left = _BUDGET.get()
    if left is None:
        return
    left[0] -= steps
    left[1] -= size
    if left[0] < 0 or left[1] < 0:
        what = f"{MAX_STEPS:,} steps" if left[0] < 0 else f"{MAX_SIZE:,} characters and items in all"
        raise SecurityError(f"a template may take at most {what}: loop over less, or split it")


def each(items: Iterable[Any]) -> Iterator[Any]:
    """Yield the items of a loop, each of which is a step."""
    for item in items:
        spend(1)
        yield item


def size_of(value: Any) -> int:
    """Return the length of a text, list or mapping, without what is in its items; facts must not be read for it."""
    return len(value) if isinstance(value, str | list | tuple | bytes) or type(value) is dict else 0


def sized(value: Any) -> Any:
    """Return a value; count its length."""
    spend(0, size_of(value))
    return value


def weigh(value: Any) -> Any:
    """Return a value; count everything in it, as often as it is in it: characters once, items ten times."""
    spend(0, size_of(value))
    inner = [value] if isinstance(value, list | tuple) or type(value) is dict else []
    while inner:
        one = inner.pop()
        items = one.values() if isinstance(one, dict) else one
        spend(0, 10 * len(one))
        spend(0, sum(len(item) for item in items if isinstance(item, str)))
        inner.extend(item for item in items if isinstance(item, list | tuple) or type(item) is dict)
    return value


def metered(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter or test that counts what it reads and makes."""
    count = size_of if name in _SHALLOW else lambda value: size_of(weigh(value))

    @wraps(function)  # also keeps the attribute by which Jinja passes the environment or context
    def counted(*args: Any, **kwargs: Any) -> Any:
        spend(1, sum(map(count, (*args, *kwargs.values()))))
        return sized(function(*args, **kwargs))

    return counted
