"""Which entries of a listing are shortcuts to an asset (field notes: an entry of the same clip in another folder)."""

from __future__ import annotations

from collections.abc import Iterable

from msauto.model.live import Asset, Entry, Link

_IDENTITY = ("orig_name", "create_time", "frames")


def links_of(asset: Asset, entries: Iterable[Entry]) -> tuple[Link, ...]:
    """Return the shortcuts: entries of the same clip, less the one that is its home.

    The interface gives no key of a clip that its links share. The same title is one, and so are equal and not empty
    orig_name, create_time and frames together.
    """
    same = [entry for entry in entries if _is_same(asset, entry)]
    home = _home(asset, same)
    return tuple(Link(entry.folder, entry.title, entry.link_id) for entry in same if entry is not home)


def _is_same(asset: Asset, entry: Entry) -> bool:
    if asset.link_id is not None and entry.link_id == asset.link_id:
        return True
    if entry.title == asset.title:
        return True
    identity = _identity(asset)
    return identity is not None and identity == _identity(entry)


def _home(asset: Asset, same: list[Entry]) -> Entry | None:
    for fits in (_is_own, _is_in_folder):
        home = next((entry for entry in same if fits(asset, entry)), None)
        if home is not None:
            return home
    return None


def _is_own(asset: Asset, entry: Entry) -> bool:
    return asset.link_id is not None and entry.link_id == asset.link_id and entry.folder == asset.folder


def _is_in_folder(asset: Asset, entry: Entry) -> bool:
    return entry.folder == asset.folder and entry.title == asset.title


def _identity(clip: Asset | Entry) -> tuple[str, ...] | None:
    values = tuple(clip.attributes.get(name, "").strip() for name in _IDENTITY)
    return values if all(values) else None
