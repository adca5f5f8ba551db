"""YAML: values with their places, merges and anchors, flaws that hide no other, and values written as YAML."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from msauto.documents.document import MAX_DEPTH, Document, SourceNode
from msauto.documents.loader import load_yaml, parse_yaml
from msauto.documents.scalars import resolve_scalar
from msauto.documents.value_types import is_template
from msauto.documents.writer import WIDTH, CommentedValue, FlowStyle, comment, literal, yaml_lines
from msauto.errors import InputError, Problem, SourceLocation
from msauto.playbook.hosts import ResolveOptions
from msauto.playbook.resolve import resolve
from msauto.playbook.templates.environment import render_text
from msauto.playbook.templates.names import AssetView, SecretTracker
from msauto.playbook.validate import validate
from msauto.secrets.redaction import HIDDEN
from tests.tables import table


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10:00:00:00", "10:00:00:00"),
        ("10:00:00", "10:00:00"),
        ("no", "no"),
        ("on", "on"),
        ("012", 12),
        ("0o14", 12),
        ("0x1F", 31),
        ("-7", -7),
        ("1_000", "1_000"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("3.10", 3.1),
        ("1e3", 1000.0),
        ("-.inf", float("-inf")),
        ("2026-11-13", "2026-11-13"),
        ("0b1", "0b1"),
        ("=", "="),
    ],
)
def test_scalars_of_yaml_1_2(text: str, value: Any) -> None:
    found = resolve_scalar(text)
    assert found == value
    assert isinstance(found, type(value))


def test_what_was_written_is_kept() -> None:
    assert resolve_scalar("3.10").text == "3.10"
    assert resolve_scalar("012").text == "012"
    assert type(resolve_scalar("12")) is int


def test_places_survive_merges_and_anchors() -> None:
    document = load_yaml(b"a: &x\n  p: 1\n  q: [5, 6]\nb:\n  <<: *x\n  p: 2\nc: *x\n", "f")
    assert document.data == {"a": {"p": 1, "q": [5, 6]}, "b": {"q": [5, 6], "p": 2}, "c": {"p": 1, "q": [5, 6]}}
    assert document.place(("b", "q", 1)) == SourceLocation("f", 3, 10)
    assert document.key_place(("b", "p")) == SourceLocation("f", 6, 3)
    assert document.place(("b", "p")) == SourceLocation("f", 6, 6)
    assert document.place(("c", "q", 0, "nothing", "here")) == document.place(("c", "q", 0))


def test_earlier_merges_win() -> None:
    document = load_yaml(b"a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc: {<<: [*a, *b], z: 3}\n", "f")
    assert document.data["c"] == {"x": 1, "y": 2, "z": 3}


def test_merges_within_merges() -> None:
    document = load_yaml(b"a: &a {x: 1}\nb: &b {<<: *a, y: 2}\nc: {<<: *b}\n", "f")
    assert document.data["c"] == {"x": 1, "y": 2}


def test_windows_files_are_fine() -> None:
    document = load_yaml(b"\xef\xbb\xbfa: 1\r\nb: [x]\r\n", "f")
    assert document.data == {"a": 1, "b": ["x"]}
    assert document.place(("b", 0)) == SourceLocation("f", 2, 5)


@pytest.mark.parametrize("sign", ["\x85", "\u2028", "\u2029"])
@pytest.mark.parametrize("style", ['"{}"', "'{}'", "{}", "|-\n  {}", ">-\n  {}"])
def test_breaks_of_yaml_1_1_are_characters(style: str, sign: str) -> None:
    text = f"a{sign}\ue000 {sign}{sign}b"
    document = load_yaml(f"{text}: {style.format(text)}\nlast: 1\n".encode(), "f")
    assert document.data == {text: text, "last": 1}
    assert document.place(("last",)).line == 2 + style.count("\n")


def test_columns_count_signs_not_bytes() -> None:
    document = load_yaml("a: {é😀: x, b: y}\n".encode(), "f")
    assert document.place(("a", "b")) == SourceLocation("f", 1, 15)


def test_bombs_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(InputError, match="aliases make the document too large"):
        load_yaml("\n".join(lines).encode(), "f")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a: 1\na: 2", "f:2:1: duplicate key 'a'"),
        (b"1: x", "f:1:1: the key 1 is not a text"),
        (b"null: x", "f:1:1: the key null is not a text"),
        (b"[a]: x", "f:1:1: a key must be a text"),
        (b"a: \xff", "f:1:4: the file is not UTF-8 here"),
        (b"\xff\xfea\x00", "f: the file is UTF-16"),
        (b"a: &x [*x]", "f:1:8: unknown anchor &x"),
        (b"a: !vault x", "f:1:4: Ansible Vault is not supported"),
        (b"a: !secret x", "f:1:4: a secret must have at least 4 characters"),
        (b"a: !secret {a: eins1}", "f:1:4: !secret marks a text, or names a secret"),
        (b"a: !secret [eins1, zwei2]", "f:1:4: !secret marks a text, not a list"),
        (b"a: !secretgeheimnis", "f:1:4: !secret needs a space after it"),
        (b"!secret geheim: x", "f:1:1: a key cannot be secret"),
        (b"a\x00b", "f:1:2: a character that YAML does not allow"),
        (b"[" * 5000, "f:1:66: nested deeper than 64 levels"),
        (b"a: b\n---\nc: d", "f:2:1: a second document starts here"),
        (b"a: " + b"9" * 5000, "f:1:4: a number with too many digits"),
        (b"a:\n\t- b", "f:2:1: a tab cannot indent YAML"),
        (b"<<: [x]", "<< merges only mappings"),
    ],
)
def test_one_clear_error(data: bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load_yaml(data, "f")
    assert message in str(caught.value)
    assert len(caught.value.problems) == 1


def test_secrets_never_show() -> None:
    text = b"auth: {basic: {username: ops, password: hunter2}, x: 1}\nmy_token: |\n  hunter3\n  hunter4\nlast: 1\n"
    document = load_yaml(text, "f")
    shown = "".join(document.excerpt(SourceLocation("f", line, 3)) for line in range(1, 6))
    assert "hunter" not in shown
    assert "ops" in shown
    broken = b"password: hunter2\na: 'x\n"
    with pytest.raises(InputError) as caught:
        load_yaml(broken + b"password: 'hunter3", "f")
    assert "hunter" not in str(caught.value)


def test_caret_stands_under_the_value_behind_a_secret() -> None:
    document = load_yaml(b"auth: {password: a-long-secret-text}, \n"[:-3] + b"\nb: 1\n", "f")
    assert document.excerpt(SourceLocation("f", 1, 1)).splitlines()[0] == "  1 | auth: {password: ***}"


# Values written as YAML read back as themselves, by every reader; templates among them render to themselves


class NoNames(dict[str, Any]):
    tracker = SecretTracker()
    of_data = False

    def known(self) -> list[str]:
        return []

    def headers_of(self, row: object) -> str:
        return ""

    def with_given(self, *, asset: AssetView) -> NoNames:
        return self


signs = st.sampled_from(
    "\n\r\t {}%#:\"'\\-[],&*!|>@`?~.0129eEnoyYtrue_é\u0301\x85\u2028\ufeff\u202e👩日"
) | st.characters(exclude_categories=["Cs"], exclude_characters="\x00\ufffe\uffff")
texts = st.text(signs, max_size=20) | st.sampled_from(
    [
        "{{ x }}",
        "{% endraw %}{{",
        "{{ '{{' }}\n",
        "{%",
        "no",
        "1_000",
        "0x1F",
        "1:30",
        "2026-11-20",
        ".5",
        "=",
        "<<",
        "a #b",
        "a: b",
    ]
)
values = st.recursive(
    texts | st.integers() | st.booleans(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def written(value: Any) -> str:
    return "".join(f"{line}\n" for line in yaml_lines({"value": value}))


def rendered(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: rendered(value) for key, value in data.items()}
    if isinstance(data, list):
        return [rendered(value) for value in data]
    return (
        render_text(data, NoNames(), SourceNode(Document(""))) if isinstance(data, str) and is_template(data) else data
    )


def one_line_ends(data: Any) -> Any:
    """Jinja knows one line end only: what is a template has its line ends made one."""
    if isinstance(data, dict):
        return {key: one_line_ends(value) for key, value in data.items()}
    if isinstance(data, list):
        return [one_line_ends(value) for value in data]
    if isinstance(data, str) and is_template(data):
        return data.replace("\r\n", "\n").replace("\r", "\n")
    return data


@given(values)
def test_what_is_written_reads_back(value: Any) -> None:
    for form in (value, FlowStyle(value) if isinstance(value, dict | list) else value):
        text = written(form)
        read = load_yaml(text.encode(), "made.yml").data["value"]
        assert one_line_ends(rendered(read)) == one_line_ends(value)
        assert yaml.safe_load(text)["value"] == read, "a reader of YAML 1.1 reads the same"


@given(texts)
def test_a_text_stays_itself_through_a_template(text: str) -> None:
    assert one_line_ends(rendered(literal(text))) == one_line_ends(text)


@given(texts)
def test_a_comment_is_one_line(text: str) -> None:
    line = comment(text)
    assert len(line.splitlines()) == 1
    assert yaml.safe_load(f"{line}\na: 1\n") == {"a": 1}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Evening News", "value: Evening News\n"),
        ("Новости дня", "value: Новости дня\n"),
        ("yes", 'value: "yes"\n'),
        ("007", 'value: "007"\n'),
        ("10:00:00:00", 'value: "10:00:00:00"\n'),
        ("", 'value: ""\n'),
        ('say "no"', "value: 'say \"no\"'\n"),
        ("AC\\/DC", "value: 'AC\\/DC'\n"),
        ("a\tb", 'value: "a\\tb"\n'),
        ("\u202etxt", 'value: "\\u202Etxt"\n'),
        ("one\n\n  two", "value: |-\n  one\n\n    two\n"),
        ("one\ntwo\n", "value: |\n  one\n  two\n"),
        (" one\ntwo", 'value: " one\\ntwo"\n'),
        ("trailing \nblank", 'value: "trailing \\nblank"\n'),
        ("{{ house }}", 'value: "{% raw %}{{ house }}{% endraw %}"\n'),
        (FlowStyle(["news", "a, b"]), 'value: [news, "a, b"]\n'),
        (FlowStyle({"at": 5, "title": "x"}), "value: {at: 5, title: x}\n"),
        (FlowStyle(["two\nlines"]), "value:\n  - |-\n    two\n    lines\n"),
        ([CommentedValue(("why",), FlowStyle({"a": True}))], "value:\n  # why\n  - {a: true}\n"),
        ([CommentedValue(("alone",)), 1], "value:\n  # alone\n  - 1\n"),
        ([], "value: []\n"),
        ({}, "value: {}\n"),
        ([[1, 2], {"a": []}], "value:\n  - - 1\n    - 2\n  - a: []\n"),
    ],
)
def test_how_it_looks(value: Any, text: str) -> None:
    assert written(value) == text


def test_what_is_too_long_for_a_line_is_a_block() -> None:
    text = written(FlowStyle({"title": "x" * WIDTH}))
    assert text == f"value:\n  title: {'x' * WIDTH}\n"


def test_what_is_no_plain_value_is_refused() -> None:
    with pytest.raises(TypeError, match="bytes"):
        written(b"raw")


# A key that is a duplicate, or not a text, hides no other problem: collect, then raise


INVENTORY = 'all: {hosts: {studio-a: {server: {url: "http://a"}, database: NEWS}}}\n'


def problems_of(tmp_path: Path, playbook: str, inventory: str = INVENTORY, **more: str) -> list[Problem]:
    """Return the problems that resolving reports; ``validate`` must report as many."""
    (tmp_path / "msauto.toml").write_text("")
    for name, text in {"playbook": playbook, "inventory": inventory, **more}.items():
        (tmp_path / f"{name}.yml").write_text(text)
    options = ResolveOptions((str(tmp_path / "playbook.yml"),), (str(tmp_path / "inventory.yml"),), env={})
    with pytest.raises(InputError) as caught:
        resolve(options)
    seen = validate([str(tmp_path / "playbook.yml")], ResolveOptions((), options.inventories, env={}))
    assert {problem.message for problem in caught.value.problems} <= {problem.message for problem in seen}
    return list(caught.value.problems)


def told(found: list[Problem]) -> list[str]:
    return [f"{Path(each.place.file).name}:{each.place.line}: {each.message}" for each in found if each.place]


def test_a_key_that_stands_twice_hides_no_other_error_of_its_file(tmp_path: Path) -> None:
    found = problems_of(
        tmp_path,
        "- hosts: all\n"
        "  tasks:\n"
        "    - name: One\n"
        "      name: Two\n"
        "      asset: {title: A, fields: {comment: '{{ nobody }}'}}\n"
        "    - asset: {titel: B}\n",
    )
    assert told(found) == [
        "playbook.yml:4: duplicate key 'name' (first in line 3)",
        "playbook.yml:5: undefined variable 'nobody'",
        "playbook.yml:6: unknown key 'titel'",
    ]
    assert found[0].remedy == "keep one of them"


def test_nor_those_of_other_files(tmp_path: Path) -> None:
    found = problems_of(
        tmp_path,
        "- hosts: all\n  vars_files: [shows.yml]\n"
        "  tasks:\n    - asset: {title: '{{ show }}', folder: '{{ nowhere }}'}\n",
        "all:\n  vars: {a: 1}\n  vars: {a: 2}\n  hosts: {studio-a: {server: {url: 'http://a'}, database: NEWS}}\n",
        shows="show: One\nshow: Two\n",
    )
    assert told(found) == [
        "inventory.yml:3: duplicate key 'vars' (first in line 2)",
        "playbook.yml:4: undefined variable 'nowhere'",
        "shows.yml:2: duplicate key 'show' (first in line 1)",
    ]


def test_a_template_without_quotes_is_one_error_and_hides_none(tmp_path: Path) -> None:
    found = problems_of(
        tmp_path,
        "- hosts: all\n"
        "  tasks:\n"
        "    - asset: {title: {{ episode }}, folder: News}\n"
        "    - asset: {title: A, fields: {comment: '{{ nobody }}'}}\n",
    )
    assert told(found) == ["playbook.yml:3: a template must be quoted", "playbook.yml:4: undefined variable 'nobody'"]


def test_an_inventory_with_such_a_key_tells_the_rest_too(tmp_path: Path) -> None:
    found = problems_of(
        tmp_path,
        "- hosts: all\n  tasks: [{asset: {titel: A}}]\n",
        "all:\n  vars: {house: {{ house }}}\n  hosts:\n    studio-a: {server: {url: 'http://a', versoin: '2.9'}}\n"
        "  childern: {}\n",
    )
    assert "inventory.yml:2: a template must be quoted" in told(found)
    assert "inventory.yml:5: unknown key 'childern'" in told(found)
    assert "playbook.yml:2: unknown key 'titel'" in told(found)


@table("playbook/yaml_in_error_beside_a_secret", "text")
def test_what_stands_under_such_a_key_is_hidden_as_anywhere(text: str) -> None:
    with pytest.raises(InputError) as caught:
        load_yaml(text.encode(), "f")
    assert "hunter" not in str(caught.value)


# ``<<`` merges only where it is plain: not quoted, without a tag, and once in a mapping


def messages(text: str) -> list[str]:
    return [flaw.message for flaw in parse_yaml(text.encode(), "f.yml").flaws]


def excerpts(document: Document) -> str:
    return "".join(flaw.excerpt for flaw in document.flaws)


@pytest.mark.parametrize("key", ["! <<", "!!str <<", '"<<"'])
def test_a_key_with_a_tag_or_quotes_does_not_merge(key: str) -> None:
    document = parse_yaml(f"{key}: {{token: q}}\n".encode(), "f.yml")
    assert (document.data, document.flaws) == ({"<<": {"token": "q"}}, ())


@pytest.mark.parametrize("text", ['"<<": 1\n<<: {a: 1}\n', '<<: {a: 1}\n"<<": 1\n', "<<: {a: 1}\n<<: {b: 1}\n"])
def test_both_forms_in_one_mapping_are_duplicates(text: str) -> None:
    assert messages(text) == ["duplicate key '<<' (first in line 1)"]


@pytest.mark.parametrize("value", ["!secret hunter2222", "[!secret hunter2222]", "[{a: 1}, !secret hunter2222]"])
def test_a_secret_that_cannot_be_merged_is_not_shown(value: str) -> None:
    document = parse_yaml(f"a: 1\n<<: {value}\n".encode(), "f.yml")
    assert "<< merges only mappings" in messages(f"<<: {value}\n")
    assert HIDDEN in excerpts(document)
    assert "hunter2222" not in excerpts(document)


def test_a_long_chain_of_merges_is_named_for_what_it_is() -> None:
    lines = ["a0: &a0 {x: 1}", *(f"a{n}: &a{n} {{<<: *a{n - 1}, y{n}: 1}}" for n in range(1, MAX_DEPTH + 2))]
    with pytest.raises(InputError, match=f"aliases nest deeper than {MAX_DEPTH} levels"):
        parse_yaml("\n".join(lines).encode(), "f.yml")


# YAML 1.2 reads what JSON writes: playbooks and inventories may come from a program


@pytest.mark.parametrize("text", ["\U0001f600 news", "\U0001f468\u200d\U0001f469", "ё\U00010000", "\\ud83d\\ude00"])
def test_text_that_json_escapes(text: str) -> None:
    for ensure_ascii in (True, False):
        written = json.dumps({"title": text, text: 1}, ensure_ascii=ensure_ascii).encode()
        assert load_yaml(written, "p.json").data == {"title": text, text: 1}


def test_half_a_pair_stays_half_a_pair() -> None:
    assert load_yaml(b'{"title": "\\ud83d news"}', "p.json").data == {"title": "\ud83d news"}
