"""The same playbook, another media server: the same end state, the fewest requests, and nothing left to plan.

The real command line runs against the second media server, one difference at a time. The numbers are those of the
issue. Two fields, two XMP fields, one wrong segment, a marker moved by its uid, a new marker and a new link take
2 + 1 + 2 + 2 + 1 requests. Planning again takes three GETs: the asset, its XMP fields and the folder of the link.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from msauto.cli.main import main
from tests.acceptance.other_server import OtherServer
from tests.acceptance.other_world import Clip, Habits, World

TITLE = "Новости\\дня / é: 50% @ night? 'A' & \"B\""
STORY = """
- name: Describe
  asset:
    title: "{{ title }}"
    folder: Raw/2026
    fields: {comment: "a&b+c %\\nline, two", user_0: Kanal 5}
    xmp: {"dc:subject": [news, evening], "dc:title": "A & B + 50% = x"}
    segments:
      - {number: 1, start: 0, duration: "00:12:30:00", title: Part 1}
      - {number: 2, start: 30000, duration: 100, title: Part 2}
    markers:
      - {uid: 4, at: "00:00:02:00"}
      - {at: "00:12:30:00", track: Cue Point, title: Ad break, comment: x, user: y, keywords: z, rating: 3}
    links:
      - {folder: Playout/Tonight}
"""
TICKER = """
- rss:
    channel: ticker
    items:
      - {guid: n-1, file: n-1.txt, text: Headline}
      - guid: n-2
        file: n-2.xml
        item: {title: "T & <b>", link: "http://x/?a=1&b=2", pubDate: 2026-11-20T10:00:00+01:00}
      - {guid: n-0, state: absent}
    exactly: true
"""


@dataclass
class Workspace:
    """A folder with a playbook and an inventory, and the server that they are played on."""

    folder: Path
    server: OtherServer
    dialect: dict[str, str]

    def run(self, command: str, tasks: str, *flags: str) -> int:
        """Run the command line; the server's log is that of this run."""
        server = {"url": self.server.url, "dialect": self.dialect}
        inventory = {"all": {"hosts": {"studio": {"server": server, "database": "NEWS", "title": TITLE}}}}
        (self.folder / "inventory.yml").write_text(json.dumps(inventory), encoding="utf-8")
        body = tasks.strip().replace("\n", "\n    ")
        (self.folder / "play.yml").write_text(f"- hosts: all\n  tasks:\n    {body}\n", encoding="utf-8")
        self.server.log.clear()
        places = ["-i", str(self.folder / "inventory.yml"), "--state-dir", str(self.folder / "state")]
        return main([command, str(self.folder / "play.yml"), *places, "--format", "json", *flags])


def world() -> World:
    found = World(rss={"ticker": [{"guid": "n-0", "file": "n-0.txt", "title": "old"}, {"guid": "gone", "title": "o"}]})
    found.make_clip(
        TITLE,
        "Raw/2026",
        fields={"comment": "raw", "user_0": "x"},
        xmp={"dc:subject": ["old"], "dc:title": ["T"], "ext:other": ["keep", "me"]},
        segments={
            1: {"start": 0, "duration": 100, "title": "Part 1"},
            2: {"start": 30000, "duration": 100, "title": "Part 2"},
        },
        markers={
            4: {"pos": 10, "track": "Cue Point", "title": "Ad", "comment": "old words", "rating": "2"},
            7: {"pos": 20, "track": "General", "title": "x"},
        },
    )
    found.make_clip("Другой ролик")
    found.make_clip("At the top", "")
    for folder in ("Playout/Tonight", "Playout/Other/Deep", "Raw/Empty"):
        found.make_folder(folder)
    return found


def content(clip: Clip) -> dict[str, Any]:
    """What the story compares: without empty texts and without ids that the server assigns."""
    markers = sorted(clip["markers"].values(), key=lambda marker: int(marker["pos"]))
    return {
        "fields": clip["fields"],
        "xmp": clip["xmp"],
        "segments": clip["segments"],
        "markers": [{name: value for name, value in marker.items() if value != ""} for marker in markers],
        "links": [(link["folder"], link["title"]) for link in clip["links"]],
    }


AFTER = {
    "fields": {"comment": "a&b+c %\nline, two", "user_0": "Kanal 5"},
    "xmp": {"dc:subject": ["news", "evening"], "dc:title": ["A & B + 50% = x"], "ext:other": ["keep", "me"]},
    "segments": {
        1: {"start": 0, "duration": 18750, "title": "Part 1"},
        2: {"start": 30000, "duration": 100, "title": "Part 2"},
    },
    "markers": [
        {"pos": 20, "track": "General", "title": "x"},
        {"pos": 50, "track": "Cue Point", "title": "Ad", "comment": "old words", "rating": "2"},
        {"pos": 18750, "track": "Cue Point", "title": "Ad break", "comment": "x", "user": "y", "keywords": "z"}
        | {"rating": "3"},
    ],
    "links": [(("Playout", "Tonight"), TITLE)],
}  # fmt: skip

_VALUES: dict[str, list[Any]] = {
    "attrs": ["full", "documented", "untitled"],
    "listing_attrs": ["few"],
    "envelope": ["wrapped", "stray", "cp1251", "crlf", "namespace", "bom", "nodecl", "prefixed", "comment"],
    "xmp": ["named", "elements", "nested", "lines", "rdf"],
    "xmp_ask": ["all"],
    "errors": ["text", "html", "xml"],
    "bodies": ["OK", "<p>Done<br>error count: 0", "<result><status>0</status></result>", "Object found and changed"],
    "seg_title": ["name", "both", "auto"],
    "seg_clash": ["overwrite", "overlap"],
    "keywords": [False],
    "marker_attrs": ["all"],
    "marker_unsent": ["keep"],
    "uid_start": [0, -5, 2**31 + 5, 2**62],
    "track_case": ["lower", "joined"],
    "twin": [True],
    "links_id": [False],
    "link_lookup": [True],
    "wire": ["closed", "rude", "chunked", "http10", "untyped", "gzip", "html_typed"],
    "head": [False],
    "times": ["fraction"],
    "numbers": ["zeros", "dot"],
    "flag": ["True", "1", "yes"],
    "nfd": [True],
    "folder_attr": ["slash", "trailing", "backslashes", "database"],
    "frame_time": [4, 6],
    "reverse": [True],
    "decode_first": [True],
}
HABITS = [{name: value} for name, values in _VALUES.items() for value in values]
HABITS += [{"listing": form, "query_root": "database"} for form in ("chain", "flat", "level", "dbroot")]
HABITS += [{"listing": "chain", "query_root": root} for root in ("slash", "none")]
HABITS += [{"marker_attrs": "all", "rating_default": "0"}]


def of_habits(habits: dict[str, Any]) -> str:
    return "-".join(f"{name}={str(value)[:12]}" for name, value in habits.items())


def play(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    habits: dict[str, Any],
    *,
    dialect: dict[str, str] | None = None,
    writes: int = 8,
    reads: int = 3,
) -> None:
    """Plan, apply and plan the story again, and look at all that can be counted."""
    there = world()
    with OtherServer(Habits(**habits), there) as server:
        workspace = Workspace(folder, server, dialect or {})
        assert workspace.run("plan", STORY) == 0, capsys.readouterr()
        planned = json.loads(capsys.readouterr().out)
        assert (server.writes, len(server.reads)) == ([], reads)
        assert workspace.run("apply", STORY, "-y") == 0, capsys.readouterr()
        applied = json.loads(capsys.readouterr().out)
        sent = [f"{request['method']} {request['path']}" for request in planned["targets"][0]["requests"]]
        assert server.writes == sent, "what is shown is what is sent"
        assert len(sent) == writes == applied["summary"]["requests"]
        assert content(there.clips[0]) == AFTER
        assert workspace.run("plan", STORY, "--detailed-exitcode") == 0, capsys.readouterr()
        again = json.loads(capsys.readouterr().out)
        assert (again["targets"], server.writes, len(server.reads)) == ([], [], reads)


@pytest.mark.scale
@pytest.mark.parametrize("habits", HABITS, ids=of_habits)
def test_the_story_on_a_server_of_other_habits(
    habits: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # One read more: whether a folder has the name of the database, or whether another clip has the very title.
    more = habits.get("folder_attr") == "database" or bool(habits.get("nfd"))
    play(tmp_path, capsys, habits, reads=4 if more else 3)


@pytest.mark.parametrize(
    ("habits", "dialect", "writes"),
    [
        ({"seg_clash": "overwrite"}, {"segment_update": "overwrite"}, 7),
        ({"marker_unsent": "keep"}, {"marker_update": "changed"}, 8),
    ],
    ids=["segment_update", "marker_update"],
)
def test_the_story_where_the_inventory_knows_the_habit(
    habits: dict[str, Any],
    dialect: dict[str, str],
    writes: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    play(tmp_path, capsys, habits, dialect=dialect, writes=writes)


@pytest.mark.scale
@pytest.mark.parametrize("form", ["attr", "named", "elements", "nested", "lines", "rdf", "text"])
@pytest.mark.parametrize("ask", ["field", "field_empty"])
def test_the_story_where_xmp_fields_must_be_asked_by_name(
    form: str, ask: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    play(tmp_path, capsys, {"xmp": form, "xmp_ask": ask}, reads=5)  # one that says so, and one for each field


@pytest.mark.scale
@pytest.mark.parametrize("guid", ["item", "file", "stem"])
@pytest.mark.parametrize("form", ["rss", "atom", "bare", "untitled"])
@pytest.mark.parametrize("text", ["title", "both"])
def test_a_ticker_whatever_names_its_items(
    guid: str, form: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = world()
    habits = Habits(rss_guid=guid, rss_form=form, rss_text=text, rss_date="rfc822")
    with OtherServer(habits, there) as server:
        workspace = Workspace(tmp_path, server, {})
        assert workspace.run("apply", TICKER, "-y") == 0, capsys.readouterr()
        assert sorted(write.split()[0] for write in server.writes) == ["DELETE", "DELETE", "PUT", "PUT"]
        first, second = there.rss["ticker"]
        assert "Headline" in {first.get("title"), first.get("description")}
        assert (second["title"], second["link"]) == ("T & <b>", "http://x/?a=1&b=2")
        assert workspace.run("plan", TICKER, "--detailed-exitcode") == 0, capsys.readouterr()
        assert len(server.reads) == 1
        second["title"] = "somebody was here"
        assert workspace.run("apply", TICKER, "-y") == 0, capsys.readouterr()
        assert (len(server.writes), second["title"], there.rss["ticker"][1]["title"]) == (
            1,
            "somebody was here",
            "T & <b>",
        )


@pytest.mark.scale
@pytest.mark.parametrize("errors", ["status", "text", "html", "xml"])
@pytest.mark.parametrize("code", [200, 204, 404])
def test_a_deletion_however_it_is_answered(
    errors: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = world()
    tasks = "- asset: {title: Другой ролик, state: absent}\n- asset: {title: Never was, state: absent}"
    with OtherServer(Habits(errors=errors, delete_answer=code), there) as server:
        workspace = Workspace(tmp_path, server, {})
        assert workspace.run("apply", tasks, "-y") == 4
        assert server.writes == []
        assert workspace.run("apply", tasks, "-y", "--allow-delete", "1") == 0, capsys.readouterr()
        assert len(server.writes) == 1
        assert there.find("Другой ролик") is None
        assert workspace.run("plan", tasks, "--detailed-exitcode") == 0, capsys.readouterr()


def test_no_clip_is_deleted_for_what_may_be_a_link(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The server does not report the home folder of a clip, and the selected folder shows a clip that others show."""
    there = world()
    linked = there.make_clip("Linked", "Far")
    linked["links"].append({"folder": ("Raw",), "title": "Linked", "link_id": there.next_id()})
    with OtherServer(Habits(attrs="sparse"), there) as server:
        workspace = Workspace(tmp_path, server, {})
        tasks = "- asset: {select: {folder: Raw}, state: absent}"
        assert workspace.run("apply", tasks, "-y", "--allow-delete", "9") == 1
        told = [target["error"] for target in json.loads(capsys.readouterr().out)["targets"] if target["error"]]
        assert len(told) == 1
        assert "Far/Linked, Raw/Linked" in told[0]
        assert workspace.run("apply", tasks, "-y", "--allow-delete", "9", "--keep-going") == 3
        assert len(server.writes) == 1
        assert there.find("Другой ролик") is None
        assert there.find("Linked") is linked


def test_a_contradiction_names_both_tasks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = '- name: Cards\n  asset: {title: "{{ title }}", fields: {comment: a}}\n'
    other = "- name: Friday\n  asset: {select: {folder: Raw/2026}, fields: {comment: b}}"
    with OtherServer(Habits(), world()) as server:
        workspace = Workspace(tmp_path, server, {})
        assert workspace.run("plan", first + other) == 1
        (target,) = json.loads(capsys.readouterr().out)["targets"]
        assert "'a' by the task 'Cards' (" in target["error"]
        assert "'b' by the task 'Friday' (" in target["error"]


def test_a_contradiction_about_an_item_shows_what_each_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tasks = "\n".join(f"- rss: {{channel: ticker, items: [{{guid: a, text: {text}}}]}}" for text in ("one", "two"))
    with OtherServer(Habits(), world()) as server:
        assert Workspace(tmp_path, server, {}).run("plan", tasks) == 1
        (target,) = json.loads(capsys.readouterr().out)["targets"]
        assert "'one' in a.txt by" in target["error"]
        assert "Wanted" not in target["error"], "no names of our code"


def test_what_a_segment_made_anew_loses_is_not_shown_as_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = world()
    there.clips[0]["segments"][1] |= {"track": "V2", "rating": "3"}
    tasks = '- asset: {title: "{{ title }}", lossy: true, segments: [{number: 1, start: 0, duration: 99}]}'
    with OtherServer(Habits(), there) as server:
        workspace = Workspace(tmp_path, server, {})
        assert workspace.run("apply", tasks, "-y") == 0
        (change,) = json.loads(capsys.readouterr().out)["targets"][0]["changes"]
        assert (change["before"]["track"], change["before"]["rating"]) == ("V2", "3")
        lost = {"track": None, "rating": None}
        assert change["after"] == {"number": 1, "start": 0, "duration": 99, "title": "Part 1"} | lost
        assert not change["reversible"]
