"""The pictures of terminals in the documentation: ``python -m tests.docs.terminal_pictures`` makes them again.

Each shows one command of a page, run as the tests of the examples run it, with the colours of a terminal.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

import click

from msauto.report.sanitizing import display_width
from tests.docs.pages import ROOT, blocks
from tests.docs.session import session, steps

IMAGES = ROOT / "docs" / "images"


class Picture(NamedTuple):
    """The command of a page that a picture shows, and the text for those who do not see it."""

    page: Path
    command: str
    title: str


_TUTORIAL = ROOT / "docs" / "tutorial.md"
PICTURES = {
    "plan.svg": Picture(_TUTORIAL, "msauto plan news.yml", "A plan in the terminal"),
    "errors.svg": Picture(_TUTORIAL, "msauto plan wrong.yml", "Two errors of a playbook"),
}


def transcript(picture: Picture) -> str:
    """Return the command and its output as its page shows them."""
    for block in blocks(picture.page):
        for step in steps(block.body) if block.language == "console" else ():
            if step.command == picture.command:
                return f"$ {step.command}\n{step.expected}"
    raise LookupError(f"{picture.page.name} does not run {picture.command}")


def record_pictures(page: Path) -> Iterator[tuple[str, str]]:
    """Run the examples of a page in colour; yield name and content of its pictures."""
    names = {picture.command: name for name, picture in PICTURES.items() if picture.page == page}
    with (
        tempfile.TemporaryDirectory() as folder,
        session(Path(folder).resolve(), colour=True) as running,
    ):
        for block in blocks(page):
            if block.language == "console":
                for step in steps(block.body):
                    output = running.run(step)
                    if step.command in names:
                        name = names.pop(step.command)
                        yield (
                            name,
                            terminal_svg(f"$ {step.command}\n{output}", PICTURES[name].title),
                        )
            elif block.file:
                running.write(block)


# SVG --------------------------------------------------------------------------------------------------------------

_COLUMN, _LINE, _MARGIN, _BAR = 8.4, 20, 20, 34
_COLOURS = {"31": "#ff8080", "32": "#7ee08a", "33": "#f2cc60", "35": "#d7a6ff", "36": "#79d4f2"}
_CLASSES = {"1": "b", "2": "d"}
_STYLE = """
text { font: 14px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #e6e6e6; white-space: pre }
.b { font-weight: bold } .d { fill: #a0a8b0 }
"""
_RUN = re.compile(r"\x1b\[(?P<style>[\d;]+)m(?P<styled>.*?)\x1b\[0m|(?P<plain>[^\x1b]+)")


def terminal_svg(text: str, title: str) -> str:
    """Draw a text with escape sequences for colours as a terminal shows it; its last lines may not be blank."""
    lines = text.splitlines()
    columns = max(display_width(click.unstyle(line)) for line in lines)
    width = round(columns * _COLUMN + 2 * _MARGIN)
    height = len(lines) * _LINE + _BAR + _MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        f' role="img" aria-labelledby="title">\n<title id="title">{escape(title)}</title>\n<style>{_STYLE}</style>\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="#1b1f24"/>\n'
    )
    dots = "".join(f'<circle cx="{20 + 18 * n}" cy="17" r="5" fill="#4a525c"/>' for n in range(3))
    drawn = ""
    for number, line in enumerate(lines):
        drawn += _drawn_line(line, _BAR + _LINE * (number + 0.7))
    return f"{head}{dots}\n{drawn}</svg>\n"


def _drawn_line(line: str, y: float) -> str:
    """Draw a line; each run has its place and length, so that columns align in every font."""
    if line.startswith("$ "):
        line = f"\x1b[1m{line}\x1b[0m"
    column, spans = 0, ""
    for run in _RUN.finditer(line):
        text = run["styled"] or run["plain"] or ""
        columns = display_width(text)
        place = f'x="{_MARGIN + column * _COLUMN:.1f}" textLength="{columns * _COLUMN:.1f}"'
        spans += f"<tspan {place}{_look(run['style'])}>{escape(text, quote=False)}</tspan>"
        column += columns
    return f'<text y="{y:.0f}">{spans}</text>\n'


def _look(style: str | None) -> str:
    """Return the attributes of a run with these numbers of an escape sequence."""
    numbers = (style or "").split(";")
    classes = " ".join(_CLASSES[number] for number in numbers if number in _CLASSES)
    colours = [_COLOURS[number] for number in numbers if number in _COLOURS]
    return (f' class="{classes}"' if classes else "") + "".join(
        f' style="fill: {colour}"' for colour in colours
    )


_DRAWN = re.compile(r"<text[^>]*>(?P<spans>.*)</text>")


def text_of(svg: str) -> str:
    """Return the text that a picture shows."""
    lines = (re.sub(r"<[^>]*>", "", found["spans"]) for found in _DRAWN.finditer(svg))
    return "\n".join(
        line.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") for line in lines
    )


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    for shown in {picture.page for picture in PICTURES.values()}:
        for name, svg in record_pictures(shown):
            (IMAGES / name).write_text(svg, encoding="utf-8")
