"""The asset commands (interface "Asset commands") as a table of functions, DELETE, and metadata connectors."""

from __future__ import annotations

import time
from collections.abc import Callable

from msauto.simulator.commands.call import CommandCall, integer_value
from msauto.simulator.commands.timeline import (
    create_marker,
    create_segment,
    create_segmentation,
    delete_marker,
    delete_segment,
)
from msauto.simulator.dialect import SimDialect
from msauto.simulator.http.answers import RefusalError, ResourceNotFoundError
from msauto.simulator.http.wire import folder_of_text, unescape
from msauto.simulator.resources.rss import parse_document
from msauto.simulator.state.state import LINK_FIELDS, SimClip, SimDatabase, SimEntry

_IN_AND_OUT = ("first_frame", "last_frame")


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
    dialect = call.dialect
    title = call.request.param("title") or call.entry.title
    if dialect.link_title == "escaped":
        title = unescape(title)
    path = folder_of_text(call.text("folder"))
    folder = call.database.folder(path)
    if folder is None and dialect.folder_missing == "refuse":
        raise ResourceNotFoundError
    taken = folder is not None and any(entry.title == title for entry in folder.entries.values())
    if taken and dialect.link_twice == "refuse":
        raise RefusalError(409, f"{title} exists already")
    if not taken or dialect.link_twice == "twin":
        call.database.add_entry(call.clip, path, title)


def set_field(call: CommandCall) -> None:
    """Change one link field; clip_name is the entry's title."""
    name, value = call.text("name"), call.text("val")
    if name == "clip_name":
        _rename(call, value)
        return
    if name not in LINK_FIELDS and name not in _IN_AND_OUT:
        raise RefusalError(400, f"unknown field {name}")
    if LINK_FIELDS.get(name, True) and value:
        integer_value(name, value)
    call.entry.fields[name] = value


def _rename(call: CommandCall, title: str) -> None:
    if not title:
        raise RefusalError(400, "clip_name is empty")
    other = call.database.find(title)
    taken = other is not None and other.clip is not call.clip
    if taken and call.dialect.title_taken == "refuse":
        raise RefusalError(409, f"{title} exists already")
    call.database.change_entry(call.entry, title=title)


def set_user_fields(call: CommandCall) -> None:
    """Change XMP fields: each parameter is a field, its value a list."""
    fields = [(name, value) for name, value in call.request.params if name != "command"]
    if not fields:
        raise RefusalError(400, "the fields are missing")
    changed: dict[str, list[str]] = {}
    for name, value in fields:
        changed.setdefault(name, []).extend(value.split(call.dialect.list_separator) if value else ())
    call.clip.xmp.update(changed)


def _record_partner_call(call: CommandCall) -> None:
    if not call.database.partner:
        raise RefusalError(500, "the partner connector is not configured")
    call.clip.partner = (*call.clip.partner, dict(call.request.params))


def _other_clip(call: CommandCall) -> SimClip:
    """Return the clip of the parameters `ns` and `id`, by default the one of the path."""
    identifier = call.request.param("id")
    if identifier is None:
        return call.clip
    any_case = call.dialect.title_case == "folded"
    entry = call.state.find(call.database, call.request.param("ns") or None, identifier, any_case)
    if entry is None:
        raise ResourceNotFoundError
    return entry.clip


def export_version(call: CommandCall) -> None:
    """Export the version description to the partner system: the clip records the call."""
    _other_clip(call)
    _record_partner_call(call)


def copy_program_fields(call: CommandCall) -> None:
    """Copy the XMP fields of the clip's program card (the target of its last move)."""
    clip = _other_clip(call)
    _record_partner_call(call)
    moves = [made["asset_id"] for made in clip.partner if "asset_id" in made]
    card = call.state.cards.get(moves[-1]) if moves else None
    if card is not None:
        clip.xmp.update({name: list(values) for name, values in card.xmp.items()})


def move_to_asset(call: CommandCall) -> None:
    """Move the media file to the folder of the program card; an unknown card has a folder of its own."""
    asset_id = call.text("asset_id")
    card = call.state.cards.get(asset_id)
    _record_partner_call(call)
    call.database.change_entry(call.clip.home, folder=card.folder if card else ("Cards", asset_id))


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

    The interface does not show the body (interface "Load XMP metadata in batch"). This server takes
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
