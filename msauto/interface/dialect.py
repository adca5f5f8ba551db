"""How a server answers where the interface is silent: the registry of dialect switches.

The inventory schema and ``docs/reference/dialect.md`` follow from it. A new switch has its name, choices, default and
description here, and acts in one other module. Its place in ``msauto probe`` is :mod:`msauto.probe.probe`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal


def _switch(default: str, description: str) -> Any:
    return field(default=default, metadata={"description": description})


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a server answers where the interface is silent (field notes, «Rules for the unknown»).

    The first value of each ``Literal`` is the default. The descriptions are Markdown.
    """

    not_found: Literal["auto", "status", "text"] = _switch(
        "auto",
        "How an answer reports that an object does not exist. `auto`: by status 404, or by an error text that begins "
        "with `Object not found`. `status`: only by 404. `text`: only by that text; a 404 is then an error like "
        "any other",
    )
    xmp_read: Literal["auto", "never"] = _switch(
        "auto",
        "Whether XMP fields are read. `auto`: by one request for all, or one for each field if the server needs "
        "that; an answer that cannot be read counts as not reported. `never`: compare with what was last written",
    )
    list_separator: str = _switch(
        ",",
        "What separates the values of an XMP field on the wire. A value that contains it is refused",
    )
    segment_update: Literal["recreate", "overwrite"] = _switch(
        "recreate",
        "How an existing segment is changed. `recreate`: deleted, then created (two requests). `overwrite`: "
        "created over it (one request). Both may lose what CREATESEGMENT cannot write, so both need "
        "[`lossy`](playbook.md#segments)",
    )
    marker_update: Literal["full", "changed"] = _switch(
        "full",
        "What is sent for an existing marker. `full`: all its known fields, in case the server clears what is not "
        "sent. `changed`: only what differs",
    )
    folder_missing: Literal["refuse", "create"] = _switch(
        "refuse",
        "How a link into a folder that does not exist is treated. `refuse`: an error when planning. `create`: "
        "sent, because the server creates the folder",
    )
    link_delete: Literal["refuse", "by_title"] = _switch(
        "refuse",
        "How a link is removed. `refuse`: never, an error when planning. `by_title`: by DELETE with the link's "
        "title, only if that is not the asset's own title; it counts as a deletion",
    )
    rss_update: Literal["put", "delete_put"] = _switch(
        "put",
        "How an existing RSS item is replaced. `delete_put`: deleted, then added",
    )
    rss_guid: Literal["auto", "item", "file", "stem"] = _switch(
        "auto",
        "What the channel shows as guid. The guid of the playbook (`item`), the file name (`file`), or the file "
        "name without its ending (`stem`). `auto`: the guid of the playbook, or what msauto learns from its own PUT "
        "and keeps in the ledger",
    )
    rss_body: Literal["auto", "text", "item"] = _switch(
        "auto",
        "How an RSS item is sent. `auto`: as a text for a `.txt` name, as an RSS `item` document for an `.xml` "
        "name. `text`, `item`: always so. An item that is sent as a text is compared as a text; a link or date, "
        "which no text carries, is refused when planning unless the channel shows it already",
    )
    position_origin: Literal["file", "in"] = _switch(
        "file",
        "Where positions count from. The first frame of the file, or the IN point (`first_frame`). Playbooks "
        "always count from the first frame of the file",
    )
    title_address: Literal["plain", "ns"] = _switch(
        "plain",
        "How a title with a colon is addressed. `plain`: percent-encoded. `ns`: with `title:` in front, which "
        "needs version 2.9.69. A title without a colon never needs it",
    )

    # Questions that several packages ask. Every other key is used in one module (tests/lint/dialect_keys.py).

    @property
    def removes_links(self) -> bool:
        """Whether a link can be removed: by a DELETE of its title (field notes, «removing a link»)."""
        return self.link_delete == "by_title"

    @property
    def counts_from_in(self) -> bool:
        """Whether positions count from the IN point (field notes, «where positions count from»)."""
        return self.position_origin == "in"

    @property
    def ending_decides(self) -> bool:
        """Return whether the ending of a file's name decides if an RSS item is a text or an ``item`` document."""
        return self.rss_body == "auto"

    def sends_document(self, file: str) -> bool:
        """Return whether an RSS item is sent as an ``item`` document or a text (field notes, «body of an RSS PUT»)."""
        return self.rss_body == "item" or (self.ending_decides and file.lower().endswith(".xml"))
