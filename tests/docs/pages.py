"""The pages of the documentation as values: their blocks, headings and links.

Conventions that a reader sees too:

- A block whose first line is ``# NAME.yml`` (or .toml, .csv, .edl, .py) is the file of that name.
- In a ``console`` block, lines that begin with ``$ `` are commands. What follows is their output, in which a line
  ``...`` stands for any lines.
- A ``text`` block right after a ``python`` block is the output of that code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MADE = "<!-- Made from the code"
"""How a page begins that is made from the code; what makes it sees to its examples."""
PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").rglob("*.md")),
)

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_FILE = re.compile(r"# (?P<name>[\w./-]+\.(?:yml|toml|csv|edl|py))\n")
_HEADING = re.compile(r"^#{1,6} (?P<text>.+)$", re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """One fenced block; ``start`` and ``end`` bound its body in the page's text."""

    page: Path
    language: str
    body: str
    start: int
    end: int
    line: int

    @property
    def file(self) -> str | None:
        """The name of the file that the block shows."""
        found = _FILE.match(self.body)
        return found["name"] if found else None

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page in their order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        body = match["body"]
        if match["indent"]:
            body = "".join(
                each.removeprefix(match["indent"]) for each in body.splitlines(keepends=True)
            )
        found.append(
            Block(page, match["language"], body, match.start("body"), match.end("body"), line)
        )
    return found


def all_blocks(language: str) -> list[Block]:
    """Return the blocks of one language, of all pages that people write."""
    written = (page for page in PAGES if not page.read_text(encoding="utf-8").startswith(MADE))
    return [block for page in written for block in blocks(page) if block.language == language]


def prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def links(page: Path) -> Iterator[str]:
    """Yield the targets of a page's links."""
    for match in _LINK.finditer(prose(page)):
        yield match["target"]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as the usual renderers make them."""
    texts = (match["text"].lower() for match in _HEADING.finditer(prose(page)))
    return {re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-") for text in texts}
