"""Facts of one clip, read layer by layer as templates use them; each layer is read at most once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct, structs

from msauto.aspects.plan_builder import refuse
from msauto.errors import UnsupportedError
from msauto.model.desired import TaskSource
from msauto.model.facts import Facts, NamedXmpFields, Need
from msauto.model.identity import same_text
from msauto.model.live import Asset, Entry, Link, Xmp
from msauto.model.plan import Address
from msauto.model.ports import LiveTarget, Reader

T = TypeVar("T")


class FoundClip(NamedTuple):
    """A clip of the server: the answer, the address that was read, and the title there."""

    asset: Asset
    address: Address
    title: str


Find = Callable[[], Awaitable[FoundClip | None]]
"""Finds the clip; ``None`` if not found."""


def listed_otherwise(listed: Mapping[str, Any], answer: Asset) -> dict[str, Any]:
    """Return the facts that a listing shows otherwise than the clip's own answer, with their values in the answer.

    What the answer does not report may be so.
    """
    facts = Facts(asset=answer)
    different: dict[str, Any] = {}
    for name, value in listed.items():
        with suppress(AttributeError):
            now = facts.get(name)
            are_texts = isinstance(now, str) and isinstance(value, str)
            if now != value and not (are_texts and same_text(now, value)):
                different[name] = now
    return different


class XmpAnswers(Struct):
    """What one survey has learned about how its server reports XMP fields.

    ``batches`` are the XMP batches that precede the assets of their database. ``reports_all``: the server has reported
    all fields of some asset at once. ``doubted``: the tasks for which an empty answer was read as "no fields".
    """

    batches: Mapping[str, TaskSource] = {}
    reports_all: bool = False
    doubted: dict[TaskSource, None] = {}

    def warnings(self) -> tuple[str, ...]:
        """Return a warning for each task that used an empty answer, which may be incomplete."""
        if self.reports_all:
            return ()
        warnings: list[str] = []
        for source in self.doubted:
            warnings.append(
                f"{_name_of(source)} reads asset.xmp as a whole, and the server reported no fields of any asset this "
                'way: it may report only fields that are read by name, asset.xmp["ns:name"]'
            )
        return tuple(warnings)


class Layers(Struct):
    """What was read of one clip so far. ``depends_on`` names the facts that templates used.

    ``find`` finds the clip, and ``found`` is what it found once ``was_sought``. ``xmp`` are all XMP fields, reported
    at once; ``named`` are those read by name, where the server does not do that.
    """

    reader: Reader
    database: str
    find: Find
    answers: XmpAnswers
    found: FoundClip | None = None
    was_sought: bool = False
    depends_on: set[str] = set()
    xmp: Xmp | None = None
    named: NamedXmpFields | None = None
    links: tuple[Link, ...] | None = None

    async def clip(self) -> FoundClip | None:
        """Return the clip, its address and its title; the first call reads it."""
        if not self.was_sought:
            self.found = await self.find()
            self.was_sought = True
        return self.found

    async def evaluate(
        self,
        function: Callable[[Facts], T],
        entry: Entry | None,
        source: TaskSource,
        *,
        listed: dict[str, Any] | None = None,
        answer: FoundClip | None = None,
        reads: bool = True,
    ) -> T:
        """Evaluate with the facts read so far; where a layer is missing, read it and evaluate again.

        ``source`` is the task, for messages. ``listed`` takes the facts that the listing alone answered. ``answer`` is
        that to the title of the entry, where it is not the one that :meth:`clip` returns. Without ``reads`` a missing
        layer raises ``Need``.
        """
        while True:
            facts = self._facts(entry, answer)
            try:
                value = function(facts)
            except Need as need:
                if not reads:
                    raise
                await self._read_layer(need, source)
                continue
            finally:
                if facts.depends_on:
                    self.depends_on |= {f"fact {name}" for name in facts.depends_on}
                if facts.asked:
                    self.depends_on |= {f"xmp {name}" for name in facts.asked}
            if self.named is not None and "xmp" in facts.depends_on:
                self.answers.doubted[source] = None
            if listed is not None and facts.exists and facts.asset is None:
                listed.update(facts.depends_on)
            return value

    def added_to(self, live: LiveTarget) -> LiveTarget:
        """Return what a comparison has read, with the XMP fields and links that templates have read."""
        named = self.named.known if self.named is not None else None
        if named is None and self.xmp is None and self.links is None:
            return live
        xmp = live.xmp
        if self.xmp is not None:
            xmp = self.xmp
        elif named is not None:
            xmp = {**(live.xmp or {}), **named}
        return structs.replace(live, xmp=xmp, links=self.links or live.links, parts={})

    def _facts(self, entry: Entry | None, answer: FoundClip | None) -> Facts:
        if not self.was_sought:
            return Facts(entry=entry)
        if self.found is None:
            return Facts(exists=False)
        asset, _, title = answer or self.found
        if asset.title is None:  # found by a key id
            asset = structs.replace(asset, title=title)
        return Facts(entry=entry, asset=asset, xmp=self.xmp, named=self.named, links=self.links)

    async def _read_layer(self, need: Need, source: TaskSource) -> None:
        clip = await self.clip()
        if need.layer == "clip" or clip is None:
            return
        if need.layer == "links":
            self.links = await self.reader.read_links(self.database, clip.asset)
        elif need.name is None:
            await self._read_every_xmp(clip.address, source)
        else:
            await self._read_named_xmp(clip.address, need.name, source)

    async def _read_every_xmp(self, address: Address, source: TaskSource) -> None:
        task = _name_of(source)
        batch = self.answers.batches.get(self.database)
        if self.named is not None:
            raise refuse(
                f"{task} reads asset.xmp as a whole, and this server does not report all XMP fields at once",
                source,
                'read each field by its name: asset.xmp["dc:title"]; if the server reports none at all, remove it',
            )
        if batch is not None:
            raise refuse(
                f"{task} reads asset.xmp, and the batch of {batch.place} is loaded first: its result is unknown",
                source,
                "load the batch in a separate run before this one",
            )
        fields = await self._read_xmp(address, frozenset(), source)
        if fields:
            self.xmp = fields
            self.answers.reports_all = True
        else:
            self.named = NamedXmpFields(silent=fields is not None)

    async def _read_named_xmp(self, address: Address, name: str, source: TaskSource) -> None:
        fields = await self._read_xmp(address, frozenset({name}), source)
        if fields is None:
            raise refuse(
                f"{_name_of(source)} reads asset.xmp, and this server does not report XMP fields",
                source,
                "remove asset.xmp from the playbook for this server",
            )
        if self.named is not None:
            self.named.asked.add(name)
            self.named.fields.update(fields)

    async def _read_xmp(
        self, address: Address, names: frozenset[str], source: TaskSource
    ) -> Xmp | None:
        try:
            return await self.reader.read_xmp(self.database, address, names)
        except UnsupportedError as error:
            raise refuse(
                f"{_name_of(source)} reads asset.xmp: {error.message}", source, error.remedy
            ) from error


def _name_of(source: TaskSource) -> str:
    return f"the task {source.task!r}" if source.task else "a template"
