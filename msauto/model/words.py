"""Words that the interface fixes: types of markers, MIME types. Said once, for playbooks, plans and requests alike."""

from __future__ import annotations

from typing import Final, Literal, get_args

Track = Literal[
    "General",
    "Secondary Event",
    "Cue Point",
    "Goto Cue",
    "Game Time",
    "Icon",
    "Picture",
    "Profanity Start",
    "Profanity End",
]
"""The types of markers (interface, «Asset commands»), as they are written; servers may show them in other letters."""

TRACKS: Final[tuple[Track, ...]] = get_args(Track)
DEFAULT_TRACK: Final = "General"

MimeType = Literal[
    "Audio", "Video", "AudioVideo", "StillImage", "Text", "Complex", "Tape", "Stream", "Graphics", "Note"
]
"""The names of the filter of listings (interface, «List assets and folders»)."""

MIMETYPES: Final[tuple[MimeType, ...]] = get_args(MimeType)
