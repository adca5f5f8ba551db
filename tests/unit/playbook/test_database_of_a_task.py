"""The media database of a task is the variable ``database``, at every level, and templates see the same one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from msauto.errors import InputError
from msauto.model.desired import DatabaseRef, DesiredAsset, TitleRef
from msauto.model.facts import Facts
from msauto.model.live import Asset
from msauto.playbook.inventory.hosts import ResolveOptions
from msauto.playbook.resolve import resolve

INVENTORY = "all: {hosts: {a: {server: {url: http://a}, database: host}}}\n"
LEVELS = ("host", "play vars", "vars_files", "play key", "block", "task", "loop", "extra")


def play(levels: tuple[str, ...]) -> str:
    """A play that sets the database at these levels, each to the level's name."""
    lines = ["- hosts: all"]
    lines += ['  vars: {database: "play vars"}'] if "play vars" in levels else []
    lines += ["  vars_files: [shows.yml]"] if "vars_files" in levels else []
    lines += ["  database: play key"] if "play key" in levels else []
    lines += ["  tasks:", "    - when: true"]
    lines += ["      vars: {database: block}"] if "block" in levels else []
    lines += ["      block:", '        - asset: {title: EP001, fields: {comment: "{{ database }}"}}']
    lines += ["          vars: {database: task}"] if "task" in levels else []
    lines += ["          loop: [loop]", "          loop_control: {loop_var: database}"] if "loop" in levels else []
    return "\n".join(lines) + "\n"


def resolved(folder: Path, text: str, *extra: str) -> list[tuple[str, str]]:
    """The database and the comment of each task."""
    (folder / "i.yml").write_text(INVENTORY, encoding="utf-8")
    (folder / "shows.yml").write_text("database: vars_files\n", encoding="utf-8")
    (folder / "p.yml").write_text(text, encoding="utf-8")
    paths = (str(folder / "p.yml"),), (str(folder / "i.yml"),)
    options = ResolveOptions(*paths, extra_vars=extra, env={}, now=datetime(2026, 11, 20, tzinfo=UTC))
    found = []
    for intent in resolve(options).work[0].intents:
        desired = intent.evaluate(Facts(asset=Asset("EP001")))
        assert isinstance(intent.ref, TitleRef)
        assert isinstance(desired, DesiredAsset)
        found.append((intent.ref.database, str(desired.parts["field"]["comment"].value)))
    return found


@pytest.mark.parametrize("count", range(1, len(LEVELS) + 1))
def test_the_nearest_wins_and_templates_see_it(tmp_path: Path, count: int) -> None:
    levels = LEVELS[:count]
    extra = ("database=extra",) if "extra" in levels else ()
    assert resolved(tmp_path, play(levels), *extra) == [(levels[-1], levels[-1])]


def test_an_item_of_a_loop_may_name_it(tmp_path: Path) -> None:
    text = """\
- hosts: all
  tasks:
    - asset: {title: EP001, fields: {comment: "{{ database }}"}}
      vars: {database: "{{ item }}"}
      loop: [NEWS, ARCHIVE]
"""
    assert resolved(tmp_path, text) == [("NEWS", "NEWS"), ("ARCHIVE", "ARCHIVE")]


def test_the_plays_key_may_be_made_of_the_weaker_one(tmp_path: Path) -> None:
    text = """\
- hosts: all
  database: "{{ database }}-{{ kind }}"
  vars: {kind: archive}
  tasks: [asset: {title: EP001, fields: {comment: "{{ database }}"}}]
"""
    assert resolved(tmp_path, text) == [("host-archive", "host-archive")]


def test_modules_that_run_something_follow_it(tmp_path: Path) -> None:
    (tmp_path / "b.xml").write_text("<x/>", encoding="utf-8")
    text = """\
- hosts: all
  tasks:
    - vars: {database: ARCHIVE}
      block:
        - xmp_batch: {connector: C, src: b.xml}
        - command: {name: PARTNER_EXPORT_VERSION, title: EP001}
"""
    (tmp_path / "i.yml").write_text(INVENTORY, encoding="utf-8")
    (tmp_path / "p.yml").write_text(text, encoding="utf-8")
    work = resolve(ResolveOptions((str(tmp_path / "p.yml"),), (str(tmp_path / "i.yml"),), env={})).work[0]
    assert [intent.ref for intent in work.intents] == [DatabaseRef("ARCHIVE"), TitleRef("ARCHIVE", "EP001")]


@pytest.mark.parametrize(
    ("value", "place", "message"),
    [
        ("7", ":4:24", "must be text"),
        ('"{{ asset.title }}"', ":4:24", "asset cannot be used here"),
        ('"{{ database }}"', ":4:24", "the variable refers to itself"),
        ('"{{ nobody }}"', ":4:24", "nobody"),
    ],
)
def test_what_is_no_database_has_its_place(tmp_path: Path, value: str, place: str, message: str) -> None:
    text = f"- hosts: all\n  tasks:\n    - asset: {{title: EP001}}\n      vars: {{database: {value}}}\n"
    with pytest.raises(InputError, match=message) as caught:
        resolved(tmp_path, text)
    assert f"p.yml{place}" in str(caught.value)


def test_a_key_that_nobody_needs_may_be_unknown(tmp_path: Path) -> None:
    text = '- hosts: all\n  database: "{{ nobody }}"\n  tasks: [rss: {channel: t, items: []}]\n'
    (tmp_path / "i.yml").write_text(INVENTORY, encoding="utf-8")
    (tmp_path / "p.yml").write_text(text, encoding="utf-8")
    assert resolve(ResolveOptions((str(tmp_path / "p.yml"),), (str(tmp_path / "i.yml"),), env={})).work
