"""Problems as GitHub and GitLab show them at the line."""

from __future__ import annotations

from pathlib import Path

from msauto.errors import Problem, SourceLocation
from msauto.report.ci_forms import problems_gitlab, render_github

ODD = Problem("100% wrong: a,b\nand more\x1b", SourceLocation("a,b:c.yml", 3, 7), "fix it")


def test_what_github_would_obey_is_escaped() -> None:
    (line,) = render_github([ODD])
    properties, message = line.removeprefix("::error ").split("::")
    assert properties == "file=a%2Cb%3Ac.yml,line=3,col=7,title=msauto invalid-value"
    assert message == "100%25 wrong: a,b%0Aand more\\x1b%0A→ fix it\n"


def test_a_problem_without_a_place() -> None:
    assert list(render_github([Problem("::error::x", level="warning")])) == [
        "::warning title=msauto invalid-value::::error::x\n"
    ]


def test_github_shows_ten_of_a_kind_and_the_last_line_counts_the_others() -> None:
    warnings = [Problem(f"w{number}", level="warning") for number in range(11)]
    errors = [Problem(f"e{number}") for number in range(12)]
    lines = list(render_github([*warnings, *errors]))
    assert [line.partition(" ")[0] for line in lines] == ["::error"] * 10 + ["::warning"] * 10 + [
        "::notice"
    ]
    assert lines[-1] == (
        "::notice title=msauto validate::GitHub shows 10 annotations of a kind: 2 errors and 1 warning not shown here."
        " Run msauto validate to see all\n"
    )


def test_gitlab_gets_a_report_with_the_errors_first() -> None:
    warning = Problem("unused", SourceLocation(str(Path.cwd() / "play.yml"), 9, 1), level="warning")
    first, second, third = problems_gitlab([warning, ODD, ODD])
    assert first | {"fingerprint": ""} == {
        "description": "100% wrong: a,b\nand more\\x1b\n→ fix it",
        "check_name": "msauto/invalid-value",
        "fingerprint": "",
        "severity": "major",
        "location": {"path": "a,b:c.yml", "lines": {"begin": 3}},
    }
    assert (third["severity"], third["location"]) == (
        "minor",
        {"path": "play.yml", "lines": {"begin": 9}},
    )
    assert len({each["fingerprint"] for each in (first, second, third)}) == 3


def test_a_fingerprint_stays_when_the_line_moves() -> None:
    moved = Problem(ODD.message, SourceLocation("a,b:c.yml", 30, 7), "fix it")
    assert problems_gitlab([ODD])[0]["fingerprint"] == problems_gitlab([moved])[0]["fingerprint"]
