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
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from msauto.ledger.ledger import Ledger
from msauto.model import live
from msauto.model.clip_entries import clip_key, index_links
from msauto.model.desired import ServerIntents
from msauto.model.events import Notify, ignore
from msauto.model.fields import FIELDS_OF_EVERY_CLIP, LINK_FIELD
from msauto.model.plan import Address, Change, Plan, Request, Target
from msauto.model.requests import PROFILES
from msauto.model.server import Auth, Dialect, ServerSpec, Tls
from msauto.planning.undo import may_have_changed
from msauto.playbook.export import channel_content, clip_content, entry_fields
from msauto.report.json import dump
from msauto.report.layout import Layout, render_lines, words
from msauto.report.sanitizing import visible
from msauto.report.texts import target_heading, target_key
from msauto.secrets.redacted_plans import redact_plan
from msauto.server.client import AsyncMediaServer
from msauto.server.downloads import FetchResult, hash_file
from msauto.server.error_answers import RawAnswer
from msauto.server.listing import ListingReading
from msauto.server.reader import counted_from_the_file
from msauto.simulator import Fault, ServerState, SimClip, SimDialect, Simulator
from msauto.simulator.seed import clip_from_content, item_from_content
from msauto.simulator.wire import decode_address

T = TypeVar("T")
_NO_LIMIT: Final = RunOptions(allow_delete=10**9, allow_remove=10**9, allow_requests=10**9, keep_going=True)
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
        left_out = {target_key(each) for each in self.plan.targets if each.error}
        effects = ((each, effect) for each in self.again.targets for sent in each.requests for effect in sent.effects)
        due = [each for each, effect in effects if effect.visible or effect.after != "always"]
        due += [each for each in self.again.targets if each.error and target_key(each) not in left_out]
        return tuple(each for each in self.again.targets if each in due)

    @property
    def ok(self) -> bool:
        """Whether everything was done as planned, the second plan is empty, and undo was verified."""
        undone = self.undone is None or self.undone.ok
        return not self.plan.errors and self.result.ok and undone and not self.repeated and not self.unlike

    def to_json(self) -> str:
        """Return the document of ``--format json``, in which are those of the runs and of the plan between them."""
        told = {"ok": self.ok, "unlike": self.unlike, "unknown": self.unknown, "left": self.left}
        parts = {"result": self.result, "again": self.again, "undone": self.undone}
        documents = {name: each and json.loads(each.to_json()) for name, each in parts.items()}
        return dump({"format": "msauto-rehearsal", "version": 1, **told, **documents})

    def to_text(self, layout: Layout = _WIDE) -> str:
        """Return what ``msauto rehearse`` prints below the plan and the result."""
        told = {
            "The second plan still changes:": [target_heading(each) for each in self.repeated],
            "The copy plans these otherwise than the server:": self.unlike,
            "No copy can show what these do:": self.unknown,
            "Undo does not bring back:": self.left,
        }
        shown = ((name, *(f"  {visible(each)}" for each in texts)) for name, texts in told.items() if texts)
        lines = [words(line, hang=4) for part in shown for line in part]
        facts = ["as planned" if self.ok else "not everything was as planned"]
        facts += [] if self.repeated else ["the second plan is empty"]
        if self.undone is not None and not (self.undone.ok and self.left):
            facts.append("undo brings everything back" if self.undone.ok else "undo is not all verified")
        there = [each for each in self.plan.loaded.resolved.specs if each.name not in self.plan.unredacted.unreachable]
        servers = ", ".join(visible(each.name) for each in there) or "no server"
        closing = f"Rehearsed on an embedded copy of {servers}: {'; '.join(facts)}. Nothing was written to the server."
        return "".join(render_lines([*lines, words(closing, "bold" if self.ok else "red")], layout))

    def __repr__(self) -> str:
        return f"<Rehearsal: {'ok' if self.ok else 'not ok'}, {self.result!r}>"


async def rehearse(
    loaded: Loaded, options: RunOptions, faults: Sequence[str] = (), notify: Notify = ignore
) -> Rehearsal:
    """Rehearse what is loaded, with ``faults`` of the embedded servers while it applies.

    The limits are those of ``apply``; when it may run (freezes, the window) does not matter. Raises as ``apply`` before
    anything is sent.
    """
    inputs, specs = loaded.inputs, loaded.resolved.specs
    if inputs.on is not None or inputs.resumed is not None or inputs.undone is not None:
        raise MsautoError("only playbooks are rehearsed, in this process", remedy="leave out on, undo and resume")
    try:
        hooks = [Fault.parse(each if "@" in each else f"{each}@{_FIRST_WRITE}") for each in faults]
    except ValueError as error:
        raise MsautoError(f"--fault: {error}", remedy="msauto simulate --help lists the faults") from None
    seen: dict[str, dict[str, object]] = {each.name: {} for each in specs}
    real = replace(loaded, workplace=ThisProcess(partial(_Remembering, seen=seen)))
    plan = await plan_only(real, options, notify=notify)
    check_plan(plan, keep_going=options.keep_going, asked={"freeze", "window"})
    plan = structs.replace(plan, refusals=())  # what is left of them is when it may run
    with ExitStack() as stack:
        stack.enter_context(loaded.resolved.secrets.redacted_errors())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="msauto-rehearsal-")))
        specs = tuple(each for each in specs if each.name not in plan.unreachable)
        servers = [await _copy_of(each, seen[each.name], plan, hooks) for each in specs]
        for server in servers:
            stack.enter_context(server)
        urls = {spec.url: server.url for spec, server in zip(specs, servers, strict=True)}
        places = folder / "run", folder / "as_before"
        with Ledger.open(inputs.ledger, readonly=True) as ledger:
            for place in places:
                with Ledger.open(place) as scratch:
                    ledger.copy_memory_to(scratch, urls)
        copy, as_before = (_on_copies(loaded, urls, place) for place in places)
        result = await apply_unasked(copy, options)
        for server in servers:
            server.faults.clear()
            server.deferred.finish()
        again = await plan_only(copy, options)
        undone, left = await _undone(copy, result.run)
        if undone is not None:
            left = [*_changes(result.plan, without=await plan_only(as_before, options))]
    there = structs.replace(plan, targets=tuple(each for each in plan.targets if each.server not in plan.unreachable))
    unlike = [*_changes(there, without=result.plan), *_changes(result.plan, without=there)]
    texts = (tuple(dict.fromkeys(each)) for each in (unlike, _hidden(plan), left))
    return Rehearsal(RunPlan(loaded, plan), RunResult(result), RunPlan(loaded, again), undone, *texts)


def _name(target: Target, change: Change) -> str:
    return f"{target_heading(target)}: {change.aspect} {change.key}"


def _hidden(plan: Plan) -> Iterator[str]:
    """Name each change that reading does not show."""
    for target in redact_plan(plan).targets:
        for request in target.requests:
            if request.dest is None and not all(each.visible for each in request.effects):
                yield from (_name(target, target.changes[number]) for number in request.changes)


def _changes(plan: Plan, *, without: Plan) -> Iterator[str]:
    """Name each change and error of a plan that the other one does not have."""

    def parts(of: Plan) -> Iterator[tuple[bytes, str]]:
        for target in redact_plan(of).targets:
            for each in target.changes:
                key = to_key((target_key(target), each.thing, each.action, each.before, each.after))
                yield key, _name(target, each)
            if target.error is not None:
                yield to_key(target_key(target)), f"{target_heading(target)}: {target.error.partition(chr(10))[0]}"

    known = {key for key, _ in parts(without)}
    return (text for key, text in parts(plan) if key not in known)


# Embedded servers ------------------------------------------------------------------------------------------------


class _Remembering(AsyncMediaServer):
    """A client that keeps what it reads in ``seen``, by server and path."""

    def __init__(self, server: ServerSpec, *, seen: dict[str, dict[str, object]], **options: Any) -> None:
        super().__init__(server, **options)
        self._seen = seen[server.name]

    async def read(self, request: Request, parse: Callable[[RawAnswer], T], *, listing: bool = False) -> T:
        """Send a read."""
        self._seen.setdefault(request.path, None)
        found = await super().read(request, parse, listing=listing)
        self._seen[request.path] = found
        return found

    async def read_listing(self, request: Request, begin: Callable[[str | None], ListingReading]) -> live.Listing:
        """Send a read of a listing."""
        found = self._seen[request.path] = await super().read_listing(request, begin)
        return found


class _SeenDatabase(Struct):
    """What answers have shown of a database, by how an asset was asked for."""

    assets: dict[Address, live.Asset] = {}
    xmp: dict[Address, dict[str, tuple[str, ...]]] = {}
    entries: dict[tuple[int | None, live.Folder, str], live.Entry] = {}
    folders: set[live.Folder] = set()


async def _copy_of(spec: ServerSpec, answers: Mapping[str, object], plan: Plan, faults: Sequence[Fault]) -> Simulator:
    """Return a server, not started, with what the answers showed, and with what the plan needs and none shows."""
    state, dialect = ServerState(), spec.dialect
    seen = defaultdict[str, _SeenDatabase](_SeenDatabase)
    for path, answer in answers.items():
        if isinstance(answer, live.RssChannel):
            given = channel_content(answer, dialect.rss_guid)
            state.add_channel(answer.name).items.extend(map(item_from_content, given))
        if answer is None or not path.startswith("/storage/"):
            continue
        asked = decode_address(path.removeprefix("/storage/").partition("?")[0].split("/"))
        database, address = seen[asked.database], Address(asked.asset or "", asked.namespace or "")
        if isinstance(answer, live.Asset):
            database.assets[address] = counted_from_the_file(answer, dialect)
        elif isinstance(answer, live.Listing):
            database.folders.update((answer.folder, *answer.folders))
            database.entries |= {(each.link_id, each.folder, each.title): each for each in answer.entries}
        elif isinstance(answer, dict):
            database.xmp.setdefault(address, {}).update(answer)
    for name, each in seen.items():
        await _fill(state, name, each)
    for target in (each for each in plan.targets if each.server == spec.name):
        for request in target.requests:
            for connector in parse_qs(urlsplit(request.path).query).get("connector", ()):
                state.add_database(target.database).connectors[connector] = []
            files = {each.key: each.after.get("file") for each in request.effects if isinstance(each.after, dict)}
            for item in state.add_channel(target.name).items if target.kind == "rss_channel" else ():
                item.file = str(files.get(item.guid) or item.file)
    shown = [asset.attributes for each in seen.values() for asset in each.assets.values()]
    texts = {each.get(name) for each in shown for name in _PLAIN_FIELDS}
    reported = "reported" if "" in texts else "reported_when_set" if texts - {None} else "hidden"
    xmp = [answer for path, answer in answers.items() if "/GETUSERFIELDS" in path]
    shape = {"xmp_shape": "unreadable"} if xmp and xmp.count(None) == len(xmp) else {}
    return Simulator(state, _dialect_of(dialect, {"link_fields": reported, **shape}), faults)


async def _fill(state: ServerState, name: str, seen: _SeenDatabase) -> None:
    """Add the clips that were read with all their entries, and what else is listed as clips of their own."""
    database, entries = state.add_database(name), [*seen.entries.values()]
    numbers = (*(each.link_id for each in entries), *(each.link_id for each in seen.assets.values()))
    free = {number: number for number in numbers}  # each is given once: an entry may change between two answers
    database.profiles, database.next_link_id = [*PROFILES], max((each or 0 for each in free), default=0) + 1
    for folder in sorted(seen.folders):
        database.make_folder(folder)
    index = await index_links(entries)
    answers = [(address, asset, index.entries_of(asset)) for address, asset in seen.assets.items()]
    answers.sort(key=lambda each: each[2].own is not each[2].home)  # homes first
    files = {address: clip_key(asset) if asset.hires or asset.archive else None for address, asset, _ in answers}
    owners = {found.own: files[address] for address, _, found in answers}
    clips: dict[object, SimClip] = {}
    for address, asset, found in answers:
        folder = found.own.folder if found.own else asset.folder or ()
        own = live.Link(folder, asset.title or address.name, asset.link_id)
        key = files[address] or found.own or own
        clip = clips.get(key)
        if clip is None:
            is_link = found.home is None and asset.folder not in (None, folder)
            home = live.Link(asset.folder or (), f"{own.title} (home)") if is_link else found.home or own
            number = free.pop(home.link_id, None)
            shown = structs.replace(asset, title=home.title, folder=home.folder, link_id=number)
            clip = clip_from_content(database, clip_content(live.AssetSnapshot(home.title, shown)))
        clips[key] = clips[own] = clip
        same = (each for each in found.same if owners.get(each) in (None, files[address]))  # not that of another answer
        shows: list[live.Entry | live.Link] = [*same, *(asset.links or ()), own]
        for each in shows:
            if clips.setdefault(each, clip) is clip:
                place = each.folder, each.title
                there = next((one for one in clip.entries if (one.folder, one.title) == place), None)
                there = there or database.add_entry(clip, *place, free.pop(each.link_id, None))
                if isinstance(each, live.Entry):
                    there.fields = entry_fields(each.attributes)
                elif each is own:
                    there.fields = entry_fields(asset.attributes)
        clip.xmp |= {name: [*values] for name, values in seen.xmp.get(address, {}).items()}
        if address.namespace == "handle":
            state.handles[address.name] = clip
        elif address.namespace not in {"", "title", "link_id", "hires", "proxy", "archive", *asset.attributes}:
            clip.xmp[address.namespace] = [address.name]
    for entry in (each for each in entries if each not in clips):
        alone = live.Asset(entry.title, entry.folder, finalized=entry.finalized, attributes=entry.attributes)
        alone = structs.replace(alone, link_id=free.pop(entry.link_id, None))
        clip_from_content(database, clip_content(live.AssetSnapshot(entry.title, alone)))


def _dialect_of(dialect: Dialect, given: dict[str, str]) -> SimDialect:
    """Return how an embedded server must answer, by the dialect of the inventory, and what is ``given``."""
    for name, choices in SimDialect.choices().items():
        value = getattr(dialect, name, "")
        given |= {name: value} if value in choices or (value and not choices) else _INSTEAD.get(value, {})
    return SimDialect().with_values(given)


_INSTEAD: Final = {
    "changed": {"marker_update": "keep"}, "delete_put": {"rss_update": "refuse"}, "text": {"not_found": "200_text"}
}  # fmt: skip
"""What a server does where a dialect has what msauto does; for all other values, what the embedded one does anyway."""
_PLAIN_FIELDS: Final = LINK_FIELD.keys() - FIELDS_OF_EVERY_CLIP


class _EmbeddedServer(AsyncMediaServer):
    """The client of an embedded server: what it downloads goes into a folder of the rehearsal."""

    def __init__(self, server: ServerSpec, *, place: Callable[[str], Path], **options: Any) -> None:
        super().__init__(server, **options)
        self._place = place

    async def fetch_file(self, request: Request, dest: Path, *args: Any, **options: Any) -> FetchResult:
        """Save a download in the folder."""
        return await super().fetch_file(request, self._place(str(dest)), *args, **options)


def _on_copies(loaded: Loaded, urls: Mapping[str, str], folder: Path) -> Loaded:
    """Return the same work on the embedded servers, without credentials, with the ledger of a folder."""

    def place(dest: str) -> Path:
        return folder / f"download-{hashlib.sha256(os.fsencode(dest)).hexdigest()}"

    async def hash_there(dest: str) -> str | None:
        return await hash_file(str(place(dest)) if place(dest).exists() else dest)

    inputs, work = loaded.inputs, list[ServerIntents]()
    settings = structs.replace(inputs.settings, require_state=False, freezes=(), ledger_url=None)
    for each in (each for each in loaded.resolved.work if each.server.url in urls):
        url, spec = urls[each.server.url], each.server
        server = replace(spec, url=url, auth=Auth(), tls=Tls(), requests_per_second=None, transport=None)
        work.append(structs.replace(each, server=server))
    own = {"ledger": folder, "state_dir": folder, "settings": settings, "transport": None, "tell": tell_nothing}
    workplace = ThisProcess(partial(_EmbeddedServer, place=place), hash_there)
    resolved = replace(loaded.resolved, work=tuple(work))
    return Loaded(structs.replace(inputs, **own), resolved, workplace=workplace)


async def _undone(copy: Loaded, run: str) -> tuple[RunResult | None, Sequence[str]]:
    """Undo a run of the copies; return what came of it, or why it is refused."""
    with Ledger.open(copy.inputs.ledger, readonly=True) as ledger:
        details = ledger.run_details(run)
    if not may_have_changed(details):
        return None, ()
    resolved = replace(undo_of(details, copy.resolved.specs), secrets=copy.resolved.secrets)
    undo = replace(copy, inputs=structs.replace(copy.inputs, undone=details), resolved=resolved)
    try:
        return RunResult(await apply_unasked(undo, _NO_LIMIT)), ()
    except RefusedError as error:
        return None, [f"undo is refused: {error.message}"]
