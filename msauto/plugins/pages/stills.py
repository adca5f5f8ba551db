"""``--stills``: pictures for the HTML report of a plan, fetched by GET and kept in the state folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from msauto.aspects import ASPECTS, is_deletion
from msauto.cli.output import print_message
from msauto.concurrency import concurrent_list
from msauto.errors import MsautoError
from msauto.file_writing import write_file
from msauto.model.plan import Change, Plan, Target
from msauto.model.server import ServerSpec
from msauto.primitives.decimals import read_whole
from msauto.report.clip_timeline import StillPlace, Stills, clip_timeline
from msauto.report.sanitizing import visible
from msauto.server.client import AsyncMediaServer

_WIDTH: Final = 192
_LARGEST: Final = 256 * 1024
"""Bytes of one picture; a larger one is left out."""
_CACHE: Final = 64 * 1024 * 1024
"""Bytes that the state folder keeps; the oldest pictures go first."""


async def fetch_stills(
    plan: Plan, specs: Sequence[ServerSpec], folder: Path, *, most: int, forks: int | None
) -> Stills:
    """Return the first ``most`` pictures of a plan; one warning for each server names what cannot be fetched."""
    places: dict[str, list[StillPlace]] = {}
    for place in _choose(plan)[:most]:
        places.setdefault(plan.targets[place.target].server, []).append(place)
    stills: dict[StillPlace, bytes] = {}
    for spec in specs:
        of_server = places.get(spec.name, [])
        if not of_server:
            continue
        trouble: list[str] = []
        async with AsyncMediaServer(spec, read_only=True, gives_up=True) as client:
            fetch = partial(_fetch, client, folder, trouble, plan)
            pictures = await concurrent_list(fetch, of_server, limit=forks or spec.connections)
        for place, picture in zip(of_server, pictures, strict=True):
            if picture:
                stills[place] = picture
        if trouble:
            print_message(f"Warning: {len(trouble)} stills are missing: {visible(trouble[0])}")
    _prune(folder)
    return stills


def _choose(plan: Plan) -> list[StillPlace]:
    """Return the places of pictures: deleted clips, then where a marker or segment begins that did not before."""
    gone, begun = [], []
    for number, target in enumerate(plan.targets):
        if target.kind != "asset" or target.error is not None:
            continue
        if any(map(_deletes_asset, target.changes)):
            gone.append(StillPlace(number, None))
        else:
            begun += [StillPlace(number, frame) for frame in _new_starts(target)]
    return gone + begun


def _deletes_asset(change: Change) -> bool:
    return is_deletion(change) and ASPECTS[change.aspect].deletes == "asset"


def _new_starts(target: Target) -> list[int]:
    """Return the frames at which a marker or segment begins that did not before, each once."""
    timeline = clip_timeline(target)
    frames: dict[int, None] = {}
    if timeline is None:
        return []
    for item in timeline.items:
        start = item.before and item.before.start
        if item.after and item.after.start != start and item.action in {"add", "change"}:
            frames[item.after.start] = None
    return [*frames]


async def _fetch(
    client: AsyncMediaServer, folder: Path, trouble: list[str], plan: Plan, place: StillPlace
) -> bytes | None:
    """Return a picture, from the folder if it is there: a clip that is recorded again has another creation time.

    ``trouble`` gets why one is missing.
    """
    target = plan.targets[place.target]
    clip = target.clip
    named = (
        client.spec.url,
        target.database,
        target.name,
        clip.link_id,
        clip.create_time,
        place.frame,
        _WIDTH,
    )
    file = folder / f"{hashlib.sha256(json.dumps(named, default=str).encode()).hexdigest()}.png"
    if clip.create_time is not None and file.is_file():
        return file.read_bytes()
    try:
        png = await _read_still(client, target, place.frame)
    except MsautoError as error:
        trouble.append(f"{target.server}: {error.message}")
        return None
    if png is None or len(png) > _LARGEST:
        return None
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(file, [png])
    return png


async def _read_still(client: AsyncMediaServer, target: Target, frame: int | None) -> bytes | None:
    """Read a picture; ``None`` for a frame before the in point.

    The position of a picture counts from the in point (interface, «PNG thumbnail»). Both sides are given, because the
    one that is missing would be that of the original.
    """
    asset = await client.asset(target.database, target.address)
    pos = None
    if frame is not None:
        pos = frame - asset.in_point
        if pos < 0:
            return None
    width, height = (read_whole(asset.attributes.get(name)) for name in ("width", "height"))
    shown = _WIDTH * 9 // 16
    if width and height:
        shown = round(_WIDTH * height / width)
    return await client.thumbnail(
        target.database, target.address, pos=pos, w=_WIDTH, h=min(shown, 2 * _WIDTH)
    )


def _prune(folder: Path) -> None:
    """Remove the oldest pictures beyond the limit."""
    files = sorted(folder.glob("*.png"), key=lambda file: file.stat().st_mtime, reverse=True)
    total = 0
    for file in files:
        total += file.stat().st_size
        if total > _CACHE:
            file.unlink(missing_ok=True)
