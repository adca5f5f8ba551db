from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest
from msgspec import structs

from msauto.aspects.marker import DesiredMarker
from msauto.aspects.segment_arguments import DesiredSegment
from msauto.errors import InputError, SourceLocation
from msauto.model.desired import (
    ABSENT,
    ChannelRef,
    DesiredAsset,
    Intent,
    Position,
    SelectRef,
    TitleRef,
)
from msauto.model.facts import Facts, Need, NoAssetError
from msauto.model.live import Asset
from msauto.model.timecode import Timecode
from msauto.playbook.hosts import ResolveOptions
from msauto.playbook.resolve import chosen, resolve
from tests.entries import listed_entry
from tests.tables import table

NOW = datetime(2026, 11, 20, tzinfo=UTC)
FACTS = Facts(asset=Asset("News", attributes={"frames": "300", "frame_time": "0.04"}))


def intents(folder: Path, tasks: str, head: str = "", **more: object) -> tuple[Intent, ...]:
    text = f"- hosts: all\n  database: NEWS\n{head}  tasks:\n" + "\n".join(f"    {line}" for line in tasks.splitlines())
    (folder / "p.yml").write_text(text + "\n", encoding="utf-8")
    options = ResolveOptions((str(folder / "p.yml"),), server_url="http://h", env={}, now=NOW, **more)  # type: ignore[arg-type]
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
        start=Position(origin, origin), duration=Position(Timecode.parse("00:00:02:00")), fields={"keywords": "a b"}
    )
    assert isinstance(segment.start, Position)
    assert segment.start.to_frames(Fraction(25)) == 0
    assert [sourced.value for sourced in found.parts["marker"].items] == [
        DesiredMarker(at=Position(Timecode.parse(3), origin), track="Icon", fields={"rating": "3"}),
        DesiredMarker(uid=9, present=False),
    ]
    assert found.parts["link"].items[0].value.folder == ("Playout", "Tonight")
    assert found.parts["link"].items[0].value.title is ABSENT
    assert (found.parts["link"].exactly, found.parts["marker"].tracks) == (None, frozenset({"Icon"}))
    assert found.parts["restore"] is not None
    assert (found.parts["restore"].value, found.lossy, found.unfinalized) == (1800.0, True, "allow")
    assert found.parts["marker"].items[1].source.place == SourceLocation(str(tmp_path / "p.yml"), 9, 56)


def test_values_from_facts(tmp_path: Path) -> None:
    found = desired(
        tmp_path, '{title: A, markers: [{at: "{{ asset.frames - 50 }}", track: Icon, title: "{{ asset.fps }}"}]}'
    )
    marker = found.parts["marker"].items[0].value
    assert marker.at == Position(Timecode.parse(250))
    assert marker.fields == {"title": "25"}


def test_problems_that_only_facts_show_have_places(tmp_path: Path) -> None:
    intent = intents(tmp_path, '- asset: {title: A, fields: {comment: "{{ asset.frames / 7 }}"}}')[0]
    with pytest.raises(InputError, match=r"p.yml:4:43: comment must be text, .* decimal point") as caught:
        intent.evaluate(FACTS)
    assert "^" in str(caught.value)
    with pytest.raises(Need):
        intent.evaluate(Facts(entry=listed_entry((), "A")))
    with pytest.raises(NoAssetError):
        intent.evaluate(Facts(there=False))


def test_constant_parts_are_checked_beside_live_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the segment has no duration"):
        intents(tmp_path, '- asset: {title: A, segments: [{number: 1, start: 0, title: "{{ asset.title }}"}]}')
    with pytest.raises(InputError, match="which separates the values"):
        intents(tmp_path, '- asset: {title: A, xmp: {"dc:x": ["{{ asset.title }}, x", "a,b"]}}')
    with pytest.raises(InputError, match="rating must be a whole number"):
        intents(tmp_path, '- asset: {title: A, markers: [{uid: 1, rating: "{{ \'x\' }}", title: "{{ asset.title }}"}]}')


def test_rendered_text_is_not_rendered_again(tmp_path: Path) -> None:
    text = '{title: "{{ \'{{ nobody }}\' }}", fields: {comment: "{{ asset.title }}"}}'
    intent = intents(tmp_path, f"- asset: {text}")[0]
    assert intent.ref == TitleRef("NEWS", "{{ nobody }}")
    tricky = Facts(asset=Asset("{{ nobody }}"))
    found = intent.evaluate(tricky)
    assert isinstance(found, DesiredAsset)
    assert found.parts["field"]["comment"].value == "{{ nobody }}"


def test_when(tmp_path: Path) -> None:
    found = intents(
        tmp_path,
        """\
- asset: {title: "{{ nobody }}"}
  when: false
- asset: {title: B}
  when: [asset.frames > 2, "1 == 2"]
- asset: {title: C}
  when: [asset.frames > 250, asset.frames < 260]
- asset: {title: D}
  when: asset.frames > 250
- block:
    - asset: {title: E}
    - asset: {title: F}
      when: asset.frames < 250
  when: asset.frames > 250
""",
    )
    results = [(intent.ref, intent.evaluate(FACTS) is not None) for intent in found]
    assert [(ref.title, result) for ref, result in results if isinstance(ref, TitleRef)] == [
        ("C", False),
        ("D", True),
        ("E", True),
        ("F", False),
    ]


def test_loops(tmp_path: Path) -> None:
    found = intents(
        tmp_path,
        """\
- name: "{{ promo.t }}"
  asset: {title: "{{ n }} {{ promo.t }} {{ inner }}"}
  vars: {inner: "{{ promo.t | upper }}"}
  loop: [{t: a}, {t: "{{ 'b' }}"}]
  loop_control: {loop_var: promo, index_var: n}
- asset: {title: "{{ item }}"}
  loop: "{{ range(2) }}"
""",
    )
    assert [intent.ref for intent in found] == [TitleRef("NEWS", each) for each in ("0 a A", "1 b B", "0", "1")]
    assert [intent.source.task for intent in found[:2]] == ["a", "b"]


def test_imports_blocks_and_files(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "more.yml").write_text("- asset: {title: 'more {{ x }} {{ y }}'}\n- import_tasks: deep.yml\n")
    (tmp_path / "sub" / "deep.yml").write_text("- asset: {title: 'deep {{ x }}'}\n")
    (tmp_path / "vars.yml").write_text("y: 2\n")
    (tmp_path / "other.yml").write_text("- {hosts: all, database: D, tasks: [{asset: {title: 'other {{ x }}'}}]}\n")
    head = "  vars_files: vars.yml\n  vars: {x: 1, y: 1}\n"
    found = intents(tmp_path, "- import_tasks: sub/more.yml\n  vars: {x: 3}", head)
    assert [intent.ref for intent in found] == [TitleRef("NEWS", "more 3 2"), TitleRef("NEWS", "deep 3")]
    (tmp_path / "all.yml").write_text("- {import_playbook: other.yml, vars: {x: 9}}\n- {import_playbook: p.yml}\n")
    options = ResolveOptions((str(tmp_path / "all.yml"),), server_url="http://h", env={}, now=NOW)
    resolved = resolve(options)
    assert resolved.work[0].intents[0].ref == TitleRef("D", "other 9")
    assert len(resolved.work[0].intents) == 3
    assert len(resolved.inputs) == 6


@table("playbook/tags", "tags", "wanted_tags", "skipped", "runs")
def test_tags(tags: str, wanted_tags: str, skipped: str, runs: bool) -> None:
    assert chosen(frozenset(tags.split()), wanted_tags.split(), skipped.split()) is runs


@table("playbook/tags_that_match_nothing", "tags", "skipped", "problem")
def test_tags_that_match_nothing(tmp_path: Path, tags: tuple[str, ...], skipped: tuple[str, ...], problem: str) -> None:
    tasks = "- asset: {title: A}\n  tags: prep\n- asset: {title: B}\n  tags: night"
    if not problem:
        assert len(intents(tmp_path, tasks, tags=tags, skip_tags=skipped)) == 2
        return
    with pytest.raises(InputError) as raised:
        intents(tmp_path, tasks, tags=tags, skip_tags=skipped)
    (found,) = raised.value.problems
    assert f"{found.place}: {found.message}\n  → {found.remedy}" == problem


def test_the_problems_of_invalid_tasks_are_reported_with_those_of_valid_ones(tmp_path: Path) -> None:
    tasks = """\
- asset: {title: A, fields: {comment: x}}
- asset: {title: B, fields: {coment: x}}
- asset: {title: C, segments: [{number: 1, start: 0, duration: 0}]}
- block:
    - asset: {title: D}
      when: asset.nonsense(
- command: {title: E}
- asset: {title: F}
"""
    with pytest.raises(InputError) as raised:
        intents(tmp_path, tasks)
    found = [(each.place.line, each.message) for each in raised.value.problems if each.place is not None]
    assert [line for line, _ in found] == [5, 6, 9, 10]
    assert found[0][1] == "unknown key 'coment'"
    assert found[1][1] == "the duration of a segment cannot be 0"
    assert all(each.excerpt for each in raised.value.problems)


def test_a_constant_task_has_the_conditions_of_its_block(tmp_path: Path) -> None:
    tasks = "- block: [{asset: {title: A, fields: {comment: x}}}]\n  when: asset.frames > limit"
    few, many = (intents(tmp_path, tasks, f"  vars: {{limit: {limit}}}\n")[0] for limit in (299, 300))
    assert few.evaluate(FACTS) is not None
    assert many.evaluate(FACTS) is None


def test_tasks_that_the_tags_leave_out_are_known(tmp_path: Path) -> None:
    tasks = """- {asset: {title: A}, tags: [a]}
- {asset: {title: B, markers: [{at: 0, track: Icon}]}, tags: [b]}
- {asset: {title: "{{ item }}"}, loop: [C, "{{ week }}"], tags: [b]}
- {rss: {channel: ticker, items: []}, tags: [b]}
- {command: {name: PARTNER_EXPORT_VERSION, title: D}, tags: [b]}
- {asset: {title: E, state: absent}, tags: [never, b]}
"""
    assert [each.ref for each in intents(tmp_path, tasks, tags=("a",))] == [TitleRef("NEWS", "A")]
    options = ResolveOptions((str(tmp_path / "p.yml"),), server_url="http://h", env={}, now=NOW, tags=("a",))
    (work,) = resolve(options).work
    assert [each.ref for each in work.left_out] == [TitleRef("NEWS", "B"), ChannelRef("ticker")]
    (work,) = resolve(structs.replace(options, tags=("a", "b"), extra_vars=("week=48",))).work
    assert (len(work.intents), work.left_out) == (7, ())
