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
NO_WHOLE = (
    "nan",
    "inf",
    "-inf",
    "1e400",
    "1.5",
    "true",
    '"many"',
    '"²"',
    "9" * 5000,
    "0x" + "f" * 9000,
)
NO_COUNT = (*NO_WHOLE, "-1", BIG)
YAML = {"nan": ".nan", "inf": ".inf", "-inf": "-.inf"}

NO_DECIMAL = tuple(each for each in NO_COUNT if each != "1.5")
NO = {
    "whole": NO_WHOLE,
    "count": NO_COUNT,
    "decimal": NO_DECIMAL,
    "time": (*NO_DECIMAL, "0", "604801"),
}


def wrong(kind: str, nor: list[str] | None) -> list[str]:
    return [
        *NO[kind],
        *(each.replace("9*5000", "9" * 5000).replace("10**30", BIG) for each in nor or ()),
    ]


def wrong_in_yaml(kind: str, nor: list[str] | None) -> list[str]:
    return [YAML.get(number, number) for number in wrong(kind, nor)]


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


@table("playbook/numbers_of_settings", "text", "kind", "nor")
def test_a_number_of_the_settings(
    tmp_path: Path, text: str, kind: str, nor: list[str] | None
) -> None:
    file = tmp_path / "msauto.toml"
    for number in wrong(kind, nor):
        written = text % number + "\n"
        file.write_text(written, encoding="utf-8")
        with pytest.raises(InputError) as caught:
            load_settings(file)
        one_with_its_place(list(caught.value.problems), written, number)


@pytest.mark.parametrize("number", ["1", "512"])
def test_forks_within_their_bounds(tmp_path: Path, number: str) -> None:
    file = tmp_path / "msauto.toml"
    file.write_text(f"forks = {number}\n", encoding="utf-8")
    assert load_settings(file).forks == int(number)


def check(
    tmp_path: Path, server: str, play: str = "", task: str = "asset: {title: A}"
) -> tuple[list[Problem], str]:
    url = "" if server.startswith("url") else 'url: "http://h", '
    inventory = f"all:\n  hosts:\n    h: {{database: D, server: {{{url}{server}}}}}\n"
    playbook = f"- hosts: h\n  {play or 'name: x'}\n  tasks:\n    - {{{task}}}\n"
    for name, text in (("i.yml", inventory), ("p.yml", playbook)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = validate([str(tmp_path / "i.yml"), str(tmp_path / "p.yml")], ResolveOptions((), env={}))
    return list(found), inventory if server else playbook


@table("playbook/numbers_of_servers", "text", "kind", "nor")
def test_a_number_of_a_server(tmp_path: Path, text: str, kind: str, nor: list[str] | None) -> None:
    for value in wrong_in_yaml(kind, nor):
        one_with_its_place(*check(tmp_path, text % value), value)


@table("playbook/servers_within_bounds", "server")
def test_a_server_within_the_bounds(tmp_path: Path, server: str) -> None:
    assert check(tmp_path, server)[0] == []


@table("playbook/numbers_of_tasks", "text", "kind", "nor")
def test_a_number_of_a_task(tmp_path: Path, text: str, kind: str, nor: list[str] | None) -> None:
    for value in wrong_in_yaml(kind, nor):
        one_with_its_place(*check(tmp_path, "", task=text % value), value)


@table("playbook/numbers_of_plays", "text", "kind", "nor")
def test_a_number_of_a_play(tmp_path: Path, text: str, kind: str, nor: list[str] | None) -> None:
    for value in wrong_in_yaml(kind, nor):
        one_with_its_place(*check(tmp_path, "", play=text.replace("%s", value)), value)


@table("playbook/no_loops", "loop")
def test_what_no_loop_can_go_through(tmp_path: Path, loop: str) -> None:
    task = f"asset: {{title: 'x{{{{ item }}}}'}}, loop: '{{{{ {loop} }}}}'"
    one_with_its_place(*check(tmp_path, "", task=task), "{{ " + loop)
