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
    """That others have changed a thing since a run wrote it; of an item, ``left`` has what differs.

    Attributes:
        left: how that run left it; null: no run made it
        run: the last run that wrote it
        at: when that run was, ISO 8601 in UTC
        user: who changed it, where the server shows that
    """

    left: Json
    run: str
    at: str
    user: str = ""


class Change(Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """One difference between desired and live.

    ``before`` and ``after`` are JSON values; those of list items are mappings of the compared attributes, with
    positions in frames; ``None`` is absent. ``key``: ``Cue Point@750`` or ``uid 9`` for a marker,
    ``Playout/Tonight/Title`` for a link. For a handler, ``before`` is ``True`` where it runs before the deletion of
    its asset.

    Attributes:
        action: add, change, delete or run
        key: which one: the field's name, the segment's number, the marker's uid, ...
        before: the live value
        after: the desired value
        basis: the origin of before: live, ledger (the server does not report it), none (not known)
        reversible: whether undo can take it back
        source: the place in the playbook
        losses: live items that are deleted or overwritten in whole or part, and no task names by
            key
        handler: the name of the handler that runs
        pending: the earlier run that changed the target and did not run the handler
        secret: its values are secret: ***; it cannot be undone, as none is kept
        outside: what others changed since the last run, if they did
    """

    action: Action
    aspect: AspectName
    key: str
    before: Json
    after: Json
    basis: Basis
    reversible: bool
    source: TaskSource
    losses: Annotated[int, Meta(ge=0)] = 0
    handler: str = ""
    pending: str = ""
    secret: bool = False
    outside: Outside | None = None

    @property
    def place(self) -> SourceLocation:
        """The place in the playbook."""
        return self.source.place

    @property
    def thing(self) -> Thing:
        """The aspect and the key."""
        return self.aspect, self.key


class Body(Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """The bytes of a request's body; :meth:`of` makes one. A hidden one has its media type only.

    Attributes:
        media_type: the type of the content
        sha256: the SHA-256 of the bytes, in hex
        text: the content, if it is UTF-8 text
        base64: the content, if it is not text
    """

    media_type: str
    sha256: str = ""
    text: str | None = None
    base64: str | None = None

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
    """One HTTP request, built before anything is sent. A download (``dest``) changes nothing on the server.

    Attributes:
        method: the HTTP method
        path: with the query, escaped: sent byte for byte
        changes: which changes it makes, as indices into changes
        body: what is sent along
        effects: what it does to which thing
        dest: the file that the answer to a GET is saved as
        guarded: sent only after reading shows all effects of the requests before it
        secret: it sends a secret, in place of which there is ***
    """

    method: Method
    path: Annotated[str, Meta(pattern=r"^/[!-~]*$(?!\n)")]
    changes: tuple[Annotated[int, Meta(ge=0)], ...] = ()
    body: Body | None = None
    effects: tuple[Effect, ...] = ()
    dest: str | None = None
    guarded: bool = False
    secret: bool = False


class Address(Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """How a target is read: an asset by title, or by ``namespace`` and identifier; a channel by name.

    Attributes:
        name: a title, or a value of the key field
        namespace: the key field; empty for a title
    """

    name: str
    namespace: str = ""


class EmptiedList(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A list that ``exactly`` empties.

    Attributes:
        count: how many items it had
    """

    aspect: AspectName
    count: int


class ShownItem(Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """A live segment or marker that the plan leaves as it is; frames count from the first one of the file.

    Attributes:
        name: its number, or its uid
        lane: its track; Segments for a segment
        start: its first frame
        duration: the length of a segment in frames
        title: its title
    """

    name: str
    lane: str
    start: int
    duration: int = 0
    title: str = ""


class TargetContext(Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """What surrounds the changes of an asset, for the timeline only: it is not compared.

    ``items`` are given where a change concerns segments or markers.

    Attributes:
        frames: the length of the clip in frames
        items: segments and markers that stay as they are
    """

    frames: int | None = None
    items: tuple[ShownItem, ...] = ()


class TargetId(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """By what the ledger finds what it remembers: of an asset, the clip is compared, and its title finds candidates.

    Attributes:
        clip: what the asset is
    """

    server: ServerName
    database: DatabaseName
    kind: KindName
    name: TargetName
    clip: ClipIdentity = ClipIdentity()


def is_one_entry(one: TargetId, other: TargetId) -> bool:
    """Whether two sightings of a clip are of one entry: by ``link_id``, else by the title."""
    if one.clip.link_id is not None and one.clip.link_id == other.clip.link_id:
        return True
    return same_text(one.name, other.name)


class Target(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """One asset, channel or database of one server, with its changes and requests, or with its error.

    ``folder`` and ``places`` are texts as playbooks write them (:func:`~msauto.model.live.show_folder`); ``None`` is
    a folder that is not known.

    Attributes:
        folder: the asset's home folder
        fingerprint: the fingerprint of what the plan looks at and changes: another one makes it
            stale
        changes: the differences
        requests: what is sent, in order
        error: why it cannot be planned
        address: how it is read before the first write
        address_after: how it is read after the last write (a rename)
        clip: what the asset is: each later answer is compared with it
        others: what else reading showed, and no request names
        unwanted: attributes of items that the tasks want to be absent: a new one is not as desired
        altered: values of the clip's identity that the requests may alter
        rate: frames per second, as a fraction: 25/1
        wait: seconds that verification may wait for a restore
        emptied: lists that exactly empties
        places: folder and title of every other entry that shows the asset, where read
        batch: the index of its batch
        context: what surrounds its changes, to show them
        holding: what its tasks ask and needs no change: verification looks at it, too; not in any
            file
        cause: the kind of its error, where it is one of these
    """

    server: ServerName
    database: DatabaseName
    kind: KindName
    name: TargetName
    folder: str | None = None
    fingerprint: str = ""
    changes: tuple[Change, ...] = ()
    requests: tuple[Request, ...] = ()
    error: str | None = None
    address: Address = Address("")
    address_after: Address = Address("")
    clip: ClipIdentity = ClipIdentity()
    depends_on: Annotated[Seen, Meta(description="what the decisions of the plan depend on")] = (
        field(name="looked", default=Seen())
    )
    others: Seen = Seen()
    unwanted: tuple[tuple[AspectName, Json], ...] = ()
    altered: tuple[str, ...] = ()
    rate: Fraction | None = None
    wait: Annotated[float, Meta(ge=0, le=1_000_000_000)] = 0.0
    emptied: tuple[EmptiedList, ...] = ()
    places: tuple[str, ...] = ()
    batch: int = 0
    context: TargetContext | None = None
    holding: tuple[Effect, ...] | UnsetType = UNSET
    cause: CauseKind | UnsetType = UNSET

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
    """A target that the run does not treat, and why.

    Attributes:
        reason: missing, gone (a run wrote it), renamed, when (no condition holds), unfinalized, or
            left out (it must wait for another run: a warning gives the reason)
        title: the title that its clip has now (renamed)
        run: the last run that wrote it (gone)
        at: when that run was, ISO 8601 in UTC
        repeated: the last run of the playbooks skipped it for this reason, too
    """

    server: ServerName
    database: DatabaseName
    kind: KindName
    name: TargetName
    reason: SkipReason
    title: str = ""
    run: str = ""
    at: str = ""
    repeated: bool = False

    @property
    def identity(self) -> tuple[str, ...]:
        """What is the same from one run to the next."""
        return self.server, self.database, self.kind, self.name, self.reason


class Settlement(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What applying writes into the ledger before it sends anything: an item in doubt counts as settled.

    Attributes:
        target: the target that it belongs to
        item: what is settled
        value: its value
        thing: what an earlier run made, and is seen only now: its name in that run
    """

    target: TargetId
    item: str
    value: Json
    thing: str = ""


class Refusal(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A limit that the plan exceeds: shown with the plan; apply ends with 4 unless ``remedy`` is given.

    Attributes:
        code: which limit
        limit: what is allowed
        count: what the plan would do
        remedy: the flag that allows it
        links: how many of the deletions are links and not assets
    """

    code: str
    limit: int | str
    count: int | str
    remedy: str
    links: int = 0


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
    """A file that the plan was made from.

    Attributes:
        path: the path from the repository; absolute outside of it
        sha256: the SHA-256 of its bytes, in hex; *** where it holds a secret or is not known
    """

    path: str
    sha256: str


class PlanOptions(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What shapes a plan besides its inputs: with these, the same plan is made again.

    From the command line, paths are as typed. In a plan file they are those from the repository, absolute outside of
    it; with a run, all are absolute.

    Attributes:
        playbooks: the playbooks
        undo: the run that it undoes, in place of playbooks
        inventories: --inventory; without it, that of the settings
        server: --server
        config: --config; without it, the settings of the playbooks
        extra_vars: --extra-vars; *** in place of a secret
        limit: --limit
        tags: --tags
        skip_tags: --skip-tags
        targets: --target
        forget_pending: --forget-pending
        now: the time that `now` is in templates and selections, ISO 8601
    """

    playbooks: tuple[str, ...] = ()
    undo: str = ""
    inventories: tuple[str, ...] = ()
    server: str | None = None
    config: str | None = None
    extra_vars: tuple[str, ...] = ()
    limit: str | None = None
    tags: tuple[str, ...] = ()
    skip_tags: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    forget_pending: bool = False
    now: str = ""


class PlannedServer(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A server of the run. A plan is not valid for a server of the same name with another URL.

    Attributes:
        unchanged: how many targets of it need no change
        kept: how many targets are not as desired: others' edit is kept
        url: the URL when the plan was made
    """

    name: ServerName
    unchanged: int
    kept: int = 0
    url: str = ""


class Summary(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The counts of a plan.

    Attributes:
        assets: assets that change
        add: changes that add
        change: changes of something that exists
        delete: changes that remove
        run: commands, downloads and other operations that run
        unchanged: targets that are as desired
        skipped: targets that the run does not treat, each with a reason
        errors: targets that cannot be planned
        requests: requests that applying sends
        reads: requests that planning sent
        outside: changes of what others have changed since the last run
        kept: targets that are not as desired: what others changed is kept, with a warning
    """

    assets: int
    add: int
    change: int
    delete: int
    run: int
    unchanged: int
    skipped: int
    errors: int
    requests: int
    reads: int
    outside: int = 0
    kept: int = 0


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
        assets = outside = errors = requests = 0
        for target in self.targets:
            requests += len(target.requests)
            if target.error is not None:
                errors += 1
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
            errors=errors,
            requests=requests,
            skipped=len(self.skipped),
            outside=outside,
            **{name: getattr(self, name) for name in COUNTS},
        )
