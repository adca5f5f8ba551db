"""The record of each attempt to apply, also one that wrote nothing: who made it and why it ended."""

from __future__ import annotations

import functools
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click

from msauto.cli.exit_codes import INTERRUPTED, LOCKED, REFUSED, exit_code_of
from msauto.cli.flags import Flags
from msauto.cli.output import print_message
from msauto.errors import InputError, LedgerError, MsautoError
from msauto.ledger import Ledger, LedgerPlace
from msauto.ledger.history import ATTEMPT, BATCH, CODE, FOLDER, JOB, REASON, REPOSITORY, SETTINGS, USER
from msauto.ledger.journal import new_run_name
from msauto.ledger.locks import user_name
from msauto.ledger.store import format_time
from msauto.model.plan import Plan
from msauto.model.result import Result
from msauto.model.run_records import RunStatus, RunSummary
from msauto.playbook.input_files import find_repository
from msauto.playbook.settings import Settings

_STATUS: Final[Mapping[int, RunStatus]] = {REFUSED: "refused", LOCKED: "locked", INTERRUPTED: "interrupted"}


@dataclass(slots=True)
class Attempt:
    """One call of ``apply`` or ``undo``, as far as it got.

    ``given`` is the ledger until the settings are read. ``flags`` is set when they are, ``plan`` when it is made,
    ``run`` and ``result`` when the attempt becomes a run. With ``check`` nothing is recorded. ``notes`` are recorded
    with it: the job of a batch, for example.
    """

    given: LedgerPlace | None
    playbooks: tuple[str, ...]
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    flags: Flags | None = None
    run: str = ""
    reason: str = ""
    summary: dict[str, int] = field(default_factory=dict)
    check: bool = False
    plan: Plan | None = None
    result: Result | None = None
    notes: Mapping[str, str] = field(default_factory=dict)

    def record(self, code: int) -> None:
        """Record the attempt and its exit code; a failure is a warning and changes nothing else."""
        place = self.flags.ledger if self.flags is not None else self.given
        if place is None or self.check:
            return
        try:
            if not self.run:
                self._record(place, code)
            elif Ledger.exists(place):  # otherwise it was removed: do not create a new one for this
                with Ledger.open(place) as ledger:
                    ledger.note_end(self.run, {CODE: str(code)} | ({REASON: self.reason} if self.reason else {}))
        except (LedgerError, OSError) as error:
            message = error.message if isinstance(error, MsautoError) else str(error)
            print_message(f"Warning: this attempt is missing from the history: {message}")

    def _record(self, place: LedgerPlace, code: int) -> None:
        required = self.flags is not None and self.flags.settings.require_state
        if required and not Ledger.exists(place):
            return  # do not create a ledger in a folder that is not mounted
        now = datetime.now(UTC)
        with Ledger.open(place) as ledger:
            ledger.record(
                RunSummary(
                    run=new_run_name(now),
                    started=format_time(self.started),
                    ended=format_time(now),
                    status=_STATUS.get(code, "error"),
                    playbooks=self.playbooks,
                    summary=self.summary,
                    code=code,
                    reason=self.reason,
                    host=socket.gethostname(),
                    **origin_of(self.playbooks, self.flags.settings if self.flags is not None else None),
                    batch=self.notes.get(BATCH, ""),
                    job=self.notes.get(JOB, ""),
                    attempt=int(self.notes[ATTEMPT]) if ATTEMPT in self.notes else None,
                )
            )


def origin_of(playbooks: Sequence[str], settings: Settings | None = None) -> dict[str, str]:
    """Return who applies, from which folder, the repository of the playbooks, and the path of the settings used."""
    try:
        folder = str(Path.cwd())
    except OSError:  # it was removed
        folder = ""
    used = settings.file if settings is not None else None
    path = os.path.normpath(Path(folder, used)) if used is not None else ""
    return {USER: user_name(), FOLDER: folder, REPOSITORY: _repository(playbooks), SETTINGS: path}


def _repository(playbooks: Sequence[str]) -> str:
    """Return the repository of the first playbook that exists, else of the working folder; empty without one."""
    try:
        named = next((path for path in map(Path, playbooks) if path.exists()), Path())
        return str(find_repository(named if named.is_dir() else named.parent) or "")
    except (OSError, ValueError):  # a name that cannot be one, or a folder that was removed
        return ""


def recorded(function: Callable[..., int]) -> Callable[..., int]:
    """Record every call of a command that applies; apply it above ``shared_flags``, to record their errors as well."""

    @functools.wraps(function)
    def command(**given: Any) -> int:
        named = (f"{verb} {given[name]}" for name, verb in (("run", "undo"), ("resumed", "resume")) if given.get(name))
        folder: str | None = given["state_dir"]
        place = Path(os.path.expanduser(folder)) if folder else None  # noqa: PTH111 - no error for an unknown user
        attempt = Attempt(place, tuple(given.get("playbooks") or ()) or tuple(named))
        click.get_current_context().obj = attempt
        return record_end(attempt, functools.partial(function, **given))

    return command


def record_end(attempt: Attempt, work: Callable[[], int]) -> int:
    """Do the work of an attempt, and record how it ends; return its exit code."""
    try:
        code = work()
    except KeyboardInterrupt as interrupt:
        attempt.reason = str(interrupt) or "interrupted"
        with suppress(KeyboardInterrupt):
            attempt.record(INTERRUPTED)
        raise
    except Exception as error:
        attempt.reason = reason_of(error)
        if not isinstance(error, LedgerError):  # if the ledger cannot be used, nothing is recorded
            attempt.record(exit_code_of(error))
        raise
    attempt.record(code)
    return code


def reason_of(error: Exception) -> str:
    """Return an error in one line: the first problem, and how many more there are."""
    if isinstance(error, InputError) and error.problems:
        first, *more = error.problems
        place = f"{first.place}: " if first.place else ""
        return f"{place}{first.message}" + (f" (and {len(more)} more)" if more else "")
    if isinstance(error, MsautoError):
        return error.message
    return error.format_message() if isinstance(error, click.ClickException) else f"internal error: {error}"
