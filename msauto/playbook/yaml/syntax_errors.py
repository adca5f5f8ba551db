"""What is wrong with a text that is no YAML, in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import yaml


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
