"""What the fault matrix is made of: the first state, each write request with its end state, faults, dialects."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from msauto.applying.states import RetryPolicy
from msauto.simulator import Item, ServerState, SimClip, SimMarker, SimSegment, Simulator, empty_state

PATIENCE = RetryPolicy(
    tries=3, backoff=(0.01,), max_retry_after=2.0, read_pauses=(0.02, 0.05, 0.1), restore_pauses=(0.02,)
)
LATE = 0.1
KINDS = (
    "status:400", "status:404", "status:409", "status:429", "status:500", "status:502", "status:503", "status:504",
    "delay:0.05", "cut_before", "cut_after", "garbage", "truncate", "swallow", f"late:{LATE}", "html", "slow_body:0.05",
)  # fmt: skip
GRID = 20


def until_late_work_is_done(sim: Simulator) -> None:
    """Wait for the work of `late` faults; where the server refuses it, there is no end to see, and 2 s are enough."""
    end = time.monotonic() + 2
    while time.monotonic() < end and any(each.fault.startswith("late") and not each.done for each in sim.log):
        time.sleep(0.005)


def initial_state() -> ServerState:
    """Return what every case begins with."""
    made = empty_state()
    news = made.databases["NEWS"]
    news.make_folder("Playout")
    film = news.add_clip("Film", "Raw", frames=100)
    film.home.fields.update(comment="raw", user_0="x")
    film.xmp["dc:title"] = ["x"]
    film.segments[:] = [SimSegment(1, 0, 5, ["One"]), SimSegment(2, 10, 6, ["Two"], keywords="kept")]
    film.markers[:] = [SimMarker(1, 3, _marker("General", "m")), SimMarker(2, 5, _marker("Cue Point", "c"))]
    news.add_entry(film, "Playout", "Film tonight")
    news.add_clip("Bare", "Raw", frames=100)
    news.add_clip("Old", "Raw", frames=100)
    renamed = news.add_clip("Raw name", "Raw", frames=101)
    renamed.home.fields["comment"] = "raw"
    news.add_entry(renamed, "Playout", "Raw name")  # a link keeps the old title
    news.add_entry(news.add_clip("Linked", "Raw", frames=102), "Playout", "Linked tonight")
    tape = news.add_clip("Tape", "Raw", frames=100)
    tape.online, tape.archive = False, "$(archive_path)/tape.mxf"
    channel = made.add_channel("ticker")
    channel.items[:] = [_item("n-0", "Old news"), _item("n-1", "First"), _item("n-5", "Storm"), *_doubles()]
    return made


def _marker(track: str, title: str) -> dict[str, str]:
    return {"track": track, "title": title}


def _item(guid: str, text: str) -> Item:
    return Item(f"{guid}.txt", text.encode(), guid, text, text)


def _doubles() -> tuple[Item, Item]:
    """Two items of one guid, as a newsroom may leave them."""
    return _item("n-6", "Sunny"), Item("copy.xml", b"", "n-6", "Rain", "of another")


@dataclass(frozen=True)
class Write:
    """One kind of write: the task that leads to it, which request the fault strikes, and how its end looks."""

    task: Mapping[str, Any]
    strikes: str
    is_there: Callable[[ServerState], bool]
    ours: Mapping[str, str] = field(default_factory=dict)
    hidden_by: str = ""  # the dialect under which reading cannot show it
    doubled_by: frozenset[str] = frozenset()  # faults after which a thing is there twice; the next run refuses it


def _asset(title: str, **args: Any) -> dict[str, Any]:
    return {"name": "A task", "asset": {"title": title, **args}}


def _rss(*items: dict[str, Any]) -> dict[str, Any]:
    return {"name": "A task", "rss": {"channel": "ticker", "items": list(items)}}


def _film(test: Callable[[SimClip], bool]) -> Callable[[ServerState], bool]:
    return lambda made: test(made.clip("Film"))


def _segment(clip: SimClip, number: int) -> tuple[Any, ...] | None:
    found = clip.segment(number)
    return None if found is None else (found.start, found.duration, *found.titles, found.keywords)


def _titles(made: ServerState) -> dict[str, SimClip]:
    return {clip.title: clip for clip in made.databases["NEWS"].clips()}


def _items(made: ServerState) -> dict[str, str]:
    return {item.guid: item.title for item in made.channels["ticker"].items}


def _stands_once(guid: str, title: str) -> Callable[[ServerState], bool]:
    return lambda made: [item.title for item in made.channels["ticker"].items if item.guid == guid] == [title]


def _is_grid(made: ServerState) -> bool:
    starts = [(each.start, each.duration) for each in _titles(made)["Bare"].segments]
    return sorted(starts) == [(start, GRID) for start in range(0, 100, GRID)]


def _places(clip: SimClip) -> list[tuple[int, str, str]]:
    return sorted((m.pos, m.fields.get("track", ""), m.fields.get("title", "")) for m in clip.markers)


STORY = {"title": "Calm", "description": "Ferries run again"}
WRITES: dict[str, Write] = {
    "SETFIELD": Write(
        _asset("Film", fields={"comment": "Ready"}),
        "SETFIELD",
        _film(lambda clip: clip.home.fields.get("comment") == "Ready"),
        hidden_by="hidden",
    ),
    "rename": Write(
        _asset("New name", was=["Raw name"], fields={"comment": "Ready"}),
        "clip_name",
        lambda made: "New name" in _titles(made) and _titles(made)["New name"].home.fields["comment"] == "Ready",
        hidden_by="hidden",  # the comment, not the name
    ),
    "SETUSERFIELDS": Write(
        _asset("Film", xmp={"dc:title": ["a", "b"], "dc:subject": ["news"]}),
        "SETUSERFIELDS",
        _film(lambda clip: clip.xmp.get("dc:title") == ["a", "b"] and clip.xmp.get("dc:subject") == ["news"]),
        hidden_by="hidden",
    ),
    "CREATESEGMENT": Write(
        _asset("Film", segments=[{"number": 5, "start": 50, "duration": 5, "title": "Five"}]),
        "CREATESEGMENT",
        _film(lambda clip: _segment(clip, 5) == (50, 5, "Five", "")),
    ),
    "DELETESEGMENT": Write(
        _asset("Film", segments=[{"number": 1, "state": "absent"}]),
        "DELETESEGMENT",
        _film(lambda clip: _segment(clip, 1) is None),
    ),
    "recreate, its DELETESEGMENT": Write(
        _asset("Film", segments=[{"number": 2, "start": 11, "duration": 6}]),
        "DELETESEGMENT",
        _film(lambda clip: _segment(clip, 2) in ((11, 6, "Two", "kept"), (11, 6, "Two", ""))),
    ),
    "recreate, its CREATESEGMENT": Write(
        _asset("Film", segments=[{"number": 2, "start": 11, "duration": 6}]),
        "CREATESEGMENT",
        _film(lambda clip: _segment(clip, 2) in ((11, 6, "Two", "kept"), (11, 6, "Two", ""))),
    ),
    "CREATESEGMENTATION": Write(_asset("Bare", segmentation={"duration": GRID}), "CREATESEGMENTATION", _is_grid),
    "CREATEMARKER, new": Write(
        _asset("Film", markers=[{"at": 20, "track": "Cue Point", "title": "Ad break"}]),
        "CREATEMARKER",
        _film(lambda clip: (20, "Cue Point", "Ad break") in _places(clip)),
    ),
    "CREATEMARKER, moved": Write(
        _asset("Film", markers=[{"uid": 2, "at": 30}]),
        "CREATEMARKER",
        _film(lambda clip: _places(clip) == [(3, "General", "m"), (30, "Cue Point", "c")]),
    ),
    "DELETEMARKER": Write(
        _asset("Film", markers=[{"uid": 1, "state": "absent"}]),
        "DELETEMARKER",
        _film(lambda clip: clip.marker(1) is None),
    ),
    "COPYLINK": Write(
        _asset("Film", links=[{"folder": "Playout", "title": "Film again"}]),
        "COPYLINK",
        _film(lambda clip: "Film again" in [entry.title for entry in clip.entries]),
    ),
    "DELETE, a link": Write(
        _asset("Film", links=[{"folder": "Playout", "title": "Film tonight", "state": "absent"}]),
        "DELETE",
        _film(lambda clip: [entry.title for entry in clip.entries] == ["Film"]),
        ours={"link_delete": "by_title"},
    ),
    "RESTORE": Write(_asset("Tape", restore={"wait": "1s"}), "RESTORE", lambda made: bool(_titles(made)["Tape"].hires)),
    "DELETE": Write(_asset("Old", state="absent"), "DELETE", lambda made: "Old" not in _titles(made)),
    "DELETE, with links": Write(
        _asset("Linked", state="absent", with_links=True), "DELETE", lambda made: "Linked" not in _titles(made)
    ),
    "CREATEMARKER, by two titles": Write(
        {
            "name": "A task",
            "asset": {
                "select": {"recursive": True, "where": 'asset.title is match("Linked")'},
                "markers": [{"at": 20, "title": "Checked"}],
            },
        },
        "CREATEMARKER",
        lambda made: _places(_titles(made)["Linked"]) == [(20, "General", "Checked")],
    ),
    "RSS PUT, new": Write(
        _rss({"guid": "n-2", "text": "Second"}), "PUT", lambda made: _items(made).get("n-2") == "Second"
    ),
    "RSS PUT, changed": Write(
        _rss({"guid": "n-1", "text": "Changed"}), "PUT", lambda made: _items(made).get("n-1") == "Changed"
    ),
    "RSS in another file, its DELETE": Write(
        _rss({"guid": "n-5", "item": STORY}), "DELETE", _stands_once("n-5", "Calm"), doubled_by=frozenset({"swallow"})
    ),
    "RSS in another file, its PUT": Write(_rss({"guid": "n-5", "item": STORY}), "PUT", _stands_once("n-5", "Calm")),
    "RSS twins, their DELETE": Write(
        _rss({"guid": "n-6", "state": "absent"}), "DELETE", lambda made: "n-6" not in _items(made)
    ),
    "RSS DELETE": Write(_rss({"guid": "n-0", "state": "absent"}), "DELETE", lambda made: "n-0" not in _items(made)),
}


@dataclass(frozen=True)
class Dialect:
    """How the server answers, and its dialect in the inventory."""

    switches: tuple[str, ...] = ()
    ours: Mapping[str, str] = field(default_factory=dict)


DIALECTS: dict[str, Dialect] = {
    "default": Dialect(),
    "talkative": Dialect(("not_found=200_text", "errors=200_xml", "command_body=garbage", "xml_wrapper=stray_end")),
    "hidden": Dialect(("link_fields=hidden", "segment_keywords=hidden", "xmp_shape=unreadable", "not_found=500_text")),
    "other rules": Dialect(
        ("segment_update=overwrite", "marker_update=keep", "command_body=ok_xml", "rss_shape=atom"),
        {"segment_update": "overwrite", "marker_update": "changed"},
    ),
}


def twins(made: ServerState) -> list[str]:
    """Return what is there twice."""
    found = []
    for clip in made.databases["NEWS"].clips():
        lists: list[list[Any]] = [
            [each.number for each in clip.segments],
            _places(clip),
            [(entry.folder, entry.title) for entry in clip.entries],
        ]
        found += [f"{clip.title}: {each}" for each in lists if len(set(each)) < len(each)]
    doubles = list(_doubles())
    items = made.channels["ticker"].items
    guids = [item.guid for item in items if item not in doubles or not all(each in items for each in doubles)]
    return found + ([f"ticker: {guids}"] if len(set(guids)) < len(guids) else [])
