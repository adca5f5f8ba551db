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
    rows = []
    for channel in state.channels.values():
        title = element("title", channel.title)
        rows.append(f'<channel name="{escape_attribute(channel.name)}">{title}</channel>\n')
    return f"<channels>\n{''.join(rows)}</channels>"


def find_channel(state: ServerState, name: str) -> SimChannel:
    """Return the channel with this name."""
    if name not in state.channels:
        raise ResourceNotFoundError
    return state.channels[name]


def channel_xml(channel: SimChannel, dialect: SimDialect) -> str:
    """Return the channel's items in order, in the shape of the dialect."""
    title = element("title", channel.title)
    if dialect.rss_shape == "atom":
        head = element("id", f"urn:channel:{channel.name}") + title
        entries = "".join([_atom_entry(item, dialect) for item in channel.items])
        return f'<feed xmlns="{_ATOM}">{head}\n{entries}</feed>'
    head = title + element("link", f"/rss/{channel.name}") + element("description", "")
    items = "".join([_rss_item(item, dialect) for item in channel.items])
    inner = f"<channel>{head}\n{items}</channel>"
    if dialect.rss_shape == "bare":
        return inner
    space = ""
    if dialect.rss_shape == "rss_namespaced":
        space = f' xmlns="{_RSS}"'
    return f'<rss version="2.0"{space}>{inner}</rss>'


def put_item(channel: SimChannel, file: str, body: bytes, dialect: SimDialect) -> None:
    """PUT /rss/NAME/FNAME: the body is the content of the file FNAME."""
    item = read_item(file, body, dialect)
    files = [old.file for old in channel.items]
    if file not in files or dialect.rss_update == "duplicate":
        channel.items.append(item)
    elif dialect.rss_update == "replace":
        channel.items[files.index(file)] = item
    else:
        raise RefusalError(409, f"{file} exists already")


def delete_item(channel: SimChannel, guid: str, dialect: SimDialect) -> None:
    """DELETE /rss/NAME?guid=GUID: every item with this guid, or the first one."""
    kept = []
    deleted = 0
    for item in channel.items:
        may_delete = deleted == 0 or dialect.rss_delete == "all"
        if may_delete and guid and shown_guid(item, dialect) == guid:
            deleted += 1
        else:
            kept.append(item)
    if not deleted:
        raise ResourceNotFoundError
    channel.items = kept


def shown_guid(item: Item, dialect: SimDialect) -> str:
    """Return the guid that the channel shows for an item; empty: none."""
    if dialect.rss_guid == "file":
        return item.file
    return _stem(item.file) if dialect.rss_guid == "stem" else item.guid


def read_item(file: str, body: bytes, dialect: SimDialect) -> Item:
    """A file's content (text, or an RSS `item` document) → an item."""
    is_document = dialect.rss_body == "item"
    if dialect.rss_body == "any":
        is_document = file.lower().endswith(".xml")
    if is_document:
        return _read_document(file, body)
    try:
        text = body.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise RefusalError(400, "the text is not UTF-8") from None
    return Item(file, body, _stem(file), text.partition("\n")[0], text)


def _read_document(file: str, body: bytes) -> Item:
    root = parse_document(body)
    item = root if root.tag == "item" else root.find(".//item")
    if item is None:
        raise RefusalError(400, "the document does not contain an item")
    fields = {child.tag: child.text or "" for child in item}
    texts = [fields.get(name, "") for name in ("title", "description", "link", "pubDate")]
    return Item(file, body, fields.get("guid") or _stem(file), *texts)


def parse_document(body: bytes) -> ET.Element:
    """Parse XML of a client; any DTD is refused."""
    if b"<!DOCTYPE" in body:
        raise RefusalError(400, "a DTD is refused")
    try:
        return ET.fromstring(body)  # noqa: S314 - entities need a DTD, which is refused
    except (ET.ParseError, ValueError, LookupError) as problem:
        raise RefusalError(400, f"not valid XML: {problem}") from None


def _rss_item(item: Item, dialect: SimDialect) -> str:
    inner = ""
    guid = shown_guid(item, dialect)
    if guid:
        inner = f'<guid isPermaLink="false">{escape_text(guid)}</guid>'
    inner += element("title", item.title) + element("description", item.description)
    if item.link:
        inner += element("link", item.link)
    if item.pub_date:
        inner += element("pubDate", item.pub_date)
    return f"<item>{inner}</item>\n"


def _atom_entry(item: Item, dialect: SimDialect) -> str:
    inner = ""
    guid = shown_guid(item, dialect)
    if guid:
        inner = element("id", guid)
    inner += element("title", item.title) + element("summary", item.description)
    if item.link:
        inner += f'<link href="{escape_attribute(item.link)}"/>'
    if item.pub_date:
        inner += element("updated", item.pub_date)
    return f"<entry>{inner}</entry>\n"


def _stem(file: str) -> str:
    return file.rpartition(".")[0] or file
