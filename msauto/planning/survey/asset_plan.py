"""One asset, or one channel: desired and live state become a target with changes and requests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import starmap

from msgspec import structs

from msauto.aspects import ASPECTS
from msauto.aspects.asset import plan_deletion
from msauto.aspects.command import plan_command
from msauto.aspects.link import is_home
from msauto.aspects.proxy import plan_proxy
from msauto.aspects.rss_item import ChannelContext, plan_items
from msauto.aspects.thumbnail import plan_thumbnail
from msauto.aspects.xmp_batch import plan_batch
from msauto.diffing.plan_builder import TASK, PlanBuilder, PlanContext, Trigger, refuse
from msauto.errors import MsautoError, PlanningError
from msauto.interface import requests
from msauto.interface.address import asset_path
from msauto.model.desired import (
    ABSENT,
    DesiredAsset,
    DesiredChannel,
    DesiredCommand,
    DesiredLink,
    DesiredOperation,
    DesiredThumbnail,
    DesiredXmpBatch,
    TaskSource,
)
from msauto.model.live import Asset, Folder, RssChannel, show_folder
from msauto.model.plan import Address, EmptiedList, Json, Target, TargetId
from msauto.model.ports import LiveTarget
from msauto.model.server import ServerSpec
from msauto.planning.fingerprint import fingerprint
from msauto.planning.survey.editorial_warnings import check_editorial


@dataclass(frozen=True, slots=True)
class LocatedAsset:
    """An asset as it was found: its answer, how it was addressed, and what it is called."""

    server: ServerSpec
    database: str
    asset: Asset
    address: Address
    title: str
    looked: frozenset[str] = field(default=frozenset())

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


@dataclass(frozen=True, slots=True)
class ComparisonInputs:
    """What the comparison of an asset may use besides desired state: all of it read before.

    ``places`` are folder and title of the other entries that show an asset which is to be deleted.
    """

    live: LiveTarget
    memory: Mapping[str, Json]
    files: Mapping[str, str | None] = field(default_factory=dict)
    batch: TaskSource | None = None
    places: tuple[Folder, ...] = ()


class AssetPlanner:
    """One asset while it is planned: its tasks, then the handlers that their changes call, then the target."""

    def __init__(self, found: LocatedAsset, desired: DesiredAsset | None, given: ComparisonInputs) -> None:
        self.builder = PlanBuilder()
        self.held = False
        self._found = found
        self._desired = desired
        self._context = _context_of(found, desired, given)
        self._ran: set[tuple[str, str]] = set()
        self.builder.look(*found.looked)

    @property
    def deleting(self) -> bool:
        """Whether the asset is deleted: nothing can be run on it after that."""
        return self._desired is not None and not self._desired.present

    def tasks(self, runs: Sequence[DesiredOperation]) -> None:
        """Plan what the tasks want. Raises ``PlanningError`` with all that is wrong with it."""
        desired, builder = self._desired, self.builder
        _run_all(
            [*_aspects(self._context, desired, builder), *(_run(self._context, run, builder, TASK) for run in runs)]
        )

    def know(self, memory: Mapping[str, Json]) -> None:
        """Take what is remembered as it is known by now."""
        self._context = replace(self._context, memory=memory)

    def handler(self, desired: DesiredOperation, name: str, pending: str) -> None:
        """Plan what a handler runs, unless another one runs just that on this target."""
        cause = Trigger(name, pending, before=self.deleting)
        mine = PlanBuilder()
        _run(self._context, desired, mine, cause)()
        keys = {(change.aspect, change.key) for change in mine.changes}
        if not keys & self._ran:
            self._ran |= keys
            _run(self._context, desired, self.builder, cause)()

    def hold(self) -> None:
        """Leave out all that was planned so far."""
        kept, self.builder = self.builder.warnings, PlanBuilder()
        self.builder.warnings += kept
        self.held = True

    def target(self, looked: Collection[str], live: LiveTarget) -> tuple[Target, tuple[str, ...]]:
        """Return the target, and warnings. Raises ``PlanningError`` for what no request can hold."""
        found, builder = self._found, self.builder
        builder.look(*looked)
        _check_requests(found.server, builder)
        target = Target(
            server=found.server.name,
            database=found.database,
            kind="asset",
            name=found.title,
            folder=None if found.asset.folder is None else show_folder(found.asset.folder),
            address=found.address,
            address_after=Address(found.title) if self.deleting else self._context.address,
            link_id=found.asset.link_id,
            create_time=found.create_time,
            rate=found.asset.rate,
            places=tuple(map(show_folder, self._context.places)),
        )
        return _with_plan(target, builder, live), tuple(builder.warnings)


def plan_database(
    server: ServerSpec, database: str, batches: Sequence[DesiredXmpBatch], memory: Mapping[str, Json]
) -> tuple[Target, tuple[str, ...]]:
    """Return the target of a database, with the batches that are to be loaded; and warnings."""
    builder = PlanBuilder()
    seen: set[tuple[str, bytes]] = set()
    for batch in batches:
        if (batch.connector, batch.content) not in seen:
            plan_batch(server, database, batch, memory, builder)
        seen.add((batch.connector, batch.content))
    _check_requests(server, builder)
    address = Address(database)
    target = Target(server.name, database, "database", database, address=address, address_after=address)
    return _with_plan(target, builder, LiveTarget()), tuple(builder.warnings)


def plan_channel(
    server: ServerSpec, channel: RssChannel, desired: DesiredChannel, memory: Mapping[str, Json]
) -> tuple[Target, tuple[str, ...]]:
    """Return the target of a channel, and warnings."""
    builder = PlanBuilder()
    builder.warnings += desired.notes
    plan_items(ChannelContext(server, channel, memory, desired.still), desired.items, desired.exactly, builder)
    _check_requests(server, builder)
    address = Address(channel.name)
    live = LiveTarget(channel=channel)
    target = Target(
        server=server.name,
        database="",
        kind="rss_channel",
        name=channel.name,
        address=address,
        address_after=address,
    )
    return _with_plan(target, builder, live), tuple(builder.warnings)


def _with_plan(target: Target, builder: PlanBuilder, live: LiveTarget) -> Target:
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
    )


def _context_of(found: LocatedAsset, desired: DesiredAsset | None, given: ComparisonInputs) -> PlanContext:
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
        live=given.live,
        memory=given.memory,
        lossy=desired.lossy if desired else False,
        address=found.address if found.address.namespace else Address(title),
        files=given.files,
        batch=given.batch,
        places=given.places,
    )


# The aspects of one asset --------------------------------------------------------------------------------------

Step = Callable[[], None]


def _aspects(context: PlanContext, desired: DesiredAsset | None, builder: PlanBuilder) -> Iterator[Step]:
    if desired is None:
        return
    context = replace(context, still=desired.still)
    builder.warnings += desired.notes
    if not desired.present:
        yield lambda: plan_deletion(context, desired.source, builder)
        return
    for plan in (aspect.plan for aspect in ASPECTS.values() if aspect.plan is not None):
        yield partial(plan, context, desired, builder)
    yield lambda: _check_in_point(context, desired, builder)
    yield lambda: check_editorial(context, desired, builder)


def _run(context: PlanContext, desired: DesiredOperation, builder: PlanBuilder, cause: Trigger) -> Step:
    if isinstance(desired, DesiredCommand):
        return lambda: plan_command(context, desired, builder, cause)
    if isinstance(desired, DesiredThumbnail):
        return lambda: plan_thumbnail(context, desired, builder, cause)
    return lambda: plan_proxy(context, desired, builder, cause)


def _check_in_point(context: PlanContext, desired: DesiredAsset, builder: PlanBuilder) -> None:
    """Refuse to move the in point together with positions that the server counts from it."""
    counted = desired.segments or desired.markers or desired.segmentation or desired.exactly.markers
    moved = [change for change in builder.changes if change.aspect == "field" and change.key == "first_frame"]
    if context.server.dialect.counts_from_in and moved and counted:
        raise refuse(
            "first_frame changes, and this server counts the positions of segments and markers from it",
            moved[0].source,
            "change first_frame in a run of its own, before segments and markers",
        )


def _run_all(steps: Sequence[Step]) -> None:
    """Take every step; raise all that is wrong as one error."""
    errors: list[MsautoError] = []
    for step in steps:
        try:
            step()
        except MsautoError as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise PlanningError("\n".join(map(str, errors)))


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
