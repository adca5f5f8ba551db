"""Hooks: what other users do to the content, right before or right after a request."""

from __future__ import annotations

import http.client

import pytest

from msauto.simulator import Fault, ServerState, Simulator
from tests.unit.simulator.asking import Asker


@pytest.fixture(autouse=True)
def clips(sim: Simulator) -> None:
    one = sim.state.add_clip("A", "Raw", frames=100, create_time="2026-11-20T10:00:00")
    sim.state.add_clip("B:1@x", "Films", frames=200)
    sim.state.databases["NEWS"].add_entry(one, "Playout/Tonight", "A tonight")


def titles(sim: Simulator) -> list[str]:
    return [clip.title for clip in sim.state.databases["NEWS"].clips() if clip.frames in (100, 200)]


def comment(ask: Asker, title: str) -> int:
    return ask.command(title, "SETFIELD", name="comment", val="ours").status


def test_before_the_second_request_that_matches(sim: Simulator, ask: Asker) -> None:
    sim.faults.add("before:rename:A:C@POST .*SETFIELD*1+1")
    assert [comment(ask, "A"), comment(ask, "A"), comment(ask, "C")] == [200, 404, 200]
    assert [entry.fault for entry in sim.writes()] == ["", "before:rename:A:C", ""]


def test_after_a_request(sim: Simulator, ask: Asker) -> None:
    sim.faults.add("after:rename:A:C@GET")
    assert ask.get("/storage/NEWS@A").status == 200
    assert ask.get("/storage/NEWS@A").status == 404
    assert ask.get("/storage/NEWS@A%20tonight").status == 200


def test_a_swap_with_escaped_texts(sim: Simulator, ask: Asker) -> None:
    one, other = sim.state.clip("A"), sim.state.clip("B:1@x")
    sim.faults.add("before:swap:A:B%3A1%40x@SETFIELD*1")
    assert comment(ask, "A") == 200
    assert (one.title, other.title, other.home.fields) == ("B:1@x", "A", {"comment": "ours"})


def test_a_clip_that_is_recorded_again(sim: Simulator, ask: Asker) -> None:
    old = sim.state.clip("A")
    old.home.fields["comment"] = "old"
    sim.faults.add("after:rerecord:A@POST*1")
    assert comment(ask, "A") == 200
    new = sim.state.clip("A")
    assert (new.home.fields, new.frames, new.create_time) == ({}, 100, "2026-11-21T10:00:00")
    assert (new.home.link_id > old.home.link_id, new.file != old.file) == (True, True)
    assert ask.get("/storage/NEWS@A%20tonight").status == 404


def test_any_change_in_python(sim: Simulator, ask: Asker) -> None:
    def change(state: ServerState) -> None:
        state.clip("A").frames += 1

    sim.faults.add(Fault("GET", "before", times=1, after=1, change=change))
    assert [ask.attrs("A")["frames"] for _ in range(3)] == ["100", "101", "101"]


def test_a_hook_and_a_fault_of_one_request(sim: Simulator, ask: Asker) -> None:
    sim.faults.add("status:500@GET", "after:rename:C:D@POST", "cut_after@POST", "before:rename:A:C@POST")
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        comment(ask, "C")
    assert sim.state.clip("D").home.fields == {"comment": "ours"}
    assert sim.writes()[0].fault == "after:rename:C:D cut_after before:rename:A:C"


def test_a_long_listing_is_that_from_before_the_change(sim: Simulator, ask: Asker) -> None:
    sim.faults.add("after:rename:Lower Third:Upper Third@GET /storage/NEWS")
    assert b'>Lower Third</Attr>\n<Attr name="create_time' in ask.get("/storage/NEWS").body
    assert b'>Lower Third</Attr>\n<Attr name="create_time' not in ask.get("/storage/NEWS").body


@pytest.mark.parametrize("text", ["rename:Nobody:B", "swap:A:Nobody", "rerecord:N"])
def test_a_title_that_no_clip_has_changes_nothing(sim: Simulator, ask: Asker, text: str) -> None:
    before = titles(sim)
    sim.faults.add(f"before:{text}@GET")
    assert ask.get("/storage/NEWS@A").status == 200
    assert titles(sim) == before


@pytest.mark.parametrize("text", ["before@GET", "after:explode:A@GET", "before:rename:A@GET", "before:swap:A:B:C@GET"])
def test_what_is_no_change(text: str) -> None:
    with pytest.raises(ValueError, match=r"unknown change .*; known: rename:OLD:NEW; swap:"):
        Fault.parse(text)
