"""YAML: values with their places, merges and anchors, flaws that hide no other, and values written as YAML."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from msauto.documents import loader
from msauto.documents.document import MAX_DEPTH, Document, SourceNode, is_template
from msauto.documents.loader import load_yaml, parse_yaml
from msauto.documents.scalars import resolve_scalar
from msauto.documents.writer import WIDTH, CommentedValue, FlowStyle, comment, literal, yaml_lines
from msauto.errors import InputError, SourceLocation
from msauto.playbook.templates.environment import render_text
from msauto.playbook.templates.names import AssetView, SecretTracker
from msauto.secrets.redaction import HIDDEN
from tests.tables import CASES, table


@table("playbook/scalars", "text", "value")
def test_scalars_of_yaml_1_2(text: str, value: Any) -> None:
    found = resolve_scalar(text)
    assert found == value
    assert isinstance(found, type(value))


@pytest.mark.parametrize(
    "text",
    [
        "1e3",
        "1e999",
        "-.inf",
        ".nan",
        "9" * 21,
        "9" * 10_000,
        "1" * 10 + ".5",
        "0." + "3" * 13,
        "0x" + "F" * 17,
    ],
)
def test_numbers_out_of_range_are_flaws(text: str) -> None:
    is_one_clear_error(f"a: {text}".encode(), "which is not a number in range")


def test_what_was_written_is_kept() -> None:
    assert resolve_scalar("3.10").text == "3.10"
    assert resolve_scalar("012").text == "012"
    assert type(resolve_scalar("12")) is int


def test_yaml_has_at_most_8_mib() -> None:
    with pytest.raises(InputError, match="YAML may have 8 MiB") as caught:
        parse_yaml(b"- a\n" * 2**21 + b"-", "f.yml")
    assert "loop" in caught.value.problems[0].remedy


def test_yaml_has_at_most_so_many_keys_and_values(monkeypatch: pytest.MonkeyPatch) -> None:
    assert loader.MAX_NODES == 1_000_000
    monkeypatch.setattr(loader, "MAX_NODES", 1000)
    with pytest.raises(InputError, match="more than 1,000 keys and values"):
        parse_yaml(b"[" + b"a," * 1000 + b"]", "f.yml")


def test_of_many_flaws_the_first_thousand_are_shown() -> None:
    assert len(parse_yaml(b"a: 1\n" * 3000, "f.yml").flaws) == 1000


@pytest.mark.scale
def test_an_error_in_a_large_file_has_its_line() -> None:
    lines = [f"- a: {'x' * 1000}"] * 2500
    with pytest.raises(InputError, match=r"f\.yml:250[12]:") as caught:
        parse_yaml("\n".join([*lines, "- [b"]).encode(), "f.yml")
    assert caught.value.problems[0].remedy


def test_places_survive_merges_and_anchors() -> None:
    document = load_yaml(b"a: &x\n  p: 1\n  q: [5, 6]\nb:\n  <<: *x\n  p: 2\nc: *x\n", "f")
    assert document.data == {
        "a": {"p": 1, "q": [5, 6]},
        "b": {"q": [5, 6], "p": 2},
        "c": {"p": 1, "q": [5, 6]},
    }
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


@table("playbook/yaml_in_error", "text", "message")
def test_one_clear_error(text: str, message: str) -> None:
    is_one_clear_error(text.encode(), message)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a: \xff", "f:1:4: the file is not UTF-8 here"),
        (b"\xff\xfea\x00", "f: the file is UTF-16"),
        (b"a\x00b", "f:1:2: a character that YAML does not allow"),
        (b"[" * 5000, "f:1:66: nested deeper than 64 levels"),
        (b"a: " + b"9" * 5000, f"f:1:4: {'9' * 80!r}…, which is not a number in range"),
    ],
)
def test_one_clear_error_of_what_no_text_holds(data: bytes, message: str) -> None:
    is_one_clear_error(data, message)


def is_one_clear_error(data: bytes, message: str) -> None:
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
    assert (
        document.excerpt(SourceLocation("f", 1, 1)).splitlines()[0] == "  1 | auth: {password: ***}"
    )


# Values written as YAML read back as themselves, by every reader; templates among them render to themselves


class NoNames(dict[str, Any]):
    tracker = SecretTracker()
    where_to_set = ""

    def known(self) -> list[str]:
        return []

    def headers_of(self, row: object) -> str:
        return ""

    def with_given(self, *, asset: AssetView) -> NoNames:
        return self


signs = st.sampled_from(
    "\n\r\t {}%#:\"'\\-[],&*!|>@`?~.0129eEnoyYtrue_é\u0301\x85\u2028\ufeff\u202e👩日"
) | st.characters(exclude_categories=["Cs"], exclude_characters="\x00\ufffe\uffff")
AWKWARD = yaml.safe_load((CASES / "playbook" / "awkward_values.yml").read_text(encoding="utf-8"))[
    "texts"
]
texts = st.text(signs, max_size=20) | st.sampled_from(AWKWARD)
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
        render_text(data, NoNames(), SourceNode(Document("")))
        if isinstance(data, str) and is_template(data)
        else data
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


@table("playbook/written_yaml", "value", "text")
def test_how_it_looks(value: Any, text: str) -> None:
    assert written(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (FlowStyle(["news", "a, b"]), 'value: [news, "a, b"]\n'),
        (FlowStyle({"at": 5, "title": "x"}), "value: {at: 5, title: x}\n"),
        (FlowStyle(["two\nlines"]), "value:\n  - |-\n    two\n    lines\n"),
        ([CommentedValue(("why",), FlowStyle({"a": True}))], "value:\n  # why\n  - {a: true}\n"),
        ([CommentedValue(("alone",)), 1], "value:\n  # alone\n  - 1\n"),
    ],
)
def test_how_short_forms_and_comments_look(value: Any, text: str) -> None:
    assert written(value) == text


def test_what_is_too_long_for_a_line_is_a_block() -> None:
    text = written(FlowStyle({"title": "x" * WIDTH}))
    assert text == f"value:\n  title: {'x' * WIDTH}\n"


def test_what_is_no_plain_value_is_refused() -> None:
    with pytest.raises(TypeError, match="bytes"):
        written(b"raw")


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


@pytest.mark.parametrize(
    "text", ['"<<": 1\n<<: {a: 1}\n', '<<: {a: 1}\n"<<": 1\n', "<<: {a: 1}\n<<: {b: 1}\n"]
)
def test_both_forms_in_one_mapping_are_duplicates(text: str) -> None:
    assert messages(text) == ["duplicate key '<<' (first in line 1)"]


@pytest.mark.parametrize(
    "value", ["!secret hunter2222", "[!secret hunter2222]", "[{a: 1}, !secret hunter2222]"]
)
def test_a_secret_that_cannot_be_merged_is_not_shown(value: str) -> None:
    document = parse_yaml(f"a: 1\n<<: {value}\n".encode(), "f.yml")
    assert "<< merges only mappings" in messages(f"<<: {value}\n")
    assert HIDDEN in excerpts(document)
    assert "hunter2222" not in excerpts(document)


def test_a_long_chain_of_merges_is_named_for_what_it_is() -> None:
    lines = [
        "a0: &a0 {x: 1}",
        *(f"a{n}: &a{n} {{<<: *a{n - 1}, y{n}: 1}}" for n in range(1, MAX_DEPTH + 2)),
    ]
    with pytest.raises(InputError, match=f"aliases nest deeper than {MAX_DEPTH} levels"):
        parse_yaml("\n".join(lines).encode(), "f.yml")


# YAML 1.2 reads what JSON writes: playbooks and inventories may come from a program


@pytest.mark.parametrize(
    "text", ["\U0001f600 news", "\U0001f468\u200d\U0001f469", "ё\U00010000", "\\ud83d\\ude00"]
)
def test_text_that_json_escapes(text: str) -> None:
    for ensure_ascii in (True, False):
        written = json.dumps({"title": text, text: 1}, ensure_ascii=ensure_ascii).encode()
        assert load_yaml(written, "p.json").data == {"title": text, text: 1}


def test_half_a_pair_stays_half_a_pair() -> None:
    assert load_yaml(b'{"title": "\\ud83d news"}', "p.json").data == {"title": "\ud83d news"}
