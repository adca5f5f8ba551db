"""From a run in the ledger to the intents that take it back (the contract, «msauto undo»).

Undo goes through the same planning, limits and verification as a playbook. A value that is no longer what the run
wrote is left alone, with a warning; what cannot be undone gives a warning as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msauto.aspects import ASPECTS
from msauto.aspects.rss_item import undo_items
from msauto.diffing.aspect_definition import AppliedChange, UndoContext
from msauto.errors import RefusedError
from msauto.model.desired import (
    ChannelRef,
    DesiredAsset,
    IdRef,
    Intent,
    Ref,
    ResolvedPlaybooks,
    ServerIntents,
    TaskSource,
    TitleRef,
)
from msauto.model.facts import Facts, Need, NoAssetError
from msauto.model.live import Asset, Link
from msauto.model.plan import Change, Request
from msauto.model.run_records import RunDetails, TargetRecord
from msauto.model.server import ServerSpec
from msauto.secrets.taint import HIDDEN, TOKEN_PATTERN


def undo_run(details: RunDetails, specs: Mapping[str, ServerSpec]) -> ResolvedPlaybooks:
    """Return what takes a run back; ``specs`` are its servers by name.

    ``warnings`` list what cannot be undone. Raises :class:`RefusedError` for a run that is still running.
    """
    run = details.summary.run
    if details.summary.status == "running":
        raise RefusedError(f"run {run} is still running", remedy="stop it, or wait until it has ended")
    intents: dict[str, list[Intent]] = {}
    warnings: list[str] = []
    for record in details.targets:
        name = record.target.server
        made = tuple(_made(record))
        kept = []
        for one in made:
            why = _why_not(one.change, record, specs[name])
            kept += [one] if why is None else []
            warnings += [] if why is None else [f"{name}: {_called(record, one.change)} cannot be undone: {why}"]
        if kept:
            intents.setdefault(name, []).append(_intent(record, tuple(kept), specs[name], run))
    work = tuple(ServerIntents(specs[name], tuple(desired)) for name, desired in intents.items())
    return ResolvedPlaybooks(work, warnings=tuple(warnings))


def servers_of(details: RunDetails) -> tuple[str, ...]:
    """Return the names of the servers on which a run may have changed anything, in its order."""
    return tuple(dict.fromkeys(record.target.server for record in details.targets if any(_made(record))))


def _called(record: TargetRecord, change: Change) -> str:
    return f"{record.target.name}: {change.aspect} {TOKEN_PATTERN.sub(HIDDEN, change.key)}".rstrip()


def _made(record: TargetRecord) -> Iterator[AppliedChange]:
    """Yield the changes of which something was sent, unless it is certain that none of it was done."""
    for number, change in enumerate(record.target.changes):
        both = zip(record.target.requests, record.requests, strict=False)
        mine = [(request, known.state) for request, known in both if number in request.changes]
        sent = tuple(request for request, state in mine if state not in {"planned", "not sent"})
        if any(state in {"done", "unverified", "sending"} or _in_part(request, state) for request, state in mine):
            yield AppliedChange(change, sent, whole=all(state == "done" for _, state in mine))


def _in_part(request: Request, state: str) -> bool:
    """Return whether a refused request may have been done in part."""
    return state == "failed" and len(request.expect) > 1


def _why_not(change: Change, record: TargetRecord, spec: ServerSpec) -> str | None:
    """Return why a change cannot be undone; ``None`` where it can, if only in part."""
    aspect = ASPECTS[change.aspect]
    if aspect.for_good:
        return aspect.for_good
    if change.secret:
        return "it is secret, and what was there before is not kept"
    if change.basis == "none" and aspect.is_value:
        return "what was there before was never known"
    return aspect.why_not_undone(change, record, spec)


# Intents -------------------------------------------------------------------------------------------------------


def _intent(record: TargetRecord, made: tuple[AppliedChange, ...], spec: ServerSpec, run: str) -> Intent:
    target, source = record.target, TaskSource(f"run {run}", task=f"Undo of {run}")
    if target.kind == "rss_channel":
        return Intent(ChannelRef(target.name), source, lambda _: undo_items(made, spec, source), missing="skip")
    return Intent(
        _ref(record, made),
        source,
        AssetUndo(record, made, spec, source),
        missing="skip",
        if_missing=f"{target.name}: left alone, because it no longer exists",
    )


def _ref(record: TargetRecord, made: tuple[AppliedChange, ...]) -> Ref:
    """Return how the asset is found: as the run left it, or under the title that it had before."""
    target = record.target
    if target.address.namespace not in {"", "handle"}:
        return IdRef(target.database, target.address.namespace, target.address.name)
    renamed = next((one.change for one in made if one.change.aspect == "title"), None)
    if renamed is None:
        return TitleRef(target.database, target.id.name)
    return TitleRef(
        target.database, str(renamed.before), was=(str(renamed.after),), may_stay=True, link_id=target.link_id
    )


@dataclass(frozen=True, slots=True)
class AssetUndo:
    """The ``evaluate`` of an intent that undoes what a run did to one asset."""

    record: TargetRecord
    made: tuple[AppliedChange, ...]
    spec: ServerSpec
    source: TaskSource

    def __call__(self, facts: Facts) -> DesiredAsset:
        """Return what was there before, of all that is still as the run left it."""
        name = self.record.target.name
        if not facts.there:
            raise NoAssetError(name)
        if facts.asset is None:
            raise Need("clip")
        if not self._is_the_one(facts.asset):
            return DesiredAsset(self.source, notes=(f"{name}: left alone, because another clip now has this title",))
        if facts.links is None and any((one.change.aspect, one.change.action) == ("link", "add") for one in self.made):
            raise Need("links")
        return self._desired(facts.asset, facts.links or ())

    def _is_the_one(self, asset: Asset) -> bool:
        """Return whether it is the clip that the run changed: one recorded again is another (field notes)."""
        target, created = self.record.target, asset.attributes.get("create_time")
        ids = {target.link_id, asset.link_id} - {None}
        times = {target.create_time, created} - {None}
        return len(ids) < 2 and len(times) < 2

    def _desired(self, asset: Asset, links: Sequence[Link]) -> DesiredAsset:
        notes: list[str] = []
        context = UndoContext(self.record, self.made, self.spec, self.source, asset, links, notes)
        named: dict[str, Any] = {}
        still: dict[str, Any] = {}
        for aspect in ASPECTS.values():
            found = dict(aspect.undo(context))
            still |= found.pop("still", {})
            named |= found
        return DesiredAsset(
            self.source,
            unfinalized="allow",
            lossy=True,  # what cannot be written back was lost by the run; a note names it
            still=still,
            notes=tuple(f"{self.record.target.name}: {note}" for note in notes),
            **named,
        )
