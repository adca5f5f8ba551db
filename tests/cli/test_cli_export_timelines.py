"""``msauto export --format edl|otio|csv|vtt``, and ``lookup('timeline')`` of what it wrote: nothing changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from msauto.simulator import SimMarker, SimSegment, Simulator
from tests.cli.command_line import Desk, Said

INV = ("-i", "inventory.yml")


def export(desk: Desk, *arguments: str) -> Said:
    return desk.run("export", *INV, *arguments)


@pytest.fixture
def film(sim: Simulator) -> None:
    clip = sim.state.add_clip("Film", "Shows", frames=1000)
    clip.segments[:] = [SimSegment(1, 0, 250, ["Part 1"]), SimSegment(7, 250, 500, ["=Part\n2"])]
    clip.markers[:] = [
        SimMarker(3, 100, {"track": "Cue Point", "title": "Ad break", "comment": "two\nlines", "rating": "3"}),
        SimMarker(4, 900, {"track": "Special", "title": "x" * 300, "colour": "red"}),
    ]


PLAYBOOK = """\
- hosts: all
  tasks:
    - asset:
        title: Film
        markers: "{{{{ lookup('timeline', 'film.{0}', rate=asset.rate, origin='10:00:00:00').markers }}}}"
        segments: "{{{{ lookup('timeline', 'film.{0}', rate=asset.rate, origin='10:00:00:00').segments }}}}"
"""


@pytest.mark.usefixtures("film")
@pytest.mark.parametrize("ending", ["edl", "otio", "csv", "vtt"])
def test_what_was_exported_plans_to_nothing(desk: Desk, sim: Simulator, ending: str) -> None:
    sim.state.databases["NEWS"].clip("Film").markers[1].fields["track"] = "General"
    origin = () if ending == "vtt" else ("--origin", "10:00:00:00")
    written = export(desk, "--title", "Film", "--format", ending, *origin)
    assert written.code == 0
    desk.write(f"film.{ending}", written.out)
    playbook = PLAYBOOK.format(ending)
    desk.write("film.yml", playbook if origin else playbook.replace(", origin='10:00:00:00'", ""))
    assert desk.run("plan", *INV, "film.yml").out == "No changes. 1 target is as desired.\n"


@pytest.mark.usefixtures("film")
def test_an_edl_is_for_other_programs_and_names_what_they_do_not_see(desk: Desk) -> None:
    written = export(desk, "--title", "Film", "--format", "edl", "--origin", "10:00:00:00")
    assert "002  AX       V     C        10:00:10:00 10:00:30:00 10:00:10:00 10:00:30:00\n" in written.out
    assert "* LOC: 10:00:04:00 RED     Ad break\n" in written.out
    assert written.err == (
        "Warning: Film: track of marker 4, which no task can set: Special\n"
        "Warning: Film: marker 4 has attributes that no timeline holds: colour\n"
        "Warning: Film: 1 of its texts are longer than 200 characters: other programs see the beginning\n"
        "Warning: Film: a locator has one text: other programs see the title of a marker, not its comment\n"
        "Exported 1 asset.\n"
    )


def test_a_folder_has_a_file_for_each_asset_and_keeps_files_of_others(desk: Desk, tmp_path: Path) -> None:
    written = export(desk, "--folder", "Promos", "--format", "vtt", "--out", "out")
    assert (written.code, written.err) == (0, "Exported 2 assets in 2 files.\n")
    path = desk.folder / "out/NEWS/Promos/Promo 1.vtt"
    assert path.read_text().startswith("WEBVTT Promo 1\n")
    assert export(desk, "--folder", "Promos", "--format", "vtt", "--out", "out").code == 0
    path.write_text("mine")
    refused = export(desk, "--folder", "Promos", "--format", "vtt", "--out", "out")
    assert refused.code == 4
    refused.one_error("Promo 1.vtt has other contents", "--force")
    assert export(desk, "--folder", "Promos", "--format", "vtt", "--out", "out", "--force").code == 0
    assert path.read_text() != "mine"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--folder", "Promos", "--format", "edl"), ("stdout takes one timeline", "--out DIR")),
        (("--channel", "ticker", "--format", "edl"), ("a channel has no timeline",)),
        (("--title", "EP001", "--origin", "10:00:00:00"), ("--origin is for timelines", "--format edl")),
        (("--title", "EP001", "--format", "vtt", "--origin", "10:00:00:00"), ("WebVTT", "--origin")),
        (("--title", "EP001", "--format", "edl", "--origin", "10:61:00:00"), ("minutes must be 00 to 59",)),
    ],
)
def test_what_does_not_fit_is_one_error(desk: Desk, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    refused = export(desk, *arguments)
    assert (refused.code, refused.out) == (1, "")
    refused.one_error(*words, "→")


def test_an_asset_without_a_frame_rate_is_named(desk: Desk, sim: Simulator) -> None:
    sim.state.add_clip("Jingle", "Shows", omitted={"frame_time"})
    written = export(desk, "--title", "Jingle", "--format", "edl")
    assert (written.code, written.out) == (1, "")
    assert "Jingle is left out: the server reports no frame rate of it" in written.err
