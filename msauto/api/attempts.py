"""The record of each attempt to apply, also one that wrote nothing: who made it and why it ended."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from msauto.api.inputs import Inputs, Tell, tell_nothing
from msauto.concurrency import SystemClock
from msauto.errors import InputError, LedgerError, MsautoError, exit_code_of
from msauto.exit_codes import INCOMPLETE, INTERRUPTED, LOCKED, OK, REFUSED
from msauto.file_access import find_repository, may_be_there
from msauto.ledger.history import (
    ATTEMPT,
    BATCH,
    CODE,
    FOLDER,
    JOB,
    REASON,
    REPOSITORY,
    SETTINGS,
    USER,
)
from msauto.ledger.journal import new_run_name
from msauto.ledger.ledger import Ledger, LedgerPlace
from msauto.ledger.locks import user_name
from msauto.model.plan import Plan, TargetKey
from msauto.model.ports import Clock
from msauto.model.result import Result, RunStatus, RunSummary, format_time
from msauto.playbook.settings import Settings

_STATUS: Final[Mapping[int, RunStatus]] = {
    OK: "ok", REFUSED: "refused", LOCKED: "locked", INTERRUPTED: "interrupted"
}  # fmt: skip


class Attempt(Struct):
    """One attempt to apply or to undo, as far as it got.

    ``early_ledger`` is the ledger until the settings are read. ``inputs`` is set when they are, ``plan`` when it is
    made, ``run`` and ``result`` when the attempt becomes a run. ``code`` is its exit code. ``closing_reasons``: why
    targets did not begin, a freeze or the window; ``remedy``: what to do. With ``check`` nothing is recorded. ``notes``
    are recorded with it: the job of a batch, for example. ``unverified_before`` are targets that it leaves as they are:
    an attempt before left them unverified. ``noted``: the exit code and the reason that the ledger has of its run.
    """

    early_ledger: LedgerPlace | None
    playbooks: tuple[str, ...]
    inputs: Inputs | None = None
    run: str = ""
    code: int = OK
    reason: str = ""
    remedy: str = ""
    summary: dict[str, int] = {}
    check: bool = False
    plan: Plan | None = None
    result: Result | None = None
    closing_reasons: list[str] = []
    notes: Mapping[str, str] = {}
    unverified_before: Collection[TargetKey] = ()
    tell: Tell = tell_nothing
    clock: Clock = field(default_factory=SystemClock)
    started: str = ""
    noted: tuple[int, str] | None = None

    def __post_init__(self) -> None:
        self.started = format_time(self.clock.now())

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record how the work inside ends: with ``code``, with an error, or interrupted."""
        try:
            yield
        except Exception as error:
            self.reason, self.remedy = reason_of(error), getattr(error, "remedy", "")
            # If the ledger cannot be used, nothing is recorded, nor is a file that does not exist.
            if not (isinstance(error, LedgerError) or self._is_missing(error)):
                self.record(exit_code_of(error))
            raise
        except BaseException as interrupt:
            self.reason = str(interrupt) or "interrupted"
            with suppress(KeyboardInterrupt):
                self.record(INTERRUPTED)
            raise
        self.record(self.code)

    def _is_missing(self, error: Exception) -> bool:
        """Return whether a playbook or plan does not exist."""
        for problem in error.problems if isinstance(error, InputError) else ():
            if problem.place and problem.place.file in self.playbooks:
                return not may_be_there(problem.place.file)
        return False

    def code_of(self, result: Result) -> int:
        """Return the exit code of the result; if no target could begin, ``reason`` is why."""
        if result.interrupted:
            return INTERRUPTED
        if result.ok:
            return OK
        has_begun = any(target.outcome != "not attempted" for target in result.targets)
        if has_begun or not self.closing_reasons:
            return INCOMPLETE
        self.reason = f"{self.closing_reasons[-1]}: nothing was sent"
        return REFUSED

    def record(self, code: int) -> None:
        """Record the attempt and its exit code; a failure is a warning and changes nothing else."""
        place = self.inputs.ledger if self.inputs is not None else self.early_ledger
        if place is None or self.check or self.noted == (code, self.reason):
            return
        try:
            if not self.run:
                self._record(place, code)
            elif Ledger.exists(place):  # otherwise it was removed: do not create a new one for this
                with Ledger.open(place) as ledger:
                    self._note_end(ledger, code)
        except (LedgerError, OSError) as error:
            message = error.message if isinstance(error, MsautoError) else str(error)
            self.tell(f"Warning: this attempt is missing from the history: {message}")

    def note_run(self, ledger: Ledger) -> None:
        """Record how the run ended while its ledger is open; where that fails, :meth:`recorded` does it later."""
        with suppress(LedgerError, OSError):
            self._note_end(ledger, self.code)
            self.noted = self.code, self.reason

    def _note_end(self, ledger: Ledger, code: int) -> None:
        notes = {CODE: str(code)}
        if self.reason:
            notes[REASON] = self.reason
        ledger.note_end(self.run, notes)

    def _record(self, place: LedgerPlace, code: int) -> None:
        settings = self.inputs.settings if self.inputs is not None else None
        if settings is not None and settings.require_state and not Ledger.exists(place):
            return  # do not create a ledger in a folder that is not mounted
        now = self.clock.now()
        attempt = int(self.notes[ATTEMPT]) if ATTEMPT in self.notes else None
        with Ledger.open(place) as ledger:
            ledger.record(
                RunSummary(
                    run=new_run_name(now),
                    started=self.started,
                    ended=format_time(now),
                    status=_STATUS.get(code, "error"),
                    playbooks=self.playbooks,
                    summary=self.summary,
                    code=code,
                    reason=self.reason,
                    host=socket.gethostname(),
                    **origin_of(self.playbooks, settings),
                    batch=self.notes.get(BATCH, ""),
                    job=self.notes.get(JOB, ""),
                    attempt=attempt,
                )
            )


def origin_of(playbooks: Sequence[str], settings: Settings | None = None) -> dict[str, str]:
    """Return who applies, from which folder, the repository of the playbooks, and the path of the settings used.

    The repository is that of the first playbook that exists, else of the working folder; empty without one.
    """
    try:
        folder = str(Path.cwd())
    except OSError:  # it was removed
        folder = ""
    repository = None
    with suppress(OSError, ValueError):  # a name that cannot be one, or a folder that was removed
        existing = [path for path in map(Path, playbooks) if path.exists()]
        named = [*existing, Path()][0]
        start = named if named.is_dir() else named.parent
        repository = find_repository(start)
    used = ""
    if settings is not None and settings.file is not None:
        used = os.path.normpath(Path(folder, settings.file))
    return {USER: user_name(), FOLDER: folder, REPOSITORY: str(repository or ""), SETTINGS: used}


def reason_of(error: Exception) -> str:
    """Return an error in one line: the first problem, and how many more there are."""
    if isinstance(error, InputError) and error.problems:
        first, *more = error.problems
        reason = f"{first.place}: {first.message}" if first.place else first.message
        return f"{reason} (and {len(more)} more)" if more else reason
    if isinstance(error, MsautoError):
        return error.message
    usage: Callable[[], str] | None = getattr(error, "format_message", None)  # an error of click
    return usage() if usage is not None else f"internal error: {error}"
