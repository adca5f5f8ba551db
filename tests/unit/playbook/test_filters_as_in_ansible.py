"""Filters and tests as in Ansible's documentation, on the cases where a first guess is wrong."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from msauto.documents.document import outside_node
from msauto.errors import InputError
from msauto.model.facts import Facts
from msauto.model.live import Asset
from msauto.playbook.input_files import Files, LookupContext
from msauto.playbook.templates.environment import render_text
from msauto.playbook.templates.names import AssetView
from msauto.playbook.variables import Level, TemplateScope, Variables, read_variables

SPOT = outside_node("test")
ASSET = Asset("A", attributes={"frames": "250", "frame_time": "0.04", "create_time": "2026-11-13T10:00:00"})


def render(text: str, folder: Path = Path(), opened: tuple[str, ...] = (), **variables: Any) -> Any:
    around = LookupContext({}, Files(), folder, folder, opened)
    given = {"asset": AssetView(Facts(asset=ASSET)), "now": datetime(2026, 11, 20, 18, tzinfo=UTC)}
    return render_text(text, TemplateScope(Variables(read_variables(variables, Level.PLAY, SPOT)), given, around), SPOT)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{ [{'a': 1}, {'a': 1}, {'a': 2}] | unique }}", [{"a": 1}, {"a": 2}]),
        ("{{ ['a', 'A'] | unique(case_sensitive=false) }}", ["a"]),
        ("{{ [{'a': 1}] | union([{'a': 2}]) }}", [{"a": 1}, {"a": 2}]),
        ("{{ [{'a': 1}, {'a': 2}] | difference([{'a': 1}]) }}", [{"a": 2}]),
        ("{{ [1, [none, 2]] | flatten }}", [1, 2]),
        ("{{ [1, [none, 2]] | flatten(skip_nulls=false) }}", [1, None, 2]),
        ("{{ {'a': [1]} | combine({'a': [2]}, list_merge='append') }}", {"a": [1, 2]}),
        ("{{ [{'a': 1}, {'b': 2}] | combine({'c': 3}) }}", {"a": 1, "b": 2, "c": 3}),
        ("{{ 'ab' | regex_findall('(a)(b)') }}", [["a", "b"]]),
        ("{{ 'a.b' | regex_replace('[.]', '-', count=1) }}", "a-b"),
        ("{{ 'x=1' | regex_search('(?P<v>[0-9])', '\\\\g<v>') }}", ["1"]),
        ("{{ '10' | int(base=16) }}", 16),
        ("{{ 'nope' | int(0) }}", 0),
        ("{{ 'nope' | float(0.5) }}", 0.5),
        ("{{ [{'t': ['a', 'b']}, {'t': []}] | selectattr('t', 'contains', 'a') | list | length }}", 1),
        ("{{ 'NEWS' is match('news', ignorecase=true) }}", True),
        ("{{ 'abc' is search('^b') }}", False),
        ("{{ asset.create_time | strftime('%d.%m.%Y %H:%M') }}", "13.11.2026 10:00"),
        ("{{ '%H:%M' | strftime }}", "18:00"),
        ("{{ '%Y-%m-%d %H:%M:%S' | strftime(0) }}", "1970-01-01 00:00:00"),
        ("{{ ('2026-11-20' | to_datetime('%Y-%m-%d')).year }}", 2026),
        ("{{ 'ü' | to_json }}", '"ü"'),
        ("{{ none | ternary('y', 'n', 'neither') }}", "neither"),
        ("{{ 'a,b' | split(',') | map('upper') | list }}", ["A", "B"]),
        ("{{ [3, 1, 2] | sort(reverse=true) | first }}", 3),
        ("{{ [{'n': 'b'}, {'n': 'a'}] | sort(attribute='n') | map(attribute='n') | join('+') }}", "a+b"),
        ("{{ 'x' | default('y') }}", "x"),
        ("{{ nobody | default(other | default('z')) }}", "z"),
        ("{{ nobody | d(5) + 1 }}", 6),
        ("{{ '1.10' is version('1.9', '>') }}", True),
        ("{{ '00:00:59;29' | shift(1, '29.97') }}", "00:01:00;02"),
        ("{{ '00:10:00;00' | frames('29.97') }}", 17982),
        ("{{ 17982 | timecode('29.97', drop=true) }}", "00:10:00;00"),
        ("{{ asset.frames | seconds }}", 10),
    ],
)  # fmt: skip
def test_values(text: str, value: Any) -> None:
    found = render(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ 'abc' | union(['a']) }}", "union needs a list, not str"),
        ("{{ {} | flatten }}", "flatten needs a list"),
        ("{{ [1] | combine({}) }}", "combine needs mappings, not int"),
        ("{{ {} | combine({}, list_merge='mix') }}", "unknown list_merge 'mix'"),
        ("{{ [1] | random }}", "unknown filter 'random'"),
        ("{{ 'a' | attr('b') }}", "unknown filter 'attr'"),
        ("{{ 'a' | escape }}", "nothing here is HTML"),
        ("{{ 'a' | urlencode }}", "msauto encodes what it sends"),
        ("{{ 'a' | wordwrap(1) }}", "unknown filter 'wordwrap'"),
        ("{{ 'a' is callable }}", "unknown test 'callable'"),
        ("{{ 'maybe' | bool }}", "'maybe' is neither true nor false"),
        ("{{ 'a' | regex_search('(') }}", "invalid regular expression '\\('"),
        ("{{ 'a' | regex_search('(a)', '1') }}", "is not a group"),
        ("{{ 'x' | from_json }}", "invalid JSON"),
        ("{{ asset.create_time | strftime('%9999999d') }}", "is not a valid time format"),
        ("{{ 'x' | to_datetime }}", "is not a time in the format"),
        ("{{ lookup('csv', 'x', delimeter=';') }}", "did you mean 'delimiter'"),
        ("{{ query('pipe', 'ls') }}", "unknown lookup 'pipe'"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        render(text)


@pytest.mark.parametrize(
    "text",
    [
        "{{ ('a' * 40) | regex_search('(a+)+b') }}",
        "{{ ('a' * 40) | regex_replace('(a|a)*b', '') }}",
        "{{ ('a' * 40) is match('([a-z]*)*1') }}",
        "{{ ('a' * 100000) | regex_replace('a', 'b' * 100000) }}",
        "{{ {} | to_json(indent=1000000000) }}",
        "{{ ('9' * 5000) | int }}",
    ],
)
def test_bombs(text: str) -> None:
    with pytest.raises(InputError):
        render(text)


def test_lookups_stay_inside_unless_a_setting_opens_a_folder(tmp_path: Path) -> None:
    inside, outside = tmp_path / "repository", tmp_path / "traffic"
    for folder in (inside, outside):
        folder.mkdir()
    (outside / "x.txt").write_text("open", encoding="utf-8")
    with pytest.raises(InputError, match="outside the playbook's repository") as caught:
        render("{{ lookup('file', '../traffic/x.txt') }}", inside)
    assert "[lookup] folders" in str(caught.value)
    assert render("{{ lookup('file', '../traffic/x.txt') }}", inside, (str(outside),)) == "open"
    with pytest.raises(InputError, match="outside"):
        render("{{ lookup('file', '../secret.txt') }}", inside, (str(outside),))


def test_a_filter_is_named_when_it_is_nearly_right() -> None:
    with pytest.raises(InputError, match="did you mean 'to_json'"):
        render("{{ {} | to_jsn }}")
    with pytest.raises(InputError, match="did you mean 'contains'"):
        render("{{ [] is contain([]) }}")
