"""The exit codes (the contract, «Commands»)."""

from __future__ import annotations

from typing import Final

from msauto.cli.interrupts import INTERRUPTED
from msauto.errors import LockedError, RefusedError

__all__ = ["CHANGES", "ERROR", "INCOMPLETE", "INTERRUPTED", "LOCKED", "OK", "REFUSED", "exit_code_of"]

OK: Final = 0
ERROR: Final = 1
"""Nothing was written."""
CHANGES: Final = 2
"""``plan --detailed-exitcode`` found changes."""
INCOMPLETE: Final = 3
"""``apply`` ended with something failed, unverified or not as desired."""
REFUSED: Final = 4
"""The user must decide."""
LOCKED: Final = 5
"""Another run holds the lock."""


def exit_code_of(error: Exception) -> int:
    """Return the exit code of an error."""
    if isinstance(error, RefusedError):
        return REFUSED
    return LOCKED if isinstance(error, LockedError) else ERROR
