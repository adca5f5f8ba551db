"""From a run in the ledger to the intents that take it back (the contract, «msauto undo»).

Undo goes through the same planning, limits and verification as a playbook. A value that is no longer what the run
wrote is left alone, with a warning; what cannot be undone gives a warning as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from msauto.aspects import ASPECTS
from msauto.aspects.aspect import AppliedChange, UndoContext
from msauto.aspects.rss_item import undo_items
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
from msauto.model.identity import is_another_clip
from msauto.model.plan import Change, Target
from msauto.model.result import RunDetails, TargetRecord
from msauto.model.server import ServerSpec


def undo_run(details: RunDetails, specs: Mapping[str, ServerSpec]) -> ResolvedPlaybooks:
    """Return what takes a run back; ``specs`` are its servers by name.

    ``warnings`` list what cannot be undone. Raises :class:`RefusedError` for a run that is still running.
    """
    run = details.summary.run
    if details.summary.status == "running":
        raise RefusedError(f"run {run} is still running", remedy="stop it, or wait until it has ended")
    work: dict[str, tuple[Intent, ...]] = {}
    warnings: list[str] = []
    for record in details.targets:
        made, target = tuple(_made(record)), record.target
        if not made:
            continue
        spec, source = specs[target.server], TaskSource(f"run {run}", task=f"Undo of {run}")
        kept: tuple[AppliedChange, ...] = ()
        for one in made:
            why = _why_not(one.change, record, spec)
            if why is None:
                kept += (one,)
            else:
                called = f"{target.name}: {one.change.aspect} {one.change.key}".rstrip()
                warnings.append(f"{target.server}: {called} cannot be undone: {why}")
        if kept:
            work[target.server] = (*work.get(target.server, ()), _intent(record, kept, spec, source))
    servers = tuple(ServerIntents(specs[name], intents) for name, intents in work.items())
    return ResolvedPlaybooks(servers, warnings=tuple(warnings))


def servers_of(details: RunDetails) -> tuple[str, ...]:
    """Return the names of the servers on which a run may have changed anything, in its order."""
    return tuple(dict.fromkeys(record.target.server for record in details.targets if any(_made(record))))


def _made(record: TargetRecord) -> Iterator[AppliedChange]:
    """Yield the changes of which something was sent, unless it is certain that none of it was done."""
    for number, change in enumerate(record.target.changes):
        both = zip(record.target.requests, record.requests, strict=False)
        mine = [(request, known.state) for request, known in both if number in request.changes]
        sent = tuple(request for request, state in mine if state not in {"planned", "not sent"})
        # A refused request of several expectations may have been done in part.
        maybe = [state == "failed" and len(request.expect) > 1 for request, state in mine]
        if any(maybe) or any(state in {"done", "unverified", "sending"} for _, state in mine):
            yield AppliedChange(change, sent, whole=all(state == "done" for _, state in mine))


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


def _intent(record: TargetRecord, made: tuple[AppliedChange, ...], spec: ServerSpec, source: TaskSource) -> Intent:
    target = record.target
    if target.kind == "rss_channel":
        return Intent(ChannelRef(target.name), source, lambda _: undo_items(made, spec, source), missing="skip")
    gone = f"{target.name}: left alone, because it no longer exists, or another clip now has this title"
    evaluate = partial(_undo_asset, record=record, made=made, spec=spec, source=source)
    return Intent(_ref(target, made), source, evaluate, missing="skip", if_missing=gone)


def _ref(target: Target, made: tuple[AppliedChange, ...]) -> Ref:
    """Return how the asset is found: as the run left it, or under the title that it had before."""
    if target.address.namespace not in {"", "handle"}:
        return IdRef(target.database, target.address.namespace, target.address.name)
    renamed = next((one.change for one in made if ASPECTS[one.change.aspect].is_rename), None)
    if renamed is None:
        return TitleRef(target.database, target.id.name)
    return TitleRef(
        target.database, str(renamed.before), (str(renamed.after),), may_stay=True, link_id=target.clip.link_id
    )


def _undo_asset(
    facts: Facts, *, record: TargetRecord, made: tuple[AppliedChange, ...], spec: ServerSpec, source: TaskSource
) -> DesiredAsset:
    """Return what was there before a run, of all that is still as the run left it."""
    name, asset = record.target.name, facts.asset
    if not facts.there:
        raise NoAssetError(name)
    if asset is None:
        raise Need("clip")
    # Days later, the file may be another one, and a recording may have ended.
    if is_another_clip(record.target.clip, asset, altered={"frames", "files"}):
        raise NoAssetError(name)  # the clip of the run is gone, and nothing of the other one is concerned
    context = UndoContext(record, made, spec, source, asset, facts.links, [])
    parts = {name: part for name, aspect in ASPECTS.items() if (part := aspect.undo(context)) is not None}
    return DesiredAsset(
        source,
        parts,
        unfinalized="allow",
        lossy=True,  # what cannot be written back was lost by the run; a note names it
        still=context.still,
        notes=tuple(f"{name}: {note}" for note in context.notes),
    )
