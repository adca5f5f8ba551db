"""Positions, durations and times as pydantic types with plain words."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from typing import Annotated, Any, Final

from pydantic import PlainValidator, WithJsonSchema

from msauto.model.timecode import Timecode, TimecodeError
from msauto.playbook.schema.values import shown_value, sourced


def _position(value: Any) -> Timecode:
    if isinstance(value, bool) or not isinstance(value, int | str):
        shown = getattr(value, "text", shown_value(value))
        raise sourced(f"must be a time code or a number of frames, not {shown}", 'quote time codes: "00:00:10:00"')
    try:
        return Timecode.parse(value if isinstance(value, str) else int(value))
    except (TimecodeError, ValueError) as error:
        raise sourced(str(error)) from error


_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def _span(value: Any) -> timedelta:
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or float(match[1]) * _SECONDS[match[2]] > 1e10:
        raise sourced(f"must be a duration such as 90s, 30m, 2h or 3d, not {shown_value(value)}")
    return timedelta(seconds=float(match[1]) * _SECONDS[match[2]])


_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d|$)", re.ASCII)


def _when(value: Any) -> datetime | date:
    if isinstance(value, datetime | date):
        return value
    try:
        text = value.strip() if isinstance(value, str) else ""
        if not _ISO.match(text):
            raise ValueError(text)
        return date.fromisoformat(text) if len(text) <= 10 else datetime.fromisoformat(text)
    except ValueError as error:
        raise sourced(f"must be a date (2026-11-13) or a date and time, not {shown_value(value)}") from error


def _clearable(value: Any) -> Timecode | str:
    return "" if isinstance(value, str) and not value else _position(value)


_TC = r"^\s*(\d{1,15}|\d{2,6}:[0-5]\d:[0-5]\d([:;]\d{2,3}|\.\d{1,12}))\s*$"
_POSITIONS: Final[list[dict[str, Any]]] = [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": _TC}]

Pos = Annotated[Timecode, PlainValidator(_position), WithJsonSchema({"anyOf": _POSITIONS})]
ClearablePos = Annotated[
    Timecode | str,
    PlainValidator(_clearable),
    WithJsonSchema({"anyOf": [*_POSITIONS, {"type": "string", "maxLength": 0}]}),
]
"""A position, or an empty text, which clears the field."""
Span = Annotated[
    timedelta,
    PlainValidator(_span),
    WithJsonSchema({"type": "string", "pattern": r"^\s*\d{1,9}(\.\d{1,6})?\s*[smhd]\s*$"}),
]
_DATE = r"^\s*\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])([T ]\d\d:\d\d.*)?\s*$"
When = Annotated[datetime | date, PlainValidator(_when), WithJsonSchema({"type": "string", "pattern": _DATE})]
