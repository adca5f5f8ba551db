"""What a download has to tell while it goes on, and what a run leaves of it for the next one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msauto.model import events
from msauto.model.plan import Json, Target
from msauto.model.ports import PartialDownload

KEPT = "part:"
"""How what is left of a download is remembered: with the path of its file behind it."""


class DownloadProgress:
    """Implements the port ``Watch`` for one request of a run.

    ``memory`` is what is remembered of the target, ``note`` remembers more of it, ``tell`` tells the observer.
    """

    keeps = True

    def __init__(
        self,
        target: Target,
        index: int,
        memory: Mapping[str, Json],
        note: Callable[[dict[str, Json]], None],
        tell: Callable[[events.Event], None],
    ) -> None:
        self._target = target
        self._index = index
        self._item = f"{KEPT}{target.requests[index].dest}"
        self._note = note
        self._tell = tell
        self.part: PartialDownload | None = part_of(memory.get(self._item))

    def keep(self, part: PartialDownload | None) -> None:
        """Remember what came so far, or that nothing is left."""
        self._note({self._item: None if part is None else _json(part)})

    def asked(self, received: int, seconds: float) -> None:
        """Tell that the server is asked, and may be making the file."""
        self._tell(events.DownloadAsked(self._target, self._index, received, seconds))

    def received(self, size: int, total: int | None) -> None:
        """Tell how much is there."""
        self._tell(events.DownloadReceived(self._target, self._index, size, total))


def part_of(value: Json) -> PartialDownload | None:
    """Return what was remembered; ``None`` where nothing was, or nothing that makes sense."""
    match value:
        case {
            "name": str(name),
            "request": str(request),
            "size": int(size),
            "sha256": str(sha256),
            "validator": str(validator),
            "total": int() | None as total,
        }:
            return PartialDownload(name, request, size, sha256, validator, total)
    return None


def _json(part: PartialDownload) -> dict[str, Json]:
    return {
        "name": part.name,
        "request": part.request,
        "size": part.size,
        "sha256": part.sha256,
        "validator": part.validator,
        "total": part.total,
    }
