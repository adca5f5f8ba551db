r"""Plain values to YAML text that a person likes to read: the counterpart of :mod:`.yaml`, for exported playbooks.

A text is written plain only where every YAML reader, of 1.1 or 1.2, reads that same text; otherwise quoted, or as a
literal block where it has several lines. Nothing is ever an anchor or an alias. A text that looks like a template is
wrapped so that it renders to itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msauto.playbook.schema.values import is_template
from msauto.playbook.yaml.loader import resolve_scalar

WIDTH = 110
"""Columns that a mapping or list on one line may take."""

_PLAIN = re.compile(r"[^\W\d_](?:[\w .()/+-]*[\w.()/+-])?")
_PLAIN_KEY = re.compile(r"[^\W\d_][\w.-]*(?::[\w.-]+)*")
_YAML_1_1 = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


@dataclass(frozen=True, slots=True)
class FlowStyle:
    """A mapping or a list that stands on one line where it fits, in braces or brackets."""

    value: Mapping[str, Any] | Sequence[Any]


@dataclass(frozen=True, slots=True)
class CommentedValue:
    """A value with comments above it; for an item of a list, or a value of a mapping. Without a value: comments."""

    notes: tuple[str, ...]
    value: Any = None


def literal(text: str) -> str:
    """Return a text that, rendered as a template, is ``text``; texts that are no templates are themselves.

    >>> literal("50% {{ off }}")
    '{% raw %}50% {{ off }}{% endraw %}'
    """
    if not is_template(text):
        return text
    if "endraw" not in text:
        return f"{{% raw %}}{text}{{% endraw %}}"
    quoted = "".join(_jinja_sign(sign) for sign in text)
    return f'{{{{ "{quoted}" }}}}'


def _jinja_sign(sign: str) -> str:
    return {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r"}.get(sign, sign)


def comment(text: str) -> str:
    """Return a text as one line of a comment: nothing in it can end the line."""
    return f"# {''.join(_escaped(sign) if not _is_shown(sign) else sign for sign in text)}".rstrip()


def yaml_lines(value: Any, indent: int = 0) -> Iterator[str]:
    """Yield the lines of a value, ``indent`` columns to the right, without line ends."""
    pad = " " * indent
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _pair(key, each, pad, indent)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _item(each, pad, indent)
    else:
        yield f"{pad}{_scalar(value)}"


def _pair(key: str, value: Any, pad: str, indent: int) -> Iterator[str]:
    if isinstance(value, CommentedValue):
        yield from (f"{pad}{comment(note)}" for note in value.notes)
        value = value.value
        if value is None:
            return
    name = f"{pad}{_key(key)}:"
    if isinstance(value, FlowStyle):
        one = _one_line(value.value)
        if one is not None and len(name) + 1 + len(one) <= WIDTH:
            yield f"{name} {one}"
            return
        value = value.value
    if isinstance(value, str) and _is_block(literal(value)):
        yield from _block(name, literal(value), indent + 2)
    elif isinstance(value, Mapping | list | tuple):
        if not value:
            yield f"{name} {'{}' if isinstance(value, Mapping) else '[]'}"
            return
        yield name
        yield from yaml_lines(value, indent + 2)
    else:
        yield f"{name} {_scalar(value)}"


def _item(value: Any, pad: str, indent: int) -> Iterator[str]:
    if isinstance(value, CommentedValue):
        yield from (f"{pad}{comment(note)}" for note in value.notes)
        value = value.value
        if value is None:
            return
    if isinstance(value, FlowStyle):
        one = _one_line(value.value)
        if one is not None and len(pad) + 2 + len(one) <= WIDTH:
            yield f"{pad}- {one}"
            return
        value = value.value
    if isinstance(value, str) and _is_block(literal(value)):
        yield from _block(f"{pad}-", literal(value), indent + 2)
        return
    if isinstance(value, Mapping | list | tuple) and not value:
        yield f"{pad}- {'{}' if isinstance(value, Mapping) else '[]'}"
        return
    lines = yaml_lines(value, indent + 2)
    yield f"{pad}- {next(lines).lstrip(' ')}"
    yield from lines


def _one_line(value: Any) -> str | None:
    """Return a value in braces or brackets; ``None`` where it has more than one line."""
    if isinstance(value, FlowStyle):
        value = value.value
    if isinstance(value, Mapping):
        pairs = [(_key(key), _one_line(each)) for key, each in value.items()]
        return None if any(text is None for _, text in pairs) else f"{{{', '.join(f'{k}: {v}' for k, v in pairs)}}}"
    if isinstance(value, list | tuple):
        items = [_one_line(each) for each in value]
        return None if None in items else f"[{', '.join(map(str, items))}]"
    if isinstance(value, CommentedValue) or (isinstance(value, str) and _is_block(literal(value))):
        return None
    return _scalar(value)


# Scalars -------------------------------------------------------------------------------------------------------


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, str):
        raise TypeError(f"no plain value: {type(value).__name__}")
    text = literal(value)
    return text if _is_plain(text) else _quoted(text)


def _is_plain(text: str) -> bool:
    fits = _PLAIN.fullmatch(text) is not None and text.casefold() not in _YAML_1_1
    return fits and isinstance(resolve_scalar(text), str)


def _key(text: str) -> str:
    plain = _PLAIN_KEY.fullmatch(text) is not None and text.casefold() not in _YAML_1_1
    return text if plain else _quoted(text)


def _quoted(text: str) -> str:
    if ('"' in text or "\\" in text) and "'" not in text and all(map(_is_shown, text)):
        return f"'{text}'"
    signs = (_escaped(sign) if sign in _ESCAPES or not _is_shown(sign) else sign for sign in text)
    return f'"{"".join(signs)}"'


def _escaped(sign: str) -> str:
    code = ord(sign)
    width = "x%02X" if code < 0x100 else "u%04X" if code < 0x10000 else "U%08X"
    return _ESCAPES.get(sign) or "\\" + width % code


def _is_shown(sign: str) -> bool:
    return sign.isprintable()


def _is_block(text: str) -> bool:
    """Tell whether a text can be a literal block, and survive editors that strip the ends of lines."""
    if "\n" not in text.rstrip("\n") or text.endswith("\n\n") or text[0] in {" ", "\n"}:
        return False
    lines = text.removesuffix("\n").split("\n")
    return all(line == line.rstrip() and all(map(_is_shown, line)) for line in lines)


def _block(head: str, text: str, indent: int) -> Iterator[str]:
    yield f"{head} {'|' if text.endswith(chr(10)) else '|-'}"
    pad = " " * indent
    for line in text.removesuffix("\n").split("\n"):
        yield f"{pad}{line}" if line else ""
