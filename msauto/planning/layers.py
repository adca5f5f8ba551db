"""Facts of one clip, read layer by layer as templates touch them; each layer is read at most once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from msauto.errors import PlanningError, UnsupportedError
from msauto.model.facts import Facts, Layer, Need
from msauto.model.live import Asset, Entry, Link, Xmp
from msauto.model.plan import Address
from msauto.model.ports import Reader
from msauto.model.wanted import Source
from msauto.planning.draft import refuse

T = TypeVar("T")

Find = Callable[[], Awaitable[tuple[Asset, Address, str] | None]]
"""Finds the clip: what the server says, how it was addressed, and what it is called; ``None``: not there."""


class Layers:
    """What was read of one clip so far. ``looked`` names the facts that templates touched."""

    def __init__(self, reader: Reader, database: str, find: Find, batch: Source | None = None) -> None:
        self.looked: set[str] = set()
        self.xmp: Xmp | None = None
        self.links: tuple[Link, ...] | None = None
        self._reader = reader
        self._database = database
        self._find = find
        self._batch = batch
        self._found: tuple[Asset, Address, str] | None = None
        self._read: set[Layer] = set()

    async def clip(self) -> tuple[Asset, Address, str] | None:
        """Return the clip, its address and its title; read when first asked."""
        if "clip" not in self._read:
            self._found = await self._find()
            self._read.add("clip")
        return self._found

    async def evaluate(
        self, function: Callable[[Facts], T], entry: Entry | None = None, source: Source | None = None
    ) -> T:
        """Evaluate with the facts read so far; where a layer is missing, read it and evaluate again.

        ``source`` is the task that asks, for messages.
        """
        while True:
            facts = self._facts(entry)
            try:
                value = function(facts)
            except Need as need:
                await self._read_layer(need.layer, source)
                continue
            finally:
                self.looked.update(f"fact:{name}" for name in facts.looked)
            return value

    def _facts(self, entry: Entry | None) -> Facts:
        if "clip" not in self._read:
            return Facts(entry=entry)
        if self._found is None:
            return Facts.none()
        asset, _, title = self._found
        asset = asset if asset.title is not None else replace(asset, title=title)
        return Facts(entry=entry, asset=asset, xmp=self.xmp, links=self.links)

    async def _read_layer(self, layer: Layer, source: Source | None) -> None:
        if layer in self._read:
            raise PlanningError(f"the facts of the layer {layer!r} cannot be read")
        found = await self.clip()
        if layer == "clip" or found is None:
            return
        if layer == "xmp" and self._batch is not None:
            raise _unknown_yet(self._batch, source)
        self._read.add(layer)
        asset, address, _ = found
        if layer == "links":
            self.links = await self._reader.read_links(self._database, asset)
            return
        self.xmp = await self._all_xmp(address)
        if self.xmp is None:
            raise PlanningError(
                "a template reads asset.xmp, and this server does not show XMP fields",
                remedy="leave asset.xmp out of the playbook for this server",
            )

    async def _all_xmp(self, address: Address) -> Xmp | None:
        try:
            return (await self._reader.read_xmp(self._database, address, frozenset())).fields
        except UnsupportedError as error:
            raise PlanningError(f"a template reads asset.xmp: {error.message}", remedy=error.remedy) from error


def _unknown_yet(batch: Source, source: Source | None) -> PlanningError:
    return refuse(
        f"{f'the task {source.task!r}' if source and source.task else 'a template'} reads asset.xmp, and the batch of "
        f"{batch.place} is loaded before: what it leaves there is not known yet",
        source,
        "load the batch in a run of its own, before this one",
    )
