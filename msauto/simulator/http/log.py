"""The request log: what came, what became of it."""

from __future__ import annotations

import json
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

LOG_LIMIT = 1_000_000
_READING = ("GET", "HEAD")


@dataclass(slots=True)
class LogEntry:
    """One request. `target` is the path and query exactly as on the wire; `status` 0 means no answer was given.

    `done`: whether the server did the work and did not refuse it. `fault`: what struck it, such as `cut_after`.
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
        """`METHOD target`: what faults are matched with."""
        return f"{self.method} {self.target}"

    def as_dict(self) -> dict[str, Any]:
        """For JSON; the body as text, bytes that are no UTF-8 escaped with a backslash."""
        return {
            "number": self.number,
            "method": self.method,
            "target": self.target,
            "body": self.body.decode("utf-8", "backslashreplace"),
            "status": self.status,
            "fault": self.fault,
            "done": self.done,
            "time": self.time,
        }


class RequestLog:
    """The latest requests in memory, and all of them as JSON lines in a file if one is given.

    A line is written when the answer is due: work that a `late` fault does afterwards shows in memory only.
    """

    def __init__(self, file: Path | None = None, limit: int = LOG_LIMIT) -> None:
        self._entries: deque[LogEntry] = deque(maxlen=limit)
        self._number = 0
        self._file: TextIO | None = file.open("a", encoding="utf-8", buffering=1) if file else None

    def open(self, method: str, target: str) -> LogEntry:
        """Enter a request that has arrived; the caller fills in what becomes of it."""
        self._number += 1
        entry = LogEntry(self._number, method, target)
        self._entries.append(entry)
        return entry

    def settle(self, entry: LogEntry) -> None:
        """Write an entry whose fate is known to the file."""
        if self._file is not None:
            self._file.write(json.dumps(entry.as_dict(), ensure_ascii=False) + "\n")

    def entries(self) -> list[LogEntry]:
        """A copy, oldest first."""
        return list(self._entries)

    def writes(self) -> list[LogEntry]:
        """The requests other than GET and HEAD."""
        return [entry for entry in self.entries() if entry.method not in _READING]

    def clear(self) -> None:
        """Forget all; numbers go on."""
        self._entries.clear()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
