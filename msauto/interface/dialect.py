"""How a server answers where the interface is silent: the registry of dialect switches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a server answers where the interface is silent; each key is a rule of the field notes.

    The first value of each ``Literal`` is the default, and the choices are what the inventory may say.
    """

    not_found: Literal["auto", "status", "text"] = "auto"
    xmp_read: Literal["auto", "never"] = "auto"
    list_separator: str = ","
    segment_update: Literal["recreate", "overwrite"] = "recreate"
    marker_update: Literal["full", "changed"] = "full"
    folder_missing: Literal["refuse", "create"] = "refuse"
    link_delete: Literal["refuse", "by_title"] = "refuse"
    link_title: Literal["plain", "escaped"] = "plain"
    rss_update: Literal["put", "delete_put"] = "put"
    rss_guid: Literal["auto", "item", "file", "stem"] = "auto"
    rss_body: Literal["auto", "text", "item"] = "auto"
    position_origin: Literal["file", "in"] = "file"
    title_address: Literal["plain", "ns"] = "plain"
    listing_depth: Literal["auto", "deep", "shallow"] = "auto"

    # What more than one module needs is decided here; every other key is read in one module (tests/lint/dialect_keys.py).

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
        """Tell whether the ending of a file's name decides if an RSS item is a text or an ``item`` document."""
        return self.rss_body == "auto"

    def sends_document(self, file: str) -> bool:
        """Tell whether an RSS item goes as an ``item`` document, not as a text (field notes, «body of an RSS PUT»)."""
        return self.rss_body == "item" or (self.ending_decides and file.lower().endswith(".xml"))
