from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from msauto.aspects.marker import DesiredMarker
from msauto.aspects.segment_arguments import DesiredSegment
from msauto.errors import InputError, SourceLocation
from msauto.model.desired import (
    ABSENT,
    DesiredAsset,
    DesiredChannel,
    Intent,
    Position,
    SelectRef,
)
from msauto.model.facts import Facts, Need, NoAssetError
from msauto.model.live import Asset
from msauto.model.timecode import Timecode
from msauto.playbook.hosts import ResolveOptions
from msauto.playbook.resolve import chosen, resolve
from tests.entries import listed_entry
from tests.tables import CASES, table

NOW = datetime(2026, 11, 20, tzinfo=UTC)
FACTS = Facts(asset=Asset("News", attributes={"frames": "300", "frame_time": "0.0400"}))


def intents(folder: Path, tasks: str, head: str = "", **more: object) -> tuple[Intent, ...]:
    text = f"- hosts: all\n  database: NEWS\n{head}  tasks:\n" + "\n".join(
        f"    {line}" for line in tasks.splitlines()
    )
    (folder / "p.yml").write_text(text + "\n", encoding="utf-8")
    playbooks = (str(folder / "p.yml"),)
    options = ResolveOptions(playbooks, server_url="http://h", env={}, now=NOW, **more)  # type: ignore[arg-type]
    return resolve(options).work[0].intents


def desired(folder: Path, args: str, facts: Facts = FACTS) -> DesiredAsset:
    found = intents(folder, f"- asset: {args}")[0].evaluate(facts)
    assert isinstance(found, DesiredAsset)
    return found


def test_where_and_expect(tmp_path: Path) -> None:
    args = "select: {where: [asset.frames > 250, 'asset.title is match(\"EP\")'], expect: {min: 1, max: 5}}"
    ref = intents(tmp_path, f"- asset: {{{args}}}")[0].ref
    assert isinstance(ref, SelectRef)
    assert (ref.expect_min, ref.expect_max) == (1, 5)
    assert ref.where is not None
    assert ref.where(Facts(entry=listed_entry((), "EP 1", attributes={"frames": "251"})))
    assert not ref.where(Facts(entry=listed_entry((), "EP 1", attributes={"frames": "250"})))
    with pytest.raises(Need):
        ref.where(Facts(entry=listed_entry((), "EP 1")))


def test_values_and_places(tmp_path: Path) -> None:
    found = desired(
        tmp_path,
        """
        title: News
        fields: {comment: "", user_0: 5, first_frame: "10:00:01:00", icon_pos: 7}
        xmp: {"dc:subject": [a, b], "dc:title": T, "dc:empty": "", "dc:none": []}
        segments: [{start: "10:00:00:00", duration: "00:00:02:00", keywords: a b}]
        markers: [{at: 3, track: Icon, rating: 3}, {uid: 9, state: absent}]
        links: [{folder: /Playout/Tonight/}]
        exactly: {segments: true, markers: {tracks: [Icon]}, links: false}
        origin: "10:00:00:00"
        restore: true
        lossy: true
        unfinalized: allow""",
    )
    origin = Timecode.parse("10:00:00:00")
    assert {name: sourced.value for name, sourced in found.parts["field"].items()} == {
        "comment": "",
        "user_0": "5",
        "first_frame": Position(Timecode.parse("10:00:01:00"), origin),
        "icon_pos": Position(Timecode.parse(7), origin),
    }
    assert {name: sourced.value.values for name, sourced in found.parts["xmp"].items()} == {
        "dc:subject": ("a", "b"),
        "dc:title": ("T",),
        "dc:empty": (),
        "dc:none": (),
    }
    segment = found.parts["segment"].items[0].value
    assert segment == DesiredSegment(
        start=Position(origin, origin),
        duration=Position(Timecode.parse("00:00:02:00")),
        fields={"keywords": "a b"},
    )
    assert isinstance(segment.start, Position)
    assert segment.start.to_frames(Fraction(25)) == 0
    assert [sourced.value for sourced in found.parts["marker"].items] == [
        DesiredMarker(at=Position(Timecode.parse(3), origin), track="Icon", fields={"rating": "3"}),
        DesiredMarker(uid=9, present=False),
    ]
    assert found.parts["link"].items[0].value.folder == ("Playout", "Tonight")
    assert found.parts["link"].items[0].value.title is ABSENT
    assert (found.parts["link"].exactly, found.parts["marker"].tracks) == (
        None,
        frozenset({"Icon"}),
    )
    assert found.parts["restore"] is not None
    assert (found.parts["restore"].value, found.lossy, found.unfinalized) == (1800.0, True, "allow")
    assert found.parts["marker"].items[1].source.place == SourceLocation(
        str(tmp_path / "p.yml"), 9, 56
    )


def test_values_from_facts(tmp_path: Path) -> None:
    found = desired(
        tmp_path,
        '{title: A, markers: [{at: "{{ asset.frames - 50 }}", track: Icon, title: "{{ asset.fps }}"}]}',
    )
    marker = found.parts["marker"].items[0].value
    assert marker.at == Position(Timecode.parse(250))
    assert marker.fields == {"title": "25"}


def test_problems_that_only_facts_show_have_places(tmp_path: Path) -> None:
    intent = intents(tmp_path, '- asset: {title: A, fields: {comment: "{{ asset.frames / 7 }}"}}')[
        0
    ]
    with pytest.raises(
        InputError, match=r"p.yml:4:43: comment must be text, .* decimal point"
    ) as caught:
        intent.evaluate(FACTS)
    assert "^" in str(caught.value)
    with pytest.raises(Need):
        intent.evaluate(Facts(entry=listed_entry((), "A")))
    with pytest.raises(NoAssetError):
        intent.evaluate(Facts(exists=False))


@table("playbook/tags", "tags", "wanted_tags", "skipped", "runs")
def test_tags(tags: str, wanted_tags: str, skipped: str, runs: bool) -> None:
    assert chosen(frozenset(tags.split()), wanted_tags.split(), skipped.split()) is runs


# Where a change comes from: its key (json, «A change»)


def test_a_change_points_at_the_key_that_it_comes_from() -> None:
    file = CASES / "playbook" / "evening_news.yml"
    options = ResolveOptions(
        (str(file),), server_url="http://h", env={}, now=datetime(2026, 11, 20, tzinfo=UTC)
    )
    asset, channel = resolve(options).work[0].intents
    found, feed = (
        asset.evaluate(Facts(asset=Asset("Evening News"))),
        channel.evaluate(Facts(exists=False)),
    )
    assert isinstance(found, DesiredAsset)
    assert isinstance(feed, DesiredChannel)
    sourced = {
        **found.parts["field"], **found.parts["xmp"], "folder": found.folder,
        "title": found.title, "restore": found.parts["restore"],
        "segment": found.parts["segment"].items[0], "marker": found.parts["marker"].items[0], "item": feed.items[0],
    }  # fmt: skip
    places = {
        name: (one.source.place.line, one.source.place.column)
        for name, one in sourced.items()
        if one
    }
    assert places == {
        "comment": (9, 18), "user_0": (9, 34), "dc:subject": (11, 11), "folder": (8, 9), "title": (7, 9),
        "restore": (16, 9), "segment": (13, 13), "marker": (14, 19), "item": (19, 17),
    }  # fmt: skip
    whole = (found.parts["marker"].exactly, found.parts["segment"].exactly, feed.exactly)
    assert [(one.place.line, one.place.column) for one in whole if one] == [
        (15, 19),
        (15, 34),
        (20, 9),
    ]
