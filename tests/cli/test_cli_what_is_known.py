"""The closing sentence of a run is exactly true: what was read again, what is not reported, what was left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from msauto.simulator import Simulator
from tests.cli.command_line import Desk

pytestmark = pytest.mark.usefixtures("hurried")
INV = ("-i", "inventory.yml")
COMMENT = {"asset": {"title": "EP001", "fields": {"comment": "new"}}}
COMMAND = {"command": {"name": "PARTNER_EXPORT_VERSION", "title": "EP001"}}
STILL = {"thumbnail": {"title": "EP002", "pos": 0, "dest": "still.png"}}
KEYWORDS = {"asset": {"title": "EP001", "segments": [{"number": 1, "start": 0, "duration": 9, "keywords": "a"}]}}
BATCH = {"xmp_batch": {"connector": "TRAFFIC", "src": "batch.xml"}}
SEEN = "All changes are verified."
FETCHED = "1 file was downloaded."
HIDDEN = "The changes cannot be read back; the server accepted the requests."


@pytest.fixture
def sim(sim: Simulator) -> Iterator[Simulator]:
    before = sim.dialect
    sim.dialect = before.with_values({"segment_keywords": "hidden", "link_fields": "reported"})
    yield sim
    sim.dialect = before


@pytest.mark.parametrize(
    ("tasks", "told"),
    [
        ((COMMENT,), SEEN),
        ((COMMAND,), HIDDEN),
        ((BATCH,), HIDDEN),
        ((STILL,), FETCHED),
        ((COMMENT, STILL), f"{SEEN} {FETCHED}"),
        (
            (COMMENT, COMMAND),
            "All changes that can be read back are verified; 1 change cannot be read back.",
        ),
        (
            (KEYWORDS, COMMAND, BATCH),
            "All changes that can be read back are verified; 3 changes cannot be read back.",
        ),
    ],
)
def test_after(desk: Desk, tasks: tuple[dict[str, Any], ...], told: str) -> None:
    desk.write("batch.xml", "<batch/>")
    desk.play(*tasks)
    sourced = desk.run("apply", "--yes", *INV, "play.yml")
    assert sourced.code == 0, sourced
    assert sourced.out.rstrip().splitlines()[-1].partition(". ")[2] == told


@pytest.mark.parametrize(("link_fields", "told"), [("reported", SEEN), ("hidden", HIDDEN)])
def test_fields_that_a_server_does_not_report(desk: Desk, sim: Simulator, link_fields: str, told: str) -> None:
    sim.dialect = sim.dialect.with_values({"link_fields": link_fields})
    desk.comment("new")
    sourced = desk.run("apply", "--yes", *INV, "play.yml")
    assert (sourced.code, sourced.out.rstrip().splitlines()[-1].partition(". ")[2]) == (0, told)


@pytest.mark.parametrize("form", ["text", "json", "markdown", "html"])
def test_what_keep_going_leaves_out_is_not_as_wanted(desk: Desk, form: str) -> None:
    desk.play(COMMENT, {"asset": {"title": "No Such Clip", "fields": {"comment": "x"}}})
    sourced = desk.run("apply", "--yes", "--keep-going", *INV, "play.yml", "--format", form)
    assert sourced.code == 3, sourced
    assert "read again" not in sourced.out
    if form == "json":
        result = sourced.json["result"]
        assert (result["ok"], result["changed"], result["not_attempted"]) == (False, 1, 1)
        assert "No Such Clip" in sourced.json["targets"][1]["result"]["message"]
        return
    assert "Not everything is as desired: 1 changed, 1 not attempted; 1 request in " in sourced.out
    assert "→ correct the title, or write" in sourced.out
    if form == "text":
        assert "changed=1 not_attempted=1" in sourced.out


def test_nothing_but_what_is_left_out(desk: Desk, sim: Simulator) -> None:
    desk.play({"asset": {"title": "No Such Clip", "fields": {"comment": "x"}}})
    sourced = desk.run("apply", "--yes", "--keep-going", *INV, "play.yml")
    assert (sourced.code, sim.writes()) == (3, [])
    assert "Not everything is as desired: 1 not attempted; 0 requests in " in sourced.out
    (run,) = desk.run("history", "--format", "json").json
    assert (run["status"], run["code"], run["summary"]["not_attempted"]) == ("failed", 3, 1)
    assert "'No Such Clip' not found" in desk.run("history", "last").out
