"""The fingerprint of what was compared: a saved plan is stale if any of that has changed, and not otherwise."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from fractions import Fraction
from typing import Any

from msgspec import structs

from msauto.diffing.comparison import entry_called, plain
from msauto.model.facts import Facts, Need, NoAssetError
from msauto.model.live import Asset, Segment, parse_folder, show_folder
from msauto.model.plan import Target
from msauto.model.ports import LiveTarget
from msauto.secrets.taint import Secrets
from msauto.verification.expectations import link_entry


def fingerprint(looked: Iterable[str], live: LiveTarget) -> str:
    """Return ``sha256:…`` over the canonical JSON of what ``looked`` names, as ``live`` shows it.

    Names: ``fact:frames`` for a fact that a template touched, ``field:comment``, ``xmp:dc:title``, ``segments``,
    ``markers``, ``link:Folder/Title``, ``links``, ``items`` and the like for what an aspect compared.
    """
    return f"sha256:{hashlib.sha256(_canonical_text(looked, live)).hexdigest()}"


def slow_if_secret(target: Target, live: LiveTarget, secrets: Secrets) -> Target:
    """Return a target whose fingerprint is salted and slow, if a secret is among what it covers.

    A plain hash of so little would let anybody who sees the plan try one guess after the other.
    """
    if not secrets or not target.changes:
        return target
    if not secrets.in_(_canonical_text(target.looked, live).decode("utf-8", "surrogatepass")):
        return target
    return structs.replace(target, fingerprint=_slow(target.looked, live, os.urandom(16)))


def _slow(looked: Iterable[str], live: LiveTarget, salt: bytes) -> str:
    digest = hashlib.scrypt(_canonical_text(looked, live), salt=salt, n=2**14, r=8, p=1, dklen=32)
    return f"{_SLOW}{salt.hex()}:{digest.hex()}"


_SLOW = "scrypt:"


def _canonical_text(looked: Iterable[str], live: LiveTarget) -> bytes:
    values = {name: _look(name, live) for name in sorted(looked)}
    text = json.dumps(values, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=_canonical)
    return plain(text).encode("utf-8", "surrogatepass")


def is_fresh(target: Target, live: LiveTarget) -> bool:
    """Tell whether what was compared when planning is still so, and of the same clip: one recorded anew is another."""
    if target.kind == "asset" and (live.asset is None or not _is_same_clip(target, live.asset)):
        return False
    if target.fingerprint.startswith(_SLOW):
        salt = bytes.fromhex(target.fingerprint.split(":")[1])
        return _slow(target.looked, live, salt) == target.fingerprint
    return fingerprint(target.looked, live) == target.fingerprint


def _is_same_clip(target: Target, asset: Asset) -> bool:
    return (asset.link_id, asset.attributes.get("create_time")) == (target.link_id, target.create_time)


def _canonical(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Fraction):
        return str(value)
    return dict(value) if isinstance(value, Mapping) else list(value)


def _look(name: str, live: LiveTarget) -> Any:
    kind, _, key = name.partition(":")
    if kind == "items":
        return [structs.asdict(item) for item in live.channel.items] if live.channel else None
    if live.asset is None:
        return None
    whole = _WHOLE.get(name)
    if whole is not None:
        return whole(live.asset, live)
    return _KEYED[kind](live.asset, live, key) if kind in _KEYED else None


def _length(asset: Asset, _: LiveTarget) -> Any:
    return [asset.frames, asset.attributes.get("frame_time"), asset.attributes.get("create_time")]


def _segments(asset: Asset, _: LiveTarget) -> Any:
    return sorted((_segment(segment) for segment in asset.segments), key=lambda segment: segment["number"])


def _segment(segment: Segment) -> dict[str, Any]:
    return structs.asdict(segment)


def _markers(asset: Asset, _: LiveTarget) -> Any:
    markers = sorted(asset.markers, key=lambda marker: marker.uid)
    return [{"uid": marker.uid, "frame": marker.frame, **marker.fields} for marker in markers]


def _links(_: Asset, live: LiveTarget) -> Any:
    links = live.links
    return None if links is None else sorted(show_folder((*link.folder, link.title)) for link in links)


_WHOLE: Mapping[str, Callable[[Asset, LiveTarget], Any]] = {
    "asset": lambda *_: True,
    "folder": lambda asset, _: asset.folder,
    "title": lambda asset, _: asset.title,
    "finalized": lambda asset, _: asset.finalized,
    "hires": lambda asset, _: bool(asset.hires),
    "create_time": lambda asset, _: asset.attributes.get("create_time"),
    "length": _length,
    "segments": _segments,
    "markers": _markers,
    "links": _links,
}


def _fact(asset: Asset, live: LiveTarget, name: str) -> Any:
    try:
        return Facts(asset=asset, xmp=live.xmp, links=live.links).get(name)
    except (AttributeError, Need, NoAssetError):
        return None


def _link(_: Asset, live: LiveTarget, key: str) -> Any:
    *folder, title = parse_folder(key) or ("",)
    return entry_called(live.folders.get(tuple(folder)) or (), tuple(folder), title) is not None


def _link_field(_: Asset, live: LiveTarget, key: str) -> Any:
    link, _sign, name = key.rpartition("#")
    entry = link_entry(link, live)
    return None if entry is None else [entry.link_id, entry.attributes.get(name)]


_KEYED: Mapping[str, Callable[[Asset, LiveTarget, str], Any]] = {
    "fact": _fact,
    "field": lambda asset, _, name: asset.attributes.get(name),
    "xmp": lambda _, live, name: None if live.xmp is None else list(live.xmp.get(name, ())),
    "link": _link,
    "link-field": _link_field,
}
