"""Registers filters, tests and lookups. Their docstrings are their documentation.

The first line of a docstring is the description, without an article or a verb. The last line is ``Example: ...``, an
expression that the reference evaluates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

FILTERS: dict[str, Callable[..., Any]] = {}
TESTS: dict[str, Callable[..., Any]] = {}
LOOKUPS: dict[str, Callable[..., Any]] = {}


def _registrar(functions: dict[str, Callable[..., Any]]) -> Callable[[Function], Function]:
    def register(function: Function) -> Function:
        functions[function.__name__.removeprefix("lookup_").strip("_")] = function
        return function

    return register


template_filter = _registrar(FILTERS)
"""Registers a filter by the name of its function; ``_`` at the end avoids names of Python."""
template_test = _registrar(TESTS)
"""Registers a test, as :data:`template_filter`."""
template_lookup = _registrar(LOOKUPS)
"""Registers a lookup; its function is called ``lookup_NAME``, and its keyword arguments are the options."""
