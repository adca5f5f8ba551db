"""Rewrites the outputs of a page's examples if they differ: ``python -m tests.docs.record docs/tutorial.md``."""

from __future__ import annotations

import sys
import tempfile
from itertools import zip_longest
from pathlib import Path

from tests.docs.pages import Block, blocks
from tests.docs.session import Session, alike, session, steps


def record(page: Path) -> str:
    """Return the page with what its examples print today."""
    text = page.read_text(encoding="utf-8")
    edits: list[tuple[int, int, str]] = []
    with tempfile.TemporaryDirectory() as name, session(Path(name).resolve()) as running:
        found = blocks(page)
        for block, following in zip_longest(found, found[1:]):
            edits += _edits(block, following, running)
    for start, end, body in reversed(edits):
        text = text[:start] + body + text[end:]
    return text


def _edits(block: Block, following: Block | None, running: Session) -> list[tuple[int, int, str]]:
    if block.language == "console":
        return [(block.start, block.end, _transcript(block, running))]
    if block.language == "python" and not block.file:
        printed = running.python(block)
        if following is not None and following.language == "text":
            return [(following.start, following.end, printed + "\n")]
    elif block.file:
        running.write(block)
    return []


def _transcript(block: Block, running: Session) -> str:
    lines = []
    for step in steps(block.body):
        actual = running.run(step)
        told = step.expected if alike(step.expected, actual) else actual
        lines += [f"$ {step.command}", *([told.rstrip("\n")] if told else [])]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        Path(argument).write_text(record(Path(argument).resolve()), encoding="utf-8")
