"""All errors that msauto raises on purpose.

::

    MsautoError
     ├── InputError            a text is invalid: playbook, inventory, settings, plan file
     ├── PlanningError         one target cannot be planned: conflict, guard, failed assert
     │    └── MissingError     what a task names does not exist: an asset, folder, database or channel
     ├── RefusedError          a user must decide: limits, consent, stale plan, freeze
     ├── AddressError          a name that no address can hold: empty, or not valid Unicode (also a ValueError)
     ├── LockedError           another run holds the lock
     ├── LedgerError           the ledger cannot be used: locked, corrupt, read-only, full
     ├── DownloadError         a file could not be written: disk full, no permission
     ├── ClusterError          the Dask cluster: not reachable, lost, no worker for a server, another version
     └── ServerError           the server, or the connection to it
          ├── NotSentError     the request was certainly not sent
          │    └── UnreachableError  no connection: refused, unknown host name, TLS, time-out
          ├── InDoubtError     the request may have been done: no answer, or an incomplete one
          ├── RejectedError    the server answered with an error
          │    └── NotFoundError   the asset, folder, database or channel does not exist
          ├── UnreadableError  the answer is not what the interface documents: HTML, a DTD, another clip
          └── UnsupportedError the configured product version lacks a feature

A message names the problem and its location; ``remedy`` what to do. No message holds a secret.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from msauto import exit_codes

_LONGEST: Final = 300
"""How much is shown of the text of an error that is not one of ours."""


@dataclass(frozen=True, slots=True, order=True)
class SourceLocation:
    """A location in a text file: ``line`` and ``column`` count from 1; 0 means the whole file."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}:{self.column}"


ProblemKind = Literal[
    "yaml", "duplicate-key", "unknown-key", "not-supported", "missing-key", "keys-together", "wrong-type",
    "invalid-value", "template", "undefined-name", "time-code", "conflict", "file", "host", "variable", "secret",
    "unused", "plan-file",
]  # fmt: skip
"""The kinds of problems: the codes of messages and of JSON. The error index of the docs explains each."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a text: its location, the message, what to do, and the line with a caret under it.

    A ``warning`` is reported and stops nothing.
    """

    message: str
    place: SourceLocation | None = None
    remedy: str = ""
    excerpt: str = ""
    level: Literal["error", "warning"] = "error"
    kind: ProblemKind = "invalid-value"

    def __str__(self) -> str:
        head = f"{self.message} [{self.kind}]"
        if self.place:
            head = f"{self.place}: {head}"
        remedy = self.remedy and f"  → {self.remedy}"
        return "\n".join(filter(None, (head, self.excerpt, remedy)))


def nearest_name(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return the known name that is spelled most like a name; empty if none is near.

    A higher ``cutoff`` is for names that are hardly related, such as the variables of an environment.
    """
    names = sorted(set(known))
    for near in close_names(name, names, 1, cutoff):
        return near
    folded = name.casefold()
    return next((other for other in reversed(names) if other.casefold() == folded), "")


_LONGEST_NAME: Final = 200
_MOST_COMPARED: Final = 20_000_000


def close_names(name: str, known: Sequence[str], most: int, cutoff: float) -> list[str]:
    """Return the known names that are spelled most like a name, the nearest first.

    Comparing two names takes the square of their length. A long name is hardly misspelled, and of very many known names
    only the first ones are compared.
    """
    if not 0 < len(name) <= _LONGEST_NAME:
        return []
    import difflib  # only for a message

    return difflib.get_close_matches(name, known[: _MOST_COMPARED // len(name) ** 2], most, cutoff)


def did_you_mean(
    name: str, known: Iterable[str], otherwise: str = "", *, cutoff: float = 0.6
) -> str:
    """Return ``did you mean 'x'?`` with the nearest known name (:func:`nearest_name`), and what to do otherwise."""
    near = nearest_name(name, known, cutoff=cutoff)
    if not near:
        return otherwise
    question = f"did you mean {near!r}?"
    return f"{question} Else {otherwise}" if otherwise else question


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``did you mean 'x'?`` with the nearest known name, else the first known names; empty if ``known`` is."""
    names = sorted(set(known))
    if not names:
        return ""
    available = f"available: {', '.join(names[:12])}"
    if len(names) > 12:
        available += ", …"
    return did_you_mean(name, names) or available


class MsautoError(Exception):
    """The root: ``except MsautoError`` catches all errors that msauto raises on purpose.

    ``message`` is what is wrong, ``place`` where (``None`` if it is not in a text), and ``remedy`` what to do.
    ``shown``: the document on stdout contains the error already. ``exit_code``: how a command ends with it.
    """

    message: str
    remedy: str
    place: SourceLocation | None = None
    shown = False
    exit_code = exit_codes.ERROR

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle it without its cause: classes have different parameters."""
        return _rebuilt, (type(self), self.args, dict(self.__dict__))

    def __str__(self) -> str:
        return f"{self.message}\n  → {self.remedy}" if self.remedy else self.message


def _rebuilt(
    kind: type[MsautoError], args: tuple[object, ...], state: dict[str, object]
) -> MsautoError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class InputError(MsautoError):
    """Texts are invalid. ``problems`` holds all, ordered by location; ``place``, ``remedy``: those of the first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(in_order(problems))
        super().__init__("\n".join(str(problem) for problem in self.problems))
        if self.problems:
            self.place, self.remedy = self.problems[0].place, self.problems[0].remedy

    def __str__(self) -> str:
        return self.message


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Return problems in order of place, each once; what a file has of another tool once, with all its lines."""
    first_of_each: dict[object, Problem] = {}
    for problem in problems:
        first_of_each.setdefault((problem.place, problem.message), problem)
    alike: dict[object, list[Problem]] = {}
    for problem in sorted(first_of_each.values(), key=_by_place):
        key: object = id(problem)
        if problem.kind == "not-supported" and problem.place is not None:
            key = problem.message, problem.place.file
        alike.setdefault(key, []).append(problem)
    ordered: list[Problem] = []
    for first, *others in alike.values():
        if others:
            lines = ", ".join([str(other.place.line) for other in others if other.place])
            word = "lines" if len(others) > 1 else "line"
            first = replace(first, message=f"{first.message} (also on {word} {lines})")
        ordered.append(first)
    return ordered


def _by_place(problem: Problem) -> tuple[SourceLocation, str]:
    return problem.place or SourceLocation(""), problem.message


class PlanningError(MsautoError):
    """One target cannot be planned; ``place`` is the location in the playbook."""

    def __init__(
        self, message: str, *, place: SourceLocation | None = None, remedy: str = ""
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.place = place

    def __str__(self) -> str:
        text = super().__str__()
        return f"{self.place}: {text}" if self.place else text


class MissingError(PlanningError):
    """What a task names does not exist: an asset, a folder, a database or a channel.

    ``folder`` is set if the remedy may name the nearest one.
    """

    folder = ""


class RefusedError(MsautoError):
    """Nothing was sent, because a user must decide first."""

    exit_code = exit_codes.REFUSED


class AddressError(MsautoError, ValueError):
    """A name or value that no request can hold: empty, not valid Unicode, or read as another name by the server."""


class LockedError(MsautoError):
    """Another run holds a lock that this run needs."""

    exit_code = exit_codes.LOCKED


class LedgerError(MsautoError):
    """The ledger cannot be used; nothing was sent."""


class DownloadError(MsautoError):
    """A download could not be saved; no incomplete file is left."""


class ClusterError(MsautoError):
    """The Dask cluster cannot be used, or was lost."""


class ServerError(MsautoError):
    """An error of the server or the connection. ``server`` is its name in the inventory, or its host.

    ``url`` is set if the connection failed.
    """

    url = ""

    def __init__(
        self, message: str, *, server: str = "", request: str = "", remedy: str = ""
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.server = server
        self.request = request

    def __str__(self) -> str:
        where = self.server and f"server {self.server}"
        if where and self.url:
            where += f" at {self.url}"
        return ": ".join(filter(None, (where, self.request, super().__str__())))


class NotSentError(ServerError):
    """The request certainly did not reach the server."""


class UnreachableError(NotSentError):
    """No connection to the server: refused, unknown host name, TLS, or time-out."""


class InDoubtError(ServerError):
    """The request was sent and no complete answer came: it may have been done, or may still be."""


class RejectedError(ServerError):
    """The server answered with an error.

    ``status`` is the HTTP status (200 if the answer is an error text), ``retry_after`` in seconds.
    """

    def __init__(
        self, message: str, *, status: int, retry_after: float | None = None, **context: str
    ) -> None:
        super().__init__(message, **context)
        self.status = status
        self.retry_after = retry_after


class NotFoundError(RejectedError):
    """The asset, folder, database or channel does not exist (interface, «Errors»)."""


class UnreadableError(ServerError):
    """The answer is not what the interface documents; nothing follows from it."""


class AnotherClipError(MsautoError):
    """The title of a target now leads to another clip than the one that was planned."""


class UnsupportedError(ServerError):
    """The product version configured for the server lacks the feature (interface, «Versions»)."""


def exit_code_of(error: Exception) -> int:
    """Return the exit code of any error."""
    return error.exit_code if isinstance(error, MsautoError) else exit_codes.ERROR


def one_line(error: BaseException) -> str:
    """Return the message of any error in one line, without its remedy; see :func:`described`."""
    return " ".join(described(error).message.split())


def described(error: BaseException) -> MsautoError:
    """Return any error as one of msauto: that of one target, or of one server. An unforeseen one names its class.

    >>> described(OverflowError("too many digits")).message
    'OverflowError: too many digits'
    """
    if isinstance(error, MsautoError):
        return error
    _print_traceback(error)
    text = " ".join(str(error).split())
    message = f"{type(error).__name__}: {text}" if text else type(error).__name__
    shown = message if len(message) <= _LONGEST else f"{message[:_LONGEST]}…"
    return MsautoError(
        shown,
        remedy="look at what the server shows of it; if nothing is odd there, report this error",
    )


def bug_text(error: Exception) -> str:
    """Return an error of msauto itself in one line, and print where it was raised if ``MSAUTO_DEBUG`` is set."""
    _print_traceback(error)
    return f"msauto itself failed: {type(error).__name__}: {error}"


def _print_traceback(error: BaseException) -> None:
    if os.environ.get("MSAUTO_DEBUG"):
        import traceback

        traceback.print_exception(error)
