"""The keys of the ``rss`` module (interface, «RSS add data», «RSS delete data»)."""

from __future__ import annotations

from typing import ClassVar, Literal

from msauto.documents import key_rules as rule
from msauto.documents.strict_model import Model, key, need
from msauto.documents.value_types import Flag, Name, Opt, Text, Value

_BOTH = ("the item has both {0} and {1}", "keep one of them")
_NO_CONTENT = ("the item has no content", "add text or item")
_ONE_NAME = "{key} and {other} cannot be used together with state: absent"
_EMPTY = "add items: [] to empty the channel"


class RssBody(Model):
    """An RSS item as a document."""

    title: Opt[Text] = key("title")
    description: Opt[Text] = key("description")
    link: Opt[Text] = key("link")
    pub_date: Opt[Text] = key("publication date: ISO 8601 or RFC 822", alias="pubDate")


class RssItemArgs(Model):
    """One item of a channel."""

    rules: ClassVar = (
        rule.when_value("state", "present", rule.one_of(("text", "item"), _BOTH, _NO_CONTENT), default=True),
        rule.absent_has_none(("text", "item")),
        rule.any_of((("guid",), ("file",)), "the item has no guid", "add guid; or file, by whose name it is found"),
        rule.when_value("state", "absent", rule.excludes("guid", ("file",), _ONE_NAME, "keep one of them")),
    )

    guid: Opt[Name] = key("identifier of the item in the channel; an item without one is found by its file")
    file: Opt[Name] = key("file name of the item; default: the guid, made a safe file name, with .txt or .xml")
    text: Opt[Text] = key("text of the item, for a .txt file")
    item: Opt[RssBody] = key("fields of the item, for an .xml file")
    state: Opt[Literal["present", "absent"]] = key("present (default) or absent: the item is removed")


class RssArgs(Model):
    """The desired state of an RSS channel."""

    rules: ClassVar = (
        rule.when_value("exactly", True, rule.needs("exactly", ("items",), "exactly requires items", _EMPTY)),
    )

    channel: Value[Name] = need("name of the channel")
    items: Opt[list[Value[RssItemArgs]]] = key("items of the channel")
    exactly: Opt[Flag] = key("remove other items")
