"""Tables in a terminal, the runs of a repository, and live state as YAML and CSV."""

from __future__ import annotations

import csv
import io
import os
import pty
import re
import termios
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
import yaml

from msauto.cli.commands.show import render_csv
from msauto.plugins.simulator.embedded import SimMarker, Simulator
from msauto.report.sanitizing import display_width
from tests.cli.command_line import Desk
from tests.cli.test_cli_streams_and_codes import on_a_terminal

INV = ("-i", "inventory.yml")
STATE = ("--state-dir", "state")


def records(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def on_terminal(desk: Desk, columns: int, *arguments: str) -> list[str]:
    """Return what a command shows on a terminal of that width."""
    desk.environment["COLUMNS"] = str(columns)
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, columns))
    with desk.start(*arguments, "--no-color", stdout=slave) as process:
        os.close(slave)
        text = b""
        try:
            while part := os.read(master, 10_000):
                text += part
        except OSError:  # the other end is closed
            pass
        process.communicate(timeout=60)
    os.close(master)
    return text.decode().splitlines()


def test_the_history_fits_a_terminal_and_never_cuts_an_id(desk: Desk) -> None:
    long = desk.comment("new", name=f"{'a-long-name-' * 8}.yml")
    assert desk.run("apply", long, *INV, *STATE, "--yes").code == 0
    (run,) = desk.run("history", *STATE, "--format", "json").json
    desk.environment["TZ"] = "Asia/Tokyo"
    lines = on_terminal(desk, 80, "history", *STATE)
    assert all(display_width(line) <= 80 for line in lines)
    assert lines[1].startswith(f"{run['run'][:8]}  ")  # the day is enough
    assert re.search(r"  [A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d JST  ", lines[1])
    who = f"{run['user']}@{run['host']}"
    assert who not in "\n".join(lines), "it is the same for all runs"
    piped = desk.run("history", *STATE).out
    assert who in piped
    assert long in piped
    assert run["run"] in piped


def test_an_id_is_as_short_as_is_unambiguous_and_its_status_has_a_colour(desk: Desk) -> None:
    done = desk.run("apply", desk.comment("new"), *INV, *STATE, "--yes")
    refused = desk.run("apply", desk.comment("newer"), *INV, *STATE)
    assert done.code == 0
    assert refused.code == 4
    runs = desk.run("history", *STATE, "--format", "json").json
    desk.environment["LINES"] = "100"
    _, text = on_a_terminal(desk, "history", *STATE, typed=b"")
    lines = [line for line in text.splitlines() if line[:1].isdigit()]
    colored = ("\x1b[33mrefused\x1b[0m", "\x1b[32mok\x1b[0m")
    for line, run, status in zip(lines, runs, colored, strict=True):
        name = line.split()[0]
        found = desk.run("history", name, *STATE, "--format", "json").json
        assert found["run"] == run["run"]
        assert status in line


def test_the_history_is_that_of_this_repository(desk: Desk) -> None:
    for name in ("one", "two"):
        desk.write(f"{name}/.git/config", "")
        desk.comment(name, name=f"{name}/play.yml")
        assert desk.run("apply", f"{name}/play.yml", *INV, *STATE, "--yes").code == 0
    everything = desk.run("history", *STATE, "--format", "json")
    assert [Path(run["repository"]).name for run in everything.json] == ["two", "one"]
    assert everything.err == ""
    inside = Desk(desk.folder / "two", desk.url)
    here = inside.run("history", "--state-dir", "../state", "--format", "json")
    assert [run["playbooks"] for run in here.json] == [["two/play.yml"]]
    assert (
        here.err
        == "1 run of other repositories not shown\n  → show all runs: msauto history --all\n"
    )
    assert (
        len(inside.run("history", "--state-dir", "../state", "--format", "json", "--all").json) == 2
    )


def test_what_a_command_wrote_in_this_folder_is_of_this_repository(desk: Desk) -> None:
    desk.write("one/.git/config", "")
    inside = Desk(desk.folder / "one", desk.url)
    desk.comment("new")
    assert inside.run("apply", "../play.yml", *INV, "--state-dir", "../state", "--yes").code == 0
    (run,) = inside.run("history", "--state-dir", "../state", "--format", "json").json
    assert run["repository"] == ""


def test_live_state_as_yaml_is_that_of_json(desk: Desk, sim: Simulator) -> None:
    sim.state.clip("EP001").home.fields["comment"] = "50% {{ off }}: [no]\nyes"
    for what in (
        ("asset", "EP001"),
        ("assets", "Playout"),
        ("folders",),
        ("databases",),
        ("channel", "ticker"),
    ):
        shown = desk.run("show", *what, *INV, "--format", "yaml")
        assert yaml.safe_load(shown.out) == desk.run("show", *what, *INV, "--format", "json").json


def test_a_folder_is_an_argument_or_a_flag(desk: Desk) -> None:
    for what in ("assets", "folders"):
        shown = desk.run("show", what, "Playout", "--recursive", *INV)
        assert "Playout/Tonight" in shown.out
        assert desk.run("show", what, "--folder", "Playout", "--recursive", *INV).out == shown.out
        desk.run("show", what, "Raw", "--folder", "Raw", *INV).one_error(
            "the folder is given twice", "→"
        )


def test_live_state_as_csv(desk: Desk, sim: Simulator) -> None:
    sim.state.clip("EP001").home.fields["comment"] = "=1+1"
    assets = records(desk.run("show", "assets", *INV, "--format", "csv").out)
    titles = [
        each["title"]
        for each in desk.run("show", "assets", *INV, "--format", "json").json["studio-a"]
    ]
    assert [each["title"] for each in assets] == titles
    comment = next(each["comment"] for each in assets if each["title"] == "EP001")
    assert (comment, assets[0]["server"]) == ("'=1+1", "studio-a")
    facts = records(desk.run("show", "asset", "Evening News raw", *INV, "--format", "csv").out)
    title = {"part": "fact", "item": "", "attribute": "title", "value": "Evening News raw"}
    assert {"server": "studio-a", **title} in facts
    assert {each["part"] for each in facts} >= {"fact", "segment", "xmp"}


@pytest.mark.parametrize(
    ("value", "cell"),
    [("=1+1", "'=1+1"), ("+a", "'+a"), ("-1", "-1"), ("@x", "'@x"), ("\t=1", "'\t'=1"), ("a;=1", "a;'=1"), (-1, "-1"),
     (True, "true"), (None, ""), (["a", "é"], '["a", "é"]'), ('say "hi", you', 'say "hi", you'), ("a\nb", "a\nb")],
)  # fmt: skip
def test_a_cell_is_text_to_a_spreadsheet(value: Any, cell: str) -> None:
    assert records("".join(render_csv([{"x": value, "y": "end"}]))) == [{"x": cell, "y": "end"}]


def test_drop_frame_where_the_rate_has_it(desk: Desk, sim: Simulator) -> None:
    news = sim.state.databases["NEWS"]
    clip = news.add_clip("Drop", "Raw", frames=1800, rate="30000/1001")
    clip.markers.append(SimMarker(1, 1799, {"track": "General", "title": "x"}))
    assert "00:01:00;02  29.97 fps" in desk.run("show", "assets", "Raw", *INV).out
    assert "00:00:59;29 (1799)" in desk.run("show", "asset", "Drop", *INV).out


# `plan --format html --stills N`: pictures of what the plan changes, fetched by GET and kept


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


def test_without_stills_nothing_is_fetched_and_other_forms_refuse_them(
    desk: Desk, sim: Simulator
) -> None:
    desk.play(MARKER)
    assert "img-src" not in desk.run(*PLAN, "--format", "html").out
    assert fetched(sim) == []
    desk.run(*PLAN, "--stills", "3").one_error(
        "--stills shows pictures only in HTML", "--format html"
    )
