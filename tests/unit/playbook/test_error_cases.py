"""Invalid files and their exact error messages: ``x.yml`` beside ``x.txt``.

``MSAUTO_WRITE_CASES=1`` writes the messages of now; read them before you keep them.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from msauto.errors import InputError
from msauto.playbook.inventory.hosts import ResolveOptions
from msauto.playbook.resolve import resolve

CASES = Path(__file__).parents[2] / "cases" / "errors"
PLAYBOOKS = sorted(path.stem for path in CASES.glob("*.yml"))
INVENTORIES = sorted(path.stem for path in (CASES / "inventory").glob("*.yml"))
INVENTORY = """
all:
  vars: {house: Kanal 5}
  children:
    playout:
      hosts:
        studio-a: {server: {url: "http://a"}, database: NEWS}
        studio-b: {server: {url: "http://b"}, database: NEWS}
  hosts:
    studio-c: {server: {url: "http://c"}}
"""
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def said_of(options: ResolveOptions) -> str:
    with pytest.raises(InputError) as caught:
        resolve(options)
    for problem in caught.value.problems:
        assert problem.place is not None
        assert problem.message
    return str(caught.value) + "\n"


def compare(found: str, expected: Path) -> None:
    if os.environ.get("MSAUTO_WRITE_CASES"):
        expected.write_text(found, encoding="utf-8")
    assert found == expected.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PLAYBOOKS)
def test_playbook(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    inventory = tmp_path / "inventory.yml"
    inventory.write_text(INVENTORY)
    monkeypatch.chdir(CASES)
    compare(said_of(ResolveOptions((f"{name}.yml",), (str(inventory),), env={}, now=NOW)), CASES / f"{name}.txt")


@pytest.mark.parametrize("name", INVENTORIES)
def test_inventory(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    playbook = tmp_path / "playbook.yml"
    playbook.write_text("- {hosts: all, database: NEWS, tasks: []}\n")
    folder = CASES / "inventory"
    monkeypatch.chdir(folder)
    found = said_of(ResolveOptions((str(playbook),), (f"{name}.yml",), env={}, now=NOW))
    assert "hunter" not in found
    assert "12345" not in found
    compare(found, folder / f"{name}.txt")


def test_every_expectation_has_its_case() -> None:
    assert {path.stem for path in CASES.glob("*.txt")} == set(PLAYBOOKS)
    assert {path.stem for path in (CASES / "inventory").glob("*.txt")} == set(INVENTORIES)
