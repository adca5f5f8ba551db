"""Numbers of settings, inventories and playbooks: an invalid or out-of-bounds value is an error with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from msauto.errors import InputError, Problem
from msauto.playbook.hosts import ResolveOptions
from msauto.playbook.settings import load_settings
from msauto.playbook.validate import validate
from tests.tables import table

BIG = str(10**30)
NO_WHOLE = ("nan", "inf", "-inf", "1e400", "1.5", "true", '"many"', '"²"', "9" * 5000, "0x" + "f" * 9000)
NO_COUNT = (*NO_WHOLE, "-1", BIG)
YAML = {"nan": ".nan", "inf": ".inf", "-inf": "-.inf"}

SETTINGS = {
    "forks = {}": (*NO_COUNT, "0", "513"),
    "[limits]\ndelete_assets = {}": NO_COUNT,
    "[limits]\nremove_items = {}": NO_COUNT,
    "[limits]\nrequests = {}": NO_COUNT,
    "[state]\nkeep_runs = {}": NO_COUNT,
    "[state]\nkeep_days = {}": NO_COUNT,
    '[[freeze]]\nto = "10:00"\ntz = "UTC"\nfrom = {}': (*NO_COUNT, "0"),
}
NO_TIME = (*(each for each in NO_COUNT if each != "1.5"), "0", "604801")
SERVER = {
    "timeouts: {connect: %s}": NO_TIME,
    "timeouts: {read: %s}": NO_TIME,
    "timeouts: {listing: %s}": NO_TIME,
    "timeouts: {proxy: %s}": NO_TIME,
    "request_line: %s": (*NO_COUNT, "0", "255", str(2**20 + 1)),
    "connections: %s": (*NO_COUNT, "0", "1025"),
    "requests_per_second: %s": (*(each for each in NO_COUNT if each != "1.5"), "0", "0.09", "10000.1"),
    "url: %s": (*NO_COUNT, *(f'"http://h:{port}"' for port in ("0", "65536", "-1", "nan", "²", "9" * 5000))),
}
NO_POSITION = NO_COUNT
NO_SPAN = (*NO_COUNT, "0", '"nan"', '"-1s"', f'"{BIG}d"', '"999999999d"')
TASKS = {
    "asset: {title: A, segments: [{start: 0, duration: 5, number: %s}]}": NO_COUNT,
    "asset: {title: A, segments: [{duration: 5, start: %s}]}": NO_POSITION,
    "asset: {title: A, segments: [{start: 9, duration: %s}]}": (*NO_POSITION, "0"),
    "asset: {title: A, markers: [{title: x, uid: %s}]}": NO_COUNT,
    "asset: {title: A, markers: [{track: Icon, at: %s}]}": NO_POSITION,
    "asset: {title: A, markers: [{at: 1, track: Icon, rating: %s}]}": (*NO_WHOLE, BIG, "-" + BIG),
    "asset: {title: A, fields: {first_frame: %s}}": NO_POSITION,
    "asset: {title: A, origin: %s}": NO_POSITION,
    "asset: {title: A, segmentation: {duration: %s}}": NO_POSITION,
    "asset: {title: A, restore: {wait: %s}}": NO_SPAN,
    "asset: {select: {folder: R, created_within: %s}, fields: {comment: x}}": NO_SPAN,
    "asset: {select: {folder: R, expect: {min: %s}}, fields: {comment: x}}": NO_COUNT,
    "asset: {select: {folder: R, expect: {max: %s}}, fields: {comment: x}}": NO_COUNT,
    "thumbnail: {title: A, dest: a.png, w: %s}": (*NO_COUNT, "0", "16385"),
    "thumbnail: {title: A, dest: a.png, h: %s}": (*NO_COUNT, "0", "16385"),
    "thumbnail: {title: A, dest: a.png, pos: %s}": NO_POSITION,
    "thumbnail: {title: A, dest: a.png, dur: %s}": NO_POSITION,
}
PLAYS = {
    "serial: %s": (*NO_COUNT, '"%"', '"0%"', '"-5%"', '"²%"', '"101%"', f'"{"9" * 5000}"'),
    "max_fail_percentage: %s": (*(each for each in NO_COUNT if each != "1.5"), "101"),
}


def one_with_its_place(problems: list[Problem], text: str, value: str) -> None:
    """There is one problem, and its place is that of the value, or of the list or mapping around it."""
    assert len(problems) == 1, problems
    place = problems[0].place
    assert place is not None
    line = text.splitlines()[place.line - 1]
    assert value in line, problems
    assert 1 < place.column <= line.index(value) + 1, problems
    assert problems[0].message
    assert len(problems[0].message) < 250


@pytest.mark.parametrize("text", SETTINGS)
def test_a_number_of_the_settings(tmp_path: Path, text: str) -> None:
    file = tmp_path / "msauto.toml"
    for number in SETTINGS[text]:
        written = text.format(number) + "\n"
        file.write_text(written, encoding="utf-8")
        with pytest.raises(InputError) as caught:
            load_settings(file)
        one_with_its_place(list(caught.value.problems), written, number)


@pytest.mark.parametrize("number", ["1", "512"])
def test_forks_within_their_bounds(tmp_path: Path, number: str) -> None:
    file = tmp_path / "msauto.toml"
    file.write_text(f"forks = {number}\n", encoding="utf-8")
    assert load_settings(file).forks == int(number)


def check(tmp_path: Path, server: str, play: str = "", task: str = "asset: {title: A}") -> tuple[list[Problem], str]:
    url = "" if server.startswith("url") else 'url: "http://h", '
    inventory = f"all:\n  hosts:\n    h: {{database: D, server: {{{url}{server}}}}}\n"
    playbook = f"- hosts: h\n  {play or 'name: x'}\n  tasks:\n    - {{{task}}}\n"
    for name, text in (("i.yml", inventory), ("p.yml", playbook)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = validate([str(tmp_path / "i.yml"), str(tmp_path / "p.yml")], ResolveOptions((), env={}))
    return list(found), inventory if server else playbook


@pytest.mark.parametrize("text", SERVER)
def test_a_number_of_a_server(tmp_path: Path, text: str) -> None:
    for value in (YAML.get(number, number) for number in SERVER[text]):
        one_with_its_place(*check(tmp_path, text % value), value)


@table("playbook/servers_within_bounds", "server")
def test_a_server_within_the_bounds(tmp_path: Path, server: str) -> None:
    assert check(tmp_path, server)[0] == []


@pytest.mark.parametrize("text", TASKS)
def test_a_number_of_a_task(tmp_path: Path, text: str) -> None:
    for value in (YAML.get(number, number) for number in TASKS[text]):
        one_with_its_place(*check(tmp_path, "", task=text % value), value)


@pytest.mark.parametrize("text", PLAYS)
def test_a_number_of_a_play(tmp_path: Path, text: str) -> None:
    for value in (YAML.get(number, number) for number in PLAYS[text]):
        one_with_its_place(*check(tmp_path, "", play=text.replace("%s", value)), value)


@table("playbook/no_loops", "loop")
def test_what_no_loop_can_go_through(tmp_path: Path, loop: str) -> None:
    task = f"asset: {{title: 'x{{{{ item }}}}'}}, loop: '{{{{ {loop} }}}}'"
    one_with_its_place(*check(tmp_path, "", task=task), "{{ " + loop)
