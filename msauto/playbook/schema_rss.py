"""The keys of the ``rss`` module (interface, «RSS add data», «RSS delete data»)."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from msauto.playbook.schema_values import Flag, Model, Name, Opt, Pending, Text, Value, key, need, said


class RssBody(Model):
    """An RSS item as a document."""

    title: Opt[Text] = key("its title")
    description: Opt[Text] = key("its description")
    link: Opt[Text] = key("its link")
    pub_date: Opt[Text] = key("its date: ISO 8601 or as RSS writes it", alias="pubDate")


class RssItemArgs(Model):
    """One item of a channel."""

    guid: Value[Name] = need("what identifies the item in the channel")
    file: Opt[Name] = key(
        "the file name it is added under; default: the guid (if no file name: made safe) with .txt or .xml"
    )
    text: Opt[Text] = key("its text, for a .txt file")
    item: Opt[RssBody] = key("its fields, for an .xml file")
    state: Opt[Literal["present", "absent"]] = key("present (default) or absent: not there")

    @model_validator(mode="after")
    def _one_body(self) -> RssItemArgs:
        if isinstance(self.state, Pending):
            return self
        bodies = [name for name in ("text", "item") if getattr(self, name) is not None]
        if self.state == "absent" and (bodies or self.file is not None):
            extra = bodies[0] if bodies else "file"
            raise said(f"an absent item has no {extra}", key=extra)
        if self.state != "absent" and not bodies:
            raise said("the item says nothing", "add text or item")
        if len(bodies) > 1:
            raise said("the item says both text and item", "say one of them", key="item")
        return self


class RssArgs(Model):
    """A channel as it should be."""

    channel: Value[Name] = need("the channel's name")
    items: Opt[list[Value[RssItemArgs]]] = key("its items")
    exactly: Opt[Flag] = key("nothing but these items: others are removed")

    @model_validator(mode="after")
    def _exactly_what(self) -> RssArgs:
        if self.exactly is True and self.items is None:
            raise said("exactly needs the list of items", "add items: [] to empty the channel", key="exactly")
        return self
