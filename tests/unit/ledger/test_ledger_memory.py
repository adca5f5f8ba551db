"""What is remembered of a target, and of nothing else."""

import unicodedata
from pathlib import Path

from msgspec import structs

from msauto.ledger import Ledger
from msauto.model.plan import Json, TargetId

CLIP = TargetId("studio-a", "NEWS", "asset", "Новости дня й", 7, "2026-11-20T10:00:00")


def test_items_come_back(place: Path | str) -> None:
    items: dict[str, Json] = {
        "field:comment": "a\nb",
        "field:layer": 3,
        "segment:1": {"keywords": ["x", None, 1.5]},
        "flag": False,
    }
    with Ledger.open(place) as ledger:
        ledger.memory.remember(CLIP, items)
        assert ledger.memory.recall(CLIP) == items
    with Ledger.open(place, readonly=True) as ledger:
        assert ledger.memory.recall(CLIP) == items


def test_none_forgets(place: Path | str) -> None:
    with Ledger.open(place) as ledger:
        ledger.memory.remember(CLIP, {"a": 1, "b": 2})
        ledger.memory.remember(CLIP, {"a": None, "c": None, "b": 3})
        assert ledger.memory.recall(CLIP) == {"b": 3}


def test_a_kind_of_item_is_forgotten_of_all_assets_of_a_database(place: Path | str) -> None:
    clips = [CLIP, structs.replace(CLIP, name="News", link_id=None)]
    others = [
        structs.replace(CLIP, server="studio-b"),
        structs.replace(CLIP, database="OLD"),
        structs.replace(CLIP, name="NEWS", kind="database", link_id=None),
    ]
    with Ledger.open(place) as ledger:
        for target in (*clips, *others):
            ledger.memory.remember(target, {"xmp:dc:title": ["a"], "xmp_batch:x": True, "field:xmp:": "b"})
        ledger.memory.forget_assets("studio-a", "NEWS", "xmp:")
        assert [sorted(ledger.memory.recall(clip)) for clip in clips] == [["field:xmp:", "xmp_batch:x"]] * 2
        assert all("xmp:dc:title" in ledger.memory.recall(other) for other in others)


def test_another_clip_is_another_clip(place: Path | str) -> None:
    others = [
        structs.replace(CLIP, server="studio-b"),
        structs.replace(CLIP, database="OLD"),
        structs.replace(CLIP, name="Новости"),
        structs.replace(CLIP, link_id=8),
        structs.replace(CLIP, link_id=None),
        structs.replace(CLIP, create_time="2026-11-21T10:00:00"),
        structs.replace(CLIP, create_time=None),
        structs.replace(CLIP, kind="rss_channel"),
    ]
    with Ledger.open(place) as ledger:
        ledger.memory.remember(CLIP, {"a": 1})
        assert [ledger.memory.recall(other) for other in others] == [{}] * len(others)


def test_one_title_in_two_spellings_of_unicode(place: Path | str) -> None:
    decomposed = unicodedata.normalize("NFD", CLIP.name)
    assert decomposed != CLIP.name
    with Ledger.open(place) as ledger:
        ledger.memory.remember(structs.replace(CLIP, name=decomposed), {"a": 1})
        assert ledger.memory.recall(CLIP) == {"a": 1}


def test_what_is_owed_is_found_without_knowing_of_whom(place: Path | str) -> None:
    with Ledger.open(place) as ledger:
        assert ledger.memory.pending("studio-a") == frozenset()
        ledger.memory.remember(CLIP, {"pending:handler:Export": {"run": "r"}, "field:comment": "x"})
        ledger.memory.remember(structs.replace(CLIP, name="Film"), {"field:pending:": "x", "command:X": True})
        ledger.memory.remember(
            structs.replace(CLIP, server="studio-b", name="Other"), {"pending:command:X": {"run": "r"}}
        )
        ledger.memory.remember(structs.replace(CLIP, kind="database", name="NEWS"), {"pending:x": True})
        assert ledger.memory.pending("studio-a") == {("NEWS", unicodedata.normalize("NFC", CLIP.name))}
        ledger.memory.remember(CLIP, {"pending:handler:Export": None})
        assert ledger.memory.pending("studio-a") == frozenset()


def test_a_missing_ledger_has_nothing_pending(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "nowhere", readonly=True) as ledger:
        assert ledger.memory.pending("studio-a") == frozenset()
