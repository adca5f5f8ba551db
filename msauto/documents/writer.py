"""Plain values to readable YAML: the counterpart of :mod:`.loader`, for exported playbooks.

A text is written plain only if every YAML reader, of 1.1 or 1.2, reads the same text. Otherwise it is quoted, or a
literal block if it has several lines. There are no anchors and aliases. A text that looks like a template is wrapped so
that it renders to itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from msauto.documents.document import MarkedTemplate, is_template
from msauto.documents.scalars import resolve_scalar
from msauto.secrets.sources import TAG, MarkedText

WIDTH = 110
"""The maximum length of a line with a mapping or list."""

_PLAIN = re.compile(r"[^\W\d_](?:[\w .()/+-]*[\w.()/+-])?")
_PLAIN_KEY = re.compile(r"[^\W\d_][\w.-]*(?::[\w.-]+)*")
_YAML_1_1 = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_JINJA_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r"}
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


class VerbatimText(str):
    """A text that is written as it is, also if it looks like a template."""

    __slots__ = ()


class FlowStyle(Struct, frozen=True):
    """A mapping or list that is written on one line, in braces or brackets, if it fits."""

    value: Mapping[str, Any] | Sequence[Any]


class CommentedValue(Struct, frozen=True):
    """An item of a list, or a value of a mapping, with comments above it; without a value, only the comments."""

    notes: tuple[str, ...]
    value: Any = None


def literal(text: str) -> str:
    """Return a template that renders to ``text``; a text that is not a template stays as it is.

    >>> literal("50% {{ off }}")
    '{% raw %}50% {{ off }}{% endraw %}'
    """
    if isinstance(text, VerbatimText) or not is_template(text):
        return text
    if "endraw" not in text:
        return f"{{% raw %}}{text}{{% endraw %}}"
    quoted = "".join(_JINJA_ESCAPES.get(character, character) for character in text)
    return f'{{{{ "{quoted}" }}}}'


def verbatim(value: Any) -> Any:
    """Return plain data whose texts are written as they are."""
    if isinstance(value, str):
        return VerbatimText(value)
    if isinstance(value, dict):
        return {name: verbatim(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [verbatim(item) for item in value]
    return value


def flow(value: Any) -> str:
    """Return plain data as YAML in one line, in which secrets keep their tag; templates are written as they are."""
    if isinstance(value, dict):
        pairs = [f"{flow(name)}: {flow(inner)}" for name, inner in value.items()]
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(flow, value))}]"
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, MarkedText | MarkedTemplate):
        return f"{TAG} {text}"
    return text


def comment(text: str) -> str:
    """Return a text as a comment; its line ends are escaped."""
    return f"# {_printable(text)}".rstrip()


def _printable(text: str, escaped: Collection[str] = ()) -> str:
    """Return a text with escapes for what is not printable, and for the characters in ``escaped``."""
    signs = []
    for sign in text:
        if sign in escaped or not sign.isprintable():
            sign = _escaped(sign)
        signs.append(sign)
    return "".join(signs)


def yaml_lines(value: Any, indent: int = 0) -> Iterator[str]:
    """Yield the lines of a value, indented by ``indent`` columns, without line ends."""
    pad = " " * indent
    if isinstance(value, Mapping | list | tuple) and not value:
        yield f"{pad}{_one_line(value)}"
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _entry(f"{pad}{_key(key)}:", inner, indent)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _entry(f"{pad}-", item, indent)
    else:
        yield f"{pad}{_scalar(value)}"


def _entry(head: str, value: Any, indent: int) -> Iterator[str]:
    """Yield the lines of a value of a mapping, or an item of a list; ``head`` is its key or dash."""
    if isinstance(value, CommentedValue):
        for note in value.notes:
            yield f"{' ' * indent}{comment(note)}"
        value = value.value
        if value is None:
            return
    if isinstance(value, FlowStyle):
        one = _one_line(value.value)
        if one is not None and len(head) + 1 + len(one) <= WIDTH:
            yield f"{head} {one}"
            return
        value = value.value
    if isinstance(value, str) and _is_block(literal(value)):
        text = literal(value)
        style = "|" if text.endswith("\n") else "|-"
        yield f"{head} {style}"
        for line in text.removesuffix("\n").split("\n"):
            yield f"{' ' * (indent + 2)}{line}".rstrip(" ")
    elif not isinstance(value, Mapping | list | tuple):
        yield f"{head} {_scalar(value)}"
    elif not value:
        yield f"{head} {_one_line(value)}"
    else:
        lines = yaml_lines(value, indent + 2)
        if head.endswith("-"):
            head = f"{head} {next(lines).lstrip(' ')}"
        yield head
        yield from lines


def _one_line(value: Any) -> str | None:
    """Return a value in braces or brackets; ``None`` if it needs more than one line."""
    if isinstance(value, FlowStyle):
        value = value.value
    if isinstance(value, Mapping):
        pairs = []
        for key, inner in value.items():
            text = _one_line(inner)
            if text is None:
                return None
            pairs.append(f"{_key(key)}: {text}")
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list | tuple):
        items = []
        for item in value:
            text = _one_line(item)
            if text is None:
                return None
            items.append(text)
        return f"[{', '.join(items)}]"
    is_block = isinstance(value, str) and _is_block(literal(value))
    if is_block or isinstance(value, CommentedValue):
        return None
    return _scalar(value)


# Scalars -------------------------------------------------------------------------------------------------------


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        if value:
            return "true"
        return "false"
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        raise TypeError(f"not a plain value: {type(value).__name__}")
    text = literal(value)
    if _is_plain(_PLAIN, text) and isinstance(resolve_scalar(text), str):
        return text
    return _quoted(text)


def _key(text: str) -> str:
    if _is_plain(_PLAIN_KEY, text):
        return text
    return _quoted(text)


def _is_plain(form: re.Pattern[str], text: str) -> bool:
    return form.fullmatch(text) is not None and text.casefold() not in _YAML_1_1


def _quoted(text: str) -> str:
    has_escapes = '"' in text or "\\" in text
    if has_escapes and "'" not in text and text.isprintable():
        return f"'{text}'"
    return f'"{_printable(text, _ESCAPES)}"'


def _escaped(sign: str) -> str:
    if sign in _ESCAPES:
        return _ESCAPES[sign]
    code = ord(sign)
    if code < 0x100:
        return f"\\x{code:02X}"
    if code < 0x10000:
        return f"\\u{code:04X}"
    return f"\\U{code:08X}"


def _is_block(text: str) -> bool:
    """Return whether a text can be a literal block that survives editors which strip the ends of lines."""
    if "\n" not in text.rstrip("\n") or text.endswith("\n\n") or text[0] in {" ", "\n"}:
        return False
    lines = text.removesuffix("\n").split("\n")
    return all(line == line.rstrip() and line.isprintable() for line in lines)
