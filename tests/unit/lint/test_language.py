"""The check of the language: small texts in, findings out."""

from __future__ import annotations

import pytest

from tests.lint import language
from tests.lint.source import Source

LONG = "This sentence has far more parts than a reader can hold " * 3
"""33 words, and no full stop."""


def found(text: str, path: str = "docs/x.md") -> list[tuple[int, str]]:
    return [(each.line, each.rule) for each in language.check([Source(path, text)])]


@pytest.mark.parametrize(
    "text",
    [
        "The plan says\nnothing.",
        "A value is wanted.",
        "It is no time\ncode.",
        "The title stands\ntwice.",
        "Nobody agreed.",
        "Retry, for it may work.",
        "In the house.",
        "Keep a person's title.",
    ],
)
def test_a_word_to_avoid(text: str) -> None:
    assert found(f"# Page\n\n{text}\n") == [(3, "word")]


@pytest.mark.parametrize(
    "text",
    [
        "`wanted` and `told\nanybody`",
        "```\nthe plan says\n```",
        "  ```yaml\n  - wanted\n  ```",
        "<!-- told -->",
        "https://host/told",
        "[link](wanted.md)",
        "It is no longer valid, and the answer is no.",
        "It stands for a stand-in.",
        "There is no rollback.",
        "No room for it.",
    ],
)
def test_text_that_is_allowed(text: str) -> None:
    assert found(text) == []


def test_generated_pages_are_checked_in_the_code() -> None:
    assert found("<!-- Made from the code -->\nThe plan says.") == []


def test_each_line_of_a_page_has_its_number() -> None:
    page = "# Told\n\n- one\n- told\n\n| a | b |\n|---|---|\n| x | told |\n\n```\ncode\n```\ntold `a\nb` told\n"
    assert [line for line, _ in found(page)] == [1, 4, 8, 13, 14]


def test_docstrings_comments_and_messages_of_the_package() -> None:
    code = '''"""A module, told."""
# A comment
# that is told.
NAME = 1  # told
"""An attribute that is told."""
if NAME:
    raise ValueError(f"{NAME!r} was told to the caller")
option(help="told")
short = "told"
also = f"{fail('there is no title of it')}"
'''
    assert [line for line, _ in found(code, "msauto/x.py")] == [1, 5, 7, 8, 10, 3, 4]


def test_only_docstrings_of_the_tests() -> None:
    assert found('"""It is told."""\n# told\nx = "this was told to the caller"\n', "tests/x.py") == [(1, "word")]


@pytest.mark.parametrize(
    "text", ["SELECT told FROM run where a is b", "(?:told|the other words of it)", "- told: {a: b c d e}"]
)
def test_sql_regular_expressions_and_yaml_are_no_messages(text: str) -> None:
    assert found(f"x = {text!r}", "msauto/x.py") == []


def test_a_long_sentence() -> None:
    assert found(f"Short.\n{LONG}") == [(2, "sentence")]
    assert found(f"x = {LONG!r}", "msauto/x.py") == [(1, "sentence")]


@pytest.mark.parametrize("end", [" no. And", "! `code`", '." The', ".\nfull_stop ends", "\n\n", "\n- ", "\n## ", " | "])
def test_what_ends_a_sentence(end: str) -> None:
    half = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    assert found(half + end + half) == []


@pytest.mark.parametrize(
    "middle", [" e.g. The ", ": ", " 1.5 ", " `a. B. C` ", " https://x.y/?A=b ", " etc. and ", " i.e. A "]
)
def test_what_does_not_end_a_sentence(middle: str) -> None:
    half = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    assert found(half + middle + half + " more") == [(1, "sentence")]


def test_code_and_values_count_as_one_word() -> None:
    assert found("`a b c d e` " * 32) == []
    assert found("`a` " * 33) == [(1, "sentence")]


def test_a_paragraph_that_click_leaves_as_it_is() -> None:
    code = f'"""Told.\n\n\\b\nfirst  {LONG}\nsecond\n\nTold."""'
    assert found(code, "msauto/x.py") == [(1, "word"), (7, "word")]


def test_a_doubled_word() -> None:
    assert found("It is in the\nthe plan. Bye-bye, bye. A a.") == [(1, "doubled word")]


def test_every_pattern_is_a_regular_expression_with_a_proposal() -> None:
    for words in language.WORDS.values():
        for pattern, use in words.items():
            assert not language._compiled(pattern).match("")
            assert use
