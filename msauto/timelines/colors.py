"""Colors of other programs and tracks of markers.

Names: the eight locator colors of Avid Media Composer (as in ``* LOC:`` lines, repository adamhawkey/EDL_tools), those
of OpenTimelineIO (``opentimelineio.schema.MarkerColor``), and the marker types of Premiere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from msauto.interface.fields import DEFAULT_TRACK, TRACKS, track_named
from msauto.timelines.timeline import EditMarker, TimelineError

TRACK_OF_COLOR: Final[Mapping[str, str]] = {
    "blue": "General",
    "red": "Cue Point",
    "green": "Secondary Event",
    "magenta": "Goto Cue",
    "yellow": "Game Time",
    "cyan": "Icon",
    "white": "Picture",
    "black": "Profanity Start",
    "pink": "Profanity End",
    "flash cue point": "Cue Point",
}
"""The track of a color; any other color is General."""
COLOR_OF_TRACK: Final = {track: color for color, track in TRACK_OF_COLOR.items() if " " not in color}
_MORE = "orange purple fuchsia rose lavender sky mint lemon sand cocoa cream"
COLORS: Final = frozenset({*COLOR_OF_TRACK.values(), *_MORE.split()})
"""The colors of Avid and Resolve."""
OTHERS: Final = "*"
"""The key of ``tracks=`` for markers without a color of their own in it."""


def color_of(track: str) -> str:
    """Return the color of a track, as :data:`TRACK_OF_COLOR` has it."""
    return COLOR_OF_TRACK.get(track, COLOR_OF_TRACK[DEFAULT_TRACK])


def check_tracks(tracks: Mapping[str, str]) -> dict[str, str]:
    """Return the tracks that a lookup sets by color, with the color in lower case; raises :class:`TimelineError`."""
    checked = {str(color).casefold(): track_named(str(track)) for color, track in tracks.items()}
    for color, track in checked.items():
        if track not in TRACKS:
            raise TimelineError(f"tracks: {color!r} has the unknown track {track!r}", unknown=(track, TRACKS))
    return checked


def with_track(marker: EditMarker, tracks: Mapping[str, str]) -> EditMarker:
    """Return a marker with its track: by name, else by color; raises :class:`TimelineError` for an unknown name."""
    named, color = marker.track, marker.color.casefold()
    if named.casefold() in tracks and named:
        return replace(marker, track=tracks[named.casefold()])
    if named:
        track = track_named(named)
        if track not in TRACKS:
            raise TimelineError(f"unknown track {named!r}", line=marker.line or None, unknown=(named, TRACKS))
        return replace(marker, track=track)
    default = tracks.get(OTHERS) or TRACK_OF_COLOR.get(color, DEFAULT_TRACK if color else "")
    return replace(marker, track=tracks.get(color, default))
