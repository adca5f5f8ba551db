"""A world in the making: a server, a playbook, and what other users do; kinds of trouble are added to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction
from functools import cached_property
from random import Random
from typing import Any

from msauto.plugins.simulator.embedded import (
    ServerState,
    SimClip,
    SimDialect,
    SimMarker,
    SimSegment,
    empty_state,
)
from msauto.plugins.simulator.embedded.rss import put_item

TITLES = ("EP 1", "EP 2", "Film", "film", "Caf\u00e9", "Cafe\u0301", "Spare", "Keep 1")
FOLDERS = ("Raw", "Raw/2026", "Films", "Keep", "Playout")
PROTECTED = "Keep*"
TRACKS = ("General", "Cue Point")
TEXTS = ("", "one", "two", "\u00e9t\u00e9")
FIELDS = ("comment", "user_1", "user_2", "type")
GUIDS = ("n-1", "N-1", "n-1.txt", "01", "1", "x")
_COUNTED = (24, 25, 30, 50, 60)
_DROPPED = (24, 30, 60)
RATES = (*map(Fraction, _COUNTED), *(Fraction(count * 1000, 1001) for count in _DROPPED))
Change = Callable[[ServerState], object]
Task = dict[str, Any]


class Spoken(int):
    """A position that a task writes as a time code; the number is the frame at the true rate of the clip."""

    text: str

    @classmethod
    def at(cls, seconds: int, text: str, rate: Fraction) -> Spoken:
        """Return the frame at some seconds of the clock, or of the time code."""
        counted = rate if "." in text else round(rate)
        position = cls(round(seconds * counted))
        position.text = text
        return position

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Hook:
    """What another user does right before or after a request in which ``match`` is found.

    ``skip``: how many such requests pass first. ``pause``: two minutes pass with it.
    """

    when: str
    match: str
    skip: int
    name: str
    change: Change = field(repr=False)
    pause: bool = False


@dataclass
class World:
    """A world in the making. ``undo``: after the run and this change it is taken back; ``by_day``: applied again.

    ``fields_are_ours``: no other user writes fields, so they are judged where no answer shows them.
    ``again``: the tasks of that night, where they differ. ``earlier``: the tasks of a run before, after which the clock
    jumps by ``clock``.
    """

    random: Random
    state: ServerState = field(default_factory=empty_state)
    tasks: list[Task] = field(default_factory=list)
    server: dict[str, str] = field(default_factory=dict)
    ours: dict[str, str] = field(default_factory=dict)
    allowed: dict[str, int] = field(default_factory=dict)
    hooks: list[Hook] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    tags: tuple[str, ...] = ()
    forks: int = 4
    undo: Change | None = None
    by_day: Change | None = None
    fields_are_ours: bool = False
    again: list[Task] | None = None
    earlier: list[Task] = field(default_factory=list)
    clock: timedelta = timedelta()

    @cached_property
    def alpha(self) -> SimClip:
        """The clip that kinds of trouble are about; no other task names it."""
        return self.state.add_clip("Alpha", "Raw", frames=250, create_time="2026-11-12T10:00:00")

    def ask(self, **desired: Any) -> Task:
        """Add a task about that clip."""
        self.alpha.home  # noqa: B018 - now it is there
        self.tasks.append({"asset": {"title": "Alpha", **desired}})
        return self.tasks[-1]

    def ticker(self, *items: Task, **more: Any) -> None:
        """Add a task about the channel."""
        self.tasks.append({"rss": {"channel": "ticker", "items": list(items), **more}})

    def put(self, file: str, text: str) -> None:
        """Put an item into the channel, as any user does."""
        put_item(self.state.channels["ticker"], file, text.encode(), SimDialect())

    def then(
        self,
        match: str,
        change: Callable[[], object],
        when: str = "after",
        *,
        skip: int = 0,
        pause: bool = False,
    ) -> None:
        """Let another user act, once."""
        name = getattr(change, "__qualname__", "").rpartition(".")[2]
        self.hooks.append(Hook(when, match, skip, name, lambda _: change(), pause))

    def busy(self, match: str, *, done: bool = False) -> None:
        """Let a write be rejected by a busy server, which has done it or not."""
        self.faults.append(f"{'done_' * done}status:{self.random.choice((503, 429))}@{match}*1")


def make_world(random: Random) -> World:
    """Make a world without trouble."""
    state = _state(random)
    server, ours = _dialect(random)
    world = World(random, state, _tasks(random, state), server, ours)
    if random.random() < 0.6:
        world.allowed["allow_delete"] = random.choice((1, 1, 2))
    if random.random() < 0.5:
        world.allowed["allow_remove"] = 60
    if random.random() < 0.7:
        world.allowed["keep_going"] = True
    return world


# Worlds ---------------------------------------------------------------------------------------------------------


def _state(random: Random) -> ServerState:
    state = empty_state()
    for folder in FOLDERS:
        state.databases["NEWS"].make_folder(folder)
    titles = random.sample(TITLES, random.randint(2, 5))
    if random.random() < 0.12:
        titles.append(titles[0])  # twins
    for title in titles:
        _clip(random, state, title)
    channel = state.add_channel("ticker")
    for guid in random.sample(GUIDS, random.randint(0, 3)):
        name = random.choice((f"{guid}.txt", f"{guid}.xml", guid))
        if all(item.file != name for item in channel.items):
            document = f"<item><guid>{guid}</guid><title>old</title><description>old body</description></item>"
            put_item(
                channel, name, document.encode() if name.endswith(".xml") else b"old", SimDialect()
            )
    return state


def _clip(random: Random, state: ServerState, title: str) -> SimClip:
    made = f"2026-11-{random.choice((13, 14))}T10:00:00"
    clip = state.add_clip(
        title,
        random.choice((*FOLDERS[:3], *FOLDERS[:3], *FOLDERS[:4])),
        frames=random.choice((100, 250, 250)),
        create_time=made,
    )
    if random.random() < 0.3:
        clip.omitted = ("orig_name",)
    clip.home.fields = {
        name: random.choice(TEXTS) for name in random.sample(FIELDS, random.randint(0, 3))
    }
    for uid in range(1, random.choice((1, 1, 2, 4, 5))):
        clip.markers.append(_marker(random, uid + random.choice((0, 0, 7))))
    clip.markers = list({marker.uid: marker for marker in clip.markers}.values())
    clip.markers = list(
        {(marker.pos, marker.fields["track"]): marker for marker in clip.markers}.values()
    )
    clip.segments = [_segment(random) for _ in range(random.choice((0, 0, 1, 2, 3)))]
    if random.random() < 0.3:
        clip.xmp = {"dc:subject": ["old"]}
    for _ in range(random.choice((0, 0, 0, 1, 1, 2))):
        link = random.choice((f"{title} link", f"{title} link", f"{title} on air", title))
        state.databases["NEWS"].add_entry(
            clip, random.choice(("Films", "Playout", "Playout", "Playout", "Keep")), link
        )
    return clip


def _marker(random: Random, uid: int) -> SimMarker:
    fields = {
        "user": "",
        "title": random.choice(TEXTS),
        "comment": random.choice(TEXTS),
        "keywords": "",
        "rating": "0",
    }
    return SimMarker(
        uid, random.choice((0, 10, 10, 50)), {**fields, "track": random.choice(TRACKS)}
    )


def _segment(random: Random) -> SimSegment:
    titles = [random.choice(TEXTS[1:]) for _ in range(random.choice((0, 1, 1, 2)))]
    track = random.choice(("", "", "", "Program"))
    return SimSegment(
        random.choice((1, 1, 2, 3)), random.choice((0, 10, 50)), 10, titles, track=track
    )


def _dialect(random: Random) -> tuple[dict[str, str], dict[str, str]]:
    choices = SimDialect.choices()
    names = (
        *("not_found", "command_body", "title_case", "title_twins", "link_titles", "link_folder"),
        *("orig_name", "link_fields", "segment_delete", "marker_update", "link_delete"),
        *("rss_update", "rss_delete", "rss_guid", "segment_update"),
    )
    choices["link_titles"] = ("found", "nowhere", "clip")
    some = {name: random.choice(choices[name]) for name in names if random.random() < 0.25}
    server = SimDialect().with_values(some)
    ours: dict[str, str] = {}
    if server.link_delete == "by_title" and random.random() < 0.3:
        ours["link_delete"] = "by_title"
    if server.rss_update != "replace":
        ours["rss_update"] = "delete_put"
    if server.rss_guid != "item" and random.random() < 0.5:
        ours["rss_guid"] = server.rss_guid
    if server.segment_update == "overwrite" and random.random() < 0.7:
        ours["segment_update"] = "overwrite"
    return some, ours


# Playbooks ------------------------------------------------------------------------------------------------------


def _tasks(random: Random, state: ServerState) -> list[Task]:
    """Return some tasks; none but the one that renames a clip uses its titles."""
    tasks = [_task(random, state) for _ in range(random.choice((1, 1, 2, 3)))]
    renames = next((task for task in tasks if "was" in task.get("asset", ())), None)
    if renames is None:
        return tasks
    used = {renames["asset"]["title"], *renames["asset"]["was"]}
    others = []
    for task in tasks:
        asset = task.get("asset", {"select": {}})
        is_of_another = not {"was", "select"} & asset.keys() and asset["title"] not in used
        if is_of_another:
            others.append(task)
    return [renames, *others]


def _task(random: Random, state: ServerState) -> Task:
    if random.random() < 0.15:
        return {"rss": _rss(random)}
    titles = [clip.title for clip in state.databases["NEWS"].clips()]
    entries = [entry.title for clip in state.databases["NEWS"].clips() for entry in clip.entries]
    title = random.choice((*titles * 4, *entries, "Nowhere"))
    asset: Task = {"title": title}
    if random.random() < 0.1:
        asset = {"select": {"folder": random.choice(FOLDERS), "expect": {"min": 0, "max": 9}}}
    elif random.random() < 0.15:
        asset = {"title": random.choice(("Fresh name", "Fresh name", *TITLES)), "was": [title]}
    if random.random() < 0.1 and title in titles:
        asset["folder"] = "/".join(state.clip(title).home.folder)
    if random.random() < 0.3 and "was" not in asset:
        asset["state"] = "absent"
        if random.random() < 0.6 and title in titles:
            asset["with_links"] = True
        return {"asset": asset}
    _contents(random, asset)
    if random.random() < 0.15 or title == "Nowhere":
        asset["missing"] = "skip"
    return {"asset": asset}


def _contents(random: Random, asset: Task) -> None:
    """Declare some things of an asset, at least one; ``exactly`` for some of the lists."""
    lists = {"markers": (0.5, _markers), "segments": (0.4, _segments), "links": (0.2, _links)}
    for key, (chance, make) in lists.items():
        if random.random() < chance:
            asset[key] = make(random)
            if random.random() < 0.45:
                asset.setdefault("exactly", []).append(key)
    if "segments" not in asset and random.random() < 0.1:
        asset["segmentation"] = {"duration": 50, "title": "Part"}
        if random.random() < 0.5:
            asset.setdefault("exactly", []).append("segments")
    if random.random() < 0.15:
        asset["xmp"] = {"dc:subject": ["news"]}
    if random.random() < 0.15:
        asset["lossy"] = True
    if random.random() < 0.5 or not asset.keys() & {*lists, "segmentation", "xmp", "was"}:
        asset["fields"] = {
            name: random.choice(TEXTS) for name in random.sample(FIELDS, random.randint(1, 2))
        }


def _segments(random: Random) -> list[Task]:
    return [
        _wanted_segment(random, number) for number in random.sample((1, 2, 3), random.randint(0, 2))
    ]


def _links(random: Random) -> list[Task]:
    return [
        {
            "folder": random.choice(FOLDERS[2:]),
            "title": random.choice(("On air", "EP 1 link", "EP 2 link")),
        }
    ]


def _markers(random: Random) -> list[Task]:
    wanted: dict[object, Task] = {}
    for _ in range(random.choice((0, 1, 1, 2))):
        if random.random() < 0.1:
            uid = random.randint(1, 2)
            wanted[uid] = (
                {"uid": uid, "state": "absent"}
                if random.random() < 0.5
                else {"uid": uid, "title": "named"}
            )
            continue
        at, track = random.choice((0, 10, 50, 60)), random.choice(TRACKS)
        wanted[at, track] = {"at": at, "track": track, "title": random.choice(TEXTS[1:])}
        if random.random() < 0.3:
            wanted[at, track]["comment"] = "ours"
    return list(wanted.values())


def _wanted_segment(random: Random, number: int) -> Task:
    if random.random() < 0.25:
        return {"number": number, "state": "absent"}
    return {
        "number": number,
        "start": random.choice((0, 10, 50)),
        "duration": 10,
        "title": random.choice(TEXTS[1:]),
    }


def _rss(random: Random) -> Task:
    items: dict[str, Task] = {}
    for guid in random.sample(GUIDS, random.randint(1, 2)):
        file = random.choice((f"{guid}.txt", f"{guid}.xml", f"{guid}.xml", "fresh.xml"))
        if random.random() < 0.25:
            items[guid] = {"guid": guid, "state": "absent"}
        elif file in items:
            continue
        elif file.endswith(".xml"):
            items[file] = {
                "guid": guid,
                "file": file,
                "item": {"title": "new", "description": "new"},
            }
        else:
            items[file] = {"guid": guid, "file": file, "text": "new"}
    channel: Task = {"channel": "ticker", "items": list(items.values())}
    return channel | ({"exactly": True} if random.random() < 0.3 else {})
