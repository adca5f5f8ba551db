"""Templates: values and errors of facts, filters, tests and lookups (``tests/cases/templates``), and their bounds."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from msauto.documents.document import as_written, outside_node
from msauto.errors import InputError
from msauto.model.facts import Facts, Need, NoAssetError
from msauto.model.live import Asset, Marker
from msauto.playbook.input_files import Files, LookupContext
from msauto.playbook.templates import budget, filters
from msauto.playbook.templates.environment import evaluate_expression, render_text
from msauto.playbook.templates.names import AssetView, EnvView
from msauto.playbook.variables import Level, TemplateScope, Variables, read_variables
from tests.tables import load, table, unless_one_in

SPOT = outside_node("test")
ASSET = Asset(
    "EP 1",
    attributes={
        "frames": "30000",
        "frame_time": "0.0333666667",
        "create_time": "2026-11-13T10:00:00",
    },
    markers=(Marker(1, 250, {"track": "Icon"}),),
)
Render = Callable[[str], Any]
CASES = Path(__file__).parents[2] / "cases" / "templates"


def cases(name: str) -> list[tuple[str, Any]]:
    return list(load(CASES / f"{name}.yml").items())


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
        "now": datetime(2026, 11, 20, 18, tzinfo=UTC),
    }
    data = {
        name: as_written(value) if isinstance(value, str) else value
        for name, value in variables.items()
    }
    return TemplateScope(Variables(read_variables(data, Level.PLAY, SPOT)), given, around)


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
    ("text", "value"), [*cases("values"), ("{{ asset.fps }}", Fraction(30000, 1001))]
)
def test_values(text: str, value: Any, render: Render) -> None:
    found = render(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(("text", "message"), cases("errors"))
def test_errors(text: str, message: str, render: Render) -> None:
    with pytest.raises(InputError, match=message):
        render(text)


N = 100_000
LONG = {
    "ands": "1 and " * N,
    "brackets": "[" * N + "]" * N,
    "calls": "a" + "()" * N,
    "comments": "{# #}" * N,
    "compares": "1 < " * N,
    "digits": "9" * N,
    "dots": "a" + ".b" * N,
    "f": "f" * 40_000,
    "filters": "a" + "|upper" * N,
    "fors": "{% for a in [1] %}" * 99 + "{% endfor %}" * 99,
    "i": "1" + " + 1" * 50 + " == a" + " or a" * 500,
    "ifs": "1 if 1 else " * N,
    "items": "a" + "[0]" * N,
    "l": "[" + "1," * 1000 + "]",
    "lists": "[" + "1," * N + "]",
    "long": "x" * 5_000_000,
    "many": "{{ 1 }}" * N,
    "minus": "-" * N,
    "nots": "not " * N,
    "parens": "(" * N + "1" + ")" * N,
    "sums": "1+" * N,
    "tildes": "1 ~ " * N,
}
BOUND = (
    r"may (take|make|have) at most|takes more than|has more than|too big|nested too deep|without end|is unsafe"
    r"|from a value|is not (allowed|a number of|a valid|a value|safely callable)|is not a function|invalid|undefined"
)
BOMBS = [
    pytest.param(group, text, marks=unless_one_in(16, number))
    for group, texts in cases("bombs")
    for number, text in enumerate(texts)
]


@pytest.mark.parametrize(("group", "text"), BOMBS)
def test_no_template_takes_long_or_much_memory(
    group: str, text: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (budget, filters):
        monkeypatch.setattr(module, "MAX_SECONDS", 20 if group == "harmless" else 0.05)
    if "big.json" in text:
        (folder / "big.json").write_text(json.dumps(list(range(200_000))), encoding="utf-8")
    names = scope(folder, Facts(asset=ASSET), rate=Fraction(30000, 1001))
    for name, long in LONG.items():
        text = re.sub(rf"(?<!{{){{{name}}}", lambda _, long=long: long, text)  # type: ignore[misc]
    if group == "harmless":
        render_text(text, names, SPOT)
        return
    with pytest.raises(InputError, match=BOUND) as caught:
        render_text(text, names, SPOT)
    assert len(str(caught.value)) < 1000


@pytest.mark.scale
def test_variables_that_double_are_an_error_of_their_place(folder: Path) -> None:
    variables: dict[str, Any] = {"a0": "x"}
    for number in range(40):
        variables[f"a{number + 1}"] = [as_written(f"{{{{ a{number} }}}}")] * 2
    with pytest.raises(InputError, match=r"may (have|take|make) at most"):
        render_text("{{ a40 }}", scope(folder, **variables), SPOT)


def test_no_text_names_an_operation_of_the_sandbox(render: Render) -> None:
    with pytest.raises(InputError):
        render("{{ [1] | map('=made', texts=-999999999) | list }}")


@pytest.mark.scale
def test_usual_work_is_done(render: Render) -> None:
    rows = "{% set rows = range(20000) | map('string') | list %}"
    loop = "{% for row in rows %}{% if row in ['7', '8'] %}{{ row | upper }}{% endif %}{% endfor %}"
    assert render(rows + loop) == "78"
    many = "{{ range(20000) | map('string') | map('replace', '1', '2') | select('search', '7') | list | length }}"
    assert render(many) > 1
    numbered = "{% for a in 'abc' %}{{ loop.index }}/{{ loop.length }}{{ ',' if not loop.last }}{% endfor %}"
    assert render(numbered) == "1/3,2/3,3/3"
    assert (
        render(
            "{% for a in [1, [2, 3]] recursive %}{{ a if a is number else loop(a) }}{% endfor %}"
        )
        == "123"
    )


def test_a_filter_is_named_when_it_is_nearly_right(render: Render) -> None:
    for text, meant in (("{{ {} | to_jsn }}", "to_json"), ("{{ [] is contain([]) }}", "contains")):
        with pytest.raises(InputError, match=f"did you mean '{meant}'"):
            render(text)


def test_lookups_stay_inside_unless_a_setting_opens_a_folder(tmp_path: Path) -> None:
    inside, outside = tmp_path / "repository", tmp_path / "traffic"
    for each in (inside, outside):
        each.mkdir()
    (outside / "x.txt").write_text("open", encoding="utf-8")
    text = "{{ lookup('file', '../traffic/x.txt') }}"
    opened = TemplateScope(
        Variables(read_variables({}, Level.PLAY, SPOT)),
        {},
        LookupContext({}, Files(), inside, inside, (str(outside),)),
    )
    closed = TemplateScope(
        Variables(read_variables({}, Level.PLAY, SPOT)),
        {},
        LookupContext({}, Files(), inside, inside),
    )
    with pytest.raises(InputError, match="outside the playbook's repository") as caught:
        render_text(text, closed, SPOT)
    assert "[lookup] folders" in str(caught.value)
    assert render_text(text, opened, SPOT) == "open"
    with pytest.raises(InputError, match="outside"):
        render_text("{{ lookup('file', '../secret.txt') }}", opened, SPOT)


def test_fileglob_gives_paths_that_lookups_take_in_order_and_none_outside(
    folder: Path, render: Render
) -> None:
    data = folder.parent / "data"
    (data / "more.txt").mkdir(parents=True)
    for name in ("b.txt", "a.txt", ".hidden.txt", "c.csv"):
        (data / name).write_text(name, encoding="utf-8")
    assert render("{{ lookup('fileglob', '../data/*.txt') }}") == ["../data/a.txt", "../data/b.txt"]
    assert render("{{ lookup('fileglob', '../data/*.txt') | map('length') }}") == [13, 13]
    assert render("{{ lookup('file', lookup('fileglob', '../data/[b]*')[0]) }}") == "b.txt"
    assert render("{{ lookup('fileglob', '*.txt') }}") == []
    (folder / "link").symlink_to("/etc")
    (data / "z.txt").symlink_to("/etc/hostname")
    for pattern in ("../../*", "/etc/host*", "link/host*", "../data/*.txt"):
        with pytest.raises(InputError, match="outside the playbook's repository"):
            render(f"{{{{ lookup('fileglob', '{pattern}') }}}}")
    with pytest.raises(
        InputError, match=r"cannot read the folder '\.\./\*'(.|\n)*only its last part"
    ):
        render("{{ lookup('fileglob', '../*/a.txt') }}")


def test_a_csv_of_another_encoding(folder: Path, render: Render) -> None:
    (folder / "x.csv").write_bytes("title\nÉP1\n".encode("cp1252"))
    assert render("{{ lookup('csv', 'x.csv', encoding='cp1252') }}") == [{"title": "ÉP1"}]
    with pytest.raises(
        InputError, match=r"x\.csv:2: the file is not UTF-8(.|\n)*encoding='cp1252'"
    ):
        render("{{ lookup('csv', 'x.csv') }}")
    for encoding in ("cp-nope", "punycode"):
        with pytest.raises(InputError, match=f"unknown encoding '{encoding}'"):
            render(f"{{{{ lookup('csv', 'x.csv', encoding='{encoding}') }}}}")
    (folder / "y.csv").write_bytes("title\nÉP1\n".encode("utf-8-sig"))
    assert render("{{ lookup('csv', 'y.csv', encoding='utf-8') }}") == [{"title": "ÉP1"}]


def test_a_row_or_a_column_that_is_wrong_is_named_by_file_and_line(
    folder: Path, render: Render
) -> None:
    (folder / "x.csv").write_text('\ntitle;cue\n"EP\n1";A\n\nEP2;B;C\n', encoding="utf-8")
    with pytest.raises(
        InputError, match=r"x\.csv:6: the row has 3 values, and the header 2 names(.|\n)*write ';'"
    ):
        render("{{ lookup('csv', 'x.csv') }}")
    (folder / "x.csv").write_text("title;cue\nEP1;A\n", encoding="utf-8")
    names = scope(folder, rows="{{ lookup('csv', 'x.csv') }}")
    for text in ("{{ rows[0].titel }}", "{{ rows | map(attribute='titel') }}"):
        with pytest.raises(
            InputError,
            match=r"x\.csv:1: the CSV file has no column 'titel'(.|\n)*columns: title, cue",
        ):
            render_text(text, names, SPOT)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("data/x.txt", "write '../data/x.txt'"), ("../data/y.txt", "'../data/x.txt'?")],
)
def test_a_path_that_starts_elsewhere_gets_the_path_that_works(
    folder: Path, render: Render, name: str, remedy: str
) -> None:
    (folder.parent / "data").mkdir()
    (folder.parent / "data" / "x.txt").touch()
    with pytest.raises(InputError, match="not found") as caught:
        render(f"{{{{ lookup('file', '{name}') }}}}")
    assert remedy in caught.value.remedy


def test_layers_that_were_not_read_are_asked_for(folder: Path) -> None:
    names = scope(folder, Facts(asset=ASSET))
    for text in (
        "{{ asset.xmp }}",
        "{{ asset['xmp'] | default('x') }}",
        "{{ asset.links is defined }}",
    ):
        with pytest.raises(Need):
            render_text(text, names, SPOT)
    with pytest.raises(NoAssetError):
        render_text("{{ asset.frames | default(0) }}", scope(folder, Facts(exists=False)), SPOT)
    with pytest.raises(NoAssetError):
        evaluate_expression(
            "[asset] | map(attribute='frames') | list", scope(folder, Facts(exists=False)), SPOT
        )


def test_what_was_looked_at_is_remembered(folder: Path) -> None:
    facts = Facts(asset=ASSET)
    render_text("{{ 1 if asset.frames > 2 else asset.title }}", scope(folder, facts), SPOT)
    assert facts.depends_on == {"frames": 30000}


def test_variables_that_need_themselves(folder: Path) -> None:
    with pytest.raises(InputError, match="the variable refers to itself: a → b → a"):
        render_text("{{ a }}", scope(folder, a="{{ b }}", b="x{{ a }}"), SPOT)


def write(folder: Path, files: Iterable[tuple[str, str]]) -> None:
    for name, text in files:
        (folder / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize("text", ["title;note, long\nA;1,2\n", "title\tnote, long\nA\t1,2\n"])
def test_the_header_of_a_csv_decides_what_separates_its_values(
    folder: Path, render: Render, text: str
) -> None:
    write(folder, [("p.csv", text), ("q.csv", '"a,b;c";d\n1;2\n')])
    assert render("{{ lookup('csv', 'p.csv') }}") == [{"title": "A", "note, long": "1,2"}]
    assert render("{{ lookup('csv', 'q.csv') }}") == [{"a,b;c": "1", "d": "2"}]
    assert render("{{ lookup('csv', 'q.csv', delimiter=';') }}") == [{"a,b;c": "1", "d": "2"}]


def test_a_csv_may_name_its_separator_and_have_titles_above_its_header(
    folder: Path, render: Render
) -> None:
    folder.joinpath("s.csv").write_bytes(b"sep=|\r\na;b|c\r\n1|2;3\r\n")
    assert render("{{ lookup('csv', 's.csv') }}") == [{"a;b": "1", "c": "2;3"}]
    folder.joinpath("t.csv").write_text("Week 48, draft\n\ntitle;cue\nA;1\n", encoding="utf-16-be")
    assert render("{{ lookup('csv', 't.csv', header=3) }}") == [{"title": "A", "cue": "1"}]
    with pytest.raises(InputError, match=r"t\.csv:3: the row has 1 values(.|\n)*header=2"):
        render("{{ lookup('csv', 't.csv') }}")
    for header in ("0", "'x'", "99"):
        with pytest.raises(InputError, match=r"header="):
            render(f"{{{{ lookup('csv', 't.csv', header={header}) }}}}")
    folder.joinpath("q.csv").write_text('a,b\n1,2\n"3,4\n5,6\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"q\.csv:3: the file is not valid CSV"):
        render("{{ lookup('csv', 'q.csv') }}")


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
    assert render("{{ lookup('csv', 'p.csv') }}") == [
        {"title": "A", "len": "1"},
        {"title": "B", "len": "012"},
    ]
    assert render("{{ lookup('json', 'p.json').a[0] }}") == 1
    assert render("{{ lookup('yaml', 'p.yml') }}") == {"a": "no", "b": 12}
    assert render("{{ lookup('file', 'p.txt') }}") == "a\nb"
    assert render("{{ lookup('file', '../up.txt') }}") == "above"
    assert render("{{ lookup('env', 'HOME_TOWN') }}") == "Oslo"
    assert render("{{ lookup('env', 'NOPE', default='x') }}") == "x"


@pytest.mark.parametrize(
    ("kind", "text"), [("csv", "a\n" * 750_001), ("json", "[" + "{}," * 1_500_001 + "{}]")]
)
def test_a_file_that_takes_too_much_memory_is_not_read(
    folder: Path, render: Render, kind: str, text: str
) -> None:
    write(folder, [("large", text)])
    with pytest.raises(InputError, match="more than 3,000,000 values"):
        render(f"{{{{ lookup('{kind}', 'large') }}}}")


@table("playbook/lookups_that_fail", "text", "message")
def test_lookups_that_fail(text: str, message: str, folder: Path, render: Render) -> None:
    (folder / "link").symlink_to("/etc/hostname")
    write(folder, [("bad", "{'"), ("ragged", "a,b\n1\n"), ("twice", "a,,,a\n1,,,2\n")])
    with pytest.raises(InputError, match=message):
        render(text)
