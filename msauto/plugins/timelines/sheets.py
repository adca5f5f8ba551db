"""The first sheet of an XLSX file, read by python-calamine (extra ``xlsx``) in a process of its own.

A file of 1 KB can name a cell so far away that the native reader asks for 500 GB, or ends. So a program reads it (this
module is one: the file on stdin, JSON on stdout), with little memory and time.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Final

from msauto.plugins.timelines.timeline import TimelineError, show_clock

_MOST_MEMORY: Final = 2**30
_MOST_SECONDS: Final = 60
_MOST_BYTES: Final = 256 * 2**20  # of a file, unpacked
_MOST_CELLS: Final = 1_000_000  # of the rectangle from A1 to the last one
_MOST_TEXT: Final = 64 * 2**20  # of all cells
_SAVE: Final = "save its rows alone as a new XLSX file, or as CSV"


@lru_cache(maxsize=4)  # templates read a file for each asset
def read_sheet(content: bytes) -> tuple[tuple[str, ...], ...]:
    """Return the rows of the first sheet as texts; raises :class:`TimelineError`, also if the extra is missing."""
    if find_spec("python_calamine") is None:
        raise TimelineError("reading XLSX needs python-calamine", "pip install python-calamine")
    command = [sys.executable, "-P", "-m", __name__]
    try:
        done = subprocess.run(  # noqa: S603 - this program
            command,
            input=content,
            capture_output=True,
            timeout=_MOST_SECONDS,
            check=False,
            start_new_session=True,
        )
        answer = json.loads(done.stdout) if done.returncode == 0 else {"error": _ended(done)}
    except subprocess.TimeoutExpired:
        answer = {"error": f"it takes more than {_MOST_SECONDS} s to read"}
    except (OSError, ValueError) as error:
        answer = {"error": f"its reader does not run: {error}"}
    if "error" in answer:
        raise TimelineError(f"not a valid XLSX file: {answer['error']}", _SAVE)
    return tuple(tuple(row) for row in answer["rows"])


def _ended(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return how the program ended that did not answer."""
    if done.returncode < 0:
        return f"its reader ended with signal {-done.returncode}, or needs more than {_MOST_MEMORY >> 20} MiB"
    return f"its reader ended with code {done.returncode}"


# The program ---------------------------------------------------------------------------------------------------


def main() -> None:
    """Read an XLSX file on stdin, and print ``{"rows": […]}`` or ``{"error": "why"}``."""
    _limit()
    try:
        answer: dict[str, Any] = {"rows": list(_rows(sys.stdin.buffer.read()))}
    except MemoryError:
        answer = {"error": f"it needs more than {_MOST_MEMORY >> 20} MiB"}
    except Exception as error:  # noqa: BLE001 - whatever the reader raises is the answer
        answer = {"error": str(error)[:200]}
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace"))


def _limit() -> None:
    """Bound memory and time where the system can; no file with the memory of a crash is kept."""
    try:
        import resource
    except ImportError:  # Windows
        return
    limits = (
        (resource.RLIMIT_AS, _MOST_MEMORY),
        (resource.RLIMIT_CPU, _MOST_SECONDS),
        (resource.RLIMIT_CORE, 0),
    )
    for limit, most in limits:
        try:
            resource.setrlimit(limit, (most, most))
        except (OSError, ValueError):
            continue  # macOS has no RLIMIT_AS; an administrator may allow less


def _rows(content: bytes) -> Iterator[list[str]]:
    from python_calamine import load_workbook

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        unpacked = sum(part.file_size for part in archive.infolist())
    if unpacked > _MOST_BYTES:
        raise ValueError(f"it is larger than {_MOST_BYTES >> 20} MiB unpacked")
    sheet = load_workbook(io.BytesIO(content)).get_sheet_by_index(0)
    row_number, column_number = sheet.end or (0, 0)
    if (row_number + 1) * (column_number + 1) > _MOST_CELLS:
        raise ValueError(f"it has more than {_MOST_CELLS} cells, up to its last row and column")
    left = _MOST_TEXT
    for row in sheet.to_python(skip_empty_area=False):
        texts = [_text(cell) for cell in row]
        left -= sum(map(len, texts))
        if left < 0:
            raise ValueError(f"it has more than {_MOST_TEXT >> 20} MiB of text")
        yield texts


def _text(cell: Any) -> str:
    """Return a cell as text: a time and a duration as ``HH:MM:SS.ffffff``, a whole number without a point."""
    match cell:
        case float() if cell.is_integer():
            return str(int(cell))
        case time():
            return cell.isoformat("microseconds")
        case datetime() if cell.year > 1900:  # a date, too
            return _text(cell.time())
        case datetime():  # Excel has times above 24 hours as dates from its first day on
            return _text(cell - datetime(1899, 12, 31, tzinfo=cell.tzinfo))
        case timedelta():
            return show_clock(cell // timedelta(microseconds=1), 6)
        case date():
            return cell.isoformat()
    return str(cell)


if __name__ == "__main__":
    main()
