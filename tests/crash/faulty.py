"""What the fault matrix is made of: the first state, each write request with its end state, faults, dialects."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msauto.plugins.simulator.embedded import (
    Item,
    ServerState,
    SimClip,
    SimMarker,
    SimSegment,
    Simulator,
    empty_state,
)
from msauto.retry_policy import RetryPolicy
from tests.stories import Others
from tests.tables import CASES, load

PATIENCE = RetryPolicy(
    tries=3,
    backoff=(0.01,),
    max_retry_after=2.0,
    read_pauses=(0.02, 0.05, 0.1),
    restore_pauses=(0.02,),
)
LATE = 0.1
KINDS = (
    "status:400", "status:404", "status:409", "status:429", "status:500", "status:502", "status:503", "status:504",
    "delay:0.05", "cut_before", "cut_after", "garbage", "truncate", "swallow", f"late:{LATE}", "html", "slow_body:0.05",
)  # fmt: skip


def until_late_work_is_done(sim: Simulator) -> None:
    """Wait for the work of `late` faults; where the server refuses it, there is no end to see, and 2 s are enough."""
    end = time.monotonic() + 2
    while time.monotonic() < end and any(
        each.fault.startswith("late") and not each.done for each in sim.log
    ):
        time.sleep(0.005)


def initial_state() -> ServerState:
    """Return what every case begins with."""
    made = empty_state()
    news = made.databases["NEWS"]
    news.make_folder("Playout")
    film = news.add_clip("Film", "Raw", frames=100)
    film.home.fields.update(comment="raw", user_0="x")
    film.xmp["dc:title"] = ["x"]
    film.segments[:] = [
        SimSegment(1, 0, 5, ["One"]),
        SimSegment(2, 10, 6, ["Two"], keywords="kept"),
    ]
    film.markers[:] = [
        SimMarker(1, 3, _marker("General", "m")),
        SimMarker(2, 5, _marker("Cue Point", "c")),
    ]
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
    channel.items[:] = [
        _item("n-0", "Old news"),
        _item("n-1", "First"),
        _item("n-5", "Storm"),
        *_doubles(),
    ]
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
    """One kind of write request, a row of ``tests/cases/crash/writes.yml``."""

    about: str
    task: dict[str, Any]
    strikes: str
    shows: Mapping[str, Any]
    ours: Mapping[str, str] = field(default_factory=dict)
    hidden_by: str = ""  # the dialect under which reading cannot show it
    doubled_by: Sequence[
        str
    ] = ()  # faults after which a thing is there twice; the next run refuses it

    def is_there(self, sim: Simulator) -> bool:
        try:
            for name, expected in self.shows.items():
                Others(sim).check(name, expected)
        except (AssertionError, KeyError):
            return False
        return True


ROWS = load(CASES / "crash" / "writes.yml")
WRITES = {row["about"]: Write(**row) for row in ROWS}


def _places(clip: SimClip) -> list[tuple[int, str, str]]:
    return sorted(
        (m.pos, m.fields.get("track", ""), m.fields.get("title", "")) for m in clip.markers
    )


@dataclass(frozen=True)
class Dialect:
    """How the server answers, and its dialect in the inventory."""

    switches: tuple[str, ...] = ()
    ours: Mapping[str, str] = field(default_factory=dict)


DIALECTS: dict[str, Dialect] = {
    "default": Dialect(),
    "talkative": Dialect(
        ("not_found=200_text", "errors=200_xml", "command_body=garbage", "xml_wrapper=stray_end")
    ),
    "hidden": Dialect(
        (
            "link_fields=hidden",
            "segment_keywords=hidden",
            "xmp_shape=unreadable",
            "not_found=500_text",
        )
    ),
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
    guids = [
        item.guid
        for item in items
        if item not in doubles or not all(each in items for each in doubles)
    ]
    return found + ([f"ticker: {guids}"] if len(set(guids)) < len(guids) else [])
