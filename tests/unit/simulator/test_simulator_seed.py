"""The states at the start contain what examples, demo and benchmarks need."""

from __future__ import annotations

from fractions import Fraction

import pytest

from msauto.simulator import ServerState, bulk_state, empty_state, sample_state, state_from_seed
from msauto.simulator.seed import RATES, state_to_json


def test_what_the_examples_count_on() -> None:
    state = sample_state()
    news = state.databases["NEWS"]
    raw = state.clip("Evening News raw")
    assert (raw.home.folder, raw.rate, raw.frames) == (("Raw", "2026"), Fraction(25), 45000)
    assert not raw.markers
    assert [segment.number for segment in raw.segments] == [1, 7]
    assert (state.clip("Long Film").home.folder, state.clip("Long Film").frames) == (("Films",), 162500)
    assert [state.clip(f"Promo {number}").home.folder for number in (1, 2)] == [("Promos",)] * 2
    assert all(state.clip(f"EP{number:03d}").home.folder == ("Raw",) for number in range(1, 13))
    assert state.clip("Documentary 1987").home.folder == ("Archive",)
    assert [item.guid for item in state.channels["ticker"].items] == ["n-0", "n-1"]
    assert all(news.folder(path) for path in ("Playout/Tonight", "Playout/Tomorrow", "Master/Films", "Архив/Новости"))
    assert "weather" in state.channels


def test_a_realistic_state() -> None:
    clips = [clip for database in sample_state().databases.values() for clip in database.clips()]
    assert len(clips) > 180
    assert {clip.rate for clip in clips} == set(RATES)
    assert any(clip.frames / clip.rate > 24 * 3600 for clip in clips)
    assert any(not clip.finalized for clip in clips)
    assert any(clip.archive and not clip.hires for clip in clips)
    assert len({entry.link_id for clip in sample_state().databases["NEWS"].clips() for entry in clip.entries}) == (
        sum(len(clip.entries) for clip in sample_state().databases["NEWS"].clips())
    )


def test_the_same_at_every_start() -> None:
    first, second = state_to_json(sample_state()), state_to_json(sample_state())
    for state in (first, second):
        for clip in state["databases"][0]["clips"]:
            clip["recording_since"] = None
    assert first == second


def _size(state: ServerState) -> int:
    return sum(len(database.by_title) for database in state.databases.values())


def test_seeds_by_name() -> None:
    assert _size(state_from_seed("empty")) == _size(empty_state()) == 0
    assert _size(state_from_seed("bulk:1500")) == _size(bulk_state(1500)) == 1500
    assert _size(state_from_seed("sample")) > 180
    for wrong in ("", "bulk", "bulk:x", "castle"):
        with pytest.raises(ValueError, match="bulk:N"):
            state_from_seed(wrong)


def test_clips_by_hand() -> None:
    state = empty_state()
    clip = state.add_clip("T", "A/B", rate=30, frames=7, mime_type=10, params=("p",))
    assert (clip.rate, clip.home.folder, clip.title, state.clip("T")) == (Fraction(30), ("A", "B"), "T", clip)
    with pytest.raises(TypeError, match="colour"):
        state.add_clip("U", colour="red")
    with pytest.raises(KeyError):
        state.clip("U")
