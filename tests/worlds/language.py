"""The contract as this oracle reads it: which clips a task names, what it declares, and what may be lost.

Written from the language, not from the planner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any
from unicodedata import normalize

from msauto.simulator import SimDialect
from tests.worlds.picture import Clip, Effect, Mark, News, Part, Picture
from tests.worlds.scenario import PROTECTED, Task

At = tuple[str, int]
"""The track and the position of a marker."""


@dataclass(frozen=True)
class Wish:
    """What all tasks together ask of one clip."""

    titles: frozenset[str]
    former: frozenset[str] = frozenset()
    absent: bool = False
    with_links: bool = False
    lossy: bool = False
    divided: bool = False
    exactly: frozenset[str] = frozenset()
    fields: dict[str, str] = field(default_factory=dict)
    xmp: dict[str, Any] = field(default_factory=dict)
    markers: tuple[Task, ...] = ()
    segments: tuple[Task, ...] = ()
    links: frozenset[tuple[str, str]] = frozenset()

    def marker(self, mark: Mark) -> list[Task]:
        """Return what tasks declare of a marker: by its uid, else by its track and position."""
        return [item for item in self.markers if (item["uid"] == mark.uid if "uid" in item else at(item) == mark.at)]

    def segment(self, number: object) -> list[Task]:
        return [item for item in self.segments if item["number"] == number]

    def removes(self, kind: str) -> bool:
        """Whether things of a kind that no task names are to go."""
        return kind in self.exactly or (kind == "segments" and self.divided)


def wish_of(tasks: Iterable[Task]) -> Wish:
    every = list(tasks)

    def each(key: str) -> Iterator[Any]:
        return (thing for task in every for thing in task.get(key, ()))

    return Wish(
        titles=frozenset(task["title"] for task in every if "title" in task),
        former=frozenset(each("was")),
        absent=any(task.get("state") == "absent" for task in every),
        with_links=any(task.get("with_links") for task in every),
        lossy=any(task.get("lossy") for task in every),
        divided=any("segmentation" in task for task in every),
        exactly=frozenset(each("exactly")),
        fields={name: text for task in every for name, text in task.get("fields", {}).items()},
        xmp={name: values for task in every for name, values in task.get("xmp", {}).items()},
        markers=tuple(each("markers")),
        segments=tuple(each("segments")),
        links=frozenset((link["folder"], link["title"]) for link in each("links")),
    )


# Names ----------------------------------------------------------------------------------------------------------


def named(task: Task, world: Picture, server: SimDialect) -> list[Clip]:
    """Return the clips that an asset task names: by exactly its title, else by one of another normalization.

    An answer with several clips names none.
    """
    if "select" in task:
        folder = task["select"]["folder"]
        every = server.link_titles == "found"  # else the title of a link leads to no clip
        clips = [
            clip
            for clip in world.clips.values()
            if any(where == folder and (every or name == clip.title) for where, name in clip.entries.values())
        ]
    else:
        clips = [clip for title in (task["title"], *task.get("was", ())) for clip in _titled(title, world, server)]
        if task.get("state") == "absent":
            clips = [clip for clip in clips if same(clip.title, task["title"])]
        if server.title_twins == "both":
            titles = [clip.title for clip in world.clips.values()]
            asked = (task["title"], *task.get("was", ()))
            clips = [clip for clip in clips if titles.count(clip.title) < 2 or clip.title not in asked]
    return [clip for clip in clips if task.get("folder", clip.folder) == clip.folder]


def _titled(title: str, world: Picture, server: SimDialect) -> list[Clip]:
    names = {number: {clip.title} for number, clip in world.clips.items()}
    if server.link_titles == "found":
        names = {number: {name for _, name in clip.entries.values()} for number, clip in world.clips.items()}
    exact = [world.clips[number] for number, known in names.items() if title in known]
    return exact or [world.clips[number] for number, known in names.items() if any(same(n, title) for n in known)]


def same(one: str, other: str) -> bool:
    return normalize("NFC", one) == normalize("NFC", other)


def at(item: Task) -> At | None:
    return (item.get("track", "General"), item["at"]) if "at" in item else None


def shown_guid(item: News, rule: str) -> str:
    return {"item": item.guid, "file": item.file, "stem": stem(item.file)}[rule]


def stem(file: str) -> str:
    return file.rpartition(".")[0] or file


# What may change ------------------------------------------------------------------------------------------------


def declares(wish: Wish, effect: Effect) -> bool:
    """Whether anything of this kind and key is asked for."""
    old, new, key = effect.before, effect.after, effect.key
    match effect.what:
        case "asset":
            return wish.absent and new is None
        case "title":
            return bool(wish.former) and new in wish.titles
        case "field":
            return isinstance(key, tuple) and key[1] in wish.fields
        case "xmp":
            return key in wish.xmp
        case "segment":
            return wish.removes("segments") or bool(wish.segment(key))
        case "marker":
            return bool(wish.markers) or wish.removes("markers")
        case "link":
            if isinstance(old, tuple) and isinstance(new, tuple):  # a link under a former title
                return old[1] in wish.former and new[1] in wish.titles
            return new in wish.links if old is None else wish.removes("links")
    return False


def loss(wish: Wish, effect: Effect, clip: Clip) -> str:
    """Why the loss of what was there has no consent, or nothing; ``clip``: as it was last read."""
    old, new = effect.before, effect.after
    protected = any(fnmatchcase(text, PROTECTED) for place in clip.entries.values() for text in place)
    if effect.what == "asset":
        if protected:
            return "a protected clip was deleted"
        return "a clip was deleted that links still show" if clip.links and not wish.with_links else ""
    if effect.what == "link" and new is None:
        return "a link of a protected clip was removed" if protected else ""
    if isinstance(old, Mark):
        return _changed_mark(wish, old, new) if isinstance(new, Mark) else _lost_mark(wish, old, clip, protected)
    return _lost_parts(wish, effect, protected) if effect.what == "segment" else ""


def _changed_mark(wish: Wish, old: Mark, new: Mark) -> str:
    declared = {name for item in wish.marker(old) for name in item}
    changed = {name for name, _ in set(old.fields) ^ set(new.fields)}
    moved = new.at != old.at and new.at not in {at(item) for item in wish.marker(old)}
    return "a marker became another, or lost what no task declares" if moved or not changed <= declared else ""


def _lost_mark(wish: Wish, old: Mark, clip: Clip, protected: bool) -> str:
    by_key = wish.marker(old)
    if protected:
        return "a marker of a protected clip was removed"
    if any(item.get("state") == "absent" for item in by_key):
        return ""
    if not wish.removes("markers"):
        return "a marker was removed"
    alone = sum(mark.at == old.at for mark in clip.marks) < 2
    return "a desired marker was removed" if by_key and alone else ""


def _lost_parts(wish: Wish, effect: Effect, protected: bool) -> str:
    """Judge what became of all segments of one number."""
    old, new = _parts(effect.before), _parts(effect.after)
    gone = [part for part in old if part not in new]
    wanted = [item for item in wish.segment(effect.key) if item.get("state") != "absent"]
    if len(new) >= len(old) and not gone:
        return ""
    if wanted and not wish.lossy:
        if any(part.more for part in gone):
            return "a segment lost its track or further titles without lossy"
        if len(old) > 1 and any(is_as_asked(part, item) for item in wanted for part in old):
            return "one of several segments of a number was deleted without lossy"
    if protected and (not wanted or any(part.more for part in gone)):
        return "a segment of a protected clip was removed"
    return "" if wish.segment(effect.key) or wish.removes("segments") else "a segment was lost that no task names"


def _parts(value: object) -> tuple[Part, ...]:
    return value if isinstance(value, tuple) else ()


def is_as_asked(part: Part, item: Task) -> bool:
    return (part.start, part.duration, part.title) == (item["start"], item["duration"], item["title"])


# What is asked for ----------------------------------------------------------------------------------------------


def missing(wish: Wish, clip: Clip | None, before: Clip, theirs: frozenset[str]) -> Iterator[str]:
    """Yield what a clip does not show; ``before``: as it was planned, ``theirs``: kinds that another user changed."""
    if wish.absent:
        if clip is not None:
            yield "the clip is there"
        return
    if clip is None:
        yield "the clip is gone"
        return
    titles = [title for _, title in clip.entries.values()]
    if wish.former and not any(same(title, asked) for asked in wish.titles for title in titles):
        yield f"the titles are {titles}"
    for name, text in wish.fields.items():
        if text not in _field(clip, name):
            yield f"{name} is {_field(clip, name)}, not {text!r}"
    for name, values in wish.xmp.items():
        if dict(clip.xmp).get(name) != tuple(values):
            yield f"{name} is {dict(clip.xmp).get(name)}"
    yield from (f"there is no link {link}" for link in wish.links if link not in clip.entries.values())
    yield from _missing_marks(wish, clip, before, "marker" in theirs)
    yield from _missing_parts(wish, clip, "segment" in theirs)


def _field(clip: Clip, name: str) -> set[str]:
    """Return the values of a field on the entries of a clip: a task can reach it through any of them."""
    values = {entry: text for entry, field_name, text in clip.fields if field_name == name}
    return {values.get(entry, "") for entry in clip.entries}


def _missing_marks(wish: Wish, clip: Clip, before: Clip, theirs: bool) -> Iterator[str]:
    places = {at(item) for item in wish.markers if item.get("state") != "absent"}
    for item in wish.markers:
        found = [mark for mark in clip.marks if (mark.uid == item["uid"] if "uid" in item else mark.at == at(item))]
        if item.get("state") == "absent":
            # A new marker can get the uid of a deleted one.
            yield from (f"marker {item} is there" for mark in found if mark.at not in places)
            continue
        asked = {(name, text) for name, text in item.items() if name in ("title", "comment")}
        earlier = [mark for mark in before.marks if mark.at == at(item)]
        if not any(asked <= set(mark.fields) for mark in found):
            yield f"marker {item} is not there: {found}"
        elif "at" in item and not theirs and len(found) > max(1, len(earlier)):
            yield f"marker {item} is there {len(found)} times"
    if "markers" in wish.exactly and not theirs:
        more = [mark for mark in clip.marks if not wish.marker(mark)]
        yield from (f"a marker is there that no task names: {mark}" for mark in more)


def _missing_parts(wish: Wish, clip: Clip, theirs: bool) -> Iterator[str]:
    for item in wish.segments:
        found = [part for part in clip.parts if part.number == item["number"]]
        if item.get("state") == "absent":
            yield from (f"segment {part} is there" for part in found)
        elif len(found) != 1 or not is_as_asked(found[0], item):
            yield f"segment {item} is not there once: {found}"
    if "segments" in wish.exactly and not wish.divided and not theirs:
        more = [part for part in clip.parts if not wish.segment(part.number)]
        yield from (f"a segment is there that no task names: {part}" for part in more)
