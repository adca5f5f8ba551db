"""A ticker that a newsroom fills as well: items of one guid in two files, one without a guid, addresses as guids.

The whole way, by the command line over HTTP: in the end, each item of the playbook is on air once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from msauto.cli.main import main
from msauto.simulator import SimDialect, Simulator, empty_state
from msauto.simulator.state import Item

pytestmark = pytest.mark.scale

ADDRESS = "http://newsroom.example/story/4711"


def text(guid: str, words: str) -> Item:
    return Item(f"{guid}.txt", words.encode(), guid, words, words)


def document(file: str, guid: str, title: str, description: str) -> Item:
    return Item(file, b"", guid, title, description)


@dataclass
class Newsroom:
    """A server with a ticker, and msauto beside it."""

    sim: Simulator
    folder: Path

    def on_air(self, *items: Item) -> None:
        self.sim.state.channels["ticker"].items[:] = items

    @property
    def shown(self) -> list[tuple[str, str]]:
        return [(item.guid, item.title) for item in self.sim.state.channels["ticker"].items]

    def run(self, command: str, *arguments: str) -> int:
        self.sim.clear_log()
        return main([command, *arguments, "--server", self.sim.url, "--state-dir", str(self.folder / "state")])

    def play(self, command: str, items: object, *flags: str, exactly: bool = True) -> int:
        task = {"rss": {"channel": "ticker", "items": items, "exactly": exactly}}
        playbook = self.folder / "ticker.yml"
        playbook.write_text(yaml.safe_dump([{"hosts": "all", "tasks": [task]}], allow_unicode=True), encoding="utf-8")
        return self.run(command, str(playbook), *flags)

    def apply(self, items: object, *, exactly: bool = True) -> int:
        return self.play("apply", items, "-y", exactly=exactly)

    @property
    def sent(self) -> list[str]:
        return [entry.line for entry in self.sim.writes()]


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Newsroom]:
    state = empty_state()
    state.add_channel("ticker")
    with Simulator(state=state) as sim:
        yield Newsroom(sim, tmp_path)


def test_a_headline_becomes_a_story(room: Newsroom, capsys: pytest.CaptureFixture[str]) -> None:
    room.on_air(text("n-1", "Storm"))
    story = [{"guid": "n-1", "item": {"title": "Storm", "description": "Ferries wait in port"}}]
    assert room.apply(story) == 0, capsys.readouterr()
    assert room.sent == ["DELETE /rss/ticker?guid=n-1", "PUT /rss/ticker/n-1.xml"]
    assert room.shown == [("n-1", "Storm")]
    story[0]["item"] = {"title": "Calm", "description": "Ferries run"}
    assert room.apply(story) == 0
    assert room.sent == ["PUT /rss/ticker/n-1.xml"]
    assert room.play("plan", story, "--detailed-exitcode") == 0


def test_somebody_adds_the_item_a_second_time(room: Newsroom, capsys: pytest.CaptureFixture[str]) -> None:
    headline = [{"guid": "n-1", "text": "Storm"}]
    room.on_air(text("n-1", "Storm"), document("copy of n-1.xml", "n-1", "Sunny", "D"))
    assert room.play("plan", headline, "--detailed-exitcode") == 2
    assert "2 items are n-1" in "".join(capsys.readouterr())
    assert room.apply(headline) == 0
    assert room.sent == ["DELETE /rss/ticker?guid=n-1", "PUT /rss/ticker/n-1.txt"]
    assert room.shown == [("n-1", "Storm")]
    assert room.play("plan", headline, "--detailed-exitcode") == 0


def test_a_server_that_deletes_one_item_at_a_time(room: Newsroom, capsys: pytest.CaptureFixture[str]) -> None:
    room.sim.dialect = SimDialect(rss_delete="first")
    headline = [{"guid": "n-1", "text": "Storm"}]
    room.on_air(text("n-1", "Storm"), *(document(f"{n}.xml", "n-1", "Sunny", "D") for n in range(2)))
    assert room.apply(headline) == 3, "two are left, and that is told"
    assert "n-1" in "".join(capsys.readouterr())
    assert room.sent == ["DELETE /rss/ticker?guid=n-1", "PUT /rss/ticker/n-1.txt"]
    assert room.apply(headline) == 0, capsys.readouterr()
    assert room.shown == [("n-1", "Storm")]
    assert room.play("plan", headline, "--detailed-exitcode") == 0


def test_a_file_that_no_name_tells_is_found_out(room: Newsroom) -> None:
    """A PUT adds a second item if the first has another file name. It is unverified, and the next run fixes it."""
    room.on_air(document("feed-17.xml", "n-1", "Sunny", "D"))
    story = [{"guid": "n-1", "item": {"title": "Storm", "description": "D"}}]
    assert room.apply(story) == 3
    assert room.apply(story) == 0
    assert room.shown == [("n-1", "Storm")]


def test_addresses_and_items_without_a_guid(room: Newsroom, capsys: pytest.CaptureFixture[str]) -> None:
    room.on_air(document("s.xml", "", "Sponsor", "D"), document("f-1.xml", ADDRESS, "Old story", "D"))
    items = [{"guid": ADDRESS, "item": {"title": "New story", "description": "D"}}, {"guid": "n-1", "text": "Storm"}]
    assert room.apply(items) == 0, capsys.readouterr()
    assert "'Sponsor'" in "".join(capsys.readouterr())
    assert sorted(room.shown) == [("", "Sponsor"), (ADDRESS, "New story"), ("n-1", "Storm")]
    assert room.play("plan", items, "--detailed-exitcode") == 0
    assert room.apply([{"guid": ADDRESS, "state": "absent"}], exactly=False) == 0
    assert sorted(room.shown) == [("", "Sponsor"), ("n-1", "Storm")]


def test_an_exported_story_is_replaced_when_it_is_edited(room: Newsroom, capsys: pytest.CaptureFixture[str]) -> None:
    room.on_air(document("n-2.xml", "n-2", "Storm", "Ferries wait in port"), text("n-1", "Sunny"))
    assert room.run("export", "--channel", "ticker") == 0
    (play,) = yaml.safe_load(capsys.readouterr().out)
    items = play["tasks"][0]["rss"]["items"]
    assert items == [
        {"guid": "n-2", "item": {"title": "Storm", "description": "Ferries wait in port"}},
        {"guid": "n-1", "text": "Sunny"},
    ]
    items[0]["item"]["title"] = "Calm"
    assert room.apply(items) == 0
    assert room.sent == ["PUT /rss/ticker/n-2.xml"]
    assert room.shown == [("n-2", "Calm"), ("n-1", "Sunny")]


@pytest.mark.parametrize("sourced", [{"text": "A\x07B"}, {"item": {"title": "A\x00B"}}, {"text": "\ufeffAB"}])
def test_what_no_channel_shows_is_refused_with_its_place(
    sourced: dict[str, object], room: Newsroom, capsys: pytest.CaptureFixture[str]
) -> None:
    assert room.play("plan", [{"guid": "n-1", **sourced}], "--format", "json") == 1
    told = capsys.readouterr()
    assert "as character" in told.err + told.out
    assert "U+" in told.err + told.out
    assert "ticker.yml:" in told.err + told.out or json.loads(told.out)
    assert room.sent == []
