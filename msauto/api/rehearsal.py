"""A dry run that ran: the plan of the real servers is applied in full to embedded copies of what it looked at.

To the real servers it sends GET and HEAD only, and it only reads the ledger. The copies have a ledger of their own, in
a folder that goes away. There the playbooks are planned, applied, planned again, and undone.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

from msgspec import Struct, structs

from msauto.api.inputs import tell_nothing
from msauto.api.loading import Loaded
from msauto.api.run import RunOptions, apply_unasked, check_plan, plan_only
from msauto.api.stages import undo_of
from msauto.api.values import RunPlan, RunResult
from msauto.api.workplace import ThisProcess
from msauto.errors import MsautoError, RefusedError
from msauto.ledger.ledger import Ledger
from msauto.model import live
from msauto.model.clip_entries import clip_key, index_links
from msauto.model.desired import ServerIntents
from msauto.model.events import Notify, ignore
from msauto.model.fields import FIELDS_OF_EVERY_CLIP, LINK_FIELD
from msauto.model.plan import Address, Plan, Request, Target
from msauto.model.requests import PROFILES
from msauto.model.result import Result
from msauto.model.server import Auth, Dialect, ServerSpec, Tls
from msauto.planning.saved_plan import differences, plan_document
from msauto.planning.undo import servers_of
from msauto.playbook.export import channel_content, clip_content, entry_fields
from msauto.report.json import dump, result_json
from msauto.report.layout import Layout, render_lines, words
from msauto.report.sanitizing import visible
from msauto.report.texts import target_heading, target_key
from msauto.secrets.redacted_plans import redact_plan
from msauto.server.client import AsyncMediaServer
from msauto.server.downloads import FetchResult, hash_file
from msauto.server.error_answers import RawAnswer
from msauto.server.listing import ListingReading
from msauto.simulator import Fault, ServerState, SimDialect, Simulator
from msauto.simulator.seed import GivenClip, GivenContent, GivenLink, state_from_content, state_to_json
from msauto.simulator.wire import decode_address

T = TypeVar("T")
_NO_LIMIT: Final = RunOptions(allow_delete=10**9, allow_remove=10**9, allow_requests=10**9, keep_going=True)
_FIRST_WRITE: Final = "^(POST|PUT|DELETE) *1"
_WIDE: Final = Layout(width=100)


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """What came of a rehearsal, from :func:`msauto.rehearse`.

    ``plan`` is that of the real servers. ``result`` is what came of it on the copies, ``again`` the plan after it, and
    ``undone`` what came of undoing it (``None`` if nothing was sent). ``unlike`` names the targets that the copies plan
    otherwise than the servers, and why; ``unknown`` what no copy can show; ``left`` what undo did not bring back.
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
        """What the plan after it still has to do; a command with ``run: always`` does not count."""
        return tuple(each for each in self.again.targets if each.error or not all(map(_runs_always, each.requests)))

    @property
    def ok(self) -> bool:
        """Whether everything was done as planned, the second plan is empty, and undo was verified."""
        undone = self.undone is None or self.undone.ok
        return self.result.ok and undone and not self.repeated and not self.unlike

    def to_json(self) -> str:
        """Return the document of ``--format json``, in which are those of the runs and of the plan between them."""
        plan, runs = plan_document(redact_plan(self.again.unredacted)), [self.result, self.undone]
        result, undone = (each and result_json(plan_document(each.applied.plan), each.applied) for each in runs)
        told = {"ok": self.ok, "unlike": self.unlike, "unknown": self.unknown, "left": self.left}
        parts = {"result": result, "again": plan, "undone": undone}
        whole = {name: each and {**each, "targets": [*each["targets"]]} for name, each in parts.items()}
        return dump({"format": "msauto-rehearsal", "version": 1, **told, **whole})

    def to_text(self, layout: Layout = _WIDE) -> str:
        """Return what ``msauto rehearse`` prints below the plan and the result."""
        told = {
            "The second plan still changes:": [target_heading(each) for each in self.repeated],
            "The copy plans these otherwise than the server:": self.unlike,
            "No copy can show what these do:": self.unknown,
            "Undo does not bring back:": self.left,
        }
        lines = [
            words(text, hang=4)
            for name, each in told.items()
            if each
            for text in (name, *(f"  {visible(one)}" for one in each))
        ]
        facts = ["as planned" if self.ok else "not everything was as planned"]
        facts += [] if self.repeated else ["the second plan is empty"]
        if self.undone is not None and not (self.undone.ok and self.left):
            facts.append("undo brings everything back" if self.undone.ok else "undo is not all verified")
        servers = ", ".join(visible(each.name) for each in self.plan.loaded.resolved.specs)
        closing = f"Rehearsed on an embedded copy of {servers}: {'; '.join(facts)}. Nothing was written to the server."
        return "".join(render_lines([*lines, words(closing, "bold" if self.ok else "red")], layout))

    def __repr__(self) -> str:
        return f"<Rehearsal: {'ok' if self.ok else 'not ok'}, {self.result!r}>"


def _runs_always(request: Request) -> bool:
    return bool(request.effects) and all(not each.visible and each.after == "always" for each in request.effects)


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
    with ExitStack() as stack:
        stack.enter_context(loaded.resolved.secrets.redacted_errors())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="msauto-rehearsal-")))
        servers = {each.name: await _embedded(each, seen[each.name], plan) for each in specs}
        for server in servers.values():
            stack.enter_context(server)
        urls = {spec.url: servers[spec.name].url for spec in specs}
        with Ledger.open(inputs.ledger, readonly=True) as ledger, Ledger.open(folder) as scratch:
            ledger.copy_memory_to(scratch, urls)
        copy, before = _on_copies(loaded, urls, folder), {name: _things(each.state) for name, each in servers.items()}
        first = await plan_only(copy, options)
        for server in servers.values():
            server.faults.add(*hooks)
        result = await apply_unasked(copy, options)
        for server in servers.values():
            server.faults.clear()
            server.deferred.finish()
        again = await plan_only(copy, options)
        undone, left = await _undone(copy, folder, result.run)
        if undone is not None:
            left = [each for name in servers for each in _differences(name, before[name], servers[name].state)]
    ran = ((target, request) for target in result.plan.targets for request in target.requests if request.dest is None)
    hidden = ((target, each) for target, request in ran for each in request.effects if not each.visible)
    unknown = dict.fromkeys(f"{target_heading(target)}: {each.aspect} {each.key}" for target, each in hidden)
    result_of = None if undone is None else RunResult(undone)
    parts = RunPlan(loaded, plan), RunResult(result), RunPlan(loaded, again), result_of
    return Rehearsal(*parts, tuple(_unlike(plan, first)), tuple(unknown), tuple(left))


# Embedded servers ------------------------------------------------------------------------------------------------


class _Remembering(AsyncMediaServer):
    """A client that keeps what it reads in ``seen``, by server and path."""

    def __init__(self, server: ServerSpec, *, seen: dict[str, dict[str, object]], **options: Any) -> None:
        super().__init__(server, **options)
        self._seen = seen[server.name]

    async def read(self, request: Request, parse: Callable[[RawAnswer], T], *, listing: bool = False) -> T:
        """Send a read."""
        found = await super().read(request, parse, listing=listing)
        self._seen[request.path] = found
        return found

    async def read_listing(self, request: Request, begin: Callable[[str | None], ListingReading]) -> live.Listing:
        """Send a read of a listing."""
        found = self._seen[request.path] = await super().read_listing(request, begin)
        return found


async def _embedded(spec: ServerSpec, answers: Mapping[str, object], plan: Plan) -> Simulator:
    """Return a server, not started, with what the answers showed, and with what the plan needs and none shows."""
    requests = [
        (target.name, each) for target in plan.targets if target.server == spec.name for each in target.requests
    ]
    files: dict[str, dict[str, str]] = defaultdict(dict)
    for channel, effect in ((name, effect) for name, request in requests for effect in request.effects):
        if isinstance(effect.after, dict) and "file" in effect.after:
            files[channel][effect.key] = str(effect.after["file"])
    content = await _content_of(answers, spec.dialect, files)
    try:
        state = state_from_content(content)
    except ValueError as error:
        why = f"no embedded server can hold what {spec.name} holds: {error}"
        raise MsautoError(why, remedy="use msauto plan") from error
    state.databases = {name: each for name, each in state.databases.items() if name in content.databases}
    connectors = [name for _, each in requests for name in parse_qs(urlsplit(each.path).query).get("connector", ())]
    shown = [each.attributes for each in answers.values() if isinstance(each, live.Asset)]
    texts = {text for each in shown for name, text in each.items() if name in _PLAIN_FIELDS}
    reported = "reported" if "" in texts else "reported_when_set" if texts else "hidden"
    for database in state.databases.values():
        database.profiles, database.connectors = [*PROFILES], {name: [] for name in connectors}
    for path, answer in answers.items():
        name, is_handle, handle = path.removeprefix("/storage/").partition("@handle:")
        if (
            is_handle
            and isinstance(answer, live.Asset)
            and (entry := state.databases[unquote(name)].find(answer.title or ""))
        ):
            state.handles[unquote(handle)] = entry.clip
    return Simulator(state, _dialect_of(spec.dialect, reported))


class _SeenDatabase(Struct):
    """What answers have shown of a database, by how an asset was asked for."""

    assets: dict[Address, live.Asset] = {}
    xmp: dict[Address, dict[str, tuple[str, ...]]] = {}
    entries: dict[tuple[int | None, live.Folder, str], live.Entry] = {}
    folders: set[live.Folder] = set()


async def _content_of(
    answers: Mapping[str, object], dialect: Dialect, files: Mapping[str, Mapping[str, str]]
) -> GivenContent:
    """Return what the answers to requests of these paths show; ``files`` are those of items, by channel and guid."""
    content, seen = GivenContent({}, {}, {}), defaultdict[str, _SeenDatabase](_SeenDatabase)
    for path, answer in answers.items():
        if isinstance(answer, live.RssChannel):
            given = channel_content(answer, dialect.rss_guid, files.get(answer.name, {}))
            content.channels[answer.name] = [*given]
        if not path.startswith("/storage/"):
            continue
        asked = decode_address(path.removeprefix("/storage/").partition("?")[0].split("/"))
        database, address = seen[asked.database], Address(asked.asset or "", asked.namespace or "")
        if isinstance(answer, live.Asset):
            database.assets[address] = answer
        elif isinstance(answer, live.Listing):
            database.folders.update((answer.folder, *answer.folders))
            database.entries |= {(each.link_id, each.folder, each.title): each for each in answer.entries}
        elif isinstance(answer, dict):
            database.xmp.setdefault(address, {}).update(answer)
    for name, database in seen.items():
        content.folders[name] = [live.show_folder(each) for each in sorted(database.folders)]
        clips = content.databases[name] = [each async for each in _clips_of(database, dialect)]
        numbers = set[int | None]()
        entries: list[Any] = [entry for clip in clips for entry in (clip, *clip.links)]
        for entry in entries:
            entry.link_id = None if entry.link_id in numbers else entry.link_id  # it changed between two answers
            numbers.add(entry.link_id)
    return content


async def _clips_of(database: _SeenDatabase, dialect: Dialect) -> AsyncIterator[GivenClip]:
    """Yield the clips that were read with all their entries, and what else is listed as clips of their own."""
    index = await index_links([*database.entries.values()])
    answers = [(address, asset, index.entries_of(asset)) for address, asset in database.assets.items()]
    known: dict[object, GivenClip] = {}
    for address, asset, found in sorted(answers, key=lambda each: each[2].own is not each[2].home):  # homes first
        own = live.Link(
            found.own.folder if found.own else asset.folder or (), asset.title or address.name, asset.link_id
        )
        keys: list[object] = [("link_id", asset.link_id)] if asset.link_id is not None else []
        keys += [clip_key(asset)] if asset.hires or asset.archive else []
        keys += [id(found.own)] if found.own else []
        clip = next((known[key] for key in keys if key in known), None)
        if clip is None:
            is_link = found.home is None and asset.folder not in (None, own.folder)
            home = live.Link(asset.folder or (), f"{own.title} (home)") if is_link else found.home or own
            shown = structs.replace(asset, title=home.title, folder=home.folder, link_id=home.link_id)
            origin = asset.first_frame or 0 if dialect.counts_from_in else 0
            clip = clip_content(live.AssetSnapshot(home.title, shown, origin=origin))
        known |= dict.fromkeys((*keys, id(asset)), clip)
        entries: list[live.Entry | live.Link] = [*(asset.links or ()), own]
        entries[:0] = [each for each in found.same if known.setdefault(id(each), clip) is clip]
        for entry in entries:
            place = live.show_folder(entry.folder), entry.title
            there: list[Any] = [clip, *clip.links]
            given: Any = next((each for each in there if (each.folder, each.title) == place), None)
            if given is None:
                clip.links.append(given := GivenLink(*place, entry.link_id))
            if not isinstance(entry, live.Link):
                given.fields = entry_fields(entry.attributes)
            elif entry is own:
                given.fields = entry_fields(asset.attributes)
        clip.xmp |= {name: [*values] for name, values in database.xmp.get(address, {}).items()}
        if address.namespace not in {"", "title", "handle", "link_id", *_FILES, *asset.attributes}:
            clip.xmp[address.namespace] = address.name
    for clip in {id(each): each for each in known.values()}.values():
        yield clip
    for entry in (each for each in database.entries.values() if id(each) not in known):
        shown = live.Asset(entry.title, entry.folder, link_id=entry.link_id, attributes=entry.attributes)
        yield clip_content(live.AssetSnapshot(entry.title, structs.replace(shown, finalized=entry.finalized)))


_FILES: Final = ("hires", "proxy", "archive")


def _dialect_of(dialect: Dialect, link_fields: str) -> SimDialect:
    """Return how an embedded server must answer, by the dialect of the inventory."""
    given = {"link_fields": link_fields}
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
    for each in loaded.resolved.work:
        url, spec = urls[each.server.url], each.server
        server = replace(spec, url=url, auth=Auth(), tls=Tls(), requests_per_second=None, transport=None)
        work.append(structs.replace(each, server=server))
    own = {"ledger": folder, "state_dir": folder, "settings": settings, "transport": None, "tell": tell_nothing}
    workplace = ThisProcess(partial(_EmbeddedServer, place=place), hash_there)
    resolved = replace(loaded.resolved, work=tuple(work))
    return Loaded(structs.replace(inputs, **own), resolved, workplace=workplace)


async def _undone(copy: Loaded, folder: Path, run: str) -> tuple[Result | None, Sequence[str]]:
    """Undo a run of the copies; return what came of it, or why it is refused."""
    with Ledger.open(folder, readonly=True) as ledger:
        details = ledger.run_details(run)
    if not servers_of(details):
        return None, ()
    resolved = replace(undo_of(details, copy.resolved.specs), secrets=copy.resolved.secrets)
    undo = replace(copy, inputs=structs.replace(copy.inputs, undone=details), resolved=resolved)
    try:
        return await apply_unasked(undo, _NO_LIMIT), ()
    except RefusedError as error:
        return None, [f"undo is refused: {error.message}"]


# What differs ----------------------------------------------------------------------------------------------------


def _unlike(plan: Plan, copied: Plan) -> Iterator[str]:
    """Yield each target of which the copy plans other requests, and how it differs."""
    one, other = (
        {target_key(each): [(sent.method, sent.path, sent.body) for sent in each.requests] for each in both.targets}
        for both in (plan, copied)
    )
    for key, why in differences(plan, copied).items():
        if one.get(key[:4]) != other.get(key[:4]):
            yield f"{' · '.join(filter(None, (key[0], key[1], key[3])))}: {why}"


def _differences(server: str, before: Mapping[str, object], state: ServerState) -> Iterator[str]:
    """Yield what a server does not hold as it did; of a clip that is gone or new, only that."""
    after = _things(state)
    for name in {**before, **after}:
        clip = name.partition(": ")[0]
        if before.get(name) != after.get(name) and (name == clip or (clip in before) == (clip in after)):
            end = "is gone" if name not in after else "is there now" if name not in before else "is another"
            yield f"{server} · {name} {end}"


def _things(state: ServerState) -> dict[str, object]:
    """Return what a server holds, by name: each clip, and each of its parts and of the items of channels."""
    data = state_to_json(state)
    found: dict[str, object] = {}
    for channel in data["channels"]:
        for item in channel["items"]:
            found[f"{channel['name']}: item {item['guid']}"] = [item[name] for name in _SHOWN]
    for database, clip in ((each["name"], clip) for each in data["databases"] for clip in each["clips"]):
        home, *links = clip["entries"]
        for marker in clip["markers"]:
            marker["fields"] = {name: text for name, text in marker["fields"].items() if text not in _MADE_UP}
        parts = {
            "file": {"": clip["online"] or clip["online_at"]},
            "field": home["fields"],
            "xmp": clip["xmp"],
            "link": {"/".join((*each["folder"], each["title"])): each for each in links},
            "segment": {each["number"]: each for each in clip["segments"]},
            "marker": {each["uid"]: each for each in clip["markers"]},
        }
        name = f"{database} · {home['title']}"
        found[name] = home["folder"]
        for part, values in parts.items():
            found |= {f"{name}: {part} {key}".rstrip(): value for key, value in values.items() if value}
    return found


_SHOWN: Final = ("title", "description", "link", "pub_date")
_MADE_UP: Final = ("", "0", "General")
"""What a marker shows once it was written."""
