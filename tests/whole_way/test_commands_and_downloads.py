"""Commands, stills and viewing copies, the whole way: what is sent, what is remembered, what is fetched again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from msauto.errors import InputError
from msauto.plugins.simulator.embedded import Simulator, empty_state
from tests.dialects.pairwise import Row
from tests.stage import Stage, changes, errors, outcomes

FILM = "/storage/NEWS@Long%20Film"


@pytest.fixture
def stage(row: Row, tmp_path: Path) -> Iterator[Stage]:
    state = empty_state()
    state.add_clip("Long Film", "Films", frames=2000)
    state.handles["4711"] = state.add_clip("Going", "Films", frames=100)
    with Simulator(state=state) as sim:
        yield Stage(sim, tmp_path).on(row)


def play(*tasks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "A test", "tasks": list(tasks), **more}


def command(**args: Any) -> dict[str, Any]:
    return {"command": {"name": "PARTNER_EXPORT_VERSION", "title": "Long Film", **args}}


# Downloads -----------------------------------------------------------------------------------------------------


def still(**args: Any) -> dict[str, Any]:
    return {
        "thumbnail": {
            "title": "Long Film",
            "pos": "00:00:04:00",
            "w": 320,
            "h": 180,
            "dest": "out/still.png",
            **args,
        }
    }


def test_a_still(stage: Stage) -> None:
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


def test_elements_of_a_graphic_template(stage: Stage) -> None:
    stage.sim.state.add_clip(
        "Lower Third", "Graphics", mime_type=10, params=("headline",), frames=125
    )
    desired = {
        "title": "Lower Third",
        "params": {"headline": "Hi: a&b\nЯ"},
        "dest": "out/third.png",
    }
    stage.sim.clear_log()
    assert stage.apply(play({"thumbnail": desired})).ok
    (line,) = stage.writes()
    assert (
        line.casefold()
        == "GET /storage/NEWS@Lower%20Third/GETICON?param=headline:Hi%3A%20a%26b%0a%D0%AF".casefold()
    )
    (error,) = errors(stage.plan(play({"thumbnail": {**desired, "params": {"headlin": "x"}}})))
    assert "headlin" in error
    assert "it has: headline" in error


@pytest.mark.scale
@pytest.mark.parametrize("fault", ["status:500", "cut_before", "truncate", "html"])
def test_a_still_that_fails_leaves_the_old_file(stage: Stage, fault: str) -> None:
    dest = stage.folder / "out" / "still.png"
    assert stage.apply(play(still(w=100))).ok
    old = dest.read_bytes()
    stage.sim.faults.add(f"{fault}@GETICON")
    assert outcomes(stage.apply(play(still()))) == ["studio Long Film: failed"]
    assert dest.read_bytes() == old
    assert [path.name for path in dest.parent.iterdir()] == ["still.png"]
    stage.sim.faults.clear()
    assert stage.apply(play(still())).ok
    assert dest.read_bytes() != old


def test_a_place_that_cannot_be_written(stage: Stage) -> None:
    (stage.folder / "out").write_text("a file stands where a folder is needed")
    result = stage.apply(play(still()))
    assert outcomes(result) == ["studio Long Film: failed"]
    assert "could not be written" in result.targets[0].message


def copy(profile: str = "WP2") -> dict[str, Any]:
    return {"proxy": {"title": "Long Film", "profile": profile, "dest": "out/film.mp4"}}


def test_a_copy_that_broke_off_leaves_nothing_and_is_fetched_by_the_next_run(stage: Stage) -> None:
    stage.sim.state.clip("Long Film").frames = 25
    stage.sim.faults.add("cut_at:1000:0.5@/WP2*1", "status:403@/WP2*1")
    assert outcomes(stage.apply(play(copy()))) == ["studio Long Film: failed"]
    assert list((stage.folder / "out").iterdir()) == []
    assert stage.apply(play(copy())).ok
    assert [path.name for path in (stage.folder / "out").iterdir()] == ["film.mp4"]
    assert stage.plan(play(copy())).requests == 0


def test_a_profile_that_is_not_configured_has_failed(stage: Stage) -> None:
    task = {"proxy": {"title": "Long Film", "profile": "WP8", "dest": "out/film.mp4"}}
    result = stage.apply(play(task))
    assert outcomes(result) == ["studio Long Film: failed"]
    assert not (stage.folder / "out").exists()


def test_two_files_in_one_place(stage: Stage) -> None:
    task = {"thumbnail": {"select": {"folder": "Films"}, "dest": "out/still.png"}}
    found = errors(stage.plan(play(task)))
    assert len(found) == 2
    assert all(
        "{{ asset.title }}" in error and "'Going'" in error and "'Long Film'" in error
        for error in found
    )
    named = {"thumbnail": {"select": {"folder": "Films"}, "dest": "out/{{ asset.title }}.png"}}
    assert stage.apply(play(named)).ok
    assert sorted(path.name for path in (stage.folder / "out").iterdir()) == [
        "Going.png",
        "Long Film.png",
    ]


@pytest.mark.parametrize(
    "dest",
    [
        "out/{{ asset.title }}.png",
        "out/{{ asset.title | lower }}.png",
        "{{ 'out/' ~ asset.title ~ '.png' }}",
        "out/{{ place }}.png",
        "out/{{ asset.title.split('/') | join('/') }}.png",
    ],
)
def test_a_text_of_the_server_is_one_part_of_a_path(stage: Stage, dest: str) -> None:
    titles = [
        "../host_vars/studio-a",
        "..",
        "/tmp/escaped",
        "..\\ci\\x",
        ".git/hooks/x",
        "AC/DC",
        "../../x",
    ]
    for title in titles:
        stage.sim.state.add_clip(title, "Odd", frames=10)
    task = {
        "thumbnail": {"select": {"folder": "Odd"}, "dest": dest},
        "vars": {"place": "{{ asset.title }}"},
    }
    before = {*stage.folder.iterdir()}
    assert stage.apply(play(task)).ok
    folders = {path.name for path in {*stage.folder.iterdir()} - before if path.is_dir()}
    assert folders - {"state"} == {"out"}
    files = [*(stage.folder / "out").iterdir()]
    assert len(files) == len(titles)
    assert all(file.is_file() for file in files)


def test_a_text_of_the_server_is_whole_in_conditions_and_other_values(stage: Stage) -> None:
    stage.sim.state.add_clip("AC/DC", "Odd/Folder", frames=10)
    task = {
        "thumbnail": {"title": "AC/DC", "dest": "out/{{ asset.folder }}.png"},
        "when": "asset.folder == 'Odd/Folder' and asset.title == 'AC/DC'",
    }
    assert stage.apply(play(task)).ok
    (file,) = (stage.folder / "out").iterdir()
    assert file.name.startswith("Odd_Folder~")


# A file that is there --------------------------------------------------------------------------------------------


def test_a_file_of_somebody_else_is_not_replaced(stage: Stage) -> None:
    dest = stage.folder / "out" / "still.png"
    dest.parent.mkdir()
    dest.write_bytes(b"\x89PNG\r\n\x1a\nmine")
    (error,) = errors(stage.plan(play(still())))
    assert "exists, and is not as msauto fetched it" in error
    assert "remove it" in error
    dest.unlink()
    assert stage.apply(play(still())).ok


def test_a_file_that_was_fetched_is_replaced_also_for_another_clip(stage: Stage) -> None:
    dest = stage.folder / "out" / "still.png"
    assert stage.apply(play(still())).ok
    before = dest.read_bytes()
    assert stage.apply(play(still(title="Going", pos=1))).ok
    assert dest.read_bytes() != before
    dest.write_bytes(dest.read_bytes() + b"edited")
    (error,) = errors(stage.plan(play(still(w=100))))
    assert "is not as msauto fetched it" in error


def test_a_still_in_a_file_of_another_format_is_not_kept(stage: Stage) -> None:
    result = stage.apply(play(still(dest="out/still.mp4")))
    assert outcomes(result) == ["studio Long Film: failed"]
    assert "does not begin like an MP4 file" in result.targets[0].message
    assert list((stage.folder / "out").iterdir()) == []


def test_an_administrator_adds_endings(stage: Stage) -> None:
    with pytest.raises(InputError, match=r"\.gxf.* does not have an ending of a download"):
        stage.plan(play(still(dest="out/still.gxf")))


def test_names_that_one_file_system_takes_for_one_are_one_place(stage: Stage) -> None:
    tasks = [still(title="Long Film"), still(title="Going", pos=1, dest="OUT/Still.PNG")]
    found = errors(stage.plan(play(*tasks)))
    assert len(found) == 2
    assert all("'Going'" in error and "'Long Film'" in error for error in found)


def test_a_link_does_not_lead_outside(
    stage: Stage, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (stage.folder / "msauto.toml").write_text("")
    (stage.folder / "out").symlink_to(tmp_path_factory.mktemp("elsewhere"))
    with pytest.raises(InputError, match="outside the playbook's repository"):
        stage.plan(play(still()))


# assert --------------------------------------------------------------------------------------------------------


def test_assert(stage: Stage) -> None:
    holds = {
        "assert": {
            "title": "Long Film",
            "that": ["asset.frames > 250", "asset.fps == 25"],
            "msg": "too short",
        }
    }
    plan = stage.plan(play(holds))
    assert (plan.requests, plan.unchanged, plan.errors) == (0, 1, 0)
    fails = {
        "assert": {
            "title": "Long Film",
            "that": ["asset.frames > 250", "asset.frames > 9000"],
            "msg": "too short",
        }
    }
    (error,) = errors(stage.plan(play(fails)))
    assert "playbook.yml:8:" in error
    assert "too short (asset.frames > 9000)" in error
    gone = {"assert": {"title": "Nobody", "that": ["asset.frames > 250"]}}
    assert "not found" in errors(stage.plan(play(gone)))[0]


def test_the_digest_is_of_what_is_on_disk(stage: Stage) -> None:
    result = stage.apply(play(still()))
    dest = stage.folder / "out" / "still.png"
    from msauto.ledger.ledger import Ledger

    with Ledger.open(stage.folder / "state", readonly=True) as ledger:
        target = structs.replace(result.plan.targets[0].id, server=stage.sim.url)
        kept = ledger.memory().recall(target)[f"thumbnail:{dest}"]
    assert isinstance(kept, dict)
    assert kept["sha256"] == hashlib.sha256(dest.read_bytes()).hexdigest()
