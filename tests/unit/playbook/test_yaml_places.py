from __future__ import annotations

from typing import Any

import pytest

from msauto.documents.loader import dump_yaml, load_yaml, resolve_scalar
from msauto.errors import InputError, SourceLocation


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
        (b"a: !vault x", "f:1:4: unknown tag !vault"),
        (b"a: !secret x", "f:1:4: a secret must have at least 4 characters"),
        (b"a: !secret [eins1, zwei2]", "f:1:4: !secret marks a text, not a list or mapping"),
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


def test_dump_keeps_order_and_signs() -> None:
    assert dump_yaml({"b": [1, 2], "a": "Новости"}) == "b:\n- 1\n- 2\na: Новости\n"
