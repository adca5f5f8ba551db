"""RSS channels. The interface does not show their format, so RSS 2.0, RSS 1.0 (RDF), Atom and bare items are read."""

from __future__ import annotations

from collections.abc import Iterator

from msauto.model.live import RssChannel, RssItem
from msauto.server.xml import Element, attributes, local, parse_document, text_of, unreadable

_ROOTS = frozenset({"rss", "rdf", "feed", "channel", "items", "entries", "item", "entry", "data"})
_ITEMS = frozenset({"item", "entry"})
_OWN = frozenset(
    {"guid", "title", "description", "link", "pubDate", "id", "summary", "content", "updated", "published"}
)


def parse_channel(data: bytes, name: str, charset: str | None = None) -> RssChannel:
    """Read a channel; its items in the order shown. Raises ``UnreadableError`` for anything else."""
    root = parse_document(data, charset)
    inner = root
    while local(inner).lower() not in _ROOTS:
        below = list(inner)
        if len(below) != 1 and any(local(child).lower() in _ITEMS for child in below):
            break
        if local(inner).lower() != "xml" or len(below) > 1:
            raise unreadable(f"the answer is not an RSS channel: its root is <{local(root)}>")
        if not below:
            break
        inner = below[0]
    return RssChannel(name, tuple(_item(element) for element in _items(inner)))


def parse_channels(data: bytes, charset: str | None = None) -> tuple[str, ...]:
    """Read the names of the channels: of elements with a ``name``, of an OPML, or the texts of a plain list."""
    root = parse_document(data, charset)
    named = [found for element in root.iter() if element is not root and (found := _channel_name(element))]
    return tuple(dict.fromkeys(named))


def _channel_name(element: Element) -> str:
    own = attributes(element)
    if "name" in own:
        return own["name"]
    if local(element).lower() in {"channel", "name", "rss"} and not len(element):
        return text_of(element).strip()
    return ""


def _items(element: Element) -> Iterator[Element]:
    if local(element).lower() in _ITEMS:
        yield element
        return
    for child in element:
        yield from _items(child)


def _item(element: Element) -> RssItem:
    texts: dict[str, str] = {}
    for child in element:
        texts.setdefault(local(child), _text(child))
    about = attributes(element).get("about", "")
    return RssItem(
        guid=(texts.get("guid") or texts.get("id") or about).strip(),
        title=texts.get("title"),
        description=_first(texts, "description", "summary", "content"),
        link=texts.get("link"),
        pub_date=_first(texts, "pubDate", "published", "updated", "date"),
        extra={key: value for key, value in texts.items() if key not in _OWN},
    )


def _text(element: Element) -> str:
    own = attributes(element)
    if local(element) == "link" and "href" in own:
        return own["href"]
    return text_of(element).lstrip("\ufeff")  # a byte order mark of the file is not part of the text


def _first(texts: dict[str, str], *names: str) -> str | None:
    return next((texts[name] for name in names if name in texts), None)
