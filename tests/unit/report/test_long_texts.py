"""Texts from outside that are long: what is shown of them, and that the work grows no faster than they do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

import pytest

from msauto.errors import MsautoError
from msauto.report.layout import (
    Layout,
    Line,
    TextSpan,
    in_ascii,
    render_lines,
    render_table,
    value_table,
    words,
)
from msauto.report.sanitizing import display_width, parts_of_width, show, show_pair, visible
from msauto.report.text import render_error
from tests.tables import one_fast_in

LAYOUT = Layout(width=80)
SHAPES = {
    "letters": "a",
    "words": "ab ",
    "wide": "漢",
    "accents": "e\u0301\u0327",
    "only accents": "\u0301",
    "hidden": "\u202e",
    "spaces": " ",
    "quotes": '\\"',
    "emoji": "👩\u200d",
    "arrows": "→ ",
}
FORMS: dict[str, Callable[[str], object]] = {
    "shown": show,
    "shortened": lambda text: show(text, limit=60),
    "compared": lambda text: show_pair(f"{text}a", f"{text}b", limit=60),
    "wrapped": lambda text: [*render_lines([words(text)], LAYOUT)],
    "a span": lambda text: [
        *render_lines([Line((TextSpan("comment "), TextSpan(text)), 4)], LAYOUT)
    ],
    "a table": lambda text: render_table(
        ["a", "b", "c"], [["x", text, text]], colour=False, width=80
    ),
    "a table of values": lambda text: [*value_table([["", "b", "c"], ["x", text, text]], LAYOUT)],
    "an error": lambda text: render_error(MsautoError(text, remedy=text), colour=False, width=80),
    "ascii": in_ascii,
}


def calls(work: Callable[[], object]) -> int:
    """Return how many functions are called, those of Python's own library included."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", one_fast_in(9, SHAPES))
def test_twice_the_text_is_at_most_twice_the_work(form: str, shape: str) -> None:
    render = FORMS[form]
    texts = [SHAPES[shape] * (length // len(SHAPES[shape])) for length in (1500, 3000, 6000)]
    counts = [calls(partial(render, text)) for text in texts]
    for fewer, more in pairwise(counts):
        assert more <= 2.3 * fewer + 100, counts


def test_what_is_shown_of_a_text_does_not_depend_on_its_length() -> None:
    counts = {calls(partial(show, "é" * length, limit=60)) for length in (100_000, 200_000)}
    assert max(counts) - min(counts) < 100


def test_the_middle_of_a_long_text_is_counted() -> None:
    text = "start" + "é" * 100_000 + "end"
    shown = show(text, limit=40)
    head, _, rest = shown.partition("[…")
    left, _, tail = rest.partition("…]")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + int(left) + len(tail) == len(text)
    assert display_width(shown) <= 40


def test_the_first_difference_of_long_texts_is_shown() -> None:
    before, after = show_pair(
        "é" * 100_000 + "old" + "x" * 50_000, "é" * 100_000 + "new" + "x" * 50_000, limit=60
    )
    assert before.startswith('"[…99996…]ééééold')
    assert "new" in after


def test_a_stack_of_accents_is_split_and_nothing_of_it_is_lost() -> None:
    text = "e" + "\u0301" * 1000 + "f"
    assert "".join(parts_of_width(text, 10)) == text
    assert visible(f"{text}\u202e") == f"{text}\\u202e"


def rows_of(text: str, width: int) -> Iterator[str]:
    yield from (
        line.removesuffix("\n") for line in render_lines([words(text)], Layout(width=width))
    )


@pytest.mark.parametrize("width", [80, 120])
def test_a_comment_of_5_kb_is_wrapped_and_whole(width: int) -> None:
    comment = "The quick brown fox jumps over the lazy dog. " * 110
    rows = [*rows_of(comment, width)]
    assert max(map(len, rows)) <= width
    assert " ".join(row.strip() for row in rows) == comment.strip()
