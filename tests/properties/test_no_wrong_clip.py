"""Random databases with links, duplicate titles and links in a clip's own folder: never the wrong clip, over real HTTP.

The oracle knows which clip each entry shows, which the interface does not report. Tasks name clips by titles of their
own, by titles of links and by listings. What is planned without an error is applied.
Then only clips that a task names are written to, and no clip is deleted by the name of a link. Each clip is one target,
and planning again gives nothing. A link that a run makes shows its clip in later listings of the folder: there the
second run may have work, and the third has none.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msauto.plugins.simulator.embedded import SimClip, SimDialect, Simulator, empty_state
from tests.examples import examples
from tests.stage import Stage

TITLES = ("A", "B", "A tonight")
FOLDERS = ("Raw", "Playout", "Playout/Tonight")
DIALECTS = (
    {"link_folder": "home", "link_delete": "clip"},
    {"link_folder": "own", "link_delete": "clip"},
    {"link_folder": "home", "link_delete": "by_title"},
    {"link_folder": "own", "link_delete": "by_title"},
)
ODD_DIALECTS = (
    *DIALECTS,
    {"link_folder": "home", "link_delete": "clip", "link_titles": "nowhere", "orig_name": "hidden"},
    {"link_folder": "own", "link_delete": "clip", "title_twins": "both"},
)


@dataclass(frozen=True)
class Entries:
    """A clip's home and its links, as folder and title each; clips with the same ``made`` differ in length alone."""

    home: tuple[str, str]
    links: tuple[tuple[str, str], ...]
    made: int


places = st.tuples(st.sampled_from(FOLDERS), st.sampled_from(TITLES))
clips = st.builds(Entries, places, st.lists(places, max_size=2).map(tuple), st.integers(1, 2))
worlds = st.lists(clips, min_size=1, max_size=3)

names = st.one_of(
    st.sampled_from(TITLES).map(lambda title: {"title": title}),
    st.builds(
        lambda title, folder: {"title": title, "folder": folder},
        st.sampled_from(TITLES),
        st.sampled_from(FOLDERS),
    ),
    st.builds(
        lambda folder, recursive: {"select": {"folder": folder, "recursive": recursive}},
        st.sampled_from(FOLDERS),
        st.booleans(),
    ),
)
desired = st.one_of(
    st.builds(
        lambda at: {"markers": [{"at": at, "track": "General", "title": "x"}]}, st.integers(0, 2)
    ),
    st.builds(lambda at: {"markers": [{"at": at}], "exactly": ["markers"]}, st.integers(0, 2)),
    st.sampled_from(["a", "b"]).map(lambda text: {"fields": {"comment": text}}),
    st.booleans().map(lambda consent: {"state": "absent", "with_links": consent}),
    st.builds(lambda folder: {"links": [{"folder": folder}]}, st.sampled_from(FOLDERS)),
)
tasks = st.lists(
    st.builds(lambda name, want: {"asset": {**name, **want, "missing": "skip"}}, names, desired),
    min_size=1,
    max_size=3,
)


def build(sim: Simulator, world: list[Entries], dialect: dict[str, str]) -> list[SimClip]:
    sim.state = empty_state()
    sim.dialect = SimDialect().with_values(dialect)
    news = sim.state.databases["NEWS"]
    for folder in FOLDERS:
        news.make_folder(folder)
    news.add_clip("Another", "Elsewhere", frames=9)  # which no task names
    made = []
    for number, entries in enumerate(world):
        folder, title = entries.home
        when = f"2026-11-0{entries.made}T10:00:00"
        clip = news.add_clip(
            title, folder, frames=100 + number, create_time=when, orig_name=f"{entries.made}.mxf"
        )
        for link_folder, link_title in entries.links:
            news.add_entry(clip, link_folder, link_title)
        made.append(clip)
    sim.clear_log()
    return made


def titles_of(clip: SimClip) -> set[str]:
    return {entry.title for entry in clip.entries}


def may_mean(clip: SimClip, task: dict[str, Any]) -> bool:
    """Whether a task names a clip: by a title of its entries, or by a folder that lists one of them."""
    args = task["asset"]
    if "title" in args:
        return args["title"] in titles_of(clip)
    folder, recursive = args["select"]["folder"], args["select"]["recursive"]
    listed = ["/".join(entry.folder) for entry in clip.entries]
    return any(each == folder or (recursive and each.startswith(f"{folder}/")) for each in listed)


def state_of(clip: SimClip) -> object:
    markers = sorted((marker.pos, sorted(marker.fields.items())) for marker in clip.markers)
    fields = sorted((entry.link_id, sorted(entry.fields.items())) for entry in clip.entries)
    return markers, fields, len(clip.entries)


@settings(
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(world=worlds, asked=tasks, dialect=st.sampled_from(ODD_DIALECTS))
def test_only_the_clips_that_are_named_are_written_to(
    sim: Simulator, world: list[Entries], asked: list[dict[str, Any]], dialect: dict[str, str]
) -> None:
    made = build(sim, world, dialect)
    before = [state_of(clip) for clip in made]
    homes = [clip.home.title for clip in made]
    names_of = [[task for task in asked if may_mean(clip, task)] for clip in made]
    news = sim.state.databases["NEWS"]
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(sim, Path(folder))
        plan = stage.plan(*asked)
        assert not sim.writes()
        if plan.errors:
            return
        result = stage.apply(*asked)
        written = Counter(target.target.name for target in result.targets)
        assert max(written.values(), default=0) <= 1
        for clip, was, home, named in zip(made, before, homes, names_of, strict=True):
            gone = clip.home not in news.root.walk()
            if not named:
                assert state_of(clip) == was
                assert not gone
            if gone:
                absent = [task["asset"] for task in named if task["asset"].get("state") == "absent"]
                assert absent
                consented = any(args["with_links"] for args in absent)
                assert consented or len(clip.entries) == 1
                if dialect["link_folder"] == "home":
                    called = {args.get("title", home) for args in absent}
                    assert any(
                        entry.title in called and entry.folder == clip.home.folder
                        for entry in clip.entries
                    )
        if any("links" in task["asset"] for task in asked) and any(
            "select" in task["asset"] for task in asked
        ):
            result = stage.apply(*asked) if result.ok else result
        if result.ok:
            again = stage.plan(*asked)
            assert [target.error or target.changes for target in again.targets] == []


@settings(
    max_examples=examples(30),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(world=worlds, at=st.integers(0, 2), dialect=st.sampled_from(DIALECTS))
def test_a_marker_for_everything_is_one_write_for_each_clip(
    sim: Simulator, world: list[Entries], at: int, dialect: dict[str, str]
) -> None:
    made = build(sim, world, dialect)
    everything = {
        "asset": {
            "select": {"recursive": True, "where": 'asset.title != "Another"'},
            "markers": [{"at": at, "track": "General"}],
        }
    }
    with tempfile.TemporaryDirectory() as folder:
        plan = Stage(sim, Path(folder)).plan(everything)
    duplicated = any(
        titles_of(one) & titles_of(other) for one in made for other in made if one is not other
    )
    assert bool(plan.errors) <= duplicated
    if not duplicated:
        assert plan.requests == len(made)
