"""``msauto export``: what goes where, what is refused, what a broken server leaves behind; and it plans to nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from msauto.plugins.simulator.content import load_content
from msauto.plugins.simulator.embedded import Item, SimMarker, SimSegment, Simulator
from tests.cli.command_line import Desk, Said

INV = ("-i", "inventory.yml")


def export(desk: Desk, *arguments: str) -> Said:
    return desk.run("export", *INV, *arguments)


def exported(desk: Desk) -> set[str]:
    return {name for name in desk.files() if name.startswith("out/")}


# Files ---------------------------------------------------------------------------------------------------------------


# What is not there ---------------------------------------------------------------------------------------------------


def test_nothing_is_left_behind_where_the_disk_is_full(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    sourced = export(desk, "--folder", "Promos", "--out", "out")
    assert sourced.code == 1
    sourced.one_error("No space left on device")
    assert exported(desk) == set()


# What others prepare ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["text", "edl"])
def test_a_planted_link_leads_nowhere(desk: Desk, sim: Simulator, form: str) -> None:
    exported = (
        "export",
        "--database",
        "NEWS",
        "--title",
        "EP001",
        *INV,
        "--format",
        form,
        "--out",
        "out",
    )
    assert desk.run(*exported).code == 0
    (name,) = (
        path for path in desk.files() if path.startswith("out/") and path.endswith((".yml", ".edl"))
    )
    before = (desk.folder / name).read_bytes()
    victim = desk.folder / "victim"
    victim.write_text("mine")
    (desk.folder / f"{name}.part").symlink_to(victim)
    (desk.folder / name).unlink()
    assert desk.run(*exported).code == 0
    assert ((desk.folder / name).read_bytes(), victim.read_text()) == (before, "mine")
    outside = desk.folder / "outside"
    outside.mkdir()
    first = desk.folder / Path(name).parts[0] / Path(name).parts[1]
    if first.is_dir():
        shutil.rmtree(first)
        first.symlink_to(outside)
        refused = desk.run(*exported)
        assert (refused.code, [*outside.iterdir()]) == (4, []), refused
        refused.one_error("leads out of out", "remove the link")


@pytest.mark.parametrize("title", ["a\n::error file=x::b", "::error::b", "a\x9b2Jb", "a\u202eb"])
def test_what_others_write_is_made_visible(desk: Desk, sim: Simulator, title: str) -> None:
    sim.state.databases["NEWS"].add_clip(title, "Odd", frames=100)
    assert_visible(desk.run("show", "assets", "Odd", *INV).out)
    sim.faults.add("garbage@GET /storage/NEWS@.*[ab]$")
    warned = export(desk, "--folder", "Odd")
    assert "is left out" in warned.err
    assert_visible(warned.err)
    assert_visible(desk.run("show", "asset", title, *INV).err)


def assert_visible(output: str) -> None:
    lines = output.split("\n")
    assert not any(line.lstrip().startswith("::") for line in lines), lines
    assert all(line.isprintable() for line in lines), lines


# ``msauto export --format edl|otio|csv|vtt``, and ``lookup('timeline')`` of what it wrote: nothing changes


# Content -------------------------------------------------------------------------------------------------------------


@pytest.mark.scale
def test_content_comes_back_the_same(desk: Desk, sim: Simulator) -> None:
    film = sim.state.clip("Long Film")
    film.segments = [SimSegment(3, 5, 10, ["One", "{{ two }}"], "n", "Program", 2, "a b")]
    film.markers = [
        SimMarker(9, 7, {"title": "x\ny", "colour": "red"}),
        SimMarker(9, 8, {"track": "Cue Point"}),
    ]
    film.home.fields = {"first_frame": "2", "user_0": "Kanal 5"}
    film.omitted = ("orig_name", "frame_time")
    sim.state.clip("Studio A live").recording_since = None
    sim.state.add_clip("2026-01-02T03:04:05", "Raw", create_time="2026-01-02T03:04:05")
    sim.state.channels["ticker"].items.append(Item("x.txt", b"", "", "no guid", "z"))
    chosen = (
        "-d",
        "NEWS",
        "--channel",
        "ticker",
        "--channel",
        "weather",
        "--folder",
        "/",
        "--recursive",
    )
    assert export(desk, *chosen, "--content", "one.yml").code == 0
    before = {
        name: desk.run("show", "asset", name, *INV).out
        for name in ("Long Film", "Documentary 1987", "2026-01-02T03:04:05")
    }
    sim.state = load_content(desk.folder / "one.yml")
    assert {name: desk.run("show", "asset", name, *INV).out for name in before} == before
    clip = sim.state.clip("Studio A live")
    assert (
        clip.finalized,
        sim.state.clip("Documentary 1987").hires,
        len(sim.state.clip("Promo 1").entries),
    ) == (
        False,
        "",
        2,
    )
    assert export(desk, *chosen, "--content", "two.yml").code == 0
    assert (desk.folder / "one.yml").read_text() == (desk.folder / "two.yml").read_text()
    assert not sim.writes()


@pytest.mark.scale
def test_the_content_of_a_whole_database_has_its_empty_folders(desk: Desk, sim: Simulator) -> None:
    assert export(desk, "--content", "all.yml").err == "Exported 163 assets in 1 file.\n"
    assert load_content(desk.folder / "all.yml").databases["NEWS"].folder("Playout/Tomorrow")
