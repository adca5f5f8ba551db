"""Bytes to elements, safely: the one home of lxml.

Tolerant of what real servers do: an ``<xml>`` wrapper or a stray ``</xml>`` behind the root, any honest encoding,
namespaces with and without a declaration. Never tolerant of a document that ends too early, for half a state is
worse than none; never of a DTD, whatever it says; entities are not expanded and nothing is fetched.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, Protocol, TypeVar, cast

from lxml import etree

from msauto.errors import UnreadableError
from msauto.server.parsers.encoding import to_utf8

Element = etree._Element  # noqa: SLF001 - lxml gives its element type no public name
T = TypeVar("T")

MAX_BYTES: Final = 512 * 2**20
"""No answer may be larger: some 500,000 clips of a listing."""

_OPTIONS: Final[dict[str, Any]] = {
    "resolve_entities": False,
    "no_network": True,
    "huge_tree": False,  # keeps libxml2's own bounds: depth 256, texts of 10 MB
    "load_dtd": False,
    "remove_comments": True,
    "remove_pis": True,
    "encoding": "utf-8",
}
MOST_ATTRIBUTES: Final = 256
_MOST_PREFIXES: Final = 100
_UNDECLARED_PREFIX: Final = 201  # XML_NS_ERR_UNDEFINED_NAMESPACE
_DECLARATION = re.compile(rb"\A(\s*+(?:<xml\s*+>\s*+)?)<\?xml\s[^>]*?\?>", re.IGNORECASE)
_PROLOG = re.compile(rb"\A(?:\s++|<\?.*?\?>|<!--.*?-->)*+", re.DOTALL)
_ROOT_NAME = re.compile(rb"<([^\s/>]+)")
_STRAY_END = re.compile(rb"(?:</xml\s*+>\s*+)++\Z", re.IGNORECASE)
_MAYBE_STRAY = re.compile(rb"(?:</xml\s*+>\s*+)*+(?:<(?:/(?:x(?:m(?:l\s*+)?)?)?)?)?\Z", re.IGNORECASE)
_USED_PREFIX = re.compile(rb"(?:</?|\s)([A-Za-z_][\w.-]*):[A-Za-z_]")
_HTML_TITLE = re.compile(rb"<title[^>]*>([^<]*)", re.IGNORECASE)


def parse_document(data: bytes, charset: str | None = None) -> Element:
    """Return the root element; ``charset`` is what HTTP said. Raises :class:`UnreadableError`."""

    def parse(clean: bytes) -> Element:
        return etree.fromstring(clean, etree.XMLParser(**_OPTIONS))

    return _parsed(data, charset, parse)


class ParserTarget(Protocol):
    """Takes the events of a document as it arrives; what it raises ends the reading. ``whole``: the root has ended."""

    @property
    def data(self) -> Callable[[str], object]:
        """Take a piece of text."""

    @property
    def whole(self) -> bool:
        """Tell whether the root has begun and ended."""

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Take the start of an element; names are as lxml writes them, values are for :func:`plain_value`."""

    def end(self, tag: str) -> None:
        """Take the end of an element."""

    def doctype(self, *what: object) -> None:
        """Refuse a DTD."""

    def close(self) -> None:
        """Do nothing: whoever made the target asks it."""


class PushParser:
    """Parses a clean document piece by piece into a target, and never builds a tree.

    A prefix without a declaration is dropped from its name, as all prefixes are. Raises ``UnreadableError``.
    """

    def __init__(self, target: ParserTarget) -> None:
        self._target = target
        self._parser = etree.XMLParser(target=cast("Any", target), **_OPTIONS)

    def feed(self, data: bytes) -> None:
        """Parse the next bytes, UTF-8."""
        if data:
            with _errors_told():
                self._parser.feed(data)

    def close(self) -> None:
        """End the document, which must be whole: after some errors that are forgiven, libxml2 does not say so."""
        with _errors_told():
            self._parser.close()
        if not self._target.whole:
            raise unreadable("the answer is not whole")


def plain_value(value: str) -> str:
    """Return an attribute's value as the document means it.

    Where entities are not expanded, libxml2 hands a target each ``&`` as a reference, and only a tree undoes that.
    """
    return value.replace(_ampersand(), "&") if "&" in value else value


@cache
def _ampersand() -> str:
    class Look:
        seen = ""

        def start(self, _: str, attributes: Mapping[str, str]) -> None:
            self.seen = attributes["a"]

        def close(self) -> None:
            pass

    look = Look()
    parser = etree.XMLParser(target=cast("Any", look), **_OPTIONS)
    parser.feed(b'<a a="&amp;"/>')
    parser.close()
    return look.seen


def local(element: Element) -> str:
    """Return the name without its namespace; elements are matched by that alone."""
    return name_of(str(element.tag))


def name_of(qualified: str) -> str:
    """Return ``name`` of ``{namespace}name``."""
    return qualified.rpartition("}")[2]


def text_of(element: Element) -> str:
    """Return all text inside, as it stands."""
    return "".join(str(part) for part in element.itertext())


def children(element: Element) -> list[Element]:
    """Return the child elements."""
    return list(element)  # comments and processing instructions were left out by the parser


def attributes(element: Element) -> dict[str, str]:
    """Return the attributes by local name. More than any honest element has are an error: reading costs the square."""
    if len(element.attrib) > MOST_ATTRIBUTES:
        raise too_many_attributes()
    return {name_of(str(name)): str(value) for name, value in element.attrib.items()}


def too_many_attributes() -> UnreadableError:
    """Make the error for an element with more attributes than any honest one has."""
    return unreadable(f"an element of the answer has more than {MOST_ATTRIBUTES} attributes")


def unwrap(root: Element) -> Element:
    """Step inside an ``<xml>`` wrapper that holds a single element."""
    while local(root).lower() == "xml" and len(inner := children(root)) == 1:
        root = inner[0]
    return root


def find_root(root: Element, name: str, what: str) -> Element:
    """Return the root, or what a wrapper holds, if it bears this name; else raise :class:`UnreadableError`."""
    for element in (root, *children(root), *(grand for child in children(root) for grand in children(child))):
        if local(element).lower() == name.lower():
            return element
    raise unreadable(f"the answer is no {what}: its root is <{local(root)}>, not <{name}>")


def decode_text(data: bytes, charset: str | None = None) -> str:
    """Return the text as well as it can be read, for messages and for answers that are no XML."""
    try:
        return _as_utf8(data, charset).decode("utf-8", "replace")
    except UnreadableError:
        return data.decode("utf-8", "replace")


def looks_like_html(data: bytes) -> bool:
    """Tell whether this is a web page rather than an answer."""
    head = data[:4096].lstrip(codecs.BOM_UTF8)
    rest = head[match.end() :].lower() if (match := _PROLOG.match(head)) else head.lower()
    return rest.startswith((b"<!doctype html", b"<html"))


def looks_like_login(data: bytes) -> bool:
    """Tell whether this is a web page with a form: something stands between us and the server."""
    return looks_like_html(data) and b"<form" in data[:65536].lower()


def unreadable(message: str, remedy: str = "") -> UnreadableError:
    """Make the error for an answer that is not what the interface promises."""
    return UnreadableError(
        message, remedy=remedy or "compare the answer with the interface; `msauto probe` shows what the server says"
    )


def _parsed(data: bytes, charset: str | None, parse: Callable[[bytes], T]) -> T:
    clean = _prepared(data, charset)
    with _errors_told():
        try:
            return parse(clean)
        except etree.XMLSyntaxError as error:
            if getattr(error, "code", None) != _UNDECLARED_PREFIX:
                raise
            return parse(_with_declared_prefixes(clean))


@contextmanager
def _errors_told() -> Iterator[None]:
    try:
        yield
    except etree.XMLSyntaxError as error:
        raise unreadable(f"the answer is not whole, or no XML: {error.msg}") from None
    except (ValueError, AssertionError) as error:
        raise unreadable(f"the answer cannot be read as XML: {error}") from None


def _prepared(data: bytes, charset: str | None) -> bytes:
    if len(data) > MAX_BYTES:
        raise too_large()
    refuse_html(data)
    clean = begin(_as_utf8(data, charset))
    return _without_stray_end(clean)


def too_large() -> UnreadableError:
    """Make the error for an answer beyond all bounds."""
    return unreadable(f"the answer is larger than {MAX_BYTES // 2**20} MiB", "list single folders instead")


def refuse_html(data: bytes) -> None:
    """Raise where the answer is a web page."""
    if not looks_like_html(data):
        return
    title = _HTML_TITLE.search(data[:4096])
    shown = f" titled {title[1].decode('utf-8', 'replace').strip()[:100]!r}" if title else ""
    raise unreadable(
        f"the server answered with an HTML page{shown}",
        "check the server's address and port: something else answers there, such as a proxy or a login page",
    )


def begin(clean: bytes) -> bytes:
    """Return a document, or the beginning of one, from its root on; raise where it has a DTD, or nothing at all."""
    clean = _DECLARATION.sub(rb"\1", clean, count=1).lstrip()
    if not clean:
        raise unreadable("the answer is empty")
    prolog = _PROLOG.match(clean)
    if prolog and clean[prolog.end() : prolog.end() + 2] == b"<!":
        raise has_dtd()
    return clean


def has_dtd() -> UnreadableError:
    """Make the error for a document with a DTD."""
    return unreadable("the answer has a DTD, which is never read", "answers of the interface need none")


def may_have_stray_end(clean: bytes) -> bool:
    """Tell whether a document that begins so may be followed by ``</xml>``: its root is no ``<xml>``."""
    prolog = _PROLOG.match(clean)
    root = _ROOT_NAME.match(clean, prolog.end() if prolog else 0)
    return root is not None and root[1].lower() != b"xml"


def hold_back(clean: bytes) -> int:
    """Return where, at the end of these bytes, something begins that may turn out to be stray ends."""
    found = _MAYBE_STRAY.search(clean, max(0, len(clean) - 4096))
    return found.start() if found else len(clean)


def _without_stray_end(clean: bytes) -> bytes:
    return without_stray_end(clean) if may_have_stray_end(clean) else clean


def without_stray_end(clean: bytes) -> bytes:
    """Cut stray ends off the end of a document, or of the end of one.

    Field notes: a published sample ends with a stray </xml>. The root must still be whole, which parsing proves.
    """
    end = len(clean)
    while stray := _STRAY_END.search(clean, max(0, end - 4096), end):
        end = stray.start()
    return clean[:end]  # cut once: an answer of nothing but stray ends must not cost the square of its length


def _with_declared_prefixes(clean: bytes) -> bytes:
    prolog = _PROLOG.match(clean)
    root = _ROOT_NAME.match(clean, prolog.end() if prolog else 0)
    if root is None:
        return clean
    start_tag = clean[root.start() : clean.find(b">", root.end())]
    used = set(_USED_PREFIX.findall(clean)) - {b"xml", b"xmlns"}
    if len(used) > _MOST_PREFIXES:
        return clean
    missing = sorted(prefix for prefix in used if b"xmlns:" + prefix + b"=" not in start_tag)
    declared = b"".join(b' xmlns:%b="urn:undeclared:%b"' % (prefix, prefix) for prefix in missing)
    return clean[: root.end()] + declared + clean[root.end() :]


def _as_utf8(data: bytes, charset: str | None) -> bytes:
    clean = to_utf8(data, charset)
    if clean is None:
        raise no_encoding(charset)
    return clean


def no_encoding(charset: str | None) -> UnreadableError:
    """Make the error for an answer whose encoding cannot be told; ``charset`` is what HTTP said."""
    told = f", though it is said to be {charset}" if charset else ""
    return unreadable(f"the answer's encoding cannot be told: it is not UTF-8{told}", "have the server declare it")
