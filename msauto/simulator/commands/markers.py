"""CREATEMARKER and DELETEMARKER (interface "Asset commands")."""

from __future__ import annotations

from msauto.simulator.commands.call import CommandCall
from msauto.simulator.http.answers import RefusalError
from msauto.simulator.state.state import SimMarker

TRACKS = (
    "General",
    "Secondary Event",
    "Cue Point",
    "Goto Cue",
    "Game Time",
    "Icon",
    "Picture",
    "Profanity Start",
    "Profanity End",
)
_DEFAULTS = {"user": "", "title": "", "comment": "", "track": "General", "keywords": "", "rating": "0"}
_NOT_FIELDS = ("command", "uid", "frame")


def create_marker(call: CommandCall) -> None:
    """Add a marker, or change the one with this uid; -1 makes a new identifier."""
    uid = call.integer("uid")
    sent = {name: value for name, value in call.request.params if name not in _NOT_FIELDS}
    if sent.get("track", "General") not in TRACKS:
        raise RefusalError(400, f"unknown track {sent['track']}")
    marker = call.clip.marker(uid)
    if marker is not None:
        _change(call, marker, sent)
    elif uid == -1:
        _add(call, call.clip.new_uid(), sent)
    elif call.dialect.unknown_uid == "create":
        _add(call, uid, sent)
    elif call.dialect.unknown_uid == "refuse":
        raise RefusalError(404, f"no marker {uid}")


def delete_marker(call: CommandCall) -> None:
    """Delete the marker with this uid."""
    uid = call.integer("uid")
    kept = [marker for marker in call.clip.markers if marker.uid != uid]
    if len(kept) == len(call.clip.markers) and call.dialect.absent_item == "refuse":
        raise RefusalError(404, f"no marker {uid}")
    call.clip.markers = kept


def _add(call: CommandCall, uid: int, sent: dict[str, str]) -> None:
    call.clip.markers.append(SimMarker(uid, _position(call), _DEFAULTS | sent))


def _change(call: CommandCall, marker: SimMarker, sent: dict[str, str]) -> None:
    if call.request.param("frame") is not None:
        marker.pos = _position(call)
    kept = marker.fields if call.dialect.marker_update == "keep" else _DEFAULTS
    marker.fields = kept | sent


def _position(call: CommandCall) -> int:
    position = call.integer("frame") + call.origin
    beyond = position >= call.clip.length and call.dialect.beyond_end == "refuse"
    if position < 0 or beyond:
        raise RefusalError(400, f"frame {position} is outside the clip")
    return position
