"""Which files may be written and read: names, links, first bytes."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest

from msauto.errors import MsautoError
from msauto.file_access import (
    DOWNLOAD,
    EVENTS,
    PAGE,
    PLAN,
    REPORT,
    WriteAccess,
    check_replaced,
    folded,
    is_stream,
    leads_out,
    name_in_repository,
    open_regular,
    why_not_in_place,
    why_not_looked_up,
    why_not_shown,
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "repository")
    return tmp_path / "repository"


@pytest.mark.parametrize(
    "name",
    [
        "out/still.png",
        "data/film.MP4",
        "a b/ü.mxf",
        "./x.ts",
        "…and then.png",
        "site/inventory.png",
        "a~1.png",
    ],
)
def test_media_go_into_the_repository(folder: Path, name: str) -> None:
    assert WriteAccess((folder,)).path(name, DOWNLOAD) == Path(os.path.normpath(name))


def test_a_folder_and_an_ending_of_the_settings(folder: Path) -> None:
    media, endings = folder.parent / "media", frozenset({".gxf"})
    media.mkdir()
    outside = media / "film.gxf"
    opened = WriteAccess((folder, media), endings=endings)
    assert opened.path(str(outside), DOWNLOAD) == outside
    of_the_folder = WriteAccess((folder, media))
    with pytest.raises(MsautoError, match=r"an ending of a download"):
        of_the_folder.path(str(outside), DOWNLOAD)
    of_the_ending = WriteAccess((folder,), endings=endings)
    with pytest.raises(MsautoError, match="outside the playbook's repository"):
        of_the_ending.path(str(outside), DOWNLOAD)


def test_a_path_through_a_link_is_that_of_the_file(folder: Path) -> None:
    (folder / "real").mkdir()
    (folder / "out").symlink_to("real")
    path = WriteAccess((folder,)).path("out/x.png", DOWNLOAD)
    assert path == folder / "real" / "x.png"
    assert why_not_in_place(path) == ""
    (folder / "real").rmdir()
    (folder / "real").symlink_to(folder.parent)
    assert "is now a link" in why_not_in_place(path)


@pytest.mark.parametrize(
    "name", ["HOST_VARS", "host_vars.", "host_vars ", "ｈｏｓｔ_ｖａｒｓ", "host_\u200dvars"]
)
def test_names_for_one_file(name: str) -> None:
    assert folded(name) == "host_vars"
    assert folded(unicodedata.normalize("NFD", "übung")) == folded("Übung")


@pytest.mark.parametrize(
    ("content", "text", "ours"),
    [
        (PLAN, '{\n  "format": "msauto-plan",\n', True),
        (PLAN, '{"format":"msauto-plan"}', True),
        (PLAN, '{"format": "another"}', False),
        (PLAN, "", False),
        (PLAN, '[{"format": "msauto-plan"}]', False),
        (EVENTS, '{"type":"command_started"}\n', True),
        (EVENTS, "", True),
        (EVENTS, '{"mine": 1}', False),
        (PAGE, '<!DOCTYPE html>\n<html lang="en">\n<head>\n<title>msauto: night</title>', True),
        (PAGE, "<!DOCTYPE html>\n<title>mine</title>", False),
        (REPORT, "a text of somebody", False),
    ],
)
def test_a_file_is_replaced_if_its_first_bytes_are_ours(
    folder: Path, content: object, text: str, ours: bool
) -> None:
    path = folder / "kept"
    path.write_text(text, encoding="utf-8")
    if ours:
        check_replaced(path, content)  # type: ignore[arg-type]
        return
    with pytest.raises(MsautoError, match="exists, and is not") as error:
        check_replaced(path, content)  # type: ignore[arg-type]
    assert "remove it" in error.value.remedy
    path.unlink()
    check_replaced(path, content)  # type: ignore[arg-type]


def test_a_link_in_place_of_a_file_is_not_ours(folder: Path) -> None:
    (folder / "plan.json").symlink_to("nowhere")
    with pytest.raises(MsautoError):
        check_replaced(folder / "plan.json", PLAN)


def test_only_an_operator_may_name_pipes_and_streams(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to("/dev/null")
    assert [is_stream(name) for name in ("pipe", "/dev/null", "/dev/stdout")] == [True, True, True]
    assert [is_stream(name) for name in ("link", "nowhere", "a\0b", "/dev/nowhere", ".")] == [
        False
    ] * 5
    with pytest.raises(MsautoError):
        WriteAccess((folder,)).path("/dev/null", DOWNLOAD)


def test_only_regular_files_are_opened(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    for name in ("pipe", ".", "/dev/null"):
        with pytest.raises(OSError, match=r"."), open_regular(Path(name)):
            pass
    (folder / "x").write_bytes(b"x")
    with open_regular(folder / "x") as file:
        assert file.read() == b"x"


def test_links_that_lead_out(folder: Path) -> None:
    (folder / "out").symlink_to(folder.parent)
    (folder.parent / "x").write_text("x")
    (folder / "in").symlink_to(folder / "y")
    assert leads_out(Path("out/x"), ())
    assert not leads_out(Path("out/x"), [folder.parent])
    assert not leads_out(Path("in"), ())
    assert not leads_out(folder.parent / "x", ())


def test_the_ledger_knows_a_file_wherever_its_repository_is(folder: Path) -> None:
    before = name_in_repository(Path("out/x.png"))
    assert before == name_in_repository(folder / "out" / "x.png") == "out/x.png"
    moved = folder.rename(folder.parent / "moved")
    assert name_in_repository(moved / "out" / "x.png") == before
    assert name_in_repository(folder.parent / "x.png") == str(folder.parent / "x.png")


@pytest.mark.parametrize(
    "content",
    [
        b"hosts: [Anna, Ben]\nserver: studio-a\nall: true\n",
        b"show:\n  hosts:\n    - Anna\nserver:\n  - x\n",
        b'{"hosts": ["Anna"], "server": "a"}',
        b"title: News\n",
        b'[{"server": "a", "title": "x"}]',
        b"guid,text\nserver: hosts\n",
        b"hosts are all there",
    ],
)
def test_data_is_shown(content: bytes) -> None:
    assert why_not_shown(content) is None


@pytest.mark.parametrize(
    "content",
    [
        b"all:\n  hosts:\n    a: {server: {url: x}}\n",
        b"all: {hosts: {a: {password: x}}}",
        b"playout: # ours\n  hosts: # all\n\n    a:\n      server:\n        url: x\n",
        b"'all':\r\n  'children':\r\n    x:\r\n",
        b'{"all": {"hosts": {"a": null}}}',
        b'{\n  "x": {\n    "hosts": {\n      "a": {"server": {"url": "x"}}}}}',
        b'\xef\xbb\xbf{\n  "format": "msauto-plan"',
        b"SQLite format 3\0",
    ],
)
def test_inventories_plans_and_ledgers_are_not_shown(content: bytes) -> None:
    assert why_not_shown(content) is not None


def test_a_path_that_leaves_its_root_meanwhile_is_not_shown(tmp_path: Path) -> None:
    """A link may be replaced after its root was found: then none of its parts would be checked."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "note.txt").symlink_to(tmp_path / "elsewhere.txt")
    with pytest.raises(ValueError, match="elsewhere"):
        why_not_looked_up(tmp_path / "root" / "note.txt", tmp_path / "root", frozenset())
