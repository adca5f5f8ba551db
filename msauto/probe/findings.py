"""What probing a server yields: findings with their evidence, and what could not be learned."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from msauto.errors import AddressError, InDoubtError, NotSentError, ServerError
from msauto.server.parsers.failure import clean

Where = Literal["dialect", "server", "seen"]


@dataclass(frozen=True, slots=True)
class DialectFinding:
    """One thing that a server showed. ``evidence`` is one line: what was asked, and what came.

    ``where`` tells what ``name`` is: a key of ``dialect:``, a key of ``server:`` beside it, or a habit that msauto
    meets by itself and that needs no key.
    """

    where: Where
    name: str
    value: str | int
    evidence: str


@dataclass(frozen=True, slots=True)
class UnansweredQuestion:
    """What could not be learned, and why."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """All that was learned of one server.

    ``left`` names what a trial left behind on the scratch asset; empty means that it was read again and found as
    before, ``None`` that nothing was tried.
    """

    server: str
    database: str
    found: tuple[DialectFinding, ...]
    missed: tuple[UnansweredQuestion, ...]
    left: tuple[str, ...] | None = None

    def of(self, where: Where) -> tuple[DialectFinding, ...]:
        """Return the findings of one kind, in the order they were made."""
        return tuple(each for each in self.found if each.where == where)


@dataclass(slots=True)
class ProbeNotes:
    """Collects findings while a server is asked; each name is found or missed once. ``hide`` takes out secrets."""

    hide: Callable[[str], str] = str
    found: list[DialectFinding] = field(default_factory=list)
    missed: list[UnansweredQuestion] = field(default_factory=list)

    def learn(self, key: str, value: str, evidence: str) -> None:
        """Note the value of a ``dialect:`` key."""
        self._add(DialectFinding("dialect", key, value, self._clean(evidence)))

    def limit(self, key: str, value: int, evidence: str) -> None:
        """Note the value of a ``server:`` key."""
        self._add(DialectFinding("server", key, value, self._clean(evidence)))

    def see(self, name: str, value: str, evidence: str) -> None:
        """Note a habit that needs no key."""
        self._add(DialectFinding("seen", name, self._clean(value), self._clean(evidence)))

    def miss(self, name: str, why: str) -> None:
        """Note that something could not be learned, unless it was."""
        known = {each.name for each in self.found} | {each.name for each in self.missed}
        if name not in known:
            self.missed.append(UnansweredQuestion(name, self._clean(why)))

    def forget(self, *names: str) -> None:
        """Drop what is noted as missed: it is tried once more, in another way."""
        self.missed = [each for each in self.missed if each.name not in names]

    @contextmanager
    def trying(self, *names: str) -> Iterator[None]:
        """Miss what a bad answer keeps from being learned; a server that cannot be reached ends the probe."""
        try:
            yield
        except NotSentError:
            raise
        except (ServerError, AddressError) as error:
            told = f"{error.request}: {error.message}" if isinstance(error, ServerError) else error.message
            for name in names:
                self.miss(name, told)
            if isinstance(error, InDoubtError):
                raise

    def _clean(self, text: str) -> str:
        return clean(self.hide(text))

    def _add(self, finding: DialectFinding) -> None:
        self.missed = [each for each in self.missed if each.name != finding.name]
        self.found.append(finding)
