"""Problems and errors as text."""

from __future__ import annotations

from msauto.errors import (
    InputError,
    MsautoError,
    PlanningError,
    Problem,
    RefusedError,
    RejectedError,
    SourceLocation,
)
from msauto.report.json import problems_json
from msauto.report.text import render_error, render_problems
from tests.unit.report.made_plans import check_golden

PROBLEMS = [
    Problem(
        "unknown key «titel»",
        SourceLocation("news.yml", 12, 9),
        "did you mean «title»?",
        "  12 |         titel: Evening News\n     |         ^",
    ),
    Problem("the inventory is empty", SourceLocation("hosts.yml"), "name a server under all/hosts"),
    Problem(
        "«日本» is no folder of ours\nit was renamed",
        SourceLocation("日.yml", 3, 12),
        excerpt="  3 | x: {日本: и\u0306, y: \x1b[2J}\n    |        ^",
    ),
]


def test_problems_read_as_agreed() -> None:
    check_golden("problems.txt", render_problems(PROBLEMS, colour=False))


def test_coloured_problems_read_as_agreed() -> None:
    check_golden("problems-colour.txt", render_problems(PROBLEMS, colour=True))


def test_no_problems_no_text() -> None:
    assert render_problems([], colour=True) == ""


def test_caret_stands_under_what_the_reader_sees() -> None:
    line = "  3 | 日本: x"
    caret = "    |     ^"  # four signs, six columns
    text = render_problems(
        [Problem("wrong", SourceLocation("a", 3, 5), excerpt=f"{line}\n{caret}")], colour=False
    )
    assert text.splitlines()[1:3] == [line, "    |       ^"]


def test_caret_stays_in_ascii_lines_with_tabs() -> None:
    text = render_problems([Problem("wrong", excerpt="  3 | \ta: b\n    |  ^")], colour=False)
    assert text.splitlines()[1:3] == ["  3 |  a: b", "    |  ^"]


def test_caret_past_the_end_of_the_line_stays_there() -> None:
    text = render_problems([Problem("wrong", excerpt="  3 | ab\n    |      ^")], colour=False)
    assert text.splitlines()[1:3] == ["  3 | ab", "    |      ^"]


def test_any_error_of_ours_has_one_form() -> None:
    error = PlanningError(
        "no asset «x\x1b»", place=SourceLocation("a.yml", 3, 4), remedy="look again"
    )
    assert (
        render_error(error, colour=False) == "Error: a.yml:3:4: no asset «x\\x1b»\n  → look again\n"
    )
    rejected = RejectedError("no", status=500, server="studio-a", request="GET /storage")
    assert (
        render_error(rejected, colour=True)
        == "\x1b[31mError:\x1b[0m server studio-a: GET /storage: no\n"
    )


def test_input_errors_show_all_problems() -> None:
    error = InputError(PROBLEMS)
    assert {*error.problems} == {*PROBLEMS}
    assert render_error(error, colour=False) == render_problems(error.problems, colour=False)


def test_refusals_are_called_so() -> None:
    assert render_error(RefusedError("a limit"), colour=False) == "Refused: a limit\n"


def test_problems_as_json() -> None:
    first, second, _ = problems_json(PROBLEMS)["problems"]
    assert first == {
        "file": "news.yml",
        "line": 12,
        "column": 9,
        "message": "unknown key «titel»",
        "remedy": "did you mean «title»?",
        "code": "invalid-value",
        "excerpt": "  12 |         titel: Evening News\n     |         ^",
        "level": "error",
    }
    assert (second["file"], second["line"]) == ("hosts.yml", 0)
    assert problems_json([Problem("x")])["problems"][0]["file"] is None


def test_errors_wrap_at_words_on_a_terminal() -> None:
    message = (
        "00:01:00;00 is drop frame (;), which 25 fps does not have: write 00:01:00:00 instead of it"
    )
    wide = "a" * 90
    problem = Problem(
        message, SourceLocation("play.yml", 3, 5), f"correct {message}", excerpt=f"  3 | {wide}"
    )
    for text in (
        render_problems([problem], colour=False, width=80),
        render_error(MsautoError(message, remedy=message), colour=False, width=80),
    ):
        lines = text.splitlines()
        assert max(len(line) for line in lines if wide not in line) <= 80
        assert " ".join(text.split()).count(message) == 2
    assert f"  3 | {wide}\n" in render_problems([problem], colour=False, width=80)
