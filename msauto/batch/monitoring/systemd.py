"""What systemd gets of a batch that it runs: a status line, and the priorities of messages in the journal."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from contextlib import suppress
from io import StringIO
from typing import Final, TextIO

_PRIORITIES: Final = {"Error": 3, "Warning": 4, "Refused": 4}
_INFO: Final = 6
_PROBLEMS: Final = (" problem.\n", " problems.\n")  # the end of a list of errors


def notify_status(env: Mapping[str, str], text: str) -> None:
    """Show a text in ``systemctl status``, where systemd runs this process."""
    address = env.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.connect(f"\0{address[1:]}" if address.startswith("@") else address)
        channel.send(f"STATUS={' '.join(text.split())}".encode())


def is_journal(stream: TextIO, env: Mapping[str, str]) -> bool:
    """Return whether a stream goes to the journal of systemd."""
    with suppress(OSError, ValueError):
        status = os.fstat(stream.fileno())
        return env.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"
    return False


class JournalStream(StringIO):
    """Writes each line to the journal with the priority of its message: 3 for an error, 4 for a warning, else 6."""

    def __init__(self, journal: TextIO) -> None:
        super().__init__()
        self._journal = journal
        self._in_line = False

    def write(self, text: str) -> int:
        """Write one message, or a part of the result of a job; the end of a line may follow."""
        head = "Error" if text.endswith(_PROBLEMS) else text.partition(":")[0]
        mark = f"<{_PRIORITIES.get(head, _INFO)}>"
        if text:
            self._journal.write(("" if self._in_line else mark) + re.sub(r"\n(?!\Z)", f"\n{mark}", text))
            self._in_line = not text.endswith("\n")
        return len(text)

    def flush(self) -> None:
        """Write what is buffered."""
        self._journal.flush()
