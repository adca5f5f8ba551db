"""Which answers and entries are of one clip. The interface gives no key that a clip and its links share.

A link is an entry of the same clip, with a ``link_id`` of its own (field notes, «Facts from public manuals»). So two
answers are compared by what belongs to the clip and not to an entry: its file, when it was made, how long it is.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from msauto.model.live import Asset, Entry, whole

IDENTITY: Final = ("orig_name", "create_time", "frames")
"""Attributes of a clip that all its entries share, and that change only when it is recorded anew."""

Identity = tuple[object, ...]


def identity_of(clip: Asset | Entry) -> Identity | None:
    """Return the values of ``IDENTITY``; ``None`` where one of them is not reported."""
    values = known_identity(clip)
    return None if None in values else values


def may_be_same_clip(one: Asset | Entry, other: Asset | Entry) -> bool:
    """Tell whether two of the values of ``IDENTITY`` are equal and none differs: where one of them is not reported."""
    equal = [name for name in IDENTITY if (value := _value(one, name)) is not None and value == _value(other, name)]
    return len(equal) > 1 and not differing(one, other)


def known_identity(clip: Asset | Entry) -> Identity:
    """Return the values of ``IDENTITY``, ``None`` for what is not reported; a clip that grows has no length yet."""
    orig_name, create_time, frames = (_value(clip, name) for name in IDENTITY)
    return orig_name, create_time, "recording" if clip.finalized is False else frames


def clip_key(asset: Asset) -> Identity | None:
    """Return what two answers of one clip have in common; ``None`` where too little is reported to tell.

    A clip without a high-resolution file is told by its archive copy or its proxy, where two values are reported.
    """
    identity = known_identity(asset)
    file = asset.hires or ((asset.archive or asset.proxy) and identity.count(None) < 2)
    if not file and None in identity:
        return None
    return (asset.hires or None, *identity)


def differing(one: Asset | Entry, other: Asset | Entry) -> tuple[str, ...]:
    """Return the names of the identity attributes that both report, and that differ."""
    return tuple(name for name in IDENTITY if _differ(_value(one, name), _value(other, name)))


def is_same_clip(one: Asset, other: Asset) -> bool:
    """Tell whether two answers may be of one clip: nothing of it differs, and enough of it is reported.

    The same file may be used by several clips, so it is not enough: the markers and segments must be the same as well.
    Whether equal values mean one clip on this server is for :mod:`msauto.server.clip_identity` to say.
    """
    key = clip_key(one)
    return key is not None and key == clip_key(other) and content_of(one) == content_of(other)


def is_other_clip(one: Asset, other: Asset) -> bool:
    """Tell whether two answers are surely of two clips."""
    return bool(differing(one, other)) or bool(one.hires and other.hires and one.hires != other.hires)


def fits(entry: Entry, asset: Asset) -> bool:
    """Tell whether an answer may be of the clip that a listing showed at ``entry``.

    An equal ``link_id`` is the entry itself, unless the clip was recorded anew; the length may have grown since the
    listing where the creation time says that it is the same recording. Another one may be a link of the same clip that
    bears the same title: then nothing that both report may differ, and the creation time or the length must be reported
    by both. A server may give all entries one ``link_id``, so an equal one alone proves nothing.
    """
    different = differing(entry, asset)
    if entry.link_id is not None and entry.link_id == asset.link_id:
        return not different or (different == ("frames",) and _value(entry, "create_time") is not None)
    if different:
        return False
    if entry.link_id is None or asset.link_id is None:
        return True
    return any(
        _value(entry, name) is not None and _value(asset, name) is not None for name in ("create_time", "frames")
    )


def content_of(asset: Asset) -> Identity:
    """Return what belongs to the clip, without positions: some servers count them from the IN point of the entry."""
    markers = frozenset((marker.uid, frozenset(marker.fields.items())) for marker in asset.markers)
    segments = frozenset((segment.number, segment.titles, segment.duration) for segment in asset.segments)
    return markers, segments, asset.archive, asset.proxy


def _differ(one: object, other: object) -> bool:
    return one is not None and other is not None and one != other


def _value(clip: Asset | Entry, name: str) -> object:
    attributes: Mapping[str, str] = clip.attributes
    text = attributes.get(name, "").strip()
    if not text or (name == "frames" and clip.finalized is False):
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
