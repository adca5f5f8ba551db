"""What the stories of ``tests/cases`` share: their rows, what other users do to a server, and what it shows then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from msauto.plugins.simulator.embedded import (
    Item,
    SimChannel,
    SimClip,
    SimMarker,
    SimSegment,
    Simulator,
)
from msauto.plugins.simulator.embedded.faults import parse_change
from msauto.plugins.simulator.embedded.rss import put_item
from msauto.plugins.simulator.embedded.state import SimDatabase, SimEntry
from tests.dialects.fitting import some_rows
from tests.tables import load, unless_one_in

Given = dict[str, Any]


CASES = Path(__file__).parent / "cases"


def stories(folder: str, *parts: str, one_in: int = 1) -> list[Any]:
    """Return the stories of a folder, each as often as it has rows; its ``parts`` begin with those of its file.

    One row in so many of a story runs always; the others are slow tests.
    """
    found: list[Any] = []
    for path in sorted((CASES / folder).glob("*.yml")):
        found += _of_file(path, parts, one_in)
    return found


def _of_file(path: Path, parts: tuple[str, ...], one_in: int) -> Iterator[Any]:
    shared = load(path)
    for story, common in product(shared["stories"], shared.get("each", [{}])):
        whole = {"steps": story["steps"], "row": {}}
        for part in parts:
            whole[part] = {**shared.get(part, {}), **story.get(part, {})}
        for number, row in enumerate(story.get("each", [{}])):
            values = common | row
            marks = [pytest.mark.scale] if story.get("slow") else unless_one_in(one_in, number)
            name = f"{path.stem}: {story['about']}"
            if values:
                name += f" ({' '.join(map(str, values.values()))})"
            given = filled(whole, values)
            yield pytest.param(given, id=name, marks=marks)
            if shared.get("rows"):
                yield from _on_other_servers(given, name, story.get("keeps", {}))


def _on_other_servers(given: Given, name: str, keeps: Mapping[str, str]) -> Iterator[Any]:
    """The same story on some servers with other habits, but those that it keeps."""
    for number, habits in some_rows(name):
        other = {**given, "row": {**habits, **keeps}}
        yield pytest.param(other, id=f"{name} row{number}", marks=pytest.mark.scale)


def filled(value: Any, row: Mapping[str, Any]) -> Any:
    """Put the values of a row in place of their names; ``and`` holds more of its mapping."""
    if isinstance(value, dict):
        whole = {filled(name, row): filled(each, row) for name, each in value.items()}
        more = whole.pop("and", {})
        return whole | more
    if isinstance(value, list):
        return [filled(each, row) for each in value]
    if isinstance(value, str) and value[1:] in row and value[0] == "$":
        return row[value[1:]]
    for name, text in row.items() if isinstance(value, str) else ():
        value = value.replace(f"${name}", str(text))
    return value


class Others:
    """What other users do: each change names its clip, link, channel or item first, then what of it is new.

    ``add_clip``, ``remove_clip``, ``add_link`` (to a clip), ``remove_link``, ``move`` (``title``, ``folder``), ``put``
    (a ``text`` in a file), or a text such as ``swap:A:B``, see :mod:`msauto.plugins.simulator.embedded.faults`.
    Lists are replaced; those that begin with ``+`` are added to.
    """

    def __init__(self, sim: Simulator) -> None:
        self._sim = sim

    @property
    def news(self) -> SimDatabase:
        return self._sim.state.databases["NEWS"]

    def do(self, change: Any) -> None:
        if isinstance(change, list):
            for each in change:
                self.do(each)
            return
        if isinstance(change, str):
            parse_change(change)(self._sim.state)
            return
        (what, name), *rest = change.items()
        attributes = dict(rest)
        match what:
            case "add_clip":
                known = {
                    each: attributes.pop(each)
                    for each in ("frames", "create_time")
                    if each in attributes
                }
                self._describe(
                    self.news.add_clip(name, attributes.pop("folder", "Raw"), **known), attributes
                )
            case "clip":
                self._describe(self.news.clip(name), attributes)
            case "remove_clip":
                self.news.remove_clip(self.news.clip(name))
            case "add_link":
                self.news.add_entry(self.news.clip(name), attributes["folder"], attributes["title"])
            case "remove_link":
                self.news.remove_link(self.entry(name))
            case "link":
                self.entry(name).fields.update(attributes)
            case "move":
                folder = tuple(attributes["folder"].split("/")) if "folder" in attributes else None
                self.news.change_entry(self.entry(name), attributes.get("title"), folder)
            case "channel":
                self.channel(name).items[:] = [_item(each) for each in attributes["items"]]
            case "put":
                put_item(self.channel(), name, attributes["text"].encode(), self._sim.dialect)
            case "item":
                (item,) = (each for each in self.channel().items if each.guid == name)
                for attribute, value in attributes.items():
                    setattr(item, attribute, value)
            case _:
                raise ValueError(f"unknown change {change}")

    def channel(self, name: str = "ticker") -> SimChannel:
        return self._sim.state.channels[name]

    def entry(self, title: str) -> SimEntry:
        """The entry with a title; a link wins over a clip."""
        return self.news.find_all(title)[-1]

    def _describe(self, clip: SimClip, attributes: Mapping[str, Any]) -> None:
        for name, value in attributes.items():
            match name:
                case "fields":
                    clip.home.fields.update(value)
                case "xmp":
                    clip.xmp.update(value)
                case "links":
                    for link in value:
                        self.news.add_entry(clip, link["folder"], link["title"])
                case "markers":
                    clip.markers[:] = map(_marker, value)
                case "+markers":
                    clip.markers += [_marker({"uid": clip.new_uid(), **each}) for each in value]
                case "segments":
                    clip.segments[:] = map(_segment, value)
                case "+segments":
                    clip.segments += map(_segment, value)
                case _:
                    setattr(clip, name, tuple(value) if isinstance(value, list) else value)

    def check(self, name: str, expected: Any) -> None:
        """The server shows this of a clip or a channel."""
        news = self.news
        if name == "clips":
            assert sorted(clip.title for clip in news.clips()) == expected
        elif isinstance(expected, list):
            _match([_shown_item(each) for each in self.channel(name).items], expected)
        else:
            clip = news.clip(name)
            for what, value in expected.items():
                if what in ("markers", "segments", "links"):
                    _match(_SHOWN[what](clip), value)
                elif what in ("fields", "xmp"):
                    texts: Mapping[str, Any] = clip.home.fields if what == "fields" else clip.xmp
                    assert {each: texts.get(each, "") for each in value} == value
                elif what == "folder":
                    assert "/".join(clip.home.folder) == value
                else:
                    assert getattr(clip, what) == value


def _marker(given: Given) -> SimMarker:
    texts = {name: str(value) for name, value in given.items() if name not in ("uid", "at")}
    return SimMarker(given["uid"], given["at"], {"track": "Cue Point", **texts})


def _segment(given: Given) -> SimSegment:
    titles = given.get("titles", [given["title"]] if "title" in given else [])
    more = {name: given[name] for name in ("track", "rating", "keywords") if name in given}
    return SimSegment(given["number"], given["start"], given.get("duration", 10), titles, **more)


def _item(given: Given) -> Item:
    text = given.get("text", "")
    texts = {"title": text.partition("\n")[0], "description": text}
    more = {name: value for name, value in given.items() if name not in ("file", "text")}
    return Item(
        given["file"], text.encode(), **{"guid": given["file"].partition(".")[0], **texts, **more}
    )


def _match(found: list[Given], expected: list[Any]) -> None:
    """Each has its own, in any order; of each only what is named counts. ``and others``: there may be more."""
    left = list(found)
    for each in expected:
        if each == "and others":
            return
        same = next(
            (one for one in left if {name: one.get(name, "") for name in each} == each), None
        )
        assert same is not None, (each, found)
        left.remove(same)
    assert left == [], found


def part_of(expected: Any, found: Any) -> None:
    """Of mappings, what is named counts."""
    if isinstance(expected, dict) and isinstance(found, Mapping):
        for name, value in expected.items():
            part_of(value, found.get(name))
        return
    assert found == expected


def _shown_item(item: Item) -> Given:
    return {
        name: getattr(item, name)
        for name in ("file", "guid", "title", "description", "link", "pub_date")
    }


_SHOWN: dict[str, Any] = {
    "markers": lambda clip: [
        {"uid": each.uid, "at": each.pos, **each.fields} for each in clip.markers
    ],
    "segments": lambda clip: [
        {
            name: getattr(each, name)
            for name in ("number", "start", "duration", "titles", "track", "rating", "keywords")
        }
        | {"title": "".join(each.titles)}
        for each in clip.segments
    ],
    "links": lambda clip: [
        {"folder": "/".join(each.folder), "title": each.title, **each.fields}
        for each in clip.entries[1:]
    ],
}


def texts(given: Any) -> list[str]:
    return [given] if isinstance(given, str) else list(given)
