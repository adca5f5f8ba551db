"""A story of all that is compared, on the simulator: the first state, the tasks, and the expected end state."""

from __future__ import annotations

from typing import Any

from msauto.plugins.simulator.embedded import (
    SimClip,
    SimDialect,
    SimMarker,
    SimSegment,
    Simulator,
    empty_state,
)
from msauto.plugins.simulator.embedded.rss import put_item

FILM = "Back\\Slash / Film: 50% @ night? «Новости», 1+1"
LINK = "Другое: имя/2"
RENAMED = "New name: 2"
IN_POINT = 100

FILM_TASK: dict[str, Any] = {
    "title": FILM,
    "folder": "Raw/2026",
    "fields": {"comment": "Ready, 50% & more\nline two", "user_0": "Kanal+5", "layer": 3},
    "xmp": {"dc:title": ["Новости & more"], "dc:subject": ["news", "вечер"]},
    "segments": [
        {"number": 1, "start": 200, "duration": 250, "title": "Part 1", "keywords": "a b"},
        {"number": 2, "start": 450, "duration": 100, "title": "Two"},
        {"number": 3, "start": 700, "duration": 50},
    ],
    "markers": [
        {"uid": 3, "at": 160},
        {"at": 500, "track": "Cue Point", "title": "Ad break", "keywords": "z", "rating": 3},
    ],
    "links": [{"folder": "Playout/AC\\/DC"}, {"folder": "Playout/Tonight", "title": LINK}],
    "exactly": ["segments", "markers"],
}
LOOSE_TASK: dict[str, Any] = {
    "title": "Loose",
    "segments": [
        {"start": 0, "duration": 100, "title": "A"},
        {"start": 100, "duration": 50, "title": "B"},
        {"start": 300, "duration": 50, "title": "D"},
    ],
    "markers": [
        {"at": 10, "track": "General", "title": "Kept"},
        {"at": 20, "track": "General", "title": "New"},
    ],
}
SELECT: dict[str, Any] = {
    "folder": "Raw",
    "recursive": True,
    "mimetype": ["Audio", "StillImage"],
    "created_after": "2026-11-10",
    "expect": {"min": 2, "max": 2},
}
ITEM = {"title": "T & <b>", "description": "Д"}
TICKER: dict[str, Any] = {
    "channel": "ticker",
    "items": [
        {"guid": "n-1", "file": "n-1.txt", "text": "Headline"},
        {"guid": "n-2", "file": "second.xml", "item": ITEM},
        {"guid": "n-0", "state": "absent"},
    ],
    "exactly": True,
}
STORY: tuple[dict[str, Any], ...] = (
    {"name": "Everything", "asset": FILM_TASK},
    {"name": "Segments without numbers", "asset": LOOSE_TASK},
    {
        "name": "Equal parts",
        "asset": {
            "title": "Grid",
            "segmentation": {"duration": 300, "title": "Part"},
            "exactly": ["segments"],
        },
    },
    {
        "name": "Another name",
        "asset": {"title": RENAMED, "was": ["Old name"], "fields": {"comment": "renamed"}},
    },
    {"name": "Gone", "asset": {"title": "Gone", "state": "absent"}},
    {"name": "Never there", "asset": {"title": "Never there", "state": "absent"}},
    {"name": "Chosen", "asset": {"select": SELECT, "fields": {"comment": "checked"}}},
    {"name": "The ticker", "rss": TICKER},
)


def put_story(sim: Simulator, server: SimDialect) -> None:
    """Give the simulator the state of the story and the dialect of one server."""
    sim.state, sim.dialect = empty_state(), server
    news = sim.state.databases["NEWS"]
    for folder in ("Playout/AC\\/DC", "Playout/Tonight", "Raw/2026/11"):
        news.make_folder(folder)
    _put_film(news.add_clip(FILM, "Raw/2026", frames=4000))
    loose = news.add_clip("Loose", "Films", frames=1000)
    loose.segments = [
        SimSegment(4, 0, 100, ["A"]),
        SimSegment(2, 100, 40, ["B"]),
        SimSegment(8, 900, 100, ["Z"]),
    ]
    loose.markers = [SimMarker(1, 10, {"track": "General", "title": "Kept"})]
    news.add_clip("Grid", "Films", frames=1000).segments = [SimSegment(7, 0, 1000, ["All"])]
    for title in ("Old name", "Gone"):
        news.add_clip(title, "Films")
    _put_chosen(sim)
    ticker = sim.state.add_channel("ticker")
    # Through the server's own door, in a body that it takes.
    body = b"<item><title>old</title></item>" if server.rss_body == "item" else b"old"
    for file in ("n-0.txt", "n-1.txt", "other.txt"):
        put_item(ticker, file, body, server)
    sim.clear_log()


def _put_film(film: SimClip) -> None:
    film.home.fields.update(comment="raw", user_7="kept", first_frame=str(IN_POINT))
    film.xmp = {"dc:title": ["Old"], "ext:kept": ["a", "b"]}
    film.segments = [
        SimSegment(1, 200, 100, ["Old"]),
        SimSegment(2, 400, 100, ["Two"]),
        SimSegment(9, 3000, 50),
    ]
    film.markers = [
        SimMarker(3, 150, {"track": "General", "title": "Kept", "comment": "kept too"}),
        SimMarker(5, 300, {"track": "Icon", "title": "Stale"}),
    ]


def _put_chosen(sim: Simulator) -> None:
    late, early = "2026-11-12T10:00:00", "2026-11-01T10:00:00"
    add = sim.state.add_clip
    add("Sound", "Raw", mime_type=1, create_time=late)
    add("Still", "Raw/2026/11", mime_type=4, create_time=late)
    add("Sound, early", "Raw/2026", mime_type=1, create_time=early)
    add("Film, late", "Raw/2026/11", mime_type=2, create_time=late)


# The end -------------------------------------------------------------------------------------------------------


def check_end(sim: Simulator) -> None:
    """Check that the end state has all that the story declares, and that nothing else changed."""
    _check_film(sim)
    _check_lists(sim)
    news = sim.state.databases["NEWS"]
    titles = sorted(entry.title for entry in news.root.walk() if entry.is_home)
    assert titles == sorted(
        [FILM, "Loose", "Grid", RENAMED, "Sound", "Still", "Sound, early", "Film, late"]
    )
    assert {
        clip.title for clip in news.clips() if clip.home.fields.get("comment") == "checked"
    } == {"Sound", "Still"}
    assert news.clip(RENAMED).home.fields == {"comment": "renamed"}
    check_ticker(sim)


def _check_film(sim: Simulator) -> None:
    film = sim.state.clip(FILM)
    told = {"comment": "Ready, 50% & more\nline two", "user_0": "Kanal+5", "layer": "3"}
    assert film.home.fields == {"user_7": "kept", "first_frame": str(IN_POINT)} | told
    assert film.xmp == {
        "dc:title": ["Новости & more"],
        "dc:subject": ["news", "вечер"],
        "ext:kept": ["a", "b"],
    }
    assert _segments(film) == [(1, 200, 250, "Part 1"), (2, 450, 100, "Two"), (3, 700, 50, "")]
    first = film.segment(1)
    assert first is not None
    assert first.keywords == "a b"
    moved = film.marker(3)
    assert moved is not None
    assert (moved.pos, moved.fields["title"], moved.fields["comment"]) == (160, "Kept", "kept too")
    (new,) = [marker for marker in film.markers if marker is not moved]
    sourced = (new.pos, *(new.fields[name] for name in ("track", "title", "keywords", "rating")))
    assert sourced == (500, "Cue Point", "Ad break", "z", "3")
    links = [(entry.folder, entry.title) for entry in film.entries[1:]]
    assert sorted(links) == sorted([(("Playout", "AC/DC"), FILM), (("Playout", "Tonight"), LINK)])


LOOSE = [(0, 100, "A"), (100, 50, "B"), (300, 50, "D"), (900, 100, "Z")]


def _check_lists(sim: Simulator) -> None:
    loose = sim.state.clip("Loose")
    numbers, *placed = zip(*_segments(loose), strict=True)
    assert sorted(zip(*placed, strict=True)) == LOOSE
    assert len(set(numbers)) == 4
    titles = {marker.pos: marker.fields["title"] for marker in loose.markers}
    assert titles == {10: "Kept", 20: "New"}
    grid = sim.state.clip("Grid")
    lengths = {start: duration for _, start, duration, _ in _segments(grid)}
    assert lengths == {0: 300, 300: 300, 600: 300, 900: 100}
    for segment in grid.segments:
        assert segment.titles[0].startswith("Part")


def check_ticker(sim: Simulator) -> None:
    """Both items exist with their content, and no other item does."""
    items = {item.file: item for item in sim.state.channels["ticker"].items}
    assert sorted(items) == ["n-1.txt", "second.xml"]
    assert len(sim.state.channels["ticker"].items) == 2, "a twin"
    assert items["n-1.txt"].title == "Headline"
    assert items["second.xml"].title == ITEM["title"]
    assert ITEM["description"] in items["second.xml"].description


def _segments(clip: SimClip) -> list[tuple[int, int, int, str]]:
    return sorted(
        (each.number, each.start, each.duration, "".join(each.titles[:1])) for each in clip.segments
    )
