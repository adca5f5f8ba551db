"""Snapshots: live state as ``msauto export`` gathers it, one target at a time."""

from __future__ import annotations

from dataclasses import dataclass

from msauto.model.live import Asset, Entry, Folder, Link, RssChannel, Xmp


@dataclass(frozen=True, slots=True)
class AssetSnapshot:
    """One asset with all that an asset task can say of it.

    ``title`` is how it was asked for. ``xmp`` and ``links`` are ``None`` where nobody looked, or the server does not
    tell. ``strangers`` are entries of other clips that bear its title: no link, but taken for one by title.
    ``origin`` is the frame of the file from which the server counts positions.
    """

    database: str
    title: str
    asset: Asset
    xmp: Xmp | None = None
    links: tuple[Link, ...] | None = None
    strangers: tuple[Link, ...] = ()
    origin: int = 0


@dataclass(frozen=True, slots=True)
class ChannelSnapshot:
    """One RSS channel."""

    channel: RssChannel


@dataclass(frozen=True, slots=True)
class SkippedEntry:
    """An entry of a listing that is no target of its own, and why. ``broken``: somebody should look at it."""

    database: str
    folder: Folder
    title: str
    why: str
    broken: bool = False


Snapshot = AssetSnapshot | SkippedEntry


@dataclass(frozen=True, slots=True)
class ListedEntry:
    """An entry of a listing, with just enough kept to find and to order it."""

    folder: Folder
    title: str

    @classmethod
    def of(cls, entry: Entry) -> ListedEntry:
        """Keep folder and title."""
        return cls(entry.folder, entry.title)
