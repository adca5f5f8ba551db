"""Every answer of ``tests/cases/xml``: well-formed, sloppy and hostile, with what must be read from it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from msauto.errors import UnreadableError
from msauto.model.live import parse_folder, show_folder
from msauto.server.answers import parse_failure
from msauto.server.channel import parse_channel
from msauto.server.clip import parse_clip
from msauto.server.xmp import parse_xmp
from tests.listing_bytes import parse_listing

CASES = Path(__file__).parents[2] / "cases" / "xml"


def cases(kind: str) -> list[Any]:
    found = sorted((CASES / kind).glob("*.json"))
    assert found
    return [pytest.param(path, id=path.stem) for path in found]


def load(path: Path) -> tuple[bytes, dict[str, Any]]:
    return path.with_suffix(".answer").read_bytes(), json.loads(path.read_text(encoding="utf-8"))


def refused(case: dict[str, Any]) -> pytest.RaisesExc[UnreadableError]:
    return pytest.raises(UnreadableError, match=re.escape(case["error"]))


def test_every_answer_has_its_expectation() -> None:
    answers = {path.with_suffix("") for path in CASES.glob("*/*.answer")}
    assert answers == {path.with_suffix("") for path in CASES.glob("*/*.json")}


@pytest.mark.parametrize("path", cases("listing"))
def test_listing(path: Path) -> None:
    data, case = load(path)
    asked = parse_folder(case["asked"])
    if "error" in case:
        with refused(case):
            parse_listing(data, "NEWS", asked, case.get("charset"))
        return
    listing = parse_listing(data, "NEWS", asked, case.get("charset"))
    entries = [[show_folder(entry.folder), entry.title, entry.link_id] for entry in listing.entries]
    assert entries == case["entries"]
    assert [show_folder(folder) for folder in listing.folders] == case["folders"]
    assert listing.folder == asked


@pytest.mark.parametrize("path", cases("clip"))
def test_clip(path: Path) -> None:
    data, case = load(path)
    if "error" in case:
        with refused(case):
            parse_clip(data)
        return
    expected = case.get("expect") or load(CASES / "clip" / f"{case['like']}.json")[1]["expect"]
    found = json.loads(json.dumps(to_builtins(parse_clip(data))))
    assert found.pop("folder_otherwise") is None, "no database is named"
    assert found == expected


@pytest.mark.parametrize("path", cases("xmp"))
def test_xmp(path: Path) -> None:
    data, case = load(path)
    fields = parse_xmp(data, case.get("separator", ","), case.get("charset"), asked=case.get("asked"))
    assert json.loads(json.dumps(fields)) == case["fields"]


@pytest.mark.parametrize("path", cases("channel"))
def test_channel(path: Path) -> None:
    data, case = load(path)
    if "error" in case:
        with refused(case):
            parse_channel(data, "ticker")
        return
    assert [to_builtins(item) for item in parse_channel(data, "ticker").items] == case["items"]


@pytest.mark.parametrize("path", cases("failure"))
def test_failure(path: Path) -> None:
    data, case = load(path)
    failure = parse_failure(data, case.get("charset"))
    assert (failure.text if failure else None) == case["text"]
    assert bool(failure and failure.not_found) == case["not_found"]
