"""YAML 1.2 (core schema) to plain data with places. The only module that imports PyYAML.

PyYAML reads YAML 1.1, where ``10:00:00`` is a number and ``no`` is false. So only its events are used: here, they are
composed into nodes, and nodes become data.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import Any, Final, NamedTuple

import yaml
from msgspec import Struct, structs

from msauto.documents.document import (
    MAX_DEPTH,
    Document,
    Hidden,
    MarkedTemplate,
    Path,
    as_written,
    outside_node,
)
from msauto.documents.scalars import JOINED, resolve_scalar
from msauto.errors import InputError, Problem, ProblemKind, SourceLocation
from msauto.primitives.decimals import show_cut
from msauto.secrets.redaction import HIDDEN, USER_IN_URL, can_redact, is_secret_name, redact_lines
from msauto.secrets.sources import NAMED, TAG, MarkedText, why_too_short

MAX_ALIASED = 100_000
"""The most nodes that aliases may add to a document."""
MAX_NODES: Final = 1_000_000
"""The most keys, values, lists and mappings of a document; each takes up to 1 KB."""
_MOST_BYTES: Final = 8 * 2**20
_MOST_EXPLAINED: Final = 2**20
"""Characters of a text that PyYAML's own parser reads again for a better message: it takes 10 seconds for each MiB."""
_MOST_FLAWS: Final = 1000
_A_TABLE: Final = "write what repeats as a table, and read it with `loop` and lookup('csv', …)"

_ONE_VALUE: Final = "write one list (- key: value) or one mapping (key: value) in the file"
_EACH_TEXT: Final = 'mark each text separately; of the environment: !secret "{{ env.NAME }}"'
_NUMBERS: Final = (
    "write at most 9 digits, a point and 12 digits, without an exponent; quote it if it is a text"
)
_FEWER_ALIASES: Final = "write out what some of the aliases (*name) stand for"


_BREAKS = re.compile(r"\r\n|[\r\n]")
_BREAKS_OF_1_1: Final = "\x85\u2028\u2029"
"""PyYAML folds them like line ends; in YAML 1.2 they are characters like others."""


_ODD_SPACES: Final = "\xa0\u2007\u200b\u202f\u3000\ufeff"
"""Characters that look like a space, or like nothing, and are texts in YAML."""
_ODD_SPACE: Final = re.compile(f"[{_ODD_SPACES}]")
_TAGS_OF_ANSIBLE = {
    "!vault": (
        "Ansible Vault is not supported",
        "name the command that prints the secret under [secrets] in msauto.toml, and write !secret {name: NAME}",
    ),
    "!unsafe": (
        "!unsafe is not supported",
        "remove it, and write {% raw %}…{% endraw %} around braces that are text",
    ),
}


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
    if len(data) > _MOST_BYTES:
        why = f"the file is too large: it has {len(data):,} bytes, and YAML may have {_MOST_BYTES // 2**20} MiB"
        raise outside_node(file).error(why, _A_TABLE, kind="file")
    text = _decode(data, file)
    reader = _read(text, file, tuple(_BREAKS.split(text)))
    document = Document(
        file,
        reader.data,
        reader.places,
        reader.key_places,
        reader.lines,
        tuple(reader.hidden),
        broken=frozenset(reader.broken),
    )
    flaws = []
    for message, remedy, place, kind in islice(reader.flaws, _MOST_FLAWS):
        flaws.append(document.problem(message, place, remedy, kind=kind))
    return structs.replace(document, flaws=tuple(flaws))


def plain(value: Any, *, keep_secrets: bool = False) -> Any:
    """Return data with plain ``int``, ``float`` and ``str`` in place of their subclasses.

    ``keep_secrets``: secrets stay marked.
    """
    if isinstance(value, dict):
        return {plain(key): plain(inner, keep_secrets=keep_secrets) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, keep_secrets=keep_secrets) for item in value]
    if keep_secrets and isinstance(value, MarkedText | MarkedTemplate):
        return MarkedText(value)
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
        place = _place_after(data[: error.start].decode("utf-8", "replace"), file)
        raise InputError(
            [Problem("the file is not UTF-8 here", place, "save it as UTF-8", kind="yaml")]
        ) from error


def _place_after(before: str, file: str) -> SourceLocation:
    return SourceLocation(file, before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1)


def _read(text: str, file: str, lines: Sequence[str]) -> _EventReader:
    """Return the reader of a whole document."""
    fast = getattr(yaml, "CLoader", yaml.Loader)
    try:
        if len(text) > _MOST_EXPLAINED:
            return _EventReader(text, file, lines, fast)
        with suppress(yaml.YAMLError):  # libyaml is faster, PyYAML's own parser has better messages
            return _EventReader(text, file, lines, fast)
        return _EventReader(text, file, lines, yaml.Loader)
    except yaml.MarkedYAMLError as error:
        place = _marked_place(error, file)
        message, remedy = _explain(error, redact_lines(lines[: place.line]), place.column)
        raise _error(lines, message, remedy, place) from error
    except yaml.reader.ReaderError as error:
        place = _place_after(text[: error.position], file)
        raise _error(lines, "a character that YAML does not allow", "remove it", place) from error


def _marked_place(error: yaml.MarkedYAMLError, file: str) -> SourceLocation:
    """Return the place of an error; of a quote that is not closed, that of the quote."""
    mark = error.problem_mark or error.context_mark
    if error.context_mark and "quoted scalar" in (error.context or ""):
        mark = error.context_mark
    if mark is None:
        return SourceLocation(file)
    return SourceLocation(file, mark.line + 1, mark.column + 1)


def _error(
    lines: Sequence[str], message: str, remedy: str, place: SourceLocation, name: str = ""
) -> InputError:
    """Return an error; ``name`` replaces ``{}`` in the message unless it may be part of a secret."""
    document = Document(place.file, lines=redact_lines(lines))
    if name:
        is_shown = name in document.excerpt(place)
        message = message.format(name if is_shown else HIDDEN)
    return InputError([document.problem(message, place, remedy, kind="yaml")])


_Flaw = tuple[str, str, SourceLocation, ProblemKind]
"""Message, remedy, place and kind of a problem of one key or value."""
_MERGE = "<<"
_PUBLIC = 0
_SECRET = 1
_AUTH = 2
"""The secrecy of a value: in a mapping or list with a secret name, or under ``auth``, where ``username`` is shown."""


class _Collection(Struct):
    """A mapping or list: its first event, and the nodes inside; keys and values of a mapping alternate.

    Each node inside is read from the events when it is taken, and must be read whole before the next one, so that a
    large document is not held twice. What an anchor names, and what is merged, is a list. ``size`` counts its nodes.
    The node of a scalar is its event; an alias is the node that it stands for.
    """

    event: Any
    inside: Iterable[Any]
    size: int = 1


class _EventReader:
    """Reads a document: ``data``, the places of all values and keys, and flaws.

    A merge is read from the merged mapping into the other one. ``way`` is the path of a value.
    """

    def __init__(self, text: str, file: str, lines: Sequence[str], loader: Any) -> None:
        self.file = file
        self.lines = lines
        self.places: dict[Path, tuple[int, int]] = {}
        self.key_places: dict[Path, tuple[int, int]] = {}
        self.hidden: dict[Hidden, None] = {}
        self.flaws: dict[_Flaw, None] = {}
        self.broken: dict[Path, None] = {}
        self.anchors: dict[str, Any] = {}
        self.composed = self.aliased = 0
        text, self.back = _without_breaks_of_1_1(text)
        self.next: Callable[[], Any] = loader(text).get_event
        self.data = self._document()

    def _document(self) -> Any:
        self.next()  # the stream starts
        if isinstance(self.next(), yaml.StreamEndEvent):
            self.places[()] = 1, 1
            return None
        data = self._value(self._compose(self.next(), 0), (), 0, _PUBLIC)
        self.next()  # the document ends
        event = self.next()
        if not isinstance(event, yaml.StreamEndEvent):
            raise self._error("a second document starts here", "write one document per file", event)
        return data

    def _compose(self, event: Any, depth: int) -> Any:
        """Return the node that begins with an event."""
        if type(event) is yaml.AliasEvent:
            return self._aliased(event)
        if depth > MAX_DEPTH:
            raise self._error(f"nested deeper than {MAX_DEPTH} levels", "nest it less deep", event)
        if event.tag is not None:
            self._check_tag(event)
        node = event
        before = self.composed
        self.composed += 1
        if self.composed > MAX_NODES:
            why = f"the document has more than {MAX_NODES:,} keys and values"
            raise self._error(why, _A_TABLE, event)
        if type(event) is not yaml.ScalarEvent:
            node = _Collection(event, self._inside(depth + 1))
        if event.anchor is not None:
            self.anchors[event.anchor] = self._whole(node)
            if type(node) is _Collection:
                node.size = self.composed - before
        return node

    def _aliased(self, event: Any) -> Any:
        """Return the node that an alias stands for."""
        name = str(event.anchor)
        if name not in self.anchors:
            raise self._error("unknown anchor &{}", "define it before this place", event, name)
        node = self.anchors[name]
        size = node.size if type(node) is _Collection else 1
        self.composed += size
        self.aliased += size
        if self.aliased > MAX_ALIASED:
            raise self._error("aliases make the document too large", _FEWER_ALIASES, event)
        return node

    def _inside(self, depth: int) -> Iterator[Any]:
        """Yield the nodes of the collection whose first event was read."""
        while type(inner := self.next()) not in _ENDS:
            yield self._compose(inner, depth)

    def _whole(self, node: Any) -> Any:
        """Return a node after all nodes inside are read."""
        if type(node) is _Collection and type(node.inside) is not list:
            node.inside = [self._whole(inner) for inner in node.inside]
        return node

    def _value(self, node: Any, way: Path, depth: int, secrecy: int) -> Any:
        """Return the data of a node."""
        if type(node) is not _Collection:
            self.places.setdefault(way, _start(node))
            return self._scalar(node, secrecy, way)
        event = node.event
        self.places.setdefault(way, _start(event))
        if depth > MAX_DEPTH:
            why = f"aliases nest deeper than {MAX_DEPTH} levels"
            raise self._error(why, _FEWER_ALIASES, event)
        if type(event) is yaml.SequenceStartEvent:
            items = []
            for index, item in enumerate(node.inside):
                items.append(self._value(item, (*way, index), depth + 1, secrecy))
            return items
        data: dict[str, Any] = {}
        if event.tag != TAG:
            self._mapping(data, node.inside, way, depth, secrecy)
            return data
        self._mapping(data, node.inside, way, depth, _PUBLIC)  # !secret {name: NAME}
        if data.keys() != {"name"} or not isinstance(data["name"], str):
            why = f"{TAG} marks a text, or names a secret: {TAG} {{name: NAME}}"
            raise self._error(why, _EACH_TEXT, event)
        return MarkedTemplate(f"{NAMED}{data['name']!r}) }}}}")

    def _mapping(
        self,
        data: dict[str, Any],
        inside: Iterable[Any],
        way: Path,
        depth: int,
        secrecy: int,
        *,
        merged: bool = False,
    ) -> None:
        """Read the entries of a mapping into ``data``; of one that is merged, only those with a new key."""
        merges: list[tuple[Any, Any]] = []
        nodes = iter(inside)
        for key in nodes:
            name = self._key(self._whole(key))
            value = next(nodes)
            is_merge = name == _MERGE and not key.style and key.tag is None
            if is_merge and (merged or not (merges or name in data)):
                merges.append((key, self._whole(value)))
                continue
            named = str(getattr(key, "value", None)) if name is None else name
            inner = max(secrecy, _secrecy(named))
            is_second = name in data or (name == _MERGE and merges and not merged)
            if name is not None and not is_second:
                path = (*way, name)
                self.key_places[path] = _start(key)
                data[name] = self._value(value, path, depth + 1, inner)
                continue
            if name is None:
                self.broken[way] = None
            elif not merged:
                first = self.key_places[*way, name] if name in data else _start(merges[0][0])
                why = f"duplicate key {name!r} (first in line {first[0]})"
                self._flaw(why, "keep one of them", key, "duplicate-key")
            self._unused(value, (*way, name or ""), depth + 1, inner)
        for _, merge in merges:
            self._merge(data, merge, way, depth, secrecy)

    def _merge(self, data: dict[str, Any], merge: Any, way: Path, depth: int, secrecy: int) -> None:
        sources: Iterable[Any] = (merge,)
        if type(merge) is _Collection and type(merge.event) is yaml.SequenceStartEvent:
            sources = merge.inside
        for source in sources:
            event = source.event if type(source) is _Collection else source
            if depth > MAX_DEPTH:
                why = f"aliases nest deeper than {MAX_DEPTH} levels"
                raise self._error(why, _FEWER_ALIASES, event)
            if type(event) is yaml.MappingStartEvent:
                self._mapping(data, source.inside, way, depth + 1, secrecy, merged=True)
            else:
                self._flaw("<< merges only mappings", "", event)
                self.broken[way] = None
                self._unused(source, (*way, _MERGE), depth + 1, secrecy)

    def _unused(self, node: Any, way: Path, depth: int, secrecy: int) -> None:
        """Read a value that is not part of the data: its flaws and secrets count."""
        before = len(self.broken)
        self._value(node, way, depth, secrecy)
        while len(self.broken) > before:
            self.broken.popitem()

    def _key(self, node: Any) -> str | None:
        """Return the text of a key; ``None`` for one that is not a text."""
        if type(node) is _Collection:
            mark = node.event.start_mark
            if self.lines[mark.line][mark.column - 1 : mark.column + 1] == "{{":
                self._flaw("a template must be quoted", 'write it as "{{ … }}"', node.event)
            else:
                self._flaw("a key must be a text", "quote it", node.event)
            return None
        if node.tag == TAG:
            self.hidden[(*_start(node), *_end(node))] = None
            self._flaw("a key cannot be secret", "mark its value", node, "secret")
            return None
        text = self._text(node)
        if node.style:
            return text
        odd = _ODD_SPACE.search(text)
        if odd:
            why = f"a space in this key is not a plain one: {_called(odd[0])}"
            self._flaw(why, "write a plain space", node)
            cleaned = _ODD_SPACE.sub(" ", text).strip()
            if " " in cleaned:
                return None
            return cleaned
        if node.tag is None and not _is_text(text):
            self._flaw(f"the key {text or 'null'} is not a text", "quote it", node)
            return None
        return text

    def _text(self, event: Any) -> str:
        """Return the text of a scalar. Pairs of surrogates are joined: JSON writes an emoji as two of them."""
        text: str = event.value
        if text.isascii():
            return text
        return (
            text.translate(self.back)
            .encode("utf-16", "surrogatepass")
            .decode("utf-16", "surrogatepass")
        )

    def _scalar(self, event: Any, secrecy: int, way: Path) -> Any:
        text = self._text(event)
        tag = event.tag
        is_user_name = secrecy == _AUTH and way[-1] == "username"
        is_secret_by_name = secrecy != _PUBLIC and not is_user_name and "{{" not in text
        has_user = "://" in text and USER_IN_URL.search(text)
        if tag == TAG or is_secret_by_name or has_user:
            self._hide(event, text)
        if tag == TAG:
            # The result of a template is checked later.
            if "{{" not in text and not can_redact(text):
                self._flaw(*why_too_short(text), event, "secret")
            return as_written(MarkedText(text))
        if event.style or tag is not None:
            return as_written(text)
        try:
            value = resolve_scalar(text)
        except ValueError:
            self._flaw(f"{show_cut(text)}, which is not a number in range", _NUMBERS, event)
            self.broken[way] = None
            return 0
        return as_written(value) if isinstance(value, str) else value

    def _hide(self, event: Any, text: str) -> None:
        last, right = _end(event)
        # It may start with `#`, which YAML reads as a comment.
        if not text and last <= len(self.lines):
            right = len(self.lines[last - 1]) + 1
        self.hidden[(*_start(event), last, right)] = None

    def _flaw(self, message: str, remedy: str, event: Any, kind: ProblemKind = "yaml") -> None:
        self.flaws[message, remedy, SourceLocation(self.file, *_start(event)), kind] = None

    def _check_tag(self, event: Any) -> None:
        tag = event.tag
        if tag.startswith(TAG):
            if type(event) is yaml.SequenceStartEvent:
                raise self._error(f"{TAG} marks a text, not a list", _EACH_TEXT, event)
            if tag != TAG:
                raise self._error(f"{TAG} needs a space after it", _EACH_TEXT, event)
        elif tag in _TAGS_OF_ANSIBLE:
            raise self._error(*_TAGS_OF_ANSIBLE[tag], event)
        elif tag not in {"!", "tag:yaml.org,2002:str"}:
            raise self._error("unknown tag {}", "remove it", event, tag)

    def _error(self, message: str, remedy: str, event: Any, name: str = "") -> InputError:
        return _error(self.lines, message, remedy, SourceLocation(self.file, *_start(event)), name)


def _without_breaks_of_1_1(text: str) -> tuple[str, dict[int, str]]:
    """Return a text with unused characters for the line ends of YAML 1.1, and what these stand for."""
    private = map(chr, range(0xE000, 0xF900))
    unused = (character for character in private if character not in text)
    present = [sign for sign in _BREAKS_OF_1_1 if sign in text]
    back = {}
    for sign, instead in zip(present, unused, strict=False):
        text = text.replace(sign, instead)
        back[ord(instead)] = sign
    return text, back


_ENDS = frozenset({yaml.MappingEndEvent, yaml.SequenceEndEvent})


def _start(event: Any) -> tuple[int, int]:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _end(event: Any) -> tuple[int, int]:
    return event.end_mark.line + 1, event.end_mark.column + 1


@lru_cache(1000)
def _is_text(plain: str) -> bool:
    with suppress(ValueError):
        return isinstance(resolve_scalar(plain), str)
    return False


@lru_cache(1000)
def _secrecy(name: str) -> int:
    if name == "auth":
        return _AUTH
    return _SECRET if is_secret_name(name) else _PUBLIC


_KEY_FORM: Final = "write a colon and a space after its key"


class _LineBeginning(NamedTuple):
    """The key of a line, or the ``-`` of its item, and its column."""

    column: int
    name: str


def _begins(line: str, *, item: bool) -> _LineBeginning | None:
    """Return how a line begins: with a key, or as an item."""
    match = re.match(r" *(-)(?= )" if item else r"[ -]*(\w[^:{]*):(?: |$)", line)
    if match:
        return _LineBeginning(match.start(1) + 1, match[1])
    return None


def _wrong_indentation(lines: Sequence[str]) -> tuple[str, str]:
    """Explain the indentation of the last line by the line above that begins in the same way."""
    *lines_above, last = lines
    item = last.lstrip().startswith("- ")
    own = _begins(last, item=item)
    begun = (_begins(line, item=item) for line in reversed(lines_above))
    above = next(filter(None, begun), None)
    if own is None or above is None or own.column == above.column:
        return (
            "wrong indentation",
            "begin this line in the same column as the keys that it belongs to",
        )
    remedy = f"begin it in column {above.column}"
    if own.column < above.column:
        remedy = f"{remedy}, or in that of the keys that it belongs to"
    here = f"{own.name!r} begins in column {own.column}"
    return (
        f"wrong indentation: {here}, and {above.name!r} above it in column {above.column}",
        remedy,
    )


def _unexpected_colon(lines: Sequence[str], column: int) -> tuple[str, str]:
    """Explain a colon in the last line that continues a text: what is wrong may be in the line above it."""
    joined = JOINED.match(lines[-1].lstrip(" -"))
    if joined:
        return f"no colon and space follow {joined[1]!r}", f"write {joined[1]}: {joined[2]}…"
    own = _begins(lines[-1], item=False)
    is_first_colon = own is not None and own.column + len(own.name) == column
    before = len(lines) - 1
    while before and not lines[before - 1].strip():
        before -= 1
    if not is_first_colon or not before:
        return (
            "a colon that starts a value is not allowed here",
            "quote the text after the first colon, or write this key on a line of its own",
        )
    if _begins(lines[before - 1], item=False) is None:
        return f"line {before} has no colon, so that this line continues its text", _KEY_FORM
    return _wrong_indentation(lines)


def _explain(error: yaml.MarkedYAMLError, lines: Sequence[str], column: int) -> tuple[str, str]:
    """Translate an error of PyYAML in the last line; returns message and remedy."""
    problem, context = error.problem or "", error.context or ""
    here = "\n".join(lines[-2:])
    odd = re.search(rf"(?:^\s*|[:-])([{_ODD_SPACES}])", here, re.MULTILINE)
    if odd:
        return (
            f"a space here, or in the line before, is not a plain one: {_called(odd[1])}",
            "write a plain space",
        )
    if "\\t" in problem or lines[-1].lstrip(" ").startswith("\t"):
        return "a tab cannot indent YAML", "use spaces"
    if "mapping values are not allowed" in problem:
        return _unexpected_colon(lines, column)
    if "but got ':'" in problem:
        why = "a colon and a space begin a value, also inside of a text"
        return why, "quote the text that has the colon"
    if "could not find expected ':'" in problem and error.context_mark:
        return f"line {error.context_mark.line + 1} has no colon", _KEY_FORM
    if re.search("'[%@`]'", problem):
        return "a text cannot start with this character", "quote it"
    if "unexpected end of stream" in problem or "quoted scalar" in context:
        return "the closing quote is missing", "add it"
    if "<block end>" in problem or "block mapping" in context or "block collection" in context:
        if lines[-1][: column - 1].strip(" -"):
            return "a text follows a complete value", "remove it, or put the whole value in quotes"
        return _wrong_indentation(lines)
    if "<document start>" in problem:
        return "this does not continue the YAML above it", _ONE_VALUE
    return (
        f"invalid YAML: {problem or context or 'unreadable'}",
        "correct this line, or what it continues",
    )


def _called(space: str) -> str:
    return f"{unicodedata.name(space).lower()} (U+{ord(space):04X})"
