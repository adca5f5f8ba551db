"""Every error that msauto raises on purpose, and how they hang together.

::

    MsautoError
     ├── InputError            text from outside is wrong: playbook, inventory, settings, plan file
     ├── PlanningError         one target cannot be planned: unknown asset, conflict, guard, failed assert
     ├── RefusedError          a person must decide: limits, consent, stale plan, freeze
     ├── AddressError          a name that no address can hold: empty, or no Unicode text (also a ValueError)
     ├── LockedError           another run holds the lock
     ├── LedgerError           the ledger cannot be used: locked, corrupt, read-only, full
     ├── DownloadError         a file could not be written: disk full, no permission
     └── ServerError           the server, or the way to it
          ├── NotSentError     certain: the request never left
          │    └── UnreachableError  ... for there is no way to the server: refused connection, its name, TLS, time-out
          ├── FateUnknownError the request may have been done: no answer, or half of one
          ├── RejectedError    the server answered with an error
          │    └── NotFoundError   ... and the error is that there is no such thing
          ├── UnreadableError  the answer is not what was asked for: HTML, garbage, a DTD, another clip
          └── UnsupportedError the set product version lacks a feature

A message tells what is wrong and where; ``remedy`` tells what to do. The command line alone turns an error
into an exit code. No message holds a secret.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, order=True)
class SourceLocation:
    """A place in a text file: ``line`` and ``column`` count from 1; 0 means the whole file."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a text: where, what, what to do, and the line with a caret under it.

    A ``warning`` is told and stops nothing.
    """

    message: str
    place: SourceLocation | None = None
    remedy: str = ""
    excerpt: str = ""
    level: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        head = f"{self.place}: {self.message}" if self.place else self.message
        return "\n".join(part for part in (head, self.excerpt, self.remedy and f"  → {self.remedy}") if part)


class MsautoError(Exception):
    """The root: ``except MsautoError`` catches all that msauto raises on purpose.

    ``shown``: the document on stdout has it already.
    """

    shown = False

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}\n  → {self.remedy}" if self.remedy else self.message


class InputError(MsautoError):
    """Texts from outside are wrong. ``problems`` holds all of them, in order of place."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class PlanningError(MsautoError):
    """One target cannot be planned; ``place`` is where the playbook asks for what cannot be."""

    def __init__(self, message: str, *, place: SourceLocation | None = None, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.place = place

    def __str__(self) -> str:
        text = super().__str__()
        return f"{self.place}: {text}" if self.place else text


class RefusedError(MsautoError):
    """Nothing was sent, for a person must decide first (exit code 4)."""


class AddressError(MsautoError, ValueError):
    """A name or value that no request can hold: it is empty, no Unicode text, or would be taken for another."""


class LockedError(MsautoError):
    """Another run holds what this run needs (exit code 5)."""


class LedgerError(MsautoError):
    """The ledger cannot be used; nothing was sent."""


class DownloadError(MsautoError):
    """A download could not be kept; no half file is left behind."""


class ServerError(MsautoError):
    """Something between us and the server. ``server`` is its name in the inventory, or its host.

    ``url`` is set where the connection is what failed.
    """

    url = ""

    def __init__(self, message: str, *, server: str = "", request: str = "", remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.server = server
        self.request = request

    def __str__(self) -> str:
        where = f"server {self.server}" + (f" at {self.url}" if self.url else "")
        parts = (self.server and where, self.request, super().__str__())
        return ": ".join(part for part in parts if part)


class NotSentError(ServerError):
    """Certain: the server has seen nothing of the request."""


class UnreachableError(NotSentError):
    """There is no connection to the server: refused, no such name, no trust, no answer within the time allowed."""


class InDoubtError(ServerError):
    """The request left, and no whole answer came: it may have been done, or may yet be."""


class RejectedError(ServerError):
    """The server answered with an error.

    ``status`` is the HTTP status (it may be 200 with an error text), ``retry_after`` seconds if it said so.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int,
        retry_after: float | None = None,
        server: str = "",
        request: str = "",
        remedy: str = "",
    ) -> None:
        super().__init__(message, server=server, request=request, remedy=remedy)
        self.status = status
        self.retry_after = retry_after


class NotFoundError(RejectedError):
    """The server says that there is no such asset, folder, database or channel (interface, «Errors»)."""


class UnreadableError(ServerError):
    """The answer is not what the interface promises, and nothing can be concluded from it."""


class UnsupportedError(ServerError):
    """The product version set for the server lacks the feature (interface, «Versioning»)."""
