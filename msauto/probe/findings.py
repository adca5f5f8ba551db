"""The result of probing a server: findings with evidence, and unanswered questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from msauto.errors import AddressError, InDoubtError, NotSentError, ServerError
from msauto.server.answers import clean

Where = Literal["dialect", "server"]


@dataclass(frozen=True, slots=True)
class DialectFinding:
    """The value of one key. ``evidence`` is one line: the request and the answer.

    ``where`` is where ``name`` is a key: in ``dialect:``, or in ``server:`` beside it.
    """

    where: Where
    name: str
    value: str | int
    evidence: str


@dataclass(frozen=True, slots=True)
class UnansweredQuestion:
    """A key whose value is unknown, and why."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """All findings of one server.

    ``left`` names what a trial could not undo on the scratch asset; empty means that it was read again and is
    unchanged, ``None`` that nothing was tried.
    """

    server: str
    database: str
    found: tuple[DialectFinding, ...]
    missed: tuple[UnansweredQuestion, ...]
    left: tuple[str, ...] | None = None

    def of(self, where: Where) -> tuple[DialectFinding, ...]:
        """Return the findings of one kind, in order."""
        return tuple(each for each in self.found if each.where == where)


@dataclass(slots=True)
class ProbeNotes:
    """Collects findings while a server is asked; each key is found or missed once. ``hide`` redacts secrets."""

    hide: Callable[[str], str] = str
    found: list[DialectFinding] = field(default_factory=list)
    missed: list[UnansweredQuestion] = field(default_factory=list)

    def learn(self, key: str, value: str | int, evidence: str, where: Where = "dialect") -> None:
        """Note the value of a key."""
        self.missed = [each for each in self.missed if each.name != key]
        self.found.append(DialectFinding(where, key, value, clean(self.hide(evidence))))

    def miss(self, why: str, *names: str) -> None:
        """Note why keys are unknown, unless they have a value or a reason."""
        known = {each.name for each in self.found} | {each.name for each in self.missed}
        self.missed += [UnansweredQuestion(name, clean(self.hide(why))) for name in names if name not in known]

    @contextmanager
    def trying(self, *names: str) -> Iterator[None]:
        """Note keys as missed after a bad answer; a server that cannot be reached ends the probe."""
        try:
            yield
        except NotSentError:
            raise
        except (ServerError, AddressError) as error:
            reason = f"{error.request}: {error.message}" if isinstance(error, ServerError) else error.message
            self.miss(reason, *names)
            if isinstance(error, InDoubtError):
                raise
