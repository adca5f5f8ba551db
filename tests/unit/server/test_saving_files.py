"""A file is saved whole or not at all, whatever the disk or the server does."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from pathlib import Path

import pytest

from msauto.errors import DownloadError, NotSentError
from msauto.server.downloads import save_body


def files(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def pieces(*chunks: bytes | Exception) -> AsyncGenerator[bytes, None]:
    for chunk in chunks:
        if isinstance(chunk, Exception):
            raise chunk
        yield chunk


def save(dest: Path, *chunks: bytes | Exception) -> int:
    async def main() -> int:
        async with aclosing(pieces(*chunks)) as body:
            return (await save_body(partial(anext, body, b""), dest, None, None)).size

    return asyncio.run(main())


def test_disk_full_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    dest = tmp_path / "film.mp4"
    dest.write_bytes(b"old")
    monkeypatch.setattr("msauto.file_writing.os.fsync", full)
    with pytest.raises(DownloadError, match="No space left") as caught:
        save(dest, b"new")
    assert "free some space" in caught.value.remedy
    assert files(tmp_path) == ["film.mp4"]
    assert dest.read_bytes() == b"old"


def test_cut_download_leaves_the_old_file(tmp_path: Path) -> None:
    dest = tmp_path / "film.mp4"
    dest.write_bytes(b"old")
    with pytest.raises(NotSentError):
        save(dest, b"x" * 2**21, NotSentError("cut"))
    assert files(tmp_path) == ["film.mp4"]
    assert dest.read_bytes() == b"old"


def test_whole_download_replaces_it(tmp_path: Path) -> None:
    dest = tmp_path / "film.mp4"
    dest.write_bytes(b"old")
    assert save(dest, b"a" * 2**20, b"b", b"c" * 5) == 2**20 + 6
    assert dest.read_bytes() == b"a" * 2**20 + b"bccccc"
    (tmp_path / "plain").write_bytes(b"")
    assert dest.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_folder_in_the_way_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DownloadError) as caught:
        save(tmp_path / "file" / "film.mp4", b"x")
    assert caught.value.remedy


# The client can be imported on a system without POSIX modules, such as Windows


IMPORT = """
import sys
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
from msauto import AsyncMediaServer, MediaServer
"""


@pytest.mark.scale
def test_the_client_needs_no_posix_module_to_be_imported() -> None:
    subprocess.run([sys.executable, "-c", IMPORT], check=True)
