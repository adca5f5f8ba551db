"""Equality of names, and which answers and entries are of one clip.

The interface has no key that a clip and its links share: a link is an entry of the same clip with its own ``link_id``
(identity, «One clip is one target»). So two answers are compared by what belongs to the clip and not to an entry: its
file, its creation time and its length.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Annotated, Final, Literal, NamedTuple

from msgspec import Meta, Struct

from msauto.model.live import Asset, Entry, Folder, read_time, whole

IDENTITY: Final = ("orig_name", "create_time", "frames")
"""Attributes of a clip that all its entries share, and that change only when it is recorded again."""

Identity = tuple[object, ...]
Answer = Literal["other", "same", "unknown"]

LinkId = Annotated[int | None, Meta(description="the server's number of the entry, if it reports one")]
CreateTime = Annotated[
    str | None, Meta(description="when the clip was created, as the server reports it: a new recording is another clip")
]


class ClipIdentity(Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """What a clip is, whatever its title: the values that its answer showed when it was planned."""

    link_id: LinkId = None
    create_time: CreateTime = None
    frames: Annotated[int | None, Meta(description="its length; null while it is being recorded")] = None
    orig_name: Annotated[str | None, Meta(description="the name of the original file")] = None
    hires: Annotated[str | None, Meta(description="the high-resolution file")] = None
    archive: Annotated[str | None, Meta(description="the archive copy")] = None

    @classmethod
    def of(cls, clip: Asset | Entry) -> ClipIdentity:
        """Return the identity of the clip that an answer or an entry shows.

        The proxy does not belong to it: on many servers its path is that of the title.
        """
        attributes = clip.attributes
        return cls(
            clip.link_id,
            attributes.get("create_time"),
            None if clip.finalized is False else whole(attributes.get("frames")),
            attributes.get("orig_name"),
            *((clip.hires or None, clip.archive or None) if isinstance(clip, Asset) else ()),
        )

    @property
    def is_known(self) -> bool:
        """Whether it distinguishes the clip from others: a length or an original name alone does not."""
        return self.link_id is not None or bool(self.create_time or self.hires or self.archive)


Sighting = Asset | Entry | ClipIdentity


class ClipComparison(NamedTuple):
    """The names of the values that two sightings of a clip both report, ``link_id`` apart: that is of the entry."""

    equal: tuple[str, ...]
    different: tuple[str, ...]

    @property
    def answer(self) -> Answer:
        """Whether they are of one clip: of another if a value differs, of the same if two values are equal."""
        both_files = "hires" in self.equal and "archive" in self.equal  # which count as one value
        return "other" if self.different else "same" if len(self.equal) - both_files > 1 else "unknown"


def compare_clips(one: Sighting, other: Sighting) -> ClipComparison:
    """Compare two sightings of a clip: answers, entries of a listing, or what a plan kept.

    A clip that was archived and purged reports its archive copy only, so files are compared with those of their kind.
    """
    mine, its = (each if isinstance(each, ClipIdentity) else ClipIdentity.of(each) for each in (one, other))
    times = _text(mine.create_time), _text(its.create_time)
    pairs: dict[str, tuple[object, object]] = {
        "hires": (mine.hires, its.hires),
        "archive": (mine.archive, its.archive),
        "orig_name": (_text(mine.orig_name), _text(its.orig_name)),
        # Equal texts, which are the rule, are equal times.
        "create_time": times if times[0] == times[1] else (_time(times[0]), _time(times[1])),
        "frames": (mine.frames, its.frames),
    }
    known = {name: a == b for name, (a, b) in pairs.items() if _comparable(a, b)}
    equal = tuple(name for name, is_equal in known.items() if is_equal)
    return ClipComparison(equal, tuple(name for name in known if name not in equal))


def plain(text: str) -> str:
    r"""Return the form in which texts are compared: Unicode NFC, line ends as ``\n``."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def same_text(one: str | None, other: str | None) -> bool:
    """Whether two texts are equal; ``None`` equals the empty text."""
    return one == other or plain(one or "") == plain(other or "")


def same_folder(one: Folder, other: Folder) -> bool:
    """Whether two folders are equal."""
    return len(one) == len(other) and all(map(same_text, one, other))


def identity_of(clip: Asset | Entry) -> Identity | None:
    """Return the values of ``IDENTITY``; ``None`` where one of them is not reported."""
    values = known_identity(clip)
    return None if None in values else values


def known_identity(clip: Asset | Entry) -> Identity:
    """Return the values of ``IDENTITY``, ``None`` for what is not reported; a clip being recorded has no length yet."""
    shown = ClipIdentity.of(clip)
    return (
        _text(shown.orig_name),
        _time(_text(shown.create_time)),
        "recording" if clip.finalized is False else shown.frames,
    )


def clip_key(asset: Asset) -> Identity | None:
    """Return what two answers of one clip have in common; ``None`` where too little is reported."""
    if compare_clips(asset, asset).answer != "same":
        return None
    return (asset.hires or None, asset.archive or None, *known_identity(asset), *content_of(asset))


def differing(one: Sighting, other: Sighting) -> tuple[str, ...]:
    """Return the names of the values that both report, and that differ: if any does, they are two clips."""
    return compare_clips(one, other).different


def is_another_clip(planned: ClipIdentity, asset: Asset, altered: Collection[str] = ()) -> bool:
    """Return whether an answer is surely of another clip than the one that was planned."""
    return are_other_clips(planned, ClipIdentity.of(asset), altered, may_grow=asset.finalized is None)


def are_other_clips(
    planned: ClipIdentity, now: ClipIdentity, altered: Collection[str] = (), *, may_grow: bool = False
) -> bool:
    """Return whether two identities are surely of two clips; ``may_grow``: it may still be recorded.

    ``altered`` are the values that the requests of the run may change. With ``link_id`` among them, the identity may
    be that of a link: then nothing else may differ, and the creation time, the length or a file must be equal.
    """
    if now == planned:
        return False
    found = compare_clips(planned, now)
    different = {*found.different} - {*altered} - ({"hires", "archive"} if "files" in altered else set())
    if None in (planned.link_id, now.link_id):
        return bool(different)
    if planned.link_id != now.link_id:
        return bool(different) or "link_id" not in altered or not {*found.equal} - {"orig_name"}
    if may_grow and "create_time" in found.equal:
        different.discard("frames")  # it may still be recorded, and the server does not report that
    return bool(different)


def describe_clip(asset: Asset) -> str:
    """Return what a message names of a clip that has the title of another one."""
    created = asset.attributes.get("create_time") or "unknown"
    return f"created {created}, {asset.frames} frames, link_id {asset.link_id}"


def fits(entry: Entry, asset: Asset) -> bool:
    """Whether an answer may be of the clip that a listing shows at ``entry``, or of a link of it.

    A server may give all entries one ``link_id``, so an equal one alone is not enough.
    """
    return not are_other_clips(ClipIdentity.of(entry), ClipIdentity.of(asset), {"link_id"}, may_grow=True)


def content_of(asset: Asset) -> Identity:
    """Return the content of the clip without positions: some servers count them from the IN point of the entry.

    Several clips may use the same file, so two names of one clip must show the same markers and segments as well.
    """
    markers = frozenset((marker.uid, frozenset(marker.fields.items())) for marker in asset.markers)
    segments = frozenset((segment.number, segment.titles, segment.duration) for segment in asset.segments)
    return markers, segments


def _comparable(one: object, other: object) -> bool:
    """Whether two values show if they are equal: not if one is unknown, or one of two times has no zone.

    Those differ only if no time zone makes them equal: they are from 12 hours behind UTC to 14 hours ahead of it, in
    quarters of an hour.
    """
    if one is None or other is None:
        return False
    if not isinstance(one, datetime) or not isinstance(other, datetime):
        return True
    zoned, bare = (one, other) if one.tzinfo else (other, one)
    ahead = zoned.utcoffset()
    if ahead is None or bare.tzinfo is not None:
        return True
    offset = bare - zoned.replace(tzinfo=None) + ahead
    return not timedelta(hours=-12) <= offset <= timedelta(hours=14) or bool(offset % timedelta(minutes=15))


def _text(value: str | None) -> str | None:
    return plain((value or "").strip()) or None


def _time(text: str | None) -> object:
    return text and (read_time(text) or text)
