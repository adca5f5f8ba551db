"""The request log."""

from __future__ import annotations

import json
import time
from collections import deque
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TextIO


@dataclass(slots=True)
class LogEntry:
    """One request. `target` is the path and query exactly as on the wire; `status` 0 means that no answer was sent.

    `done`: whether the server did the work. `fault`: the fault that was applied, such as `cut_after`.
    """

    number: int
    method: str
    target: str
    body: bytes = b""
    status: int = 0
    fault: str = ""
    done: bool = False
    time: float = field(default_factory=time.time)

    @property
    def line(self) -> str:
        """`METHOD target`: the text that the patterns of faults are matched with."""
        return f"{self.method} {self.target}"


class RequestLog:
    """The latest requests in memory, and all requests as JSON lines in an optional file.

    A line is written before the answer is sent. Only memory shows the later work of a `late` fault.
    """

    def __init__(self, file: Path | None = None, limit: int = 1_000_000) -> None:
        self._entries: deque[LogEntry] = deque(maxlen=limit)
        self._number = 0
        self._file: TextIO | None = file.open("a", encoding="utf-8", buffering=1) if file else None

    def open(self, method: str, target: str) -> LogEntry:
        """Add a request; the caller sets its outcome."""
        self._number += 1
        entry = LogEntry(self._number, method, target)
        self._entries.append(entry)
        return entry

    def write(self, entry: LogEntry) -> None:
        """Write an entry to the file; its outcome is known. Bytes that are not UTF-8 are escaped with a backslash."""
        if self._file is not None:
            fields = asdict(entry) | {"body": entry.body.decode("utf-8", "backslashreplace")}
            self._file.write(json.dumps(fields, ensure_ascii=False) + "\n")

    def entries(self) -> list[LogEntry]:
        """Return a copy, oldest first."""
        return list(self._entries)

    def clear(self) -> None:
        """Remove all entries; the numbers continue."""
        self._entries.clear()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
