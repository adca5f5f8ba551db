"""From a run in the ledger to the intents that take it back (the contract, «msauto undo»).

Undo is no special way of writing: what it wants goes through the same planning, limits and proof as a playbook. A
value that is no longer what the run wrote is left alone and told; what cannot be taken back is told as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from msauto.diffing.comparison import same_text
from msauto.errors import RefusedError
from msauto.model.desired import ChannelRef, IdRef, Intent, Ref, ResolvedPlaybooks, ServerIntents, TaskSource, TitleRef
from msauto.model.history import RunDetails, TargetRecord
from msauto.model.live import parse_folder
from msauto.model.plan import Aspect, Change, Expectation, Request
from msauto.model.server import ServerSpec
from msauto.planning.undo.undo_asset import AssetUndo
from msauto.planning.undo.undo_rss import ChannelUndo
from msauto.secrets.taint import HIDDEN, STAND_IN

_FOR_GOOD: Mapping[Aspect, str] = {
    "asset": "a deleted asset does not come back",
    "command": "what a command did is not known",
    "xmp_batch": "what a batch loaded is not known",
    "restore": "the restored file stays on disk",
    "thumbnail": "the file stays where it was saved",
    "proxy": "the file stays where it was saved",
}
"""What no run can take back, and why."""


@dataclass(frozen=True, slots=True)
class AppliedChange:
    """A change that a run made, or may have made (``whole`` false), with the requests that were sent for it."""

    change: Change
    requests: tuple[Request, ...]
    whole: bool

    @property
    def expects(self) -> tuple[Expectation, ...]:
        """What its requests had to show."""
        return tuple(expect for request in self.requests for expect in request.expect)


def undo_run(details: RunDetails, specs: Mapping[str, ServerSpec]) -> ResolvedPlaybooks:
    """Return what takes a run back; ``specs`` are its servers by name.

    ``warnings`` list what cannot be taken back. Raises :class:`RefusedError` for a run that still goes on.
    """
    run = details.summary.run
    if details.summary.status == "running":
        raise RefusedError(f"run {run} still goes on", remedy="stop it, or wait until it has ended")
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
    return f"{record.target.name}: {change.aspect} {STAND_IN.sub(HIDDEN, change.key)}".rstrip()


def _made(record: TargetRecord) -> Iterator[AppliedChange]:
    """Yield the changes of which something was sent, unless it is certain that none of it was done."""
    for number, change in enumerate(record.target.changes):
        both = zip(record.target.requests, record.requests, strict=False)
        mine = [(request, known.state) for request, known in both if number in request.changes]
        sent = tuple(request for request, state in mine if state not in {"planned", "not sent"})
        if any(state in {"done", "unverified", "sending"} or _in_part(request, state) for request, state in mine):
            yield AppliedChange(change, sent, whole=all(state == "done" for _, state in mine))


def _in_part(request: Request, state: str) -> bool:
    """Tell whether a refused request may have done a part of what it says."""
    return state == "failed" and len(request.expect) > 1


def _why_not(change: Change, record: TargetRecord, spec: ServerSpec) -> str | None:
    """Return why a change cannot be taken back; ``None`` where it can, if only in part."""
    if change.aspect in _FOR_GOOD:
        return _FOR_GOOD[change.aspect]
    if change.secret:
        return "it is secret, and what was there before is not kept"
    if change.basis == "none" and change.aspect in {"field", "xmp"}:
        return "what was there before was never known"
    if change.aspect == "link" and change.action == "add":
        return _why_not_unlink(change, record, spec)
    return None


def _why_not_unlink(change: Change, record: TargetRecord, spec: ServerSpec) -> str | None:
    if not spec.dialect.removes_links:
        return "the interface has no way to remove a link"
    titles = {record.target.name, record.target.address_after.name, record.target.address.name}
    own = any(same_text(parse_folder(change.key)[-1], title) for title in titles)
    return "the link bears the asset's own title: deleting by it would delete the asset" if own else None


# Intents -------------------------------------------------------------------------------------------------------


def _intent(record: TargetRecord, made: tuple[AppliedChange, ...], spec: ServerSpec, run: str) -> Intent:
    target, source = record.target, TaskSource(f"run {run}", task=f"Undo of {run}")
    if target.kind == "rss_channel":
        return Intent(ChannelRef(target.name), source, ChannelUndo(made, spec, source), missing="skip")
    return Intent(
        _ref(record, made),
        source,
        AssetUndo(record, made, spec, source),
        missing="skip",
        if_missing=f"{target.name}: left alone, for it is not there any more",
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
