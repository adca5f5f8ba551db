"""The progress of a download: observed while it runs, and remembered so that the next run can resume it."""

from __future__ import annotations

from dataclasses import asdict

from msauto.applying.apply_context import ApplyContext
from msauto.applying.target_memory import TargetMemory
from msauto.model import events
from msauto.model.plan import Json, Target
from msauto.model.ports import PartialDownload


class DownloadProgress:
    """Implements the port ``DownloadObserver`` for one request of a run."""

    keeps = True

    def __init__(self, context: ApplyContext, target: Target, index: int, memory: TargetMemory) -> None:
        self._context = context
        self._target = target
        self._index = index
        self._memory = memory
        self._item = f"part:{target.requests[index].dest}"
        self.part: PartialDownload | None = _parse_part(memory.recall().get(self._item))

    def keep(self, part: PartialDownload | None) -> None:
        """Remember the received part; ``None``: nothing is left to resume."""
        self._memory.keep({self._item: None if part is None else asdict(part)})

    def asked(self, received: int, seconds: float) -> None:
        """Notify that the server was asked; it may be creating the file."""
        self._context.notify(events.DownloadAsked(self._target, self._index, received, seconds))

    def received(self, size: int, total: int | None) -> None:
        """Notify how much was received."""
        self._context.notify(events.DownloadReceived(self._target, self._index, size, total))


def _parse_part(value: Json) -> PartialDownload | None:
    """Return the remembered part; ``None`` if it is missing or invalid."""
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
