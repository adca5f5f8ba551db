"""Bytes to elements, safely. No other module uses lxml.

Accepted, because real servers send it: an ``<xml>`` wrapper, a stray ``</xml>`` after the root, any common encoding,
prefixes without a declaration. Refused: an incomplete document and a DTD. Entities are not expanded. Nothing is
fetched.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from functools import lru_cache
from typing import Any, Final, cast

from lxml import etree

from msauto.errors import UnreadableError
from msauto.primitives.normal_form import unindented

# Encodings: real servers declare one over HTTP and another in the document, or none. Candidates are tried
# in order; the first that can decode the bytes is used.

_TEXT_CODEC = re.compile(
    r"utf-8|utf-(16|32)(-[lb]e)?|ascii|iso8859-\d+|cp\d+|koi8-[rut]|mac-\w+|gb\w+|big5\w*|shift_jis\w*|euc_\w+"
)
_DECLARED = re.compile(
    rb"""\A\s*+(?:<xml\s*+>\s*+)?<\?xml\s[^>]*?encoding\s*=\s*["']([\w.:-]+)["']""", re.IGNORECASE
)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"<\x00", "utf-16-le"),
    (b"\x00<", "utf-16-be"),
)


_SHOWN = 40
"""How many bytes of an answer that is not XML its error shows."""


class Transcoder:
    """Converts any encoding to UTF-8, piece by piece. ``head`` is the beginning, ``charset`` that of the HTTP header.

    While all bytes are ASCII, which most encodings share, no encoding is chosen.
    """

    def __init__(self, head: bytes, charset: str | None) -> None:
        self._head = head
        self._charset = charset
        self._name = ""
        self._decoder: codecs.IncrementalDecoder | None = None

    def feed(self, data: bytes, *, final: bool = False) -> bytes:
        """Return the next bytes as UTF-8. Raises :class:`UnreadableError` if no candidate can decode them."""
        # All markup has zeros in UTF-16 and UTF-32.
        if self._decoder is None and data.isascii() and b"\0" not in data:
            return data
        for name in (self._name,) if self._decoder else self._candidates():
            decoder = self._decoder or codecs.getincrementaldecoder(name)()
            try:
                text = decoder.decode(data, final)
            except UnicodeError:
                continue
            clean = data if name == "utf-8" else text.encode("utf-8", "surrogatepass")
            if self._decoder is None:
                self._name = name
                self._decoder = decoder
                clean = clean.removeprefix(codecs.BOM_UTF8)
            return clean
        by_header = (
            f", and not {self._charset} as the HTTP header declares" if self._charset else ""
        )
        raise unreadable(
            f"the encoding of the answer is unknown: it is not UTF-8{by_header}{_beginning(self._head)}",
            "configure the server to declare the encoding",
        )

    def _candidates(self) -> tuple[str, ...]:
        for mark, codec in _BOMS:
            if self._head.startswith(mark):
                return (codec,)
        declared = _DECLARED.match(self._head, 0, 512)
        return _codecs(self._charset, declared and declared[1])


@lru_cache(maxsize=64)
def _codecs(charset: str | None, declared: bytes | None) -> tuple[str, ...]:
    """Return the codecs to try without a byte order mark: HTTP, declaration (RFC 7303), UTF-8.

    A declared UTF-8 precedes the HTTP header, because text that is valid UTF-8 is almost always UTF-8. The default
    charset of a web server is often wrong, and any bytes are valid in an eight-bit encoding.
    """
    codecs_named = [_codec(charset or ""), _codec((declared or b"").decode("ascii", "replace"))]
    if codecs_named[1] == "utf-8":
        codecs_named.reverse()
    return tuple(dict.fromkeys(filter(None, [*codecs_named, "utf-8"])))


def _codec(name: str) -> str:
    """Return the codec of a name; empty if it is not one of texts."""
    try:
        codec = codecs.lookup(name.strip("\"' ")).name
    except (LookupError, ValueError):
        return ""
    return codec if _TEXT_CODEC.fullmatch(codec) else ""


# Documents -----------------------------------------------------------------------------------------------------

Element = etree._Element  # noqa: SLF001 - lxml gives its element type no public name

MAX_BYTES: Final = 512 * 2**20
"""The size limit of an answer, about 500,000 clips of a listing."""
MAX_NODES: Final = 1_500_000
"""The limit of elements and attributes in the description of one thing: they take some 300 bytes each, as text few."""
MAX_LISTED_NODES: Final = 4 * MAX_NODES
"""The same limit for a list of many things."""
MAX_DEPTH: Final = 64
"""The limit of elements inside one another; what the interface describes is five deep."""
PIECE: Final = 2**16
"""Bytes parsed in one step. That takes some milliseconds, for which other tasks wait."""

_OPTIONS: Final[dict[str, Any]] = {
    "resolve_entities": False,
    "no_network": True,
    "huge_tree": False,  # keeps the limits of libxml2: depth 2,048, texts of 10 MB, names of 50 KB
    "load_dtd": False,
    "remove_comments": True,
    "remove_pis": True,
    "encoding": "utf-8",
}
_PARSER: Final = etree.XMLParser(**_OPTIONS)
_MOST_ATTRIBUTES: Final = 256
_MOST_PREFIXES: Final = 100
_MOST_NAMESPACES: Final = 256
"""The limit of declarations in scope: each name below them is looked up among them."""
_MOST_PROLOG: Final = 2**16
"""Bytes of declaration, comments and instructions before the root."""
_IS_TOO_DEEP: Final = etree.XPath(f"boolean({'/*' * (MAX_DEPTH + 1)})")
_UNDECLARED_PREFIX: Final = 201  # XML_NS_ERR_UNDEFINED_NAMESPACE
_DECLARATION = re.compile(rb"\A(\s*+(?:<xml\s*+>\s*+)?)<\?xml\s[^>]*?\?>", re.IGNORECASE)
_PROLOG = rb"(?:\s++|<\?.*?\?>|<!--.*?-->)*+"
_ROOT = re.compile(_PROLOG + rb"<([^\s/>?]+)", re.DOTALL)
"""The name of the root; it begins with ``!`` for a DTD, and for a comment that does not end."""
_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?" + _PROLOG + rb"<(?:!doctype )?html", re.DOTALL | re.IGNORECASE
)
_STRAY_END = re.compile(rb"</xml\s*+>\s*+", re.IGNORECASE)
_MOST_STRAY: Final = 2**16
"""Bytes of stray ends behind the root: those at the end of a piece are looked at again with the next one."""
_MAYBE_STRAY = re.compile(rb"</xml\s*+>\s*+|<(?:/(?:x(?:m(?:l\s*+)?)?)?)?", re.IGNORECASE)
_USED_PREFIX = re.compile(rb"(?:</?|\s)([A-Za-z_][\w.-]*):[A-Za-z_]")
_HTML_TITLE = re.compile(rb"<title[^>]*>([^<]*)", re.IGNORECASE)


def parse_document(data: bytes, charset: str | None = None, *, most: int = MAX_NODES) -> Element:
    """Return the root element. ``charset`` comes from the HTTP header. Raises :class:`UnreadableError`.

    ``most`` is the limit of elements and attributes, counted (a few too many) before they take memory.
    """
    if looks_like_html(data):
        raise _web_page(data)
    clean, name = _start_of_document(Transcoder(data, charset).feed(data, final=True))
    if name.lower() != b"xml":
        clean = clean[: _before_stray_ends(clean)]
    if len(clean) > most and clean.count(b"<") - clean.count(b"</") + clean.count(b"=") > most:
        raise unreadable(
            f"the answer has more than {most:,} elements and attributes",
            "check what the server holds there",
        )
    may_have_many_namespaces = clean.count(b"xmlns") > _MOST_NAMESPACES
    try:
        root = etree.fromstring(clean, _PARSER)
    except (etree.XMLSyntaxError, ValueError, AssertionError) as error:
        with _readable_errors(clean):
            if not _is_undeclared_prefix(error):
                raise
            root = etree.fromstring(_with_declared_prefixes(clean), _PARSER)
    if _IS_TOO_DEEP(root):
        raise too_deep()
    if may_have_many_namespaces:
        _check_namespaces(root)
    return root


def _check_namespaces(root: Element) -> None:
    """Bound the declarations that are in scope of an element."""
    in_scope = 0
    for event, _ in etree.iterwalk(root, events=("start-ns", "end-ns")):
        if event == "end-ns":
            in_scope -= 1
            continue
        in_scope += 1
        if in_scope > _MOST_NAMESPACES:
            raise unreadable(
                f"an element of the answer has more than {_MOST_NAMESPACES} namespaces"
            )


class StreamedDocument:
    """Parses a document while it arrives, without holding it.

    Accepts and refuses what :func:`parse_document` does, but the subclass bounds texts. After each piece of at most
    ``piece`` bytes, its ``take`` gets the root and the number of bytes, and removes what it has read. In an open
    element, all children but the last have ended. Raises :class:`UnreadableError`.
    """

    def __init__(self, charset: str | None = None, *, piece: int = PIECE) -> None:
        self._charset = charset
        self._piece = piece
        self._head = bytearray()
        self._transcoder: Transcoder | None = None
        self._parser: etree.XMLPullParser
        self._root: Element | None = None
        self._has_ended = False
        self._held = b""
        self._may_have_stray_end = False
        self._length = 0

    def feed(self, data: bytes) -> None:
        """Parse the next bytes."""
        self._length += len(data)
        if self._length > MAX_BYTES:
            raise too_large()
        for start in range(0, len(data), self._piece):
            piece = data[start : start + self._piece]
            if self._transcoder is not None:
                self._parse(self._transcoder.feed(piece))
                continue
            self._head += piece if self._head else piece.lstrip()
            if len(self._head) >= self._piece:
                self._begin()

    def end(self) -> None:
        """End the document. Raises :class:`UnreadableError` for an incomplete document."""
        self._parse((self._transcoder or self._begin()).feed(b"", final=True))
        self._parse_clean(self._held[: _before_stray_ends(self._held)])
        with _readable_errors(self._head):
            try:
                self._parser.close()
            except etree.XMLSyntaxError as error:
                # After an undeclared prefix, libxml2 does not report that the document is incomplete.
                if not _is_undeclared_prefix(error):
                    raise

        if not self._has_ended:
            raise unreadable("the answer is incomplete")

    def take(self, root: Element, size: int, *, has_ended: bool) -> None:
        """Take what has arrived with the next ``size`` bytes."""
        raise NotImplementedError

    def _begin(self) -> Transcoder:
        """Find the encoding and the root in the first bytes, and parse these."""
        head = bytes(self._head)
        if looks_like_html(head):
            raise _web_page(head)
        self._transcoder = Transcoder(head, self._charset)
        clean, name = _start_of_document(self._transcoder.feed(head))
        if not name:
            raise unreadable(f"the answer is not XML{_beginning(head)}")
        self._may_have_stray_end = name.lower() != b"xml"
        root = name.decode("utf-8", "replace")
        self._parser = etree.XMLPullParser(
            events=("start", "end"), tag=(root, f"{{*}}{name_of(root)}"), **_OPTIONS
        )
        self._parse(clean)
        return self._transcoder

    def _parse(self, clean: bytes) -> None:
        if self._may_have_stray_end:
            clean = self._held + clean
            end = _before_stray_ends(clean, _MAYBE_STRAY)
            clean, self._held = clean[:end], clean[end:]
        self._parse_clean(clean)

    def _parse_clean(self, clean: bytes) -> None:
        with _readable_errors(self._head):
            self._parser.feed(clean)
        if self._has_ended:
            return
        for event, element in self._parser.read_events():
            if self._root is None:
                self._root = cast("Element", element)
            elif event == "end" and element is self._root:
                self._has_ended = True
        if self._root is not None:
            if _IS_TOO_DEEP(self._root):
                raise too_deep()
            self.take(self._root, len(clean), has_ended=self._has_ended)


def local(element: Element) -> str:
    """Return the name without its namespace; elements are matched by that alone."""
    return name_of(str(element.tag))


@lru_cache(maxsize=1024)
def name_of(qualified: str) -> str:
    """Return ``name`` of ``{namespace}name``, and of ``prefix:name`` where the prefix has no declaration."""
    return qualified.rpartition("}")[2].rpartition(":")[2]


def text_of(element: Element) -> str:
    """Return all text inside, without the layout of the document."""
    text = "".join(str(part) for part in element.itertext())
    return unindented(text) if "" < text[:1] <= " " else text


def attributes(element: Element) -> dict[str, str]:
    """Return the attributes by local name. Too many of them are an error, because the time grows with their square."""
    own = cast("Mapping[str, str]", element.attrib)
    if len(own) > _MOST_ATTRIBUTES:
        raise unreadable(f"an element of the answer has more than {_MOST_ATTRIBUTES} attributes")
    return {name_of(name): value for name, value in own.items()}


def serialized(element: Element) -> bytes:
    """Return an element as a document of its own, with the namespaces that it uses, not all that are in scope."""
    return etree.tostring(copy(element), encoding="utf-8", with_tail=False)


def unwrap(root: Element) -> Element:
    """Return the element inside an ``<xml>`` wrapper that holds a single element, else the root."""
    while local(root).lower() == "xml" and len(inner := list(root)) == 1:
        root = inner[0]
    return root


def find_roots(root: Element, name: str, what: str) -> list[Element]:
    """Return the root, or the elements inside its wrappers that have this name. Raises :class:`UnreadableError`.

    What such an element holds belongs to it: a clip may show another one among the extensions of a vendor.
    """
    roots = list(outermost(root, {name.lower()}))
    if not roots:
        raise unreadable(f"the answer is not {what}: its root is <{local(root)}>, not <{name}>")
    return roots


def outermost(element: Element, names: Collection[str]) -> Iterator[Element]:
    """Yield the element if it has one of these names, in lower case, else those inside; never one inside another."""
    if local(element).lower() in names:
        yield element
    else:
        for child in element:
            yield from outermost(child, names)


def decode_text(data: bytes, charset: str | None = None) -> str:
    """Return the text with replacement characters where it cannot be decoded."""
    try:
        return Transcoder(data, charset).feed(data, final=True).decode("utf-8", "replace")
    except UnreadableError:
        return data.decode("utf-8", "replace")


def looks_like_html(data: bytes) -> bool:
    """Return whether this is a web page."""
    return _HTML.match(data, 0, 4096) is not None


def unreadable(message: str, remedy: str = "") -> UnreadableError:
    """Make the error for an answer that does not follow the interface."""
    return UnreadableError(
        message,
        remedy=remedy
        or "compare the answer with the interface; `msauto probe` shows what the server answers",
    )


def too_deep(what: str = "elements", most: int = MAX_DEPTH) -> UnreadableError:
    """Make the error for elements, or folders, inside one another to a depth of more than ``most``."""
    return unreadable(f"the {what} of the answer are nested to a depth of more than {most}")


def too_large(most: int = MAX_BYTES) -> UnreadableError:
    """Make the error for an answer of more than ``most`` bytes; only a listing may have as many as ``MAX_BYTES``."""
    remedy = (
        "list single folders instead"
        if most == MAX_BYTES
        else "check the server: no answer should be so large"
    )
    return unreadable(f"the answer is larger than {most // 2**20} MiB", remedy)


def _beginning(head: bytes | bytearray) -> str:
    """Return how an answer begins, for a message."""
    return f"; it begins with {head[:_SHOWN].decode('utf-8', 'replace')!r}"


@contextmanager
def _readable_errors(head: bytes | bytearray) -> Iterator[None]:
    try:
        yield
    except etree.XMLSyntaxError as error:
        raise unreadable(
            f"the answer is incomplete or not XML: {error.msg}{_beginning(head)}"
        ) from None
    except (ValueError, AssertionError) as error:
        raise unreadable(f"the answer cannot be read as XML: {error}{_beginning(head)}") from None


def _is_undeclared_prefix(error: Exception) -> bool:
    return getattr(error, "code", None) == _UNDECLARED_PREFIX


def _web_page(data: bytes) -> UnreadableError:
    title = _HTML_TITLE.search(data[:4096])
    shown = ""
    if title:
        text = title[1].decode("utf-8", "replace").strip()
        shown = f" titled {text[:100]!r}"
    return unreadable(
        f"the server answered with an HTML page{shown}",
        "check the server's address and port: something else answers there, such as a proxy or a login page",
    )


def _start_of_document(clean: bytes) -> tuple[bytes, bytes]:
    """Return (the start of) a document without its XML declaration, and the root's name. Raises for a DTD."""
    if declaration := _DECLARATION.match(clean, 0, _MOST_PROLOG):
        clean = declaration[1] + clean[declaration.end() :]
    clean = clean.lstrip()
    if not clean:
        raise unreadable("the answer is empty")
    root = _ROOT.match(clean, 0, _MOST_PROLOG)
    name = root[1] if root else b""
    may_follow = name.startswith(b"!--") or (not root and clean.startswith((b"<?", b"<!--")))
    if may_follow and len(clean) > _MOST_PROLOG:
        raise unreadable(
            f"more than {_MOST_PROLOG // 2**10} KiB of comments precede the root of the answer"
        )
    if name.startswith(b"!"):
        raise unreadable(
            "the answer has a DTD, which is never read", "answers of the interface need none"
        )
    return clean, name


def _before_stray_ends(clean: bytes, stray: re.Pattern[bytes] = _STRAY_END) -> int:
    """Return the length of a document without stray ends at its end.

    A published sample ends with a stray </xml>. Parsing still checks that the root is complete, and refuses what
    precedes the last ``_MOST_STRAY`` bytes.
    """
    end = len(clean)
    first = end - _MOST_STRAY
    while end > first:
        start = clean.rfind(b"<", max(0, end - 4096), end)
        if start < 0 or not stray.fullmatch(clean, start, end):
            break
        end = start
    return end


def _with_declared_prefixes(clean: bytes) -> bytes:
    root = _ROOT.match(clean, 0, _MOST_PROLOG)
    if root is None:
        return clean
    start_tag = clean[root.start(1) : clean.find(b">", root.end())]
    used: set[bytes] = set()
    for match in _USED_PREFIX.finditer(clean):
        used.add(match[1])
        if len(used) > _MOST_PREFIXES:
            return clean
    used -= {b"xml", b"xmlns"}
    missing = sorted(prefix for prefix in used if b"xmlns:" + prefix + b"=" not in start_tag)
    declared = b"".join(b' xmlns:%b="urn:undeclared:%b"' % (prefix, prefix) for prefix in missing)
    return clean[: root.end()] + declared + clean[root.end() :]
