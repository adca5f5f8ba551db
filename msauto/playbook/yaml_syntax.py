"""What is wrong with a text that is no YAML, in plain words; and its lines without the secrets in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msauto.model.secrets import HIDDEN

if TYPE_CHECKING:
    import yaml

_SECRET_PAIR = re.compile(r"(?i)((?:password|passwd|secret|token|bearer|api[_-]?key)[\"']?\s*[:=]\s*)[^\s].*")
_TAGGED = re.compile(r"((?:^|[\s\[{,:-])!(?:!|<!?)?(?>secret|[A-Za-z]\S*))\s*\S.*")
_TAG = re.compile(r"(?:^|[\s\[{,:-])!(?:!|<!?)?[A-Za-z]")
"""Tags, rightly spelt or not."""
_NEXT = re.compile(r"\s*(?:#|-(?:\s|$)|[^\s#-][^#]*?:(?:\s|$))")
"""A line that begins something else: what else follows a tag is taken for a part of its text that is ill indented."""


def without_secrets(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Return the lines of a text whose structure is not known without what looks like a secret."""
    return tuple(_SECRET_PAIR.sub(rf"\1{HIDDEN}", line) for line in _without_tagged(lines))


def _without_tagged(lines: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines of a text that is no YAML without what is tagged as secret, lines below it included."""
    deep: int | None = None
    for line in lines:
        indent = len(line.expandtabs()) - len(line.expandtabs().lstrip())
        if deep is not None and (indent > deep or _NEXT.match(line) is None):
            yield " " * indent + HIDDEN if line.strip() else line
            continue
        deep = indent if _TAG.search(line) else None
        yield _TAGGED.sub(rf"\1 {HIDDEN}", line)


def shown_until(text: str, end: tuple[int, int], lines: tuple[str, ...]) -> tuple[int, int]:
    """Return where a secret ends; one that seems empty may begin with ``#``, and YAML has taken it for a comment."""
    return end if text or end[0] > len(lines) else (end[0], len(lines[end[0] - 1]) + 1)


def told_plainly(error: yaml.MarkedYAMLError, line: str) -> tuple[str, str]:
    """Say in plain words what PyYAML found; returns message and remedy."""
    problem = error.problem or ""
    if "\\t" in problem or line.lstrip(" ").startswith("\t"):
        return "a tab cannot indent YAML", "use spaces"
    if "mapping values are not allowed" in problem:
        return "a colon that starts a value cannot stand here", "quote the text, or look at the indentation"
    if "'%'" in problem or "'@'" in problem or "'`'" in problem:
        return "a text cannot begin with this sign", "quote it"
    if "unexpected end of stream" in problem or "quoted scalar" in (error.context or ""):
        return "a quote is opened and never closed", ""
    if (
        "<block end>" in problem
        or "block mapping" in (error.context or "")
        or "block collection" in (error.context or "")
    ):
        return "the structure breaks here", "look at the indentation of this line and of those above it"
    return f"this is no YAML: {problem or error.context or 'unreadable'}", ""


def paired(text: str) -> str:
    r"""Join ``"\ud83d\ude00"``: so JSON writes an emoji, and YAML 1.2 reads what JSON writes."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
