"""Ports: what planning and applying need of the world, handed in; tests pass real small ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from msauto.model.desired import SelectRef
from msauto.model.live import Asset, ClipEntries, Entry, Folder, Link, Listing, RssChannel, Xmp
from msauto.model.plan import Address, Json, Plan, Request, Target, TargetId
from msauto.model.result import RequestResult, Result, TargetResult


@dataclass(frozen=True, slots=True)
class XmpAnswer:
    """XMP fields of an asset; ``fields`` is ``None`` where the server's answer cannot be read, or never is.

    A name that was asked for and is not in ``fields`` is empty on the server.
    """

    fields: Xmp | None


class Reader(Protocol):
    """Reads one server. Within one reader each answer is asked for once; errors are ``ServerError``."""

    @property
    def reads(self) -> int:
        """Requests sent so far."""

    async def read_asset(self, database: str, address: Address) -> Asset | None:
        """Return the asset, or ``None`` where the server says that there is none."""

    async def read_xmp(self, database: str, address: Address, names: frozenset[str]) -> XmpAnswer:
        """Return the XMP fields; ``names`` (empty: all) matter only where the server must be asked one by one."""

    async def read_folder(self, database: str, folder: Folder) -> Listing | None:
        """Return a folder's listing, or ``None`` where there is no such folder."""

    async def read_select(self, select: SelectRef) -> Sequence[Entry] | None:
        """Return the entries that the listing's own filters leave, ``None`` where the folder is unknown.

        ``where`` is not looked at. Filters are applied once more on our side, for a server may ignore them.
        """

    async def read_links(self, database: str, asset: Asset) -> tuple[Link, ...]:
        """Return all shortcuts to an asset: a listing of the whole database unless the clip lists them itself."""

    async def read_entries(self, database: str, asset: Asset) -> ClipEntries:
        """Return the entries that may show an asset, its home among them: one listing of the whole database for a run.

        Entries of another title are candidates: their creation time and length are equal.
        """

    async def read_other_clips(self, database: str, asset: Asset, most: int) -> Sequence[Entry]:
        """Return some entries of clips that surely are others: their creation time, length or original name differ."""

    async def read_channel(self, name: str) -> RssChannel | None:
        """Return a channel, or ``None`` where there is no such channel."""

    async def has_database(self, name: str) -> bool:
        """Tell whether the database itself is there."""

    def fresh(self) -> Reader:
        """Return a reader of the same server that has asked nothing yet: for proofs."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's answer to a write that it did not reject. Nothing in it is relied on.

    ``sha256`` is that of the file, in hex, where the request was a download.
    """

    status: int
    text: str = ""
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class PartialDownload:
    """The beginning of a download that broke off: ``size`` bytes in the file ``name`` beside its ``dest``.

    ``request`` is the path that was asked for, ``sha256`` that of the bytes in hex, ``validator`` the server's word for
    the very content (a strong ETag, or a date), ``total`` the bytes of the whole file, if it told.
    """

    name: str
    request: str
    size: int
    sha256: str
    validator: str
    total: int | None = None


class DownloadObserver(Protocol):
    """Is told how a download goes, and keeps what is needed to go on with it another time."""

    @property
    def part(self) -> PartialDownload | None:
        """What an earlier run has left."""

    @property
    def keeps(self) -> bool:
        """Whether what is kept is found again."""

    def keep(self, part: PartialDownload | None) -> None:
        """Keep what is needed to go on from here; ``None``: nothing is left."""

    def asked(self, received: int, seconds: float) -> None:
        """The request leaves, ``received`` bytes being there; the server may be silent for so many ``seconds``."""

    def received(self, size: int, total: int | None) -> None:
        """So many bytes are there, of ``total`` if the server told."""


class Sender(Protocol):
    """Sends one write, once. Raises ``NotSentError``, ``FateUnknownError`` or ``RejectedError``.

    A request with a ``dest`` is a download, and fetched: saved whole, and any error means that it was not.
    """

    async def send(self, request: Request) -> Answer:
        """Send; returning means that the server accepted it, not that it is proved."""

    async def fetch(self, request: Request, watch: DownloadObserver) -> Answer:
        """Save the answer to a request with a ``dest`` as that file; raises ``ServerError`` or ``DownloadError``."""


class Clock(Protocol):
    """Time, handed in."""

    def now(self) -> datetime:
        """The time of day, with a zone."""

    def monotonic(self) -> float:
        """Seconds that never go back."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class Disk(Protocol):
    """Files of this machine."""

    async def sha256(self, path: str) -> str | None:
        """Return the SHA-256 of a file in hex; ``None`` where there is no such file, or it cannot be read."""


class NoDisk:
    """A disk without files."""

    async def sha256(self, path: str) -> str | None:  # noqa: ARG002 - there is nothing to look at
        """Return ``None``."""
        return None


class Memory(Protocol):
    """What was last written of a target. Items are named ``aspect:key``, e.g. ``field:comment``."""

    def recall(self, target: TargetId) -> Mapping[str, Json]:
        """Return the items that we remember of a target; empty if none."""

    def remember(self, target: TargetId, items: Mapping[str, Json]) -> None:
        """Keep items; a value of ``None`` forgets the item."""

    def forget_assets(self, server: str, database: str, prefix: str) -> None:
        """Forget the items of all assets of a database whose names begin so."""

    def pending(self, server: str) -> frozenset[tuple[str, str]]:
        """Return database and title of the assets of which an ``pending:…`` item is remembered: what a run left undone."""


class Journal(Protocol):
    """The write-ahead record of a run. Every call is durable when it returns, or when its ``together`` ends."""

    def together(self) -> AbstractContextManager[None]:
        """Make the calls inside, and those of the memory beside it, durable as one: all of them or none."""

    def commit(self, calls: Sequence[Callable[[], object]]) -> Future[None]:
        """Make the calls as :meth:`together` does; the future is fulfilled, by any thread, once they are durable.

        Raises what a call raises, and then nothing of them is kept; the future carries what a commit raises. Whatever
        else is asked of the journal or the memory meanwhile waits for it.
        """

    def start(self, plan: Plan, playbooks: Sequence[str]) -> str:
        """Open a run with its plan; return the run's name."""

    def reopen(self, run: str, targets: Sequence[Target]) -> bool:
        """Go on writing about a run that died, ``targets`` being all of its; ``False`` where it is alive after all."""

    def leave(self, run: str) -> None:
        """Let go of a run that was reopened and is not closed: it stays one that died."""

    def planned(self, run: str, target: Target) -> None:
        """All requests of a target, before its first is sent."""

    def sending(self, run: str, target: Target, index: int) -> None:
        """The request is about to leave."""

    def settled(self, run: str, target: Target, index: int, result: RequestResult) -> None:
        """What came of the request."""

    def finished(self, run: str, result: TargetResult) -> None:
        """What came of the target."""

    def end(self, run: str, result: Result) -> None:
        """Close the run."""


@dataclass(frozen=True, slots=True)
class LiveTarget:
    """All that proving one target reads again. ``asset`` ``None``: not there.

    ``folders`` maps each folder that a link is wanted in to its entries, ``None`` for a folder that is not there.
    ``links`` are all shortcuts to the asset, ``None`` where nobody asked. ``xmp`` ``None``: not read, or unreadable.
    """

    asset: Asset | None = None
    xmp: Xmp | None = None
    folders: Mapping[Folder, Sequence[Entry] | None] = field(default_factory=dict)
    channel: RssChannel | None = None
    links: tuple[Link, ...] | None = None
