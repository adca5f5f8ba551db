"""The asset commands (interface "Asset commands"), as a table of functions of one Call."""

from __future__ import annotations

import time
from collections.abc import Callable

from msauto.simulator.commands.call import CommandCall, integer_value
from msauto.simulator.commands.markers import create_marker, delete_marker
from msauto.simulator.commands.segments import create_segment, create_segmentation, delete_segment
from msauto.simulator.dialect import SimDialect
from msauto.simulator.http.answers import RefusalError, ResourceNotFoundError
from msauto.simulator.http.wire import folder_of_text, unescape
from msauto.simulator.resources.asset_xml import LINK_FIELDS
from msauto.simulator.state.lookup import find_entry
from msauto.simulator.state.state import SimClip, SimDatabase, SimEntry

_NUMERIC = ("layer", "first_frame", "last_frame", "icon_pos")


def restore(call: CommandCall) -> None:
    """Bring the high-resolution file back from the archive; `hires` stays empty until that is done."""
    clip = call.clip
    if clip.hires:
        return
    if not clip.archive:
        raise RefusalError(409, "no archive copy")
    if clip.online_at is None:
        clip.online_at = time.time() + call.restore_seconds


def copy_link(call: CommandCall) -> None:
    """Make another entry of the clip."""
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
        raise RefusalError(409, f"{title} is there already")
    if not taken or dialect.link_twice == "twin":
        call.database.add_entry(call.clip, path, title)


def set_field(call: CommandCall) -> None:
    """Change one link field; clip_name is the entry's title."""
    name, value = call.text("name"), call.text("val")
    if name == "clip_name":
        _rename(call, value)
        return
    if name not in LINK_FIELDS and name not in _NUMERIC:
        raise RefusalError(400, f"unknown field {name}")
    if name in _NUMERIC and value:
        integer_value(name, value)
    call.entry.fields[name] = value


def _rename(call: CommandCall, title: str) -> None:
    if not title:
        raise RefusalError(400, "clip_name is empty")
    other = call.database.find(title)
    taken = other is not None and other.clip is not call.clip
    if taken and call.dialect.title_taken == "refuse":
        raise RefusalError(409, f"{title} is there already")
    call.database.rename(call.entry, title)


def set_user_fields(call: CommandCall) -> None:
    """Change XMP fields: a parameter a field, its value a list."""
    fields = [(name, value) for name, value in call.request.params if name != "command"]
    if not fields:
        raise RefusalError(400, "no field")
    changed: dict[str, list[str]] = {}
    for name, value in fields:
        changed.setdefault(name, []).extend(value.split(call.dialect.list_separator) if value else ())
    call.clip.xmp.update(changed)


def _partner(call: CommandCall) -> None:
    if not call.database.partner:
        raise RefusalError(500, "the partner connector is not configured")
    call.clip.partner = (*call.clip.partner, dict(call.request.params))


def _other_clip(call: CommandCall) -> SimClip:
    """The clip that `ns` and `id` name; by default the one of the path."""
    identifier = call.request.param("id")
    if identifier is None:
        return call.clip
    namespace = call.request.param("ns") or "title"
    entry = find_entry(call.state, call.database, namespace, identifier, call.dialect)
    if entry is None:
        raise ResourceNotFoundError
    return entry.clip


def export_version(call: CommandCall) -> None:
    """Export the version description to the partner system: noted on the clip."""
    _other_clip(call)
    _partner(call)


def copy_program_fields(call: CommandCall) -> None:
    """Copy the XMP fields of the clip's program card (the one that it was last moved to)."""
    clip = _other_clip(call)
    _partner(call)
    moves = [made["asset_id"] for made in clip.partner if "asset_id" in made]
    card = call.state.cards.get(moves[-1]) if moves else None
    if card is not None:
        clip.xmp.update({name: list(values) for name, values in card.xmp.items()})


def move_to_asset(call: CommandCall) -> None:
    """Move the media file to the folder linked with the card; an unknown card gets a folder of its own."""
    asset_id = call.text("asset_id")
    card = call.state.cards.get(asset_id)
    _partner(call)
    call.database.move(call.clip.home, card.folder if card else ("Cards", asset_id))


Command = Callable[[CommandCall], None]


def delete_asset(database: SimDatabase, entry: SimEntry, dialect: SimDialect) -> None:
    """DELETE: the asset with all its entries, unless it was asked for by the title of a link."""
    # Handles stay: who has the clip open still reads it (interface "States and transitions").
    if entry.is_home or dialect.link_delete == "clip":
        database.remove_clip(entry.clip)
    elif dialect.link_delete == "by_title":
        database.remove_entry(entry)
    else:
        raise RefusalError(409, "a link cannot be deleted")


COMMANDS: dict[str, Command] = {
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
