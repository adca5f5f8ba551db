"""A playbook's repository, and the names of its files."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msauto.file_access import repository_of
from msauto.file_writing import FileNames, safe_name
from tests.tables import table


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


def test_one_who_stands_above_stands_in_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    st.sampled_from('abAB/\\:*?"<>|.~ -\n\x00\u202eéÉ日CONnul1') | st.characters(),
    min_size=1,
    max_size=150,
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
    assert len({unicodedata.normalize("NFC", str(path)).casefold() for path in paths}) == len(
        things
    )


@table("playbook/safe_names", "name", "safe")
def test_what_is_safe_stays(name: str, safe: str) -> None:
    assert safe_name(name) == safe


@pytest.mark.parametrize(
    "name", ["AC/DC", "CON", "con.txt", "..", ".", "-rf", ".git", "a ", " a", "group_vars", "a:b"]
)
def test_what_is_not_safe_carries_a_number(name: str) -> None:
    assert safe_name(name)[-9] == "~"


def test_the_number_is_of_the_whole_path() -> None:
    given_names = FileNames()
    assert given_names.path(("NEWS", "raw")) == Path("NEWS/raw.yml")
    second = given_names.path(("NEWS", "Raw"))
    assert second.parent == Path("NEWS")
    assert second.name.startswith("Raw~")
