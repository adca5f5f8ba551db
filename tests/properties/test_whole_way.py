"""Random live and desired states over real HTTP: after apply the server is as desired, and a second plan is empty.
The number of writes is the least that the interface allows (counted here by hand, not by the planner)."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msauto.plugins.simulator.embedded import SimClip, SimMarker, SimSegment, Simulator, empty_state
from tests.examples import examples
from tests.stage import Stage

FRAMES = 400
TITLE = "Back\\Slash / Film: 50% @ night? & «Новости», 1+1"
TRACKS = ("General", "Cue Point", "Icon")
TEXTS = st.sampled_from(["", "a", "Ad break", "50% & more, <b>", "две\nстроки", " padded "])
NAMES = ("comment", "user_0", "user_7")
XMP_NAMES = ("dc:title", "dc:subject")
XMP_VALUES = st.lists(
    st.sampled_from(["news", "вечер", "50%", "a&b"]), min_size=1, max_size=2, unique=True
)
FOLDERS = ("Playout/Tonight", "AC\\/DC", "Архив")

markers = st.dictionaries(
    st.tuples(st.sampled_from(TRACKS), st.integers(0, 5)),
    st.fixed_dictionaries({}, optional={"title": TEXTS, "comment": TEXTS, "user": TEXTS}),
    max_size=5,
)
segments = st.dictionaries(
    st.integers(1, 5),
    st.fixed_dictionaries(
        {"start": st.integers(0, 3), "duration": st.integers(1, 3)}, optional={"title": TEXTS}
    ),
    max_size=5,
)
fields = st.dictionaries(st.sampled_from(NAMES), TEXTS, max_size=3)
xmp = st.dictionaries(st.sampled_from(XMP_NAMES), XMP_VALUES, max_size=2)
links = st.sets(
    st.tuples(st.sampled_from(FOLDERS), st.sampled_from([TITLE, "Другое имя"])), max_size=3
)
exactly = st.sets(st.sampled_from(["segments", "markers"]))


@dataclass(frozen=True)
class State:
    fields: dict[str, str]
    xmp: dict[str, list[str]]
    segments: dict[int, dict[str, Any]]
    markers: dict[tuple[str, int], dict[str, str]]
    links: set[tuple[str, str]]


states = st.builds(State, fields, xmp, segments, markers, links)


def put_live(sim: Simulator, state: State) -> SimClip:
    sim.state = empty_state()
    news = sim.state.databases["NEWS"]
    for folder in FOLDERS:
        news.make_folder(folder)
    clip = news.add_clip(TITLE, "Raw", frames=FRAMES)
    clip.home.fields.update(state.fields)
    clip.xmp.update({name: list(values) for name, values in state.xmp.items()})
    clip.segments[:] = [
        SimSegment(
            number,
            sourced["start"],
            sourced["duration"],
            [sourced["title"]] if "title" in sourced else [],
        )
        for number, sourced in state.segments.items()
    ]
    clip.markers[:] = [
        SimMarker(uid, frame, {"track": track, **texts})
        for uid, ((track, frame), texts) in enumerate(state.markers.items(), start=1)
    ]
    for folder, title in sorted(state.links):
        news.add_entry(clip, folder, title)
    sim.clear_log()
    return clip


def task(desired: State, only: set[str]) -> dict[str, Any]:
    asset: dict[str, Any] = {
        "title": TITLE,
        "fields": desired.fields,
        "xmp": desired.xmp,
        "segments": [{"number": number, **sourced} for number, sourced in desired.segments.items()],
        "markers": [
            {"at": at, "track": track, **texts} for (track, at), texts in desired.markers.items()
        ],
        "links": [{"folder": folder, "title": title} for folder, title in sorted(desired.links)],
        "exactly": sorted(only),
    }
    return {
        "name": "As wanted",
        "asset": {
            key: value for key, value in asset.items() if value or key in only or key == "title"
        },
    }


def least_writes(live: State, desired: State, only: set[str]) -> int:
    count = sum(live.fields.get(name, "") != text for name, text in desired.fields.items())
    count += any(live.xmp.get(name, []) != values for name, values in desired.xmp.items())
    count += len(desired.links - live.links)
    count += least_segments(live.segments, desired.segments, everything="segments" in only)
    return count + least_markers(live.markers, desired.markers, everything="markers" in only)


def least_segments(
    live: dict[int, dict[str, Any]], desired: dict[int, dict[str, Any]], *, everything: bool
) -> int:
    wrong = sum(
        number in live and not within(sourced, live[number]) for number, sourced in desired.items()
    )
    extra = len(live.keys() - desired.keys()) if everything else 0
    return 2 * wrong + len(desired.keys() - live.keys()) + extra


def least_markers(
    live: dict[tuple[str, int], Any], desired: dict[tuple[str, int], Any], *, everything: bool
) -> int:
    wrong = sum(key in live and not within(sourced, live[key]) for key, sourced in desired.items())
    new, extra = (
        len(desired.keys() - live.keys()),
        len(live.keys() - desired.keys()) if everything else 0,
    )
    return wrong + new + extra  # no marker is ever moved


def within(sourced: dict[str, Any], live: dict[str, Any]) -> bool:
    return all(live.get(name, "") == value for name, value in sourced.items())


def check_end(clip: SimClip, live: State, desired: State, only: set[str]) -> None:
    fields = live.fields | desired.fields
    xmp = live.xmp | desired.xmp
    for name in NAMES:
        assert clip.home.fields.get(name, "") == fields.get(name, "")
    for name in XMP_NAMES:
        assert clip.xmp.get(name, []) == xmp.get(name, [])
    segments = {segment.number: _shown(segment) for segment in clip.segments}
    everything = "segments" in only
    check_list(segments, live.segments, desired.segments, everything=everything)
    markers = {}
    for marker in clip.markers:
        markers[marker.fields["track"], marker.pos] = marker.fields
    assert len(markers) == len(clip.markers), "a twin"
    everything = "markers" in only
    check_list(markers, live.markers, desired.markers, everything=everything)
    links = [(link.folder, link.title) for link in clip.entries[1:]]
    names = live.links | desired.links
    assert len(links) == len(set(links)) == len(names)


def _shown(segment: SimSegment) -> dict[str, Any]:
    title = "".join(segment.titles)
    return {"start": segment.start, "duration": segment.duration, "title": title}


def check_list(
    found: dict[Any, Any], live: dict[Any, Any], desired: dict[Any, Any], *, everything: bool
) -> None:
    assert found.keys() == (desired.keys() if everything else desired.keys() | live.keys())
    for key, sourced in desired.items():
        assert within(sourced, found[key])
        kept = live.get(key, {}).items() - sourced.items()
        assert all(name in sourced or found[key].get(name, "") == value for name, value in kept), (
            "lost what nobody named"
        )


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(live=states, desired=states, only=exactly)
def test_the_server_is_as_wanted_with_the_fewest_writes(
    sim: Simulator, live: State, desired: State, only: set[str]
) -> None:
    clip = put_live(sim, live)
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(sim, Path(folder))
        result = stage.apply(task(desired, only))
        assert result.ok, [
            (target.outcome, target.message, target.target.error) for target in result.targets
        ]
        assert len(stage.sent()) == least_writes(live, desired, only) == result.plan.requests
        check_end(clip, live, desired, only)
        sim.clear_log()
        again = stage.plan(task(desired, only))
        assert (again.requests, again.errors, again.unchanged) == (0, 0, 1)
        assert not stage.sent()
        assert len(stage.reads()) == 1 + bool(desired.xmp) + len(
            {folder for folder, _ in desired.links}
        )
