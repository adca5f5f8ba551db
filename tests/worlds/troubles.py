"""Kinds of trouble: what other users and servers do, and playbooks that ask for it. One table lists them.

Most of them happen to one clip of their own, ``Alpha``, or to the channel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

from msauto.plugins.simulator.embedded import (
    Item,
    ServerState,
    SimClip,
    SimDialect,
    SimMarker,
    SimSegment,
)
from msauto.plugins.simulator.embedded.faults import parse_change
from msauto.plugins.simulator.embedded.rss import put_item
from tests.worlds.world import FIELDS, RATES, TITLES, Change, Spoken, Task, World

Trouble = Callable[[World], None]
KINDS: dict[str, Trouble] = {}
"""Each kind by its name: a test turns on one, or several at once."""
OPEN = frozenset[str]()
"""The kinds of which a few worlds in a thousand are still wrong: they are not among the many."""
ANYWHERE = frozenset({"others", "faults", "others_and_faults", "edits_between_nights", "undone"})
"""The kinds that need tasks about all clips."""
ALONE = frozenset(
    {
        *("work_that_is_put_off", "items_of_which_a_part_is_as_desired", "a_moving_in_point"),
        *("renamed_between_nights", "once_under_another_title", "titles_that_are_exchanged"),
        *("shows_after_the_run", "clocks_that_jump", "rates_in_few_digits", "items_that_resemble"),
    }
)
"""The kinds that are not combined: they rename the clip, move all on it, or begin with what no PUT makes."""
WRITE = "^(POST|PUT|DELETE)"
CLOCKS = ((10, "00:00:10"), (60, "00:01:00"))
"""Seconds, and as a time code begins."""


def kind(trouble: Trouble) -> Trouble:
    KINDS[trouble.__name__] = trouble
    return trouble


def nothing(_: ServerState) -> None:
    """No change."""


def mark(uid: int, pos: int, title: str, **more: str) -> SimMarker:
    return SimMarker(uid, pos, {"track": "Cue Point", "title": title, **more})


def part(number: int, start: int, title: str) -> SimSegment:
    return SimSegment(number, start, 10, [title] if title else [])


# Other users and faults anywhere ---------------------------------------------------------------------------------


@kind
def others(world: World) -> None:
    """Another user changes something of the clips that tasks name, or of others, at some request."""
    random = world.random
    name, change = random.choice(list(_changes(random, world.tasks).items()))
    reads, writes = ("GET /storage/NEWS", "GET /storage/NEWS@"), (WRITE, WRITE, "^DELETE")
    match, skip = random.choice((*reads, *writes)), random.choice((0, 0, 0, 1, 1, 2, 3))
    world.forks = random.choice((1, 4))
    pause = random.random() < 0.3 and match in reads
    world.then(
        match,
        lambda: change(world.state),
        random.choice(("before", "after")),
        skip=skip,
        pause=pause,
    )
    world.hooks[-1] = replace(world.hooks[-1], name=name)


@kind
def faults(world: World) -> None:
    """Some request fails, or is done although it failed."""
    world.faults += _faults(world.random)


@kind
def others_and_faults(world: World) -> None:
    others(world)
    faults(world)


@kind
def edits_between_nights(world: World) -> None:
    """Others change, move or remove what the run wrote, before the playbook is applied again."""
    random = world.random
    world.tasks = [task for task in world.tasks if "select" not in task.get("asset", ())]

    def by_day(state: ServerState) -> None:
        for clip in [*state.databases["NEWS"].clips()]:
            _by_day(random, clip)
            for entry in [each for each in clip.entries[1:] if random.random() < 0.3]:
                state.databases["NEWS"].remove_link(entry)
        for item in state.channels["ticker"].items:
            item.description = random.choice((item.description, "BY HAND"))

    world.by_day = by_day


def _by_day(random: Random, clip: SimClip) -> None:
    for name in clip.home.fields:
        clip.home.fields[name] = random.choice((clip.home.fields[name], "BY HAND", ""))
    for marker in [*clip.markers]:
        match random.choice(("", "move", "edit", "remove")):
            case "move":
                marker.pos += 7
            case "edit":
                marker.fields["title"] = "BY HAND"
            case "remove":
                clip.markers.remove(marker)
    for part in [*clip.segments]:
        match random.choice(("", "move", "edit", "remove")):
            case "move":
                part.start += 3
            case "edit":
                part.titles[:1] = ["BY HAND"]
            case "remove":
                clip.segments.remove(part)
    for name in clip.xmp:
        if random.random() < 0.5:
            clip.xmp[name] = ["BY HAND"]


@kind
def undone(world: World) -> None:
    """The run is taken back, after another user changed something; what becomes of items is of other kinds."""
    world.tasks = [task for task in world.tasks if "asset" in task]
    world.undo = world.random.choice([nothing, *_changes(world.random, world.tasks).values()])


# Rejected writes --------------------------------------------------------------------------------------------------


@kind
def a_key_given_again(world: World) -> None:
    """A write was done and rejected, and something of another user gets its key."""
    random, clip = world.random, world.alpha
    clip.markers, clip.segments = (
        [mark(3, 110, "kept"), mark(5, 120, "old")],
        [part(3, 110, "kept"), part(5, 120, "old")],
    )
    what = random.choice(("marker", "place", "changed", "segment", "item"))
    markers = {
        "marker": {"uid": 5, "state": "absent"},
        "place": {"at": 120, "track": "Cue Point", "state": "absent"},
        "changed": {"uid": 5, "title": "new"},
    }

    def gets_the_uid() -> None:
        clip.markers = [*(each for each in clip.markers if each.uid != 5), mark(5, 170, "theirs")]

    def gets_the_number() -> None:
        clip.segments.append(part(5, 170, "theirs"))

    def gets_the_guid() -> None:
        world.put("five.txt", "theirs")

    if what == "item":
        world.put("five.txt", "old")
        world.ticker({"guid": "five", "state": "absent"})
        world.then("^DELETE /rss", gets_the_guid)
        world.busy("^DELETE /rss", done=True)
    elif what == "segment":
        world.ask(segments=[{"number": 5, "state": "absent"}])
        world.then("DELETESEGMENT", gets_the_number)
        world.busy("DELETESEGMENT", done=True)
    else:
        world.ask(markers=[markers[what]])
        world.then("(DELETE|CREATE)MARKER.*uid=5", gets_the_uid)
        world.busy("(DELETE|CREATE)MARKER.*uid=5", done=True)


@kind
def a_newer_value(world: World) -> None:
    """A write was rejected, and by then another user has written a newer value."""
    random, clip = world.random, world.alpha
    clip.markers, clip.xmp = [mark(5, 120, "old")], {"dc:subject": ["old"], "dc:title": ["old"]}
    clip.segments = [part(5, 120, "old")]
    what = random.choice(
        ("SETFIELD", "SETUSERFIELDS", "CREATEMARKER", "DELETEMARKER", "DELETESEGMENT")
    )

    def a_newer_text() -> None:
        clip.home.fields["comment"] = "theirs"
        clip.xmp["dc:subject"] = ["theirs"]
        for each in clip.markers:
            each.fields["title"] = "theirs"
        for part_of_it in clip.segments:
            part_of_it.titles = ["theirs"]

    at = {"at": 120, "track": "Cue Point"}
    desired: dict[str, dict[str, Any]] = {
        "SETFIELD": {"fields": {"comment": "ours"}},
        "SETUSERFIELDS": {"xmp": {"dc:subject": ["ours"]}},
        "CREATEMARKER": {"markers": [at | {"title": "ours"}]},
        "DELETEMARKER": {"markers": [at | {"state": "absent"}]},
        "DELETESEGMENT": {"segments": [{"number": 5, "state": "absent"}]},
    }
    world.ask(**desired[what])
    world.then(what, a_newer_text)
    world.busy(what, done=random.random() < 0.3)


def ask_to_make(world: World) -> tuple[str, Task, Callable[[], object]]:
    """Add a task that makes one thing: its request, what it asks of the clip, and how another user makes the same."""
    clip, news = world.alpha, world.state.databases["NEWS"]
    makes: dict[str, tuple[Task, Callable[[], object]]] = {
        "CREATEMARKER": (
            {"markers": [{"at": 120, "track": "Cue Point", "title": "Ad"}]},
            lambda: clip.markers.append(mark(clip.new_uid(), 120, "Ad")),
        ),
        "CREATESEGMENT": (
            {"segments": [{"number": 5, "start": 120, "duration": 10, "title": "Ad"}]},
            lambda: clip.segments.append(part(5, 120, "Ad")),
        ),
        "COPYLINK": (
            {"links": [{"folder": "Playout", "title": "Alpha tonight"}]},
            lambda: news.add_entry(clip, "Playout", "Alpha tonight"),
        ),
        "PUT": ({}, lambda: world.put("ad.txt", "Ad")),
    }
    what = world.random.choice(list(makes))
    desired, make = makes[what]
    if desired:
        world.ask(**desired)
    else:
        world.ticker({"guid": "ad", "file": "ad.txt", "text": "Ad"})
    return what, desired, make


@kind
def equal_things_of_others(world: World) -> None:
    """Another user makes the same as a task wants, at the moment of its request; then the run may be taken back."""
    random = world.random
    world.ours["link_delete"] = world.server["link_delete"] = "by_title"
    world.server.pop("link_titles", None)
    what, _, make = ask_to_make(world)
    world.then(what, make, random.choice(("before", "after")))
    world.faults += random.choice(
        ([], [f"status:503@{what}*1"], [f"done_status:429@{what}*1"], [f"cut_before@{what}*1"])
    )
    world.undo = random.choice((None, nothing))


@kind
def titles_of_links_that_lead_elsewhere(world: World) -> None:
    """The title of a link answers with its clip, or with nothing, whatever the inventory declares."""
    random, clip = world.random, world.alpha
    world.server["link_titles"] = random.choice(("clip", "nowhere", "found"))
    world.server["link_folder"] = "home"
    world.ours["link_title"] = random.choice(("address", "address", "none", "unknown"))
    clip.home.fields["comment"] = "LEGAL HOLD"
    news = world.state.databases["NEWS"]
    if random.random() < 0.5:
        news.add_entry(clip, "Playout", "Alpha tonight")
    if random.random() < 0.3:
        world.tasks.append({"asset": {"title": "New", "was": ["Alpha tonight"]}})
        return
    world.ask(links=[{"folder": "Playout", "title": "Alpha tonight", "comment": "On air"}])
    world.undo = random.choice((None, nothing))


# Items of the channel ---------------------------------------------------------------------------------------------

_DOCUMENT = (
    "<item><guid>{guid}</guid><title>Old</title><description>Body</description><link>http://x/</link>"
    "<pubDate>Fri, 20 Nov 2026 10:00:00 +0100</pubDate></item>"
)


@kind
def items_with_some_named_fields(world: World) -> None:
    """A task names a part of an item, which is taken back after another user has extended it, or not."""
    random, items = world.random, world.state.channels["ticker"].items
    world.put("doc.xml", _DOCUMENT.format(guid="doc"))
    document = items[-1]
    named = random.sample(("title", "description"), random.randint(1, 2))
    world.ticker(
        {
            "guid": "doc",
            "file": "doc.xml",
            "item": {name: random.choice(("new", "Old")) for name in named},
        }
    )

    def extended(_: ServerState) -> None:
        items = world.state.channels["ticker"].items
        live = next((item for item in items if item.file == document.file), document)
        live.link = "http://theirs/"

    world.undo = random.choice((None, nothing, extended))


@kind
def items_of_which_a_part_is_as_desired(world: World) -> None:
    """The title or the body of an item equals the text of a task, and the rest does not."""
    title, body = world.random.choice(
        (("Storm", "Storm\nwrong"), ("wrong", "Storm"), ("Storm", "Storm"))
    )
    world.state.channels["ticker"].items.append(
        Item("storm.txt", body.encode(), "storm", title, body)
    )
    world.ticker({"guid": "storm", "file": "storm.txt", "text": "Storm"})


@kind
def files_of_other_items(world: World) -> None:
    """A PUT goes to the file of an item that no task names."""
    world.put("top.xml", _DOCUMENT.format(guid="agency-8"))
    item = {"title": "Ours", "description": "Ours"}
    world.ticker(
        {"guid": "ours", "file": "top.xml", "item": item}, exactly=world.random.random() < 0.2
    )
    world.undo = world.random.choice((None, nothing))


@kind
def like_items_of_an_agency(world: World) -> None:
    """Another item with our text appears; ours was not put, or shows under another name. Later ours is to go."""
    items = world.state.channels["ticker"].items

    def agency_puts_the_same() -> None:
        items.append(Item("a.txt", b"Flash", "agency-7", "Flash", "Flash"))

    world.ticker({"guid": "flash", "file": "flash.txt", "text": "Flash"})
    world.then("^PUT", agency_puts_the_same, world.random.choice(("before", "after")))
    world.faults.append(
        world.random.choice(("swallow@^PUT*1", "status:503@^PUT*1", "cut_before@^PUT*1"))
    )
    world.undo = world.random.choice((None, nothing))


# Lists ------------------------------------------------------------------------------------------------------------


@kind
def renumbering(world: World) -> None:
    """The server numbers segments by their starts after each write, and has done so before."""
    random, clip = world.random, world.alpha
    for other in world.state.databases["NEWS"].clips():
        other.segments.sort(key=lambda each: each.start)
        for number, each in enumerate(other.segments, 1):
            each.number = number
    update = random.choice(("overwrite", "overwrite", "refuse", "duplicate"))
    world.server |= {"segment_numbers": "by_start", "segment_update": update}
    world.ours.pop("segment_update", None)
    by_start = random.random() < 0.3
    if by_start:
        world.ours["segment_numbers"] = "by_start"
    clip.segments = [part(number, 20 * number, f"part {number}") for number in range(1, 6)]
    first, second, third = random.sample(range(1, 5), 3)
    changed = {
        "number": first,
        "start": 20 * first + random.choice((0, 0, 5)),
        "duration": 10,
        "title": "new",
    }
    absent = [{"number": number, "state": "absent"} for number in (second, third)]
    fresh = {"number": 6, "start": random.choice((130, 10, 50)), "duration": 5, "title": "fresh"}
    # By start, what is absent by its number gives that number to another one, which the next run would take.
    segments = (
        random.choice(([changed], [fresh]))
        if by_start
        else random.choice(([changed], [changed, *absent], absent))
    )
    if random.random() < 0.2:
        segments = [{name: value for name, value in changed.items() if name != "number"}]
    world.ask(segments=segments)
    world.undo = random.choice((None, nothing))


@kind
def twins(world: World) -> None:
    """Two markers have one uid or one place, or two segments have one number."""
    random, clip = world.random, world.alpha
    places, uids = random.choice((((120, 120), (5, 6)), ((120, 150), (5, 5))))
    clip.markers = [
        mark(uid, pos, title)
        for uid, pos, title in zip(uids, places, ("one", "theirs"), strict=True)
    ]
    clip.segments = [part(5, 120, "one"), part(5, 150, "theirs")]
    at, absent = {"at": 120, "track": "Cue Point"}, {"state": "absent"}
    wishes: tuple[dict[str, Any], ...] = (
        {"markers": [{"uid": 5, **random.choice((absent, {"title": "new"}))}]},
        {
            "markers": [
                at
                | random.choice((absent, {"title": "new"}, {"title": "one"}, {"title": "theirs"}))
            ]
        },
        {"markers": [at | {"title": "one"}], "exactly": ["markers"]},
        {
            "segments": [
                {
                    "number": 5,
                    **random.choice((absent, {"start": 120, "duration": 10, "title": "one"})),
                }
            ]
        },
        {"segments": [{"start": 120, "duration": 10, "title": "one"}], "exactly": ["segments"]},
    )
    world.ask(**random.choice(wishes), **random.choice(({}, {}, {"lossy": True})))


@kind
def empty_keys(world: World) -> None:
    """A cell of a table is empty: the title of a segment, or the text of an item."""
    world.alpha.segments = [part(number, 20 * number, "") for number in (1, 2, 3)]
    world.put("cell.txt", "On air")
    place = {"start": 200, "duration": 10}
    match world.random.choice(("moved", "absent", "text", "item")):
        case "moved":
            world.ask(segments=[{"title": "", **place}])
        case "absent":
            world.ask(segments=[{"title": "", "state": "absent"}])
        case "text":
            world.ticker(
                {"guid": "cell", "file": "cell.txt", "text": world.random.choice(("", " "))}
            )
        case "item":
            world.ticker(
                {"guid": "cell", "file": "cell.txt", "item": {"title": "", "description": ""}}
            )


@kind
def more_than_a_key(world: World) -> None:
    """What a task wants to be absent has another title than the task names."""
    at, title = {"at": 120, "track": "Cue Point"}, world.random.choice(("ours", "theirs"))
    world.alpha.markers = [mark(5, 120, "theirs")]
    world.alpha.segments = [part(5, 120, "theirs")]
    absent = {"title": title, "state": "absent"}
    world.ask(
        **world.random.choice(
            (
                {"markers": [at | absent]},
                {"markers": [{"uid": 5} | absent]},
                {"segments": [{"number": 5} | absent]},
            )
        )
    )


# What a plan relies on --------------------------------------------------------------------------------------------


@kind
def a_moving_in_point(world: World) -> None:
    """Positions count from the IN point, and another user moves it."""
    random, clip = world.random, world.alpha
    world.server["position_origin"] = world.ours["position_origin"] = "in"
    clip.markers, clip.segments = [mark(5, 120, "old")], [part(5, 120, "old")]

    def moves_the_in_point() -> None:
        clip.home.fields["first_frame"] = "30"

    at = {"at": 120, "track": "Cue Point"}
    world.ask(
        **random.choice(
            (
                {"markers": [at | {"title": "new"}]},
                {"markers": [{"at": 150, "title": "fresh"}]},
                {"markers": [{"uid": 5, "at": 130}]},
                {"segments": [{"number": 6, "start": 150, "duration": 10, "title": "fresh"}]},
            )
        ),
        **random.choice(({}, {"fields": {"comment": "Ready"}})),
    )
    when, match = random.choice(
        (("before", WRITE), ("after", WRITE), ("after", "GET .*Alpha"), ("before", "GET .*Alpha"))
    )
    world.then(match, moves_the_in_point, when, pause=random.random() < 0.5)


@kind
def what_holds_already(world: World) -> None:
    """Another user changes what a task names and what is as desired: a folder, a link, a marker, a field."""
    random, clip, news = world.random, world.alpha, world.state.databases["NEWS"]
    link = news.add_entry(clip, "Playout", "Alpha on air")
    clip.home.fields["user_1"], clip.markers = "kept", [mark(5, 120, "kept")]
    holds: dict[str, Any] = {
        "folder": "Raw",
        "links": [{"folder": "Playout", "title": "Alpha on air"}],
        "markers": [
            {"at": 120, "track": "Cue Point", "title": "kept"},
            {"at": 60, "state": "absent"},
        ],
    }

    def marks_what_is_to_be_absent() -> None:
        clip.markers.append(SimMarker(9, 60, {"track": "General", "title": "theirs"}))

    changes: tuple[Callable[[], object], ...] = (
        lambda: news.change_entry(clip.home, folder=("Films",)),
        lambda: news.remove_link(link),
        lambda: clip.markers.clear(),
        lambda: clip.home.fields.update(user_1="theirs"),
        marks_what_is_to_be_absent,
    )
    world.ask(**holds, fields={"comment": "Ready", "user_1": "kept"})
    skip = random.choice((0, 1)) if random.random() < 0.5 else 0
    world.then(WRITE, random.choice(changes), random.choice(("before", "after")), skip=skip)


@kind
def a_minute_in_the_middle(world: World) -> None:
    """Two minutes pass between the requests of a target, in which another clip gets the title, or its markers."""
    random, clip, news = world.random, world.alpha, world.state.databases["NEWS"]
    clip.markers = [mark(uid, 20 * uid, f"old {uid}") for uid in range(1, 6)]

    def recorded_anew() -> None:
        news.remove_clip(clip)
        again = news.add_clip("Alpha", "Raw", frames=250, create_time="2026-11-15T10:00:00")
        again.markers = [mark(uid, 10 * uid, f"theirs {uid}") for uid in range(1, 6)]

    def marked_anew() -> None:
        clip.markers = [mark(uid, 10 * uid, f"theirs {uid}") for uid in range(1, 6)]

    world.ask(markers=[], exactly=["markers"])
    world.allowed["allow_remove"] = 60
    world.then(
        "DELETEMARKER",
        random.choice((recorded_anew, marked_anew)),
        skip=random.randint(0, 3),
        pause=True,
    )
    world.forks = 1


@kind
def listings_that_lag(world: World) -> None:
    """A listing shows an older comment than the clip, and a deletion depends on it."""
    random, clip = world.random, world.alpha
    world.allowed["allow_delete"] = 9
    clip.home.fields["comment"] = random.choice(("KEEP", "KEEP", "DROP"))
    clip.listed = {"comment": "DROP"}
    condition = "asset.comment == 'DROP'"
    asset: Task = {"select": {"folder": "Raw", "expect": {"min": 0}}}
    asset |= random.choice(
        ({"state": "absent", "with_links": True}, {"fields": {"user_1": "dropped"}})
    )
    if random.random() < 0.5:
        asset["select"]["where"] = condition
        world.tasks.append({"asset": asset})
    else:
        world.tasks.append({"asset": asset, "when": condition})


@kind
def texts_of_finalized(world: World) -> None:
    """A clip is being recorded, and its `finalized` has another text than `false`."""
    random = world.random
    world.alpha.shown = {"finalized": random.choice(("recording", "growing", "off", "", "0"))}
    world.allowed["allow_delete"] = 9
    world.ask(
        **random.choice(
            ({"state": "absent"}, {"fields": {"comment": "Ready"}}, {"markers": [{"at": 9}]})
        )
    )


# Links and deletions ----------------------------------------------------------------------------------------------


@kind
def clips_in_the_place_of_links(world: World) -> None:
    """A link is not made, and another user's clip has its title in its folder."""
    random, news = world.random, world.state.databases["NEWS"]

    def a_clip_with_the_title() -> None:
        news.add_clip("Alpha tonight", "Playout", frames=50)

    link = {
        "folder": "Playout",
        "title": "Alpha tonight",
        **random.choice(({}, {"comment": "ours"})),
    }
    world.ask(links=[link])
    world.then("COPYLINK", a_clip_with_the_title, random.choice(("before", "after")))
    world.faults.append(
        random.choice(("swallow", "status:503", "cut_before", "done_status:503")) + "@COPYLINK*1"
    )
    world.undo = random.choice((None, nothing))


@kind
def moved_before_its_deletion(world: World) -> None:
    """A clip is renamed or moved right before its DELETE."""
    random, clip, news = world.random, world.alpha, world.state.databases["NEWS"]
    title, folder = random.choice((("Kept", ("Films",)), ("Kept", None), (None, ("Films",))))

    def renamed_or_moved() -> None:
        news.change_entry(clip.home, title, folder)

    world.allowed["allow_delete"] = 9
    world.ask(state="absent")
    world.then("^DELETE", renamed_or_moved, "before")
    if random.random() < 0.3:
        world.faults.append("done_status:503@^DELETE*1")


@kind
def handlers_of_deletions(world: World) -> None:
    """A deletion with a handler; the clip changes before it, or its folder is named as the database."""
    random, clip, news = world.random, world.alpha, world.state.databases["NEWS"]
    world.allowed["allow_delete"] = 9
    news.change_entry(
        clip.home, folder=random.choice((("NEWS",), ("NEWS", "Raw"), ("Raw",), ("Raw",)))
    )
    world.ask(state="absent")["notify"] = "Export"

    def moved() -> None:
        news.change_entry(clip.home, folder=("Films",))

    def linked() -> None:
        news.add_entry(clip, "Films", "Alpha kept")

    if random.random() < 0.7:
        change, when = random.choice((moved, linked)), random.choice(("before", "after"))
        world.then("GET .*Alpha", change, when, skip=random.choice((0, 1)))


# What is left out, and what is taken back --------------------------------------------------------------------------


@kind
def narrowing(world: World) -> None:
    """A run with tags: what the tasks that are left out name is not removed."""
    random, clip = world.random, world.alpha
    world.allowed |= {"allow_delete": 9, "allow_remove": 60}
    clip.markers, clip.segments = [mark(5, 120, "theirs")], [part(5, 120, "theirs")]
    at = {"at": 120, "track": "Cue Point"}
    for task in world.tasks:
        task["tags"] = [random.choice(("mine", "theirs"))]
    mine: tuple[dict[str, Any], ...] = (
        {"markers": [], "exactly": ["markers"]},
        {"markers": [at | {"state": "absent"}]},
        {"segments": [{"number": 5, "state": "absent"}]},
        {"segments": [], "exactly": ["segments"]},
        {"state": "absent"},
    )
    theirs: dict[str, Any] = {
        "markers": [at | {"title": "theirs"}],
        "segments": [{"number": 5, "start": 120, "duration": 10, "title": "theirs"}],
    }
    world.ask(**random.choice(mine))["tags"] = ["mine"]
    world.ask(**theirs)["tags"] = ["theirs"]
    world.tags = ("mine",)


@kind
def replaced_before_it_is_undone(world: World) -> None:
    """Before a run is taken back, another file or length is in the place of the clip."""
    random, clip = world.random, world.alpha
    clip.markers = [mark(5, 120, "old")]
    world.ask(
        **random.choice(
            (
                {"fields": {"comment": "Ready"}},
                {"markers": [{"at": 120, "track": "Cue Point", "title": "new"}]},
                {"markers": [{"uid": 5, "state": "absent"}]},
                {"segmentation": {"duration": 50, "title": "Part"}},
            )
        )
    )
    name, value = random.choice(
        (
            ("file", "$(video_path)/another.mxf"),
            ("frames", 240),
            ("frames", 200),
            ("create_time", "2026-12-01T10:00:00"),
        )
    )
    world.undo = lambda _: setattr(clip, name, value)


@kind
def pieces_of_others(world: World) -> None:
    """After a segmentation another user puts a segment in the place of a piece; then it is taken back."""
    clip = world.alpha
    world.ask(segmentation={"duration": 50, "title": "Part"})
    number, title = world.random.choice((7, 2)), world.random.choice(("Part", "theirs"))

    def in_the_place_of_a_piece(_: ServerState) -> None:
        clip.segments = [each for each in clip.segments if each.number != 2]
        clip.segments.append(SimSegment(number, 50, 50, [title]))

    world.undo = in_the_place_of_a_piece


# Another night ----------------------------------------------------------------------------------------------------


def _little(random: Random, clip: SimClip) -> None:
    """Let answers show less of a clip, so that it is the same one, or may be."""
    clip.omitted = random.choice(
        ((), (), ("create_time",), ("orig_name",), ("orig_name", "create_time"))
    )
    if len(clip.omitted) == 2:
        clip.online = False


@kind
def renamed_between_nights(world: World) -> None:
    """By day others change what the run wrote, and the title; the next night follows, keeps, refuses or deletes."""
    random, clip, news = world.random, world.alpha, world.state.databases["NEWS"]
    _little(random, clip)
    world.allowed |= {"allow_delete": 9, "allow_remove": 60}
    news.add_clip("Omega", "Raw", frames=700, create_time="2026-11-16T10:00:00")
    if random.random() < 0.5:
        clip.markers = [mark(3, 10, "ingest")]
    at = {"at": 120, "track": "Cue Point", "title": "Ad"}
    lists: Task = {"markers": [at], "exactly": ["markers"] * random.randint(0, 1)}
    number = {"number": 1, "start": 0, "duration": 10, "title": "Part"}
    wishes: tuple[Task, ...] = (
        {"fields": {"comment": "Ready", "user_1": "ours"}},
        lists,
        {"segments": [number], "exactly": ["segments"]},
        {"xmp": {"dc:subject": ["ours"]}},
    )
    desired = dict(random.choice(wishes))
    policy = random.choice(("keep", "keep", "refuse", "overwrite"))
    world.ask(**desired)["outside"] = policy
    title = random.choice(("Alpha, final", "Omega", "Alpha"))
    edits: tuple[Callable[[], object], ...] = (
        lambda: clip.home.fields.update(comment="CLEARED"),
        lambda: [each.fields.update(title="CLEARED") for each in clip.markers],
        lambda: clip.markers.append(mark(9, 200, "LEGAL HOLD")),
        lambda: clip.markers.clear(),
        lambda: clip.segments.__setitem__(slice(None), [part(1, 0, "CLEARED")]),
        lambda: clip.segments.append(part(9, 200, "LEGAL HOLD")),
        lambda: clip.xmp.update({"dc:subject": ["CLEARED"]}),
    )
    some = random.sample(edits, 4)

    def edited_and_renamed(_: ServerState) -> None:
        for edit in some:
            edit()
        if title == "Omega":
            parse_change("swap:Alpha:Omega")(world.state)
        else:
            news.change_entry(clip.home, title, None)

    world.by_day = edited_and_renamed
    again = {"state": "absent", "with_links": True} if random.random() < 0.25 else desired
    world.again = [{"asset": {"title": title, **again}, "outside": policy}]


@kind
def once_under_another_title(world: World) -> None:
    """What runs once has run, and its clip gets another title, which another clip then may have."""
    random, clip, news = world.random, world.alpha, world.state.databases["NEWS"]
    _little(random, clip)
    once = {"name": "PARTNER_EXPORT_VERSION", "run": "once"}
    world.tasks.append({"command": {**once, "title": "Alpha"}})
    is_new = random.random() < 0.5

    def renamed(_: ServerState) -> None:
        news.change_entry(clip.home, "Alpha, final", None)
        if is_new:
            news.add_clip("Alpha", "Raw", frames=700, create_time="2026-11-16T10:00:00")

    world.by_day = renamed
    world.again = [{"command": {**once, "title": title}} for title in ("Alpha, final", "Alpha")]
    world.again = world.again[: 1 + is_new]


@kind
def titles_that_are_exchanged(world: World) -> None:
    """Two clips exchange their titles, or one is recorded again, where answers show no fields."""
    random, clip, news = world.random, world.alpha, world.state.databases["NEWS"]
    world.server["link_fields"] = "hidden"
    world.fields_are_ours = True
    other = news.add_clip("Omega", "Raw", frames=700, create_time="2026-11-16T10:00:00")
    clip.omitted = other.omitted = random.choice(((), ("create_time",), ("orig_name",)))
    world.ask(fields={"comment": "alpha"})
    world.tasks.append({"asset": {"title": "Omega", "fields": {"comment": "omega"}}})

    def exchanged(state: ServerState) -> None:
        parse_change("swap:Alpha:Omega")(state)

    def recorded_anew(_: ServerState) -> None:
        news.remove_clip(clip)
        again = news.add_clip("Alpha", "Raw", frames=300, create_time=clip.create_time)
        again.omitted = clip.omitted

    world.by_day = random.choice((exchanged, recorded_anew))


@kind
def shows_after_the_run(world: World) -> None:
    """What a request makes is accepted, and shows after the run, or never; its clip may have another title by then."""
    random, clip, news = world.random, world.alpha, world.state.databases["NEWS"]
    what, desired, make = ask_to_make(world)
    shows, is_renamed = random.random() < 0.5, random.random() < 0.5
    if desired:
        title = "Alpha, final" if is_renamed else "Alpha"
        world.again = [{"asset": {"title": title, **desired}}]
    world.faults.append(f"swallow@{what}*1")

    def shown_and_renamed(_: ServerState) -> None:
        if shows:
            make()
        if is_renamed:
            news.change_entry(clip.home, "Alpha, final", None)

    world.by_day = shown_and_renamed


@kind
def clocks_that_jump(world: World) -> None:
    """Another run comes before, by a clock that is ahead; then the last one is taken back."""
    random = world.random
    world.ask(fields={"comment": "first"})
    world.earlier, world.tasks = world.tasks, []
    world.ask(
        **random.choice(
            (
                {"fields": {"comment": "second"}},
                {"markers": [{"at": 120, "track": "Cue Point", "title": "Ad"}]},
                {"fields": {"user_1": "second"}},
            )
        )
    )
    world.clock = timedelta(hours=random.choice((-3, -1, 3)))
    world.undo = nothing


# Servers that say less ---------------------------------------------------------------------------------------------


@kind
def rates_in_few_digits(world: World) -> None:
    """A rate is shown in few digits, rounded or cut, and a task writes positions as time codes."""
    random, clip = world.random, world.alpha
    clip.rate = random.choice(RATES)
    clip.frames = 9000
    digits = random.choice((4, 4, 4, 5, 6, 10))
    exact = 10**digits / clip.rate
    is_rounded = random.random() < 0.5
    ticks = round(exact) if is_rounded else int(exact)
    point = random.choice(".,")
    clip.shown = {"frame_time": f"0{point}{ticks:0{digits}}"}
    seconds, clock = random.choice(CLOCKS)
    frames = random.choice((".00", ":00"))
    at = Spoken.at(seconds, clock + frames, clip.rate)
    world.ask(markers=[{"at": at, "title": "Ad"}])


@kind
def items_that_resemble(world: World) -> None:
    """Items of others resemble ours by stem, case, guid or file, or have no guid; a task may name a file alone."""
    random, items = world.random, world.state.channels["ticker"].items
    items.clear()
    world.server["rss_guid"] = random.choice(("item", "item", "file", "stem"))
    world.ours.pop("rss_guid", None)
    if random.random() < 0.7:
        world.ours["rss_guid"] = world.server["rss_guid"]
    file = random.choice(("n-1.txt", "n-1.xml"))
    guid = random.choice(("n-1", "n-1.txt", "N-1", "", "other"))
    for name in random.sample(
        ("n-1.txt", "N-1.txt", "n-1.xml", "N-1.TXT", "n-1"), random.randint(1, 2)
    ):
        items.append(Item(name, b"THEIRS", guid, "THEIRS", "THEIRS"))
    item: Task = {"file": file}
    item |= random.choice(({"state": "absent"}, {"text": "ours"}, {"item": {"title": "ours"}}))
    if "item" in item:
        item["file"] = "n-1.xml"
    elif "text" in item:
        item["file"] = "n-1.txt"
    if random.random() < 0.4:
        item["guid"] = random.choice(("n-1", "n-1.txt"))
        if "state" in item:
            del item["file"]
    world.ticker(item)
    if world.ours.get("rss_guid", "item") == world.server["rss_guid"]:
        world.undo = random.choice((None, nothing))


# Servers that do more, or later -----------------------------------------------------------------------------------


@kind
def xmp_that_is_cleared(world: World) -> None:
    """The server clears XMP fields that are not sent."""
    world.server["xmp_update"] = "clear"
    world.alpha.xmp = {"dc:subject": ["old"], "dc:title": ["theirs"]}
    world.ask(xmp={"dc:subject": ["new"]})
    world.undo = world.random.choice((None, nothing))


@kind
def work_that_is_put_off(world: World) -> None:
    """The server answers 202, or rejects, and acts right before a later request."""
    random, clip = world.random, world.alpha
    clip.markers, clip.segments = [mark(5, 120, "old")], [part(5, 120, "old")]
    world.tasks.append(
        {"asset": {"title": "Beta", "was": ["Alpha"], "fields": {"comment": "Ready"}}}
    )
    rest: tuple[dict[str, Any], ...] = (
        {"markers": [{"at": 120, "track": "Cue Point", "title": "new"}]},
        {
            "markers": [{"uid": 5, "state": "absent"}],
            "segments": [{"number": 5, "state": "absent"}],
        },
        {"segments": [{"number": 5, "start": 120, "duration": 10, "title": "new"}]},
        {"links": [{"folder": "Playout", "title": "Beta tonight", "comment": "Tonight"}]},
    )
    world.tasks[-1]["asset"] |= random.choice(rest)
    if random.random() < 0.5:
        world.faults.append(f"deferred:{random.randint(2, 4)}@clip_name*1")
    else:
        if random.random() < 0.5:
            world.tasks[-1]["asset"] |= {"title": "Alpha"}
            del world.tasks[-1]["asset"]["was"]
        code = random.choice(("", ":503", ":429"))
        world.faults.append(
            f"deferred:{random.randint(1, 4)}{code}@Alpha.*command*1+{random.randint(0, 2)}"
        )


# Changes and faults of all kinds ----------------------------------------------------------------------------------


def _changes(random: Random, tasks: Sequence[Task]) -> dict[str, Change]:
    named = [task["asset"].get("title") or "EP 1" for task in tasks if "asset" in task] or ["EP 1"]
    title, other = random.choice(named), random.choice(TITLES)
    changes: dict[str, Change] = {
        text: _change_of(text)
        for text in (
            *(f"rename:{title}:{name}" for name in ("Gone", other)),
            *(f"edit:{title}:{name}:theirs" for name in FIELDS[1:]),
            *(f"swap:{title}:{other}", f"swap:{title}:{other}"),
            *(
                f"delete:{title}",
                f"rerecord:{title}",
                f"edit:{title}:comment:theirs",
                f"edit:{title}:user_1:theirs",
            ),
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
        "item": lambda state: put_item(
            state.channels["ticker"], "theirs.txt", b"theirs", SimDialect()
        ),
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
    clip.markers = [
        SimMarker(each.uid, 70 + each.uid, {"title": "theirs"}) for each in clip.markers
    ]


def _cut(clip: SimClip) -> None:
    clip.segments.append(SimSegment(3, 80, 10, ["theirs"]))


def _faults(random: Random) -> list[str]:
    write = random.choice(
        ("^POST", "^DELETE", "^(POST|PUT|DELETE)", "CREATEMARKER", "SETFIELD", "^PUT")
    )
    skip = f"*1+{random.choice((0, 0, 1, 2))}"
    code = random.choice((500, 503, 503, 429))
    name = random.choice(
        (
            *(
                f"status:{code}",
                f"done_status:{code}",
                f"done_status:{code}",
                f"lag:0.05:{code}",
                f"lag:0.15:{code}",
            ),
            *(
                "cut_before",
                "cut_after",
                "late:0.03",
                "late:0.8",
                "swallow",
                "garbage",
                "html",
                "status:403",
            ),
        )
    )
    if random.random() < 0.15:
        return [f"{name}@GET /storage/NEWS@{skip}"] if name != "swallow" else []
    if random.random() < 0.3:
        return [f"{name}@{write}{skip}", f"lag:0.1@{WRITE}"]
    return [f"{name}@{write}{skip}"]
