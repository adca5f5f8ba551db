"""Filters of dates and times. The time now is that of the run, so that every template of a plan sees the same one."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Any

from jinja2 import pass_context
from jinja2.runtime import Context

from msauto.playbook.templates.registry import template_filter

_DIRECTIVE = re.compile(r"%(?:[-_0^#]?[A-Za-z%])?")
_KNOWN = re.compile(r"%(?:[-_0^#]?[aAbBcdDeFgGhHIjklmMnNpPrRsStTuUVwWxXyYzZfC]|%)")


@template_filter
@pass_context
def strftime(context: Context, value: Any, form: Any = None, utc: bool = False) -> str:
    """A time in a format such as '%d.%m.%Y'; as in Ansible, also a format with seconds since 1970.

    Without a time, that of the run. Seconds are in UTC, wherever msauto runs.

    Example: '%Y-%m-%d' | strftime(86400)
    """
    if isinstance(value, str):
        value, form = (context.resolve("now") if form is None else form), value
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = datetime.fromtimestamp(value, UTC)
    if not isinstance(value, date) or not isinstance(form, str):
        raise TypeError("strftime needs a time and a format such as '%Y-%m-%d'")
    if len(form) > 200 or any(not _KNOWN.fullmatch(each) for each in _DIRECTIVE.findall(form)):
        raise ValueError(f"{form[:40]!r} is not a valid time format: write it as '%Y-%m-%d %H:%M:%S'")
    if utc and isinstance(value, datetime) and value.tzinfo:
        value = value.astimezone(UTC)
    return str(value.strftime(form))


@template_filter
def to_datetime(value: Any, form: str = "%Y-%m-%d %H:%M:%S") -> datetime:
    """A text as a time; ISO 8601, or a format.

    Example: ('2026-11-20 10:00:00' | to_datetime) - ('2026-11-20 09:00:00' | to_datetime)
    """
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)  # noqa: DTZ001 - a date has no zone
    try:
        return datetime.strptime(str(value), form)  # noqa: DTZ007 - the format decides whether there is a zone
    except ValueError:
        try:
            return datetime.fromisoformat(str(value))
        except ValueError as error:
            raise ValueError(f"{str(value)[:40]!r} is not a time in the format {form!r}") from error
