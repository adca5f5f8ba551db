"""A problem, and a change, is where it was written, whatever lies between: templates, loops, imports, variables."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from msauto.errors import InputError
from msauto.model.desired import DesiredAsset, DesiredChannel
from msauto.model.facts import Facts
from msauto.model.live import Asset
from msauto.playbook.hosts import ResolveOptions
from msauto.playbook.resolve import resolve
from msauto.playbook.validate import validate
from tests.tables import table

INVENTORY = """\
all:
  hosts:
    h:
      server: {url: "http://h"}
      database: D
      broken: "{{ nobody_here }}"
      length: "1:2"
"""
OK = "- {hosts: all, tasks: [{asset: {title: A}}]}\n"


def found(folder: Path, playbook: str, **files: str) -> list[str]:
    """Return ``file:line:column: message`` and the sign under the caret for each problem."""
    (folder / "i.yml").write_text(INVENTORY, encoding="utf-8")
    (folder / "p.yml").write_text(playbook, encoding="utf-8")
    for name, text in files.items():
        (folder / f"{name}.yml").write_text(text, encoding="utf-8")
    problems = validate([str(folder / "p.yml")], ResolveOptions((), (str(folder / "i.yml"),), env={}))
    for problem in problems:
        line, caret = problem.excerpt.split("\n")
        assert caret.rstrip().endswith("^")
        assert line[len(caret) - 1 :].strip(), "the caret points at something"
    return [f"{problem.place}: {problem.message}".replace(f"{folder}/", "") for problem in problems]


@table("playbook/places", "playbook", "files", "expected")
def test_where_it_was_written(playbook: str, files: dict[str, str], expected: str, tmp_path: Path) -> None:
    assert found(tmp_path, playbook, **files) == [expected]


def test_while_planning_as_well(tmp_path: Path) -> None:
    """What only the live asset shows has its place too: the survey meets it through the intent."""
    assert found(tmp_path, OK) == []
    task = "    - loop: [1]\n      asset:\n        title: A\n        fields: {layer: '{{ asset.frmes }}'}\n"
    text = f"- hosts: all\n  tasks:\n{task}"
    assert found(tmp_path, text) == []
    resolved = resolve(ResolveOptions((str(tmp_path / "p.yml"),), (str(tmp_path / "i.yml"),), env={}))
    with pytest.raises(InputError) as caught:
        resolved.work[0].intents[0].evaluate(Facts(asset=Asset("A", attributes={"frames": "5"})))
    (problem,) = caught.value.problems
    assert (problem.place.line, problem.place.column) == (6, 25) if problem.place else False
    assert problem.remedy == "did you mean 'frames'?"


# Where a change comes from: its key (json, «A change»)


PLAYBOOK = """\
- name: Tonight's news is ready for air
  hosts: all
  database: NEWS
  tasks:
    - name: Describe the episode
      asset:
        title: Evening News
        folder: Raw/2026
        fields: {comment: Ready, user_0: Kanal 5}
        xmp:
          "dc:subject": [news, evening]
        segments:
          - {number: 1, start: 0, duration: 9}
        markers: [{uid: 4, at: 3}]
        exactly: {markers: true, segments: true}
        restore: true
    - rss:
        channel: ticker
        items: [{guid: n-1, text: Headline}]
        exactly: true
"""


def test_a_change_points_at_the_key_that_it_comes_from(tmp_path: Path) -> None:
    file = tmp_path / "news.yml"
    file.write_text(PLAYBOOK, encoding="utf-8")
    options = ResolveOptions((str(file),), server_url="http://h", env={}, now=datetime(2026, 11, 20, tzinfo=UTC))
    asset, channel = resolve(options).work[0].intents
    found, feed = asset.evaluate(Facts(asset=Asset("Evening News"))), channel.evaluate(Facts(there=False))
    assert isinstance(found, DesiredAsset)
    assert isinstance(feed, DesiredChannel)
    sourced = {
        **found.parts["field"], **found.parts["xmp"], "folder": found.folder,
        "title": found.title, "restore": found.parts["restore"],
        "segment": found.parts["segment"].items[0], "marker": found.parts["marker"].items[0], "item": feed.items[0],
    }  # fmt: skip
    places = {name: (one.source.place.line, one.source.place.column) for name, one in sourced.items() if one}
    assert places == {
        "comment": (9, 18), "user_0": (9, 34), "dc:subject": (11, 11), "folder": (8, 9), "title": (7, 9),
        "restore": (16, 9), "segment": (13, 13), "marker": (14, 19), "item": (19, 17),
    }  # fmt: skip
    whole = (found.parts["marker"].exactly, found.parts["segment"].exactly, feed.exactly)
    assert [(one.place.line, one.place.column) for one in whole if one] == [(15, 19), (15, 34), (20, 9)]
