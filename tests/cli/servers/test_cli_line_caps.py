"""The cap on the request line, tried at its very edge: for reads and each kind of write, before anything is sent."""

from __future__ import annotations

from typing import Any

import pytest

from msauto.plugins.simulator.embedded import Simulator
from msauto.plugins.simulator.embedded.state import SimClip
from tests.cli.command_line import Desk, Said
from tests.tables import one_fast_in

LONG = "Длинное имя / с косой чертой: " + "ж" * 60
FOLDER = "Очень/глубокая/" + "п" * 40
INV = ("-i", "inventory.yml")

TASKS: dict[str, dict[str, Any]] = {
    "field": {"asset": {"title": LONG, "fields": {"comment": "ж" * 30}}},
    "rename": {"asset": {"title": f"{LONG} neu", "was": [LONG]}},
    "xmp": {"asset": {"title": LONG, "xmp": {"dc:title": ["ж" * 30]}}},
    "segment": {
        "asset": {
            "title": LONG,
            "segments": [{"number": 1, "start": 0, "duration": 10, "title": "ж" * 30}],
        }
    },
    "segmentation": {
        "asset": {"title": LONG, "segmentation": {"duration": 100, "title": "ж" * 30}}
    },
    "marker": {
        "asset": {"title": LONG, "markers": [{"at": 0, "track": "General", "title": "ж" * 30}]}
    },
    "link": {"asset": {"title": LONG, "links": [{"folder": FOLDER}]}},
    "restore": {"asset": {"title": LONG, "restore": True}},
    "delete": {"asset": {"title": LONG, "state": "absent"}},
    "command": {
        "command": {
            "name": "PARTNER_MOVE_TO_ASSET",
            "title": LONG,
            "params": {"asset_id": "ж" * 30},
        }
    },
    "rss": {
        "rss": {
            "channel": "ticker",
            "items": [{"guid": "n-77", "file": f"{'ж' * 40}.xml", "item": {"title": "T"}}],
        }
    },
    "thumbnail": {
        "thumbnail": {"title": LONG, "params": {"headline": "ж" * 30}, "dest": "out.png"}
    },
    "proxy": {"proxy": {"title": LONG, "profile": "WP1", "dest": "out.mp4"}},
}


@pytest.fixture(autouse=True)
def film(sim: Simulator) -> SimClip:
    news = sim.state.databases["NEWS"]
    news.make_folder(FOLDER)
    clip = news.add_clip(LONG, "Raw", frames=400)
    clip.archive, clip.online = "$(archive_path)/film.mxf", False
    return clip


def plan(desk: Desk, cap: int, *more: str) -> Said:
    server = {"url": desk.url, "request_line": cap}
    desk.inventory({"studio-a": {"server": server, "database": "NEWS"}})
    return desk.run("plan", *INV, "play.yml", *more)


def line(method: str, path: str) -> int:
    return len(f"{method} {path} HTTP/1.1\r\n".encode("ascii"))


def longest(sourced: Said) -> int:
    return max(
        line(each["method"], each["path"])
        for target in sourced.json["targets"]
        for each in target["requests"]
    )


@pytest.mark.parametrize("kind", one_fast_in(3, TASKS))
def test_a_write_at_the_edge(desk: Desk, sim: Simulator, kind: str) -> None:
    desk.play(TASKS[kind])
    cap = longest(plan(desk, 8000, "--format", "json"))
    fits = plan(desk, cap, "--format", "json")
    assert fits.json["summary"]["errors"] == 0, fits
    assert longest(fits) == cap
    for command in (("plan",), ("apply", "-y", "--allow-delete", "1")):
        server = {"url": desk.url, "request_line": cap - 1}
        desk.inventory({"studio-a": {"server": server, "database": "NEWS"}})
        sourced = desk.run(*command, *INV, "play.yml")
        assert sourced.code == 1, sourced
        for words in (f"{cap}", f"{cap - 1}", "request_line", "→"):
            assert words in sourced.out, sourced.out
    assert sim.writes() == []


def reads(sim: Simulator) -> int:
    return max(line(each.method, each.target) for each in sim.log)


READS: dict[str, tuple[str, ...]] = {
    "asset": ("show", "asset", LONG),
    "folder": ("show", "assets", FOLDER),
    "folders": ("show", "folders", FOLDER),
}


@pytest.mark.parametrize("kind", READS)
def test_a_read_at_the_edge(desk: Desk, sim: Simulator, kind: str) -> None:
    desk.inventory({"studio-a": {"server": {"url": desk.url}, "database": "NEWS"}})
    assert desk.run(*READS[kind], *INV).code == 0
    cap = reads(sim)
    for allowed, code in ((cap, 0), (cap - 1, 1)):
        sim.clear_log()
        desk.inventory(
            {"studio-a": {"server": {"url": desk.url, "request_line": allowed}, "database": "NEWS"}}
        )
        sourced = desk.run(*READS[kind], *INV)
        assert sourced.code == code, sourced
        if code:
            sourced.one_error("studio-a", f"{cap} bytes", f"{cap - 1}", "`request_line`")
            assert not [each for each in sim.log if line(each.method, each.target) >= cap]
        else:
            assert reads(sim) == cap


def test_a_title_too_long_to_be_asked_for_is_an_error_of_its_target_alone(
    desk: Desk, sim: Simulator
) -> None:
    desk.play(TASKS["field"], {"asset": {"title": "EP001", "fields": {"comment": "new"}}})
    sourced = plan(desk, 256, "--format", "json")
    errors = {target["name"]: target["error"] for target in sourced.json["targets"]}
    assert errors["EP001"] is None
    assert "request_line" in errors[LONG]
    assert "256" in errors[LONG]
