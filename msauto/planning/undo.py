"""From a run in the ledger to the intents that take it back (commands, «msauto undo»).

Undo goes through the same planning, limits and verification as a playbook. A value that is no longer what the run
wrote is left alone, with a warning; what cannot be undone gives a warning as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from msauto.aspects import ASPECTS
from msauto.aspects.aspect import UndoContext, Value
from msauto.aspects.list_aspect import ListAspect
from msauto.codec import from_json
from msauto.errors import RefusedError, one_line
from msauto.model.desired import (
    ChannelRef,
    DesiredAsset,
    DesiredChannel,
    IdRef,
    Intent,
    Ref,
    ResolvedPlaybooks,
    ServerIntents,
    TaskSource,
    TitleRef,
)
from msauto.model.facts import Facts, Need, NoAssetError
from msauto.model.identity import ClipIdentity, is_another_clip
from msauto.model.live import Asset
from msauto.model.plan import Change
from msauto.model.result import COUNTED_BY_SERVER, LEFT_CLIP, RequestState, RunDetails, TargetRecord
from msauto.model.server import ServerSpec
from msauto.model.snapshot import TITLE, Effect, Expected, predict
from msauto.planning.left_out import TargetChoice


def undo_run(
    details: RunDetails, specs: Mapping[str, ServerSpec], choice: TargetChoice
) -> ResolvedPlaybooks:
    """Return what takes a run back, as far as ``choice`` wants; ``specs`` are the servers by name, or some of them.

    ``warnings`` list what cannot be undone. Raises :class:`RefusedError` for a run that is still running.
    """
    run = details.summary.run
    if details.summary.status == "running":
        raise RefusedError(
            f"run {run} is still running", remedy="stop it, or wait until it has ended"
        )
    source = TaskSource(f"run {run}", task=f"Undo of {run}")
    work: dict[str, list[Intent]] = {}
    warnings: list[str] = []
    is_chosen = choice.among(_titles(details)) if choice.globs else None
    for number, record in enumerate(details.targets):
        target = record.target
        made = record.made
        is_other = is_chosen is not None and not is_chosen([target.name, target.title_after])
        if not made or is_other or target.server not in specs:
            continue
        try:
            context = _context(record, specs[target.server], source)
        except Exception as error:  # noqa: BLE001 - that of one target
            warnings.append(f"{target.server}: {target.name} cannot be undone: {one_line(error)}")
            continue
        _check_positions(context, details)
        for index, sent in made.items():
            if index not in context.changes:
                change = target.changes[index]
                called = f"{target.name}: {change.aspect} {change.key}".rstrip()
                why = _why_not(change, sent)
                warnings.append(f"{target.server}: {called} cannot be undone: {why}")
        if context.changes:
            work.setdefault(target.server, []).append(_intent(context, details, number))
    servers = tuple(ServerIntents(specs[name], tuple(intents)) for name, intents in work.items())
    return ResolvedPlaybooks(servers, warnings=tuple(warnings))


def _titles(details: RunDetails) -> Iterator[str]:
    """Yield the titles of the targets before the run and after it, only if they are asked for: all are decoded."""
    for record in details.targets:
        yield record.target.name
        yield record.target.title_after


def _context(record: TargetRecord, spec: ServerSpec, source: TaskSource) -> UndoContext:
    """Return what undoes one target of a run."""
    target = record.target
    kept: dict[int, Change] = {}
    for number, states in record.made.items():
        change = target.changes[number]
        if _why_not(change, states) is None:
            kept[number] = change
    effects: list[Sequence[Effect]] = []
    for request, known in zip(target.requests, record.requests, strict=False):
        if known.state == "done" and not kept.keys().isdisjoint(request.changes):
            effects.append(request.effects)
    things: dict[str, dict[str, Expected]] = defaultdict(dict)
    predicted = predict(effects, len(effects))
    for (aspect, key), expectation in predicted.items():
        things[aspect][key] = expectation
    return UndoContext(record, kept, things, spec, source)


def _check_positions(context: UndoContext, details: RunDetails) -> None:
    """Refuse positions that an older msauto recorded as a server counts them that does so from the in point."""
    if COUNTED_BY_SERVER not in details.notes or not context.spec.dialect.counts_from_in:
        return
    for name in context.things:
        aspect = ASPECTS[name]
        if isinstance(aspect, ListAspect) and aspect.positions:
            raise RefusedError(
                f"an older msauto recorded run {details.summary.run}, with positions from the in point of each clip",
                remedy="bring the segments and markers back with a playbook",
            )


def _why_not(change: Change, states: Collection[RequestState]) -> str | None:
    """Return why a change cannot be undone, of whose requests these are the states; ``None`` where it can."""
    aspect = ASPECTS[change.aspect]
    if aspect.for_good:
        return aspect.for_good
    if change.secret:
        return "it is secret, and what was there before is not kept"
    if change.basis == "none" and isinstance(aspect, Value):
        return "what was there before was never known"
    if "done" not in states:
        return "it is not known whether it was done"
    return None


# Intents -------------------------------------------------------------------------------------------------------


def _intent(context: UndoContext, details: RunDetails, number: int) -> Intent:
    target = context.record.target
    undone = _UndoneTarget(details, context.spec, context.source, number)
    if target.kind == "rss_channel":
        return Intent(ChannelRef(target.name), context.source, undone.channel, missing="skip")
    gone = f"{target.name}: left alone, because it no longer exists, or another clip now has this title"
    return Intent(_ref(context), context.source, undone.asset, missing="skip", if_missing=gone)


def _ref(context: UndoContext) -> Ref:
    """Return how the asset is found: as the run left it, or under the title that it had before."""
    target = context.record.target
    if target.address.namespace not in {"", "handle"}:
        return IdRef(target.database, target.address.namespace, target.address.name)
    renamed = context.things.get(TITLE[0], {}).get(TITLE[1])
    if renamed is None:
        return TitleRef(target.database, target.title_after)
    return TitleRef(
        target.database,
        str(renamed.before),
        (str(renamed.after),),
        may_stay=True,
        link_id=target.clip.link_id,
    )


def _parts(context: UndoContext) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    for name, aspect in ASPECTS.items():
        part = aspect.undo(context) if name in context.things else None
        if part is not None:
            parts[name] = part
    return parts


class _UndoneTarget(Struct, frozen=True, gc=False):
    """One target of a run. Its context is made where it is used: a run may have very many targets."""

    details: RunDetails
    spec: ServerSpec
    source: TaskSource
    number: int

    @property
    def context(self) -> UndoContext:
        return _context(self.details.targets[self.number], self.spec, self.source)

    def channel(self, _: Facts) -> DesiredChannel:
        """Return the items as they were before a run, of all that are still as the run left them."""
        context = self.context
        items: list[Any] = []
        for part in _parts(context).values():
            items += part.items
        notes = [f"channel {context.record.target.name}: {note}" for note in context.notes]
        return DesiredChannel(
            context.source, tuple(items), required_live=context.required_live, notes=tuple(notes)
        )

    def asset(self, facts: Facts) -> DesiredAsset:
        """Return what was there before a run, of all that is still as the run left it."""
        asset = facts.asset
        if asset is None and facts.exists:
            raise Need("clip")
        context = self.context
        target = context.record.target
        if asset is None or _is_replaced(context, asset):
            # The clip of the run is gone, and nothing of another one is concerned.
            raise NoAssetError(target.name)
        return DesiredAsset(
            context.source,
            _parts(context),
            unfinalized="allow",
            lossy=True,  # what cannot be written back was lost by the run; a note names it
            required_live=context.required_live,
            notes=tuple([f"{target.name}: {note}" for note in context.notes]),
        )


def _is_replaced(context: UndoContext, asset: Asset) -> bool:
    """Return whether the title of an asset leads to another clip than the one that the run left."""
    target = context.record.target
    clip = target.clip
    altered = set(target.altered)
    left = context.record.left.get(LEFT_CLIP)
    if left is not None:  # without it, the run ended before the clip was read again
        clip = from_json(ClipIdentity, left)
        altered -= {"files", "orig_name"}
    return is_another_clip(clip, asset, altered)
