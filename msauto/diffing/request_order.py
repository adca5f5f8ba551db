"""The order of a target's requests, as a table: the phases from first to last, with the reason beside each."""

from __future__ import annotations

from enum import Enum


class Phase(Enum):
    """The kind of a request that decides its place in the order; the value is the reason for that place."""

    BATCH = "the only request of a database; its assets come after it"
    RENAME = "all that follows is addressed to the new title"
    RESTORE = "takes minutes: it starts early and works while the rest is sent"
    FIELD = "plain values of the clip, before what points into it"
    XMP = "plain values too; partner commands at the end read them"
    SEGMENT_DELETE = "a number must be free before a segment with it is created"
    SEGMENT_CREATE = "after every delete, so that two segments never share a number or overlap"
    MARKER_DELETE = "deleting first: an old and a new marker never share a position"
    MARKER_CHANGE = "a moved marker leaves its place before a new one takes it"
    MARKER_CREATE = "last of the markers, so that a new uid identifies a created marker"
    LINK_DELETE = "a title must be free in a folder before a link takes it"
    LINK_CREATE = "the clip is whole before it shows in a playout folder"
    LINK_FIELD = "a link must exist before its fields are set"
    RSS_PUT = "a channel on air is never empty: new items are added before others are deleted"
    RSS_REPLACE = "deleted and put again: off air for a moment, while the new items are present"
    RSS_DELETE = "after the new items are present"
    RUN = "a command works on the clip as desired"
    HANDLER = "after all other requests of the clip, because it acts on the changed clip"
    ASSET_DELETE = "a deleted asset takes no more requests"


_RANK = {phase: rank for rank, phase in enumerate(Phase)}


def rank(phase: Phase) -> int:
    """Return the place of a phase in the order, from 0."""
    return _RANK[phase]
