"""Metadata connectors: PUT /storage/NAME?connector=... (interface "Load XMP metadata in batch"; body: not shown).

A configured connector stores what it is sent, and applies this simple shape:
`<batch><clip title="..."><field name="dc:title">...</field></clip></batch>`; a field given again is a list.
"""

from __future__ import annotations

from xml.etree import ElementTree as ET

from msauto.simulator.http.answers import RefusalError
from msauto.simulator.resources.rss import parse_document
from msauto.simulator.state.state import SimDatabase


def load_batch(database: SimDatabase, connector: str, body: bytes) -> None:
    """Store a batch with its connector and apply it; clips that are not there are passed over."""
    if connector not in database.connectors:
        raise RefusalError(500, f"the connector {connector} is not configured")
    batch = parse_document(body)
    database.connectors[connector].append(body)
    for clip in batch.iter("clip"):
        entry = database.find(clip.get("title", ""))
        if entry is not None:
            entry.clip.xmp.update(_fields(clip))


def _fields(clip: ET.Element) -> dict[str, list[str]]:
    fields: dict[str, list[str]] = {}
    for field in clip.iter("field"):
        fields.setdefault(field.get("name", ""), []).append(field.text or "")
    return fields
