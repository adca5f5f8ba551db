"""The asset commands (interface, «Commands»), DELETE, and metadata connectors."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from msgspec import Struct

from msauto.plugins.simulator.embedded.dialect import SimDialect
from msauto.plugins.simulator.embedded.rss import parse_document
from msauto.plugins.simulator.embedded.state import (
    LINK_FIELDS,
    ServerState,
    SimClip,
    SimDatabase,
    SimEntry,
    SimMarker,
    SimSegment,
)
from msauto.plugins.simulator.embedded.wire import (
    HttpRequest,
    RefusalError,
    ResourceNotFoundError,
    folder_of_text,
    parse_frames,
)

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
_MARKER_DEFAULTS = {
    "user": "",
    "title": "",
    "comment": "",
    "track": "General",
    "keywords": "",
    "rating": "0",
}
_IN_AND_OUT = ("first_frame", "last_frame")
# int() also accepts `1_000`, ` 7` and Arabic digits.
_WHOLE = re.compile(r"-?[0-9]{1,18}")


class CommandCall(Struct, frozen=True):
    """One command on one entry. `restore_seconds` is the duration of a restore."""

    state: ServerState
    database: SimDatabase
    entry: SimEntry
    request: HttpRequest
    dialect: SimDialect
    restore_seconds: float = 0.0

    @property
    def clip(self) -> SimClip:
        """The clip of the entry."""
        return self.entry.clip

    @property
    def origin(self) -> int:
        """The frame of the file where positions start to count."""
        return self.entry.first_frame if self.dialect.position_origin == "in" else 0

    @property
    def titles(self) -> list[str]:
        """The title of the parameters; none if it is empty."""
        title = self.request.param("title")
        return [title] if title else []

    def integer(self, name: str) -> int:
        """Return a required whole number."""
        return integer_value(name, self.request.required(name))

    def frames(self, name: str) -> int:
        """Return a required position or duration in frames."""
        try:
            return parse_frames(self.request.required(name), self.clip.rate)
        except ValueError as problem:
            raise RefusalError(400, f"{name}: {problem}") from None


def integer_value(name: str, value: str) -> int:
    """Text → int; the refusal names the parameter."""
    if _WHOLE.fullmatch(value) is None:
        raise RefusalError(400, f"{name} is not a number: {value}")
    return int(value)


def restore(call: CommandCall) -> None:
    """Copy the high-resolution file back from the archive; `hires` stays empty until then."""
    clip = call.clip
    if clip.hires:
        return
    if not clip.archive:
        raise RefusalError(409, "the clip has no archive copy")
    if clip.online_at is None:
        clip.online_at = time.time() + call.restore_seconds


def copy_link(call: CommandCall) -> None:
    """Create another entry of the clip."""
    path = folder_of_text(call.request.required("folder"))
    if call.database.folder(path) is None and call.dialect.folder_missing == "refuse":
        raise ResourceNotFoundError
    call.database.add_entry(call.clip, path, call.request.param("title") or call.entry.title)


def set_field(call: CommandCall) -> None:
    """Change one link field; clip_name is the entry's title."""
    name, value = call.request.required("name"), call.request.required("val")
    if name == "clip_name":
        if not value:
            raise RefusalError(400, "clip_name is empty")
        other = call.database.find(value)
        if other is not None and other.clip is not call.clip:
            raise RefusalError(409, f"{value} exists already")
        call.database.change_entry(call.entry, title=value)
        return
    if name not in LINK_FIELDS and name not in _IN_AND_OUT:
        raise RefusalError(400, f"unknown field {name}")
    if LINK_FIELDS.get(name, True) and value:
        integer_value(name, value)
    call.entry.fields[name] = value


def set_user_fields(call: CommandCall) -> None:
    """Change XMP fields: each parameter is a field, its value a list."""
    changed: dict[str, list[str]] = {}
    for name, value in call.request.params:
        if name != "command":
            values = changed.setdefault(name, [])
            if value:
                values += value.split(call.dialect.list_separator)
    if not changed:
        raise RefusalError(400, "the fields are missing")
    kept = call.clip.xmp if call.dialect.xmp_update == "keep" else {}
    call.clip.xmp = kept | changed


def _record_partner_call(call: CommandCall) -> None:
    if not call.database.partner:
        raise RefusalError(500, "the partner connector is not configured")
    call.clip.partner = (*call.clip.partner, dict(call.request.params))


def _other_clip(call: CommandCall) -> SimClip:
    """Return the clip of the parameters `ns` and `id`, by default the one of the path."""
    identifier = call.request.param("id")
    if identifier is None:
        return call.clip
    namespace = call.request.param("ns") or None
    return call.state.find(call.database, namespace, identifier, call.dialect)[0].clip


def export_version(call: CommandCall) -> None:
    """Export the version description to the partner system: the clip records the call."""
    _other_clip(call)
    _record_partner_call(call)


def copy_program_fields(call: CommandCall) -> None:
    """Copy the XMP fields of the clip's program card (the target of its last move)."""
    clip = _other_clip(call)
    _record_partner_call(call)
    asset_id = ""
    for partner_call in clip.partner:
        asset_id = partner_call.get("asset_id", asset_id)
    card = call.state.cards.get(asset_id)
    if card is not None:
        clip.xmp.update({name: list(values) for name, values in card.xmp.items()})


def move_to_asset(call: CommandCall) -> None:
    """Move the media file to the folder of the program card; an unknown card has a folder of its own."""
    asset_id = call.request.required("asset_id")
    card = call.state.cards.get(asset_id)
    _record_partner_call(call)
    folder = card.folder if card else ("Cards", asset_id)
    call.database.change_entry(call.clip.home, folder=folder)


def create_segment(call: CommandCall) -> None:
    """CREATESEGMENT: add a segment; `segment_update` of the dialect decides for a number that exists."""
    segment = SimSegment(
        call.integer("seg_num"),
        call.frames("start_frame") + call.origin,
        call.frames("duration"),
        call.titles,
        keywords=call.request.param("keywords") or "",
    )
    _check_segment(call, segment)
    clip, existing = call.clip, call.clip.segment(segment.number)
    if existing is None or call.dialect.segment_update == "duplicate":
        clip.segments.append(segment)
    elif call.dialect.segment_update == "overwrite":
        clip.segments[clip.segments.index(existing)] = segment
    elif call.dialect.segment_update == "refuse":
        raise RefusalError(409, f"segment {segment.number} exists")
    _renumber(call)


def _renumber(call: CommandCall) -> None:
    if call.dialect.segment_numbers == "by_start":
        call.clip.segments.sort(key=lambda segment: segment.start)
        for number, segment in enumerate(call.clip.segments, 1):
            segment.number = number


def _check_segment(call: CommandCall, segment: SimSegment) -> None:
    end = segment.start + segment.duration
    if segment.duration <= 0:
        raise RefusalError(400, "duration is 0")
    if end > call.clip.length:
        raise RefusalError(400, f"the segment ends at {end}, beyond the clip")
    if call.dialect.segment_overlap == "allow":
        return
    for other in call.clip.segments:
        overlaps = other.start < end and segment.start < other.start + other.duration
        if overlaps and other.number != segment.number:
            raise RefusalError(409, "the segment overlaps another segment")


def create_segmentation(call: CommandCall) -> None:
    """CREATESEGMENTATION: divide the whole asset into segments of one duration; the last one can be shorter."""
    duration, length = call.frames("duration"), call.clip.length
    if duration <= 0:
        raise RefusalError(400, "duration is 0")
    segments = []
    for number, start in enumerate(range(0, length, duration), 1):
        segments.append(SimSegment(number, start, min(duration, length - start), call.titles))
    call.clip.segments = segments


def delete_segment(call: CommandCall) -> None:
    """DELETESEGMENT: delete every segment with this number, the first or the last."""
    number = call.integer("seg_num")
    segments = call.clip.segments
    places = [place for place, segment in enumerate(segments) if segment.number == number]
    if not places:
        raise RefusalError(404, f"segment {number} not found")
    gone = {"all": places, "first": places[:1], "last": places[-1:]}[call.dialect.segment_delete]
    for place in reversed(gone):
        del segments[place]
    _renumber(call)


def create_marker(call: CommandCall) -> None:
    """CREATEMARKER: add a marker, or change the one with this uid; -1 gives a new uid."""
    uid = call.integer("uid")
    sent = dict(call.request.params)
    for name in ("command", "uid", "frame"):
        sent.pop(name, None)
    if sent.get("track", "General") not in TRACKS:
        raise RefusalError(400, f"unknown track {sent['track']}")
    marker = call.clip.marker(uid)
    if marker is None:
        position = _marker_position(call)
        if uid == -1:
            uid = call.clip.new_uid(call.dialect.marker_uid)
        call.clip.markers.append(SimMarker(uid, position, _MARKER_DEFAULTS | sent))
        return
    if call.request.param("frame") is not None:
        marker.pos = _marker_position(call)
    kept = marker.fields if call.dialect.marker_update == "keep" else _MARKER_DEFAULTS
    marker.fields = kept | sent


def _marker_position(call: CommandCall) -> int:
    position = call.integer("frame") + call.origin
    if not 0 <= position < call.clip.length:
        raise RefusalError(400, f"frame {position} is outside the clip")
    return position


def delete_marker(call: CommandCall) -> None:
    """DELETEMARKER: delete the marker with this uid."""
    uid = call.integer("uid")
    if call.clip.marker(uid) is None:
        raise RefusalError(404, f"marker {uid} not found")
    call.clip.markers = [marker for marker in call.clip.markers if marker.uid != uid]


COMMANDS: dict[str, Callable[[CommandCall], None]] = {
    "RESTORE": restore,
    "COPYLINK": copy_link,
    "SETFIELD": set_field,
    "SETUSERFIELDS": set_user_fields,
    "CREATESEGMENT": create_segment,
    "CREATESEGMENTATION": create_segmentation,
    "DELETESEGMENT": delete_segment,
    "CREATEMARKER": create_marker,
    "DELETEMARKER": delete_marker,
    "PARTNER_EXPORT_VERSION": export_version,
    "PARTNER_COPY_PROGRAM_FIELDS": copy_program_fields,
    "PARTNER_MOVE_TO_ASSET": move_to_asset,
}


def delete_asset(database: SimDatabase, entry: SimEntry, dialect: SimDialect) -> None:
    """DELETE: remove the asset with all its entries; `link_delete` of the dialect decides for a link."""
    if entry.is_home or dialect.link_delete == "clip":
        database.remove_clip(entry.clip)
    elif dialect.link_delete == "by_title":
        database.remove_link(entry)
    else:
        raise RefusalError(409, "a link cannot be deleted")


def load_batch(database: SimDatabase, connector: str, body: bytes) -> None:
    """PUT of a metadata connector: store the batch and apply it; unknown clips are ignored.

    The body is not specified (interface, «Load XMP metadata in batch»). This server takes
    `<batch><clip title="..."><field name="dc:title">...</field></clip></batch>`; a repeated field is a list.
    """
    if connector not in database.connectors:
        raise RefusalError(500, f"the connector {connector} is not configured")
    batch = parse_document(body)
    database.connectors[connector].append(body)
    for clip in batch.iter("clip"):
        fields: dict[str, list[str]] = {}
        for field in clip.iter("field"):
            fields.setdefault(field.get("name", ""), []).append(field.text or "")
        entry = database.find(clip.get("title", ""))
        if entry is not None:
            entry.clip.xmp.update(fields)
