from __future__ import annotations

import os
from datetime import UTC, datetime, time
from hashlib import sha256
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pydantic_core import core_schema

from msauto.documents.document import outside_node
from msauto.documents.strict_model import Model
from msauto.errors import InputError
from msauto.model.plan import Limits
from msauto.playbook.change_windows import DatedFreeze, Freeze
from msauto.playbook.hosts import ResolveOptions
from msauto.playbook.input_files import Files, how_to_find
from msauto.playbook.schema.schema_errors import read_as
from msauto.playbook.settings import Settings, load_settings
from msauto.playbook.validate import validate
from tests.tables import CASES, table

NONE = ResolveOptions((), env={})


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_path_that_leads_to_nothing_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "news.yml", "- {hosts: h, tasks: []}\n")
    assert how_to_find("new.yml") == "did you mean 'news.yml'?"
    assert how_to_find("new.yml/") == "did you mean 'news.yml'?"
    assert how_to_find("rss.toml") == f"correct the path, or create it in {tmp_path}"
    assert how_to_find("playbooks/news.yml") == "folder 'playbooks' not found: correct the path"
    assert how_to_find("news.yml/x.yml") == "folder 'news.yml' not found: correct the path"
    assert how_to_find("new\0.yml")
    for path in ("new.yml", "playbooks/x.yml", "x.toml"):
        with pytest.raises(InputError) as caught:
            Files().read(path)
        assert caught.value.problems[0].remedy == how_to_find(path)
        assert [problem.remedy for problem in validate([path], NONE)] == [how_to_find(path)]
    with pytest.raises(InputError, match="it is a folder") as caught:
        Files().read(".")
    assert caught.value.problems[0].remedy
    with pytest.raises(InputError) as caught:
        load_settings("msauto.tml")
    assert caught.value.problems[0].remedy == how_to_find("msauto.tml")


def test_settings(tmp_path: Path) -> None:
    file = write(
        tmp_path, "msauto.toml", (CASES / "playbook" / "settings.toml").read_text(encoding="utf-8")
    )
    assert load_settings(None, tmp_path) == Settings(
        file=str(file),
        sha256=sha256(Path(file).read_bytes()).hexdigest(),
        inventories=(str(tmp_path / "inventory"),),
        forks=4,
        state_dir=str(tmp_path / "state"),
        limits=Limits(delete_assets=2, requests=500, protected=("Master/*",)),
        freezes=(Freeze(("fri",), time(18), time(23, 30), "Europe/Oslo"),),
        require_state=True,
        keep_days=400,
    )
    assert load_settings(None, tmp_path / "plays" / "news") == load_settings(file)
    file.unlink()
    assert load_settings(None, tmp_path) == Settings()


def test_freezes_with_dates(tmp_path: Path) -> None:
    text = """
tz = "Europe/Oslo"
[[freeze]]
start = 2026-12-24
end = 2026-12-26
reason = "Christmas"
[[freeze]]
start = 2026-12-31T18:00:00
end = "2027-01-01T12:00Z"
tz = "Europe/London"
"""
    settings = load_settings(write(tmp_path, "msauto.toml", text))
    oslo, london = ZoneInfo("Europe/Oslo"), ZoneInfo("Europe/London")
    assert settings.freezes == (
        DatedFreeze(
            datetime(2026, 12, 24, tzinfo=oslo), datetime(2026, 12, 27, tzinfo=oslo), "Christmas"
        ),
        DatedFreeze(
            datetime(2026, 12, 31, 18, tzinfo=london), datetime(2027, 1, 1, 12, tzinfo=UTC)
        ),
    )


@table("playbook/wrong_settings", "text", "message")
def test_wrong_settings(text: str, message: str, tmp_path: Path) -> None:
    write(tmp_path, "msauto.toml", text)
    with pytest.raises(InputError, match=message):
        load_settings(None, tmp_path)


def test_settings_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_settings(tmp_path / "x.toml")


def test_a_file_above_the_limit_is_refused_unread(tmp_path: Path) -> None:
    playbook = write(tmp_path, "p.yml", "- {hosts: h, tasks: []} #")
    os.truncate(playbook, 64 * 2**20 + 1)
    (problem,) = validate([str(playbook)], ResolveOptions((), env={}))
    assert problem.message == "the file cannot be read: its size is 65 MiB, and the limit is 64 MiB"


class Interrupted:
    """A bound that is asked for while the model is built, as Ctrl-C comes."""

    def __index__(self) -> int:
        raise KeyboardInterrupt

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: object
    ) -> core_schema.CoreSchema:
        bound: Any = cls()
        return core_schema.list_schema(min_length=bound)


class Interrupting(Model):
    key: Interrupted


def test_ctrl_c_while_pydantic_builds_a_model_stays_ctrl_c() -> None:
    with pytest.raises(KeyboardInterrupt):
        read_as(Interrupting, {}, outside_node("x.yml"))
