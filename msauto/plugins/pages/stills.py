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
from msauto.model.plan import Plan, Target
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
    found: dict[StillPlace, bytes] = {}
    for spec in (spec for spec in specs if spec.name in places):
        trouble: list[str] = []
        async with AsyncMediaServer(spec, read_only=True, gives_up=True) as client:
            fetch = partial(_fetch, client, folder, trouble)
            wanted = ((plan.targets[each.target], each.frame) for each in places[spec.name])
            pngs = await concurrent_list(fetch, wanted, limit=forks or spec.connections)
        found |= {place: png for place, png in zip(places[spec.name], pngs, strict=True) if png}
        if trouble:
            print_message(f"Warning: {len(trouble)} stills are missing: {visible(trouble[0])}")
    _prune(folder)
    return found


def _choose(plan: Plan) -> list[StillPlace]:
    """Return the places of pictures: deleted clips, then where a marker or segment begins that did not before."""
    gone, changed = list[StillPlace](), dict[StillPlace, None]()
    for number, target in enumerate(plan.targets):
        if target.kind != "asset" or target.error is not None:
            continue
        if any(is_deletion(change) and ASPECTS[change.aspect].deletes == "asset" for change in target.changes):
            gone.append(StillPlace(number, None))
            continue
        timeline = clip_timeline(target)
        for item in timeline.items if timeline else ():
            start = item.before.start if item.before else None
            if item.action in {"add", "change"} and item.after and item.after.start != start:
                changed[StillPlace(number, item.after.start)] = None
    return [*gone, *changed]


async def _fetch(
    client: AsyncMediaServer, folder: Path, trouble: list[str], place: tuple[Target, int | None]
) -> bytes | None:
    """Return a picture, from the folder if it is there: a clip that is recorded again has another creation time.

    ``trouble`` gets why one is missing. The position of a picture counts from the in point (interface, «PNG
    thumbnail»). Both sides are given, because the one that is missing would be that of the original.
    """
    target, frame = place
    clip = target.clip
    named = (client.spec.url, target.database, target.name, clip.link_id, clip.create_time, frame, _WIDTH)
    file = folder / f"{hashlib.sha256(json.dumps(named, default=str).encode()).hexdigest()}.png"
    if clip.create_time is not None and file.is_file():
        return file.read_bytes()
    try:
        asset = await client.asset(target.database, target.address)
        pos = None if frame is None else frame - asset.in_point
        if pos is not None and pos < 0:
            return None
        width, height = (read_whole(asset.attributes.get(name)) or 0 for name in ("width", "height"))
        shown = min(round(_WIDTH * height / width) if width and height else _WIDTH * 9 // 16, 2 * _WIDTH)
        png = await client.thumbnail(target.database, target.address, pos=pos, w=_WIDTH, h=shown)
    except MsautoError as error:
        trouble.append(f"{target.server}: {error.message}")
        return None
    if len(png) > _LARGEST:
        return None
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(file, [png])
    return png


def _prune(folder: Path) -> None:
    """Remove the oldest pictures beyond the limit."""
    files = sorted(folder.glob("*.png"), key=lambda file: file.stat().st_mtime, reverse=True)
    total = 0
    for file in files:
        total += file.stat().st_size
        if total > _CACHE:
            file.unlink(missing_ok=True)
