"""The pictures of terminals show what their pages show, in the colours of msauto."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import PAGES
from tests.docs.session import alike
from tests.docs.terminal_pictures import (
    IMAGES,
    PICTURES,
    record_pictures,
    terminal_svg,
    text_of,
    transcript,
)

AGAIN = "make it again: python -m tests.docs.terminal_pictures"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_shows_what_its_page_shows(name: str) -> None:
    kept = (IMAGES / name).read_text(encoding="utf-8")
    assert alike(transcript(PICTURES[name]), text_of(kept)), AGAIN


@pytest.mark.scale
@pytest.mark.parametrize(
    "page", sorted({picture.page for picture in PICTURES.values()}), ids=lambda page: page.name
)
def test_the_colours_of_a_picture_are_those_of_a_terminal(page: Path) -> None:
    for name, svg in record_pictures(page):
        assert (IMAGES / name).read_text(encoding="utf-8") == svg, AGAIN


def test_every_picture_is_in_a_page() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert {path.name for path in IMAGES.glob("*.svg")} == PICTURES.keys()
    assert [name for name in PICTURES if f"images/{name})" not in text] == []


def test_a_picture_keeps_text_columns_and_colours() -> None:
    text = "$ msauto plan <x>\n\x1b[32m+ \x1b[0mé & \x1b[1;31m漢\x1b[0m\n\n"
    svg = terminal_svg(text, "A & B")
    assert text_of(svg) == "$ msauto plan <x>\n+ é & 漢\n"
    assert '<title id="title">A &amp; B</title>' in svg
    assert 'x="70.4" textLength="16.8" class="b" style="fill: #ff8080">漢' in svg
