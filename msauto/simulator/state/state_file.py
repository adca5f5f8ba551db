"""The house as JSON, and the file it is kept in."""

from __future__ import annotations

import base64
import json
import os
import time
from dataclasses import asdict, fields
from fractions import Fraction
from pathlib import Path
from typing import Any

from msauto.simulator.state.state import (
    Folder,
    Item,
    ProgramCard,
    ServerState,
    SimChannel,
    SimClip,
    SimDatabase,
    SimEntry,
    SimMarker,
    SimSegment,
)

FORMAT = "msauto-simulator-house"
_PLAIN = tuple(
    entry.name
    for entry in fields(SimClip)
    if entry.name not in ("rate", "markers", "segments", "entries", "params", "partner", "untold")
)


def state_to_json(state: ServerState) -> dict[str, Any]:
    """All of the state as plain JSON values."""
    return {
        "format": FORMAT,
        "version": 1,
        "databases": [_database_out(database, state) for database in state.databases.values()],
        "channels": [_channel_out(channel) for channel in state.channels.values()],
        "cards": {name: {"folder": card.folder, "xmp": card.xmp} for name, card in state.cards.items()},
    }


def state_from_json(data: dict[str, Any]) -> ServerState:
    """The reverse; ValueError when it is not a state file of ours."""
    if data.get("format") != FORMAT or data.get("version") != 1:
        raise ValueError("not a state file of this simulator")
    state = ServerState()
    for entry in data["databases"]:
        _database_in(state, entry)
    for entry in data["channels"]:
        state.add_channel(entry["name"], entry["title"]).items = [_item_in(item) for item in entry["items"]]
    state.cards = {name: ProgramCard(tuple(card["folder"]), card["xmp"]) for name, card in data["cards"].items()}
    return state


def load_state(path: Path) -> ServerState:
    """Read a state file; ValueError names the file when it cannot be read as one."""
    try:
        return state_from_json(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise ValueError(f"{path}: {problem}") from problem


def save_state(state: ServerState, path: Path) -> None:
    """Write the state file so that a crash leaves either the old one or the new one."""
    temporary = path.with_name(path.name + ".new")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(state_to_json(state), file, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _database_out(database: SimDatabase, state: ServerState) -> dict[str, Any]:
    handles = {number: clip for number, clip in state.handles.items() if _is_shown(clip, database)}
    return {
        "name": database.name,
        "next_link_id": database.next_link_id,
        "profiles": database.profiles,
        "partner": database.partner,
        "connectors": {name: [_text(body) for body in bodies] for name, bodies in database.connectors.items()},
        "handles": {number: clip.home.link_id for number, clip in handles.items()},
        "folders": list(_folders(database.root, ())),
        "clips": [_clip_out(clip) for clip in database.clips()],
    }


def _is_shown(clip: SimClip, database: SimDatabase) -> bool:
    folder = database.folder(clip.home.folder)
    return folder is not None and folder.entries.get(clip.home.link_id) is clip.home


def _folders(folder: Folder, path: tuple[str, ...]) -> list[tuple[str, ...]]:
    below = [place for child in folder.folders.values() for place in _folders(child, (*path, child.name))]
    return ([path] if path else []) + below


def _clip_out(clip: SimClip) -> dict[str, Any]:
    return {
        **{name: getattr(clip, name) for name in _PLAIN},
        "rate": str(clip.rate),
        "params": clip.params,
        "partner": clip.partner,
        **({"untold": clip.untold} if clip.untold else {}),
        "markers": [asdict(marker) for marker in clip.markers],
        "segments": [asdict(segment) for segment in clip.segments],
        "entries": [_entry_out(entry) for entry in clip.entries],
    }


def _entry_out(entry: SimEntry) -> dict[str, Any]:
    place = {"link_id": entry.link_id, "folder": entry.folder, "title": entry.title}
    return {**place, "fields": entry.fields} if entry.fields else place


def _channel_out(channel: SimChannel) -> dict[str, Any]:
    items = [{**asdict(item), "body": _text(item.body)} for item in channel.items]
    return {"name": channel.name, "title": channel.title, "items": items}


def _database_in(state: ServerState, data: dict[str, Any]) -> None:
    database = state.add_database(data["name"])
    database.partner = data["partner"]
    database.profiles = {name: (size[0], size[1]) for name, size in data["profiles"].items()}
    database.connectors = {name: list(map(_bytes, bodies)) for name, bodies in data["connectors"].items()}
    for path in data["folders"]:
        database.make_folder(tuple(path))
    homes = {}
    for entry in data["clips"]:
        clip = _clip_in(database, entry)
        homes[clip.home.link_id] = clip
    state.handles |= {number: homes[link_id] for number, link_id in data["handles"].items()}
    database.next_link_id = data["next_link_id"]


def _clip_in(database: SimDatabase, data: dict[str, Any]) -> SimClip:
    clip = SimClip(**{name: data[name] for name in _PLAIN})
    clip.rate = Fraction(data["rate"])
    clip.params, clip.partner = tuple(data["params"]), tuple(data["partner"])
    clip.untold = tuple(data.get("untold", ()))
    clip.markers = [SimMarker(**marker) for marker in data["markers"]]
    clip.segments = [SimSegment(**segment) for segment in data["segments"]]
    for entry in data["entries"]:
        added = database.add_entry(clip, tuple(entry["folder"]), entry["title"], entry["link_id"])
        added.fields = entry.get("fields", {})
    return clip


def _item_in(data: dict[str, Any]) -> Item:
    return Item(**{**data, "body": _bytes(data["body"])})


def _text(body: bytes) -> str:
    return base64.b64encode(body).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)


class StateFile:
    """A state file that is written when the house has been quiet for a moment, and at the end."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.pause = 0.5

    def save(self, state: ServerState) -> None:
        """Write it now; the pause grows with what writing costs, so that a big house is not always saving."""
        started = time.perf_counter()
        save_state(state, self.path)
        self.pause = max(0.5, 10 * (time.perf_counter() - started))
