"""``msauto export``: what goes where, what is refused, what a broken server leaves behind; and it plans to nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from msauto.playbook.export import load_content
from msauto.simulator import Item, SimDialect, SimMarker, SimSegment, Simulator
from tests.cli.command_line import Desk, Said

INV = ("-i", "inventory.yml")


def export(desk: Desk, *arguments: str) -> Said:
    return desk.run("export", *INV, *arguments)


def exported(desk: Desk) -> set[str]:
    return {name for name in desk.files() if name.startswith("out/")}


@pytest.mark.scale
def test_the_whole_database_in_files_plans_to_nothing(desk: Desk, sim: Simulator) -> None:
    sourced = export(desk, "--out", "out")
    assert (sourced.code, sourced.out) == (0, "")
    assert sourced.err == "Exported 163 assets in 14 files.\n"
    names = exported(desk)
    assert {"out/NEWS/Raw/2026.yml", "out/NEWS/Raw.yml", "out/NEWS/A_B Tests~e7d39667.yml"} <= names
    planned = desk.run("plan", *INV, "--detailed-exitcode", *sorted(names))
    assert (planned.code, planned.out) == (0, "No changes. 163 targets are as desired.\n")
    assert not sim.writes()


def test_the_whole_database_on_stdout_plans_to_nothing(desk: Desk) -> None:
    sourced = export(desk)
    assert sourced.code == 0
    assert sourced.err == "Exported 163 assets.\n"
    desk.write("all.yml", sourced.out)
    assert desk.run("plan", *INV, "all.yml").out == "No changes. 163 targets are as desired.\n"


def test_a_task_says_all_that_can_be_said(desk: Desk, sim: Simulator) -> None:
    clip = sim.state.add_clip("Show: {{ x }}", "Shows/New", frames=1000, finalized=False)
    clip.home.fields.update(comment="two\nlines", user_3="0123", first_frame="25")
    clip.xmp.update({"dc:subject": ["news", "evening"], "dc:title": ["yes"]})
    clip.segments.append(SimSegment(1, 0, 250, ["Part 1"], track="House", rating=2))
    clip.segments.append(SimSegment(7, 900, 250, ["too long"]))
    clip.markers.append(SimMarker(3, 250, {"track": "Cue Point", "title": "Ad", "rating": "3"}))
    clip.markers.append(SimMarker(4, 250, {"track": "Cue Point", "title": "Ad"}))
    clip.markers.append(SimMarker(9, 500, {"track": "Special", "comment": "x"}))
    sim.state.databases["NEWS"].add_entry(clip, "Promos", "Show")
    sourced = export(desk, "--title", "Show: {{ x }}")
    assert sourced.out == TASK
    desk.write("one.yml", sourced.out)
    assert desk.run("plan", *INV, "one.yml").out == "No changes. 1 target is as desired.\n"


TASK = """\
# Exported by msauto: assets of NEWS.
# On the server that it came from it plans to nothing. What is empty is left out.
- name: Assets of NEWS
  hosts: studio-a
  database: NEWS
  tasks:
    - name: "{% raw %}Show: {{ x }}{% endraw %}"
      asset:
        title: "{% raw %}Show: {{ x }}{% endraw %}"
        folder: Shows/New
        unfinalized: allow
        fields:
          comment: |-
            two
            lines
          first_frame: "00:00:01:00"
          # last_frame is left out: it grows while the clip is being recorded
          user_3: "0123"
        xmp:
          dc:subject: [news, evening]
          dc:title: "yes"
        segments:
          # track of segment 1, which no task can set: House
          # rating of segment 1, which no task can set: 2
          - {number: 1, start: "00:00:00:00", duration: "00:00:10:00", title: Part 1}
          # segment 7 is left out: it ends at frame 1150, beyond the end of the clip (1000 frames)
        markers:
          - {uid: 3, at: "00:00:10:00", track: Cue Point, title: Ad, rating: 3}
          - {uid: 4, at: "00:00:10:00", track: Cue Point, title: Ad}
          # track of marker 9, which no task can set: Special
          - {uid: 9, at: "00:00:20:00", comment: x}
        links:
          - {folder: Promos, title: Show}
        exactly: [markers]
"""


@pytest.mark.scale
def test_xmp_that_is_told_by_name_alone_is_not_left_out_without_a_word(desk: Desk, sim: Simulator) -> None:
    words = "listed no XMP fields of any asset"
    assert words not in export(desk).err
    sim.dialect = SimDialect(xmp_without_field="empty")
    sourced = export(desk)
    assert sourced.code == 0
    assert "xmp:" not in sourced.out
    assert words in sourced.err


def test_without_links_nobody_lists_the_database(desk: Desk, sim: Simulator) -> None:
    sourced = export(desk, "--title", "Новости дня", "--no-links")
    assert "links:" not in sourced.out
    assert not [entry for entry in sim.log if "@" not in entry.target]


def test_the_whole_database_is_listed_once_and_each_asset_read_once(desk: Desk, sim: Simulator) -> None:
    sim.clear_log()
    export(desk)
    assert [entry.target for entry in sim.log if "@" not in entry.target] == ["/storage/NEWS"]
    assets = [entry.target for entry in sim.log if "@" in entry.target and "GETUSERFIELDS" not in entry.target]
    assert len(assets) == 163 + 3, "each asset, and each link, of which only the answer tells that it is one"


# Files ---------------------------------------------------------------------------------------------------------------


def test_our_own_file_is_replaced_whole(desk: Desk, sim: Simulator) -> None:
    export(desk, "--folder", "Raw", "--out", "out")
    before = (desk.folder / "out/NEWS/Raw.yml").read_bytes()
    sim.faults.add("status:500@GET .*@EP.*")
    assert export(desk, "--folder", "Raw", "--out", "out").code == 1
    assert exported(desk) == {"out/NEWS/Raw.yml"}
    assert (desk.folder / "out/NEWS/Raw.yml").read_bytes() == before


@pytest.mark.scale
def test_files_of_folders_that_are_empty_now_are_told(desk: Desk, sim: Simulator) -> None:
    export(desk, "--out", "out")
    news = sim.state.databases["NEWS"]
    for clip in [clip for clip in news.clips() if clip.home.folder == ("Films",)]:
        news.remove_clip(clip)
    desk.write("out/NEWS/mine.yml", "- hosts: all\n")
    sourced = export(desk, "--out", "out")
    assert "out/NEWS/Films.yml is from an earlier export" in sourced.err
    assert "mine.yml" not in sourced.err
    assert "out/NEWS/Films.yml" in exported(desk)


# What is not there ---------------------------------------------------------------------------------------------------


def test_nothing_is_left_behind_where_the_disk_is_full(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
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
    exported = ("export", "--database", "NEWS", "--title", "EP001", *INV, "--format", form, "--out", "out")
    assert desk.run(*exported).code == 0
    (name,) = (path for path in desk.files() if path.startswith("out/") and path.endswith((".yml", ".edl")))
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


# Content -------------------------------------------------------------------------------------------------------------


def test_content_comes_back_the_same(desk: Desk, sim: Simulator) -> None:
    film = sim.state.clip("Long Film")
    film.segments = [SimSegment(3, 5, 10, ["One", "{{ two }}"], "n", "Program", 2, "a b")]
    film.markers = [SimMarker(9, 7, {"title": "x\ny", "colour": "red"}), SimMarker(9, 8, {"track": "Cue Point"})]
    film.home.fields = {"first_frame": "2", "user_0": "Kanal 5"}
    film.omitted = ("orig_name", "frame_time")
    sim.state.clip("Studio A live").recording_since = None
    sim.state.add_clip("2026-01-02T03:04:05", "Raw", create_time="2026-01-02T03:04:05")
    sim.state.channels["ticker"].items.append(Item("x.txt", b"", "", "no guid", "z"))
    chosen = ("-d", "NEWS", "--channel", "ticker", "--channel", "weather", "--folder", "/", "--recursive")
    assert export(desk, *chosen, "--content", "one.yml").code == 0
    before = {
        name: desk.run("show", "asset", name, *INV).out
        for name in ("Long Film", "Documentary 1987", "2026-01-02T03:04:05")
    }
    sim.state = load_content(desk.folder / "one.yml")
    assert {name: desk.run("show", "asset", name, *INV).out for name in before} == before
    clip = sim.state.clip("Studio A live")
    assert (clip.finalized, sim.state.clip("Documentary 1987").hires, len(sim.state.clip("Promo 1").entries)) == (
        False,
        "",
        2,
    )
    assert export(desk, *chosen, "--content", "two.yml").code == 0
    assert (desk.folder / "one.yml").read_text() == (desk.folder / "two.yml").read_text()
    assert not sim.writes()


def test_the_content_of_a_whole_database_has_its_empty_folders(desk: Desk, sim: Simulator) -> None:
    assert export(desk, "--content", "all.yml").err == "Exported 163 assets in 1 file.\n"
    assert load_content(desk.folder / "all.yml").databases["NEWS"].folder("Playout/Tomorrow")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--out", "out"), 1, "--content writes one file"),
        (("--format", "csv", "--title", "Long Film"), 1, "--content writes one file"),
        (("--title", "Nobody"), 1, "no asset 'Nobody'"),
        (("-i", "two.yml"), 1, "--content is the content of one server"),
    ],
)
def test_content_that_is_not_written(desk: Desk, arguments: tuple[str, ...], code: int, words: str) -> None:
    desk.inventory({name: {"server": {"url": f"http://{name}"}, "database": "NEWS"} for name in "ab"}, "two.yml")
    sourced = export(desk, "--content", "new.yml", *arguments)
    assert (sourced.code, (desk.folder / "new.yml").exists()) == (code, False)
    assert words in sourced.err


def test_content_replaces_only_an_export(desk: Desk) -> None:
    desk.write("mine.yml", "databases: {}")
    assert export(desk, "--title", "Long Film", "--content", "mine.yml").code == 4
    assert export(desk, "--title", "Long Film", "--content", "mine.yml", "--force").code == 0
    assert export(desk, "--title", "EP001", "--content", "mine.yml").code == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "empty.yml"),
        ("databases: {NEWS: [{title: A, fps: 0}]}", "NEWS: A: fps must be above 0"),
        (
            "databases: {NEWS: [{title: A, link_id: 3}, {title: B, link_id: 3}]}",
            "two entries of NEWS have the link_id 3",
        ),
        ("databases: {NEWS: [{titel: A}]}", "unknown field `titel`"),
        ("databases: [", "invalid YAML"),
    ],
)
def test_content_that_cannot_be_simulated(desk: Desk, content: str, words: str) -> None:
    if content:
        desk.write("wrong.yml", content)
    desk.run("simulate", "--port", "0", "--state", "wrong.yml" if content else "empty.yml").one_error(words)
