"""`plan --format html --stills N`: pictures of what the plan changes, fetched by GET and kept."""

from __future__ import annotations

import re
from base64 import b64decode

from msauto.simulator import Simulator
from tests.cli.command_line import Desk

PLAN = ("plan", "-i", "inventory.yml", "play.yml")
STILLS = (*PLAN, "--format", "html", "--stills")
MARKER = {"asset": {"title": "EP001", "markers": [{"at": 250, "title": "Break"}]}}
GONE = {"asset": {"title": "EP002", "state": "absent"}}


def pictures(page: str) -> list[bytes]:
    return [b64decode(found) for found in re.findall(r"data:image/png;base64,([\w+/=]+)", page)]


def fetched(sim: Simulator) -> list[str]:
    return [entry.target for entry in sim.log if "GETICON" in entry.target]


def test_stills_show_deleted_clips_first_and_are_fetched_once(desk: Desk, sim: Simulator) -> None:
    sim.state.clip("EP001").home.fields["first_frame"] = "100"
    desk.play(MARKER, GONE)
    page = desk.run(*STILLS, "2").out
    assert len(pictures(page)) == 3  # the deleted clip is in the overview and in the list
    assert all(each.startswith(b"\x89PNG") for each in pictures(page))
    assert "img-src data:;" in page
    assert sorted(fetched(sim)) == [
        "/storage/NEWS@EP001/GETICON?pos=150&w=192&h=108",  # positions count from the in point
        "/storage/NEWS@EP002/GETICON?w=192&h=108",
    ]
    assert {entry.method for entry in sim.log} <= {"GET", "HEAD"}
    assert pictures(desk.run(*STILLS, "2").out) == pictures(page)
    assert len(fetched(sim)) == 2
    assert len(pictures(desk.run(*STILLS, "1").out)) == 2


def test_a_still_that_cannot_be_fetched_is_a_warning(desk: Desk, sim: Simulator) -> None:
    desk.play(MARKER, GONE)
    sim.faults.add("status:500@.*GETICON.*")
    shown = desk.run(*STILLS, "5")
    assert shown.code == 0
    assert pictures(shown.out) == []
    assert shown.err.startswith("Warning: 2 stills are missing: studio-a: ")


def test_without_stills_nothing_is_fetched_and_other_forms_refuse_them(desk: Desk, sim: Simulator) -> None:
    desk.play(MARKER)
    assert "img-src" not in desk.run(*PLAN, "--format", "html").out
    assert fetched(sim) == []
    desk.run(*PLAN, "--stills", "3").one_error("--stills shows pictures only in HTML", "--format html")
