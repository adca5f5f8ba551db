"""The keys of the ``rss`` module (interface, «RSS add data», «RSS delete data»)."""

from __future__ import annotations

from typing import ClassVar, Literal

from msauto.playbook.schema.strict_model import Model, Needs, NoneOf, OneOf, WhenValue, key, need
from msauto.playbook.schema.values import Flag, Name, Opt, Text, Value

_BOTH = ("the item has both {0} and {1}", "keep one of them")
_EMPTY = "add items: [] to empty the channel"


class RssBody(Model):
    """An RSS item as a document."""

    title: Opt[Text] = key("its title")
    description: Opt[Text] = key("its description")
    link: Opt[Text] = key("its link")
    pub_date: Opt[Text] = key("its date: ISO 8601 or as RSS writes it", alias="pubDate")


class RssItemArgs(Model):
    """One item of a channel."""

    rules: ClassVar = (
        WhenValue(
            "state",
            "present",
            (OneOf(("text", "item"), _BOTH, ("the item has no content", "add text or item")),),
            default=True,
        ),
        WhenValue(
            "state",
            "absent",
            (NoneOf(("text", "item", "file"), "{} cannot be used with state: absent", "remove one of the two"),),
        ),
    )

    guid: Value[Name] = need("what identifies the item in the channel")
    file: Opt[Name] = key(
        "the file name it is added under; default: the guid (if no file name: made safe) with .txt or .xml"
    )
    text: Opt[Text] = key("its text, for a .txt file")
    item: Opt[RssBody] = key("its fields, for an .xml file")
    state: Opt[Literal["present", "absent"]] = key("present (default) or absent: not there")


class RssArgs(Model):
    """A channel as it should be."""

    rules: ClassVar = (WhenValue("exactly", True, (Needs("exactly", ("items",), "exactly requires items", _EMPTY),)),)

    channel: Value[Name] = need("the channel's name")
    items: Opt[list[Value[RssItemArgs]]] = key("its items")
    exactly: Opt[Flag] = key("nothing but these items: others are removed")
