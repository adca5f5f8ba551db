"""Files are written whole or not at all, and not where a planted link leads."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from msauto.file_writing import write_file


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text("old", encoding="utf-8")

    def pieces() -> Iterator[str]:
        yield "new"
        assert path.read_text(encoding="utf-8") == "old"
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        write_file(path, pieces())
    assert [each.name for each in tmp_path.iterdir()] == ["plan.json"]
    write_file(path, ["né", b"w"], 0o600)
    assert path.read_bytes() == "néw".encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["plan.json"]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine", encoding="utf-8")
    (tmp_path / "plan.json").symlink_to(victim)
    write_file(tmp_path / "plan.json", ["new"])
    assert victim.read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "plan.json").is_symlink()


def test_a_pipe_is_written(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[bytes] = []
    reader = Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write_file(tmp_path / "pipe", ["text"])
    reader.join(10)
    assert read == [b"text"]
