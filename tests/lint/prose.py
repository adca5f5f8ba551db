"""The prose of a file: paragraphs of Markdown, docstrings, comments and messages, and their sentences.

Code in prose, URLs and the values in f-strings become the placeholder ``_``, which counts as one word. Line ends stay
as they are, so that the line of a finding can be counted.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

from tests.lint.source import Source

MESSAGE_WORDS = 4
"""A literal with at least as many plain words is a message. A ``help=`` text always is one."""
GENERATED = "<!-- Made from the code"
"""How a page begins that is generated: its texts are checked in the code."""

_CODE = re.compile(
    r"^(?P<indent> *)```.*?^(?P=indent)```$"  # a fenced block
    r"|<!--.*?-->|^ *>>> [^\n]*|https?://[^\s)>]+|\]\([^)\s]*\)"  # a comment, a doctest, a URL, the target of a link
    r"|(?::\w+:)?(?P<ticks>`+)(?:(?!\n\n|(?P=ticks)).)+(?P=ticks)"  # inline code
    r"|\x08\n.+?(?=\n *\n|\Z)",  # a paragraph of a help text that click leaves as it is
    re.MULTILINE | re.DOTALL,
)
_FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r" *(?:$|[|#>├└│]|[-*+] |\d+\. )| {8}[a-z_0-9]+: ")
"""How a passage begins; the last are the attributes of a class in its docstring."""
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|vs|cf|approx)\.", re.IGNORECASE)
_SENTENCE = re.compile(r".+?(?:[.!?]['\"»)\]*]*(?=\s+(?:[^a-z\s]|[a-z]+_))|$(?!\n))", re.DOTALL)
_PLAIN_WORD = re.compile(r"(?<![\w.:/=-])[A-Za-z]?[a-z'-]+(?![\w=/(-])")
_NO_MESSAGE = re.compile(  # SQL, a regular expression, YAML
    r"\A\s*(?:SELECT|INSERT|UPDATE|DELETE FROM|CREATE|WITH|PRAGMA|ALTER|DROP)\b|\(\?|\\[dws.]|^ *- (?:\{|\w+:)",
    re.MULTILINE,
)
_DIRECTIVE = re.compile(r"#\s*(?:noqa|type:|pragma|ruff|!)")


@dataclass(frozen=True)
class Passage:
    """A paragraph, a list item, a heading, a table cell, a comment or a message; ``line`` is that of its first line."""

    line: int
    text: str
    is_message: bool = False

    def line_at(self, position: int) -> int:
        return self.line + self.text.count("\n", 0, position)


def passages(source: Source) -> Iterator[Passage]:
    """Yield the passages of Markdown and docstrings; in ``msauto/`` those of comments and messages too."""
    if not source.is_python:
        if not source.text.startswith(GENERATED):
            yield from _paragraphs(source.text, 1)
        return
    for line, text in docstrings(source):
        yield from _paragraphs(text, line)
    if source.is_in("msauto"):
        for line, text, is_help in _literals(source.tree):
            if is_help or _is_message(text):
                yield from _paragraphs(text, line, is_message=True)
        for line, text in comments(source):
            yield from _paragraphs(text, line)


def without_examples(text: str) -> str:
    """Return Markdown without its fenced blocks; the lines keep their numbers."""
    return _FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)


def docstrings(source: Source) -> Iterator[tuple[int, str]]:
    """Yield the first line and the text of each docstring of a Python file, also of constants."""
    for node in source.nodes:
        if isinstance(node, ast.Expr) and (docstring := _docstring(node)):
            yield node.lineno, docstring


def comments(source: Source) -> Iterator[tuple[int, str]]:
    """Yield the first line and the text of each comment; lines that follow each other in one column are one comment."""
    block: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.COMMENT and not _DIRECTIVE.match(token.string):
            row, column = token.start
            if block and block[-1].start != (row - 1, column):
                yield _joined(block)
                block = []
            block.append(token)
    if block:
        yield _joined(block)


def sentences(passage: Passage) -> Iterator[tuple[int, str]]:
    """Yield each sentence with its position in the passage. A full stop before a small letter does not end one."""
    text = _ABBREVIATION.sub(lambda found: found[0].replace(".", "·"), passage.text)
    for found in _SENTENCE.finditer(text):
        blank = len(found[0]) - len(found[0].lstrip())
        yield found.start() + blank, found[0].strip()


def _paragraphs(text: str, line: int, is_message: bool = False) -> Iterator[Passage]:
    kept: list[str] = []
    start = line
    clean = _CODE.sub(_placeholder, text)
    for number, each in enumerate([*clean.split("\n"), ""], line):
        if _BLOCK.match(each):
            for cell in "\n".join(kept).split("|"):
                yield Passage(start, cell, is_message)
            start, kept = number, []
        kept.append(re.sub(r"[ \t]+", " ", each.strip()))


def _placeholder(code: re.Match[str]) -> str:
    is_block = code["indent"] is not None or code[0].startswith(("<!--", "]", "\b"))
    return ("" if is_block else "_") + "\n" * code[0].count("\n")


def _docstring(node: ast.AST) -> str | None:
    """Return the text of a statement that is only a string."""
    value = node.value if isinstance(node, ast.Expr) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None


def _literals(node: ast.AST, is_help: bool = False) -> Iterator[tuple[int, str, bool]]:
    """Yield line, text and whether it is a ``help=`` of each string that is not a docstring."""
    if isinstance(node, ast.JoinedStr):
        pieces = (
            str(part.value) if isinstance(part, ast.Constant) else "_" for part in node.values
        )
        yield node.lineno, "".join(pieces), is_help
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                yield from _literals(part.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.lineno, node.value, is_help
    elif not _docstring(node):
        for child in ast.iter_child_nodes(node):
            yield from _literals(child, getattr(node, "arg", "") == "help")


def _is_message(text: str) -> bool:
    return len(_PLAIN_WORD.findall(text)) >= MESSAGE_WORDS and not _NO_MESSAGE.search(text)


def _joined(block: list[tokenize.TokenInfo]) -> tuple[int, str]:
    return block[0].start[0], "\n".join(token.string.lstrip("#") for token in block)
