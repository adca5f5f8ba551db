"""Desired and live state of an asset, a channel or a database become a target with changes and requests.

Handlers run on a target if their tasks changed it, or if they are pending from an earlier run. A change belongs to the
task that declares it. If two tasks declare the same change, it belongs to the first, as in Ansible. If several tasks
declare parts of one change, it belongs to all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import starmap
from typing import Any

from msgspec import UNSET, Struct, structs

from msauto.aspects import ASPECTS, holds
from msauto.aspects.asset import plan_deletion
from msauto.aspects.comparison import mapping
from msauto.aspects.merging import Merging
from msauto.aspects.plan_builder import PENDING_PREFIX, TASK, PlanBuilder, PlanContext, Trigger, answer_told, refuse
from msauto.aspects.positions import in_point
from msauto.aspects.rss_item import ChannelContext, merge_channels, plan_items
from msauto.aspects.xmp_batch import plan_batch
from msauto.errors import MsautoError, PlanningError
from msauto.interface import requests
from msauto.interface.requests import asset_path
from msauto.model.desired import (
    Desired,
    DesiredAsset,
    DesiredChannel,
    DesiredOperation,
    DesiredXmpBatch,
    Handler,
)
from msauto.model.identity import ClipIdentity
from msauto.model.live import Asset, RssChannel, show_folder
from msauto.model.plan import Address, Change, EmptiedList, Json, Target, TargetContext, TargetId
from msauto.model.ports import LiveTarget
from msauto.model.server import ServerSpec
from msauto.planning.editorial_warnings import check_editorial
from msauto.planning.target_reading import fingerprint


class LocatedAsset(Struct, frozen=True, eq=False):
    """An asset as it was found: its answer, how it was addressed, and what it is called."""

    server: ServerSpec
    database: str
    asset: Asset
    address: Address
    title: str
    looked: frozenset[str] = frozenset()

    @property
    def create_time(self) -> str | None:
        """The creation time as the server spells it: part of what identifies this clip."""
        return self.asset.attributes.get("create_time")

    def id(self, title: str) -> TargetId:
        """Return what the ledger keeps its memories under, if the asset is called ``title``."""
        return TargetId(self.server.name, self.database, "asset", title, self.asset.link_id, self.create_time)


def title_after(found: LocatedAsset, desired: DesiredAsset | None) -> str:
    """Return what the asset is called after the run."""
    return desired.title.value if desired and desired.title else found.title


class AssetPlanner:
    """One asset while it is planned: its tasks, then the handlers that their changes call, then the target."""

    def __init__(self, found: LocatedAsset, desired: DesiredAsset | None, context: PlanContext) -> None:
        self.held = False
        self._found = found
        self._desired = desired
        self._context = context
        self._ran: set[tuple[str, str, str]] = set()
        self.builder.look(*found.looked)

    @property
    def builder(self) -> PlanBuilder:
        """The plan so far."""
        return self._context.builder

    @property
    def deleting(self) -> bool:
        """Whether the asset is deleted: nothing can be run on it after that."""
        return self._desired is not None and not self._desired.present

    def tasks(self, runs: Sequence[DesiredOperation]) -> None:
        """Plan what the tasks want. Raises ``PlanningError`` with all that is wrong with it."""
        errors: list[MsautoError] = []
        for step in (*self._aspects(), *(_run(self._context, run, TASK) for run in runs)):
            try:
                step()
            except MsautoError as error:
                errors.append(error)
        if errors:
            raise errors[0] if len(errors) == 1 else PlanningError("\n".join(dict.fromkeys(map(str, errors))))

    def _aspects(self) -> Iterator[Callable[[], None]]:
        context, desired = self._context, self._desired
        if desired is None:
            return
        self.builder.warnings += desired.notes
        if not desired.present:
            yield partial(plan_deletion, context, desired.source)
            return
        for name, aspect in ASPECTS.items():
            if name in desired.parts and aspect.plan is not None:
                yield partial(aspect.plan, context, desired.parts[name])
        yield partial(check_editorial, context, desired)

    def handler(self, desired: DesiredOperation, name: str, pending: str) -> None:
        """Plan what a handler runs, unless another one runs just that on this target."""
        cause = Trigger(name, pending, before=self.deleting)
        mine = PlanBuilder()
        _run(structs.replace(self._context, builder=mine), desired, cause)()
        keys = {(str(change.after), change.aspect, change.key) for change in mine.changes}
        if not keys & self._ran:
            self._ran |= keys
            _run(self._context, desired, cause)()

    def hold(self) -> None:
        """Leave out all that was planned so far."""
        kept, self._context = self.builder.warnings, structs.replace(self._context, builder=PlanBuilder())
        self.builder.warnings += kept
        self.held = True

    def target(self, looked: Collection[str], live: LiveTarget) -> tuple[Target, tuple[str, ...]]:
        """Return the target, and warnings. Raises ``PlanningError`` for what no request can hold."""
        found, builder = self._found, self.builder
        builder.look(*looked)
        target = Target(
            server=found.server.name,
            database=found.database,
            kind="asset",
            name=found.title,
            folder=None if found.asset.folder is None else show_folder(found.asset.folder),
            address=found.address,
            address_after=Address(found.title) if self.deleting else self._context.address,
            clip=ClipIdentity.of(found.asset),
            rate=found.asset.rate,
            places=tuple(map(show_folder, self._context.places)),
        )
        target = _with_plan(target, builder, found.server, live)
        if target.changes:
            target = structs.replace(target, context=shown_context(found.asset, found.server, target.changes))
        return target, tuple(builder.warnings)


def plan_database(
    server: ServerSpec, database: str, batches: Sequence[DesiredXmpBatch], memory: Mapping[str, Json]
) -> tuple[Target, tuple[str, ...]]:
    """Return the target of a database, with the batches that are to be loaded; and warnings."""
    builder = PlanBuilder()
    distinct: dict[tuple[str, bytes], DesiredXmpBatch] = {}
    for batch in batches:
        distinct.setdefault((batch.connector, batch.content), batch)
    for batch in distinct.values():
        plan_batch(server, database, batch, memory, builder)
    address = Address(database)
    target = Target(server.name, database, "database", database, address=address, address_after=address)
    return _with_plan(target, builder, server, LiveTarget()), tuple(builder.warnings)


def plan_channel(
    server: ServerSpec, channel: RssChannel, declared: Sequence[DesiredChannel], memory: Mapping[str, Json]
) -> tuple[Target, tuple[str, ...]]:
    """Return the target of a channel, and warnings. Raises ``PlanningError`` for contradictions of its tasks."""
    merging = Merging(None, "")
    desired = merge_channels(declared, merging)
    merging.check()
    context = ChannelContext(server, channel, memory, desired)
    context.builder.warnings += desired.notes
    plan_items(context)
    address = Address(channel.name)
    target = Target(server.name, "", "rss_channel", channel.name, address=address, address_after=address)
    live = LiveTarget(channel=channel)
    return _with_plan(target, context.builder, server, live), tuple(context.builder.warnings)


def _with_plan(target: Target, builder: PlanBuilder, server: ServerSpec, live: LiveTarget) -> Target:
    """Return a target with its plan. Raises ``PlanningError`` for a request line that is too long for the server."""
    _check_requests(server, builder)
    if not builder.changes:
        return target  # only counted, never kept: its fingerprint would be made for nothing
    looked = tuple(sorted(builder.looked))
    return structs.replace(
        target,
        changes=tuple(builder.changes),
        requests=builder.requests(),
        looked=looked,
        fingerprint=fingerprint(looked, live),
        wait=builder.wait,
        emptied=tuple(starmap(EmptiedList, builder.emptied)),
        holding=tuple(each for each in builder.holding if holds(each, live)) or UNSET,
    )


def context_of(
    found: LocatedAsset, desired: DesiredAsset | None, live: LiveTarget, memory: Mapping[str, Json], **more: Any
) -> PlanContext:
    """Return what the aspects of an asset work with; ``more`` are further fields of it."""
    before = asset_path(found.database, found.address, dialect=found.server.dialect)
    title = title_after(found, desired)
    renamed = title != found.title and not found.address.namespace
    after = asset_path(found.database, Address(title), dialect=found.server.dialect) if renamed else before
    return PlanContext(
        server=found.server,
        database=found.database,
        path_before=before,
        path=after,
        title=title,
        live_title=found.title,
        asset=found.asset,
        live=live,
        builder=PlanBuilder(),
        memory=memory,
        lossy=desired.lossy if desired else False,
        still=desired.still if desired else {},
        address=found.address if found.address.namespace else Address(title),
        **more,
    )


def shown_context(asset: Asset, server: ServerSpec, changes: Sequence[Change]) -> TargetContext:
    """Return what surrounds the changes of an asset on a timeline; positions are frames from the first of the file."""
    shown: dict[str, Any] = {}
    if any(ASPECTS[change.aspect].is_on_timeline for change in changes):
        for aspect in ASPECTS.values():
            shown |= aspect.staying(asset, in_point(asset, server.dialect), changes)
    return TargetContext(asset.frames, **shown)


def _run(context: PlanContext, desired: DesiredOperation, cause: Trigger) -> Callable[[], None]:
    run = ASPECTS[desired.aspect].run
    if run is None:
        raise TypeError(desired)
    return partial(run, context, desired, cause)


def _check_requests(server: ServerSpec, builder: PlanBuilder) -> None:
    """Refuse a request whose line is longer than the server takes: it would be cut, or refused half-way."""
    for request in builder.requests():
        length = requests.request_line_length(request)
        if length > server.request_line:
            change = builder.changes[request.changes[0]]
            raise refuse(
                f"{change.aspect} {change.key}: its request line has {length} bytes, and the cap is "
                f"{server.request_line}",
                change.source,
                "write a shorter value, or raise `request_line` of the server if it takes longer ones",
            )


# Handlers -----------------------------------------------------------------------------------------------------------


class HandlerCall(Struct, frozen=True):
    """A handler to run; ``pending`` names the run that left it pending."""

    handler: Handler
    pending: str = ""


def notified(
    declared: Iterable[tuple[tuple[Handler, ...], Desired]], merged: DesiredAsset | None, changes: Sequence[Change]
) -> list[Handler]:
    """Return the handlers that the changes notify, each once, in the order of the plays."""
    places = {change.source.place for change in changes}
    for sourced in merged.sourced() if merged else ():
        if sourced.source.place in places:
            places.update(source.place for source in sourced.also)
    return in_order(
        handler
        for handlers, desired in declared
        if handlers and places & {*(desired.places() if isinstance(desired, DesiredAsset) else [desired.source.place])}
        for handler in handlers
    )


def in_order(handlers: Iterable[Handler]) -> list[Handler]:
    """Return handlers, each once, in the order of the plays."""
    return sorted({each.order: each for each in handlers}.values(), key=lambda each: each.order)


def handlers_in_doubt(memory: Mapping[str, Json], notified_handlers: Iterable[Handler]) -> list[str]:
    """Return why a deletion must wait: a handler that runs before it was sent by an earlier run, and may have run.

    Sending it again may run it twice, and deleting without it may lose data: the user must decide.
    """
    found = ((each.name, mapping(memory.get(f"{PENDING_PREFIX}{each.name}"))) for each in notified_handlers)
    return [_in_doubt(name, value, _DELETION_WAITS) for name, value in found if value.get("before")]


def pending_calls(
    memory: Mapping[str, Json],
    known: Iterable[Handler],
    notified_handlers: Sequence[Handler],
    certainly_notified: Sequence[Handler],
) -> tuple[list[HandlerCall], list[str]]:
    """Return the handlers to run, and warnings about those of earlier runs that do not run.

    ``known`` are all that the tasks name, ``notified_handlers`` those that changes notify, ``certainly_notified``
    those that a certain change notifies. If the answer to a handler was lost, only a certain change sends it again:
    the handler may have run already. A change is not certain if the server does not report the value.
    """
    runs, warnings = {each.order: HandlerCall(each) for each in notified_handlers}, list[str]()
    by_name: dict[str, list[Handler]] = {}
    for handler in in_order((*known, *notified_handlers)):
        by_name.setdefault(handler.name, []).append(handler)
    sure = {each.name for each in certainly_notified}
    for item, value in memory.items():
        if not item.startswith(PENDING_PREFIX):
            continue
        name, sent = item.removeprefix(PENDING_PREFIX), mapping(value)
        mine, run = by_name.get(name, []), str(sent.get("run", ""))
        if sent.get("unknown"):
            held = name not in sure and any(runs.pop(handler.order, None) for handler in mine)
            again = "a change of this run notifies it again" if name in sure else _NOT_AGAIN
            warnings.append(_in_doubt(name, sent, _HELD if held else again))
        elif mine:
            runs |= {handler.order: HandlerCall(handler, run) for handler in mine}
        else:
            warnings.append(
                f"the handler {name!r} is pending since run {run}, and no task of this run notifies it\n"
                "run the playbook that defines it, or drop it with --forget-pending"
            )
    return [runs[order] for order in sorted(runs)], warnings


_NOT_AGAIN = "it is not sent again automatically\ncheck the server; --forget-pending ends this warning"
_HELD = (
    "it is not sent again, because the changed value is not reported and may be set already\n"
    "check the server; to run it, use a separate task; --forget-pending ends this warning"
)
_DELETION_WAITS = (
    "it runs before the deletion: neither is sent\n"
    "check the server; --forget-pending sends the handler again, and then deletes"
)


def _in_doubt(name: str, sent: Mapping[str, Json], then: str) -> str:
    return (
        f"the handler {name!r} was sent by run {sent.get('run')} and {answer_told(sent)}: it may have run, and {then}"
    )
