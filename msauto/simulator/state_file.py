"""The state as JSON, and the state file."""

from __future__ import annotations

import base64
import json
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

from msgspec import ValidationError, convert

from msauto.simulator.state import Folder, ProgramCard, ServerState, SimChannel, SimClip, SimDatabase

FORMAT = "msauto-simulator-house"  # the name in the state files of earlier versions
_DERIVED = ("clip", "root", "by_title")  # fields that follow from the entries of the clips


def state_to_json(state: ServerState) -> dict[str, Any]:
    """Return the state as plain JSON values."""
    return {
        "format": FORMAT,
        "version": 1,
        "databases": [_database_to_json(database, state) for database in state.databases.values()],
        "channels": _to_json(list(state.channels.values())),
        "cards": _to_json(state.cards),
    }


def _database_to_json(database: SimDatabase, state: ServerState) -> dict[str, Any]:
    clips = list(database.clips())
    places = {id(clip): clip.home.link_id for clip in clips}
    handles = {number: places[id(clip)] for number, clip in state.handles.items() if id(clip) in places}
    folders = list(_folders(database.root, ()))
    return {**_to_json(database), "handles": handles, "folders": folders, "clips": _to_json(clips)}


def _folders(folder: Folder, path: tuple[str, ...]) -> list[tuple[str, ...]]:
    below = [place for child in folder.folders.values() for place in _folders(child, (*path, child.name))]
    return ([path] if path else []) + below


def _to_json(value: Any) -> Any:
    """Return a part of the state as plain JSON values; a dataclass becomes an object of its slots."""
    if isinstance(value, str | int | float | None):
        return value
    if isinstance(value, dict):
        return {key: _to_json(content) for key, content in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(content) for content in value]
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return {name: _to_json(getattr(value, name)) for name in value.__slots__ if name not in _DERIVED}


def state_from_json(data: dict[str, Any]) -> ServerState:
    """Return the state of `state_to_json`; ValueError for JSON that is not a state."""
    if data.get("format") != FORMAT or data.get("version") != 1:
        raise ValueError("not a state file of the simulator")
    state = ServerState()
    for entry in data["databases"]:
        _add_database(state, entry)
    state.channels = {each.name: each for each in convert(data["channels"], list[SimChannel])}
    state.cards = convert(data["cards"], dict[str, ProgramCard])
    return state


def _add_database(state: ServerState, data: dict[str, Any]) -> None:
    database = state.add_database(data["name"])
    database.partner = data["partner"]
    database.profiles = convert(data["profiles"], dict[str, tuple[int, int]])
    database.connectors = convert(data["connectors"], dict[str, list[bytes]])
    for path in data["folders"]:
        database.make_folder(tuple(path))
    clips = [_add_clip(database, entry) for entry in data["clips"]]
    by_place = {clip.home.link_id: clip for clip in clips}
    state.handles |= {number: by_place[link_id] for number, link_id in data["handles"].items()}
    database.next_link_id = data["next_link_id"]


def _add_clip(database: SimDatabase, data: dict[str, Any]) -> SimClip:
    clip = convert({**data, "entries": []}, SimClip, dec_hook=lambda kind, text: kind(text))  # a rate: Fraction("25")
    for entry in data["entries"]:
        added = database.add_entry(clip, tuple(entry["folder"]), entry["title"], entry["link_id"])
        added.fields = entry.get("fields", {})
    return clip


def load_state(path: Path) -> ServerState:
    """Read a state file; ValueError names the file if its content is not a state."""
    try:
        return state_from_json(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError, AttributeError, ValidationError) as problem:
        raise ValueError(f"{path}: {problem}") from problem


def save_state(state: ServerState, path: Path) -> None:
    """Replace the file atomically."""
    temporary = path.with_name(path.name + ".new")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(state_to_json(state), file, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
