"""One asset, or one channel: desired and live state become a target with changes and requests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import starmap
from typing import Any

from msgspec import UNSET, Struct, structs

from msauto.aspects import ASPECTS, holds
from msauto.aspects.asset import plan_deletion
from msauto.aspects.link import is_home
from msauto.aspects.plan_builder import TASK, PlanBuilder, PlanContext, Trigger, refuse
from msauto.aspects.rss_item import ChannelContext, plan_items
from msauto.aspects.xmp_batch import plan_batch
from msauto.errors import MsautoError, PlanningError
from msauto.interface import requests
from msauto.interface.address import asset_path
from msauto.model.desired import (
    ABSENT,
    DesiredAsset,
    DesiredChannel,
    DesiredLink,
    DesiredOperation,
    DesiredXmpBatch,
)
from msauto.model.identity import ClipIdentity
from msauto.model.live import Asset, Folder, RssChannel, show_folder
from msauto.model.plan import Address, EmptiedList, Json, Target, TargetId
from msauto.model.ports import LiveTarget
from msauto.model.server import ServerSpec
from msauto.planning.fingerprint import fingerprint
from msauto.planning.survey.editorial_warnings import check_editorial
from msauto.planning.survey.shown_context import shown_context

_PLANS = tuple(aspect.plan for aspect in ASPECTS.values() if aspect.plan is not None)


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


def link_places(found: LocatedAsset, desired: DesiredAsset) -> tuple[Folder, ...]:
    """Return the folders of the desired links, without the asset's own home."""
    title = title_after(found, desired)
    folders = (sourced.value.folder for sourced in desired.links if not _at_home(found.asset, title, sourced.value))
    return tuple(dict.fromkeys(folders))


def _at_home(asset: Asset, title: str, link: DesiredLink) -> bool:
    return link.present and is_home(asset, title, link.folder, title if link.title is ABSENT else link.title)


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
            raise errors[0] if len(errors) == 1 else PlanningError("\n".join(map(str, errors)))

    def _aspects(self) -> Iterator[Callable[[], None]]:
        context, desired = self._context, self._desired
        if desired is None:
            return
        self.builder.warnings += desired.notes
        if not desired.present:
            yield partial(plan_deletion, context, desired.source)
            return
        for plan in _PLANS:
            yield partial(plan, context, desired)
        yield partial(check_editorial, context, desired)

    def handler(self, desired: DesiredOperation, name: str, pending: str) -> None:
        """Plan what a handler runs, unless another one runs just that on this target."""
        cause = Trigger(name, pending, before=self.deleting)
        mine = PlanBuilder()
        _run(structs.replace(self._context, builder=mine), desired, cause)()
        keys = {(change.aspect, change.key, str(change.after)) for change in mine.changes}
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
    server: ServerSpec, channel: RssChannel, desired: DesiredChannel, memory: Mapping[str, Json]
) -> tuple[Target, tuple[str, ...]]:
    """Return the target of a channel, and warnings."""
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
