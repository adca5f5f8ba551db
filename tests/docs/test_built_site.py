"""The check of the built documentation finds what a page would load from elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.built_site import NEEDED, outside_requests, problems


@pytest.mark.parametrize(
    "text",
    [
        '<script defer src="https://cdn.example/a.js"></script>',
        '<link href="//fonts.example/a.css" rel="stylesheet">',
        '<link rel="stylesheet" type="text/css" href="https://fonts.example/a.css" />',
        '<img alt="" src="http://a.example/a.png">',
        "@import 'https://fonts.example/a.css';",
        "@font-face { src: url(https://fonts.example/a.woff2) }",
    ],
)
def test_what_is_loaded_is_found(text: str) -> None:
    assert len(list(outside_requests(text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        '<a href="https://a.example">a link</a>',
        '<script src="_static/a.js"></script>',
        '<link rel="search" href="https://a.example">',
        '<svg xmlns="http://www.w3.org/2000/svg">',
    ],
)
def test_links_are_not_requests(text: str) -> None:
    assert list(outside_requests(text)) == []


def test_a_page_that_is_missing_or_loads_something_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "html").mkdir()
    (tmp_path / "html" / "index.html").write_text('<img src="https://a.example/a.png">', encoding="utf-8")
    found = list(problems(tmp_path))
    assert found == [f"{name} is missing" for name in NEEDED[1:]] + ["html/index.html: loads https://a.example/a.png"]
