"""The contract as the oracle reads it: which clips a task names, which of their things, and what may be lost.

Written from the language, not from the planner. A thing is named by the key that it had when it was planned.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any
from unicodedata import normalize

from msauto.plugins.simulator.embedded import SimDialect
from tests.worlds.picture import Asset, Effect, Mark, News, Part, Picture, Thing, clips, entries, of
from tests.worlds.world import PROTECTED, Task

_CONDITION = re.compile(r"asset\.(\w+) == '(.*)'")


@dataclass(frozen=True)
class Wish:
    """What all tasks together ask of one clip."""

    titles: frozenset[str]
    former: frozenset[str] = frozenset()
    absent: bool = False
    with_links: bool = False
    lossy: bool = False
    divided: bool = False
    notify: bool = False
    exactly: frozenset[str] = frozenset()
    fields: dict[str, str] = field(default_factory=dict)
    xmp: dict[str, Any] = field(default_factory=dict)
    markers: tuple[Task, ...] = ()
    segments: tuple[Task, ...] = ()
    links: tuple[Task, ...] = ()

    def marker(self, mark: Mark) -> list[Task]:
        """What tasks declare of a marker: by its uid, else by its track and position."""
        return [
            item
            for item in self.markers
            if (item["uid"] == mark.uid if "uid" in item else at(item) == mark.at)
        ]

    def segment(self, part: Part) -> list[Task]:
        """What tasks declare of a segment: by its number, else by its place or its title, which is not empty."""
        return [item for item in self.segments if _is_segment(item, part)]

    def link(self, place: tuple[str, str]) -> list[Task]:
        return [item for item in self.links if (item["folder"], item["title"]) == place]

    def removes(self, kind: str) -> bool:
        """Whether things of a kind that no task names are to go."""
        return kind in self.exactly or (kind == "segments" and self.divided)


def wish_of(tasks: Iterable[Task]) -> Wish:
    tasks = list(tasks)
    every = [asset_of(task) for task in tasks]

    def each(key: str) -> Iterator[Any]:
        return (thing for task in every for thing in task.get(key, ()))

    xmp: dict[str, list[str]] = {}  # the values of several tasks are one list
    for name, values in (pair for task in every for pair in task.get("xmp", {}).items()):
        xmp[name] = [
            *dict.fromkeys([*xmp.get(name, ()), *([values] if isinstance(values, str) else values)])
        ]
    return Wish(
        titles=frozenset(task["title"] for task in every if "title" in task),
        former=frozenset(each("was")),
        absent=any(task.get("state") == "absent" for task in every),
        with_links=any(task.get("with_links") for task in every),
        lossy=any(task.get("lossy") for task in every),
        divided=any("segmentation" in task for task in every),
        notify=any("notify" in task or "command" in task for task in tasks),
        exactly=frozenset(each("exactly")),
        fields={name: text for task in every for name, text in task.get("fields", {}).items()},
        xmp=xmp,
        markers=tuple(each("markers")),
        segments=tuple(each("segments")),
        links=tuple(each("links")),
    )


def asset_of(task: Task) -> Task:
    """Return the part of a task that names a clip."""
    asset: Task = task.get("asset") or task["command"]
    return asset


def same(one: str, other: str) -> bool:
    return normalize("NFC", one) == normalize("NFC", other)


def at(item: Task) -> tuple[str, int] | None:
    return (item.get("track", "General"), item["at"]) if "at" in item else None


def _is_segment(item: Task, part: Part) -> bool:
    if "number" in item:
        return bool(item["number"] == part.number)
    place = (item.get("start"), item.get("duration")) == (part.start, part.duration)
    return place or bool(item.get("title") and item["title"] == part.title)


def stem(file: str) -> str:
    return file.rpartition(".")[0] or file


# Names ------------------------------------------------------------------------------------------------------------


def named(task: Task, world: Picture, server: SimDialect) -> list[int]:
    """Return the clips that an asset task names: by exactly its title, else by one of another normalization.

    An answer with several clips names none. A condition is one on what the clip itself shows. A selected entry is read
    by its title, which another clip may have, too.
    """
    asset = asset_of(task)
    if "select" in asset:
        places = [place for clip in clips(world) for place in entries(world, clip).values()]
        selected = {title for folder, title in places if folder == asset["select"]["folder"]}
        found = [clip for title in selected for clip in _titled(title, world, server)]
        if asset.get("state") == "absent":  # no clip is deleted through a link
            found = [
                clip
                for clip in found
                if world[Thing(clip, "folder", "")] == asset["select"]["folder"]
            ]
    else:
        asked = (asset["title"], *asset.get("was", ()))
        found = [clip for title in asked for clip in _titled(title, world, server)]
        if asset.get("state") == "absent":
            found = [clip for clip in found if same(_title(world, clip), asset["title"])]
        if server.title_twins == "both":
            titles = [_title(world, clip) for clip in clips(world)]
            found = [
                clip
                for clip in found
                if titles.count(_title(world, clip)) < 2 or _title(world, clip) not in asked
            ]
    condition = task.get("when") or asset.get("select", {}).get("where")
    return [
        clip
        for clip in found
        if asset.get("folder", world[Thing(clip, "folder", "")]) == world[Thing(clip, "folder", "")]
        and world[Thing(clip, "asset", "")].finalized == "true"
        and (condition is None or _holds(condition, world, clip))
    ]


def is_certain(task: Task, world: Picture, clip: int) -> bool:
    """Whether a task names a clip letter by letter, and no other clip has one of its titles in any form."""
    places = [(each, title) for each in clips(world) for _, title in entries(world, each).values()]
    own = {title for each, title in places if each == clip}
    forms = {_form(title) for title in own}
    asset = asset_of(task)
    asked = {asset.get("title"), *asset.get("was", ())}
    others = any(each != clip and _form(title) in forms for each, title in places)
    return not others and ("select" in asset or bool(own & asked))


def _form(title: str) -> str:
    return normalize("NFC", title).casefold()


def _title(world: Picture, clip: int) -> str:
    return str(world[Thing(clip, "title", "")])


def _titled(title: str, world: Picture, server: SimDialect) -> list[int]:
    names = {clip: {_title(world, clip)} for clip in clips(world)}
    if server.link_titles in ("found", "clip"):
        names = {clip: {name for _, name in entries(world, clip).values()} for clip in names}
    exact = [clip for clip, known in names.items() if title in known]
    return exact or [
        clip for clip, known in names.items() if any(same(name, title) for name in known)
    ]


def _holds(condition: str, world: Picture, clip: int) -> bool:
    found = _CONDITION.fullmatch(condition)
    assert found is not None, condition
    return bool(world.get(Thing(clip, "field", (clip, found[1])), "") == found[2])


# What may change --------------------------------------------------------------------------------------------------


def declares(wish: Wish, effect: Effect, planned: Picture) -> bool:
    """Whether a thing of a clip may become this; ``planned``: what was read when it was planned."""
    old, new, thing = planned.get(effect.thing), effect.after, effect.thing
    if wish.absent and new is None:
        return True
    match thing.what:
        case "title":
            is_own = any(
                same(former, str(old)) for former in wish.former
            )  # not the title of a link
            return is_own and new in wish.titles
        case "calls":
            return wish.notify
        case "field":
            place = entries(planned, thing.clip).get(thing.which[0])
            items = wish.link(place) if place else list(wish.links)
            of_link = thing.which[0] != thing.clip and any(thing.which[1] in item for item in items)
            return thing.which[1] in wish.fields or of_link
        case "xmp":
            return thing.which in wish.xmp
        case "link":
            return _declares_link(wish, old, new)
        case "marker":
            twins = [mark for mark in of(planned, thing.clip, "marker").values() if mark != old]
            return _declares_mark(wish, old, new, twins)
        case "segment":
            return _declares_part(wish, old, new)
    return False


def _declares_link(wish: Wish, old: Any, new: Any) -> bool:
    if old is not None and new is not None:  # a link under a former title
        return old[1] in wish.former and new[1] in wish.titles
    if new is not None:
        return any(item.get("state") != "absent" for item in wish.link(new))
    return wish.removes("links") or any(item.get("state") == "absent" for item in wish.link(old))


def _declares_mark(wish: Wish, old: Mark | None, new: Mark | None, others: list[Mark]) -> bool:
    if old is None:
        return new is None or any(_is_made(item, new) for item in wish.markers)
    by_key = wish.marker(old)
    by_place = bool(by_key) and all("uid" not in item for item in by_key)
    removes = wish.removes("markers")
    uids = [mark.uid for mark in others]
    if old.uid in uids:
        is_named = bool(by_key) or removes
        return wish.lossy and new is None and is_named
    twins = [mark for mark in others if mark.at == old.at and not _is_removed(wish, mark, by_key)]
    if by_place and twins and not wish.lossy:
        if new is not None or not removes:
            return False
        return _is_the_other(by_key, old, twins)
    if new is None:
        return _declares_no_mark(wish, old, by_key, is_twin=bool(twins))
    if new.at != old.at and not any(_is_at(item, new) for item in by_key):
        return False
    return bool(by_key) and _changes_what_is_named(old, new, by_key)


def _is_removed(wish: Wish, mark: Mark, items: list[Task]) -> bool:
    """Whether a task names the uid of a marker as absent, and none wants what it shows: then it is not a twin."""
    if any(item.get("state") != "absent" and _fits(item, mark) for item in items):
        return False
    return any(
        item.get("uid") == mark.uid and item.get("state") == "absent" for item in wish.markers
    )


def _changes_what_is_named(old: Mark, new: Mark, items: list[Task]) -> bool:
    names: set[str] = set()
    for item in items:
        names |= item.keys()
    changed = {name for name, _ in set(old.fields) ^ set(new.fields)}
    return changed <= names


def _is_the_other(items: list[Task], mark: Mark, twins: list[Mark]) -> bool:
    """Of two at one place, the one that is as a task wants it stays, and ``exactly`` removes the other."""
    wanted = [item for item in items if item.get("state") != "absent"]
    if any(_fits(item, mark) for item in wanted):
        return False
    return any(_fits(item, twin) for item in wanted for twin in twins)


def _declares_no_mark(wish: Wish, mark: Mark, items: list[Task], *, is_twin: bool) -> bool:
    wanted = []
    for item in items:
        if item.get("state") != "absent":
            wanted.append(item)
        elif _fits(item, mark):
            return True
    return wish.removes("markers") and (not wanted or (is_twin and wish.lossy))


def _is_at(item: Task, mark: Mark) -> bool:
    """Whether a marker is where an item wants it; a track that an item with a uid does not name stays."""
    return bool(
        item.get("at") == mark.pos
        and item.get("track", mark.at[0] if "uid" in item else "General") == mark.at[0]
    )


def _is_made(item: Task, new: Mark) -> bool:
    return (
        _is_at(item, new)
        and "uid" not in item
        and item.get("state") != "absent"
        and _fits(item, new)
    )


def _fits(item: Task, mark: Mark) -> bool:
    """Whether a marker has the texts that an item names."""
    texts = {(name, text) for name, text in item.items() if name in ("title", "comment") and text}
    return texts <= set(mark.fields)


def _declares_part(wish: Wish, old: Part | None, new: Part | None) -> bool:
    wanted = [item for item in wish.segments if item.get("state") != "absent"]
    if old is None:
        if new is None or wish.divided:
            return True
        return any(_is_as_asked(new, item) for item in wanted)
    by_key = wish.segment(old)
    if not by_key:
        return wish.removes("segments") if new is None else wish.divided
    if new is not None:
        is_wanted = any(item in wanted for item in by_key)
        return is_wanted and any(_is_as_asked(new, item) for item in by_key)
    absent = [item for item in by_key if item not in wanted]
    titles = [item.get("title", old.title) for item in absent]
    return not titles or old.title in titles


def _is_as_asked(part: Part, item: Task) -> bool:
    number = item.get("number", part.number)
    place = (item.get("start", part.start), item.get("duration", part.duration))
    return (part.number, part.start, part.duration, part.title) == (
        number,
        *place,
        item.get("title", part.title),
    )


def no_consent(wish: Wish, effect: Effect, read: Picture, listed: Picture) -> str:
    """Why the loss of what was there has no consent, or nothing; ``listed``: what was listed last."""
    clip, old, new = effect.thing.clip, effect.before, effect.after
    places = entries(read, clip) if Thing(clip, "asset", "") in read else {}
    places = {entry: place for entry, place in places.items() if entry == clip} | of(
        listed, clip, "link"
    )
    protected = any(fnmatchcase(text, PROTECTED) for place in places.values() for text in place)
    lost = new is None and effect.thing.what in ("asset", "link", "marker", "segment")
    if isinstance(old, Part) and new is None and not wish.absent:
        wanted = [item for item in wish.segment(old) if item.get("state") != "absent"]
        alike = [part for part in of(read, clip, "segment").values() if part.number == old.number]
        if wanted and old.more and not wish.lossy:
            return "a segment lost its track or further titles without lossy"
        if (
            wanted
            and len(alike) > 1
            and not wish.lossy
            and any(_is_as_asked(part, wanted[0]) for part in alike)
        ):
            return "one of several segments of a number was deleted without lossy"
        lost = not wanted
    if protected and lost:
        return f"a {effect.thing.what} of a protected clip was lost"
    if isinstance(old, Asset) and new is None and len(places) > 1 and not wish.with_links:
        return "a clip was deleted that links still show"
    return ""


# The channel ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Channel:
    """What all tasks together ask of the channel."""

    items: tuple[Task, ...]
    exactly: bool
    rule: str
    by_stem: bool

    def item(self, news: News) -> list[Task]:
        """What tasks declare of an item; a server that names items by their files has no other guids."""
        return [item for item in self.items if self._is_item(item, news)]

    def _is_item(self, item: Task, news: News) -> bool:
        file: str = item.get("file", "")
        if "guid" not in item:  # then it is its file, as the channel shows that
            shown = stem(file) if self.by_stem else file
            return file == news.file or shown == news.guid
        guid: str = item["guid"]
        if guid == news.guid:
            return True
        if self.by_stem and stem(file) == stem(news.file):
            return True  # the playbook's user says that stems are the guids
        return self.rule != "item" and (file == news.file or guid == stem(news.file))

    def declares(self, effect: Effect, planned: Picture) -> bool:
        """Whether an item may become this."""
        old, new = planned.get(effect.thing), effect.after
        if old is None:
            return new is None or any(item.get("file") == new.file for item in self.items)
        by_key = self.item(old)
        if new is None:  # an item that is put again may be deleted first
            return bool(by_key) or self.exactly
        if not old.guid and any("guid" not in item for item in by_key):
            return True  # no channel shows the file of an item without a guid
        names = {name for item in by_key for name in item.get("item", ("title", "description"))}
        changed = {
            name
            for name in ("title", "description", "link", "date")
            if getattr(old, name) != getattr(new, name)
        }
        return bool(by_key) and changed <= names | ({"date"} if "pubDate" in names else set())

    @staticmethod
    def _may_be(item: Task, news: News) -> bool:
        """Whether an item that is to be absent is there."""
        if "guid" in item:
            return bool(news.guid == item["guid"])
        return bool(news.file == item["file"])

    def missing(self, end: Picture) -> Iterator[str]:
        """Yield what the channel does not show."""
        live = list(of(end, 0, "item").values())
        for item in self.items:
            if item.get("state") == "absent":
                yield from (f"{item} is there" for news in live if self._may_be(item, news))
                continue
            at_file = [news for news in live if news.file == item["file"]]
            found = [
                news
                for news in at_file
                if self.rule != "item"
                or not {"item", "guid"} <= item.keys()
                or news.guid == item["guid"]
            ]
            texts = item.get("item") or {
                "title": item["text"].partition("\n")[0],
                "description": item["text"],
            }
            if len(found) != 1 or any(
                getattr(found[0], name) != text for name, text in texts.items()
            ):
                yield f"{item} is not there once: {found}"


# What is asked for ------------------------------------------------------------------------------------------------


def missing(
    wish: Wish, clip: int, end: Picture, before: Picture, *, fields: bool, theirs: Set[Thing]
) -> Iterator[str]:
    """Yield what a clip does not show; ``before``: what was there when it was planned.

    ``fields``: whether answers show them. ``theirs``: what other users made.
    """
    there = Thing(clip, "asset", "") in end
    if wish.absent or not there:
        if wish.absent == there:
            yield f"the clip is {'there' if there else 'gone'}"
        return
    places = entries(end, clip)
    if wish.former and not any(
        same(title, asked) for asked in wish.titles for _, title in places.values()
    ):
        yield f"the titles are {places}"
    for name, text in wish.fields.items() if fields else ():
        values = {
            end.get(Thing(clip, "field", (entry, name)), "") for entry in places
        }  # any entry can be the target
        if text not in values:
            yield f"{name} is {values}, not {text!r}"
    for name, texts in wish.xmp.items():
        if end.get(Thing(clip, "xmp", name)) != tuple(texts):
            yield f"{name} is {end.get(Thing(clip, 'xmp', name))}"
    alike = [
        each
        for each in clips(end)
        if end[Thing(each, "asset", "")][1:] == end[Thing(clip, "asset", "")][1:]
    ]
    known = {
        place for each in alike for place in entries(end, each).values()
    }  # nothing tells these clips apart
    for item in wish.links:
        absent = item.get("state") == "absent"
        if ((item["folder"], item["title"]) in (places.values() if absent else known)) is absent:
            yield f"the link {item} is {'' if absent else 'not '}there"
    yield from _missing_marks(wish, clip, end, before, theirs)
    yield from _missing_parts(wish, list(of(end, clip, "segment").values()))


def _missing_marks(
    wish: Wish, clip: int, end: Picture, before: Picture, theirs: Set[Thing]
) -> Iterator[str]:
    live, earlier = (list(of(picture, clip, "marker").values()) for picture in (end, before))
    places = {at(item) for item in wish.markers if item.get("state") != "absent"}
    for item in wish.markers:
        found = [
            mark
            for mark in live
            if (mark.uid == item["uid"] if "uid" in item else mark.at == at(item))
        ]
        made = [
            end[thing]
            for thing in theirs
            if thing.what == "marker" and thing in end and end[thing] in found
        ]
        if item.get("state") == "absent":
            # A new marker can get the uid of a deleted one. One of another title was not named when it was planned.
            was = [mark for mark in earlier if mark.at == at(item) or mark.uid == item.get("uid")]
            named_then = not was or any(_fits(item, mark) for mark in was)
            there = [
                mark for mark in found if mark.at not in places and _fits(item, mark) and named_then
            ]
            yield from (f"marker {item} is there" for mark in there)
        elif not any(_fits(item, mark) for mark in found):
            yield f"marker {item} is not there: {found}"
        elif "at" in item and len(found) - len(made) > max(
            1, sum(mark.at == at(item) for mark in earlier)
        ):
            yield f"marker {item} is there {len(found)} times"
    if "markers" in wish.exactly:
        yield from (
            f"a marker is there that no task names: {mark}"
            for mark in live
            if not wish.marker(mark)
        )


def _missing_parts(wish: Wish, live: list[Part]) -> Iterator[str]:
    for item in wish.segments:
        found = [part for part in live if _is_segment(item, part)]
        if item.get("state") == "absent":
            yield from (
                f"segment {part} is there"
                for part in found
                if item.get("title", part.title) == part.title
            )
        elif len(found) != 1 or not _is_as_asked(found[0], item):
            yield f"segment {item} is not there once: {found}"
    if "segments" in wish.exactly and not wish.divided:
        yield from (
            f"a segment is there that no task names: {part}"
            for part in live
            if not wish.segment(part)
        )
