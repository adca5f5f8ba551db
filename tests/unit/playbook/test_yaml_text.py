"""Values written as YAML read back as themselves, by every reader; templates among them render to themselves."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from msauto.documents.document import Document, SourceNode
from msauto.documents.loader import load_yaml
from msauto.documents.value_types import is_template
from msauto.documents.writer import WIDTH, CommentedValue, FlowStyle, comment, literal, yaml_lines
from msauto.playbook.templates.environment import render_text
from msauto.playbook.templates.names import SecretTracker


class NoNames(dict[str, Any]):
    tracker = SecretTracker()

    def known(self) -> list[str]:
        return []


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
    with pytest.raises(TypeError, match="float"):
        written(1.5)
