"""The registry of attributes: each link field, marker attribute and segment attribute, and all that follows from it.

An entry defines the models and the JSON Schema, the conversion to desired state, comparison, facts, required versions,
export, reports, secrets and the reference. ``tests/unit/model`` checks that no other module lists attributes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from typing import Final, Literal, get_args

from msgspec import Struct

from msauto.primitives.decimals import MOST, MOST_LONG, read_decimal, read_whole

Kind = Literal["text", "number", "integer", "position", "decimal", "time"]
"""What the text of an attribute is.

``number`` is text in a playbook and a whole number on the server; ``integer`` is a whole number in both.
"""


class Attribute(Struct, frozen=True):
    """One attribute, under the name that playbooks, plans and the wire share.

    ``description`` and ``example`` (YAML) are for the reference. ``clearable``: a position may be set to an empty text.
    ``since`` is the product version that can set it. ``end``: a position that may be the frame after the last one.
    ``least`` and ``most`` are the bounds of a number.
    """

    name: str
    kind: Kind = "text"
    description: str = ""
    example: str = "x"
    clearable: bool = False
    since: tuple[int, ...] | None = None
    end: bool = False
    least: int = -MOST
    most: int = MOST

    def read(self, text: str) -> int | Fraction | None:
        """Read the text of a number; ``None`` for anything else, and out of range."""
        if self.kind != "decimal":
            return read_whole(text, self.most, least=self.least)
        number = read_decimal(text)
        return None if number is None or number < self.least else number

    @property
    def is_number(self) -> bool:
        """Whether values are compared, and shown to templates, as whole numbers."""
        return self.kind in {"number", "integer", "position"}

    @property
    def may_be_secret(self) -> bool:
        """Whether a playbook may set it to a secret: a text that is written and decides over nothing."""
        return self.kind == "text"


LINK_FIELDS: Final = (
    Attribute("type", "text", "the type of the entry", "News"),
    Attribute("comment", "text", "the comment", "Ready"),
    Attribute("layer", "number", "the layer", '"1"'),
    Attribute("first_frame", "position", "the IN point: a time code or frames", '"10:00:00:00"'),
    Attribute(
        "last_frame", "position", "the OUT point: a time code or frames", '"10:20:00:00"', end=True
    ),
    Attribute(
        "icon_pos",
        "position",
        "the position of the icon: a time code or frames; an empty text clears it",
        "250",
        clearable=True,
    ),
    Attribute("user_0", "text", "user field 0, shown as User 1", "Kanal 5", since=(2, 9, 87)),
    Attribute("user_1", "text", "a user field", '""'),
    *(Attribute(f"user_{number}", "text", "a user field") for number in range(2, 8)),
)
"""What SETFIELD changes (interface, «Link»), except ``clip_name``, the title."""

FIELDS_OF_EVERY_CLIP: Final = frozenset({"type", "first_frame", "last_frame"})
"""Link fields that an answer may show though they were never set."""

MARKER_ATTRIBUTES: Final = (
    Attribute("title", "text", "its title", "Ad break"),
    Attribute("comment", "text", "its comment"),
    Attribute("user", "text", "its user"),
    Attribute("keywords", "text", "its keywords, as one text"),
    Attribute("rating", "integer", "its rating", "3"),
)
"""What a marker has besides its uid, position and track (interface, «Marker»)."""

SEGMENT_ATTRIBUTES: Final = (
    Attribute("title", "text", "its title", "Part 1"),
    Attribute("keywords", "text", "its keywords, as one text", "a b"),
)
"""What CREATESEGMENT sets besides number, start and duration (interface, «Commands»).

All but the title may be missing in what the server reports: then the ledger holds what was last written.
"""

CLIP_ATTRIBUTES: Final = (
    *(
        Attribute(name, "integer", least=0)
        for name in ("bps", "channels", "frames", "height", "width", "mime_type")
    ),
    Attribute("link_id", "integer", most=MOST_LONG),
    *(Attribute(name, "decimal", least=0) for name in ("frame_time", "sample_rate")),
    *(Attribute(name, "time") for name in ("create_time", "rec_time")),
    *(Attribute(name) for name in ("derived_from", "orig_name", "orig_type", "title", "clip_name")),
)
"""What only the server sets (interface, «Asset»); and the title."""


def names(attributes: Iterable[Attribute], *kinds: Kind) -> tuple[str, ...]:
    """Return the names of attributes, of these kinds if any are given.

    >>> names(MARKER_ATTRIBUTES, "integer")
    ('rating',)
    """
    return tuple(attribute.name for attribute in attributes if not kinds or attribute.kind in kinds)


SEGMENT_NAMES: Final = names(SEGMENT_ATTRIBUTES)
LINK_FIELD: Final = {field.name: field for field in LINK_FIELDS}
ATTRIBUTE_OF_CLIP: Final = {
    attribute.name: attribute for attribute in (*CLIP_ATTRIBUTES, *LINK_FIELDS)
}
NUMBER_OF_CLIP: Final = {
    name: attribute
    for name, attribute in ATTRIBUTE_OF_CLIP.items()
    if attribute.kind not in {"text", "time"}
}
NUMBERS: Final = frozenset(
    attribute.name
    for attribute in (*LINK_FIELDS, *MARKER_ATTRIBUTES, *SEGMENT_ATTRIBUTES)
    if attribute.is_number
)
"""Attributes that a playbook sets and whose texts are compared as numbers."""
NAMES: Final = names(
    (*CLIP_ATTRIBUTES, *LINK_FIELDS, Attribute("track"), *MARKER_ATTRIBUTES, *SEGMENT_ATTRIBUTES)
)
"""The names of all ``Attr`` elements; some more than once."""


# Tracks and kinds of assets ------------------------------------------------------------------------------------

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
"""The types of markers (interface, «Commands»), as they are written; servers may show them in other letters."""

TRACKS: Final[tuple[Track, ...]] = get_args(Track)
DEFAULT_TRACK: Final = "General"

MimeType = Literal[
    "Audio",
    "Video",
    "AudioVideo",
    "StillImage",
    "Text",
    "Complex",
    "Tape",
    "Stream",
    "Graphics",
    "Note",
]
"""The names of the filter of listings (interface, «List assets and folders»)."""


def track_named(text: str) -> str:
    """Return the track that a server means, as the interface spells it; an empty one is General, an unknown one stays.

    >>> track_named("cue_point")
    'Cue Point'
    """
    return _SPELLED.get(text) or _SPELLED.get(_letters(text), text) or DEFAULT_TRACK


def _letters(text: str) -> str:
    return "".join(sign for sign in text.casefold() if sign.isalnum())


_SPELLED: Final = {spelled: track for track in TRACKS for spelled in (track, _letters(track))}


# Which characters a text may hold: the one rule for titles, fields, XMP values, segments, markers, links and folders.
#
# Servers report every text in XML 1.0, which has no way to write most control characters, U+FFFE, U+FFFF and lone
# surrogates (XML 1.0, "Characters"). What cannot be reported can never be verified, so it is refused. All else is
# written as it is: blanks and tabs at either end, line ends and a byte order mark inside a text are part of it. Line
# ends are compared as ``\n``; around XMP values alone blanks do not count, for answers are indented.

# Its complement compiles slowly.
_UNREPORTABLE: Final = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def unreportable(text: str) -> str | None:
    r"""Return what is wrong with a text that no answer can carry: the first such character and its position.

    >>> unreportable("a\0b")
    'holds U+0000 as character 2, which XML 1.0 cannot carry: no server can report it'
    """
    match = _UNREPORTABLE.search(text)
    if match is None:
        return None
    name = f"U+{ord(match[0]):04X}"
    return f"holds {name} as character {match.start() + 1}, which XML 1.0 cannot carry: no server can report it"
