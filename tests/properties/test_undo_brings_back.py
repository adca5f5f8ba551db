"""Undo: what a run did to random live states is taken back, and can be done again; a plan of undo again is empty."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from msauto.plugins.simulator.embedded import SimClip, Simulator, empty_state
from msauto.plugins.simulator.embedded.wire import folder_of_text
from tests.examples import examples
from tests.properties.test_whole_way import FRAMES, NAMES, State, put_live, states, task
from tests.stage import Stage
from tests.tables import one_fast_in

DIALECTS: tuple[tuple[tuple[str, ...], dict[str, str]], ...] = (
    ((), {"link_delete": "by_title"}),
    (("segment_update=overwrite",), {"segment_update": "overwrite", "link_delete": "by_title"}),
    (("marker_update=keep",), {"marker_update": "changed", "link_delete": "by_title"}),
    (("segment_keywords=hidden", "link_fields=reported_when_set"), {"link_delete": "by_title"}),
)
ONLY = st.sets(st.sampled_from(["segments", "markers"]))


@pytest.fixture(scope="module", params=one_fast_in(2, range(len(DIALECTS))))
def stage(request: pytest.FixtureRequest) -> Iterator[tuple[Simulator, dict[str, str]]]:
    switches, ours = DIALECTS[request.param]
    with Simulator(state=empty_state(), dialect=switches) as simulator:
        yield simulator, ours


def seen(clip: SimClip) -> dict[str, Any]:
    """The clip as a user sees it: without uids and empty values."""
    entries = {(entry.folder, entry.title) for entry in clip.entries}
    return {
        "fields": {name: clip.home.fields.get(name, "") for name in NAMES},
        "xmp": {name: values for name, values in clip.xmp.items() if values},
        "segments": {
            (s.number, s.start, s.duration, "".join(s.titles) or s.name, s.keywords)
            for s in clip.segments
        },
        "markers": sorted(
            (m.pos, sorted((k, v) for k, v in m.fields.items() if v not in {"", "0"}))
            for m in clip.markers
        ),
        "entries": entries,
        "frames": FRAMES,
    }


def stuck_links(desired: State, live: State) -> set[tuple[tuple[str, ...], str]]:
    """The new links that nothing takes away again: by the asset's own title, or by a title that two links bear."""
    new = desired.links - live.links
    titles = [title for _, title in desired.links | live.links]
    stuck = {link for link in new if link[1].startswith("Back") or titles.count(link[1]) > 1}
    return {(tuple(folder_of_text(folder)), title) for folder, title in stuck}


@settings(
    max_examples=examples(12),
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(live=states, desired=states, only=ONLY)
def test_undo_gives_the_state_before(
    stage: tuple[Simulator, dict[str, str]], live: State, desired: State, only: set[str]
) -> None:
    sim, ours = stage
    clip = put_live(sim, live)
    before = seen(clip)
    with tempfile.TemporaryDirectory() as folder:
        there = Stage(sim, Path(folder), dialect=ours)
        first = there.apply(task(desired, only))
        assert first.ok, [(target.message, target.differences) for target in first.targets]
        after = seen(clip)
        undone = there.undo(first.run)
        assert undone.ok, [
            (target.message, target.target.error, target.differences) for target in undone.targets
        ]
        told = "\n".join(undone.plan.warnings)
        assert "left alone" not in told
        stuck = stuck_links(desired, live)
        unknown = [
            c.key for target in first.plan.targets for c in target.changes if c.basis == "none"
        ]
        assert told.count("cannot be undone") == len(stuck) + len(unknown)
        fields = before["fields"] | {name: after["fields"][name] for name in unknown}
        assert seen(clip) == before | {"entries": before["entries"] | stuck, "fields": fields}
        assert there.undo(first.run, dry=True).requests == 0
        if first.plan.requests and undone.plan.requests:
            again = there.undo(undone.run)
            assert again.ok
            assert seen(clip) == after
