"""Random worlds, playbooks, flags, changes by others, and faults: one value for each seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from msauto.simulator import ServerState, SimClip, SimDialect, SimMarker, SimSegment, empty_state
from msauto.simulator.faults import parse_change
from msauto.simulator.rss import put_item

TITLES = ("EP 1", "EP 2", "Film", "film", "Caf\u00e9", "Cafe\u0301", "Spare", "Keep 1")
FOLDERS = ("Raw", "Raw/2026", "Films", "Keep", "Playout")
PROTECTED = "Keep*"
TRACKS = ("General", "Cue Point")
TEXTS = ("", "one", "two", "\u00e9t\u00e9")
FIELDS = ("comment", "user_1", "user_2", "type")
GUIDS = ("n-1", "N-1", "n-1.txt", "01", "1", "x")
Change = Callable[[ServerState], object]
Task = dict[str, Any]


@dataclass(frozen=True)
class Scenario:
    """One run: ``hook`` is (before or after, which requests, how many pass first, the name of the change).

    ``pause``: two minutes pass at the change. ``undo``: after the run and another change it is taken back.
    """

    seed: int
    state: ServerState
    tasks: tuple[Task, ...]
    flags: tuple[str, ...] = ()
    server: SimDialect = field(default_factory=SimDialect)
    ours: dict[str, str] = field(default_factory=dict)
    hook: tuple[str, str, int, str] | None = None
    change: Change | None = None
    faults: tuple[str, ...] = ()
    pause: bool = False
    undo: Change | None = None

    @property
    def allowed(self) -> dict[str, int]:
        """The numbers after ``--allow-delete`` and ``--allow-remove``."""
        return {flag: int(number) for flag, number in zip(self.flags[::2], self.flags[1::2], strict=True)}

    def __str__(self) -> str:
        return f"seed {self.seed}: hook {self.hook}, faults {self.faults}, flags {self.flags}, {self.tasks}"


def scenario(seed: int) -> Scenario:
    random = Random(seed)
    state = _state(random)
    server, ours = _dialect(random)
    tasks = _tasks(random, state)
    flags: tuple[str, ...] = ()
    if random.random() < 0.6:
        flags += ("--allow-delete", str(random.choice((1, 1, 2))))
    if random.random() < 0.5:
        flags += ("--allow-remove", "60")
    hook, change = _hook(random, tasks) if random.random() < 0.55 else (None, None)
    faults = _faults(random) if random.random() < 0.4 else ()
    undo = random.choice(list(_changes(random, tasks).values())) if random.random() < 0.2 else None
    return Scenario(
        seed, state, tasks, flags, server, ours, hook, change, faults, pause=random.random() < 0.3, undo=undo
    )


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
        name = random.choice((f"{guid}.txt", f"{guid}.xml", "x.xml", guid))
        if all(item.file != name for item in channel.items):
            document = f"<item><guid>{guid}</guid><title>old</title><description>old</description></item>"
            put_item(channel, name, document.encode() if name.endswith(".xml") else b"old", SimDialect())
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
    clip.home.fields = {name: random.choice(TEXTS) for name in random.sample(FIELDS, random.randint(0, 3))}
    for uid in range(1, random.choice((1, 1, 2, 4, 5))):
        clip.markers.append(_marker(random, uid + random.choice((0, 0, 7))))
    clip.markers = list({marker.uid: marker for marker in clip.markers}.values())
    clip.segments = [_segment(random) for _ in range(random.choice((0, 0, 1, 2, 3)))]
    if random.random() < 0.3:
        clip.xmp = {"dc:subject": ["old"]}
    for _ in range(random.choice((0, 0, 0, 1, 1, 2))):
        link = random.choice((f"{title} link", f"{title} link", f"{title} on air", title))
        state.databases["NEWS"].add_entry(clip, random.choice(("Films", "Playout", "Playout", "Playout", "Keep")), link)
    return clip


def _marker(random: Random, uid: int) -> SimMarker:
    fields = {"user": "", "title": random.choice(TEXTS), "comment": random.choice(TEXTS), "keywords": "", "rating": "0"}
    return SimMarker(uid, random.choice((0, 10, 10, 50)), {**fields, "track": random.choice(TRACKS)})


def _segment(random: Random) -> SimSegment:
    titles = [random.choice(TEXTS[1:]) for _ in range(random.choice((0, 1, 1, 2)))]
    track = random.choice(("", "", "", "Program"))
    return SimSegment(random.choice((1, 1, 2, 3)), random.choice((0, 10, 50)), 10, titles, track=track)


def _dialect(random: Random) -> tuple[SimDialect, dict[str, str]]:
    choices = SimDialect.choices()
    names = (
        *("not_found", "command_body", "title_case", "title_twins", "link_titles", "link_folder"),
        *("orig_name", "link_fields", "segment_delete", "marker_update", "link_delete"),
        *("rss_update", "rss_delete", "rss_guid", "segment_update"),
    )
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
    return server, ours


# Playbooks ------------------------------------------------------------------------------------------------------


def _tasks(random: Random, state: ServerState) -> tuple[Task, ...]:
    """Return some tasks; none but the one that renames a clip uses its titles."""
    tasks = [_task(random, state) for _ in range(random.choice((1, 1, 2, 3)))]
    renames = next((task for task in tasks if "was" in task.get("asset", ())), None)
    if renames is None:
        return tuple(tasks)
    used = {renames["asset"]["title"], *renames["asset"]["was"]}
    assets = [task for task in tasks if "asset" in task and not {"was", "select"} & task["asset"].keys()]
    return (renames, *(task for task in assets if task["asset"]["title"] not in used))


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
        asset["fields"] = {name: random.choice(TEXTS) for name in random.sample(FIELDS, random.randint(1, 2))}


def _segments(random: Random) -> list[Task]:
    return [_wanted_segment(random, number) for number in random.sample((1, 2, 3), random.randint(0, 2))]


def _links(random: Random) -> list[Task]:
    return [{"folder": random.choice(FOLDERS[2:]), "title": random.choice(("On air", "EP 1 link", "EP 2 link"))}]


def _markers(random: Random) -> list[Task]:
    wanted: dict[object, Task] = {}
    for _ in range(random.choice((0, 1, 1, 2))):
        if random.random() < 0.1:
            uid = random.randint(1, 2)
            wanted[uid] = {"uid": uid, "state": "absent"} if random.random() < 0.5 else {"uid": uid, "title": "named"}
            continue
        at, track = random.choice((0, 10, 50, 60)), random.choice(TRACKS)
        wanted[at, track] = {"at": at, "track": track, "title": random.choice(TEXTS[1:])}
        if random.random() < 0.3:
            wanted[at, track]["comment"] = "ours"
    return list(wanted.values())


def _wanted_segment(random: Random, number: int) -> Task:
    if random.random() < 0.25:
        return {"number": number, "state": "absent"}
    return {"number": number, "start": random.choice((0, 10, 50)), "duration": 10, "title": random.choice(TEXTS[1:])}


def _rss(random: Random) -> Task:
    items: dict[str, Task] = {}
    for guid in random.sample(GUIDS, random.randint(1, 2)):
        file = random.choice((f"{guid}.txt", f"{guid}.xml", "x.txt", "n-1.txt"))
        if random.random() < 0.25:
            items[guid] = {"guid": guid, "state": "absent"}
        elif file in items:
            continue
        elif file.endswith(".xml"):
            items[file] = {"guid": guid, "file": file, "item": {"title": "new", "description": "new"}}
        else:
            items[file] = {"guid": guid, "file": file, "text": "new"}
    channel: Task = {"channel": "ticker", "items": list(items.values())}
    return channel | ({"exactly": True} if random.random() < 0.3 else {})


# Changes by others, and faults ----------------------------------------------------------------------------------


def _hook(random: Random, tasks: tuple[Task, ...]) -> tuple[tuple[str, str, int, str], Change]:
    name, change = random.choice(list(_changes(random, tasks).items()))
    when = random.choice(("before", "after"))
    match = random.choice(
        ("GET /storage/NEWS", "GET /storage/NEWS@", "^(POST|PUT|DELETE)", "^(POST|PUT|DELETE)", "^DELETE")
    )
    return (when, match, random.choice((0, 0, 0, 1, 1, 2, 3)), name), change


def _changes(random: Random, tasks: tuple[Task, ...]) -> dict[str, Change]:
    named = [task["asset"].get("title") or "EP 1" for task in tasks if "asset" in task] or ["EP 1"]
    title, other = random.choice(named), random.choice(TITLES)
    changes: dict[str, Change] = {
        text: _change_of(text)
        for text in (
            *(f"rename:{title}:{name}" for name in ("Gone", other)),
            *(f"edit:{title}:{name}:theirs" for name in FIELDS[1:]),
            *(f"swap:{title}:{other}", f"swap:{title}:{other}"),
            *(f"delete:{title}", f"rerecord:{title}", f"edit:{title}:comment:theirs", f"edit:{title}:user_1:theirs"),
        )
    }
    changes |= {
        f"twin:{title}": lambda state: state.add_clip(title, "Films", frames=250),
        f"move:{title}": lambda state: _on(state, title, lambda clip: _move(state, clip)),
        f"link:{title}": lambda state: _on(state, title, lambda clip: _link(state, clip)),
        f"mark:{title}": lambda state: _on(state, title, _mark),
        f"unmark:{title}": lambda state: _on(state, title, lambda clip: clip.markers.clear()),
        f"reuse:{title}": lambda state: _on(state, title, _reuse),
        f"cut:{title}": lambda state: _on(state, title, _cut),
        "item": lambda state: put_item(state.channels["ticker"], "theirs.txt", b"theirs", SimDialect()),
    }
    return changes


def _change_of(text: str) -> Change:
    """A change of the simulator's, or one of ``edit:TITLE:FIELD:VALUE`` and ``delete:TITLE``."""
    name, title, *texts = text.split(":")
    if name not in {"edit", "delete"}:
        return parse_change(text)

    def change(state: ServerState) -> None:
        database = state.databases["NEWS"]
        entry = database.find(title)
        if entry is not None and name == "delete":
            database.remove_clip(entry.clip)
        elif entry is not None:
            entry.fields[texts[0]] = texts[1]

    return change


def _on(state: ServerState, title: str, change: Callable[[SimClip], object]) -> None:
    entry = state.databases["NEWS"].find(title)
    if entry is not None:
        change(entry.clip)


def _move(state: ServerState, clip: SimClip) -> None:
    state.databases["NEWS"].change_entry(clip.home, folder=("Keep",))


def _link(state: ServerState, clip: SimClip) -> None:
    state.databases["NEWS"].add_entry(clip, ("Keep",), f"{clip.title} kept")


def _mark(clip: SimClip) -> None:
    clip.markers.append(SimMarker(clip.new_uid(), 70, {"title": "theirs", "track": "General"}))


def _reuse(clip: SimClip) -> None:
    """Every marker is another one, of the same uid."""
    clip.markers = [SimMarker(each.uid, 70 + each.uid, {"title": "theirs"}) for each in clip.markers]


def _cut(clip: SimClip) -> None:
    clip.segments.append(SimSegment(3, 80, 10, ["theirs"]))


def _faults(random: Random) -> tuple[str, ...]:
    write = random.choice(("^POST", "^DELETE", "^(POST|PUT|DELETE)", "CREATEMARKER", "SETFIELD", "^PUT"))
    skip = f"*1+{random.choice((0, 0, 1, 2))}"
    code = random.choice((500, 503, 503, 429))
    kind = random.choice(
        (
            *(f"status:{code}", f"done_status:{code}", f"done_status:{code}", f"lag:0.05:{code}", f"lag:0.15:{code}"),
            *("cut_before", "cut_after", "late:0.03", "late:0.8", "swallow", "garbage", "html", "status:403"),
        )
    )
    if random.random() < 0.15:
        return (f"{kind}@GET /storage/NEWS@{skip}",) if kind != "swallow" else ()
    if random.random() < 0.3:
        return (f"{kind}@{write}{skip}", "lag:0.1@^(POST|PUT|DELETE)")
    return (f"{kind}@{write}{skip}",)
