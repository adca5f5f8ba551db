"""The commands: fields, links, files, cards, segments and markers; DELETE; the metadata connector."""

from __future__ import annotations

import time

import pytest

from msauto.plugins.simulator.embedded import SimClip, Simulator
from tests.tables import table
from tests.unit.simulator.asking import Asker

FILM = "Long Film"


def test_restore_takes_its_time() -> None:
    with Simulator(restore_seconds=3600) as sim:
        ask = Asker(sim)
        assert ask.command("Documentary 1987", "RESTORE").status == 200
        assert ask.clip("Documentary 1987").get("hires") == ""
        ask.command("Documentary 1987", "RESTORE")
        sim.state.clip("Documentary 1987").online_at = time.time()
        assert (ask.clip("Documentary 1987").get("hires") or "").startswith("$(video_path)")


def test_partner_commands_are_noted(sim: Simulator, ask: Asker) -> None:
    ask.command(FILM, "PARTNER_EXPORT_VERSION")
    ask.command(FILM, "PARTNER_EXPORT_VERSION", ns="title", id="Promo 1")
    assert [call["command"] for call in sim.state.clip(FILM).partner] == [
        "PARTNER_EXPORT_VERSION"
    ] * 2
    assert ask.command(FILM, "PARTNER_EXPORT_VERSION", ns="handle", id="9").status == 404
    sim.state.databases["NEWS"].partner = False
    assert ask.command(FILM, "PARTNER_EXPORT_VERSION").status == 500
    assert len(sim.state.clip(FILM).partner) == 2


BATCH = """<batch><clip title="Long Film"><field name="dc:title">Ж</field><field name="dc:subject">a</field>
<field name="dc:subject">b</field></clip><clip title="Nobody"><field name="x">y</field></clip></batch>"""


def test_a_batch_through_a_connector(sim: Simulator, ask: Asker) -> None:
    target = "/storage/NEWS?connector=TRAFFIC"
    assert ask.ask("PUT", target, BATCH.encode()).status == 200
    assert sim.state.clip(FILM).xmp == {"dc:title": ["Ж"], "dc:subject": ["a", "b"]}
    loaded = sim.state.databases["NEWS"].connectors["TRAFFIC"]
    assert loaded == [BATCH.encode()]
    wrong = (
        ("/storage/NEWS?connector=OTHER", b"<batch/>", 500),
        ("/storage/NEWS", b"<batch/>", 400),
        (target, b"<batch>", 400),
        (target, b"<!DOCTYPE x><batch/>", 400),
    )
    for path, body, status in wrong:
        assert ask.ask("PUT", path, body).status == status
    assert len(loaded) == 1


# Segments and markers: what the commands make, and what the dialect makes of what the interface leaves open


@pytest.fixture
def clip(sim: Simulator) -> SimClip:
    return sim.state.add_clip("C", frames=1000, rate=25)


@table("simulator/wrong_segments", "params")
def test_a_bad_segment_is_refused(clip: SimClip, ask: Asker, params: dict[str, object]) -> None:
    assert ask.command("C", "CREATESEGMENT", **params).status == 400
    assert clip.segments == []
