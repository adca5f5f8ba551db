"""The simulator's store as plain values, and the differences between what must be there and what is.

What does not count is evened out: composed texts, line ends, what is empty or left at its default.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Any

from msauto.plugins.simulator.embedded import Simulator
from msauto.plugins.simulator.embedded.seed import state_to_json
from tests.dialects.case_end import MARKER_FIELDS, Store, rating_of, text_of, track_of

LISTS = frozenset({"databases", "channels", "clips", "markers", "segments", "entries", "items"})
NAMES = ("name", "title", "uid", "number")


def plain_store(sim: Simulator) -> Store:
    """Return all that the simulator holds; identifiers to come and times of restoring aside."""
    store: Store = json.loads(json.dumps(state_to_json(sim.state)))
    for database in store["databases"]:
        del database["next_link_id"]
        database["folders"].sort()
        told = {
            name: [base64.b64decode(body).decode() for body in each]
            for name, each in database["connectors"].items()
        }
        database["connectors"] = told
        database["clips"] = [_clip(clip) for clip in database["clips"]]
    return store


def _clip(clip: Store) -> Store:
    evened = {
        name: value
        for name, value in clip.items()
        if name not in {"online", "online_at", "recording_since"}
    }
    return evened | {
        "on_disk": clip["online"] or clip["online_at"] is not None,
        "markers": [_marker(marker) for marker in clip["markers"]],
        "segments": [
            each | {"titles": list(filter(None, map(text_of, each["titles"])))}
            for each in clip["segments"]
        ],
        "entries": [_entry(entry) for entry in clip["entries"]],
        "xmp": {name: list(map(text_of, values)) for name, values in clip["xmp"].items() if values},
        "partner": [dict(each) for each in clip["partner"]],
    }


def _marker(marker: Store) -> Store:
    fields = dict.fromkeys(MARKER_FIELDS, "") | {
        name: text_of(value) for name, value in marker["fields"].items()
    }
    fields["rating"] = rating_of(fields["rating"])
    return fields | {
        "uid": marker["uid"],
        "pos": marker["pos"],
        "track": track_of(fields.get("track", "General")),
    }


def _entry(entry: Store) -> Store:
    return entry | {"fields": dict(_fields(entry.get("fields", {})))}


def _fields(fields: Store) -> Iterator[tuple[str, str]]:
    for name, value in fields.items():
        text = text_of(value)
        text = (
            str(int(text))
            if name in {"layer", "first_frame", "last_frame", "icon_pos"} and text
            else text
        )
        if text and (name, text) != ("first_frame", "0"):
            yield name, text


def evened(end: Store) -> Store:
    """Even out what an expected end was given as a playbook writes it."""
    for database in end["databases"]:
        database["folders"].sort()
        for clip in database["clips"]:
            clip["entries"] = [_entry(entry) for entry in clip["entries"]]
            clip["xmp"] = {name: values for name, values in clip["xmp"].items() if values}
    return end


def differences(expected: Any, actual: Any, where: str = "") -> list[str]:
    """Return what differs, each with its way from the root; lists of things are compared whatever their order."""
    if isinstance(expected, dict) and isinstance(actual, dict) and type(expected) is dict:
        names = sorted({*expected, *actual})
        return [
            told
            for name in names
            for told in differences(expected.get(name), actual.get(name), f"{where}/{name}")
        ]
    if (
        isinstance(expected, list)
        and isinstance(actual, list)
        and where.rpartition("/")[2] in LISTS
    ):
        return _unordered(expected, actual, where)
    return [] if expected == actual else [f"{where}: {expected!r} expected, {actual!r} is there"]


def _unordered(expected: Sequence[Any], actual: Sequence[Any], where: str) -> list[str]:
    left = list(actual)
    missing = []
    for each in expected:
        found = next(
            (index for index, other in enumerate(left) if not differences(each, other, "")), None
        )
        if found is None:
            missing.append(each)
        else:
            left.pop(found)
    if len(missing) == len(left) == 1:
        return differences(
            missing[0], left[0], f"{where}[{next((left[0][n] for n in NAMES if n in left[0]), '')}]"
        )
    return [f"{where}: {each!r} is missing" for each in missing] + [
        f"{where}: {each!r} is too much" for each in left
    ]
