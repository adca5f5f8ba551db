"""Tests of the playbook news.yml on an embedded media server: ``pytest test_news.py``."""

from pathlib import Path

import pytest

import msauto
from msauto.simulator import Simulator

PLAYBOOK = Path(__file__).with_name("news.yml")


@pytest.mark.media_server("studio.yml")
def test_the_episode_is_ready_for_air(media_server: Simulator) -> None:
    play = msauto.load(PLAYBOOK, server=media_server.url)
    plan = msauto.plan(play)
    assert [(change.aspect, change.key) for change in plan.changes] == [
        ("title", "title"),
        ("field", "comment"),
        ("marker", "Cue Point@18750"),
    ]
    assert msauto.apply(plan).ok

    clip = media_server.state.clip("Evening News")
    assert [(marker.pos, marker.fields["title"]) for marker in clip.markers] == [
        (18750, "Ad break")
    ]
    assert len(media_server.writes()) == 3
    assert not msauto.plan(play).changes  # a second run changes nothing


@pytest.mark.media_server("studio.yml", faults=["cut_after@POST .*CREATEMARKER*1"])
def test_a_lost_answer_is_settled_by_reading(media_server: Simulator) -> None:
    assert msauto.apply(msauto.load(PLAYBOOK, server=media_server.url)).ok
    assert len(media_server.state.clip("Evening News").markers) == 1  # it exists, and only once


@pytest.mark.media_server("studio.yml", faults=["status:500@POST .*SETFIELD"])
def test_a_rejected_request_is_reported(media_server: Simulator) -> None:
    result = msauto.apply(msauto.load(PLAYBOOK, server=media_server.url))
    assert [target.outcome for target in result.targets] == ["failed"]
