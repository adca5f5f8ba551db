"""A write waits for its permit before it is journalled: then nothing lies between the journal and the server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from msauto.applying.executor import Cancellation, ServerConnection
from msauto.model.plan import Request, Target
from msauto.model.result import Result
from msauto.model.server import ServerSpec
from msauto.server.pacing import Pacer, Permit
from tests.unit.applying.applying_world import DictJournal, Stage, World, WorldReader, WorldSender, fields_target
from tests.unit.applying.virtual_time import VirtualClock, run_in_virtual_time


@dataclass
class PacedPermit:
    sender: PacedSender
    permit: Permit

    async def send(self, request: Request) -> Any:
        self.sender.sends.append((self.sender.world.clock.monotonic(), request.path))
        return await self.sender.send(request)

    def release(self) -> None:
        self.permit.release()


@dataclass
class PacedSender(WorldSender):
    """Sends by the permits of a pacer."""

    pacer: Pacer
    sends: list[tuple[float, str]] = field(default_factory=list)

    async def permit(self) -> Any:
        return PacedPermit(self, await self.pacer.permit())


class TimedJournal(DictJournal):
    """Notes when a request is journalled."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock
        self.sendings: list[tuple[float, str]] = []

    def sending(self, run: str, target: Target, index: int) -> None:
        super().sending(run, target, index)
        self.sendings.append((self._clock.monotonic(), target.requests[index].path))


class PacedStage(Stage):
    def __init__(self, rate: float) -> None:
        clock = VirtualClock()
        super().__init__(World(clock=clock), TimedJournal(clock))
        self._spec = ServerSpec("studio-a", "http://studio-a", requests_per_second=rate)

    def server(self) -> ServerConnection:
        self.sender = PacedSender(self.world, Pacer(self._spec, self.world.clock))
        return ServerConnection(WorldReader(self.world), self.sender)

    def run_until(self, stop: Callable[[Cancellation], Any], count: int = 6) -> Result:
        async def main() -> Result:
            stopped = Cancellation()
            stopping = asyncio.ensure_future(stop(stopped))
            targets = [fields_target(self.world, f"Film {number}", 2) for number in range(count)]
            result = await self.apply(*targets, forks=4, cancellation=stopped)
            await stopping
            return result

        return run_in_virtual_time(main())


async def never(_: Cancellation) -> None:
    """Do not stop."""


def test_each_write_is_sent_when_it_is_journalled() -> None:
    stage = PacedStage(rate=0.5)
    result = stage.run_until(never)
    assert {each.outcome for each in result.targets} == {"changed"}
    assert isinstance(stage.journal, TimedJournal)
    assert stage.journal.sendings == stage.sender.sends
    assert [at for at, _ in stage.sender.sends] == pytest.approx([2.0 * number for number in range(1, 13)], abs=0.01)


def test_what_waits_for_its_permit_when_the_run_is_stopped_is_not_sent() -> None:
    stage = PacedStage(rate=0.5)

    async def stop(cancellation: Cancellation) -> None:
        await asyncio.sleep(5)
        cancellation()

    result = stage.run_until(stop)
    assert isinstance(stage.journal, TimedJournal)
    assert stage.journal.sendings == stage.sender.sends
    assert len(stage.sender.sends) == 2  # after 2 and 4 seconds
    assert result.interrupted
    assert sum(request.outcome == "done" for each in result.targets for request in each.requests) == 2


def test_a_permit_is_given_back_when_the_ledger_fails() -> None:
    stage = Stage()
    stage.journal.fails_at = 2
    result = stage.run(*(fields_target(stage.world, f"Film {number}") for number in range(6)))
    assert {each.outcome for each in result.targets} <= {"not attempted", "failed"}
    assert stage.world.permits == 0
