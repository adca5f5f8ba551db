"""Filters that make numbers and truth values, and show sizes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from jinja2.exceptions import SecurityError

MAX_DIGITS = 1_000
_SIZE = re.compile(r"\s*(\d{1,30}(?:\.\d{1,30})?)\s*([KMGTPEZY]?)(i?)(b|B|bit|byte)?s?\s*", re.IGNORECASE)
_UNITS = " KMGTPEZY"


def to_bool(value: Any) -> bool:
    """Ansible's words for true and false; anything else is an error and not false."""
    if isinstance(value, str):
        text = value.strip().lower()
        if text in {"true", "yes", "on", "1", "y", "t"}:
            return True
        if text in {"false", "no", "off", "0", "n", "f", ""}:
            return False
        raise ValueError(f"{value[:40]!r} is neither true nor false")
    return bool(value)


def _int(value: Any, default: Any = None, base: int = 10) -> Any:
    """A whole number; unlike Jinja's own, what is no number is an error unless a default is given."""
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


def _float(value: Any, default: Any = None) -> Any:
    try:
        return float(value)
    except (ValueError, TypeError, OverflowError):
        if default is None:
            raise
        return default


def _log(value: Any, base: float = math.e) -> float:
    return math.log10(value) if base == 10 else math.log(value, base)


def _pow(value: Any, exponent: Any) -> float:
    """As Ansible: always a number with a decimal point."""
    return math.pow(value, exponent)


def _root(value: Any, base: float = 2) -> float:
    return math.sqrt(value) if base == 2 else math.pow(value, 1.0 / float(base))


def _human_readable(value: Any, isbits: bool = False, unit: str | None = None) -> str:
    """Bytes as people read them, in steps of 1024: ``1.50 GB``."""
    size = float(value)
    names = [f"{each.strip()}{'b' if isbits else 'B'}" for each in _UNITS]
    names[0] = "bits" if isbits else "Bytes"
    if unit is None:
        power = min(max(int(math.log(abs(size), 1024)) if abs(size) >= 1 else 0, 0), len(_UNITS) - 1)
    else:
        power = max(_UNITS.find(unit[:1].upper()), 0)
    return f"{size / 1024**power:.2f} {names[power]}"


def _human_to_bytes(value: Any, default_unit: str | None = None, isbits: bool = False) -> int:
    del isbits
    match = _SIZE.fullmatch(str(value))
    if match is None:
        raise ValueError(f"{str(value)[:40]!r} is no size such as 10M or 1.5 GB")
    unit = (match[2] or (default_unit or "")[:1]).upper()
    power: int = max(_UNITS.find(unit or " "), 0)
    return round(float(match[1]) * float(1024**power))


NUMBER_FILTERS: dict[str, Callable[..., Any]] = {
    "bool": to_bool,
    "float": _float,
    "human_readable": _human_readable,
    "human_to_bytes": _human_to_bytes,
    "int": _int,
    "log": _log,
    "pow": _pow,
    "root": _root,
}
