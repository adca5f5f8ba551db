"""Equality of names, and which answers and entries are of one clip.

The interface has no key that a clip and its links share: a link is an entry of the same clip with its own ``link_id``
(field notes, «Facts from public manuals»). So two answers are compared by what belongs to the clip and not to an
entry: its file, its creation time and its length.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Annotated, Final

from msgspec import Meta, Struct

from msauto.model.live import Asset, Entry, Folder, whole

IDENTITY: Final = ("orig_name", "create_time", "frames")
"""Attributes of a clip that all its entries share, and that change only when it is recorded again."""

Identity = tuple[object, ...]

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
    files: Annotated[tuple[str, ...], Meta(description="the high-resolution file, the archive copy and the proxy")] = ()

    @classmethod
    def of(cls, asset: Asset) -> ClipIdentity:
        """Return the identity of the clip in an answer."""
        return cls(
            asset.link_id,
            asset.attributes.get("create_time"),
            None if asset.finalized is False else asset.frames,
            asset.attributes.get("orig_name"),
            tuple(file for file in (asset.hires, asset.archive, asset.proxy) if file),
        )

    @property
    def is_known(self) -> bool:
        """Whether it distinguishes the clip from others: a length or an original name alone does not."""
        return self.link_id is not None or bool(self.create_time or self.files)


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


def may_be_same_clip(one: Asset | Entry, other: Asset | Entry) -> bool:
    """Whether at least two values of ``IDENTITY`` are equal and none differs."""
    mine, its = _texts(one), _texts(other)
    equal = [name for name in IDENTITY if (value := _value(mine, name)) is not None and value == _value(its, name)]
    return len(equal) > 1 and not differing(one, other)


def known_identity(clip: Asset | Entry) -> Identity:
    """Return the values of ``IDENTITY``, ``None`` for what is not reported; a clip being recorded has no length yet."""
    texts = _texts(clip)
    frames = "recording" if clip.finalized is False else _value(texts, "frames")
    return _value(texts, "orig_name"), _value(texts, "create_time"), frames


def clip_key(asset: Asset) -> Identity | None:
    """Return what two answers of one clip have in common; ``None`` where too little is reported.

    A clip without a high-resolution file is identified by its archive copy or its proxy, if two values are reported.
    """
    identity = known_identity(asset)
    file = asset.hires or ((asset.archive or asset.proxy) and identity.count(None) < 2)
    if not file and None in identity:
        return None
    return (asset.hires or None, *identity)


def differing(one: Asset | Entry, other: Asset | Entry) -> tuple[str, ...]:
    """Return the names of the identity attributes that both report, and that differ."""
    mine, its = _texts(one), _texts(other)
    # Equal texts, which are the rule, are equal values.
    named = [name for name in IDENTITY if mine.get(name) != its.get(name)]
    return tuple([name for name in named if _differ(_value(mine, name), _value(its, name))])


def is_same_clip(one: Asset, other: Asset) -> bool:
    """Whether two answers may be of one clip: nothing differs, and enough is reported.

    Several clips may use the same file, so the markers and segments must be equal as well. Whether equal values mean
    one clip on this server is decided by :mod:`msauto.model.clip_entries`.
    """
    key = clip_key(one)
    return key is not None and key == clip_key(other) and content_of(one) == content_of(other)


def is_other_clip(one: Asset, other: Asset) -> bool:
    """Whether two answers are surely of two clips."""
    return bool(differing(one, other)) or bool(one.hires and other.hires and one.hires != other.hires)


def is_another_clip(planned: ClipIdentity, asset: Asset, altered: Collection[str] = ()) -> bool:
    """Return whether an answer is surely of another clip than the one that was planned.

    ``altered`` are the values that the requests of the run may change. With ``link_id`` among them, the answer may be
    of a link: then nothing else may differ, and the creation time, the length or the file must be equal.
    """
    now = ClipIdentity.of(asset)
    if now == planned:
        return False
    values = {
        "link_id": (planned.link_id, now.link_id),
        "create_time": tuple(_moment((each.create_time or "").strip()) or None for each in (planned, now)),
        "frames": (planned.frames, now.frames),
        "orig_name": tuple(plain((each.orig_name or "").strip()) or None for each in (planned, now)),
        "files": (planned.files or None, now.files or None),
    }
    known = {name: (mine, its) for name, (mine, its) in values.items() if mine is not None and its is not None}
    different = {name for name, (mine, its) in known.items() if mine != its}
    if not {*planned.files}.isdisjoint(now.files):
        different.discard("files")  # a file was archived or restored
    if "link_id" in different and "link_id" in altered:
        equal = known.keys() - different
        return bool(different - {*altered}) or equal.isdisjoint({"create_time", "frames", "files"})
    entry_and_time = {"link_id", "create_time"}
    if entry_and_time <= known.keys() - different and asset.finalized is None:
        altered = {*altered, "frames"}  # it may still be recorded, and the server does not report that
    return bool(different - {*altered})


def describe_clip(asset: Asset) -> str:
    """Return what a message names of a clip that has the title of another one."""
    created = asset.attributes.get("create_time") or "unknown"
    return f"created {created}, {asset.frames} frames, link_id {asset.link_id}"


def fits(entry: Entry, asset: Asset) -> bool:
    """Whether an answer may be of the clip that a listing shows at ``entry``.

    An equal ``link_id`` means the entry itself, unless the clip was recorded again; with an equal creation time, the
    length may have grown since the listing. Another ``link_id`` may be a link of the same clip with the same title:
    then nothing that both report may differ, and both must report the creation time or the length. A server may give
    all entries one ``link_id``, so an equal one alone is not enough.
    """
    different = differing(entry, asset)
    if entry.link_id is not None and entry.link_id == asset.link_id:
        return not different or (different == ("frames",) and _value(entry.attributes, "create_time") is not None)
    if different:
        return False
    if entry.link_id is None or asset.link_id is None:
        return True
    mine, its = _texts(entry), _texts(asset)
    return any(_value(mine, name) is not None and _value(its, name) is not None for name in ("create_time", "frames"))


def content_of(asset: Asset) -> Identity:
    """Return the content of the clip without positions: some servers count them from the IN point of the entry."""
    markers = frozenset((marker.uid, frozenset(marker.fields.items())) for marker in asset.markers)
    segments = frozenset((segment.number, segment.titles, segment.duration) for segment in asset.segments)
    return markers, segments, asset.archive, asset.proxy


def _differ(one: object, other: object) -> bool:
    return one is not None and other is not None and one != other


def _texts(clip: Asset | Entry) -> Mapping[str, str]:
    """Return the attributes, without the length of a clip that is being recorded."""
    return {**clip.attributes, "frames": ""} if clip.finalized is False else clip.attributes


def _value(texts: Mapping[str, str], name: str) -> object:
    text = texts.get(name, "").strip()
    if not text:
        return None
    if name == "frames":
        number = whole(text)
        return text if number is None else number
    return _moment(text) if name == "create_time" else unicodedata.normalize("NFC", text)


def _moment(text: str) -> object:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return text
