"""The houses to start with hold what examples, demo and benchmarks count on."""

from __future__ import annotations

from fractions import Fraction

import pytest

from msauto.simulator import bulk_house, empty_house, house_of, seeded_house
from msauto.simulator.state.seed import RATES
from msauto.simulator.state.state_file import house_to_json


def test_what_the_examples_count_on() -> None:
    house = seeded_house()
    news = house.databases["NEWS"]
    raw = house.clip("Evening News raw")
    assert (raw.home.folder, raw.rate, raw.frames) == (("Raw", "2026"), Fraction(25), 45000)
    assert not raw.markers
    assert [segment.number for segment in raw.segments] == [1, 7]
    assert (house.clip("Long Film").home.folder, house.clip("Long Film").frames) == (("Films",), 162500)
    assert [house.clip(f"Promo {number}").home.folder for number in (1, 2)] == [("Promos",)] * 2
    assert all(house.clip(f"EP{number:03d}").home.folder == ("Raw",) for number in range(1, 13))
    assert house.clip("Documentary 1987").home.folder == ("Archive",)
    assert [item.guid for item in house.channels["ticker"].items] == ["n-0", "n-1"]
    assert all(news.folder(path) for path in ("Playout/Tonight", "Playout/Tomorrow", "Master/Films", "Архив/Новости"))
    assert "weather" in house.channels


def test_a_believable_house() -> None:
    clips = [clip for database in seeded_house().databases.values() for clip in database.clips()]
    assert len(clips) > 180
    assert {clip.rate for clip in clips} == set(RATES)
    assert any(clip.frames / clip.rate > 24 * 3600 for clip in clips)
    assert any(not clip.finalized for clip in clips)
    assert any(clip.archive and not clip.hires for clip in clips)
    assert len({entry.link_id for clip in seeded_house().databases["NEWS"].clips() for entry in clip.entries}) == (
        sum(len(clip.entries) for clip in seeded_house().databases["NEWS"].clips())
    )


def test_the_same_at_every_start() -> None:
    first, second = house_to_json(seeded_house()), house_to_json(seeded_house())
    for state in (first, second):
        for clip in state["databases"][0]["clips"]:
            clip["recording_since"] = None
    assert first == second


def test_seeds_by_name() -> None:
    assert house_of("empty").size() == empty_house().size() == 0
    assert house_of("bulk:1500").size() == bulk_house(1500).size() == 1500
    assert house_of("house").size() > 180
    for wrong in ("", "bulk", "bulk:x", "castle"):
        with pytest.raises(ValueError, match="bulk:N"):
            house_of(wrong)


def test_clips_by_hand() -> None:
    house = empty_house()
    clip = house.add_clip("T", "A/B", rate=30, frames=7, mime_type=10, params=("p",))
    assert (clip.rate, clip.home.folder, clip.title, house.clip("T")) == (Fraction(30), ("A", "B"), "T", clip)
    with pytest.raises(TypeError, match="colour"):
        house.add_clip("U", colour="red")
    with pytest.raises(KeyError):
        house.clip("U")
