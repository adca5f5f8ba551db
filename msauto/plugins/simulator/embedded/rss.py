"""RSS channels: a channel is a folder of files, each file an item (interface, «RSS channel»)."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from msauto.plugins.simulator.embedded.dialect import SimDialect
from msauto.plugins.simulator.embedded.state import Item, ServerState, SimChannel
from msauto.plugins.simulator.embedded.wire import (
    RefusalError,
    ResourceNotFoundError,
    element,
    escape_attribute,
    escape_text,
)

_ATOM = "http://www.w3.org/2005/Atom"
_RSS = "http://backend.userland.com/rss2"


def channels_xml(state: ServerState) -> str:
    """GET /rss."""
    rows = "".join(
        f'<channel name="{escape_attribute(channel.name)}">{element("title", channel.title)}</channel>\n'
        for channel in state.channels.values()
    )
    return f"<channels>\n{rows}</channels>"


def find_channel(state: ServerState, name: str) -> SimChannel:
    """Return the channel with this name."""
    if name not in state.channels:
        raise ResourceNotFoundError
    return state.channels[name]


def channel_xml(channel: SimChannel, dialect: SimDialect) -> str:
    """Return the channel's items in order, in the shape of the dialect."""
    if dialect.rss_shape == "atom":
        entries = "".join(_atom_entry(item, dialect) for item in channel.items)
        head = element("id", f"urn:channel:{channel.name}") + element("title", channel.title)
        return f'<feed xmlns="{_ATOM}">{head}\n{entries}</feed>'
    items = "".join(_rss_item(item, dialect) for item in channel.items)
    head = element("title", channel.title) + element("link", f"/rss/{channel.name}") + element("description", "")
    inner = f"<channel>{head}\n{items}</channel>"
    if dialect.rss_shape == "bare":
        return inner
    space = f' xmlns="{_RSS}"' if dialect.rss_shape == "rss_namespaced" else ""
    return f'<rss version="2.0"{space}>{inner}</rss>'


def put_item(channel: SimChannel, file: str, body: bytes, dialect: SimDialect) -> None:
    """PUT /rss/NAME/FNAME: the body is the content of the file FNAME."""
    item = read_item(file, body, dialect)
    places = [place for place, old in enumerate(channel.items) if old.file == file]
    if not places or dialect.rss_update == "duplicate":
        channel.items.append(item)
    elif dialect.rss_update == "replace":
        channel.items[places[0]] = item
    else:
        raise RefusalError(409, f"{file} exists already")


def delete_item(channel: SimChannel, guid: str, dialect: SimDialect) -> None:
    """DELETE /rss/NAME?guid=GUID: every item with this guid, or the first one."""
    gone = [place for place, item in enumerate(channel.items) if shown_guid(item, dialect) == guid]
    if not gone or not guid:
        raise ResourceNotFoundError
    gone = gone[:1] if dialect.rss_delete == "first" else gone
    channel.items = [item for place, item in enumerate(channel.items) if place not in gone]


def shown_guid(item: Item, dialect: SimDialect) -> str:
    """Return the guid that the channel shows for an item; empty: none."""
    if dialect.rss_guid == "file":
        return item.file
    return _stem(item.file) if dialect.rss_guid == "stem" else item.guid


def read_item(file: str, body: bytes, dialect: SimDialect) -> Item:
    """A file's content (text, or an RSS `item` document) → an item."""
    if dialect.rss_body == "item" or (dialect.rss_body == "any" and file.lower().endswith(".xml")):
        root = parse_document(body)
        item = root if root.tag == "item" else root.find(".//item")
        if item is None:
            raise RefusalError(400, "the document does not contain an item")
        fields = {child.tag: child.text or "" for child in item}
        texts = (fields.get(name, "") for name in ("title", "description", "link", "pubDate"))
        return Item(file, body, fields.get("guid") or _stem(file), *texts)
    try:
        sourced = body.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise RefusalError(400, "the text is not UTF-8") from None
    return Item(file, body, _stem(file), sourced.partition("\n")[0], sourced)


def parse_document(body: bytes) -> ET.Element:
    """Parse XML of a client; any DTD is refused."""
    if b"<!DOCTYPE" in body:
        raise RefusalError(400, "a DTD is refused")
    try:
        return ET.fromstring(body)  # noqa: S314 - entities need a DTD, which is refused
    except (ET.ParseError, ValueError, LookupError) as problem:
        raise RefusalError(400, f"not valid XML: {problem}") from None


def _rss_item(item: Item, dialect: SimDialect) -> str:
    shown = shown_guid(item, dialect)
    guid = f'<guid isPermaLink="false">{escape_text(shown)}</guid>' if shown else ""
    more = element("link", item.link) if item.link else ""
    more += element("pubDate", item.pub_date) if item.pub_date else ""
    inner = guid + element("title", item.title) + element("description", item.description) + more
    return f"<item>{inner}</item>\n"


def _atom_entry(item: Item, dialect: SimDialect) -> str:
    shown = shown_guid(item, dialect)
    inner = (element("id", shown) if shown else "") + element("title", item.title)
    inner += element("summary", item.description)
    inner += f'<link href="{escape_attribute(item.link)}"/>' if item.link else ""
    inner += element("updated", item.pub_date) if item.pub_date else ""
    return f"<entry>{inner}</entry>\n"


def _stem(file: str) -> str:
    return file.rpartition(".")[0] or file
