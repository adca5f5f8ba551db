"""Snapshots: live state as ``msauto export`` reads it, one target at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from msauto.model.live import Asset, Folder, Link, RssChannel, Xmp


@dataclass(frozen=True, slots=True)
class AssetSnapshot:
    """One asset with everything that an asset task can declare.

    ``title``: the requested title. ``xmp`` and ``links``: ``None`` if not read, or not reported. ``strangers``: entries
    of other clips with the same title, which a search by title takes for links. ``origin``: the frame of the file from
    which the server counts positions.
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
    """An entry of a listing that is not exported, and why. ``broken``: the user should check it."""

    database: str
    folder: Folder
    title: str
    why: str
    broken: bool = False


Snapshot = AssetSnapshot | SkippedEntry


class ListedEntry(NamedTuple):
    """The folder and title of an entry: what is needed to find and to order it."""

    folder: Folder
    title: str
