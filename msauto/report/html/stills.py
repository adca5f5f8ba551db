"""Which pictures of clips a report shows: of deleted clips, new and moved markers, and the starts of segments."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from msauto.aspects import ASPECTS, is_deletion
from msauto.model.plan import Plan, Target
from msauto.report.clip_timeline import clip_timeline


class StillPlace(NamedTuple):
    """A frame of a target, which is named by its index in the plan.

    The frame counts from the first one of the file; ``None`` is the picture that the server chooses.
    """

    target: int
    frame: int | None


Stills = Mapping[StillPlace, bytes]
"""Pictures as PNG."""
NO_STILLS: Final[Stills] = {}


def choose_stills(plan: Plan, most: int) -> list[StillPlace]:
    """Return the places of the first ``most`` pictures: deleted clips first, then changes in the order of the plan."""
    gone = (StillPlace(number, None) for number, target in _planned(plan) if _is_deleted(target))
    changed = (
        StillPlace(number, frame)
        for number, target in _planned(plan)
        if not _is_deleted(target)
        for frame in dict.fromkeys(_new_frames(target))
    )
    return list(islice((place for places in (gone, changed) for place in places), most))


def pictures_by_target(stills: Stills) -> dict[int, list[list[Any]]]:
    """Return the pictures as data, by the index of their target: frame and URI, in the order of the clip."""
    found: dict[int, list[list[Any]]] = {}
    for place, png in sorted(stills.items(), key=lambda item: item[0].frame or 0):
        found.setdefault(place.target, []).append([place.frame, picture_uri(png)])
    return found


def picture_uri(png: bytes) -> str:
    """Return a picture as a URI that contains it."""
    return f"data:image/png;base64,{b64encode(png).decode()}"


def _planned(plan: Plan) -> Iterator[tuple[int, Target]]:
    return ((number, each) for number, each in enumerate(plan.targets) if each.kind == "asset" and each.error is None)


def _is_deleted(target: Target) -> bool:
    return any(is_deletion(change) and ASPECTS[change.aspect].deletes_target for change in target.changes)


def _new_frames(target: Target) -> Iterator[int]:
    """Yield the frames at which markers and segments of a clip begin after the changes and did not before."""
    timeline = clip_timeline(target)
    for item in timeline.items if timeline else ():
        start = item.before.start if item.before else None
        if item.action in {"add", "change"} and item.after and item.after.start != start:
            yield item.after.start
