"""Cue sheets as XLSX: the first sheet, by python-calamine (extra ``xlsx``)."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from typing import Any

from msauto.playbook.timelines.clock import TimelineClock
from msauto.playbook.timelines.tables import read_rows
from msauto.playbook.timelines.timeline import EditTimeline, TimelineError

_MOST_BYTES = 256 * 1024 * 1024


def read_xlsx(content: bytes, clock: TimelineClock, columns: Mapping[str, str]) -> EditTimeline:
    """Read the first sheet as a table; raises :class:`TimelineError`, also if the extra is missing."""
    try:
        import python_calamine as calamine
    except ImportError as error:
        raise TimelineError("reading XLSX needs python-calamine", "pip install 'msauto[xlsx]'") from error
    try:
        _check_size(content)
        rows = calamine.load_workbook(io.BytesIO(content)).get_sheet_by_index(0).to_python(skip_empty_area=False)
    except (calamine.CalamineError, zipfile.BadZipFile) as error:
        raise TimelineError(f"not a valid XLSX file: {error}", "save it again as XLSX, or as CSV") from error
    return read_rows([(number, [_text(cell) for cell in row]) for number, row in enumerate(rows, 1)], clock, columns)


def _check_size(content: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if sum(each.file_size for each in archive.infolist()) > _MOST_BYTES:
            raise TimelineError(f"the file is larger than {_MOST_BYTES >> 20} MiB unpacked", "save it as CSV")


def _text(cell: Any) -> str:
    """Return a cell as text: a time and a duration as ``HH:MM:SS.ffffff``, a whole number without a point."""
    match cell:
        case float() if cell.is_integer():
            return str(int(cell))
        case time():
            return cell.isoformat("microseconds")
        case timedelta():
            return _clock_time(cell)
        case datetime():  # Excel has times above 24 hours as dates from its first day on
            return _clock_time(cell - datetime(1899, 12, 31, tzinfo=cell.tzinfo))
        case date():
            return cell.isoformat()
    return str(cell)


def _clock_time(length: timedelta) -> str:
    microseconds = length // timedelta(microseconds=1)
    seconds, rest = divmod(microseconds, 1_000_000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:06}"
