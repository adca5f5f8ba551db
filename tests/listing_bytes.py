"""A listing whose bytes are all there."""

from __future__ import annotations

from msauto.model.live import Folder, Listing
from msauto.server.listing import ListingReading


def parse_listing(data: bytes, database: str, asked: Folder, charset: str | None = None) -> Listing:
    reading = ListingReading(database, asked, charset)
    reading.feed(data)
    return reading.close()
