"""A dry run that ran: the plan of the real servers is applied in full to embedded copies of what it looked at.

To the real servers it sends GET and HEAD only, and it only reads the ledger. The copies have a ledger of their own, in
a folder that goes away. There the playbooks are planned, applied, planned again, and undone.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct, structs

from msauto.api.inputs import tell_nothing
from msauto.api.loading import Loaded
from msauto.api.run import RunOptions, apply_unasked, check_plan, plan_only
from msauto.api.stages import undo_of
from msauto.api.values import RunPlan, RunResult
from msauto.api.workplace import ThisProcess
from msauto.codec import to_key
from msauto.errors import MsautoError, RefusedError
from msauto.ledger.ledger import Ledger, LedgerPlace
from msauto.model.clip_entries import clip_key, index_links
from msauto.model.events import Notify, ignore
from msauto.model.fields import FIELDS_OF_EVERY_CLIP, LINK_FIELD
from msauto.model.identity import ClipEntries
from msauto.model.live import Asset, AssetSnapshot, Entry, Folder, Link, Listing, RssChannel
from msauto.model.plan import Address, Change, Plan, Request, Target, target_key
from msauto.model.requests import PROFILES
from msauto.model.server import Auth, Dialect, ServerSpec, Tls
from msauto.plugins.simulator.content import channel_content, clip_content, entry_fields
from msauto.plugins.simulator.embedded import Fault, ServerState, SimClip, SimDialect, Simulator
from msauto.plugins.simulator.embedded.seed import clip_from_content, item_from_content
from msauto.plugins.simulator.embedded.wire import decode_address
from msauto.report.json import dump
from msauto.report.layout import Layout, Style, render_lines, words
from msauto.report.sanitizing import visible
from msauto.report.texts import target_heading
from msauto.secrets.redacted_plans import redact_plan
from msauto.server.client import AsyncMediaServer
from msauto.server.downloads import FetchResult, hash_file
from msauto.server.error_answers import RawAnswer
from msauto.server.listing import ListingReading
from msauto.server.reader import counted_from_the_file

T = TypeVar("T")
_NO_LIMIT: Final = RunOptions(
    allow_delete=10**9, allow_remove=10**9, allow_requests=10**9, keep_going=True
)
_FIRST_WRITE: Final = "^(POST|PUT|DELETE) *1"
_WIDE: Final = Layout(width=100)


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """What came of a rehearsal, from :func:`msauto.rehearse`.

    ``plan`` is that of the real servers. ``result`` is what came of it on the copies, ``again`` the plan after it, and
    ``undone`` what came of undoing it (``None`` if nothing was sent). ``unlike`` names what only the servers plan, or
    only the copies; ``unknown`` what no copy can show. ``left`` names the changes that undo did not bring back: they
    are not planned again.
    """

    plan: RunPlan
    result: RunResult
    again: RunPlan
    undone: RunResult | None
    unlike: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    @property
    def repeated(self) -> tuple[Target, ...]:
        """What the plan after it still has to do, without what was left out, and commands with ``run: always``."""
        left_out = {target_key(target) for target in self.plan.targets if target.error}
        repeated = []
        for target in self.again.targets:
            is_new_error = bool(target.error) and target_key(target) not in left_out
            if is_new_error or _is_due(target):
                repeated.append(target)
        return tuple(repeated)

    @property
    def ok(self) -> bool:
        """Whether all was done as planned, the second plan is empty, and undo brought back what it can."""
        undone = self.undone is None or self.undone.ok
        return (
            not self.plan.errors
            and self.result.ok
            and undone
            and not (self.repeated or self.unlike or self.not_undone)
        )

    @property
    def not_undone(self) -> tuple[str, ...]:
        """What undo did not bring back, though the plan calls it reversible."""
        reversible: set[str] = set()
        for target in redact_plan(self.result.applied.plan).targets:
            for change in target.changes:
                if change.reversible:
                    reversible.add(_name(target, change))
        return tuple([text for text in self.left if text in reversible or self.undone is None])

    def to_json(self) -> str:
        """Return the document of ``--format json``, in which are those of the runs and of the plan between them."""
        document: dict[str, Any] = {"format": "msauto-rehearsal", "version": 1}
        for name in ("ok", "unlike", "unknown", "left"):
            document[name] = getattr(self, name)
        for name in ("result", "again", "undone"):
            part: RunPlan | RunResult | None = getattr(self, name)
            document[name] = part and json.loads(part.to_json())
        return dump(document)

    def to_text(self, layout: Layout = _WIDE) -> str:
        """Return what ``msauto rehearse`` prints below the plan and the result."""
        lists = {
            "The second plan still changes:": map(target_heading, self.repeated),
            "The copy plans these otherwise than the server:": self.unlike,
            "No copy can show what these do:": self.unknown,
            "Undo does not bring back:": self.left,
        }
        lines = []
        for heading, texts in lists.items():
            items = [words(f"  {visible(text)}", hang=4) for text in texts]
            if items:
                lines += [words(heading, hang=4), *items]
        style: Style = "bold" if self.ok else "red"
        lines.append(words(self._closing, style))
        return "".join(render_lines(lines, layout))

    @property
    def _closing(self) -> str:
        """The last sentence: whether all was as planned, and on a copy of which servers."""
        facts = ["as planned" if self.ok else "not everything was as planned"]
        if not self.repeated:
            facts.append("the second plan is empty")
        if self.undone is not None and not self.undone.ok:
            facts.append("undo is not all verified")
        elif self.undone is not None and not (self.left or self.unknown):
            facts.append("undo brings everything back")
        names = []
        for spec in self.plan.loaded.resolved.specs:
            if spec.name not in self.plan.unredacted.unreachable:
                names.append(visible(spec.name))
        servers = ", ".join(names) or "no server"
        return f"Rehearsed on an embedded copy of {servers}: {'; '.join(facts)}. Nothing was written to the server."

    def __repr__(self) -> str:
        outcome = "ok" if self.ok else "not ok"
        return f"<Rehearsal: {outcome}, {self.result!r}>"


def _is_due(target: Target) -> bool:
    """Whether a request of a second plan does more than to run a command again that always runs."""
    for request in target.requests:
        for effect in request.effects:
            if effect.visible or effect.after != "always":
                return True
    return False


async def rehearse(
    loaded: Loaded, options: RunOptions, faults: Sequence[str] = (), notify: Notify = ignore
) -> Rehearsal:
    """Rehearse what is loaded, with ``faults`` of the embedded servers while it applies.

    The limits are those of ``apply``; when it may run (freezes, the window) does not matter. Raises as ``apply`` before
    anything is sent.
    """
    inputs = loaded.inputs
    if inputs.on is not None or inputs.undone is not None:
        raise MsautoError(
            "only playbooks are rehearsed, in this process", remedy="leave out on and undo"
        )
    hooks = _faults(faults)
    answers: dict[str, dict[str, object]] = {spec.name: {} for spec in loaded.resolved.specs}
    real = replace(loaded, workplace=ThisProcess(partial(_Remembering, answers=answers)))
    plan = await plan_only(real, options, notify=notify)
    check_plan(plan, keep_going=options.keep_going, asked={"freeze", "window"})
    plan = structs.replace(plan, refusals=())  # what is left of them is when it may run
    with ExitStack() as stack:
        stack.enter_context(loaded.resolved.secrets.redacted_errors())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="msauto-rehearsal-")))
        servers = []
        urls = {}
        for spec in loaded.resolved.specs:
            if spec.name not in plan.unreachable:
                server = await _copy_of(spec, answers[spec.name], plan, hooks)
                servers.append(stack.enter_context(server))
                urls[spec.url] = server.url
        copy = _on_copies(loaded, urls, _memory_of(inputs.ledger, urls, folder / "run"))
        as_before = _on_copies(loaded, urls, _memory_of(inputs.ledger, urls, folder / "as_before"))
        result = await apply_unasked(copy, options)
        for server in servers:
            server.faults.clear()
            server.deferred.finish()
        again = await plan_only(copy, options)
        undone, left = await _undone(copy, result.run)
        if undone is not None:
            left = [*_changes(result.plan, without=await plan_only(as_before, options))]
    reached = tuple(target for target in plan.targets if target.server not in plan.unreachable)
    planned = structs.replace(plan, targets=reached)
    unlike = [*_changes(planned, without=result.plan), *_changes(result.plan, without=planned)]
    return Rehearsal(
        RunPlan(loaded, plan),
        RunResult(result),
        RunPlan(loaded, again),
        undone,
        unlike=_once(unlike),
        unknown=_once(_hidden(plan)),
        left=_once(left),
    )


def _faults(texts: Sequence[str]) -> list[Fault]:
    """Return the faults of the copies; one without a condition is that of the first write."""
    faults = []
    for text in texts:
        if "@" not in text:
            text = f"{text}@{_FIRST_WRITE}"
        try:
            faults.append(Fault.parse(text))
        except ValueError as error:
            remedy = "msauto simulate --help lists the faults"
            raise MsautoError(f"--fault: {error}", remedy=remedy) from None
    return faults


def _memory_of(place: LedgerPlace, urls: Mapping[str, str], folder: Path) -> Path:
    """Copy what the ledger remembers of the servers to a ledger of the copies, and return its folder."""
    with Ledger.open(place, readonly=True) as ledger, Ledger.open(folder) as scratch:
        ledger.copy_memory_to(scratch, urls)
    return folder


def _once(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


def _name(target: Target, change: Change) -> str:
    return f"{target_heading(target)}: {change.aspect} {change.key}"


def _hidden(plan: Plan) -> Iterator[str]:
    """Name each change that reading does not show."""
    for target in redact_plan(plan).targets:
        for request in target.requests:
            is_shown = request.dest is not None or all(effect.visible for effect in request.effects)
            if not is_shown:
                for number in request.changes:
                    yield _name(target, target.changes[number])


def _changes(plan: Plan, *, without: Plan) -> Iterator[str]:
    """Name each change and error of a plan that the other one does not have."""
    keys = {key for key, _ in _parts(without)}
    for key, text in _parts(plan):
        if key not in keys:
            yield text


def _parts(plan: Plan) -> Iterator[tuple[bytes, str]]:
    """Yield a key and a text for each change and error of a plan."""
    for target in redact_plan(plan).targets:
        for change in target.changes:
            values = (target_key(target), change.thing, change.action, change.before, change.after)
            yield to_key(values), _name(target, change)
        if target.error is not None:
            first_line = target.error.partition("\n")[0]
            yield to_key(target_key(target)), f"{target_heading(target)}: {first_line}"


# Embedded servers ------------------------------------------------------------------------------------------------


class _Remembering(AsyncMediaServer):
    """A client that keeps what it reads in ``answers``, by server and path."""

    def __init__(
        self, server: ServerSpec, *, answers: dict[str, dict[str, object]], **options: Any
    ) -> None:
        super().__init__(server, **options)
        self._answers = answers[server.name]

    async def read(
        self, request: Request, parse: Callable[[RawAnswer], T], *, listing: bool = False
    ) -> T:
        """Send a read."""
        self._answers.setdefault(request.path, None)
        found = await super().read(request, parse, listing=listing)
        self._answers[request.path] = found
        return found

    async def read_listing(
        self, request: Request, begin: Callable[[str | None], ListingReading]
    ) -> Listing:
        """Send a read of a listing."""
        found = self._answers[request.path] = await super().read_listing(request, begin)
        return found


class _SeenDatabase(Struct):
    """What answers have shown of a database, by how an asset was asked for."""

    assets: dict[Address, Asset] = {}
    xmp: dict[Address, dict[str, tuple[str, ...]]] = {}
    entries: dict[tuple[int | None, Folder, str], Entry] = {}
    folders: set[Folder] = set()


class _SeenAsset(Struct):
    """An asset that was read: the address asked for, its entries, and which file it is."""

    address: Address
    asset: Asset
    found: ClipEntries
    file_key: object


async def _copy_of(
    spec: ServerSpec, answers: Mapping[str, object], plan: Plan, faults: Sequence[Fault]
) -> Simulator:
    """Return a server, not started, with what the answers showed, and with what the plan needs and none shows."""
    state = ServerState()
    databases = defaultdict[str, _SeenDatabase](_SeenDatabase)
    xmp = []
    for path, answer in answers.items():
        if "/GETUSERFIELDS" in path:
            xmp.append(answer)
        if isinstance(answer, RssChannel):
            items = state.add_channel(answer.name).items
            items += map(item_from_content, channel_content(answer, spec.dialect.rss_guid))
        elif answer is not None and path.startswith("/storage/"):
            _sort_in(databases, path, answer, spec.dialect)
    for name, database in databases.items():
        await _Copying(state, name, database).fill()
    for target in plan.targets:
        if target.server == spec.name:
            _add_what_is_needed(state, target)
    given = {"link_fields": _how_fields_show(databases.values())}
    if xmp and not any(answer is not None for answer in xmp):
        given["xmp_shape"] = "unreadable"
    return Simulator(state, _dialect_of(spec.dialect, given), faults)


def _sort_in(
    databases: Mapping[str, _SeenDatabase], path: str, answer: object, dialect: Dialect
) -> None:
    """Add an answer to what is known of its database."""
    asked = decode_address(path.removeprefix("/storage/").partition("?")[0].split("/"))
    database = databases[asked.database]
    address = Address(asked.asset or "", asked.namespace or "")
    if isinstance(answer, Asset):
        if dialect.counts_from_in:
            answer = counted_from_the_file(answer)
        database.assets[address] = answer
    elif isinstance(answer, Listing):
        database.folders.update((answer.folder, *answer.folders))
        for entry in answer.entries:
            database.entries[entry.link_id, entry.folder, entry.title] = entry
    elif isinstance(answer, dict):
        database.xmp.setdefault(address, {}).update(answer)


def _add_what_is_needed(state: ServerState, target: Target) -> None:
    """Add the connectors that a target names, and the files of the items that it changes."""
    for request in target.requests:
        for connector in parse_qs(urlsplit(request.path).query).get("connector", ()):
            state.add_database(target.database).connectors[connector] = []
        if target.kind != "rss_channel":
            continue
        files = {}
        for effect in request.effects:
            if isinstance(effect.after, dict):
                files[effect.key] = effect.after.get("file")
        for item in state.add_channel(target.name).items:
            item.file = str(files.get(item.guid) or item.file)


def _how_fields_show(databases: Iterable[_SeenDatabase]) -> str:
    """Return how the answers show link fields: always, only if they are set, or never."""
    shows = "hidden"
    for database in databases:
        for asset in database.assets.values():
            for name in _PLAIN_FIELDS & asset.attributes.keys():
                if not asset.attributes[name]:
                    return "reported"
                shows = "reported_when_set"
    return shows


class _Copying:
    """Makes the database of a copy: the clips that were read with all their entries, and what else is listed."""

    def __init__(self, state: ServerState, name: str, seen: _SeenDatabase) -> None:
        self._state = state
        self._seen = seen
        self._database = state.add_database(name)
        self._clips: dict[object, SimClip] = {}
        self._free = {entry.link_id for entry in seen.entries.values()}
        self._free |= {asset.link_id for asset in seen.assets.values()}
        """The link_ids that no entry has yet: an entry may change between two answers."""

    async def fill(self) -> None:
        """Add everything."""
        self._database.profiles = [*PROFILES]
        self._database.next_link_id = max((number or 0 for number in self._free), default=0) + 1
        for folder in sorted(self._seen.folders):
            self._database.make_folder(folder)
        index = await index_links([*self._seen.entries.values()])
        answers = []
        owners = {}
        for address, asset in self._seen.assets.items():
            found = index.entries_of(asset)
            file_key = clip_key(asset) if asset.hires or asset.archive else None
            answers.append(_SeenAsset(address, asset, found, file_key))
            owners[found.own] = file_key
        answers.sort(key=lambda answer: answer.found.own is not answer.found.home)  # homes first
        for answer in answers:
            entries = []
            for entry in answer.found.same:
                if owners.get(entry) in (None, answer.file_key):
                    entries.append(entry)
            self._add_clip(answer, entries)
        for entry in self._seen.entries.values():
            if entry not in self._clips:  # only listed: a clip of its own
                alone = Asset(entry.title, finalized=entry.finalized, attributes=entry.attributes)
                self._put(alone, entry)

    def _add_clip(self, answer: _SeenAsset, of_this_clip: Sequence[Entry]) -> None:
        """Add an asset that was read, unless another answer is of the same clip, and its entries."""
        asset, found = answer.asset, answer.found
        title = asset.title or answer.address.name
        folder = asset.folder or ()
        if found.own:
            folder = found.own.folder
        own = Link(folder, title, asset.link_id)
        key = answer.file_key or found.own or own
        clip = self._clips.get(key)
        if clip is None:
            clip = self._new_clip(asset, own, found)
        self._clips[key] = clip
        self._clips[own] = clip
        shown: list[Entry | Link] = [*of_this_clip, *(asset.links or ()), own]
        for entry in shown:
            if self._clips.setdefault(entry, clip) is clip:
                attributes = asset.attributes if entry is own else None
                self._add_entry(clip, entry, attributes)
        self._add_keys(clip, answer)

    def _add_keys(self, clip: SimClip, answer: _SeenAsset) -> None:
        """Add the XMP fields, and by what the asset was asked for."""
        address = answer.address
        for name, values in self._seen.xmp.get(address, {}).items():
            clip.xmp[name] = [*values]
        if address.namespace == "handle":
            self._state.handles[address.name] = clip
        elif address.namespace not in {*_NAMESPACES, *answer.asset.attributes}:
            clip.xmp[address.namespace] = [address.name]

    def _new_clip(self, asset: Asset, own: Link, found: ClipEntries) -> SimClip:
        """Add a clip at its home; one that was only read through a link gets a home beside it."""
        home: Link | Entry = found.home or own
        is_elsewhere = asset.folder not in (None, own.folder)
        if found.home is None and is_elsewhere:
            home = Link(asset.folder or (), f"{own.title} (home)")
        return self._put(asset, home)

    def _put(self, asset: Asset, home: Link | Entry) -> SimClip:
        """Add a clip that shows an asset at its home."""
        number = self._take(home.link_id)
        shown = structs.replace(asset, title=home.title, folder=home.folder, link_id=number)
        return clip_from_content(self._database, clip_content(AssetSnapshot(home.title, shown)))

    def _add_entry(
        self, clip: SimClip, entry: Entry | Link, attributes: Mapping[str, str] | None
    ) -> None:
        """Add an entry that is missing; ``attributes`` are those of its answer, if it was read."""
        place = entry.folder, entry.title
        for added in clip.entries:
            if (added.folder, added.title) == place:
                break
        else:
            added = self._database.add_entry(clip, *place, self._take(entry.link_id))
        if isinstance(entry, Entry):
            attributes = entry.attributes
        if attributes is not None:
            added.fields = entry_fields(attributes)

    def _take(self, number: int | None) -> int | None:
        """Return a link_id that no entry has yet, and give it to no other."""
        if number not in self._free:
            return None
        self._free.remove(number)
        return number


def _dialect_of(dialect: Dialect, given: dict[str, str]) -> SimDialect:
    """Return how an embedded server must answer, by the dialect of the inventory, and what is ``given``."""
    for name, choices in SimDialect.choices().items():
        value = getattr(dialect, name, "")
        is_free_text = value and not choices
        if value in choices or is_free_text:
            given[name] = value
        else:
            given |= _INSTEAD.get(value, {})
    return SimDialect().with_values(given)


_INSTEAD: Final = {
    "changed": {"marker_update": "keep"}, "delete_put": {"rss_update": "refuse"}, "text": {"not_found": "200_text"}
}  # fmt: skip
"""What a server does where a dialect has what msauto does; for all other values, what the embedded one does anyway."""
_NAMESPACES: Final = frozenset({"", "title", "link_id", "hires", "proxy", "archive"})
"""What an asset can be asked for by, besides its key fields."""
_PLAIN_FIELDS: Final = LINK_FIELD.keys() - FIELDS_OF_EVERY_CLIP


class _EmbeddedServer(AsyncMediaServer):
    """The client of an embedded server: what it downloads goes into a folder of the rehearsal."""

    def __init__(self, server: ServerSpec, *, place: Callable[[str], Path], **options: Any) -> None:
        super().__init__(server, **options)
        self._place = place

    async def fetch_file(
        self, request: Request, dest: Path, *args: Any, **options: Any
    ) -> FetchResult:
        """Save a download in the folder."""
        return await super().fetch_file(request, self._place(str(dest)), *args, **options)


def _on_copies(loaded: Loaded, urls: Mapping[str, str], folder: Path) -> Loaded:
    """Return the same work on the embedded servers, without credentials, with the ledger of a folder."""

    def place(dest: str) -> Path:
        return folder / f"download-{hashlib.sha256(os.fsencode(dest)).hexdigest()}"

    async def hash_there(dest: str) -> str | None:
        saved = place(dest)
        return await hash_file(str(saved) if saved.exists() else dest)

    work = []
    for intents in loaded.resolved.work:
        url = urls.get(intents.server.url)
        if url is not None:
            server = replace(
                intents.server,
                url=url,
                auth=Auth(),
                tls=Tls(),
                requests_per_second=None,
                transport=None,
            )
            work.append(structs.replace(intents, server=server))
    inputs = structs.replace(
        loaded.inputs,
        ledger=folder,
        state_dir=folder,
        settings=structs.replace(
            loaded.inputs.settings, require_state=False, freezes=(), ledger_url=None
        ),
        transport=None,
        tell=tell_nothing,
    )
    workplace = ThisProcess(partial(_EmbeddedServer, place=place), hash_there)
    resolved = replace(loaded.resolved, work=tuple(work))
    return Loaded(inputs, resolved, workplace=workplace)


async def _undone(copy: Loaded, run: str) -> tuple[RunResult | None, Sequence[str]]:
    """Undo a run of the copies; return what came of it, or why it is refused."""
    with Ledger.open(copy.inputs.ledger, readonly=True) as ledger:
        details = ledger.run_details(run)
    if not details.changed_servers:
        return None, ()
    resolved = replace(undo_of(details, copy.resolved.specs), secrets=copy.resolved.secrets)
    undo = replace(copy, inputs=structs.replace(copy.inputs, undone=details), resolved=resolved)
    try:
        return RunResult(await apply_unasked(undo, _NO_LIMIT)), ()
    except RefusedError as error:
        return None, [f"undo is refused: {error.message}"]
