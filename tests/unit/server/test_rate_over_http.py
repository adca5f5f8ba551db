"""Every request to a real server counts: reads, further attempts, writes, and the start of a download."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from msauto.model.server import ServerSpec
from msauto.server.client import AsyncMediaServer
from msauto.simulator import Simulator


@dataclass
class LoggedClock:
    """Time passes by sleeping alone; ``seen`` holds the requests in the log of the server after each sleep."""

    simulator: Simulator
    seconds: float = 0.0
    seen: list[tuple[float, int]] = field(default_factory=list)

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)
        self.seconds += seconds
        self.seen.append((self.seconds, len(self.simulator.log)))


def test_the_log_of_the_server_never_runs_ahead_of_the_rate(tmp_path: Path) -> None:
    async def main(simulator: Simulator) -> LoggedClock:
        clock = LoggedClock(simulator)
        spec = ServerSpec("studio", simulator.url, requests_per_second=2)
        async with AsyncMediaServer(spec, clock=clock) as server:
            await asyncio.gather(
                server.list("NEWS"),
                server.set_field("NEWS", "Long Film", "comment", "Ready"),
                server.asset("NEWS", "Long Film"),
                server.thumbnail("NEWS", "Long Film"),
                server.download_proxy("NEWS", "Long Film", "WP1", tmp_path / "film.mp4"),
                server.xmp("NEWS", "Long Film"),
            )
        return clock

    with Simulator(faults=["status:503@GET .*GETICON*1"]) as simulator:
        clock = asyncio.run(main(simulator))
        requests = len(simulator.log)
    assert requests == 7  # one of them again, after 503
    assert all(count <= 2 * seconds for seconds, count in clock.seen)
    assert clock.seconds >= requests / 2
