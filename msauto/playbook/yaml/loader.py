"""YAML 1.2 (core schema) to plain data with places. The only module that imports PyYAML.

PyYAML reads YAML 1.1, where ``10:00:00`` is a number and ``no`` is false. So only its events are used, and scalars are
resolved here.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Final

import yaml

from msauto.errors import InputError, Problem, ProblemKind, SourceLocation
from msauto.playbook.yaml.document import Document, Hidden, Lines, PackedPlaces, Path, outside_node, pack
from msauto.secrets.encodings import can_redact
from msauto.secrets.redacted_lines import redact_lines
from msauto.secrets.secret_names import USER_IN_URL, is_secret_name
from msauto.secrets.taint import HIDDEN
from msauto.secrets.tainted_text import TAG, TaintedText, why_too_short

MAX_DEPTH = 64
MAX_ALIASED = 100_000
"""The most nodes that aliases may add to a document."""

MAX_SHARED = 10_000
"""The most texts that are compared with those that follow, so that equal ones are kept once."""

_NULL = re.compile(r"~|null|Null|NULL|")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_MAY_BE_OTHER = frozenset("~nNtTfF+-.0123456789")
"""The first characters of plain scalars that may not be texts."""
_MAX_DIGITS = 4000


_BREAKS_OF_1_1: Final = "\x85\u2028\u2029"
"""PyYAML folds them like line ends; in YAML 1.2 they are characters like others."""


class WrittenInt(int):
    """A whole number with another notation (``012``, ``0x1F``): ``text`` is as written."""

    text: str


class WrittenFloat(float):
    """A number with a decimal point: ``text`` is as written, because ``3.10`` is not ``3.1`` as a text."""

    text: str


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
    lines = Lines(text)
    reader = _read(text, file, lines)
    packed, root = reader.packed, (reader.place, reader.block)
    places, key_places = (PackedPlaces(file, reader.data, packed, root, column) for column in (1, 0))
    document = Document(
        file,
        reader.data,
        places,
        key_places,
        lines,
        tuple(reader.hidden),
        broken=frozenset(reader.broken),
    )
    flaws = tuple(document.problem(text, place, remedy, kind=kind) for text, remedy, place, kind in reader.found)
    return replace(document, flaws=flaws) if flaws else document


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
        raise outside_node(file).error("the file is UTF-16", "save it as UTF-8", kind="yaml")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, len(before.rpartition(b"\n")[2].decode("utf-8", "replace")) + 1
        place = SourceLocation(file, line, column)
        raise InputError([Problem("the file is not UTF-8 here", place, "save it as UTF-8", kind="yaml")]) from error


def _read(text: str, file: str, lines: Lines) -> _EventReader:
    """Return the reader of a whole document."""
    try:
        with suppress(yaml.YAMLError):  # libyaml is faster, PyYAML's own parser has better messages
            return _EventReader(text, file, lines, getattr(yaml, "CLoader", yaml.Loader))
        return _EventReader(text, file, lines, yaml.Loader)
    except yaml.MarkedYAMLError as error:
        opened = "quoted scalar" in (error.context or "")
        mark = (error.context_mark if opened else None) or error.problem_mark or error.context_mark
        place = SourceLocation(file, mark.line + 1, mark.column + 1) if mark else SourceLocation(file)
        line = lines[place.line - 1] if 0 < place.line <= len(lines) else ""
        raise _error(file, lines, *_explain(error, line), place) from error
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        place = SourceLocation(file, before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1)
        raise _error(file, lines, "a character that YAML does not allow", "remove it", place) from error
    except yaml.YAMLError as error:
        raise _error(file, lines, "invalid YAML", "", SourceLocation(file)) from error


def _error(file: str, lines: Lines, message: str, remedy: str, place: SourceLocation, name: str = "") -> InputError:
    """Return an error; ``name`` replaces ``{}`` in the message unless it may be part of a secret."""
    document = Document(file, lines=redact_lines(lines))
    shown = name if name in document.excerpt(place) else HIDDEN
    return InputError([document.problem(message.format(shown) if name else message, place, remedy, kind="yaml")])


def _events(text: str, loader: Any) -> Callable[[], Any]:
    """Return what gives the events of a text, in which line breaks of YAML 1.1 stay as they are."""
    if text.isascii() or not any(sign in text for sign in _BREAKS_OF_1_1):
        return loader(text).get_event  # type: ignore[no-any-return]
    unused = (chr(code) for code in range(0xE000, 0xF900) if chr(code) not in text)
    instead = str.maketrans(dict(zip(_BREAKS_OF_1_1, unused, strict=False)))
    back = {ord(sign): chr(code) for code, sign in instead.items()}
    get_event = loader(text.translate(instead)).get_event

    def restored() -> Any:
        event = get_event()
        if type(event) is yaml.ScalarEvent:
            event.value = event.value.translate(back)
        return event

    return restored


_MERGE = "<<"
_AUTH = 2
"""How secret a value is: 1 in a mapping or list with a secret name, 2 under ``auth``, where ``username`` is shown."""


class _EventReader:
    """Reads a document from its events in one pass: ``data``, the places of all values, and flaws.

    An alias is read by repeating the events of its anchor, a merge by reading the merged mapping into the other one.
    ``place`` and ``block`` are those of the last value (see :class:`PackedPlaces`), ``way`` is the path of the
    mapping or list that is being read.
    """

    def __init__(self, text: str, file: str, lines: Lines, loader: Any) -> None:
        self.file = file
        self.lines = lines
        self.packed = array("Q", [0])
        self.place = pack(1, 1)
        self.block = 0
        self.way: list[str | int] = []
        self.names: dict[str, tuple[str, int]] = {}  # keys that are texts even if plain, how secret their values are
        self.texts: dict[str, str] = {}  # the first of equal texts, which stands for all of them
        self.anchors: dict[str, list[Any]] = {}
        self.aliased = 0
        self.repeated = 0
        self.hidden: dict[Hidden, None] = {}
        self.found: dict[tuple[str, str, SourceLocation, ProblemKind], None] = {}
        self.broken: set[Path] = set()
        self.next: Callable[[], Any] = _events(text, loader)
        self.data = self._document()

    def _document(self) -> Any:
        self.next()  # the stream starts
        if isinstance(self.next(), yaml.StreamEndEvent):
            return None
        data = self._value(self.next(), 0, 0, None)
        self.next()  # the document ends
        event = self.next()
        if not isinstance(event, yaml.StreamEndEvent):
            raise self._error("a second document starts here", "write one document per file", event)
        return data

    def _value(self, event: Any, depth: int, secret: int, name: str | int | None) -> Any:
        """Read a value, of which ``event`` is the first event and ``name`` the key or index."""
        if type(event) is yaml.AliasEvent or (event.anchor is not None and not self.repeated):
            with self._repeating(self._record(event, depth)):
                return self._value(self.next(), depth, secret, name)
        if event.tag is not None:
            self._check_tag(event)
        place, block = _packed(event), 0
        data: Any
        if type(event) is yaml.ScalarEvent:
            data = self._scalar(event, secret, name)
        else:
            if name is not None:
                self.way.append(name)
            entries: list[int] = []
            if type(event) is yaml.MappingStartEvent:
                data = {}
                self._mapping(data, entries, depth + 1, secret)
            else:
                data = []
                self._items(data, entries, depth + 1, secret)
            if name is not None:
                self.way.pop()
            block = len(self.packed)
            self.packed.extend(entries)
        self.place, self.block = place, block
        return data

    def _items(self, data: list[Any], entries: list[int], depth: int, secret: int) -> None:
        while type(event := self.next()) is not yaml.SequenceEndEvent:
            self._check_depth(depth, event)
            data.append(self._value(event, depth, secret, len(data)))
            entries += (0, self.place, self.block)

    def _mapping(
        self, data: dict[str, Any], entries: list[int], depth: int, secret: int, *, merged: bool = False
    ) -> None:
        """Read the entries of a mapping into ``data``; of one that is merged, only those with a new key."""
        names, next_event = self.names, self.next
        merges: list[tuple[Any, list[Any]]] = []
        while type(key := next_event()) is not yaml.MappingEndEvent:
            if depth > MAX_DEPTH:
                self._check_depth(depth, key)
            name: str | None
            known = names.get(key.value) if type(key) is yaml.ScalarEvent else None
            if known is not None and key.anchor is None and key.tag is None:
                name, own = known
            else:
                key, name = self._key(key, depth)
                own = 0 if name is None else _secrecy(name)
                if _is_merge(key, name) and (merged or not (merges or name in data)):
                    merges.append((key, self._record(next_event(), depth)))
                    continue
            if name is None or name in data or (name == _MERGE and merges and not merged):
                self._ignored(key, name, data, entries, merges, depth, secret, merged=merged)
                continue
            data[name] = self._value(next_event(), depth, max(secret, own), name)
            entries += (_packed(key), self.place, self.block)
        for _, events in merges:
            self._merge(data, entries, events, depth, secret)

    def _ignored(
        self,
        key: Any,
        name: str | None,
        data: dict[str, Any],
        entries: list[int],
        merges: list[tuple[Any, list[Any]]],
        depth: int,
        secret: int,
        *,
        merged: bool,
    ) -> None:
        """Read the value of an invalid or duplicate key for its flaws and secrets."""
        if name is None:
            self.broken.add(tuple(self.way))
        elif not merged:
            first = _packed(merges[0][0]) if name not in data else entries[3 * list(data).index(name)]
            self._flaw(
                f"duplicate key {name!r} (first in line {first >> 32})", "keep one of them", key, "duplicate-key"
            )
        broken = set(self.broken)
        text = str(getattr(key, "value", None))
        self._value(self.next(), depth, max(secret, _secrecy(text)), text)
        self.broken = broken

    def _key(self, event: Any, depth: int) -> tuple[Any, str | None]:
        """Return the event of a key, and its text; ``None`` for a key that is not a text."""
        event = self._record(event, depth)[0]
        text: str | None = None
        if type(event) is not yaml.ScalarEvent:
            self._flaw(*self._why_no_key(event), event)
        elif event.tag == TAG:
            self.hidden[(*_start(event), *_end(event))] = None
            self._flaw("a key cannot be secret", "mark its value", event, "secret")
        else:
            text = _joined_surrogates(event.value)
            is_text = False
            with suppress(ValueError):
                is_text = isinstance(resolve_scalar(text), str)
            if is_text and text != _MERGE:
                self.names[text] = text, _secrecy(text)
            elif not is_text and not event.style and event.tag is None:
                self._flaw(f"the key {text or 'null'} is not a text", "quote it", event)
                text = None
        return event, text

    def _why_no_key(self, event: Any) -> tuple[str, str]:
        """Return message and remedy for a mapping or list as a key: mostly a template without quotes."""
        line, column = self.lines[event.start_mark.line], event.start_mark.column
        if line[column - 1 : column + 1] == "{{":
            return "a template must be quoted", 'write it as "{{ … }}"'
        return "a key must be a text", "quote it"

    def _merge(self, data: dict[str, Any], entries: list[int], events: list[Any], depth: int, secret: int) -> None:
        with self._repeating(events):
            event = self.next()
            many = type(event) is yaml.SequenceStartEvent
            source = self.next() if many else event
            while type(source) is not yaml.SequenceEndEvent:
                if type(source) is yaml.MappingStartEvent:
                    self._mapping(data, entries, depth, secret, merged=True)
                else:
                    self._flaw("<< merges only mappings", "", source)
                    broken = {*self.broken, tuple(self.way)}
                    self._value(source, depth, secret, _MERGE)  # for its secrets
                    self.broken = broken
                if not many:
                    return
                source = self.next()

    def _record(self, event: Any, depth: int) -> list[Any]:
        """Return all events of a node, aliases replaced by what they stand for; remember those with an anchor."""
        self._check_depth(depth, event)
        if type(event) is yaml.AliasEvent:
            name = str(event.anchor)
            events = self.anchors.get(name)
            if events is None:
                raise self._error("unknown anchor &{}", "", event, name)
            self.aliased += sum(type(each) not in _ENDS for each in events)
            if self.aliased > MAX_ALIASED:
                raise self._error("aliases make the document too large", "", event)
            return events
        self._check_tag(event)
        events = [event]
        if type(event) is not yaml.ScalarEvent:
            while type(inner := self.next()) not in _ENDS:
                events += self._record(inner, depth + 1)
            events.append(inner)
        if event.anchor and not self.repeated:
            self.anchors[event.anchor] = events
        return events

    @contextmanager
    def _repeating(self, events: list[Any]) -> Iterator[None]:
        """Read recorded events instead of those that follow in the text."""
        following, self.next = self.next, iter(events).__next__
        self.repeated += 1
        yield
        self.repeated -= 1
        self.next = following

    def _scalar(self, event: Any, secret: int, name: str | int | None) -> Any:
        text = event.value if event.value.isascii() else _joined_surrogates(event.value)
        is_text, tag = bool(event.style), event.tag
        by_name = secret and (secret != _AUTH or name != "username") and "{{" not in text
        if tag == TAG or by_name or ("://" in text and USER_IN_URL.search(text)):
            self.hidden[(*_start(event), *_end_of_secret(text, _end(event), self.lines))] = None
        if tag == TAG:
            if "{{" not in text and not can_redact(text):  # the result of a template is checked later
                self._flaw(*why_too_short(text), event, "secret")
            return TaintedText(text)
        try:
            data = text if is_text or tag is not None else resolve_scalar(text)
        except ValueError:
            self._flaw("a number with too many digits", "quote it if it is a text", event)
            self.broken.add((*self.way, name) if name is not None else ())
            return 0
        return self._shared(data) if type(data) is str else data

    def _shared(self, text: str) -> str:
        """Return a text that was read before instead of an equal one: most texts of large playbooks are repeated."""
        if len(self.texts) < MAX_SHARED:
            return self.texts.setdefault(text, text)
        return self.texts.get(text, text)

    def _flaw(self, message: str, remedy: str, event: Any, kind: ProblemKind = "yaml") -> None:
        self.found[message, remedy, SourceLocation(self.file, *_start(event)), kind] = None

    def _check_depth(self, depth: int, event: Any) -> None:
        if depth > MAX_DEPTH:
            what = "aliases nest" if self.repeated else "nested"
            raise self._error(f"{what} deeper than {MAX_DEPTH} levels", "", event)

    def _check_tag(self, event: Any) -> None:
        scalar = type(event) is yaml.ScalarEvent
        if (event.tag or "").startswith(TAG) and not (scalar and event.tag == TAG):
            why = f"{TAG} needs a space after it" if scalar else f"{TAG} marks a text, not a list or mapping"
            raise self._error(why, "mark each text separately", event)
        if event.tag not in {None, "!", "tag:yaml.org,2002:str", TAG}:
            raise self._error("unknown tag {}", "remove it", event, event.tag)

    def _error(self, message: str, remedy: str, event: Any, name: str = "") -> InputError:
        return _error(self.file, self.lines, message, remedy, SourceLocation(self.file, *_start(event)), name)


def _is_merge(key: Any, name: str | None) -> bool:
    return name == _MERGE and not key.style and key.tag is None


_ENDS = frozenset({yaml.MappingEndEvent, yaml.SequenceEndEvent})


def _start(event: Any) -> tuple[int, int]:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _end(event: Any) -> tuple[int, int]:
    return event.end_mark.line + 1, event.end_mark.column + 1


def _packed(event: Any) -> int:
    mark = event.start_mark
    return int((mark.line << 32) + mark.column + _FIRST)


_FIRST: Final = pack(1, 1)


def _joined_surrogates(text: str) -> str:
    """Join pairs of surrogates: JSON writes an emoji as two of them, and YAML 1.2 includes JSON."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _secrecy(name: str) -> int:
    return _AUTH if name == "auth" else int(is_secret_name(name))


def _end_of_secret(text: str, end: tuple[int, int], lines: Lines) -> tuple[int, int]:
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
        return "wrong indentation", "begin this line in the same column as the keys that it belongs to"
    return f"invalid YAML: {problem or context or 'unreadable'}", ""


def resolve_scalar(text: str) -> Any:
    """Resolve a plain scalar by the core schema of YAML 1.2.

    >>> resolve_scalar("10:00:00:00"), resolve_scalar("no"), int(resolve_scalar("012")), int(resolve_scalar("0o14"))
    ('10:00:00:00', 'no', 12, 12)
    """
    if text and text[0] not in _MAY_BE_OTHER:
        return text
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
