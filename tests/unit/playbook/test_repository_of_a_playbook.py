"""A playbook's repository, the names of its files, and the media database of a task."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msauto.errors import InputError
from msauto.file_writing import FileNames, safe_name
from msauto.model.desired import DatabaseRef, DesiredAsset, TitleRef
from msauto.model.facts import Facts
from msauto.model.live import Asset
from msauto.playbook.hosts import ResolveOptions
from msauto.playbook.input_files import repository_of
from msauto.playbook.resolve import resolve


def test_a_mark_above_is_the_repository(tmp_path: Path) -> None:
    (tmp_path / "msauto.toml").write_text("")
    (tmp_path / "books" / "news").mkdir(parents=True)
    assert repository_of(tmp_path / "books" / "news") == tmp_path


def test_without_a_mark_it_is_the_folder_itself(tmp_path: Path) -> None:
    (tmp_path / "books").mkdir()
    assert repository_of(tmp_path / "books") == tmp_path / "books"


def test_a_folder_called_playbooks_lies_in_its_repository(tmp_path: Path) -> None:
    (tmp_path / "playbooks").mkdir()
    assert repository_of(tmp_path / "playbooks") == tmp_path


def test_one_who_stands_above_stands_in_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "books" / "news").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert repository_of(tmp_path / "books" / "news") == tmp_path


@pytest.mark.parametrize("where", ["/", "home"])
def test_but_neither_the_root_nor_a_home_is_a_repository(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "books").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir("/" if where == "/" else tmp_path)
    assert repository_of(tmp_path / "books") == tmp_path / "books"


# File names: safe everywhere, the same each time, and no two things in one file


names = st.text(
    st.sampled_from('abAB/\\:*?"<>|.~ -\n\x00\u202eéÉ日CONnul1') | st.characters(), min_size=1, max_size=150
)


@given(names)
def test_every_file_system_takes_it(name: str) -> None:
    safe = safe_name(name)
    assert safe == safe_name(name)
    assert 0 < len(safe.encode()) <= 120
    assert not set(safe) & set('<>:"/\\|?*')
    assert safe.isprintable()
    assert safe[0] not in ". -"
    assert safe[-1] not in ". "
    assert safe.partition(".")[0].casefold() not in {"con", "prn", "aux", "nul", "com1", "lpt1"}
    assert unicodedata.is_normalized("NFC", safe)


@given(st.lists(st.lists(names, min_size=1, max_size=3).map(tuple), unique=True, max_size=8))
def test_no_two_things_share_a_file(things: list[tuple[str, ...]]) -> None:
    given_names = FileNames()
    paths = [given_names.path(thing) for thing in things]
    assert [given_names.path(thing) for thing in things] == paths
    assert len({unicodedata.normalize("NFC", str(path)).casefold() for path in paths}) == len(things)


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("Raw", "Raw"),
        ("Новости дня", "Новости дня"),
        ("v1.2 (final)", "v1.2 (final)"),
        (unicodedata.normalize("NFD", "Été"), "Été"),
    ],
)
def test_what_is_safe_stays(name: str, safe: str) -> None:
    assert safe_name(name) == safe


@pytest.mark.parametrize("name", ["AC/DC", "CON", "con.txt", "..", ".", "-rf", ".git", "a ", " a", "group_vars", "a:b"])
def test_what_is_not_safe_carries_a_number(name: str) -> None:
    assert safe_name(name)[-9] == "~"


def test_the_number_is_of_the_whole_path() -> None:
    given_names = FileNames()
    assert given_names.path(("NEWS", "raw")) == Path("NEWS/raw.yml")
    second = given_names.path(("NEWS", "Raw"))
    assert second.parent == Path("NEWS")
    assert second.name.startswith("Raw~")


# The media database of a task is the variable ``database``, at every level, and templates see the same one


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
