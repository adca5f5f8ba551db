from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from msauto.documents.document import outside_node
from msauto.errors import InputError
from msauto.model.facts import Facts, Need, NoAssetError
from msauto.model.live import Asset, Marker
from msauto.playbook.input_files import Files, LookupContext
from msauto.playbook.templates.environment import evaluate_expression, render_text
from msauto.playbook.templates.names import AssetView, EnvView
from msauto.playbook.variables import Level, TemplateScope, Variables, read_variables

SPOT = outside_node("test")
ASSET = Asset(
    "EP 1",
    attributes={"frames": "30000", "frame_time": "0.0333666667", "create_time": "2026-11-13T10:00:00"},
    markers=(Marker(1, 250, {"track": "Icon"}),),
)
Render = Callable[[str], Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "msauto.toml").touch()
    inner = tmp_path / "plays"
    inner.mkdir()
    return inner


def scope(folder: Path, facts: Facts | None = None, **variables: Any) -> TemplateScope:
    around = LookupContext({"HOME_TOWN": "Oslo"}, Files(), folder, folder.parent)
    given = {
        "asset": AssetView(facts),
        "env": EnvView(around.env),
        "now": datetime(2026, 11, 20, tzinfo=UTC),
    }
    return TemplateScope(Variables(read_variables(variables, Level.PLAY, SPOT)), given, around)


@pytest.fixture
def render(folder: Path) -> Render:
    names = scope(
        folder,
        Facts(asset=ASSET),
        show={"title": "News", "items": [1, 2]},
        version="3.10",
        later="{{ asset.frames + 1 }}",
        raw="{{ '{{ nobody }}' }}",
        words=["a", "b"],
    )
    return lambda text: render_text(text, names, SPOT)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{ asset.frames }}", 30000),
        ("{{ asset['frames'] }}\n", 30000),
        ("{{ asset.frames }} frames", "30000 frames"),
        ("{{ version }}", "3.10"),
        ("{{ show }}", {"title": "News", "items": [1, 2]}),
        ("{{ show.title ~ 5 }}", "News5"),
        ("{{ show['items'] | length }}", 2),
        ("{{ later }}", 30001),
        ("{{ raw }}", "{{ nobody }}"),
        ("{{ asset.fps }}", Fraction(30000, 1001)),
        ("{{ asset.comment | default('none') }}", "none"),
        ("{{ asset.comment is defined }}", False),
        ("{{ asset.markers[0].frame }}", 250),
        ("{{ asset.markers | map(attribute='track') | list }}", ["Icon"]),
        ("{{ asset.create_time.year }}", 2026),
        ("{{ env.HOME_TOWN }}", "Oslo"),
        ("{{ env.NOWHERE | default('x') }}", "x"),
        ("{{ now.year }}", 2026),
        ("{% if 1 %}a{% endif %}\n", "a\n"),
        ("{{ none }}", None),
        ("{{ range(3) }}", [0, 1, 2]),
        ("{{ {'a': 1} | combine({'b': {'c': 1}}, {'b': {'d': 2}}, recursive=true) }}", {"a": 1, "b": {"c": 1, "d": 2}}),
        ("{{ 'abc' | regex_replace('b(.)', '\\\\1!') }}", "ac!"),
        ("{{ 'EP 12' | regex_search('[0-9]+') }}", "12"),
        ("{{ 'EP 12' | regex_search('(.)(.)', '\\\\2') }}", ["P"]),
        ("{{ 'x' | regex_search('y') }}", ""),
        ("{{ show | to_json | from_json == show }}", True),
        ("{{ {'a': 1} | dict2items }}", [{"key": "a", "value": 1}]),
        ("{{ words | zip([1, 2]) }}", [["a", 1], ["b", 2]]),
        ("{{ true | ternary('y', 'n') }}", "y"),
        ("{{ '/a/b.mxf' | basename }}", "b.mxf"),
        ("{{ 'yes' | bool }}", True),
        ("{{ '12' | int + 1 }}", 13),
        ("{{ 'x' | int(5) }}", 5),
        ("{{ asset.title is match('EP') and asset.title is search('1$') }}", True),
        ("{{ '2.9.87' is version('2.10', '<') }}", True),
        ("{{ '2.0' is version('2') }}", True),
        ("{{ '00:00:10:00' | frames(25) }}", 250),
        ("{{ 1800 | timecode('29.97', drop=true) }}", "00:01:00;02"),
        ("{{ 250 | timecode(25) }}", "00:00:10:00"),
        ("{{ asset.frames | timecode }}", "00:16:40:00"),
        ("{{ 250 | seconds(25) }}", 10),
        ("{{ '00:00:10:00' | shift('-00:00:01:00', 25) }}", "00:00:09:00"),
        ("{{ 250 | shift(-50) }}", 200),
        ("{{ [3, 1] | sort | join(', ') }}", "1, 3"),
        ("{{ 'a' ~ 1 ~ none }}", "a1None"),
    ],
)
def test_values(text: str, value: Any, render: Render) -> None:
    found = render(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ nobody }}", "undefined variable 'nobody'"),
        ("{{ wrds }}", "did you mean 'words'"),
        ("{{ show.titel }}", "did you mean 'title'"),
        ("{{ asset.frmes }}", "did you mean 'frames'"),
        ("{{ asset.frmes }} x", "did you mean 'frames'"),
        ("{{ env.HOME_TWN }}", "did you mean 'HOME_TOWN'"),
        ("{{ nobody.x.y }}", "undefined variable 'nobody'"),
        ("{{ 'x' | int }}", "the template fails"),
        ("{{ words.append }}", "the template"),
        ("{{ words.append(1) }}", "not allowed"),
        ("{{ asset._facts }}", "does not report '_facts'"),
        ("{{ asset.__class__ }}", "does not report '__class__'"),
        ("{{ ().__class__.__bases__ }}", "not allowed"),
        ("{{ ''['__class__'] }}", "not allowed"),
        ("{{ '{0.__class__}'.format(1) }}", "not allowed"),
        ("{{ lookup.__globals__ }}", "not allowed"),
        ("{{ lookup('pipe', 'id') }}", "unknown lookup 'pipe'"),
        ("{{ cycler }}", "undefined variable 'cycler'"),
        ("{% include 'x' %}", "the template fails"),
        ("{{ '2.x' is version('1') }}", "is not a valid version"),
        ("{{ 1 | frames('abc') }}", "the template fails"),
        ("{{ '00:01:00;00' | frames('29.97') }}", "drop frame omits it"),
        ("{{ 5 | shift(-6) }}", "before the start"),
    ],
)
def test_errors(text: str, message: str, render: Render) -> None:
    with pytest.raises(InputError, match=message):
        render(text)


@pytest.mark.parametrize(
    "text",
    [
        "{{ 9 ** (9 ** 9) }}",
        "{{ 'x' * 10 ** 9 }}",
        "{{ [0] * 10 ** 9 }}",
        "{{ range(10 ** 9) | list }}",
        "{{ 'x'.ljust(10 ** 9) }}",
        "{{ '%999999999d' % 1 }}",
        "{{ '%*d' % (999999999, 1) }}",
        "{{ '{:>999999999}'.format(1) }}",
        "{{ '%0999999999d' | format(1) }}",
        "{{ ('x' * 900000) ~ ('x' * 900000) }}",
        "{{ ('x' * 900000) + ('x' * 900000) }}",
        "{{ ('x' * 100000) | replace('x', 'y' * 100000) }}",
        "{{ ('x' * 100000).replace('x', 'y' * 100000) }}",
        "{% for a in range(99999) %}{{ 'xxxxxxxxxxxxxxxxxxxx' }}{% endfor %}",
        "{% for a in range(99999) %}{% for b in range(99999) %}xxxxx{% endfor %}{% endfor %}",
        "{{ ('x' * 900000).join(range(999) | list) }}",
    ],
)
def test_bombs(text: str, render: Render) -> None:
    with pytest.raises(InputError):
        render(text)


def test_layers_that_were_not_read_are_asked_for(folder: Path) -> None:
    names = scope(folder, Facts(asset=ASSET))
    for text in ("{{ asset.xmp }}", "{{ asset['xmp'] | default('x') }}", "{{ asset.links is defined }}"):
        with pytest.raises(Need):
            render_text(text, names, SPOT)
    with pytest.raises(NoAssetError):
        render_text("{{ asset.frames | default(0) }}", scope(folder, Facts.none()), SPOT)
    with pytest.raises(NoAssetError):
        evaluate_expression("[asset] | map(attribute='frames') | list", scope(folder, Facts.none()), SPOT)


def test_what_was_looked_at_is_remembered(folder: Path) -> None:
    facts = Facts(asset=ASSET)
    render_text("{{ 1 if asset.frames > 2 else asset.title }}", scope(folder, facts), SPOT)
    assert facts.looked == {"frames": 30000}


def test_variables_that_need_themselves(folder: Path) -> None:
    with pytest.raises(InputError, match="the variable refers to itself: a → b → a"):
        render_text("{{ a }}", scope(folder, a="{{ b }}", b="x{{ a }}"), SPOT)


def write(folder: Path, files: Iterable[tuple[str, str]]) -> None:
    for name, text in files:
        (folder / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize("text", ["title;note, long\nA;1,2\n", "title\tnote, long\nA\t1,2\n"])
def test_the_header_of_a_csv_decides_what_separates_its_values(folder: Path, render: Render, text: str) -> None:
    write(folder, [("p.csv", text), ("q.csv", '"a,b;c";d\n1;2\n')])
    assert render("{{ lookup('csv', 'p.csv') }}") == [{"title": "A", "note, long": "1,2"}]
    assert render("{{ lookup('csv', 'q.csv') }}") == [{"a,b;c": "1", "d": "2"}]
    assert render("{{ lookup('csv', 'q.csv', delimiter=';') }}") == [{"a,b;c": "1", "d": "2"}]


def test_lookups(folder: Path, render: Render) -> None:
    write(
        folder,
        [
            ("p.csv", "title,len\nA,1\nB,012\n"),
            ("p.json", '{"a": [1]}'),
            ("p.yml", "a: no\nb: 012\n"),
            ("p.txt", "a\nb\n"),
        ],
    )
    (folder.parent / "up.txt").write_text("above")
    assert render("{{ lookup('csv', 'p.csv') }}") == [{"title": "A", "len": "1"}, {"title": "B", "len": "012"}]
    assert render("{{ lookup('json', 'p.json').a[0] }}") == 1
    assert render("{{ lookup('yaml', 'p.yml') }}") == {"a": "no", "b": 12}
    assert render("{{ lookup('file', 'p.txt') }}") == "a\nb"
    assert render("{{ lookup('file', '../up.txt') }}") == "above"
    assert render("{{ lookup('env', 'HOME_TOWN') }}") == "Oslo"
    assert render("{{ lookup('env', 'NOPE', default='x') }}") == "x"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ lookup('file', '../../x') }}", "outside the playbook's repository"),
        ("{{ lookup('file', '/etc/hostname') }}", "outside the playbook's repository"),
        ("{{ lookup('file', 'link') }}", "outside the playbook's repository"),
        ("{{ lookup('file', 'nowhere') }}", "there is no such file|not found"),
        ("{{ lookup('json', 'bad') }}", "is not valid JSON"),
        ("{{ lookup('yaml', 'bad') }}", "cannot start|invalid YAML|closing quote|structure"),
        ("{{ lookup('csv', 'ragged') }}", "not as many values"),
        ("{{ lookup('env', 'NOPE') }}", "NOPE is not set"),
        ("{{ lookup('file') }}", "needs a name"),
    ],
)
def test_lookups_that_fail(text: str, message: str, folder: Path, render: Render) -> None:
    (folder / "link").symlink_to("/etc/hostname")
    write(folder, [("bad", "{'"), ("ragged", "a,b\n1\n")])
    with pytest.raises(InputError, match=message):
        render(text)
