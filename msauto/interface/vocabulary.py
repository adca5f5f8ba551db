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


def track_named(text: str) -> str:
    """Return the track that a server means, as the interface spells it; none is General, an unknown one stays.

    >>> track_named("cue_point")
    'Cue Point'
    """
    return _SPELLED.get(_letters(text), text) or DEFAULT_TRACK


def _letters(text: str) -> str:
    return "".join(sign for sign in text.casefold() if sign.isalnum())


_SPELLED: Final = {_letters(track): track for track in TRACKS}
