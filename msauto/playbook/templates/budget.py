"""What one template may cost: seconds of the processor, and the size of what it makes.

A template that is evaluated for another one, such as a variable, shares its budget. Lists may share items, so that a
value may be far larger than its memory. Its size counts an item as often as it is in it. What a template makes has a
largest size, so that no operation takes long, and the clock is read between two.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, MappingView, Sequence
from contextvars import ContextVar, copy_context
from fractions import Fraction
from typing import Any

from msauto.playbook.templates.names import TemplateFunctionError

MAX_SECONDS = 2.0
"""The most time that a template may take of the processor, however busy the machine is."""
MAX_MADE = 20_000_000
"""The most characters that a template may make in all; an item of a list counts as 50."""
MAX_LENGTH = 1_000_000
"""The longest text that a template may make."""
MAX_TEXT = 4_000_000
"""The largest value that may become text; in sizes of values, an item counts as 20 characters."""
MAX_VALUE = 100_000_000
"""The largest value that a template may make: a table of some 100,000 rows."""
MAX_DEPTH = 60
"""The deepest list in lists."""
MAX_BITS = 4096
"""The largest number."""


_LAZY: tuple[Any, ...] = (Iterator, MappingView)


class Budget:
    """What is left for one template."""

    def __init__(self) -> None:
        self.end = time.monotonic() + MAX_SECONDS
        self.processor_end = time.thread_time() + MAX_SECONDS
        self.made = MAX_MADE


_BUDGET: ContextVar[Budget | None] = ContextVar("budget", default=None)


def budgeted(evaluate: Callable[..., Any], *args: Any, **more: Any) -> Any:
    """Count what is evaluated; raises :class:`TemplateFunctionError` there if it is too much."""
    if _BUDGET.get() is not None:
        return evaluate(*args, **more)
    context = copy_context()
    context.run(_BUDGET.set, Budget())
    return context.run(evaluate, *args, **more)


def too_large(why: str) -> TemplateFunctionError:
    """Return the error of an operation that is too large."""
    return TemplateFunctionError(why, "loop over less, or split the template")


def spend(made: int = 0) -> None:
    """Count what is made, and read the clock."""
    budget = _BUDGET.get()
    if budget is None:  # no template is evaluated
        return
    budget.made -= made
    if budget.made < 0:
        raise too_large(f"a template may make at most {MAX_MADE:,} characters in all")
    # The first clock is faster.
    if time.monotonic() > budget.end and time.thread_time() > budget.processor_end:
        raise too_large(f"a template may take at most {MAX_SECONDS:g} seconds")


def check_length(length: float, operation: str, limit: int = MAX_LENGTH) -> None:
    """Raise for a text or list that is too long, before it is made."""
    if length > limit:
        raise _too_long(operation, limit)


def _too_long(operation: str, limit: int) -> TemplateFunctionError:
    return too_large(f"{operation} may have at most {limit:,} characters or items")


def each(items: Iterable[Any]) -> Iterator[Any]:
    """Yield the items of a loop; read the clock before each."""
    for item in items:
        spend()
        yield item


def size_of(value: Any, limit: int, operation: str = "a value") -> int:
    """Return the size of a value with all that is in it; raises if it is too large. Facts are not read for it."""
    size = 0
    level = [value]
    for _ in range(MAX_DEPTH + 2):
        below: list[Any] = []
        for part in level:
            items: Sequence[Any] = ()
            size += 20
            if isinstance(part, str):
                size += len(part)
            elif type(part) is dict:
                items = (*part, *part.values())
            elif isinstance(part, list | tuple | range):
                items = part
            elif type(part).__name__ == "Namespace":  # of Jinja2, which may not be imported yet
                raise TemplateFunctionError("a namespace is not a value", "use its attributes")
            elif isinstance(part, Mapping):
                size += 10_000  # not read, so not known
            if size + 20 * (len(below) + len(items)) > limit:  # before they are held
                raise _too_long(operation, limit)
            below += items
        if not below:
            return size
        spend()
        level = below
    raise _too_long("lists in lists", MAX_DEPTH)


def made(value: Any, texts: int = 0) -> Any:
    """Return what an operation made, and count it; an iterator becomes a list, of parts of ``texts`` characters."""
    if isinstance(value, _LAZY):
        value = list(value)
    if isinstance(value, str):
        check_length(len(value), "a text of a template")
        spend(50 + len(value))
    elif isinstance(value, list | tuple) or type(value) is dict:
        spend(10 * texts + 50 * len(value))
        size_of(value, MAX_VALUE)
    else:
        check_length(bits(value), "a number in bits", MAX_BITS)
    return value


def bits(value: Any) -> int:
    """Return the length of an exact number; 0 for all else."""
    if isinstance(value, Fraction):
        return bits(value.numerator) + bits(value.denominator)
    return value.bit_length() if isinstance(value, int) else 0
