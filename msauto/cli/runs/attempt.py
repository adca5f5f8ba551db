"""Every attempt to apply is recorded: also one that wrote nothing, with who made it and why it ended so."""

from __future__ import annotations

import functools
import getpass
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click

from msauto.cli.flags import Flags
from msauto.cli.output import say
from msauto.errors import InputError, LedgerError, LockedError, MsautoError, RefusedError
from msauto.ledger import Ledger
from msauto.ledger.history import CODE, FOLDER, REASON, USER
from msauto.ledger.journal import new_run_name
from msauto.ledger.ledger import FILE
from msauto.ledger.store import format_time
from msauto.model.history import RunStatus, RunSummary

_STATUS: Final[Mapping[int, RunStatus]] = {4: "refused", 5: "locked", 130: "interrupted"}
INTERRUPTED: Final = 130


@dataclass(slots=True)
class Attempt:
    """One call of ``apply`` or ``undo``: what is known of it while it goes on.

    ``flags`` once they are read; ``run`` once it has become one; ``dismissed``: it only looks (``--check``).
    """

    state_dir: str | None
    playbooks: tuple[str, ...]
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    flags: Flags | None = None
    run: str = ""
    reason: str = ""
    summary: dict[str, int] = field(default_factory=dict)
    dismissed: bool = False

    @classmethod
    def here(cls) -> Attempt:
        """Return the one that the command line is about."""
        found = click.get_current_context().find_object(cls)
        assert found is not None
        return found

    def record(self, code: int) -> None:
        """Write it down. That this is not possible is told, and changes nothing else."""
        folder = self._folder()
        if folder is None or self.dismissed:
            return
        try:
            if self.run:
                self._note_end(folder, code)
            else:
                self._record(folder, code)
        except (LedgerError, OSError) as error:
            told = error.message if isinstance(error, MsautoError) else str(error)
            say(f"Warning: this attempt is not in the history: {told}")

    def _note_end(self, folder: Path, code: int) -> None:
        if (folder / FILE).is_file():  # else somebody took it away: no new one is begun for this
            with Ledger.open(folder) as ledger:
                ledger.note_end(self.run, {CODE: str(code)} | ({REASON: self.reason} if self.reason else {}))

    def _record(self, folder: Path, code: int) -> None:
        required = self.flags is not None and self.flags.settings.require_state
        if required and not (folder / FILE).is_file():
            return  # a folder that nobody mounted does not get a ledger by being looked at
        now = datetime.now(UTC)
        with Ledger.open(folder) as ledger:
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
                    **who(),
                )
            )

    def _folder(self) -> Path | None:
        """Return where the ledger is; ``None`` where the settings that say so cannot be read."""
        if self.flags is not None:
            return self.flags.state_dir
        return Path(self.state_dir).expanduser() if self.state_dir else None


def who() -> dict[str, str]:
    """Return who applies, and from which folder."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container may run under a number that nobody has named
        user = str(os.getuid())
    try:
        folder = str(Path.cwd())
    except OSError:  # it was removed
        folder = ""
    return {USER: user, FOLDER: folder}


def attempted(function: Callable[..., int]) -> Callable[..., int]:
    """Record every call of a command that applies; goes above ``shared_flags``, whose errors count as well."""

    @functools.wraps(function)
    def command(**given: Any) -> int:
        attempt = Attempt(given["state_dir"], _about(given))
        click.get_current_context().obj = attempt
        try:
            code = function(**given)
        except KeyboardInterrupt as stop:
            attempt.reason = str(stop) or "interrupted"
            with suppress(KeyboardInterrupt):
                attempt.record(INTERRUPTED)
            raise
        except Exception as error:
            attempt.reason = _reason(error)
            if not isinstance(error, LedgerError):  # where it cannot be used, nothing is recorded
                attempt.record(_code(error))
            raise
        attempt.record(code)
        return code

    return command


def _about(given: Mapping[str, Any]) -> tuple[str, ...]:
    if given.get("run"):
        return (f"undo {given['run']}",)
    if given.get("resumed"):
        return (f"resume {given['resumed']}",)
    return tuple(given.get("playbooks") or ())


def _code(error: Exception) -> int:
    if isinstance(error, RefusedError):
        return 4
    return 5 if isinstance(error, LockedError) else 1


def _reason(error: Exception) -> str:
    """Return an error in one line: the first of several, and how many more there are."""
    if isinstance(error, InputError) and error.problems:
        first, *more = error.problems
        place = f"{first.place}: " if first.place else ""
        return f"{place}{first.message}" + (f" (and {len(more)} more)" if more else "")
    if isinstance(error, MsautoError):
        return error.message
    return error.format_message() if isinstance(error, click.ClickException) else f"internal error: {error}"
