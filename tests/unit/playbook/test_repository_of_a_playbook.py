"""What a playbook may read: its repository, also where neither .git nor msauto.toml marks it."""

from __future__ import annotations

from pathlib import Path

import pytest

from msauto.playbook.input_files import repository_of


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
