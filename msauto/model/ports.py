"""Ports: the effects that planning and applying need, passed in as parameters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct

from msauto.model.desired import SelectRef
from msauto.model.identity import ClipEntries
from msauto.model.live import Asset, Entry, Folder, Link, Listing, RssChannel, Xmp
from msauto.model.plan import Address, Plan, Request, Target, TargetId
from msauto.model.result import RequestResult, Result, TargetResult
from msauto.model.snapshot import Json, Part

if TYPE_CHECKING:
    from concurrent.futures import Future


NamedKind = Literal["database", "channel", "folder"]


class Reader(Protocol):
    """Reads one server, and remembers each answer; errors are ``ServerError``."""

    @property
    def reads(self) -> int:
        """Requests sent so far."""

    @property
    def whole(self) -> Collection[str]:
        """The databases of which all entries were read: reading them again sends nothing."""

    async def read_asset(self, database: str, address: Address) -> Asset | None:
        """Return the asset; ``None`` if the server reports that it does not exist.

        Where the answer to a title bears none, it gets the one that was asked for. No answer has another one.
        """

    async def read_xmp(self, database: str, address: Address, names: frozenset[str]) -> Xmp | None:
        """Return the XMP fields; ``names`` (empty: all) are read one by one if the server needs that.

        ``None``: the answer cannot be read. A requested name that is missing is empty on the server.
        """

    async def read_folder(self, database: str, folder: Folder) -> Listing | None:
        """Return the listing of a folder; ``None`` if the folder does not exist."""

    async def read_select(self, select: SelectRef) -> Sequence[Entry] | None:
        """Return the entries that match the listing's own filters; ``None`` if the folder does not exist.

        ``where`` is not evaluated. The filters are applied again here, because a server may ignore them.
        """

    async def read_links(self, database: str, asset: Asset) -> tuple[Link, ...]:
        """Return all links to an asset: from a listing of the whole database, unless the clip lists them itself."""

    async def read_entries(
        self, database: str, asset: Asset, *, in_doubt: bool = False
    ) -> ClipEntries:
        """Return the entries that show an asset, its home among them, from one listing of the database per run.

        ``in_doubt``: also all others that are not surely of other clips.
        """

    async def read_channel(self, name: str) -> RssChannel | None:
        """Return a channel; ``None`` if it does not exist."""

    async def has_database(self, name: str) -> bool:
        """Return whether the database exists."""

    async def read_names(self, kind: NamedKind, database: str = "") -> tuple[str, ...] | None:
        """Return all names of a kind, for a message; ``None`` if the server has no such list."""

    def fresh(self, *, homes: bool = False) -> Reader:
        """Return a reader of the same server that remembers no answers.

        ``homes``: it finds out in which folder a clip lives, which only comparing with a plan needs.
        """


class Answer(Struct, frozen=True):
    """A server's answer to a write that it did not reject. Nothing depends on its content.

    ``text``: the beginning of its content, for users of the client. ``sha256``: that of the file, in hex, if the
    request was a download.
    """

    status: int
    text: str = ""
    sha256: str = ""


class DownloadObserver(Protocol):
    """Receives the progress of a download."""

    def asked(self, seconds: float) -> None:
        """The request is sent; the server may be silent for ``seconds``."""

    def received(self, size: int, total: int | None) -> None:
        """``size`` bytes have arrived, of ``total`` if the server reports it."""


class WritePermit(Protocol):
    """The permission to send one write. It holds a place at the server until it is used or released."""

    async def send(self, request: Request) -> Answer:
        """Send a write, once. Raises ``NotSentError``, ``InDoubtError`` or ``RejectedError``.

        Returning means that the server accepted the request, not that it is verified.
        """

    def release(self) -> None:
        """Give the place back, and let another request be sent instead; does nothing after sending."""


class Sender(Protocol):
    """Sends writes, each with a permit.

    A request with a ``dest`` is a download: it is saved completely, or an error is raised.
    """

    async def permit(self) -> WritePermit:
        """Wait until a write may be sent. Reads of the same task then use its place, and wait for no other request."""

    async def fetch(self, request: Request, watch: DownloadObserver) -> Answer:
        """Save the answer to a request with a ``dest`` as that file; raises ``ServerError`` or ``DownloadError``."""


class Clock(Protocol):
    """Time, as a parameter."""

    def now(self) -> datetime:
        """The time of day, with a zone."""

    def monotonic(self) -> float:
        """Monotonic seconds."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


HashFile = Callable[[str], Awaitable[str | None]]
"""Returns the SHA-256 of a file in hex; ``None`` if the file does not exist, or cannot be read."""


class Remembered(Struct, frozen=True):
    """What is remembered of one clip, or of one entry of it, as ``target`` when a run kept it last.

    ``run`` is that run, ``seen`` has digests of what it left of some aspects. ``answer``: whether it is of the target
    that was asked for, *same* or *unknown*. ``is_crowd``: it stands for more clips of its values than are compared.
    """

    target: TargetId
    items: Mapping[str, Json]
    run: str = ""
    seen: Mapping[str, str] = {}
    answer: Literal["same", "unknown"] = "same"
    is_crowd: bool = False


class Memory(Protocol):
    """What was last written of a target. Items are named ``aspect:key``, e.g. ``field:comment``."""

    def recall(self, target: TargetId) -> Mapping[str, Json]:
        """Return the items remembered of a target, surely of the same clip."""

    def records(self, target: TargetId, titles: Iterable[str] = ()) -> Sequence[Remembered]:
        """Return what may be remembered of a target, the surest last; ``titles`` are others that it may have had.

        A clip is compared as everywhere. What is surely of another clip is left out.
        """

    def remember(self, target: TargetId, items: Mapping[str, Json]) -> None:
        """Remember items of a target, as it was kept; a value of ``None`` forgets the item."""

    def keep_clip(self, kept: TargetId, now: TargetId, run: str, seen: Mapping[str, str]) -> None:
        """Keep what a clip is now, the run that wrote to it, and digests of what it shows."""

    def forget_clip(self, kept: TargetId) -> None:
        """Forget a clip: it is deleted."""

    def forget_assets(self, server: str, database: str, prefix: str) -> None:
        """Forget the items of all assets of a database that start with ``prefix``."""

    def pending(self, server: str) -> frozenset[tuple[str, str]]:
        """Return database and title of the assets that have a ``pending:…`` item: a request that a run left."""

    def clips_of(self, server: str, database: str, title: str) -> Sequence[Remembered]:
        """Return what is remembered of each clip that had a title when it was kept last."""


class Journal(Protocol):
    """The write-ahead record of a run. Every call is durable when it returns, or when its ``together`` ends."""

    def together(self, *, alone: bool = False) -> AbstractContextManager[None]:
        """Make the calls inside, also those to the memory, in one transaction.

        With ``alone``, no other process writes with ``alone`` meanwhile: what is read inside stays true.
        """

    def commit(self, calls: Sequence[Callable[[], object]]) -> Future[None]:
        """Make the calls in one transaction; the future ends, in any thread, once they are durable.

        Raises what a call raises, after a rollback; the future carries what the commit raises. Other calls to the
        journal or the memory wait for the commit.
        """

    def check(self) -> None:
        """Raise if the ledger is lost, and with it the locks. Mostly takes no time: call it before each send."""

    def start(self, plan: Plan, playbooks: Sequence[str]) -> str:
        """Open a run with its plan; return the run's name."""

    def adopt(self, target: TargetId, thing: str, key: str, left: Json) -> None:
        """Complete the record of an earlier run: a thing that it made is seen. ``left``: the value, and that run."""

    def reopen(self, run: str, targets: Sequence[Target]) -> bool:
        """Continue the record of a run that died, with all its ``targets``; ``False`` if it is still alive."""

    def leave(self, run: str) -> None:
        """Release a run that was reopened and is not closed: it remains one that died."""

    def sending(self, run: str, target: Target, index: int) -> None:
        """Record that a request is about to be sent; with its first one, that a target is begun."""

    def settled(self, run: str, target: Target, index: int, result: RequestResult) -> None:
        """Record the outcome of a request."""

    def finished(self, run: str, result: TargetResult) -> None:
        """Record the outcome of a target."""

    def end(self, run: str, result: Result) -> None:
        """Close the run."""


class LiveTarget(Struct, frozen=True):
    """Everything that the verification of one target reads. ``asset``: ``None`` if it does not exist.

    ``places`` maps folder and title of each link to the entries there, ``None`` without the folder. ``links``: all
    links to the asset, ``None`` if not read. ``xmp``: ``None`` if not read, or unreadable. ``parts`` is what the
    reading shows of each aspect, made when it is first asked for.
    """

    asset: Asset | None = None
    xmp: Xmp | None = None
    places: Mapping[Folder, Sequence[Entry] | None] = {}
    channel: RssChannel | None = None
    links: tuple[Link, ...] | None = None
    parts: dict[str, Part | None] = {}
