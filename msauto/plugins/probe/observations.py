"""What reading alone shows of a server's dialect, and what is noted of it.

Sends GET only; never ``/storage`` whole, never a web proxy.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Literal, NamedTuple

from msgspec import Struct

from msauto.circuit_breaker import UNINFORMATIVE_STATUSES
from msauto.errors import (
    AddressError,
    InDoubtError,
    MsautoError,
    NotFoundError,
    NotSentError,
    ServerError,
)
from msauto.model import requests
from msauto.model.identity import lives_in, same_text
from msauto.model.live import Entry, Folder, escape_name, show_folder
from msauto.model.plan import Address, Request
from msauto.model.requests import asset_path, channel_path, encode, folder_path
from msauto.server.client import AsyncMediaServer
from msauto.server.error_answers import RawAnswer, clean, judge_status, parse_failure, show_body
from msauto.server.parsers import parse_clip, parse_xmp


class DialectFinding(Struct, frozen=True):
    """The value of one key of ``dialect:``. ``evidence`` is one line: the request and the answer."""

    name: str
    value: str
    evidence: str


class UnansweredQuestion(Struct, frozen=True):
    """A key whose value is unknown, and why."""

    name: str
    why: str


class ProbeResult(Struct, frozen=True):
    """All findings of one server.

    ``left`` names what a trial could not undo on the scratch asset; empty means that it was read again and is
    unchanged, ``None`` that nothing was tried.
    """

    server: str
    database: str
    found: tuple[DialectFinding, ...]
    missed: tuple[UnansweredQuestion, ...]
    left: tuple[str, ...] | None = None


class ProbeNotes(Struct):
    """Collects findings while a server is asked; each key is found or missed once. ``hide`` redacts secrets."""

    hide: Callable[[str], str] = str
    learned: dict[str, DialectFinding] = {}
    missed: dict[str, UnansweredQuestion] = {}

    def learn(self, key: str, value: str, evidence: str) -> None:
        """Note the value of a key, in place of what was noted of it before."""
        self.missed.pop(key, None)
        self.learned[key] = DialectFinding(key, value, clean(self.hide(evidence)))

    def miss(self, why: str, *names: str) -> None:
        """Note why keys are unknown, unless they have a value or a reason."""
        for name in names:
            if name not in self.learned:
                self.missed.setdefault(name, UnansweredQuestion(name, clean(self.hide(why))))

    @contextmanager
    def trying(self, *names: str) -> Iterator[None]:
        """Note keys as missed after a bad answer; a server that cannot be reached ends the probe."""
        try:
            yield
        except NotSentError:
            raise
        except AddressError as error:
            self.miss(error.message, *names)
        except ServerError as error:
            self.miss(f"{error.request}: {error.message}", *names)
            if isinstance(error, InDoubtError):
                raise


_FOLDERS: Final = 12
_CHANNELS: Final = 3
_BY_FOLDER: Final = 2
"""Entries of a folder whose titles are asked for: one of them may be a link."""
_BY_NAME: Final = 8
"""Clips asked for XMP fields by name, if the server reports none without a name."""

_USUAL_FIELDS: Final = ("dc:title", "dc:subject", "dc:description", "dc:creator")
_FILE_ENDING: Final = re.compile(r"[^/\\:]+\.(?:txt|xml)", re.IGNORECASE)


class ClipSample(NamedTuple):
    """Clips that the server is known to hold.

    ``title`` is the clip asked for, ``folder`` its folder, ``entries`` what is listed there, ``others`` titles of other
    folders.
    """

    title: str
    folder: Folder | None
    entries: tuple[Entry, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def titles(self) -> tuple[str, ...]:
        """A few titles, the known one first."""
        listed = [entry.title for entry in self.entries if entry.title]
        return tuple(dict.fromkeys((self.title, *self.others, *listed[:2])))


class ReadOnlyProbe:
    """Asks one database of one server. Each question notes an answer, or why it got no answer."""

    def __init__(
        self,
        client: AsyncMediaServer,
        database: str,
        notes: ProbeNotes,
        *,
        title: str | None,
        field: str | None,
    ) -> None:
        self._client = client
        self._database = database
        self._notes = notes
        self._title = title
        self._fields = (field,) if field else _USUAL_FIELDS
        self._unknown = f"msauto-probe-{secrets.token_hex(8)}"

    async def run(self) -> None:
        """Ask everything. Raises ``MsautoError`` if the server cannot be reached or has no such database."""
        folders = await self._folders()
        await self._not_found()
        about_clips = {"title_address": self._title_address, "xmp_read": self._xmp_read}
        with self._notes.trying(*about_clips):
            sample = await self._sample(folders)
            for key, ask in about_clips.items():
                if sample is None:
                    self._notes.miss("no clip was found to ask for: name one with --title", key)
                    continue
                with self._notes.trying(key):
                    await ask(sample)
        with self._notes.trying("link_title"):
            await self._link_title(folders)
        with self._notes.trying("rss_guid"):
            await self._rss_guid()

    async def _ask(self, path: str) -> RawAnswer:
        """Return the answer as received. Raises if the status gives no information about the object."""
        reply = await self._client.ask(Request("GET", path))
        if reply.status in UNINFORMATIVE_STATUSES:
            judge_status(reply, self._client.spec.dialect)
        return reply

    # The database, and what does not exist ---------------------------------------------------------------------

    async def _folders(self) -> tuple[Folder, ...]:
        if how_not_found(
            await self._ask(requests.get_listing(self._database, format="folderlist").path)
        ):
            raise MsautoError(
                f"server {self._client.spec.name} has no media database {self._database!r}",
                remedy="--database NAME; `msauto show databases` lists them",
            )
        try:
            return (await self._client.list_folders(self._database)).folders
        except ServerError:
            return (await self._client.list(self._database)).folders

    async def _not_found(self) -> None:
        paths = {
            "asset": asset_path(self._database, Address(self._unknown)),
            "folder": folder_path(self._database, (self._unknown,)),
            "channel": channel_path(self._unknown),
        }
        forms = {}
        shown = []
        for what, path in paths.items():
            reply = await self._ask(path)
            forms[what] = how_not_found(reply)
            shown.append(f"an unknown {what}: {describe(reply)}")
        evidence = "; ".join(shown)
        form = forms["asset"]
        if not form:
            self._notes.miss(
                f"the answer does not report «not found» in a known form: {evidence}", "not_found"
            )
            return
        if form == "both" or forms["folder"] not in {"", form}:
            form = "auto"
        self._notes.learn("not_found", form, evidence)

    # Known clips -----------------------------------------------------------------------------------------------

    async def _sample(self, folders: Sequence[Folder]) -> ClipSample | None:
        if self._title is not None:
            asset = await self._client.asset(self._database, self._title)
            return ClipSample(self._title, asset.folder, await self._entries(asset.folder))
        sample: ClipSample | None = None
        others: list[str] = []
        for folder in [*sorted(folders, key=len, reverse=True)[:_FOLDERS], ()]:
            if not folder and sample is not None:
                break  # the root may be large, and is not needed
            entries = await self._entries(folder)
            titles = [entry.title for entry in entries if entry.title]
            others += titles[:1]
            if titles and sample is None:
                plainest = min(titles, key=lambda title: (":" in title, len(title)))
                sample = ClipSample(plainest, folder, entries)
        return sample and sample._replace(others=tuple(others))

    async def _entries(self, folder: Folder | None) -> tuple[Entry, ...]:
        if folder is None:
            return ()
        return tuple((await self._client.list(self._database, folder, recursive=False)).entries)

    # Addresses -------------------------------------------------------------------------------------------------

    async def _title_address(self, sample: ClipSample) -> None:
        with_colon = f"/storage/{encode(self._database)}@{encode('title:')}{encode(escape_name(sample.title))}"
        decoded = await self._finds(with_colon, sample.title)
        shown = "the clip itself" if decoded else "not found"
        evidence = [f"GET {with_colon}, the colon encoded: {shown}"]
        colons = [entry.title for entry in sample.entries if ":" in entry.title]
        if colons:
            plain = asset_path(self._database, Address(colons[0]))
            plain_finds = await self._finds(plain, colons[0])
            evidence.append(_finding(plain, plain_finds))
            if plain_finds == decoded:  # both or neither: the key form decides
                by_key = asset_path(self._database, Address(colons[0], namespace="title"))
                decoded = await self._finds(by_key, colons[0])
                evidence.append(_finding(by_key, decoded))
                if not decoded and not plain_finds:
                    why = f"the answers contradict each other: {'; '.join(evidence)}"
                    self._notes.miss(why, "title_address")
                    return
        value = "ns" if decoded else "plain"
        self._notes.learn("title_address", value, "; ".join(evidence))

    async def _finds(self, path: str, title: str) -> bool:
        """Return whether a path leads to this clip. Raises for an answer that is neither a clip nor an error."""
        reply = await self._ask(path)
        if reply.status >= 300 or parse_failure(reply.data, reply.charset) is not None:
            return False
        clip = parse_clip(reply.data, reply.charset)
        return clip.title is None or same_text(clip.title, title)

    # Links -----------------------------------------------------------------------------------------------------

    async def _link_title(self, folders: Sequence[Folder]) -> None:
        """Learn from the first entry of a listing that shows it."""
        for folder in sorted(folders, key=len, reverse=True)[:_FOLDERS]:
            for entry in (await self._entries(folder))[:_BY_FOLDER]:
                value = await self._leads_to(entry)
                if value:
                    place = show_folder((*folder, entry.title))
                    where = f"to its link_id {entry.link_id}"
                    if value == "none":
                        where = "to another entry, or nowhere"
                    self._notes.learn("link_title", value, f"the title of {place} leads {where}")
                    return
        self._notes.miss("no entry was found that surely is a link", "link_title")

    async def _leads_to(self, entry: Entry) -> str:
        """Return what the title of an entry leads to; empty where it may not be a link."""
        if not entry.title or ":" in entry.title:
            return ""
        try:
            answer = await self._client.asset(self._database, entry.title)
        except NotFoundError:
            return "none"
        if None in (entry.link_id, answer.link_id):
            return ""
        if answer.link_id == entry.link_id:
            return "address" if lives_in(answer, entry.folder) is False else ""
        for other in await self._entries(answer.folder):
            if other.link_id == answer.link_id and not same_text(other.title, entry.title):
                return "none"
        return ""

    # XMP fields ------------------------------------------------------------------------------------------------

    async def _xmp_read(self, sample: ClipSample) -> None:
        """Learn from the first clip whose answers show anything."""
        for number, title in enumerate(sample.titles):
            asset = asset_path(self._database, Address(title))
            whole = requests.get_user_fields(asset).path
            reply = await self._ask(whole)
            shown = _xmp_shown(reply, None)
            if shown == "fields":
                self._notes.learn("xmp_read", "auto", f"GET {whole} can be read")
                return
            names = self._fields if number < _BY_NAME else ()
            for name in names:
                path = requests.get_user_fields(asset, name).path
                shown_by_name = _xmp_shown(await self._ask(path), name)
                if shown_by_name == "fields":
                    self._notes.learn("xmp_read", "auto", f"GET {path} can be read")
                    return
                if shown == shown_by_name == "unknown form":
                    self._notes.learn("xmp_read", "never", f"GET {whole}: {describe(reply)}")
                    return
        self._notes.miss("no clip with XMP fields was found: name one with --title", "xmp_read")

    # Channels --------------------------------------------------------------------------------------------------

    async def _rss_guid(self) -> None:
        guids: list[str] = []
        for name in (await self._client.channels())[:_CHANNELS]:
            guids += [item.guid for item in (await self._client.channel(name)).items]
        shown = ", ".join(map(repr, guids[:4]))
        if not guids:
            self._notes.miss("no channel with an item was found", "rss_guid")
        elif any(guids) and all(map(_FILE_ENDING.fullmatch, filter(None, guids))):
            # One without an ending may be the file's stem or the item's own: the server may make an address of either.
            self._notes.learn("rss_guid", "file", f"guids such as {shown}")
        else:
            why = f"the items' own, their files' stems, or made by the server: {shown}"
            self._notes.miss(f"{why}: --scratch-channel NAME tries it", "rss_guid")


def _finding(path: str, finds: bool) -> str:
    shown = "found" if finds else "not found"
    return f"GET {path}: {shown}"


def how_not_found(reply: RawAnswer) -> str:
    """Return how an answer reports "not found": ``status``, ``text``, ``both``, or empty if it does not."""
    failure = parse_failure(reply.data, reply.charset)
    by_text = failure is not None and failure.not_found
    if reply.status == 404:
        return "both" if by_text else "status"
    return "text" if by_text else ""


def describe(reply: RawAnswer) -> str:
    """Return an answer as evidence: its status, and the beginning of its body."""
    body = show_body(reply.data, reply.charset)
    return f"{reply.status}, {body[:80]!r}" if body else f"{reply.status} with an empty body"


def _xmp_shown(reply: RawAnswer, field: str | None) -> Literal["fields", "nothing", "unknown form"]:
    """Return what an answer shows of XMP fields."""
    if reply.status >= 300 or parse_failure(reply.data, reply.charset) is not None:
        return "nothing"
    fields = parse_xmp(reply.data, ",", reply.charset, asked=field)
    if fields is None:
        return "unknown form"
    return "fields" if any(fields.values()) else "nothing"
