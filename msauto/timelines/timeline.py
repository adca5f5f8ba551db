"""What the formats have in common: markers and segments in frames from the first frame of the clip."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from msauto.interface import fields as registry

_BLANKS = re.compile(r"\s+")


class TimelineError(ValueError):
    """A file that is not a valid timeline; ``line``: the line or row, from 1.

    ``unknown``: a name that is not known, and those that are.
    """

    def __init__(
        self,
        message: str,
        remedy: str = "",
        line: int | None = None,
        *,
        unknown: tuple[str, Iterable[str]] = ("", ()),
    ) -> None:
        super().__init__(message)
        self.remedy = remedy
        self.line = line
        self.unknown = unknown


@dataclass(frozen=True, slots=True)
class EditMarker:
    """A point. ``color`` is the color, or the type, that a file shows; ``track`` the type of an ``asset`` task.

    ``line`` is where the file has it, for messages.
    """

    frame: int
    title: str = ""
    comment: str = ""
    user: str = ""
    keywords: str = ""
    rating: int = 0
    track: str = ""
    color: str = ""
    line: int = field(default=0, compare=False)

    def as_item(self) -> dict[str, Any]:
        """Return the item of ``markers:`` in an ``asset`` task, without empty values."""
        return {"at": self.frame, **_filled(self, ("track", "rating", *MARKER_TEXTS))}


@dataclass(frozen=True, slots=True)
class EditSegment:
    """A range; ``number`` only where the file numbers segments."""

    start: int
    duration: int
    title: str = ""
    keywords: str = ""
    number: int | None = None

    def as_item(self) -> dict[str, Any]:
        """Return the item of ``segments:`` in an ``asset`` task, without empty values."""
        number = {} if self.number is None else {"number": self.number}
        return {**number, "start": self.start, "duration": self.duration, **_filled(self, SEGMENT_TEXTS)}


def _held(kind: type[EditMarker] | type[EditSegment], attributes: tuple[registry.Attribute, ...]) -> tuple[str, ...]:
    known = {each.name for each in fields(kind)}
    return tuple(name for name in registry.names(attributes, "text") if name in known)


MARKER_TEXTS = _held(EditMarker, registry.MARKER_ATTRIBUTES)
"""The attributes of a marker that a timeline holds, besides rating and track."""
SEGMENT_TEXTS = _held(EditSegment, registry.SEGMENT_ATTRIBUTES)
"""The attributes of a segment that a timeline holds."""


def _filled(item: EditMarker | EditSegment, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in asdict(item).items() if name in names and value}


@dataclass(slots=True)
class EditTimeline:
    """The markers and segments of a clip. ``title``: the title of the clip."""

    markers: list[EditMarker] = field(default_factory=list)
    segments: list[EditSegment] = field(default_factory=list)
    title: str = ""

    def add(self, marker: EditMarker, duration: int, number: int | None = None) -> None:
        """Add a marker; with a duration, as a segment, which has no comment."""
        if duration <= 0:
            self.markers.append(marker)
            return
        title = marker.title or one_line(marker.comment)
        self.segments.append(EditSegment(marker.frame, duration, title, marker.keywords, number))


def joined(markers: Iterable[EditMarker]) -> list[EditMarker]:
    """Return one marker for each frame and track, with the texts of all: a clip has no more of them."""
    places: dict[tuple[int, str], list[EditMarker]] = {}
    for marker in markers:
        places.setdefault((marker.frame, marker.track or registry.DEFAULT_TRACK), []).append(marker)
    return [together[0] if len(together) == 1 else _join(together) for together in places.values()]


def _join(markers: list[EditMarker]) -> EditMarker:
    texts: dict[str, Any] = {}
    for name in MARKER_TEXTS:
        found = dict.fromkeys(getattr(each, name) for each in markers)
        texts[name] = ("\n" if name == "comment" else " / ").join(filter(None, found))
    return replace(markers[0], **texts, rating=max(each.rating for each in markers))


@dataclass(frozen=True, slots=True)
class WrittenTimeline:
    """A file for another program; ``warnings``: what that program does not see."""

    text: str
    warnings: tuple[str, ...] = ()


def one_line(text: str) -> str:
    r"""Return a text without line breaks and repeated spaces.

    >>> one_line("two\nlines ")
    'two lines'
    """
    return _BLANKS.sub(" ", text).strip()
