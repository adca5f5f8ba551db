"""Live titles, databases, channels and folders that are similar to a missing one, for the remedy of an error."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct

from msauto.aspects.plan_builder import refuse
from msauto.errors import (
    MissingError,
    MsautoError,
    PlanningError,
    close_names,
    did_you_mean,
    nearest,
)
from msauto.model.desired import SelectRef, TaskSource
from msauto.model.identity import ClipIdentity, compare_clips
from msauto.model.live import Entry
from msauto.model.ports import NamedKind, Reader
from msauto.model.server import ServerSpec
from msauto.primitives.normal_form import normal_form

_MOST_TITLES: Final = 10
"""For how many titles of a run similar ones are looked for: more are hardly misspelled one by one."""
_SECONDS: Final = 10.0
"""How long an error may wait for the listing of a large database."""
_LONGEST: Final = 200
"""A longer title is hardly misspelled, and takes long to compare."""
_MOST_COMPARED: Final = 20_000
_SHOWN: Final = 3
_NOT_COMPARED: Final = re.compile(r"[\W_]+|(?<!\d)0+(?=\d)")
"""Signs between words, and zeros before a number."""


_Reporting = dict[tuple[str, str | None], list[Entry]]
"""The entries of a listing by the name and the text of a value that they report."""


def _by_value(entries: Iterable[Entry]) -> _Reporting:
    reporting: _Reporting = {}
    for entry in entries:
        for name in ("create_time", "orig_name"):
            text = entry.attributes.get(name)
            if text:
                reporting.setdefault((name, text), []).append(entry)
    return reporting


class SimilarTitles(Struct):
    """Looks for titles in a listing of the database, which is read once, and only where a target is missing.

    It does so for so many more ``titles``, and waits ``seconds`` for a listing. ``reporting`` are those read so far.
    """

    titles: int = _MOST_TITLES
    seconds: float = _SECONDS
    reporting: dict[str, _Reporting] = {}

    async def _listed(self, reader: Reader, database: str) -> Sequence[Entry]:
        """Return the entries of a database; none if they cannot be read in time."""
        try:
            async with asyncio.timeout(self.seconds):
                return await reader.read_select(SelectRef(database, recursive=True)) or ()
        except (MsautoError, TimeoutError):
            self.seconds = 0  # the next one would wait as long
            return ()

    async def title_today(
        self, reader: Reader, database: str, clips: Iterable[ClipIdentity]
    ) -> str:
        """Return the live title of a clip that had another one, by what a listing shows of it.

        It is empty where that is not known, or of several titles: a link may have another one.
        """
        titles: set[str] = set()
        for clip in clips:
            if database not in self.reporting:
                self.reporting[database] = _by_value(await self._listed(reader, database))
            name = "create_time" if clip.create_time else "orig_name"
            same: list[Entry] = []
            for entry in self.reporting[database].get((name, getattr(clip, name)), ()):
                comparison = compare_clips(clip, entry)
                is_one_entry = clip.link_id is not None and entry.link_id == clip.link_id
                if is_one_entry and not comparison.different:
                    same = [entry]
                    break
                if comparison.answer == "same":
                    same.append(entry)
            titles.update([entry.title for entry in same])
        return titles.pop() if len(titles) == 1 else ""

    async def remedy(
        self, reader: Reader, database: str, title: str, otherwise: str, today: str = ""
    ) -> str:
        """Return ``did you mean 'x'?`` with the nearest live titles, best first, and what to do otherwise.

        ``today``: the title that its clip has now, which comes before that. No title is near if the listing cannot be
        read in time.
        """
        self.titles -= 1
        entries = await self._listed(reader, database) if self.titles >= 0 else ()
        titles = [entry.title for entry in entries if entry.title != today]
        remedy = otherwise
        near = nearest_titles(title, titles)
        if near:
            named = repr(near[-1])
            if len(near) > 1:
                named = f"{', '.join(map(repr, near[:-1]))} or {named}"
            remedy = f"did you mean {named}? Else {otherwise}"
        if not today:
            return remedy
        return f"to rename it back, add `was: {today!r}`; to follow it, write `title: {today!r}`. Else {remedy}"


async def not_found(
    reader: Reader,
    server: ServerSpec,
    kind: NamedKind,
    name: str,
    source: TaskSource | None,
    database: str = "",
) -> PlanningError:
    """Return the error of a database, channel or folder that the server does not have, with the nearest name.

    A folder may be missing because its ``database`` is. A server that has no list of its databases is hardly a media
    server.
    """
    if kind == "folder" and not await reader.has_database(database):
        kind = "database"
        name = database
        database = ""
    called, otherwise = _NOT_FOUND[kind]
    otherwise = otherwise.format(command=server.command(f"show {kind}s"))
    message = f"{called} {name!r} not found"
    if database:
        message += f" in database {database}"
    known: tuple[str, ...] | None = ()
    is_another = False
    with suppress(MsautoError, TimeoutError):
        async with asyncio.timeout(_SECONDS):
            known = await reader.read_names(kind, database)
            is_another = known is None and await reader.read_names("database") is None
    if is_another:
        message += f": no media server answers at {server.url}"
        otherwise = "check the host and the port of `url`: a media server listens on 7901"
    remedy = otherwise
    hint = nearest(name, known or ())
    if hint.endswith("?"):
        remedy = f"{hint} Else {otherwise}"
    elif hint:
        remedy = f"{hint}; {otherwise}"
    return refuse(f"server {server.name}: {message}", source, remedy, MissingError)


async def with_nearest_folder(error: MissingError, reader: Reader, database: str) -> MissingError:
    """Return the error of a missing folder with the nearest one in its remedy."""
    with suppress(MsautoError, TimeoutError):
        async with asyncio.timeout(_SECONDS):
            known = await reader.read_names("folder", database) or ()
            error.remedy = did_you_mean(error.folder, known, error.remedy)
    return error


_NOT_FOUND: Final[Mapping[NamedKind, tuple[str, str]]] = {
    "database": ("database", "list the databases with `{command}`"),
    "channel": (
        "RSS channel",
        "list the channels with `{command}`; create a channel in the feed service",
    ),
    "folder": ("folder", "correct the folder, or create it"),
}
"""What each kind is called, and what to do if no name is near."""


def nearest_titles(title: str, titles: Iterable[str]) -> tuple[str, ...]:
    """Return up to three similar titles: those that differ in case, signs and zeros first.

    >>> nearest_titles("EP1", ["EP001", "EP002", "Film"])
    ('EP001',)
    """
    if len(title) > _LONGEST:
        return ()
    wanted = _folded(title)
    by_form: dict[str, list[str]] = {}
    compared = 0
    for known in titles:
        if known == title or len(known) > 4 * _LONGEST:
            continue
        form = _folded(known)
        if _may_be_similar(wanted, form):
            by_form.setdefault(form, []).append(known)
            compared += 1
        if compared == _MOST_COMPARED:
            break
    best = [wanted]
    if wanted not in by_form:
        best = close_names(wanted, list(by_form), _SHOWN, 0.75)
    near: dict[str, None] = {}
    for form in best:
        near |= dict.fromkeys(by_form[form])
    return tuple(near)[:_SHOWN]


def _folded(title: str) -> str:
    return _NOT_COMPARED.sub("", normal_form(title, "NFKC").casefold())


def _may_be_similar(one: str, other: str) -> bool:
    """Return whether a comparison is worth its time: similar length, and the same beginning or end."""
    if abs(len(one) - len(other)) > 2 + len(one) // 4:
        return False
    return one[:2] == other[:2] or one[-2:] == other[-2:]
