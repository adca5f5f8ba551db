"""The whole job on a server that shows late, swallows, cuts, and names things as it likes; and what probe sees."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from msauto.cli.main import main
from tests.acceptance.third_server import ThirdServer
from tests.acceptance.third_world import Ways, World

pytestmark = pytest.mark.scale

STORY = """
- hosts: all
  tasks:
    - asset:
        title: "Ночные новости: 50% / A@B"
        fields: {comment: "Ready: ой & #1 100% + ё", first_frame: "00:00:10:00"}
        xmp: {"dc:subject": [news, вечер]}
        segments: [{number: 1, start: 0, duration: "00:12:30:00", title: Part 1}, {number: 7, state: absent}]
        markers: [{at: "00:12:30:00", track: Cue Point, title: Ad break ё, comment: x}, {uid: 9, state: absent}]
        links: [{folder: Playout/Tonight}]
        restore: {wait: 20s}
        exactly: [segments, markers]
      notify: Export
    - asset: {title: Long Film, segmentation: {duration: "00:10:00:00", title: Part}, exactly: [segments]}
    - asset: {title: Fresh news, was: [Fresh raw]}
    - asset: {title: "{{ item }}", state: absent}
      loop: [Promo 1, Promo 2]
    - rss:
        channel: ticker
        items:
          - {guid: n-1, file: n-1.txt, text: Заголовок & co}
          - {guid: n-2, file: n-2.xml, item: {title: T, description: D}}
  handlers:
    - {name: Export, command: {name: PARTNER_EXPORT_VERSION}}
"""
TITLE = "Ночные новости: 50% / A@B"


def build(world: World) -> None:
    news = world.clip(TITLE, "Raw/2026")
    news.markers = {9: {"pos": "10", "track": "General", "title": "old"}}
    news.markers |= {11: {"pos": "700", "track": "Cue Point", "title": "Кью"}}
    news.segments = [(7, 100, 50, "seven")]
    news.xmp = {"dc:subject": ["old"]}
    news.hires, news.archive = "", "$(archive)/x"
    world.clip("Long Film", "Films", frames=45000)
    for title in ("Fresh raw", "Promo 1", "Same"):
        world.clip(title, "Raw").xmp = {"dc:rights": ["Kanal 5"]}
    world.folder("Playout/Tonight")
    world.put_item("n-0.txt", b"zero")


def content(world: World) -> Any:
    """All that a playbook can want, without ids that the server gives."""
    entries = [
        (
            entry.folder,
            entry.fields,
            sorted(sorted(marker.items()) for marker in entry.clip.markers.values()),
            sorted(entry.clip.segments),
            {name: values for name, values in entry.clip.xmp.items() if values},
            entry.clip.hires,
            entry.clip.exports,
        )
        for entry in world.entries
    ]
    items = [{name: value for name, value in item.items() if name != "guid"} for item in world.items]
    return sorted(entries, key=lambda each: (each[0], each[1]["clip_name"])), items


@dataclass
class Workspace:
    folder: Path
    server: ThirdServer
    dialect: dict[str, str]

    def run(self, command: str, *arguments: str) -> int:
        server = {"url": self.server.url, "dialect": self.dialect}
        inventory = {"all": {"hosts": {"studio": {"server": server, "database": "NEWS"}}}}
        (self.folder / "inventory.yml").write_text(json.dumps(inventory), encoding="utf-8")
        (self.folder / "play.yml").write_text(STORY, encoding="utf-8")
        places = ["-i", str(self.folder / "inventory.yml"), "--state-dir", str(self.folder / "state")]
        return main([command, *arguments, *places])

    def play(self, command: str, *flags: str) -> int:
        return self.run(command, str(self.folder / "play.yml"), *flags)


@pytest.fixture(scope="module")
def after(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the story makes of the plainest of these servers."""
    with ThirdServer(Ways(close="told"), build) as server:
        assert Workspace(tmp_path_factory.mktemp("plain"), server, {}).play("apply", "-y", "--allow-delete", "1") == 0
        return content(server.world)


def of_ways(value: object) -> str:
    """The choices that are not the usual ones."""
    if not isinstance(value, Ways):
        return ""
    usual = vars(Ways())
    return ",".join(f"{name}={shown}" for name, shown in vars(value).items() if shown != usual[name])


STORIES = [
    Ways(late=0.15),
    Ways(uids=123_456_789, marker_keeps=False, segment_again="twin", copy_again="refuse"),
    Ways(guid="hash", rss="atom", channels="html"),
    Ways(),
    Ways(guid="item", rss="rdf"),
    *(Ways(guid=guid, channels="text") for guid in ("item", "stem", "hash", "link")),
    Ways(missing=(200, "Object not found: that"), accepted=(204, ""), segment_again="refuse"),
    Ways(missing=(500, "<Error>Object not found</Error>"), accepted=(202, '{"error": null}')),
    Ways(casefold=True, trim=True, keys=False, xmp_values=False),
]


@pytest.mark.parametrize("ways", STORIES, ids=of_ways)
def test_the_same_end_and_nothing_left_to_plan(
    ways: Ways, after: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ThirdServer(ways, build) as server:
        workspace = Workspace(tmp_path, server, {})
        assert workspace.play("plan", "--detailed-exitcode") == 2, capsys.readouterr()
        assert server.writes == []
        assert workspace.play("apply", "-y", "--allow-delete", "1") == 0, capsys.readouterr()
        assert content(server.world) == after
        server.writes.clear()
        assert workspace.play("apply", "-y", "--allow-delete", "1") == 0, capsys.readouterr()
        assert server.writes == []


@pytest.mark.parametrize("command", ["CREATEMARKER", "SETFIELD", "COPYLINK", "CREATESEGMENT", "CREATESEGMENTATION"])
def test_what_is_swallowed_is_never_proved(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ThirdServer(Ways(swallow=command), build) as server:
        workspace = Workspace(tmp_path, server, {})
        assert workspace.play("apply", "-y", "--allow-delete", "1") == 3
        assert "not as desired when read again" in capsys.readouterr().out
        assert workspace.play("plan", "--detailed-exitcode") == 2, "and it is still to be done"


def test_what_is_cut_is_told_as_that(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ThirdServer(Ways(most=12), build) as server:
        assert Workspace(tmp_path, server, {}).play("apply", "-y", "--allow-delete", "1") == 3
    assert "the server keeps only the beginning of the value: shorten it" in capsys.readouterr().out


# Probe ---------------------------------------------------------------------------------------------------------------

_TRIED = {"segment_update": "overwrite", "marker_update": "changed", "position_origin": "file", "list_separator": ","}
PROBES = [
    (Ways(late=0.15), _TRIED),
    (Ways(keys=False, copy_again="refuse", close="told"), _TRIED | {"title_address": "plain"}),
    (Ways(), _TRIED | {"title_address": "ns"}),
    pytest.param(
        Ways(marker_keeps=False, segment_again="twin"),
        _TRIED | {"segment_update": "recreate", "marker_update": "full"},
    ),
    pytest.param(
        Ways(segment_again="refuse", separator=";", copy_again="same"),
        _TRIED | {"segment_update": "recreate", "list_separator": ";"},
    ),
]


def try_on(workspace: Workspace, *more: str) -> int:
    return workspace.run("probe", "--scratch", "Same", "-y", "--xmp-field", "dc:rights", *more)


@pytest.mark.parametrize(("ways", "truth"), PROBES, ids=of_ways)
def test_probe_learns_what_is_true_and_leaves_nothing(
    ways: Ways, truth: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ThirdServer(ways, build) as server:
        server.world.clip("A: B", "Raw")
        before = copy.deepcopy(content(server.world))
        assert try_on(Workspace(tmp_path, server, {"link_delete": "by_title"}), "--format", "json") == 0
        told = capsys.readouterr()
        assert content(server.world) == before, told
        found = json.loads(told.out)["studio"]
        learned = {name: each for name, each in found["dialect"].items() if name in truth}
        assert learned == truth
        assert found["server"]["request_line"] > 60_000, "a connection that breaks once is no limit"


@pytest.mark.parametrize("command", ["CREATEMARKER", "SETFIELD", "CREATESEGMENT", "SETUSERFIELDS"])
def test_probe_says_where_a_write_never_showed(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ThirdServer(Ways(swallow=command), build) as server:
        before = copy.deepcopy(content(server.world))
        try_on(Workspace(tmp_path, server, {"link_delete": "by_title"}))
        assert content(server.world) == before
    assert "The server took what it has not shown: look once more, later, for" in capsys.readouterr().err


def test_an_address_as_guid_teaches_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ThirdServer(Ways(guid="link"), build) as server:
        assert Workspace(tmp_path, server, {}).run("probe", "--title", "Same", "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)["studio"]
    assert "rss_guid" not in found["dialect"]
