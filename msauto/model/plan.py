"""The plan: a frozen value. What is shown is what is sent; JSON form: the contract, «The plan»."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from msauto.model.desired import Batch, InputFile, TaskSource
from msauto.model.live import Folder
from msauto.secrets.taint import NO_SECRETS, Secrets

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Action = Literal["add", "change", "delete", "run"]
AspectName = Literal[
    "asset", "title", "field", "xmp", "segment", "segmentation", "marker", "link", "restore",
    "rss_item", "thumbnail", "proxy", "xmp_batch", "command",
]  # fmt: skip
Kind = Literal["asset", "rss_channel", "database"]
Basis = Literal["live", "ledger", "none"]
Method = Literal["GET", "HEAD", "POST", "PUT", "DELETE"]


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between wanted and live.

    ``key`` names the thing within its aspect: a field's name, a segment's number, ``Cue Point@750`` or ``uid 9``
    for a marker, ``Playout/Tonight/Title`` for a link, a guid. ``before`` and ``after`` are JSON values; those of
    list items are mappings of the compared attributes, frames as numbers; ``None`` is "not there". ``basis`` says
    where ``before`` comes from; ``exactly`` that an item goes because ``exactly`` does not name it. ``handler`` is the
    name of the handler that runs; ``before`` is ``True`` then where it runs before the deletion of its asset.
    ``pending`` names the earlier run that changed the target and left the handler undone. ``secret``: its values are
    hidden, for what is wanted was made with a secret (:mod:`msauto.secrets.redactor`).
    """

    action: Action
    aspect: AspectName
    key: str
    before: Json
    after: Json
    basis: Basis
    reversible: bool
    source: TaskSource
    exactly: bool = False
    handler: str = ""
    pending: str = ""
    secret: bool = False


@dataclass(frozen=True, slots=True)
class Expectation:
    """What must be seen of one thing when the target is read again.

    ``want`` maps attributes to values that must be equal (other attributes are free); ``None``: it must be gone.
    ``visible`` false: reading cannot show it (partner commands, what the server does not report).
    ``not_uids``: uids of markers that were there before, so that a new twin is told from an old one. ``kept``: texts
    that a changed marker had, and no task names: they must not be gone afterwards, whatever they say by then.
    ``secret``: ``want`` is hidden, so nothing can be compared with it.
    """

    aspect: AspectName
    key: str
    desired: Json
    visible: bool = True
    not_uids: tuple[int, ...] = ()
    secret: bool = False
    preserved: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Body:
    """The bytes of a request's body."""

    content: bytes
    media_type: str = "text/plain; charset=utf-8"

    @property
    def sha256(self) -> str:
        """The SHA-256 of the content, in hex."""
        return hashlib.sha256(self.content).hexdigest()


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, built before anything is sent; ``path`` is byte for byte what goes on the wire.

    ``changes`` are indices into the target's changes; ``expect`` what the request must show when read again.
    ``dest`` is the file that the answer to a GET is saved as: a download changes nothing on the server.
    ``guarded``: sent only once all that the requests before it expect has been seen. ``secret``: parts of it are
    hidden, so that it can be looked at, and never be sent.
    """

    method: Method
    path: str
    changes: tuple[int, ...] = ()
    body: Body | None = None
    expect: tuple[Expectation, ...] = ()
    dest: str | None = None
    guarded: bool = False
    secret: bool = False


@dataclass(frozen=True, slots=True)
class Address:
    """How a target is read again: an asset by title, or by ``namespace`` and identifier; a channel by name."""

    name: str
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """One asset, channel or database of one server, with its changes and requests, or with its error.

    ``address`` is how it is read before the first write, ``address_after`` once all is done (a rename).
    ``looked`` names what the fingerprint covers. ``rate`` lets reports write time codes beside frames. ``emptied``
    names the lists that ``exactly`` empties, with their length before; ``places`` are folder and title of
    every other entry that shows the asset, where they were read.
    ``batch`` is the number of the plan's batch that the target belongs to.
    """

    server: str
    database: str
    kind: Kind
    name: str
    folder: Folder | None = None
    fingerprint: str = ""
    changes: tuple[Change, ...] = ()
    requests: tuple[Request, ...] = ()
    error: str | None = None
    address: Address = Address("")
    address_after: Address = Address("")
    link_id: int | None = None
    create_time: str | None = None
    looked: tuple[str, ...] = ()
    rate: Fraction | None = None
    wait: float = 0.0  # seconds that the proof may wait for a restore
    emptied: tuple[tuple[AspectName, int], ...] = ()
    places: tuple[Folder, ...] = ()
    batch: int = 0

    @property
    def id(self) -> TargetId:
        """What the ledger keeps its memories of this target under: the title after the run, even if read by id."""
        by_title = self.address_after.name if not self.address_after.namespace else ""
        return TargetId(
            self.server,
            self.database,
            self.kind,
            by_title or self.name,
            self.link_id,
            self.create_time,
        )


@dataclass(frozen=True, slots=True)
class TargetId:
    """What a memory is kept under: a clip recorded anew is another clip."""

    server: str
    database: str
    kind: Kind
    name: str
    link_id: int | None = None
    create_time: str | None = None


@dataclass(frozen=True, slots=True)
class Settlement:
    """What applying writes into the ledger before anything is sent: that something left open is taken as settled."""

    target: TargetId
    item: str
    value: Json


@dataclass(frozen=True, slots=True)
class Refusal:
    """A limit that the plan breaks: shown with the plan, and apply ends with 4 unless ``remedy`` is given.

    ``links`` is how many of the ``count`` deletions are links and not assets.
    """

    code: str
    limit: int | str
    count: int | str
    remedy: str
    links: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be done, whole. ``targets`` holds those that change or are in error, in the order of the run.

    ``left_out`` counts targets that must wait for another run, each with a warning: applying ends with 3.
    ``unchanged`` counts targets that were compared and found as wanted, ``reads`` the requests that planning sent.
    ``urls`` tells where each server was: a plan is not for another one that bears the same name in another inventory.
    ``secrets`` must not show: :func:`~msauto.secrets.redactor.hide_plan` makes the plan that is shown or kept.
    """

    created: str
    msauto: str
    inputs: tuple[InputFile, ...] = ()
    targets: tuple[Target, ...] = ()
    unchanged: int = 0
    skipped: int = 0
    left_out: int = 0
    reads: int = 0
    refusals: tuple[Refusal, ...] = ()
    warnings: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    unchanged_by_server: tuple[tuple[str, int], ...] = field(default=())
    batches: tuple[Batch, ...] = ()
    settlements: tuple[Settlement, ...] = ()
    urls: tuple[tuple[str, str], ...] = ()
    secrets: Secrets = field(default=NO_SECRETS, repr=False)

    def __repr__(self) -> str:
        """Return a short form: asyncio takes the repr of what a task returns, and a plan may hold 50,000 targets."""
        return f"<Plan {self.created}: {len(self.targets)} targets, {self.unchanged} unchanged>"

    @property
    def errors(self) -> int:
        """How many targets cannot be planned."""
        return sum(target.error is not None for target in self.targets)

    def count(self, action: Action) -> int:
        """Count the changes of one action."""
        return sum(change.action == action for target in self.targets for change in target.changes)

    @property
    def requests(self) -> int:
        """How many requests applying sends."""
        return sum(len(target.requests) for target in self.targets)
