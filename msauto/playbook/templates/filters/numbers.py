"""Filters that make numbers and truth values."""

from __future__ import annotations

from typing import Any

from jinja2.exceptions import SecurityError

from msauto.playbook.templates.registry import template_filter

MAX_DIGITS = 1_000
_WORDS = {
    **dict.fromkeys(("true", "yes", "on", "1", "y", "t"), True),
    **dict.fromkeys(("false", "no", "off", "0", "n", "f", ""), False),
}


@template_filter
def bool_(value: Any) -> bool:
    """True or false from yes, no, on, off, 1, 0; anything else is an error.

    Example: 'yes' | bool
    """
    if not isinstance(value, str):
        return bool(value)
    if value.strip().lower() not in _WORDS:
        raise ValueError(f"{value[:40]!r} is neither true nor false")
    return _WORDS[value.strip().lower()]


@template_filter
def int_(value: Any, default: Any = None, base: int = 10) -> Any:
    """A whole number; a value that is not a number is an error unless a default is given.

    Example: '012' | int
    """
    try:
        if isinstance(value, str):
            if len(value) > MAX_DIGITS:
                raise SecurityError("a number in a template is too large")
            return int(value, base) if base != 10 or "." not in value else int(float(value))
        return int(value)
    except (ValueError, TypeError, OverflowError):
        if default is None:
            raise
        return default


@template_filter
def float_(value: Any, default: Any = None) -> Any:
    """A number with a decimal point; a value that is not a number is an error unless a default is given.

    Example: '1.5' | float
    """
    try:
        return float(value)
    except (ValueError, TypeError, OverflowError):
        if default is None:
            raise
        return default
