"""Which entries of a listing are shortcuts to an asset (field notes: an entry of the same clip in another folder)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

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


class LinkIndex:
    """The entries of a listing by what makes them shortcuts: for many assets, where :func:`links_of` looks at all.

    Of an entry only what tells clips apart is kept.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._by: dict[object, list[tuple[int, Entry]]] = {}
        for number, entry in enumerate(entries):
            kept = {name: entry.attributes[name] for name in _IDENTITY if name in entry.attributes}
            slim = (number, replace(entry, attributes=kept))
            for key in _keys(entry):
                self._by.setdefault(key, []).append(slim)

    def of(self, asset: Asset) -> tuple[tuple[Link, ...], tuple[Link, ...]]:
        """Return the shortcuts to an asset as :func:`links_of` does, and those of them that are surely other clips.

        Others differ in both length and creation time: of the same title, and not in the same folder.
        """
        near = {number: entry for key in _keys(asset) for number, entry in self._by.get(key, ())}
        entries = [entry for _, entry in sorted(near.items())]
        links = links_of(asset, entries)
        strange = {(each.folder, each.title, each.link_id) for each in entries if _is_other(asset, each)}
        others = tuple(link for link in links if (link.folder, link.title, link.link_id) in strange)
        return tuple(link for link in links if link not in others), others


def _keys(clip: Asset | Entry) -> list[object]:
    keys: list[object] = [("title", clip.title)]
    keys += [] if clip.link_id is None else [("link", clip.link_id)]
    identity = _identity(clip)
    return keys if identity is None else [*keys, identity]


def _is_other(asset: Asset, entry: Entry) -> bool:
    return all(
        name in entry.attributes and name in asset.attributes and entry.attributes[name] != asset.attributes[name]
        for name in ("frames", "create_time")
    )


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
