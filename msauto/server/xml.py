"""Bytes to elements, safely: the one home of lxml.

Tolerant of what real servers do: an ``<xml>`` wrapper or a stray ``</xml>`` behind the root, any honest encoding,
namespaces with and without a declaration. Never tolerant of a document that ends too early, for half a state is
worse than none; never of a DTD, whatever it says; entities are not expanded and nothing is fetched.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any, Final, Literal, TypeVar, cast

from lxml import etree

from msauto.errors import UnreadableError

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
_MOST_ATTRIBUTES: Final = 256
_MOST_PREFIXES: Final = 100
_UNDECLARED_PREFIX: Final = 201  # XML_NS_ERR_UNDEFINED_NAMESPACE
_TEXT_CODEC = re.compile(
    r"utf-8|utf-(16|32)(-[lb]e)?|ascii|iso8859-\d+|cp\d+|koi8-[rut]|mac-\w+|gb\w+|big5\w*|shift_jis\w*|euc_\w+"
)
_DECLARATION = re.compile(rb"\A(\s*+(?:<xml\s*+>\s*+)?)<\?xml\s[^>]*?\?>", re.IGNORECASE)
_DECLARED = re.compile(rb"""\A\s*+(?:<xml\s*+>\s*+)?<\?xml\s[^>]*?encoding\s*=\s*["']([\w.:-]+)["']""", re.IGNORECASE)
_PROLOG = re.compile(rb"\A(?:\s++|<\?.*?\?>|<!--.*?-->)*+", re.DOTALL)
_ROOT_NAME = re.compile(rb"<([^\s/>]+)")
_STRAY_END = re.compile(rb"(?:</xml\s*+>\s*+)++\Z", re.IGNORECASE)
_USED_PREFIX = re.compile(rb"(?:</?|\s)([A-Za-z_][\w.-]*):[A-Za-z_]")
_HTML_TITLE = re.compile(rb"<title[^>]*>([^<]*)", re.IGNORECASE)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"<\x00", "utf-16-le"),
    (b"\x00<", "utf-16-be"),
)


def parse_document(data: bytes, charset: str | None = None) -> Element:
    """Return the root element; ``charset`` is what HTTP said. Raises :class:`UnreadableError`."""

    def parse(clean: bytes) -> Element:
        return etree.fromstring(clean, etree.XMLParser(**_OPTIONS))

    return _parsed(data, charset, parse)


def walk_document(
    data: bytes,
    charset: str | None,
    visit: Callable[[Iterator[tuple[Literal["start", "end"], Element]]], T],
    *names: str,
) -> T:
    """Walk a large document by the starts and ends of some elements, without holding it whole.

    ``visit`` gets an iterator over elements of these local names; it clears what it has seen, and it must read the
    iterator to its end, for only that proves the document whole. It may be called again, from the beginning.
    """

    def parse(clean: bytes) -> T:
        tags = [f"{{*}}{name}" for name in names]
        events = etree.iterparse(BytesIO(clean), events=("start", "end"), tag=tags, **_OPTIONS)
        return visit(cast("Iterator[tuple[Literal['start', 'end'], Element]]", iter(events)))

    return _parsed(data, charset, parse)


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
    if len(element.attrib) > _MOST_ATTRIBUTES:
        raise unreadable(f"an element of the answer has more than {_MOST_ATTRIBUTES} attributes")
    return {name_of(str(name)): str(value) for name, value in element.attrib.items()}


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
    try:
        try:
            return parse(clean)
        except etree.XMLSyntaxError as error:
            if getattr(error, "code", None) != _UNDECLARED_PREFIX:
                raise
            return parse(_with_declared_prefixes(clean))
    except etree.XMLSyntaxError as error:
        raise unreadable(f"the answer is not whole, or no XML: {error.msg}") from None
    except (ValueError, AssertionError) as error:
        raise unreadable(f"the answer cannot be read as XML: {error}") from None


def _prepared(data: bytes, charset: str | None) -> bytes:
    if len(data) > MAX_BYTES:
        raise unreadable(f"the answer is larger than {MAX_BYTES // 2**20} MiB", "list single folders instead")
    if looks_like_html(data):
        title = _HTML_TITLE.search(data[:4096])
        shown = f" titled {title[1].decode('utf-8', 'replace').strip()[:100]!r}" if title else ""
        raise unreadable(
            f"the server answered with an HTML page{shown}",
            "check the server's address and port: something else answers there, such as a proxy or a login page",
        )
    clean = _DECLARATION.sub(rb"\1", _as_utf8(data, charset), count=1).lstrip()
    if not clean:
        raise unreadable("the answer is empty")
    _refuse_doctype(clean)
    return _without_stray_end(clean)


def _refuse_doctype(clean: bytes) -> None:
    prolog = _PROLOG.match(clean)
    if prolog and clean[prolog.end() : prolog.end() + 2] == b"<!":
        raise unreadable("the answer has a DTD, which is never read", "answers of the interface need none")


def _without_stray_end(clean: bytes) -> bytes:
    # Field notes: a published sample ends with a stray </xml>. The root must still be whole, which parsing proves.
    prolog = _PROLOG.match(clean)
    root = _ROOT_NAME.match(clean, prolog.end() if prolog else 0)
    if root is None or root[1].lower() == b"xml":
        return clean
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
    for codec in _codecs(data, charset):
        try:
            text = data.decode(codec)
        except UnicodeError:
            continue
        if codec == "utf-8":
            return data.removeprefix(codecs.BOM_UTF8)
        return text.removeprefix("\ufeff").encode("utf-8", "surrogatepass")
    told = f", though it is said to be {charset}" if charset else ""
    raise unreadable(f"the answer's encoding cannot be told: it is not UTF-8{told}", "have the server declare it")


def _codecs(data: bytes, charset: str | None) -> list[str]:
    """Return the codecs to try: byte order mark, HTTP, declaration (RFC 7303), UTF-8.

    A declared UTF-8 goes before what HTTP says: bytes that are valid UTF-8 are hardly ever anything else, while a
    web server's default charset is often wrong, and any bytes are valid in an eight-bit one.
    """
    for mark, codec in _BOMS:
        if data.startswith(mark):
            return [codec]
    declared = _DECLARED.match(data[:512])
    named = [_codec(charset), _codec(declared[1].decode("ascii", "replace") if declared else None)]
    known = [name for name in named if name]
    if named[1] == "utf-8":
        known.reverse()
    return [*dict.fromkeys([*known, "utf-8"])]


def _codec(name: str | None) -> str | None:
    try:
        found = codecs.lookup(name.strip("\"' ")).name if name else None
    except (LookupError, ValueError):
        return None
    return found if found and _TEXT_CODEC.fullmatch(found) else None
