"""Faults: what goes wrong, for which requests, how often. `delivery.py` enacts them."""

from __future__ import annotations

import math
import random
import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

_EXAMPLES = {"status": 503, "cut_at": 100}
_NEEDS_ARGUMENT = ("status", "delay", "late", "cut_at")
KINDS = (
    "status",
    "delay",
    "cut_before",
    "cut_after",
    "garbage",
    "truncate",
    "cut_at",
    "swallow",
    "late",
    "html",
    "slow_body",
)
_TEXT = re.compile(
    r"(?P<kind>[a-z_]+(?::[\d.:]+)?)@(?P<match>.+?)"
    r"(?:\*(?P<times>\d+))?(?:\+(?P<after>\d+))?(?:~(?P<chance>[\d.]+))?"
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong for requests whose `METHOD raw_path?query` matches (a search, not a full match).

    Kinds (the work is what the request asks for):
        status:CODE[:RETRY_AFTER]  answers with the status; work not done
        delay:SECONDS              waits, then all is well
        cut_before                 closes the connection; work not done
        cut_after                  work done, then closes the connection without an answer
        garbage                    work done, answers random bytes
        truncate                   work done, sends half of the body under its full Content-Length, then closes
        cut_at:BYTES[:SECONDS]     work done, sends so many bytes of the body under its full length, waits, then closes
        swallow                    answers as if all were well; work not done
        late:SECONDS               closes the connection now; work done after the seconds
        html                       answers 200 with a login page; work not done
        slow_body[:SECONDS]        work done, the body dribbles over the seconds (1)

    `times`: how often (None: always). `after`: how many matching requests pass first.
    `probability`: of each match, drawn from `seed`.
    """

    match: str
    kind: str
    times: int | None = None
    after: int = 0
    probability: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        name, colon, argument = self.kind.partition(":")
        if name not in KINDS:
            raise ValueError(f"unknown fault {name!r}; known: {', '.join(KINDS)}")
        if name in _NEEDS_ARGUMENT and not colon:
            raise ValueError(f"the fault {name} needs a number, such as {name}:{_EXAMPLES.get(name, 5)}")
        try:
            numbers = [float(part) for part in argument.split(":") if colon]
            re.compile(self.match)
        except (ValueError, re.error) as problem:
            raise ValueError(f"fault {self.kind}@{self.match}: {problem}") from None
        if not all(map(math.isfinite, numbers)):
            raise ValueError(f"the fault {name} has a number that is too large")
        if name == "status" and not 200 <= numbers[0] <= 599:
            raise ValueError(f"the status of a fault is 200 to 599, not {argument[:20]}")

    @classmethod
    def parse(cls, text: str) -> Fault:
        """`KIND@REGEX[*TIMES][+SKIP][~PROBABILITY]`, e.g. `cut_after@POST .*CREATEMARKER*1`."""
        found = _TEXT.fullmatch(text)
        if found is None:
            raise ValueError(f"a fault is KIND@REGEX[*TIMES][+SKIP][~PROBABILITY], not {text!r}")
        times = int(found["times"]) if found["times"] else None
        return cls(found["match"], found["kind"], times, int(found["after"] or 0), float(found["chance"] or 1))

    @property
    def name(self) -> str:
        """The kind without its argument."""
        return self.kind.partition(":")[0]

    @property
    def arguments(self) -> tuple[float, ...]:
        """The numbers after the kind."""
        return tuple(float(part) for part in self.kind.split(":")[1:])


@dataclass(slots=True)
class _Armed:
    fault: Fault
    pattern: re.Pattern[str]
    random: random.Random
    seen: int = 0
    hits: int = 0

    def takes(self, line: str) -> bool:
        fault = self.fault
        if (fault.times is not None and self.hits >= fault.times) or not self.pattern.search(line):
            return False
        self.seen += 1
        if self.seen <= fault.after:
            return False
        if fault.probability < 1 and self.random.random() >= fault.probability:
            return False
        self.hits += 1
        return True


@dataclass(slots=True)
class Faults:
    """The faults in force; the first one that takes a request has it. Safe to change from another thread."""

    _armed: list[_Armed] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, *faults: Fault | str) -> None:
        """Arm faults, given as values or as text."""
        for given in faults:
            fault = Fault.parse(given) if isinstance(given, str) else given
            armed = _Armed(fault, re.compile(fault.match), random.Random(fault.seed))
            with self._lock:
                self._armed.append(armed)

    def replace(self, faults: Iterable[Fault | str]) -> None:
        """Disarm all and arm these; on a ValueError nothing is changed."""
        parsed = [Fault.parse(given) if isinstance(given, str) else given for given in faults]
        self.clear()
        self.add(*parsed)

    def clear(self) -> None:
        """Disarm all."""
        with self._lock:
            self._armed.clear()

    def hits(self) -> dict[str, int]:
        """How often each fault in force struck, by `KIND@REGEX`."""
        return {f"{armed.fault.kind}@{armed.fault.match}": armed.hits for armed in self._armed}

    def take(self, line: str) -> Fault | None:
        """The fault that strikes this request (`METHOD target`), counted; or None."""
        if not self._armed:
            return None
        with self._lock:
            return next((armed.fault for armed in self._armed if armed.takes(line)), None)
