"""What ``msauto probe`` learns on servers of every habit fits them: read alone, and tried on a scratch clip.

The server is unknown to the probe: the inventory holds credentials, and nothing of the dialect. The probe may leave
open what it cannot learn, but each key that it prints must work. The store is as it was.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from msauto.model.live import Asset
from msauto.model.server import Auth, Secret, ServerSpec
from msauto.plugins.probe.observations import ProbeResult
from msauto.plugins.probe.probe import TrialOptions, probe, probe_by_trial
from msauto.plugins.simulator.embedded import (
    SimDialect,
    SimMarker,
    SimSegment,
    Simulator,
    empty_state,
)
from msauto.plugins.simulator.embedded.rss import put_item
from tests.dialects.fitting import FITTING, rows, server_of
from tests.dialects.pairwise import Row
from tests.dialects.store import differences, plain_store

pytestmark = pytest.mark.scale

ROWS = rows()
SCRATCH, FIELD = "Scratch / тест", "dc:rights"


class Hurried:
    """A clock that hardly waits: this server shows at once what it did."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.001))


def put(sim: Simulator, server: SimDialect) -> None:
    sim.state, sim.dialect = empty_state(), server
    news = sim.state.databases["NEWS"]
    clip = news.add_clip(SCRATCH, "Tests/2026", frames=500)
    clip.segments = [SimSegment(1, 0, 100, ["One"]), SimSegment(4, 120, 300, ["Four"])]
    clip.markers = [
        SimMarker(7, 30, {"title": "Old", "track": "General", "rating": "5", "user": "anna"})
    ]
    clip.xmp = {"dc:title": ["Scratch"], FIELD: ["Kanal 5"]}
    clip.home.fields["first_frame"] = "3"
    news.add_clip("Part: two", "Tests/2026", frames=50, mime_type=4)
    ticker = sim.state.add_channel("ticker")
    put_item(
        ticker,
        "n-1.txt",
        b"<item><title>x</title></item>" if server.rss_body == "item" else b"x",
        server,
    )
    sim.clear_log()


def spec(sim: Simulator, server: SimDialect) -> ServerSpec:
    auth = {
        "basic": Auth(username="ops", password=Secret(server.auth_secret)),
        "bearer": Auth(bearer=Secret(server.auth_secret)),
        "header": Auth(headers=(("X-Auth-Token", Secret(server.auth_secret)),)),
    }.get(server.auth, Auth())
    return ServerSpec("sim", sim.url, auth=auth)


def check(findings: ProbeResult, server: SimDialect, row: Row) -> None:
    learned = {each.name: str(each.value) for each in findings.found}
    assert learned.keys() <= FITTING.keys()
    unfit = {key: value for key, value in learned.items() if value not in FITTING[key](server)}
    assert not unfit, (unfit, [each.evidence for each in findings.found if each.name in unfit], row)


def let_all(asset: Asset, links: Any) -> None:
    del asset, links


def try_on(sim: Simulator, server: SimDialect) -> ProbeResult:
    trial = TrialOptions(SCRATCH, FIELD)
    work = probe_by_trial(
        spec(sim, server), "NEWS", trial, clock=Hurried(), report=lambda _: None, refuse=let_all
    )
    return asyncio.run(work)


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_reading(row: Row, sim: Simulator) -> None:
    server = server_of(row)
    put(sim, server)
    before = plain_store(sim)
    check(asyncio.run(probe(spec(sim, server), "NEWS", title=SCRATCH)), server, row)
    assert not sim.writes()
    assert plain_store(sim) == before


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_trying(row: Row, sim: Simulator) -> None:
    server = server_of(row)
    put(sim, server)
    before = plain_store(sim)
    findings = try_on(sim, server)
    check(findings, server, row)
    wrong = differences(before, plain_store(sim))
    assert not wrong or findings.left, ("put back, it says", wrong, row)
