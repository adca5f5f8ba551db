"""What takes the changes of one asset back: only where the asset is still the one that the run changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from msauto.diffing.comparison import same_text
from msauto.model.desired import DesiredAsset, Position, Sourced, TaskSource
from msauto.model.facts import Facts, Need, NoAssetError
from msauto.model.history import TargetRecord
from msauto.model.live import Asset, Link
from msauto.model.plan import Json
from msauto.model.server import ServerSpec
from msauto.planning.undo.undo_lists import undo_links, undo_markers, undo_segments
from msauto.verification.expectations import mapping, texts

if TYPE_CHECKING:
    from msauto.planning.undo.undo import AppliedChange

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AssetUndo:
    """The ``evaluate`` of an intent that takes back what a run did to one asset."""

    record: TargetRecord
    made: tuple[AppliedChange, ...]
    spec: ServerSpec
    source: TaskSource

    def __call__(self, facts: Facts) -> DesiredAsset:
        """Return what was there before, of all that is still as the run left it."""
        if not facts.there:
            raise NoAssetError(self.record.target.name)
        if facts.asset is None:
            raise Need("clip")
        if not self._is_the_one(facts.asset):
            name = self.record.target.name
            return DesiredAsset(self.source, notes=(f"{name}: left alone, for another clip has this title by now",))
        if any(one.change.action == "add" for one in self._of("link")) and facts.links is None:
            raise Need("links")
        return self._wanted(facts.asset, facts.links or ())

    def _is_the_one(self, asset: Asset) -> bool:
        """Tell whether it is the clip that the run changed: one recorded anew is another (field notes)."""
        target, created = self.record.target, asset.attributes.get("create_time")
        ids = {target.link_id, asset.link_id} - {None}
        times = {target.create_time, created} - {None}
        return len(ids) < 2 and len(times) < 2

    def _wanted(self, asset: Asset, links: Sequence[Link]) -> DesiredAsset:
        notes = [*self._in_part(), *self._separated()]
        segments = undo_segments(self._of("segment", "segmentation"), asset, self.spec.dialect, notes)
        markers = undo_markers(self._of("marker"), asset, self.spec.dialect, self.record.learned, notes)
        name = self.record.target.name
        return DesiredAsset(
            self.source,
            unfinalized="allow",
            lossy=True,  # what cannot be written back is told, and was lost by the run
            title=self._title(asset, notes),
            fields={key: self._said(value) for key, value in self._fields()},
            xmp={key: self._said(value) for key, value in self._xmp()},
            segments=tuple(map(self._said, segments)),
            markers=tuple(map(self._said, markers)),
            links=tuple(map(self._said, undo_links(self._of("link"), links, notes))),
            still=dict(self._still()),
            notes=tuple(f"{name}: {note}" for note in notes),
        )

    def _said(self, value: T) -> Sourced[T]:
        return Sourced(value, self.source)

    def _of(self, *aspects: str) -> Sequence[AppliedChange]:
        return [one for one in self.made if one.change.aspect in aspects]

    def _title(self, asset: Asset, notes: list[str]) -> Sourced[str] | None:
        """Return the former title of an asset that is found by its id; one found by title is renamed by that."""
        for one in self._of("title") if self.record.target.address.namespace else ():
            before, after = str(one.change.before), str(one.change.after)
            if asset.title is None or same_text(asset.title, after):
                return self._said(before)
            if not same_text(asset.title, before):
                notes.append(f"the title is left alone: it is {asset.title!r} by now, and the run wrote {after!r}")
        return None

    def _fields(self) -> Iterator[tuple[str, str | Position]]:
        for one in self._of("field"):
            before = one.change.before
            yield one.change.key, "" if before is None else str(before)

    def _xmp(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        separator = self.spec.dialect.list_separator
        for one in self._of("xmp"):
            values = texts(one.change.before)
            if not any(separator in value for value in values):
                yield one.change.key, values

    def _separated(self) -> Iterator[str]:
        separator = self.spec.dialect.list_separator
        for one in self._of("xmp"):
            if any(separator in value for value in texts(one.change.before)):
                yield f"{one.change.key} is left alone: its former value holds {separator!r}, which separates values"

    def _still(self) -> Iterator[tuple[str, Json]]:
        for one in self._of("field", "xmp"):
            yield f"{one.change.aspect}:{one.change.key}", one.change.after
        for one in self._of("link"):
            for name, value in mapping(one.change.after).items():
                yield f"link-field:{one.change.key}#{name}", value

    def _in_part(self) -> Iterator[str]:
        for one in self._of("segment", "segmentation"):
            if not one.change.reversible:
                lost = (
                    "its keywords, which were never known" if one.change.basis == "none" else "what cannot be written"
                )
                yield f"{one.change.aspect} {one.change.key} comes back without {lost}"
