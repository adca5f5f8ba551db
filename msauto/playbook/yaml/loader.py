"""YAML 1.2 (core schema) to plain data with places. The only module that imports PyYAML.

PyYAML reads YAML 1.1, where ``10:00:00`` is a number and ``no`` is false. So only its events are used, and scalars are
resolved here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from msauto.errors import InputError, Problem, SourceLocation
from msauto.playbook.yaml.document import Document, Hidden, Path, outside_node
from msauto.secrets.encodings import can_redact
from msauto.secrets.redacted_lines import redact_lines
from msauto.secrets.secret_names import USER_IN_URL, is_secret_name
from msauto.secrets.taint import HIDDEN
from msauto.secrets.tainted_text import TAG, TaintedText, why_too_short

MAX_DEPTH = 64
MAX_ALIASED = 100_000
"""The most nodes that aliases may add to a document."""

_NULL = re.compile(r"~|null|Null|NULL|")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_BREAKS = re.compile(r"\r\n|[\r\n\x85\u2028\u2029]")
_MAX_DIGITS = 4000


class WrittenInt(int):
    """A whole number with another notation (``012``, ``0x1F``): ``text`` is as written."""

    text: str


class WrittenFloat(float):
    """A number with a decimal point: ``text`` is as written, because ``3.10`` is not ``3.1`` as a text."""

    text: str


@dataclass(slots=True)
class _Node:
    kind: str  # scalar, list, map
    place: SourceLocation
    end: tuple[int, int]
    value: Any = None
    plain: bool = False
    secret: bool = False
    size: int = 1
    items: list[Any] = field(default_factory=list)


def load_yaml(data: bytes, file: str) -> Document:
    """Read one YAML document; raises :class:`InputError` with all problems.

    A byte order mark and Windows line ends are allowed. Tabs as indentation, several documents, duplicate keys,
    keys that are not text, and tags except ``!secret`` are errors.
    """
    document = parse_yaml(data, file)
    if document.flaws:
        raise InputError(document.flaws)
    return document


def parse_yaml(data: bytes, file: str) -> Document:
    """Read one YAML document; problems of single keys and values become its ``flaws``, which the caller must report.

    Raises :class:`InputError` for an invalid structure.
    """
    text = _decode(data, file)
    lines = tuple(_BREAKS.split(text))
    made = _Constructor(file, lines)
    data_read = made.value(_Composer(text, file, lines).compose(), ())
    document = Document(file, data_read, made.places, made.key_places, lines, tuple(made.hidden))
    flaws = tuple(document.problem(text, place, remedy) for text, remedy, place in made.found)
    return replace(document, flaws=flaws, broken=frozenset(made.broken))


def dump_yaml(value: Any, *, indent: int = 2, sort_keys: bool = False) -> str:
    """Return plain data as YAML."""
    return yaml.safe_dump(
        plain(value), allow_unicode=True, sort_keys=sort_keys, default_flow_style=False, indent=indent
    )


def plain(value: Any, *, keep_taint: bool = False) -> Any:
    """Return data with plain ``int``, ``float`` and ``str`` in place of their subclasses.

    ``keep_taint``: secrets stay tainted.
    """
    if isinstance(value, dict):
        return {plain(key): plain(each, keep_taint=keep_taint) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each, keep_taint=keep_taint) for each in value]
    if keep_taint and isinstance(value, TaintedText):
        return value
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value


def _decode(data: bytes, file: str) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise outside_node(file).error("the file is UTF-16", "save it as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, len(before.rpartition(b"\n")[2].decode("utf-8", "replace")) + 1
        place = SourceLocation(file, line, column)
        raise InputError([Problem("the file is not UTF-8 here", place, "save it as UTF-8")]) from error


class _Composer:
    """Events to nodes. ``MAX_DEPTH`` limits the recursion."""

    def __init__(self, text: str, file: str, lines: tuple[str, ...]) -> None:
        self.file = file
        self.lines = lines
        self.text = text
        self.events: Iterator[Any] = iter(())
        self.anchors: dict[str, _Node] = {}
        self.aliased = 0

    def compose(self) -> _Node:
        try:
            with suppress(yaml.YAMLError):  # libyaml is faster, PyYAML's own parser has better messages
                return self._compose(getattr(yaml, "CLoader", yaml.Loader))
            return self._compose(yaml.Loader)
        except yaml.MarkedYAMLError as error:
            opened = "quoted scalar" in (error.context or "")
            mark = (error.context_mark if opened else None) or error.problem_mark or error.context_mark
            place = SourceLocation(self.file, mark.line + 1, mark.column + 1) if mark else SourceLocation(self.file)
            line = self.lines[place.line - 1] if 0 < place.line <= len(self.lines) else ""
            raise self._error(*_explain(error, line), place) from error
        except yaml.reader.ReaderError as error:
            before = self.text[: error.position]
            place = SourceLocation(self.file, before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1)
            raise self._error("a character that YAML does not allow", "remove it", place) from error
        except yaml.YAMLError as error:
            raise self._error("invalid YAML", "", SourceLocation(self.file)) from error

    def _compose(self, loader: Any) -> _Node:
        self.anchors, self.aliased = {}, 0
        self.events = yaml.parse(self.text, Loader=loader)
        next(self.events)  # the stream starts
        event = next(self.events)
        if isinstance(event, yaml.StreamEndEvent):
            return _Node("scalar", SourceLocation(self.file, 1, 1), (1, 1), "", plain=True)
        root = self._node(next(self.events), 0)
        next(self.events)  # the document ends
        event = next(self.events)
        if not isinstance(event, yaml.StreamEndEvent):
            raise self._error("a second document starts here", "write one document per file", self._place(event))
        return root

    def _node(self, event: Any, depth: int) -> _Node:
        if depth > MAX_DEPTH:
            raise self._error(f"nested deeper than {MAX_DEPTH} levels", "", self._place(event))
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        self._check_tag(event)
        if isinstance(event, yaml.ScalarEvent):
            text = event.value
            if not text.isascii():  # JSON writes an emoji as two surrogates, and YAML 1.2 includes JSON
                text = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
            plain = event.style in {None, ""} and event.tag is None
            node = _Node("scalar", self._place(event), _end(event), text, plain=plain, secret=event.tag == TAG)
        else:
            node = self._collection(event, depth)
        if event.anchor:
            self.anchors[event.anchor] = node
        return node

    def _collection(self, event: Any, depth: int) -> _Node:
        is_map = isinstance(event, yaml.MappingStartEvent)
        node = _Node("map" if is_map else "list", self._place(event), _end(event))
        while not isinstance(event := next(self.events), yaml.MappingEndEvent | yaml.SequenceEndEvent):
            child = self._node(event, depth + 1)
            node.size += child.size
            if is_map:
                value = self._node(next(self.events), depth + 1)
                node.size += value.size
                node.items.append((child, value))
            else:
                node.items.append(child)
        return node

    def _alias(self, event: Any) -> _Node:
        node = self.anchors.get(event.anchor)
        if node is None:
            raise self._error("unknown anchor &{}", "", self._place(event), event.anchor)
        self.aliased += node.size
        if self.aliased > MAX_ALIASED:
            raise self._error("aliases make the document too large", "", self._place(event))
        return node

    def _check_tag(self, event: Any) -> None:
        scalar = isinstance(event, yaml.ScalarEvent)
        if (event.tag or "").startswith(TAG) and not (scalar and event.tag == TAG):
            why = f"{TAG} needs a space after it" if scalar else f"{TAG} marks a text, not a list or mapping"
            raise self._error(why, "mark each text separately", self._place(event))
        if event.tag not in {None, "!", "tag:yaml.org,2002:str", TAG}:
            raise self._error("unknown tag {}", "remove it", self._place(event), event.tag)

    def _place(self, event: Any) -> SourceLocation:
        return SourceLocation(self.file, event.start_mark.line + 1, event.start_mark.column + 1)

    def _error(self, message: str, remedy: str, place: SourceLocation, name: str = "") -> InputError:
        """Return an error; ``name`` replaces ``{}`` in the message unless it may be part of a secret."""
        document = Document(self.file, lines=redact_lines(self.lines))
        shown = name if name in document.excerpt(place) else HIDDEN
        return InputError([document.problem(message.format(shown) if name else message, place, remedy)])


def _end(event: Any) -> tuple[int, int]:
    return event.end_mark.line + 1, event.end_mark.column + 1


class _Constructor:
    """Converts nodes to data and places; resolves merge keys."""

    def __init__(self, file: str, lines: tuple[str, ...]) -> None:
        self.file = file
        self.lines = lines
        self.places: dict[Path, SourceLocation] = {}
        self.key_places: dict[Path, SourceLocation] = {}
        self.hidden: dict[Hidden, None] = {}
        self.found: dict[tuple[str, str, SourceLocation], None] = {}
        self.broken: set[Path] = set()

    def value(self, node: _Node, path: Path) -> Any:
        self.places[path] = node.place
        if node.kind == "list":
            return [self.value(item, (*path, index)) for index, item in enumerate(node.items)]
        if node.kind == "map":
            return self._mapping(node, path)
        if node.secret or (_is_secret(path) and "{{" not in node.value) or USER_IN_URL.search(node.value):
            self.hidden[(node.place.line, node.place.column, *_end_of_secret(node.value, node.end, self.lines))] = None
        if node.secret:
            if "{{" not in node.value and not can_redact(node.value):  # the result of a template is checked later
                self._flaw(*why_too_short(node.value), node.place)
            return TaintedText(node.value)
        try:
            return _scalar(node)
        except ValueError:
            self._flaw("a number with too many digits", "quote it if it is a text", node.place)
            self.broken.add(path)
            return 0

    def _mapping(self, node: _Node, path: Path) -> dict[str, Any]:
        data: dict[str, Any] = {}
        merges: list[_Node] = []
        seen: dict[str, SourceLocation] = {}
        for key, value in node.items:
            name = self._key(key)
            if name is None or name in seen:
                if name is None:
                    self.broken.add(path)
                else:
                    first = f"duplicate key {name!r} (first in line {seen[name].line})"
                    self._flaw(first, "keep one of them", key.place)
                aside = _Constructor(self.file, self.lines)  # collects the flaws and secrets below an ignored key
                aside.found, aside.hidden = self.found, self.hidden
                aside.value(value, (*path, str(key.value)))
                continue
            seen[name] = key.place
            if _is_merge(key):
                merges.append(value)
            else:
                self._put(data, name, key, value, path)
        for merged in merges:
            self._merge(data, merged, path)
        return data

    def _flaw(self, message: str, remedy: str, place: SourceLocation) -> None:
        self.found[message, remedy, place] = None

    def _put(self, data: dict[str, Any], name: str, key: _Node, value: _Node, path: Path) -> None:
        self.key_places[(*path, name)] = key.place
        data[name] = self.value(value, (*path, name))

    def _key(self, node: _Node) -> str | None:
        if node.kind != "scalar":
            self._flaw("a key must be a text", "quote it; templates need quotes, too", node.place)
            return None
        if node.secret:
            self.hidden[(node.place.line, node.place.column, *node.end)] = None
            self._flaw("a key cannot be secret", "mark its value", node.place)
            return None
        is_text = not node.plain
        with suppress(ValueError):
            is_text = isinstance(_scalar(node), str)
        if not is_text:
            self._flaw(f"the key {node.value or 'null'} is not a text", "quote it", node.place)
            return None
        return str(node.value)

    def _merge(self, data: dict[str, Any], node: _Node, path: Path) -> None:
        sources = node.items if node.kind == "list" else [node]
        for source in sources:
            if source.kind != "map":
                self._flaw("<< merges only mappings", "", source.place)
                self.broken.add(path)
                continue
            items = [(key, value) for key, value in source.items if key.kind == "scalar" and key.value not in data]
            for key, value in items:
                name = None if _is_merge(key) else self._key(key)
                if name is not None and name not in data:
                    self._put(data, name, key, value, path)
                elif name is None and not _is_merge(key):
                    self.broken.add(path)
            for value in (value for key, value in items if _is_merge(key)):
                self._merge(data, value, path)


def _end_of_secret(text: str, end: tuple[int, int], lines: tuple[str, ...]) -> tuple[int, int]:
    """Return where a secret ends; one that seems empty may start with ``#``, which YAML reads as a comment."""
    return end if text or end[0] > len(lines) else (end[0], len(lines[end[0] - 1]) + 1)


def _explain(error: yaml.MarkedYAMLError, line: str) -> tuple[str, str]:
    """Translate an error of PyYAML; returns message and remedy."""
    problem, context = error.problem or "", error.context or ""
    if "\\t" in problem or line.lstrip(" ").startswith("\t"):
        return "a tab cannot indent YAML", "use spaces"
    if "mapping values are not allowed" in problem:
        return "a colon that starts a value is not allowed here", "quote the text, or check the indentation"
    if any(sign in problem for sign in ("'%'", "'@'", "'`'")):
        return "a text cannot start with this character", "quote it"
    if "unexpected end of stream" in problem or "quoted scalar" in context:
        return "the closing quote is missing", ""
    if "<block end>" in problem or "block mapping" in context or "block collection" in context:
        return "invalid structure", "check the indentation of this line and of those above it"
    return f"invalid YAML: {problem or context or 'unreadable'}", ""


def _is_merge(key: _Node) -> bool:
    return key.value == "<<" and key.plain


def _is_secret(path: Path) -> bool:
    if "auth" in path:
        return path[-1] != "username"
    return any(isinstance(part, str) and is_secret_name(part) for part in path)


def _scalar(node: _Node) -> Any:
    return resolve_scalar(node.value) if node.plain else node.value


def resolve_scalar(text: str) -> Any:
    """Resolve a plain scalar by the core schema of YAML 1.2.

    >>> resolve_scalar("10:00:00:00"), resolve_scalar("no"), int(resolve_scalar("012")), int(resolve_scalar("0o14"))
    ('10:00:00:00', 'no', 12, 12)
    """
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if _INT.fullmatch(text) or _BASED.fullmatch(text):
        if len(text) > _MAX_DIGITS:
            raise ValueError(text)
        written = WrittenInt(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
        written.text = text
        return int(written) if str(int(written)) == text else written
    if _FLOAT.fullmatch(text):
        number = WrittenFloat(text.replace(".", "") if text[-1] in "fFnN" else text)
        number.text = text
        return number
    return text
