"""The order of a target's requests, as a table: ``ORDER`` from first to last, with the reason beside each row."""

from __future__ import annotations

from enum import Enum, auto


class Phase(Enum):
    """The kind of a request that decides its place in the order."""

    BATCH = auto()
    RENAME = auto()
    RESTORE = auto()
    FIELD = auto()
    XMP = auto()
    SEGMENT_DELETE = auto()
    SEGMENT_CREATE = auto()
    MARKER_DELETE = auto()
    MARKER_CHANGE = auto()
    MARKER_CREATE = auto()
    LINK_DELETE = auto()
    LINK_CREATE = auto()
    LINK_FIELD = auto()
    RSS_PUT = auto()
    RSS_REPLACE = auto()
    RSS_DELETE = auto()
    RUN = auto()
    HANDLER = auto()
    ASSET_DELETE = auto()


ORDER: tuple[tuple[Phase, str], ...] = (
    (Phase.BATCH, "the only request of a database; its assets come after it"),
    (Phase.RENAME, "all that follows is addressed to the new title"),
    (Phase.RESTORE, "takes minutes: it starts early and works while the rest is sent"),
    (Phase.FIELD, "plain values of the clip, before what points into it"),
    (Phase.XMP, "plain values too; partner commands at the end read them"),
    (Phase.SEGMENT_DELETE, "a number must be free before a segment with it is created"),
    (Phase.SEGMENT_CREATE, "after every delete, so that two segments never share a number or overlap"),
    (Phase.MARKER_DELETE, "deleting first: an old and a new marker never share a position"),
    (Phase.MARKER_CHANGE, "a moved marker leaves its place before a new one takes it"),
    (Phase.MARKER_CREATE, "last of the markers, so that a new uid identifies a created marker"),
    (Phase.LINK_DELETE, "a title must be free in a folder before a link takes it"),
    (Phase.LINK_CREATE, "the clip is whole before it shows in a playout folder"),
    (Phase.LINK_FIELD, "a link must exist before its fields are set"),
    (Phase.RSS_PUT, "a channel on air is never empty: new items are added before others are deleted"),
    (Phase.RSS_REPLACE, "deleted and put again: off air for a moment, while the new items are present"),
    (Phase.RSS_DELETE, "after the new items are present"),
    (Phase.RUN, "a command works on the clip as desired"),
    (Phase.HANDLER, "after all other requests of the clip, because it acts on the changed clip"),
    (Phase.ASSET_DELETE, "a deleted asset takes no more requests"),
)

_RANK = {phase: rank for rank, (phase, _) in enumerate(ORDER)}


def rank(phase: Phase) -> int:
    """Return the place of a phase in the order, from 0."""
    return _RANK[phase]
