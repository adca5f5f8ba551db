"""Filters of dates and times. The time now is that of the run, so that a plan is the same wherever it looks."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any, cast

from jinja2 import pass_context
from jinja2.runtime import Context

_DIRECTIVE = re.compile(r"%(?:[-_0^#]?[A-Za-z%])?")
_KNOWN = re.compile(r"%(?:[-_0^#]?[aAbBcdDeFgGhHIjklmMnNpPrRsStTuUVwWxXyYzZfC]|%)")


@pass_context
def _strftime(context: Context, value: Any, form: Any = None, utc: bool = False) -> str:
    """A time as text: ``asset.create_time | strftime('%d.%m.%Y')``, or Ansible's ``'%Y' | strftime(seconds)``.

    Without a time, that of the run. Seconds are those since 1970, in UTC wherever msauto runs.
    """
    if isinstance(value, str):
        value, form = (context.resolve("now") if form is None else form), value
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = datetime.fromtimestamp(value, UTC)
    if not isinstance(value, date) or not isinstance(form, str):
        raise TypeError("strftime needs a time and a form such as '%Y-%m-%d'")
    if len(form) > 200 or any(not _KNOWN.fullmatch(each) for each in _DIRECTIVE.findall(form)):
        raise ValueError(f"{form[:40]!r} is no form of a time: write it as '%Y-%m-%d %H:%M:%S'")
    if utc and isinstance(value, datetime) and value.tzinfo:
        value = value.astimezone(UTC)
    return str(value.strftime(form))


def _to_datetime(value: Any, form: str = "%Y-%m-%d %H:%M:%S") -> datetime:
    """A text as a time; ISO 8601 is understood whatever the form."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)  # noqa: DTZ001 - it has no zone, and none is made up
    try:
        return datetime.strptime(str(value), form)  # noqa: DTZ007 - the form says whether there is a zone
    except ValueError:
        try:
            return datetime.fromisoformat(str(value))
        except ValueError as error:
            raise ValueError(f"{str(value)[:40]!r} is no time of the form {form!r}") from error


TIME_FILTERS: dict[str, Callable[..., Any]] = {
    "strftime": cast("Callable[..., Any]", _strftime),
    "to_datetime": _to_datetime,
}
