"""How faults strike: each kind is a small coroutine between the request and its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from msauto.simulator.faults import Fault
from msauto.simulator.http.answers import HttpAnswer, garbage, text_answer
from msauto.simulator.http.asgi import HttpExchange
from msauto.simulator.http.log import LogEntry

_LOGIN = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body><form>Please sign in</form></body></html>"


@dataclass(slots=True)
class FaultedRequest:
    """A request that a fault has struck. `work` does what it asks for; `pretend` answers as if it had.

    `background` runs a coroutine that outlives the exchange.
    """

    fault: Fault
    exchange: HttpExchange
    entry: LogEntry
    work: Callable[[], Awaitable[HttpAnswer]]
    pretend: Callable[[], Awaitable[HttpAnswer]]
    background: Callable[[Awaitable[None]], None]

    async def send(self, answer: HttpAnswer) -> None:
        """Send an answer, its status noted first: the client may look at the log as soon as it has it."""
        self.entry.status = answer.status
        await self.exchange.deliver(answer)

    async def done(self) -> HttpAnswer:
        """Do the work, and note whether it was done."""
        answer = await self.work()
        answer.whole_body()
        self.entry.done = answer.done
        return answer


async def strike(struck: FaultedRequest) -> None:
    """Let the fault have its way."""
    await _KINDS[struck.fault.name](struck)


async def _status(struck: FaultedRequest) -> None:
    code, *retry_after = struck.fault.arguments
    answer = text_answer("Error: the simulator was told to fail", int(code), done=False)
    answer.headers = [(b"retry-after", b"%d" % seconds) for seconds in map(int, retry_after)]
    await struck.send(answer)


async def _delay(struck: FaultedRequest) -> None:
    await asyncio.sleep(struck.fault.arguments[0])
    await struck.send(await struck.done())


async def _cut_before(struck: FaultedRequest) -> None:
    await struck.exchange.cut()


async def _cut_after(struck: FaultedRequest) -> None:
    await struck.done()
    await struck.exchange.cut()


async def _garbage(struck: FaultedRequest) -> None:
    answer = await struck.done()
    await struck.send(HttpAnswer(200, garbage(struck.entry.number), answer.content_type))


async def _truncate(struck: FaultedRequest) -> None:
    answer = await struck.done()
    await _send_some(struck, answer, len(answer.body) // 2)


async def _cut_at(struck: FaultedRequest) -> None:
    most, *seconds = struck.fault.arguments
    await _send_some(struck, await struck.done(), int(most), *seconds)


async def _send_some(struck: FaultedRequest, answer: HttpAnswer, most: int, seconds: float = 0.0) -> None:
    # Where all of it is sent, promise a byte that never comes.
    length = len(answer.body) if most < len(answer.body) else most + 1
    struck.entry.status = answer.status
    await struck.exchange.start(answer, length)
    some = {"type": "http.response.body", "body": answer.body[:most], "more_body": True}
    await struck.exchange.send(some)
    await asyncio.sleep(seconds)
    await struck.exchange.cut_after_sending()


async def _swallow(struck: FaultedRequest) -> None:
    await struck.send(await struck.pretend())


async def _late(struck: FaultedRequest) -> None:
    async def afterwards() -> None:
        await asyncio.sleep(struck.fault.arguments[0])
        await struck.done()

    struck.background(afterwards())
    await struck.exchange.cut()


async def _html(struck: FaultedRequest) -> None:
    await struck.send(HttpAnswer(200, _LOGIN, "text/html; charset=utf-8", done=False))


async def _slow_body(struck: FaultedRequest) -> None:
    answer = await struck.done()
    seconds = (*struck.fault.arguments, 1.0)[0]
    step = max(1, -(-len(answer.body) // 10))
    struck.entry.status = answer.status
    await struck.exchange.start(answer, len(answer.body))
    for place in range(0, len(answer.body), step):
        await asyncio.sleep(seconds / 10)
        piece = answer.body[place : place + step]
        await struck.exchange.send({"type": "http.response.body", "body": piece, "more_body": True})
    await struck.exchange.send({"type": "http.response.body", "body": b""})


_KINDS: dict[str, Callable[[FaultedRequest], Awaitable[None]]] = {
    "status": _status,
    "delay": _delay,
    "cut_before": _cut_before,
    "cut_after": _cut_after,
    "garbage": _garbage,
    "truncate": _truncate,
    "cut_at": _cut_at,
    "swallow": _swallow,
    "late": _late,
    "html": _html,
    "slow_body": _slow_body,
}
