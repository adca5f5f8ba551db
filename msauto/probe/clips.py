"""What the clips that a server holds show of its dialect. Sends GET only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from msauto.errors import NotFoundError, ServerError
from msauto.interface import requests
from msauto.interface.address import asset_path, encode, escape_name, folder_path, query
from msauto.interface.dialect import Dialect
from msauto.interface.requests import SETFIELD_NAMES
from msauto.interface.vocabulary import MIMETYPES
from msauto.model.identity import same_text
from msauto.model.live import Entry, Folder, Listing
from msauto.model.plan import Address, Request
from msauto.probe.findings import ProbeNotes
from msauto.probe.shapes import (
    describe_encoding,
    describe_lines,
    describe_namespace,
    describe_tree,
    describe_wrapping,
    describe_xmp,
    failure_of,
)
from msauto.server.client import AsyncMediaServer
from msauto.server.parsers.answers import RawAnswer, judge_status
from msauto.server.parsers.clip import parse_clip
from msauto.server.parsers.failure import show_body
from msauto.server.parsers.listing import parse_listing
from msauto.server.parsers.user_fields import parse_xmp
from msauto.server.parsers.xml import decode_text

ABOUT_CLIPS: Final = (
    "link fields", "NS:ID", "title_address", "listing_depth", "several MIME types", "xmp_read", "XMP shape",
)  # fmt: skip
_STRANGER: Final = frozenset({401, 403, 407, 429, 502, 503, 504})
"""Statuses that say nothing of what was asked."""

_LARGE: Final = 2000
"""A folder of more entries is not listed again and again."""

_BY_NAME: Final = 8
"""So many clips are asked for XMP fields by name, where the server shows none without."""

_USUAL_FIELDS: Final = ("dc:title", "dc:subject", "dc:description", "dc:creator")
_LINK_FIELDS: Final = tuple(name for name in SETFIELD_NAMES if name not in {"clip_name", "first_frame", "last_frame"})


@dataclass(frozen=True, slots=True)
class ClipSample:
    """Clips that the server is known to hold.

    ``title`` is the one that is asked for, ``folder`` where it is, ``entries`` all that is listed there, ``others``
    titles of other folders.
    """

    title: str
    folder: Folder | None
    entries: tuple[Entry, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def titles(self) -> tuple[str, ...]:
        """A few titles, the known one first."""
        beside = [entry.title for entry in self.entries if entry.title][:2]
        return tuple(dict.fromkeys((self.title, *self.others, *beside)))


async def ask_about_clips(
    client: AsyncMediaServer, database: str, sample: ClipSample, notes: ProbeNotes, field: str | None
) -> None:
    """Ask for known clips in several ways, and note what each way shows."""
    clips = _ClipProbe(client, database, notes, (field,) if field else _USUAL_FIELDS)
    for step, names in clips.steps():
        with notes.trying(*names):
            await step(sample)


async def ask(client: AsyncMediaServer, request: Request) -> RawAnswer:
    """Return the answer as it came; raise where it says nothing of what was asked."""
    reply = await client.ask(request)
    if reply.status in _STRANGER:
        judge_status(reply, client.spec.dialect)
    return reply


def show_request(request: Request) -> str:
    """Write a request as evidence."""
    return f"{request.method} {request.path}"


def told_of(reply: RawAnswer) -> str:
    """Write an answer as evidence: its status, and the beginning of its body."""
    body = show_body(reply.data, reply.charset)
    return f"{reply.status}, {body[:80]!r}" if body else f"{reply.status} without a word"


class _ClipProbe:
    def __init__(self, client: AsyncMediaServer, database: str, notes: ProbeNotes, fields: tuple[str, ...]) -> None:
        self._client = client
        self._database = database
        self._notes = notes
        self._fields = fields

    def steps(self) -> Iterator[tuple[Callable[[ClipSample], Awaitable[None]], tuple[str, ...]]]:
        """Yield each step with the names of what it learns."""
        yield self._documents, ("XML wrapping", "XML encoding", "XML lines", "XML namespace", "folder attribute")
        yield self._link_fields, ("link fields",)
        yield self._key_id, ("NS:ID", "title_address")
        yield self._depth, ("listing_depth",)
        yield self._paths, ("listing paths",)
        yield self._mimetypes, ("several MIME types",)
        yield self._xmp, ("xmp_read", "XMP shape")

    # One clip's description ------------------------------------------------------------------------------------

    async def _documents(self, sample: ClipSample) -> None:
        request = Request("GET", asset_path(self._database, Address(sample.title)))
        reply = await ask(self._client, request)
        judge_status(reply, self._client.spec.dialect)
        parse_clip(reply.data, reply.charset)
        shown = show_request(request)
        self._notes.see("XML wrapping", describe_wrapping(reply), shown)
        self._notes.see("XML encoding", describe_encoding(reply), shown)
        self._notes.see("XML lines", describe_lines(reply), shown)
        self._notes.see("XML namespace", describe_namespace(reply), shown)
        rooted = 'folder="/' in decode_text(reply.data, reply.charset)
        self._notes.see("folder attribute", "from a slash" if rooted else "plain", shown)

    async def _link_fields(self, sample: ClipSample) -> None:
        shown: dict[str, None] = {}
        asked = 0
        for title in sample.titles[:5]:
            try:
                asset = await self._client.asset(self._database, title)
            except NotFoundError:
                continue  # it went meanwhile
            asked += 1
            shown |= dict.fromkeys(name for name in _LINK_FIELDS if name in asset.attributes)
        if shown:
            self._notes.see("link fields", "reported", f"{', '.join(shown)} in {asked} clips")
        else:
            self._notes.miss("link fields", f"none in {asked} clips: they are not reported, or none is set")

    # Addresses -------------------------------------------------------------------------------------------------

    async def _key_id(self, sample: ClipSample) -> None:
        literal = asset_path(self._database, Address(sample.title, namespace="title"))
        by_key = await self._finds(literal, sample.title)
        self._notes.see("NS:ID", "yes" if by_key else "no", f"GET {literal}: {'the clip' if by_key else 'not found'}")
        with_colon = f"/storage/{encode(self._database)}@{encode('title:')}{encode(escape_name(sample.title))}"
        decoded = await self._finds(with_colon, sample.title)
        evidence = f"GET {with_colon}, the colon encoded: {'the clip itself' if decoded else 'not found'}"
        colon = next((entry.title for entry in sample.entries if ":" in entry.title), None)
        if colon is not None:
            plain = asset_path(self._database, Address(colon), dialect=Dialect())
            there = await self._finds(plain, colon)
            evidence += f"; GET {plain}: {'found' if there else 'not found'}"
            if there == decoded:
                await self._both_ways(colon, evidence, plain=there)
                return
        self._notes.learn("title_address", "ns" if decoded else "plain", evidence)

    async def _both_ways(self, colon: str, evidence: str, *, plain: bool) -> None:
        """Where plain titles with a colon and encoded key fields are both found, or neither: the key form decides."""
        by_key = asset_path(self._database, Address(colon, namespace="title"))
        found = await self._finds(by_key, colon)
        evidence += f"; GET {by_key}: {'found' if found else 'not found'}"
        if found or plain:
            self._notes.learn("title_address", "ns" if found else "plain", evidence)
        else:
            self._notes.miss("title_address", f"the answers contradict each other: {evidence}")

    async def _finds(self, path: str, title: str) -> bool:
        """Tell whether a path leads to this clip; an answer that is neither the clip nor a refusal raises."""
        reply = await ask(self._client, Request("GET", path))
        if reply.status >= 300 or failure_of(reply) is not None:
            return False
        found = parse_clip(reply.data, reply.charset)
        return found.title is None or same_text(found.title, title)

    # Listings --------------------------------------------------------------------------------------------------

    async def _depth(self, sample: ClipSample) -> None:
        entry = next((each for each in sample.entries if each.title == sample.title), None)
        if not sample.folder or entry is None:
            self._notes.miss("listing_depth", "no clip in a sub-folder was found: name one with --title")
            return
        above, since = sample.folder[:-1], _day_before(entry)
        request = requests.get_listing(self._database, above, datetime=since)
        listing = await self._client.list(self._database, above, created_after=since)
        deep = [each for each in listing.entries if each.folder != above]
        evidence = f"{show_request(request)}: {len(deep)} clips of sub-folders, {_deeper(listing)} folders below those"
        if deep:
            self._notes.learn("listing_depth", "deep", evidence)
        elif not _deeper(listing) and await self._is_listed(sample, since):
            self._notes.learn("listing_depth", "shallow", evidence)
        else:
            self._notes.miss("listing_depth", f"it may be either: {evidence}")

    async def _is_listed(self, sample: ClipSample, since: str | None) -> bool:
        listing = await self._client.list(self._database, sample.folder or (), created_after=since)
        return any(each.title == sample.title for each in listing.entries)

    async def _paths(self, sample: ClipSample) -> None:
        if not sample.folder:
            self._notes.miss("listing paths", "no folder was found that holds a clip")
            return
        request = requests.get_listing(self._database, sample.folder, format="folderlist")
        reply = await ask(self._client, request)
        judge_status(reply, self._client.spec.dialect)
        self._notes.see("listing paths", describe_tree(reply, sample.folder), show_request(request))

    async def _mimetypes(self, sample: ClipSample) -> None:
        name = "several MIME types"
        if sample.folder is None or not 0 < len(sample.entries) <= _LARGE:
            self._notes.miss(name, "no folder of a reasonable size was found to list")
            return
        folder = folder_path(self._database, sample.folder)
        ways = {
            "no such type": query([("mimetype", "msauto-probe")]),
            "commas": query([("mimetype", ",".join(MIMETYPES))]),
            "repeated": query([("mimetype", each) for each in MIMETYPES]),
            "repeated backwards": query([("mimetype", each) for each in reversed(MIMETYPES)]),
        }
        shown = {way: await self._lists(folder + text, sample) for way, text in ways.items()}
        evidence = ", ".join(f"{way}: {'all' if there else 'not all'}" for way, there in shown.items())
        if shown["no such type"]:
            self._notes.miss(name, f"the filter is not looked at ({evidence})")
            return
        taken = ["commas"] if shown["commas"] else []
        taken += ["repeated"] if shown["repeated"] and shown["repeated backwards"] else []
        self._notes.see(name, " and ".join(taken) or "one at a time", evidence)

    async def _lists(self, path: str, sample: ClipSample) -> bool:
        """Tell whether a listing shows all clips that are known to be in the folder."""

        def parse(reply: RawAnswer) -> Listing:
            return parse_listing(reply.data, self._database, sample.folder or (), reply.charset)

        try:
            listing = await self._client.read(Request("GET", path), parse)
        except ServerError as error:
            if getattr(error, "status", 0) in _STRANGER:
                raise
            return False
        shown = {entry.title for entry in listing.entries}
        return {entry.title for entry in sample.entries} <= shown

    # XMP fields ------------------------------------------------------------------------------------------------

    async def _xmp(self, sample: ClipSample) -> None:
        for number, title in enumerate(sample.titles):
            if await self._xmp_of(title, self._fields if number < _BY_NAME else ()):
                return
        self._notes.miss("XMP shape", f"no XMP fields in {len(sample.titles)} clips: name one with --title")
        self._notes.miss("xmp_read", "no clip with XMP fields was found: name one with --title")

    async def _xmp_of(self, title: str, fields: tuple[str, ...]) -> bool:
        """Learn from one clip; tell whether it had anything to learn from."""
        path = asset_path(self._database, Address(title))
        whole = requests.get_user_fields(path)
        reply = await ask(self._client, whole)
        readable = _readable(reply, None)
        if readable:
            self._learn_xmp(reply, whole, without="all fields")
            return True
        for field in fields:
            request = requests.get_user_fields(path, field)
            single = await ask(self._client, request)
            if _readable(single, field):
                self._learn_xmp(single, request, without="nothing" if reply.status < 300 else told_of(reply))
                return True
            if readable is None and _readable(single, field) is None:
                self._notes.learn("xmp_read", "never", f"{show_request(whole)}: {told_of(reply)}")
                return True
        return False

    def _learn_xmp(self, reply: RawAnswer, request: Request, without: str) -> None:
        self._notes.learn("xmp_read", "auto", f"{show_request(request)} can be read")
        self._notes.see("XMP shape", describe_xmp(reply), show_request(request))
        self._notes.see("XMP without `field`", without, show_request(request))


def _day_before(entry: Entry) -> str | None:
    try:
        created = date.fromisoformat(entry.attributes.get("create_time", "").strip()[:10])
        return (created - timedelta(days=1)).isoformat()
    except (ValueError, OverflowError):
        return None


def _deeper(listing: Listing) -> int:
    return sum(len(folder) > len(listing.folder) + 1 for folder in listing.folders)


def _readable(reply: RawAnswer, field: str | None) -> bool | None:
    """Tell whether fields can be read from an answer; ``None`` where nothing in it can be understood at all."""
    if reply.status >= 300 or failure_of(reply) is not None:
        return False
    fields = parse_xmp(reply.data, ",", reply.charset, asked=field)
    return None if fields is None else any(fields.values())
