"""Tables and the writing of values."""

from __future__ import annotations

from fractions import Fraction

import pytest

from msauto.report.layout import Style, render_table
from msauto.report.sanitizing import display_width, shorten, show, show_pair, visible
from msauto.report.texts import show_frames, show_list, show_pair_of, show_seconds, show_value

ROWS = [["Новости дня", "25"], ["日本のニュース", "50"], ["Cafe\u0301", "29.97"], ["a\tb", ""]]


def test_table_is_aligned_by_what_a_reader_sees() -> None:
    assert render_table(["title", "fps"], ROWS, colour=False) == (
        "title           fps\nНовости дня     25\n日本のニュース  50\nCafe\u0301            29.97\na\\tb\n"
    )


def test_table_head_is_bold_in_colour() -> None:
    assert render_table(["a"], [], colour=True) == "\x1b[1ma\x1b[0m\n"


def test_wide_cells_wrap_and_the_first_column_is_never_cut() -> None:
    rows = [["id" * 10, "one two three four", "y" * 30], ["short", "日" * 7, ""]]
    assert render_table(["run", "text", "more"], rows, colour=False, width=48).splitlines() == [
        "run                   text          more",
        "idididididididididid  one two       yyyyyyyyyyyy",
        "                      three four    yyyyyyyyyyyy",
        "                                    yyyyyy",
        "short                 日日日日日日",
        "                      日",
    ]


def test_columns_for_which_there_is_no_room_go_below() -> None:
    rows = [["id" * 15, "ok", "a b c", "d"], ["two", "failed", "", ""]]
    text = render_table(
        ["run", "status", "text", "more"], rows, colour=False, width=45, whole=("status",)
    )
    assert text.splitlines() == [
        "run                             status",
        f"{'id' * 15}  ok",
        "  a b c · d",
        "two                             failed",
    ]


def test_a_long_cell_of_many_columns_is_cut_and_of_two_is_not() -> None:
    long = "word " * 60
    three = render_table(["name", "value", "at"], [["x", long, "here"]], colour=False, width=40)
    assert (len(three.splitlines()), three[-2]) == (4, "…")
    two = render_table(["name", "value"], [["x", long]], colour=False, width=40)
    assert two.count("word") == 60
    assert max(map(display_width, two.splitlines())) <= 40


def test_without_a_terminal_nothing_is_cut() -> None:
    assert "y" * 500 in render_table(["a", "b", "c"], [["x", "y" * 500, "z"]], colour=False)


def test_row_with_a_cell_missing_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="zip"):
        render_table(["a", "b"], [["1"]], colour=False)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Part 1", "Part 1"),
        ("", '""'),
        (" x", '" x"'),
        ("two\nlines", r'"two\nlines"'),
        ("a  b", '"a  b"'),
        ('say "hi"', 'say "hi"'),
        ('"hi"', r'"\"hi\""'),
        ("a → b", '"a → b"'),
        (r"Back\Slash / Film: 50% @ night?", r"Back\Slash / Film: 50% @ night?"),
        ("\\x1b\x1b", r'"\\x1b\x1b"'),
        ("a\xa0b", r'"a\xa0b"'),
        ("\U000e0041", r'"\U000e0041"'),
        ("\ud800", r'"\ud800"'),
    ],
)
def test_texts_are_quoted_where_a_reader_could_be_misled(text: str, shown: str) -> None:
    assert show(text) == shown


def test_visible_leaves_backslashes_alone() -> None:
    assert visible("a\\b\x07") == "a\\b\\x07"


def test_shortening_keeps_both_ends_and_counts() -> None:
    short = shorten("a" * 50 + "b" * 50, 30)
    assert short.startswith("aaaa")
    assert short.endswith("bbb")
    assert display_width(short) <= 30
    kept = short.count("a") + short.count("b")
    assert f"[…{100 - kept}…]" in short


def test_shortening_never_parts_an_accent_from_its_letter() -> None:
    assert all(not part.startswith("\u0306") for part in shorten("и\u0306" * 60, 25).split("…]"))


def test_a_difference_stays_in_sight() -> None:
    before, after = "x" * 200 + "A" + "y" * 200, "x" * 200 + "B" + "y" * 200
    old, new = show_pair(before, after, limit=60)
    assert "A" in old
    assert "B" in new
    assert old.startswith('"[…196…]xxxxA')


def test_difference_at_the_very_end_of_one() -> None:
    old, new = show_pair("x" * 300, "x" * 300 + "!", limit=40)
    assert old != new
    assert new.endswith('!"')


@pytest.mark.parametrize(
    ("frames", "rate", "shown"),
    [
        (18750, Fraction(25), "00:12:30:00 (18750)"),
        (1800, Fraction(30000, 1001), "00:01:00:00 / 00:01:00;02 (1800)"),
        (3600, Fraction(60000, 1001), "00:01:00:00 / 00:01:00;04 (3600)"),
        (24, Fraction(24000, 1001), "00:00:01:00 (24)"),
        (1, None, "1 frame"),
        (-3, Fraction(25), "-3 frames"),
    ],
)
def test_frames_have_time_codes_beside_them(frames: int, rate: Fraction | None, shown: str) -> None:
    assert show_frames(frames, rate) == shown


def test_values_of_every_kind() -> None:
    assert show_value(None) == "(nothing)"
    assert show_value("(nothing)") == '"(nothing)"'
    assert show_value(True, "first_frame", Fraction(25)) == "true"
    assert show_value("250", "first_frame", Fraction(25)) == "00:00:10:00 (250)"
    assert show_value("²", "first_frame", Fraction(25)) == '"²"'
    assert show_value({"a": "\x1b"}) == r'{"a": "\u001b"}'
    assert show_list(["a", "b, c", 3, None]) == '["a", "b, c", 3, (nothing)]'
    assert show_list(["abcdefgh"] * 9, limit=30) == '["abcdefgh", "abcdefgh", […7…]]'


def test_values_that_differ_never_look_alike() -> None:
    for before, after in (("3", 3), (["x" * 50 + "a"] * 9, ["x" * 50 + "a"] * 8 + ["b"])):
        old, new = show_pair_of(before, after, "k", None, 20)  # type: ignore[arg-type]
        assert old != new


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0 s"), (45, "45 s"), (1800, "30 min"), (4500, "1 h 15 min"), (3600.2, "1 h")],
)
def test_lengths_of_time(seconds: float, shown: str) -> None:
    assert show_seconds(seconds) == shown


def test_a_cell_has_the_style_of_its_text() -> None:
    styles: dict[str, dict[str, Style]] = {"status": {"ok": "green"}}
    lines = render_table(
        ["run", "status", "x"],
        [["ok", "ok", "1"], ["b", "failed", "2"]],
        colour=True,
        styles=styles,
    )
    assert lines.splitlines()[1:] == ["ok   \x1b[32mok\x1b[0m      1", "b    failed  2"]
    assert "\x1b[32m" not in render_table(["status"], [["ok"]], colour=False, styles=styles)
