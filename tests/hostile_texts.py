"""Texts that forges, messengers, terminals and schedulers would act on, and values that have one in every place."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from msgspec import Struct, structs

from msauto.model.plan import Body


def _groups(texts: tuple[str, ...], size: int = 4) -> list[tuple[str, ...]]:
    return [texts[at : at + size] for at in range(0, len(texts), size)]


ONE_LINE: Final = (
    "@everyone", "x @here", "@org/team", "[x](http://evil.example)", "![x](http://evil.example/y.png)",
    "<img src=x onerror=alert(1)>", "<!-- hidden", "--> shown", "a | b", "`", "``` `", "`@all` x", "`@all`x", "~~~",
    "~~gone~~", "***", "**bold** _it_ __x__", "#123", "GH-123", "org/repo#1", "0123456789abcdef0123", "a/0123456789ab",
    "www.evil.example", "http://evil.example", "ftp://evil.example", "mailto:a@b.example", "a@b.example",
    "<http://evil.example>", ":tada:", "x:tada:", "&#64;everyone", "&lt;b&gt;", "$math$", "$`x`$", "[ ] task",
    "[x] task", "# heading", "> quote", "- item", "+ item", "* item", "1. item", "1) item", "=== x", "===", "---",
    "    four spaces", "/close", "/merge x", "!123", "%milestone", '%"a b"', "~label", "&epic", "[^1]", "[^1]: x",
    "[x]: http://evil.example", "<!channel>", "<!here|x>", "<@U123>", "<@&5>", "@room", "[[wiki]]", "$(reboot)",
    "%h %n", "x\\", "\\", "\\@x", "'", '"', "};", "=1+1", "]]>", "</script>", "::error::x", "##[error]x",
    "##vso[task.complete]x", "*/", "{{ 7*7 }}", "{% raw %}", "javascript:x", "^x^", "==x==", "- [ ] x", "<details>",
    "\\|",
)  # fmt: skip
"""Each is on one line."""
UNSEEN: Final = (
    "a\n/close", "a\r\n::error::x", "a\u2028b", "a\x00b", "\x1b]8;;http://evil.example\x1b\\x", "\x9b31m",
    "\u202eabc", "\u2066x", "a\u200bb", "\U000e0041", "@\u200beveryone", "\n\n# x", "\n\n\n    x", "\t- x", "\x85x",
    "\ufeff@x", "\udcff",
)  # fmt: skip
"""Each has a line end, or a sign that a reader does not see."""
HOSTILE: Final = ONE_LINE + UNSEEN
ONE_LINE_TOGETHER: Final = tuple(map(" ".join, _groups(ONE_LINE)))
TOGETHER: Final = (*ONE_LINE_TOGETHER, *map(" ".join, _groups(UNSEEN)))
"""Some of them at a time, because whole forms take longer."""
_KEPT: Final = {
    "at", "started", "ended", "scheduled", "handled", "last_success", "missed", "created", "sha256", "fingerprint",
}  # fmt: skip
"""Times and digests, which are not any text."""


def poisoned(value: Any, text: str) -> Any:
    """Return a value with a text in place of every text in it that may be any text."""
    if isinstance(value, str):
        return text
    if isinstance(value, Body):
        return Body.of(text.encode(errors="backslashreplace"), text)
    if isinstance(value, Struct):
        return structs.replace(value, **_poisoned_fields(value, text))
    if isinstance(value, Mapping):
        return {
            f"{text}{number or ''}": poisoned(item, text)
            for number, item in enumerate(value.values())
        }
    if isinstance(value, list | tuple):
        return type(value)(poisoned(item, text) for item in value)
    return value


def _poisoned_fields(value: Struct, text: str) -> dict[str, Any]:
    return {name: poisoned(getattr(value, name), text) for name in _names_of_texts(type(value))}


@cache
def _names_of_texts(kind: type[Struct]) -> tuple[str, ...]:
    """The fields that may hold any text."""
    hints = get_type_hints(kind)
    others = _KEPT | {"summary", "secrets"}
    return tuple(
        name
        for name in kind.__struct_fields__
        if name not in others and not _is_literal(hints[name])
    )


def _is_literal(hint: object) -> bool:
    return get_origin(hint) is Literal or any(map(_is_literal, get_args(hint)))
