"""yaml-language-server, which editors use, accepts good playbooks, marks bad ones, explains keys and offers names."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.lsp.editor import Editor

pytestmark = [pytest.mark.scale, pytest.mark.xdist_group("language-server")]

HERE = Path(__file__).parent
PLAYBOOKS = [path for path in sorted((ROOT / "playbooks").glob("*.yml")) if path.name != "inventory.yml"]
CASES = ROOT / "tests" / "cases" / "errors"
BAD = ("unknown_key", "unknown_module", "wrong_types", "target", "state_absent", "segments", "rss", "null_values")
TEXT = """\
- name: Tonight
  hosts: all
  tasks:
    - asset:
        title: Evening News
        fie
        segments:
          - {number: 1, start: "00:00:00:00", duration: "{{ length }}"}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The language server, installed once into a cache outside the repository."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed: editors cannot be tried")
    cache = os.environ.get("MSAUTO_TEST_CACHE")
    folder = Path(cache) / "lsp" if cache else tmp_path_factory.mktemp("lsp")
    entry = folder / "node_modules" / "yaml-language-server" / "bin" / "yaml-language-server"
    if not entry.exists():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / "package.json", folder)
        install = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"]
        try:
            done = subprocess.run(install, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
        except subprocess.TimeoutExpired:
            pytest.skip("npm could not install yaml-language-server in five minutes")
        if done.returncode:
            pytest.skip(f"npm could not install yaml-language-server: {done.stderr[-300:]}")
    return entry


@pytest.fixture(scope="module")
def editor(server: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    with Editor(server, tmp_path_factory.mktemp("work"), {ROOT / "schemas" / "playbook.json": "*.yml"}) as running:
        yield running


@pytest.mark.parametrize("path", PLAYBOOKS, ids=lambda path: path.name)
def test_good_playbooks_are_left_alone(path: Path, editor: Editor) -> None:
    assert editor.open(path.name, path.read_text(encoding="utf-8")) == []


def test_a_good_inventory_is_left_alone(server: Path, tmp_path: Path) -> None:
    with Editor(server, tmp_path, {ROOT / "schemas" / "inventory.json": "*.yml"}) as editor:
        text = (ROOT / "playbooks" / "inventory.yml").read_text(encoding="utf-8")
        assert editor.open("inventory.yml", text) == []
        assert editor.open("wrong.yml", text.replace("version:", "versoin:")) != []


@pytest.mark.parametrize("name", BAD)
def test_bad_playbooks_are_marked(name: str, editor: Editor) -> None:
    assert editor.open(f"{name}.yml", (CASES / f"{name}.yml").read_text(encoding="utf-8")) != []


def test_a_mark_is_where_the_mistake_is(editor: Editor) -> None:
    found = editor.open("mark.yml", "- hosts: all\n  tasks:\n    - asset: {title: A, stat: absent}\n")
    assert [mark["range"]["start"] for mark in found] == [{"line": 2, "character": 24}]


def test_a_template_passes_in_place_of_any_value(editor: Editor) -> None:
    text = (
        '- hosts: "{{ h }}"\n  serial: "{{ s }}"\n  tasks:\n    - asset:\n        title: "{{ t }}"\n'
        '        segments: "{{ list }}"\n        lossy: "{{ l }}"\n        state: "{{ s }}"\n'
        '        restore: "{{ r }}"\n'
        '        fields: {first_frame: "{{ f }}"}\n        xmp: {"dc:subject": "{{ x }}"}\n'
    )
    assert editor.open("templates.yml", text) == []


def test_the_tag_of_secrets_is_known(editor: Editor) -> None:
    text = (
        "- hosts: all\n  vars: {token: !secret geheimnis}\n  tasks:\n    - asset:\n        title: A\n"
        '        fields: {comment: !secret "{{ env.TOKEN }}"}\n'
    )
    assert editor.open("secrets.yml", text) == []


def test_hover_explains_a_key(editor: Editor) -> None:
    editor.open("hover.yml", TEXT.replace("        fie\n", "        folder: Raw\n"))
    assert "guard: the home folder of the clip must be this folder" in editor.hover("hover.yml", 5, 10)
    assert "hosts, groups and globs" in editor.hover("hover.yml", 1, 4)


def test_completion_offers_names(editor: Editor) -> None:
    editor.open("complete.yml", TEXT)
    offered = editor.complete("complete.yml", 5, 11)
    assert {"fields", "folder", "markers", "exactly"} <= offered.keys()
    assert "link fields" in str(offered["fields"])
    assert "asset" not in offered


def test_completion_offers_values(editor: Editor) -> None:
    editor.open("values.yml", "- hosts: all\n  tasks:\n    - asset:\n        title: A\n        unfinalized: \n")
    assert {"error", "skip", "allow"} <= editor.complete("values.yml", 4, 21).keys()
