"""Documents: plain data with places and templates, also of a program; and problems with the line and a caret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import PurePath
from typing import Any

from msgspec import Struct

from msauto.errors import InputError, Problem, ProblemKind, SourceLocation
from msauto.model.server import Secret
from msauto.primitives.decimals import is_bounded
from msauto.secrets.redaction import can_redact
from msauto.secrets.sources import MarkedText, why_too_short

Path = tuple[str | int, ...]
"""The path from the root of a document to a value: keys of mappings and indices of lists."""

Hidden = tuple[int, int, int, int]
"""A range of a text that is not shown: first line, first column, last line, column after the last, from 1."""

MAX_DEPTH = 64
_WIDTH = 160
_STARS = "***"


class UnrenderedTemplate(str):
    """The text of a template that is not rendered yet. Rendered text with braces is a plain ``str``."""

    __slots__ = ()


class MarkedTemplate(UnrenderedTemplate):
    """A template whose result is tagged as secret."""

    __slots__ = ()


def is_template(text: str) -> bool:
    """Return whether a text of a playbook is a template."""
    return "{{" in text or "{%" in text


def as_written(text: str) -> str:
    """Return a text of a file as what it is: a template, or the text itself."""
    if "{{" not in text and "{%" not in text:
        return text
    if isinstance(text, MarkedText):
        return MarkedTemplate(text)
    return UnrenderedTemplate(text)


class Document(Struct, frozen=True):
    """A text and its plain data (dict, list, str, int, float, bool, None), in which templates are marked.

    ``places`` are the lines and columns of values, ``key_places`` those of their keys. ``hidden`` ranges are secrets,
    shown as ``***``. ``flaws`` are problems of the text itself, which are reported with all others. ``broken`` are the
    values that are unknown because of one (of duplicate keys, the first one counts). ``is_data``: a program gave the
    data, so the place of a value is ``file`` and its path: ``plays[0].tasks[1].asset.title``.
    """

    file: str
    data: Any = None
    places: Mapping[Path, tuple[int, int]] = {}
    key_places: Mapping[Path, tuple[int, int]] = {}
    lines: Sequence[str] = ()
    hidden: tuple[Hidden, ...] = ()
    flaws: tuple[Problem, ...] = ()
    broken: frozenset[Path] = frozenset()
    is_data: bool = False

    def is_broken(self, path: Path) -> bool:
        """Return whether a value, or one around it, is unknown: then its further problems are not reported."""
        return any(path[:length] in self.broken for length in range(len(path) + 1))

    def place(self, path: Path = ()) -> SourceLocation:
        """Return the place of a value, or of the nearest value around it that has one."""
        if self.is_data:
            shown = self.file
            for part in path:
                is_name = isinstance(part, str) and part.replace("-", "_").isidentifier()
                shown += f".{part}" if is_name else f"[{part!r}]"
            return SourceLocation(shown)
        while path and path not in self.places:
            path = path[:-1]
        return SourceLocation(self.file, *self.places.get(path, ()))

    def key_place(self, path: Path) -> SourceLocation:
        """Return the place of the key of a value; without a key, that of the value."""
        if path not in self.key_places:
            return self.place(path)
        return SourceLocation(self.file, *self.key_places[path])

    def problem(
        self,
        message: str,
        place: SourceLocation,
        remedy: str = "",
        *,
        kind: ProblemKind = "invalid-value",
    ) -> Problem:
        """Return a problem with its line and a caret."""
        return Problem(message, place, remedy, self.excerpt(place), kind=kind)

    def excerpt(self, place: SourceLocation) -> str:
        """Return the line of a place with a caret below the column; empty for a whole file."""
        if not 0 < place.line <= len(self.lines):
            return ""
        line = self.lines[place.line - 1]
        column = max(place.column, 1)
        for first, start, last, after in sorted(self.hidden, reverse=True):
            if not first <= place.line <= last:
                continue
            begin = start - 1 if place.line == first else 0
            end = after - 1 if place.line == last else len(line)
            if end > begin:
                line = f"{line[:begin]}{_STARS}{line[end:]}"
            if column <= begin + 1:
                continue
            if column <= end:
                column = begin + 1
            else:
                column += len(_STARS) - (end - begin)
        start = 0
        if len(line) > _WIDTH:
            start = max(0, column - _WIDTH // 2)
        number = str(place.line)
        text = line[start : start + _WIDTH].replace("\t", " ")
        below = " " * (column - 1 - start)
        return f"  {number} | {text}\n  {' ' * len(number)} | {below}^"


def shallow(value: Any) -> Any:
    """Return plain data; raises ``ValueError`` if it is nested deeper than a document may be."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        below: list[Any] = []
        for part in level:
            if isinstance(part, dict):
                below += part.values()
            elif isinstance(part, list):
                below += part
        level = below
    if level:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    return value


class SourceNode(Struct, frozen=True):
    """A value of a document, with its place for problems."""

    document: Document
    path: Path = ()

    @property
    def place(self) -> SourceLocation:
        """The place of the value."""
        return self.document.place(self.path)

    @property
    def key_place(self) -> SourceLocation:
        """The place of the key of the value."""
        return self.document.key_place(self.path)

    def child(self, *parts: str | int) -> SourceNode:
        """Return the node of a value inside this one."""
        return SourceNode(self.document, self.path + parts)

    def problem(
        self,
        message: str,
        remedy: str = "",
        *,
        key: bool = False,
        kind: ProblemKind = "invalid-value",
    ) -> Problem:
        """Return a problem at this value, or at its key."""
        place = self.key_place if key else self.place
        return self.document.problem(message, place, remedy, kind=kind)

    def error(
        self,
        message: str,
        remedy: str = "",
        *,
        key: bool = False,
        kind: ProblemKind = "invalid-value",
    ) -> InputError:
        """Return an error with one problem."""
        return InputError([self.problem(message, remedy, key=key, kind=kind)])


class MergedNode(SourceNode, frozen=True):
    """A mapping whose keys are set at several places, also in several files: ``parts`` are the nodes of its keys."""

    parts: Mapping[str | int, SourceNode] = {}

    def child(self, *parts: str | int) -> SourceNode:
        """Return the node of a value inside this one, where its key is set."""
        if parts and parts[0] in self.parts:
            return self.parts[parts[0]].child(*parts[1:])
        return SourceNode(self.document, self.path + parts)


class SourceText(Struct, frozen=True):
    """A text of a playbook and its place: an expression of a ``when``, or a name under ``notify``."""

    text: str
    node: SourceNode


def outside_node(name: str, text: str = "") -> SourceNode:
    """Return a node for a value that is not in a file: a flag of the command line with its text."""
    return SourceNode(Document(name, lines=(text,)))


class Problems(list[Problem]):
    """Problems of one or many texts. A ``with`` block adds those of an :class:`InputError` in it, and continues."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, InputError):
            return False
        self += error.problems
        return True

    def check(self) -> None:
        """Raise all problems, if there are any."""
        if self:
            raise InputError(self)


def given_document(data: Any, name: str) -> Document:
    """Return data as a document whose places are ``name`` and the path; raises :class:`InputError`.

    Mappings, lists, tuples, texts, numbers, true and false and ``None`` are as in YAML. Paths and dates become texts,
    and a :class:`Secret` is what ``!secret`` is in YAML. The data is copied.

    >>> given_document([{"tasks": ({},)}], "plays").place((0, "tasks", 0)).file
    'plays[0].tasks[0]'
    """
    problems = Problems()
    document = Document(name, is_data=True)
    copied = _copied(data, document, (), problems)
    problems.check()
    return Document(name, copied, is_data=True)


def _copied(value: Any, document: Document, path: Path, problems: Problems) -> Any:
    """Return a copy of a value; what is wrong with it is a problem at its path."""
    node = SourceNode(document, path)
    if len(path) > MAX_DEPTH:
        why = f"nested deeper than {MAX_DEPTH} levels"
        raise node.error(why, "remove what contains itself", kind="yaml")
    match value:
        case Mapping():
            copied: dict[Any, Any] = {}
            for name, inner in value.items():
                if not isinstance(name, str):
                    why = f"the key {name!r} is not text"
                    problems.append(node.problem(why, "put it in quotes", kind="yaml"))
                copied[name] = _copied(inner, document, (*path, str(name)), problems)
            return copied
        case list() | tuple():
            return [
                _copied(item, document, (*path, index), problems)
                for index, item in enumerate(value)
            ]
        case None | bool():
            return value
        case int() | float():
            if not is_bounded(value):
                why = "the number is out of range"
                problems.append(node.problem(why, "give a smaller one", kind="wrong-type"))
            return value
        case date():
            return value.isoformat()
        case str() | PurePath():
            text = str(value)
        case Secret():
            text = MarkedText(value.reveal())
            # The result of a template is checked later.
            if "{{" not in text and not can_redact(text):
                problems.append(node.problem(*why_too_short(text), kind="secret"))
        case _:
            why = f"a value of the type {type(value).__name__} is not possible here"
            remedy = "use texts, numbers, true and false, lists and mappings"
            problems.append(node.problem(why, remedy, kind="wrong-type"))
            return None
    try:
        text.encode()
    except UnicodeEncodeError:
        remedy = "decode it from its encoding"
        problems.append(node.problem("the text is not valid Unicode", remedy, kind="yaml"))
    return as_written(text)
