"""The plan: a frozen value. What is shown is what is sent.

These types are the JSON form of a plan as well (json, «Plan»): their fields are its keys, and the
descriptions of the fields are those of its JSON Schema. :mod:`msauto.planning.saved_plan` writes and reads it.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections import Counter
from datetime import datetime
from fractions import Fraction
from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from msauto.errors import SourceLocation
from msauto.model.desired import Batch, TaskSource
from msauto.model.identity import ClipIdentity, same_text
from msauto.model.snapshot import AspectName, Effect, Json, Seen, Thing
from msauto.secrets.redaction import Secrets

Action = Literal["add", "change", "delete", "run"]
Kind = Literal["asset", "rss_channel", "database"]
CauseKind = Literal["no connection", "no answer", "busy", "account rejected", "not found"]
Basis = Literal["live", "ledger", "none"]
SkipReason = Literal["missing", "gone", "renamed", "when", "unfinalized", "left out"]
Method = Literal["GET", "HEAD", "POST", "PUT", "DELETE"]

ServerName = Annotated[str, Meta(description="the server's name in the inventory")]
DatabaseName = Annotated[str, Meta(description="the media database; empty for RSS channels")]
KindName = Annotated[Kind, Meta(description="asset, rss_channel or database")]
TargetName = Annotated[str, Meta(description="the asset's title, the channel, or the database")]


class Outside(Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """That others have changed a thing since a run wrote it; of an item, ``left`` has what differs."""

    left: Annotated[Json, Meta(description="how that run left it; null: no run made it")]
    run: Annotated[str, Meta(description="the last run that wrote it")]
    at: Annotated[str, Meta(description="when that run was, ISO 8601 in UTC")]
    user: Annotated[str, Meta(description="who changed it, where the server shows that")] = ""


class Change(Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """One difference between desired and live.

    ``before`` and ``after`` are JSON values; those of list items are mappings of the compared attributes, with
    positions in frames; ``None`` is absent. ``key``: ``Cue Point@750`` or ``uid 9`` for a marker,
    ``Playout/Tonight/Title`` for a link. For a handler, ``before`` is ``True`` where it runs before the deletion of
    its asset.
    """

    action: Annotated[Action, Meta(description="add, change, delete or run")]
    aspect: AspectName
    key: Annotated[
        str,
        Meta(
            description="which one: the field's name, the segment's number, the marker's uid, ..."
        ),
    ]
    before: Annotated[Json, Meta(description="the live value")]
    after: Annotated[Json, Meta(description="the desired value")]
    basis: Annotated[
        Basis,
        Meta(
            description="the origin of before: live, ledger (the server does not report it), none (not known)"
        ),
    ]
    reversible: Annotated[bool, Meta(description="whether undo can take it back")]
    source: Annotated[TaskSource, Meta(description="the place in the playbook")]
    losses: Annotated[
        int,
        Meta(
            ge=0,
            description="live items that are deleted or overwritten in whole or part, and no task names by key",
        ),
    ] = 0
    handler: Annotated[str, Meta(description="the name of the handler that runs")] = ""
    pending: Annotated[
        str, Meta(description="the earlier run that changed the target and did not run the handler")
    ] = ""
    secret: Annotated[
        bool,
        Meta(description="its values are secret: ***; it cannot be undone, as none is kept"),
    ] = False
    outside: Annotated[
        Outside | None, Meta(description="what others changed since the last run, if they did")
    ] = None

    @property
    def place(self) -> SourceLocation:
        """The place in the playbook."""
        return self.source.place

    @property
    def thing(self) -> Thing:
        """The aspect and the key."""
        return self.aspect, self.key


class Body(Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """The bytes of a request's body; :meth:`of` makes one. A hidden one has its media type only."""

    media_type: Annotated[str, Meta(description="the type of the content")]
    sha256: Annotated[str, Meta(description="the SHA-256 of the bytes, in hex")] = ""
    text: Annotated[str | None, Meta(description="the content, if it is UTF-8 text")] = None
    base64: Annotated[str | None, Meta(description="the content, if it is not text")] = None

    def __post_init__(self) -> None:
        if not self.is_hidden and hashlib.sha256(self.content).hexdigest() != self.sha256:
            raise ValueError("the body of a request does not match its sha256")

    @classmethod
    def of(cls, content: bytes, media_type: str = "text/plain; charset=utf-8") -> Body:
        """Return the body with a content."""
        sha256 = hashlib.sha256(content).hexdigest()
        try:
            return cls(media_type, sha256, text=content.decode("utf-8"))
        except UnicodeDecodeError:
            return cls(media_type, sha256, base64=b64encode(content).decode("ascii"))

    @property
    def is_hidden(self) -> bool:
        """Whether only the media type is known, as the content holds a secret."""
        return not self.sha256 and self.text is None and self.base64 is None

    @property
    def content(self) -> bytes:
        """The bytes. Raises ``ValueError`` where ``base64`` is invalid."""
        if self.base64 is not None:
            return b64decode(self.base64, validate=True)
        return (self.text or "").encode("utf-8")


class Request(Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """One HTTP request, built before anything is sent. A download (``dest``) changes nothing on the server."""

    method: Annotated[Method, Meta(description="the HTTP method")]
    path: Annotated[
        str,
        Meta(pattern=r"^/[!-~]*$(?!\n)", description="with the query, escaped: sent byte for byte"),
    ]
    changes: Annotated[
        tuple[Annotated[int, Meta(ge=0)], ...],
        Meta(description="which changes it makes, as indices into changes"),
    ] = ()
    body: Annotated[Body | None, Meta(description="what is sent along")] = None
    effects: Annotated[tuple[Effect, ...], Meta(description="what it does to which thing")] = ()
    dest: Annotated[
        str | None, Meta(description="the file that the answer to a GET is saved as")
    ] = None
    guarded: Annotated[
        bool,
        Meta(description="sent only after reading shows all effects of the requests before it"),
    ] = False
    secret: Annotated[
        bool,
        Meta(description="it sends a secret, in place of which there is ***"),
    ] = False


class Address(Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """How a target is read: an asset by title, or by ``namespace`` and identifier; a channel by name."""

    name: Annotated[str, Meta(description="a title, or a value of the key field")]
    namespace: Annotated[str, Meta(description="the key field; empty for a title")] = ""


class EmptiedList(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A list that ``exactly`` empties."""

    aspect: AspectName
    count: Annotated[int, Meta(description="how many items it had")]


class ShownItem(Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """A live segment or marker that the plan leaves as it is; frames count from the first one of the file."""

    name: Annotated[str, Meta(description="its number, or its uid")]
    lane: Annotated[str, Meta(description="its track; Segments for a segment")]
    start: Annotated[int, Meta(description="its first frame")]
    duration: Annotated[int, Meta(description="the length of a segment in frames")] = 0
    title: Annotated[str, Meta(description="its title")] = ""


class TargetContext(Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """What surrounds the changes of an asset, for the timeline only: it is not compared.

    ``items`` are given where a change concerns segments or markers.
    """

    frames: Annotated[int | None, Meta(description="the length of the clip in frames")] = None
    items: Annotated[
        tuple[ShownItem, ...], Meta(description="segments and markers that stay as they are")
    ] = ()


class TargetId(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """By what the ledger finds what it remembers: of an asset, the clip is compared, and its title finds candidates."""

    server: ServerName
    database: DatabaseName
    kind: KindName
    name: TargetName
    clip: Annotated[ClipIdentity, Meta(description="what the asset is")] = ClipIdentity()


def is_one_entry(one: TargetId, other: TargetId) -> bool:
    """Whether two sightings of a clip are of one entry: by ``link_id``, else by the title."""
    if one.clip.link_id is not None and one.clip.link_id == other.clip.link_id:
        return True
    return same_text(one.name, other.name)


class Target(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """One asset, channel or database of one server, with its changes and requests, or with its error.

    ``folder`` and ``places`` are texts as playbooks write them (:func:`~msauto.model.live.show_folder`); ``None`` is
    a folder that is not known.
    """

    server: ServerName
    database: DatabaseName
    kind: KindName
    name: TargetName
    folder: Annotated[str | None, Meta(description="the asset's home folder")] = None
    fingerprint: Annotated[
        str,
        Meta(
            description="the fingerprint of what the plan looks at and changes: another one makes it stale"
        ),
    ] = ""
    changes: Annotated[tuple[Change, ...], Meta(description="the differences")] = ()
    requests: Annotated[tuple[Request, ...], Meta(description="what is sent, in order")] = ()
    error: Annotated[str | None, Meta(description="why it cannot be planned")] = None
    address: Annotated[Address, Meta(description="how it is read before the first write")] = (
        Address("")
    )
    address_after: Annotated[
        Address, Meta(description="how it is read after the last write (a rename)")
    ] = Address("")
    clip: Annotated[
        ClipIdentity, Meta(description="what the asset is: each later answer is compared with it")
    ] = ClipIdentity()
    depends_on: Annotated[Seen, Meta(description="what the decisions of the plan depend on")] = (
        field(name="looked", default=Seen())
    )
    others: Annotated[Seen, Meta(description="what else reading showed, and no request names")] = (
        Seen()
    )
    unwanted: Annotated[
        tuple[tuple[AspectName, Json], ...],
        Meta(
            description="attributes of items that the tasks want to be absent: a new one is not as desired"
        ),
    ] = ()
    altered: Annotated[
        tuple[str, ...],
        Meta(description="values of the clip's identity that the requests may alter"),
    ] = ()
    rate: Annotated[Fraction | None, Meta(description="frames per second, as a fraction: 25/1")] = (
        None
    )
    wait: Annotated[
        float,
        Meta(
            ge=0, le=1_000_000_000, description="seconds that verification may wait for a restore"
        ),
    ] = 0.0
    emptied: Annotated[tuple[EmptiedList, ...], Meta(description="lists that exactly empties")] = ()
    places: Annotated[
        tuple[str, ...],
        Meta(description="folder and title of every other entry that shows the asset, where read"),
    ] = ()
    batch: Annotated[int, Meta(description="the index of its batch")] = 0
    context: Annotated[
        TargetContext | None, Meta(description="what surrounds its changes, to show them")
    ] = None
    holding: Annotated[
        tuple[Effect, ...] | UnsetType,
        Meta(
            description="what its tasks ask and needs no change: verification looks at it, too; not in any file"
        ),
    ] = UNSET
    cause: Annotated[
        CauseKind | UnsetType, Meta(description="the kind of its error, where it is one of these")
    ] = UNSET

    def __repr__(self) -> str:
        """Return a short form: a value of the plan may be a secret, and a target may have many."""
        counts = (
            "in error"
            if self.error is not None
            else f"{len(self.changes)} changes, {len(self.requests)} requests"
        )
        return f"<Target {self.server}: {self.kind} {self.name!r}: {counts}>"

    @property
    def id(self) -> TargetId:
        """By what the ledger finds what it remembers of it, as it was planned."""
        return TargetId(self.server, self.database, self.kind, self.name, self.clip)

    @property
    def title_after(self) -> str:
        """Its title after the run."""
        by_title = self.address_after.name if not self.address_after.namespace else ""
        return by_title or self.name

    @property
    def effects(self) -> tuple[tuple[Effect, ...], ...]:
        """The effects of each request."""
        return tuple([request.effects for request in self.requests])

    def request_with(self, thing: Thing) -> int | None:
        """Return the index of the first request that has an effect on a thing."""
        aspect, key = thing
        for index, request in enumerate(self.requests):
            for effect in request.effects:
                if effect.aspect == aspect and effect.key == key:
                    return index
        return None

    @property
    def loses(self) -> bool:
        """Whether something live is lost: the asset or an item of its lists is deleted, or an item is overwritten."""
        for change in self.changes:
            if change.action == "delete" or change.losses:
                return True
        return False


class SkippedTarget(Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """A target that the run does not treat, and why."""

    server: ServerName
    database: DatabaseName
    kind: KindName
    name: TargetName
    reason: Annotated[
        SkipReason,
        Meta(
            description="missing, gone (a run wrote it), renamed, when (no condition holds), unfinalized, or left out "
            "(it must wait for another run: a warning gives the reason)"
        ),
    ]
    title: Annotated[str, Meta(description="the title that its clip has now (renamed)")] = ""
    run: Annotated[str, Meta(description="the last run that wrote it (gone)")] = ""
    at: Annotated[str, Meta(description="when that run was, ISO 8601 in UTC")] = ""
    repeated: Annotated[
        bool, Meta(description="the last run of the playbooks skipped it for this reason, too")
    ] = False

    @property
    def identity(self) -> tuple[str, ...]:
        """What is the same from one run to the next."""
        return self.server, self.database, self.kind, self.name, self.reason


class Settlement(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What applying writes into the ledger before it sends anything: an item in doubt counts as settled."""

    target: Annotated[TargetId, Meta(description="the target that it belongs to")]
    item: Annotated[str, Meta(description="what is settled")]
    value: Annotated[Json, Meta(description="its value")]
    thing: Annotated[
        str,
        Meta(description="what an earlier run made, and is seen only now: its name in that run"),
    ] = ""


class Refusal(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A limit that the plan exceeds: shown with the plan; apply ends with 4 unless ``remedy`` is given."""

    code: Annotated[str, Meta(description="which limit")]
    limit: Annotated[int | str, Meta(description="what is allowed")]
    count: Annotated[int | str, Meta(description="what the plan would do")]
    remedy: Annotated[str, Meta(description="the flag that allows it")]
    links: Annotated[
        int, Meta(description="how many of the deletions are links and not assets")
    ] = 0


class Limits(Struct, frozen=True):
    """What a run may do without a flag that allows it (settings, «How limits work»): from the settings and flags.

    ``delete_assets``: how many assets may be deleted (``--allow-delete``). ``remove_items``: how many list
    items the run may lose without a flag. ``allow_remove`` (``--allow-remove``): how many it may lose, also if that
    empties a list. ``requests``: how many requests a run may send; ``None`` means unlimited. ``protected``: globs of
    ``folder/title`` of which no run may delete or lose anything. ``read_only``: those to which no run may write.
    """

    delete_assets: int = 0
    remove_items: int = 50
    allow_remove: int | None = None
    requests: int | None = None
    protected: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()


class InputHash(Struct, frozen=True, forbid_unknown_fields=True):
    """A file that the plan was made from."""

    path: Annotated[str, Meta(description="the path from the repository; absolute outside of it")]
    sha256: Annotated[
        str,
        Meta(
            description="the SHA-256 of its bytes, in hex; *** where it holds a secret or is not known"
        ),
    ]


class PlanOptions(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What shapes a plan besides its inputs: with these, the same plan is made again.

    From the command line, paths are as typed. In a plan file they are those from the repository, absolute outside of
    it; with a run, all are absolute.
    """

    playbooks: Annotated[tuple[str, ...], Meta(description="the playbooks")] = ()
    undo: Annotated[str, Meta(description="the run that it undoes, in place of playbooks")] = ""
    inventories: Annotated[
        tuple[str, ...], Meta(description="--inventory; without it, that of the settings")
    ] = ()
    server: Annotated[str | None, Meta(description="--server")] = None
    config: Annotated[
        str | None, Meta(description="--config; without it, the settings of the playbooks")
    ] = None
    extra_vars: Annotated[
        tuple[str, ...], Meta(description="--extra-vars; *** in place of a secret")
    ] = ()
    limit: Annotated[str | None, Meta(description="--limit")] = None
    tags: Annotated[tuple[str, ...], Meta(description="--tags")] = ()
    skip_tags: Annotated[tuple[str, ...], Meta(description="--skip-tags")] = ()
    targets: Annotated[tuple[str, ...], Meta(description="--target")] = ()
    forget_pending: Annotated[bool, Meta(description="--forget-pending")] = False
    now: Annotated[
        str, Meta(description="the time that `now` is in templates and selections, ISO 8601")
    ] = ""


class PlannedServer(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A server of the run. A plan is not valid for a server of the same name with another URL."""

    name: ServerName
    unchanged: Annotated[int, Meta(description="how many targets of it need no change")]
    kept: Annotated[
        int, Meta(description="how many targets are not as desired: others' edit is kept")
    ] = 0
    url: Annotated[str, Meta(description="the URL when the plan was made")] = ""


class Summary(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The counts of a plan."""

    assets: Annotated[int, Meta(description="assets that change")]
    add: Annotated[int, Meta(description="changes that add")]
    change: Annotated[int, Meta(description="changes of something that exists")]
    delete: Annotated[int, Meta(description="changes that remove")]
    run: Annotated[int, Meta(description="commands, downloads and other operations that run")]
    unchanged: Annotated[int, Meta(description="targets that are as desired")]
    skipped: Annotated[
        int, Meta(description="targets that the run does not treat, each with a reason")
    ]
    errors: Annotated[int, Meta(description="targets that cannot be planned")]
    requests: Annotated[int, Meta(description="requests that applying sends")]
    reads: Annotated[int, Meta(description="requests that planning sent")]
    outside: Annotated[
        int, Meta(description="changes of what others have changed since the last run")
    ] = 0
    kept: Annotated[
        int,
        Meta(
            description="targets that are not as desired: what others changed is kept, with a warning"
        ),
    ] = 0


COUNTS: Final = ("unchanged", "kept", "reads")
"""The counts of a summary that planning gives to the plan: of what is not among its targets."""


TargetKey = tuple[str, str, str, str]
"""Server, database, kind and name: what distinguishes the targets of a run."""


def target_key(target: Target) -> TargetKey:
    """Return the key of a target."""
    return target.server, target.database, target.kind, target.name


class Plan(Struct, frozen=True):
    """Everything that will be done. ``targets`` holds those that change or are in error, in the order of the run.

    ``created`` is ISO 8601, ``msauto`` the version, ``settings`` the settings file that was used, ``options`` what it
    was made with, without secrets. ``unchanged``, ``kept``
    and ``reads`` are described at :class:`Summary`; ``skipped`` are the targets that it does not treat, ``unreachable``
    names servers that do not answer.
    ``read_since``: when planning began to read; what was read long ago is read again before it is changed.
    ``secrets`` must not be shown: :func:`~msauto.secrets.redacted_plans.redact_plan` makes what is shown or kept.
    """

    created: str
    msauto: str
    inputs: tuple[InputHash, ...] = ()
    targets: tuple[Target, ...] = ()
    unchanged: int = 0
    kept: int = 0
    skipped: tuple[SkippedTarget, ...] = ()
    reads: int = 0
    refusals: tuple[Refusal, ...] = ()
    warnings: tuple[str, ...] = ()
    servers: tuple[PlannedServer, ...] = ()
    batches: tuple[Batch, ...] = ()
    settlements: tuple[Settlement, ...] = ()
    read_since: datetime | None = None
    unreachable: frozenset[str] = frozenset()
    secrets: Secrets = field(default_factory=Secrets)
    settings: InputHash | None = None
    options: PlanOptions = PlanOptions()

    def __repr__(self) -> str:
        """Return a short form: asyncio takes the repr of what a task returns, and a plan may hold 50,000 targets."""
        return f"<Plan {self.created}: {len(self.targets)} targets, {self.unchanged} unchanged>"

    @property
    def errors(self) -> int:
        """The number of targets that cannot be planned."""
        return len([target for target in self.targets if target.error is not None])

    @property
    def left_out(self) -> int:
        """The number of targets that must wait for another run."""
        return len([target for target in self.skipped if target.reason == "left out"])

    @property
    def requests(self) -> int:
        """The number of requests that applying sends."""
        return sum([len(target.requests) for target in self.targets])

    @property
    def summary(self) -> Summary:
        """The counts."""
        actions: Counter[Action] = Counter()
        assets = outside = 0
        for target in self.targets:
            if target.kind == "asset" and target.changes:
                assets += 1
            for change in target.changes:
                actions[change.action] += 1
                if change.outside is not None:
                    outside += 1
        return Summary(
            assets=assets,
            add=actions["add"],
            change=actions["change"],
            delete=actions["delete"],
            run=actions["run"],
            errors=self.errors,
            requests=self.requests,
            skipped=len(self.skipped),
            outside=outside,
            **{name: getattr(self, name) for name in COUNTS},
        )
