"""Entries of listings, from what they report."""

from __future__ import annotations

from collections.abc import Mapping

from msauto.model.live import Entry, Folder


def listed_entry(
    folder: Folder,
    title: str,
    link_id: int | None = None,
    finalized: bool | None = None,
    attributes: Mapping[str, str] | None = None,
) -> Entry:
    texts = {**(attributes or {}), "title": title}
    return Entry(folder, link_id, finalized, tuple(texts), "\0".join(texts.values()).encode())
