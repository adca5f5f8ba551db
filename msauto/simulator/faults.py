"""Faults: which ones exist, which requests they apply to, and what each one does.

The faults `before` and `after` are hooks: they change the content as another user does, and the request is answered
as without them.
"""

from __future__ import annotations

import asyncio
import math
import random
import re
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from msauto.simulator.http.answers import HttpAnswer, garbage, text_answer
from msauto.simulator.http.asgi import HttpExchange
from msauto.simulator.http.log import LogEntry
from msauto.simulator.state.changes import Change, parse_change

HOOKS = ("before", "after")
# The kinds that need a number.
_EXAMPLES = {"status": 503, "done_status": 503, "lag": 5, "delay": 5, "late": 5, "cut_at": 100}
_TEXT = re.compile(
    r"(?P<kind>[a-z_]+(?::[^@]*)?)@(?P<match>.+?)"
    r"(?:\*(?P<times>\d+))?(?:\+(?P<after>\d+))?(?:~(?P<chance>[\d.]+))?"
)
_LOGIN = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body><form>Please sign in</form></body></html>"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault for requests in whose `METHOD raw_path?query` the pattern `match` is found.

    `kind` is a name of `KINDS` with its numbers, such as `status:503`, or a hook: `before:CHANGE` changes the content
    before the request, `after:CHANGE` before its answer is sent. CHANGE is a text such as `rename:OLD:NEW`; in Python,
    the kind can be `before` or `after` alone, and `change` what to do with the state.
    `times`: how often (None: always). `after`: how many matching requests are skipped first.
    `probability`: for each match, from the random seed `seed`.
    """

    match: str
    kind: str
    times: int | None = None
    after: int = 0
    probability: float = 1.0
    seed: int = 0
    change: Change | None = None

    def __post_init__(self) -> None:
        name, colon, argument = self.kind.partition(":")
        if name in HOOKS:
            if self.change is None:
                object.__setattr__(self, "change", parse_change(argument))
            return
        if name not in KINDS:
            raise ValueError(f"unknown fault {name!r}; known: {', '.join((*KINDS, *HOOKS))}")
        if name in _EXAMPLES and not colon:
            raise ValueError(f"the fault {name} needs a number, such as {name}:{_EXAMPLES[name]}")
        try:
            numbers = self.arguments
            re.compile(self.match)
        except (ValueError, re.error) as problem:
            raise ValueError(f"fault {self.kind}@{self.match}: {problem}") from None
        if not all(0 <= number < math.inf for number in numbers):
            raise ValueError(f"the fault {name} takes numbers from 0 to 1e308, not {argument[:20]}")
        if name.endswith("status") and not 200 <= numbers[0] <= 599:
            raise ValueError(f"the status of a fault is 200 to 599, not {argument[:20]}")

    @classmethod
    def parse(cls, text: str) -> Fault:
        """`KIND@REGEX[*TIMES][+SKIP][~PROBABILITY]`, e.g. `cut_after@POST .*CREATEMARKER*1` or `after:swap:A:B@GET`."""
        found = _TEXT.fullmatch(text)
        if found is None:
            raise ValueError(f"a fault is KIND@REGEX[*TIMES][+SKIP][~PROBABILITY], not {text!r}")
        times = int(found["times"]) if found["times"] else None
        return cls(found["match"], found["kind"], times, int(found["after"] or 0), float(found["chance"] or 1))

    @property
    def arguments(self) -> list[float]:
        """The numbers after the kind."""
        return [float(part) for part in self.kind.split(":")[1:]]


@dataclass(slots=True)
class _ActiveFault:
    fault: Fault
    random: random.Random
    seen: int = 0
    hits: int = 0

    def applies(self, line: str) -> bool:
        fault = self.fault
        if (fault.times is not None and self.hits >= fault.times) or not re.search(fault.match, line):
            return False
        self.seen += 1
        if self.seen <= fault.after or (fault.probability < 1 and self.random.random() >= fault.probability):
            return False
        self.hits += 1
        return True


@dataclass(slots=True)
class Faults:
    """The active faults: of those that apply to a request, all hooks are used, and the first of the others.

    Any thread can change them.
    """

    _active: list[_ActiveFault] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, *faults: Fault | str) -> None:
        """Activate faults, given as values or as texts; after a ValueError nothing is changed."""
        values = [Fault.parse(given) if isinstance(given, str) else given for given in faults]
        with self._lock:
            self._active += [_ActiveFault(fault, random.Random(fault.seed)) for fault in values]

    def clear(self) -> None:
        """Deactivate all faults."""
        with self._lock:
            self._active.clear()

    def hits(self) -> dict[str, int]:
        """Return how often each active fault was applied, by `KIND@REGEX`."""
        return {f"{active.fault.kind}@{active.fault.match}": active.hits for active in self._active}

    def take(self, line: str) -> list[Fault]:
        """Return the faults for this request (`METHOD target`) and count them: hooks, and at most one other."""
        taken: list[Fault] = []
        if not self._active:
            return taken
        with self._lock:
            for active in self._active:
                if (active.fault.change or all(fault.change for fault in taken)) and active.applies(line):
                    taken.append(active.fault)
        return taken


@dataclass(slots=True)
class FaultedRequest:
    """A request and its fault. `work` does what it asks for; `pretend` only answers as after success.

    `background` runs a coroutine that outlives the exchange.
    """

    fault: Fault
    exchange: HttpExchange
    entry: LogEntry
    work: Callable[[], Awaitable[HttpAnswer]]
    pretend: Callable[[], Awaitable[HttpAnswer]]
    background: Callable[[Awaitable[None]], None]

    async def apply(self) -> None:
        """Apply the fault."""
        name, _, _ = self.fault.kind.partition(":")
        await KINDS[name](self, *self.fault.arguments)

    async def send(self, answer: HttpAnswer) -> None:
        """Send an answer; its status is in the log before the client has it."""
        self.entry.status = answer.status
        await self.exchange.send_answer(answer)

    async def done(self) -> HttpAnswer:
        """Do the work, and note in the log whether it was done."""
        answer = await self.work()
        answer.whole_body()
        self.entry.done = answer.done
        return answer

    def work_later(self, seconds: float) -> None:
        """Do the work after the seconds, also if the exchange has ended."""

        async def work() -> None:
            await asyncio.sleep(seconds)
            await self.done()

        self.background(work())

    async def send_some(self, answer: HttpAnswer, most: int, seconds: float = 0.0) -> None:
        """Send at most so many bytes of the body, wait, and close the connection."""
        self.entry.status = answer.status
        # If the whole body is sent, the Content-Length is one byte too large.
        await self.exchange.start(answer, max(len(answer.body), most + 1))
        await self.exchange.send_body(answer.body[:most])
        await asyncio.sleep(seconds)
        await self.exchange.close(after_sending=True)


async def _status(request: FaultedRequest, code: float, *retry_after: float) -> None:
    """`status:CODE[:RETRY_AFTER]`: answer with the status; the work is not done."""
    answer = text_answer("Error: simulated fault", int(code), done=False)
    answer.headers = [(b"retry-after", b"%d" % int(seconds)) for seconds in retry_after]
    await request.send(answer)


async def _done_status(request: FaultedRequest, code: float, *retry_after: float) -> None:
    """`done_status:CODE[:RETRY_AFTER]`: do the work, then answer with the status."""
    await request.done()
    await _status(request, code, *retry_after)


async def _lag(request: FaultedRequest, seconds: float, *status: float) -> None:
    """`lag:SECONDS[:CODE[:RETRY_AFTER]]`: answer as after success, or with the status; do the work later."""
    request.work_later(seconds)
    await (_status(request, *status) if status else _swallow(request))


async def _delay(request: FaultedRequest, seconds: float, *_: float) -> None:
    """`delay:SECONDS`: wait, then do the work and answer."""
    await asyncio.sleep(seconds)
    await request.send(await request.done())


async def _cut_before(request: FaultedRequest, *_: float) -> None:
    """`cut_before`: close the connection; the work is not done."""
    await request.exchange.close()


async def _cut_after(request: FaultedRequest, *_: float) -> None:
    """`cut_after`: do the work, then close the connection without an answer."""
    await request.done()
    await request.exchange.close()


async def _garbage(request: FaultedRequest, *_: float) -> None:
    """`garbage`: do the work, answer random bytes."""
    answer = await request.done()
    await request.send(HttpAnswer(200, garbage(request.entry.number), answer.content_type))


async def _truncate(request: FaultedRequest, *_: float) -> None:
    """`truncate`: do the work, send half of the body with its full Content-Length, then close the connection."""
    answer = await request.done()
    await request.send_some(answer, len(answer.body) // 2)


async def _cut_at(request: FaultedRequest, most: float, *seconds: float) -> None:
    """`cut_at:BYTES[:SECONDS]`: do the work, send that much of the body with its full length, wait, then close."""
    await request.send_some(await request.done(), int(most), *seconds[:1])


async def _swallow(request: FaultedRequest, *_: float) -> None:
    """`swallow`: answer as after success; the work is not done."""
    await request.send(await request.pretend())


async def _late(request: FaultedRequest, seconds: float, *_: float) -> None:
    """`late:SECONDS`: close the connection now, and do the work after the seconds."""
    request.work_later(seconds)
    await request.exchange.close()


async def _html(request: FaultedRequest, *_: float) -> None:
    """`html`: answer 200 with a login page; the work is not done."""
    await request.send(HttpAnswer(200, _LOGIN, "text/html; charset=utf-8", done=False))


async def _slow_body(request: FaultedRequest, seconds: float = 1.0, *_: float) -> None:
    """`slow_body[:SECONDS]`: do the work, send the body in ten parts over the seconds."""
    answer = await request.done()
    step = max(1, -(-len(answer.body) // 10))
    request.entry.status = answer.status
    await request.exchange.start(answer, len(answer.body))
    for place in range(0, len(answer.body), step):
        await asyncio.sleep(seconds / 10)
        await request.exchange.send_body(answer.body[place : place + step])
    await request.exchange.send_body(b"", more=False)


_EFFECTS = (
    *(
        _status,
        _done_status,
        _lag,
        _delay,
        _cut_before,
        _cut_after,
        _garbage,
        _truncate,
        _cut_at,
        _swallow,
        _late,
        _html,
        _slow_body,
    ),
)
KINDS: dict[str, Callable[..., Awaitable[None]]] = {each.__name__.removeprefix("_"): each for each in _EFFECTS}
