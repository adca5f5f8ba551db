"""The fingerprint of what was compared: a target is stale if any of that has changed, and not otherwise."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from fractions import Fraction
from typing import Any, Final

from msgspec import structs

from msauto.aspects import ASPECTS
from msauto.model.facts import Facts, Need, NoAssetError
from msauto.model.identity import is_another_clip, plain
from msauto.model.live import Asset
from msauto.model.plan import Target
from msauto.model.ports import LiveTarget
from msauto.secrets.redaction import Secrets


def fingerprint(looked: Iterable[str], live: LiveTarget) -> str:
    """Return ``sha256:…`` over the canonical JSON of what ``looked`` names, as ``live`` shows it.

    Names: ``fact:frames`` for a fact that a template touched, ``field:comment``, ``xmp:dc:title``, ``segments``,
    ``markers``, ``link:Folder/Title``, ``links``, ``items`` and the like for what an aspect compared.
    """
    return f"sha256:{hashlib.sha256(_canonical_text(looked, live)).hexdigest()}"


def hide_if_secret(target: Target, live: LiveTarget, secrets: Secrets) -> Target:
    """Return a target whose fingerprint is not shown, if a secret is among what it covers.

    A hash of so little would let a reader of the plan try one guess after the other.
    """
    if not secrets or not target.changes:
        return target
    if not secrets.occurs_in(_canonical_text(target.looked, live).decode("utf-8", "surrogatepass")):
        return target
    return structs.replace(target, fingerprint=f"{_PRIVATE}{target.fingerprint}")


_PRIVATE: Final = "private:"


def _canonical_text(looked: Iterable[str], live: LiveTarget) -> bytes:
    there = live.asset is not None or live.channel is not None
    values = {
        name: look(live.asset, live, key) if there and (look := _LOOKS.get(kind)) else None
        for name in sorted(looked)
        for kind, _, key in [name.partition(":")]
    }
    return plain(_ENCODER.encode(values)).encode("utf-8", "surrogatepass")


def is_fresh(target: Target, live: LiveTarget) -> bool:
    """Return whether the state that planning compared is unchanged; a clip that was recorded again is another clip."""
    if target.kind == "asset" and (live.asset is None or is_another_clip(target.clip, live.asset)):
        return False
    return fingerprint(target.looked, live) == target.fingerprint.removeprefix(_PRIVATE)


def _canonical(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Fraction):
        return str(value)
    return dict(value) if isinstance(value, Mapping) else list(value)


_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=_canonical)


def _fact(asset: Asset | None, live: LiveTarget, name: str) -> Any:
    try:
        return Facts(asset=asset, xmp=live.xmp, links=live.links).get(name)
    except (AttributeError, Need, NoAssetError):
        return None


_LOOKS = {kind: look for aspect in ASPECTS.values() for kind, look in aspect.looks.items()} | {"fact": _fact}
