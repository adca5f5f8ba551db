"""Commands, stills and viewing copies, the whole way: what is sent, what is remembered, what is fetched again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from msauto.errors import InputError
from msauto.simulator import Simulator, empty_state
from tests.dialects.keeping_switches import keeps
from tests.dialects.pairwise import Row
from tests.theatre import Theatre, changes, errors, outcomes

FILM = "/storage/NEWS@Long%20Film"


@pytest.fixture
def stage(row: Row, tmp_path: Path) -> Iterator[Theatre]:
    state = empty_state()
    state.add_clip("Long Film", "Films", frames=2000)
    state.handles["4711"] = state.add_clip("Going", "Films", frames=100)
    with Simulator(state=state) as sim:
        yield Theatre({"studio": sim}, tmp_path).on(row)


def play(*tasks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "A test", "tasks": list(tasks), **more}


def command(**args: Any) -> dict[str, Any]:
    return {"command": {"name": "PARTNER_EXPORT_VERSION", "title": "Long Film", **args}}


# Commands ------------------------------------------------------------------------------------------------------


def test_a_command_runs_always_and_takes_two_reads_and_one_write(stage: Theatre) -> None:
    for _ in range(2):
        stage.sim.clear_log()
        assert stage.apply(play(command())).ok
        assert stage.writes() == [f"POST {FILM}?command=PARTNER_EXPORT_VERSION"]
        assert stage.reads() == [FILM, FILM]  # the second one compares which clip it is


def test_once_is_once(stage: Theatre) -> None:
    assert stage.apply(play(command(run="once"))).ok
    again = stage.plan(play(command(run="once")))
    assert (again.requests, again.unchanged, again.warnings) == (0, 1, ())
    other = stage.plan(play(command(run="once", name="PARTNER_COPY_PROGRAM_FIELDS")))
    assert changes(other) == ["run command PARTNER_COPY_PROGRAM_FIELDS"]
    stage.sim.state.databases["NEWS"].remove_clip(stage.sim.state.clip("Long Film"))
    stage.sim.state.add_clip("Long Film", "Films", frames=2000)
    assert stage.plan(play(command(run="once"))).requests == 1, "a clip recorded anew is another clip"


@pytest.mark.parametrize("fault", ["cut_after", "cut_before", "status:500", "status:504"])
def test_a_lost_command_is_told_and_not_sent_again(stage: Theatre, fault: str) -> None:
    stage.sim.faults.add(f"{fault}@PARTNER*1")
    assert outcomes(stage.apply(play(command(run="once")))) == ["studio Long Film: unverified"]
    again = stage.plan(play(command(run="once")))
    assert again.requests == 0
    (warning,) = again.warnings
    assert ("the server answered 5" if fault.startswith("status") else "its answer was lost") in warning
    assert "--forget-pending" in warning
    assert "run: always" in warning


def test_a_lost_command_taken_as_run(stage: Theatre) -> None:
    stage.sim.faults.add("cut_after@PARTNER*1")
    stage.apply(play(command(run="once")))
    assert stage.plan(play(command(run="once")), forget_pending=True).warnings == ()
    assert len(stage.plan(play(command(run="once"))).warnings) == 1, "a plan writes nothing"
    assert stage.apply(play(command(run="once")), forget_pending=True).ok
    again = stage.plan(play(command(run="once")))
    assert (again.requests, again.warnings) == (0, ())


def test_a_lost_command_run_by_hand(stage: Theatre) -> None:
    stage.sim.faults.add("cut_before@PARTNER*1")
    stage.apply(play(command(run="once")))
    assert stage.apply(play(command(run="always"))).ok
    again = stage.plan(play(command(run="once")))
    assert (again.requests, again.warnings) == (0, ())


def test_a_refused_command_is_tried_by_the_next_run(stage: Theatre) -> None:
    stage.sim.faults.add("status:403@PARTNER*1")
    assert outcomes(stage.apply(play(command(run="once")))) == ["studio Long Film: failed"]
    assert stage.apply(play(command(run="once"))).ok
    assert stage.plan(play(command(run="once"))).requests == 0


@pytest.mark.scale
def test_killed_while_a_command_is_under_way(stage: Theatre) -> None:
    stage.sim.faults.add("delay:5@PARTNER")
    stage.killed(play(command(run="once")), when=lambda: any(stage.sim.faults.hits().values()))
    stage.sim.faults.clear()
    again = stage.plan(play(command(run="once")))
    assert (again.requests, len(again.warnings)) == (0, 1)


def test_changed_runs_where_the_asset_changes(stage: Theatre) -> None:
    field = {"asset": {"title": "Long Film", "fields": {"comment": "Ready"}}}
    stage.sim.clear_log()
    assert stage.apply(play(command(run="changed"), field)).ok
    assert [line.rpartition("command=")[2] for line in stage.writes()] == [
        "SETFIELD&name=comment&val=Ready",
        "PARTNER_EXPORT_VERSION",
    ]
    again = stage.plan(play(command(run="changed"), field))
    assert (again.requests, again.unchanged) == (0, 1)


@pytest.mark.parametrize("fault", ["cut_after", "cut_before"])
def test_changed_whose_answer_was_lost_is_told_until_something_is_sure_to_change(stage: Theatre, fault: str) -> None:
    stage.sim.dialect = stage.sim.dialect.with_values({"link_fields": "hidden"})
    field = {"asset": {"title": "Long Film", "fields": {"comment": "x"}}}
    stage.sim.faults.add(f"{fault}@EXPORT*1")
    assert outcomes(stage.apply(play(command(run="changed"), field))) == ["studio Long Film: unverified"]
    again = stage.plan(play(command(run="changed"), field))
    assert again.requests == 0
    (warning,) = again.warnings
    assert "its answer was lost" in warning
    more = {"asset": {"title": "Long Film", "fields": {"comment": "x", "user_1": "never known"}}}
    assert changes(stage.plan(play(command(run="changed"), more))) == ["change field user_1"]
    sure = {"asset": {"title": "Long Film", "fields": {"comment": "y"}}}
    assert stage.apply(play(command(run="changed"), sure)).ok
    last = stage.plan(play(command(run="changed"), sure))
    assert (last.requests, last.warnings) == (0, ())


def test_changed_is_owed_where_the_run_fails_in_between(stage: Theatre) -> None:
    field = {"asset": {"title": "Long Film", "fields": {"comment": "Ready"}}}
    stage.sim.faults.add("status:403@PARTNER*1")
    result = stage.apply(play(field, command(run="changed")))
    assert outcomes(result) == ["studio Long Film: failed"]
    again = stage.plan(play(field, command(run="changed")))
    assert [(change.aspect, change.pending) for change in again.targets[0].changes] == [("command", result.run)]


@keeps(ns_id="yes")
def test_ns_and_id_follow_the_address(stage: Theatre) -> None:
    task = {"command": {"name": "PARTNER_EXPORT_VERSION", "id": "handle:4711"}}
    stage.sim.clear_log()
    assert stage.apply(play(task)).ok
    assert stage.writes() == ["POST /storage/NEWS@handle:4711?command=PARTNER_EXPORT_VERSION&ns=handle&id=4711"]


@keeps(ns_id="yes")
def test_the_card_has_no_ns(stage: Theatre) -> None:
    task = {"command": {"name": "PARTNER_MOVE_TO_ASSET", "id": "handle:4711", "params": {"asset_id": "C 1"}}}
    stage.sim.clear_log()
    assert stage.apply(play(task)).ok
    assert stage.writes() == ["POST /storage/NEWS@handle:4711?command=PARTNER_MOVE_TO_ASSET&asset_id=C%201"]


def test_a_version_that_lacks_it(stage: Theatre) -> None:
    stage.version = "2.8.22"
    plan = stage.plan(play(command(name="PARTNER_COPY_PROGRAM_FIELDS")))
    assert "2.8.23" in errors(plan)[0]
    stage.version = "2.3.62"
    assert "2.3.63" in errors(stage.plan(play(still())))[0]


def test_a_selection(stage: Theatre) -> None:
    tasks = {
        "command": {"name": "PARTNER_EXPORT_VERSION", "select": {"folder": "Films", "where": "asset.frames > 500"}}
    }
    assert changes(stage.plan(play(tasks))) == ["run command PARTNER_EXPORT_VERSION"]


# Downloads -----------------------------------------------------------------------------------------------------


def still(**args: Any) -> dict[str, Any]:
    return {
        "thumbnail": {"title": "Long Film", "pos": "00:00:04:00", "w": 320, "h": 180, "dest": "out/still.png", **args}
    }


def test_a_still(stage: Theatre) -> None:
    stage.sim.clear_log()
    plan = stage.plan(play(still()))
    assert changes(plan) == [f"run thumbnail {stage.folder / 'out/still.png'}"]
    assert stage.writes() == [], "planning fetches nothing"
    assert plan.targets[0].requests[0].method == "GET"
    stage.sim.clear_log()
    assert stage.apply(play(still())).ok
    assert stage.writes() == [f"GET {FILM}/GETICON?pos=100&w=320&h=180"]
    assert stage.reads() == [FILM, FILM]
    dest = stage.folder / "out" / "still.png"
    assert dest.read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in dest.parent.iterdir()] == ["still.png"]
    stage.sim.clear_log()
    again = stage.plan(play(still()))
    assert (again.requests, again.unchanged) == (0, 1)
    assert len(stage.sim.log) == 1


def test_a_still_is_fetched_again_when_anything_differs(stage: Theatre) -> None:
    assert stage.apply(play(still())).ok
    dest = stage.folder / "out" / "still.png"
    assert stage.plan(play(still(w=640))).requests == 1
    assert stage.plan(play(still(pos=101))).requests == 1
    assert stage.plan(play(still(pos=100))).requests == 0, "the same position, said otherwise"
    content = dest.read_bytes()
    dest.write_bytes(content + b"x")
    assert stage.plan(play(still())).requests == 1
    dest.write_bytes(content)
    assert stage.plan(play(still())).requests == 0
    dest.unlink()
    assert stage.plan(play(still())).requests == 1
    dest.write_bytes(content)
    stage.sim.state.clip("Long Film").frames = 3000
    assert stage.plan(play(still())).requests == 1


def test_getion_counts_from_the_in_point(stage: Theatre) -> None:
    stage.sim.state.clip("Long Film").home.fields["first_frame"] = "25"
    stage.sim.clear_log()
    assert stage.apply(play(still())).ok
    assert stage.writes() == [f"GET {FILM}/GETICON?pos=75&w=320&h=180"]


def test_a_position_beyond_the_clip(stage: Theatre) -> None:
    (error,) = errors(stage.plan(play(still(pos=2000))))
    assert "2000 frames" in error


def test_elements_of_a_graphic_template(stage: Theatre) -> None:
    stage.sim.state.add_clip("Lower Third", "Graphics", mime_type=10, params=("headline",), frames=125)
    desired = {"title": "Lower Third", "params": {"headline": "Hi: a&b\nЯ"}, "dest": "out/third.png"}
    stage.sim.clear_log()
    assert stage.apply(play({"thumbnail": desired})).ok
    (line,) = stage.writes()
    assert line.casefold() == "GET /storage/NEWS@Lower%20Third/GETICON?param=headline:Hi%3A%20a%26b%0a%D0%AF".casefold()
    (error,) = errors(stage.plan(play({"thumbnail": {**desired, "params": {"headlin": "x"}}})))
    assert "headlin" in error
    assert "it has: headline" in error


@pytest.mark.scale
@pytest.mark.parametrize("fault", ["status:500", "cut_before", "truncate", "html"])
def test_a_still_that_fails_leaves_the_old_file(stage: Theatre, fault: str) -> None:
    dest = stage.folder / "out" / "still.png"
    dest.parent.mkdir()
    dest.write_bytes(b"old")
    stage.sim.faults.add(f"{fault}@GETICON")
    assert outcomes(stage.apply(play(still()))) == ["studio Long Film: failed"]
    assert dest.read_bytes() == b"old"
    assert [path.name for path in dest.parent.iterdir()] == ["still.png"]
    stage.sim.faults.clear()
    assert stage.apply(play(still())).ok
    assert dest.read_bytes() != b"old"


def test_a_place_that_cannot_be_written(stage: Theatre) -> None:
    (stage.folder / "out").write_text("a file stands where a folder is needed")
    result = stage.apply(play(still()))
    assert outcomes(result) == ["studio Long Film: failed"]
    assert "could not be written" in result.targets[0].message


def test_a_viewing_copy(stage: Theatre) -> None:
    task = {"proxy": {"title": "Long Film", "profile": "WP2", "dest": "out/film.mp4"}}
    stage.sim.state.clip("Long Film").frames = 25
    stage.sim.clear_log()
    plan = stage.plan(play(task))
    assert (plan.requests, stage.writes()) == (1, []), "asking makes the server work: not while planning"
    assert stage.apply(play(task)).ok
    assert stage.writes() == [f"GET {FILM}/WP2"]
    assert (stage.folder / "out" / "film.mp4").read_bytes()[4:8] == b"ftyp"
    assert stage.plan(play(task)).requests == 0
    other = {"proxy": {"title": "Long Film", "profile": "WP1", "dest": "out/film.mp4"}}
    assert stage.plan(play(other)).requests == 1


def copy(profile: str = "WP2") -> dict[str, Any]:
    return {"proxy": {"title": "Long Film", "profile": profile, "dest": "out/film.mp4"}}


def test_a_copy_is_fetched_again_when_the_clip_or_the_file_has_changed(stage: Theatre) -> None:
    clip = stage.sim.state.clip("Long Film")
    clip.frames = 25
    assert stage.apply(play(copy())).ok
    dest = stage.folder / "out" / "film.mp4"
    content = dest.read_bytes()
    dest.touch()
    assert stage.plan(play(copy())).requests == 0, "the time of the file says nothing"
    dest.write_bytes(content[:-1] + b"x")
    assert stage.plan(play(copy())).requests == 1
    dest.unlink()
    assert stage.plan(play(copy())).requests == 1
    dest.write_bytes(content)
    clip.create_time = "2026-11-20T10:00:00"
    assert stage.plan(play(copy())).requests == 1, "recorded anew"
    stage.sim.clear_log()
    assert stage.apply(play(copy())).ok
    assert stage.plan(play(copy())).requests == 0


def test_a_copy_that_broke_off_leaves_nothing_and_is_fetched_by_the_next_run(stage: Theatre) -> None:
    stage.sim.state.clip("Long Film").frames = 25
    stage.sim.faults.add("cut_at:1000:0.5@/WP2*1", "status:403@/WP2*1")
    assert outcomes(stage.apply(play(copy()))) == ["studio Long Film: failed"]
    assert list((stage.folder / "out").iterdir()) == []
    assert stage.apply(play(copy())).ok
    assert [path.name for path in (stage.folder / "out").iterdir()] == ["film.mp4"]
    assert stage.plan(play(copy())).requests == 0


def test_a_profile_that_is_not_configured_has_failed(stage: Theatre) -> None:
    task = {"proxy": {"title": "Long Film", "profile": "WP8", "dest": "out/film.mp4"}}
    result = stage.apply(play(task))
    assert outcomes(result) == ["studio Long Film: failed"]
    assert not (stage.folder / "out").exists()


def test_two_files_in_one_place(stage: Theatre) -> None:
    task = {"thumbnail": {"select": {"folder": "Films"}, "dest": "out/still.png"}}
    found = errors(stage.plan(play(task)))
    assert len(found) == 2
    assert all("{{ asset.title }}" in error and "'Going'" in error and "'Long Film'" in error for error in found)
    named = {"thumbnail": {"select": {"folder": "Films"}, "dest": "out/{{ asset.title }}.png"}}
    assert stage.apply(play(named)).ok
    assert sorted(path.name for path in (stage.folder / "out").iterdir()) == ["Going.png", "Long Film.png"]


def test_a_title_does_not_lead_outside(stage: Theatre) -> None:
    stage.sim.state.add_clip("../../../../../../../../../../../../../../tmp/escaped", "Films", frames=10)
    named = {"thumbnail": {"select": {"folder": "Films"}, "dest": "out/{{ asset.title }}.png"}}
    (error,) = errors(stage.plan(play(named)))
    assert "outside the playbook's repository" in error


def test_a_link_does_not_lead_outside(stage: Theatre, tmp_path_factory: pytest.TempPathFactory) -> None:
    (stage.folder / "msauto.toml").write_text("")
    (stage.folder / "out").symlink_to(tmp_path_factory.mktemp("elsewhere"))
    with pytest.raises(InputError, match="outside the playbook's repository"):
        stage.plan(play(still()))


# assert --------------------------------------------------------------------------------------------------------


def test_assert(stage: Theatre) -> None:
    holds = {"assert": {"title": "Long Film", "that": ["asset.frames > 250", "asset.fps == 25"], "msg": "too short"}}
    plan = stage.plan(play(holds))
    assert (plan.requests, plan.unchanged, plan.errors) == (0, 1, 0)
    fails = {
        "assert": {"title": "Long Film", "that": ["asset.frames > 250", "asset.frames > 9000"], "msg": "too short"}
    }
    (error,) = errors(stage.plan(play(fails)))
    assert "playbook.yml:8:" in error
    assert "too short (asset.frames > 9000)" in error
    gone = {"assert": {"title": "Nobody", "that": ["asset.frames > 250"]}}
    assert "not found" in errors(stage.plan(play(gone)))[0]


def test_the_digest_is_of_what_is_on_disk(stage: Theatre) -> None:
    result = stage.apply(play(still()))
    dest = stage.folder / "out" / "still.png"
    from msauto.ledger import Ledger

    with Ledger.open(stage.folder / "state", readonly=True) as ledger:
        target = structs.replace(result.plan.targets[0].id, server=stage.sim.url)
        kept = ledger.memory.recall(target)[f"thumbnail:{dest}"]
    assert isinstance(kept, dict)
    assert kept["sha256"] == hashlib.sha256(dest.read_bytes()).hexdigest()
