"""A citation without a heading, and a path that is not in the tree, are findings of ``make lint``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from tests.lint import citations, paths
from tests.lint.source import Finding, Source

PAGE = Source("docs/reference/made.md", "# Made\n## A heading\n```sh\n# a comment\n```\n")
Check = Callable[[Sequence[Source]], Iterator[Finding]]


def found(check: Check, text: str, path: str = "msauto/made.py") -> list[int]:
    """Return the lines of the findings in a file."""
    return [finding.line for finding in check([PAGE, Source(path, text)])]


@pytest.mark.parametrize(
    "comment",
    [
        "made, «A heading»",
        "made, «Made» and «A heading»",
        "made,\n# «A\n# heading»",
        'another source, "a title"',
    ],
)
def test_a_citation_of_a_heading_is_none(comment: str) -> None:
    assert found(citations.check, f"# {comment}\n") == []


@pytest.mark.parametrize(
    "comment",
    [
        "made, «a heading»",
        "made, «A heading» and «B»",
        "made, «a comment»",
        "nowhere, «Made»",
        "see «Made»",
    ],
)
def test_another_citation_is_a_finding(comment: str) -> None:
    assert found(citations.check, f'"""A docstring.\n\n{comment}\n"""\n') == [3]
    assert found(citations.check, f"x = 1  # {comment}\n") == [1]


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("`msauto/cli/main.py`, `msauto/cli/commands/<name>.py`, `docs/`", 0),
        ("`msauto/cli/nothing.py`", 1),
        ("`msauto/cli/main.py` and `flags.py` beside it", 0),
        ("`msauto/cli/main.py` and `aio.py` beside it", 1),
        ("`cli/`: `commands/`, `parsers.py`", 1),
        ("`group` in `msauto/cli/main.py`", 0),
        ("`nothing_of_it` in `msauto/cli/main.py`", 1),
        ("`python -m tests.lint`, `python -m tests.nothing`", 1),
    ],
)
def test_what_a_map_names_is_in_the_tree(line: str, count: int) -> None:
    assert len(found(paths.check, f"{line}\n", "CONTRIBUTING.md")) == count


def test_a_path_of_a_user_is_none_of_ours() -> None:
    assert (
        found(
            paths.check,
            "`/etc/msauto/nightly.env`, `~/.local/state/msauto/x`, `test_news.py`\n",
            "docs/a.md",
        )
        == []
    )
    assert found(paths.check, "# tests/nowhere/\n") == [1]
