"""The result of probing a server: findings with evidence, and unanswered questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from msauto.errors import AddressError, InDoubtError, NotSentError, ServerError
from msauto.server.parsers.answer_classes import clean

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

    def learn(self, key: str, value: str, evidence: str) -> None:
        """Note the value of a ``dialect:`` key."""
        self._add("dialect", key, value, evidence)

    def limit(self, key: str, value: int, evidence: str) -> None:
        """Note the value of a ``server:`` key."""
        self._add("server", key, value, evidence)

    def miss(self, name: str, why: str) -> None:
        """Note why a key is unknown, unless it has a value or a reason."""
        known = {each.name for each in self.found} | {each.name for each in self.missed}
        if name not in known:
            self.missed.append(UnansweredQuestion(name, clean(self.hide(why))))

    @contextmanager
    def trying(self, *names: str) -> Iterator[None]:
        """Note keys as missed after a bad answer; a server that cannot be reached ends the probe."""
        try:
            yield
        except NotSentError:
            raise
        except (ServerError, AddressError) as error:
            reason = f"{error.request}: {error.message}" if isinstance(error, ServerError) else error.message
            for name in names:
                self.miss(name, reason)
            if isinstance(error, InDoubtError):
                raise

    def _add(self, where: Where, key: str, value: str | int, evidence: str) -> None:
        self.missed = [each for each in self.missed if each.name != key]
        self.found.append(DialectFinding(where, key, value, clean(self.hide(evidence))))
