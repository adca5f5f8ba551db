"""Finding an asset by title or by `NS:ID` (interface "Asset (clip)")."""

from __future__ import annotations

from msauto.simulator.dialect import SimDialect
from msauto.simulator.state.state import ServerState, SimClip, SimDatabase, SimEntry

_KEY_ATTRIBUTES = ("orig_name", "orig_type", "derived_from", "create_time", "rec_time", "hires", "proxy", "archive")


def find_entry(
    state: ServerState, database: SimDatabase, namespace: str | None, identifier: str, dialect: SimDialect
) -> SimEntry | None:
    """The entry of a title, or of a value that is unique in a key field."""
    if namespace is None or namespace == "title":
        return database.find(identifier, any_case=dialect.title_case == "folded")
    if namespace == "handle":
        clip = state.handles.get(identifier)
        return clip.home if clip else None
    if namespace == "link_id":
        return next((entry for entry in database.root.walk() if str(entry.link_id) == identifier), None)
    return next((clip.home for clip in database.clips() if _has(clip, namespace, identifier)), None)


def _has(clip: SimClip, key: str, value: str) -> bool:
    if key in _KEY_ATTRIBUTES:
        return bool(getattr(clip, key) == value)
    return value in clip.xmp.get(key, ()) or clip.home.fields.get(key) == value
