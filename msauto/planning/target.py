"""One asset, or one channel: what is wanted and what is live become a target with changes and requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from msauto.errors import MsautoError, PlanningError
from msauto.model.live import Asset, Folder, Link, RssChannel
from msauto.model.plan import Address, Json, Target, TargetId
from msauto.model.ports import LiveTarget
from msauto.model.spec import ServerSpec
from msauto.model.wanted import ABSENT, AssetWanted, CommandWanted, LinkWanted, RssWanted
from msauto.planning.aspects.asset import plan_deletion
from msauto.planning.aspects.command import plan_command
from msauto.planning.aspects.field import plan_fields
from msauto.planning.aspects.link import is_home, plan_links
from msauto.planning.aspects.marker import plan_markers
from msauto.planning.aspects.restore import plan_restore
from msauto.planning.aspects.rss_item import RssScene, plan_items
from msauto.planning.aspects.segment import plan_segments
from msauto.planning.aspects.segmentation import plan_segmentation
from msauto.planning.aspects.title import plan_title
from msauto.planning.aspects.xmp import plan_xmp
from msauto.planning.draft import Draft, Scene, refuse
from msauto.planning.fingerprint import fingerprint
from msauto.server import requests
from msauto.server.address import asset_path


@dataclass(frozen=True, slots=True)
class Found:
    """An asset as it was found: its answer, how it was addressed, and what it is called."""

    server: ServerSpec
    database: str
    asset: Asset
    address: Address
    title: str
    looked: frozenset[str] = field(default=frozenset())

    @property
    def create_time(self) -> str | None:
        """The creation time as the server spells it: part of what tells this clip from a later one."""
        return self.asset.attributes.get("create_time")

    def id(self, title: str) -> TargetId:
        """Return what the ledger keeps its memories under, if the asset is called ``title``."""
        return TargetId(self.server.name, self.database, "asset", title, self.asset.link_id, self.create_time)


def title_after(found: Found, wanted: AssetWanted | None) -> str:
    """Return what the asset is called after the run."""
    return wanted.title.value if wanted and wanted.title else found.title


def link_places(found: Found, wanted: AssetWanted) -> tuple[Folder, ...]:
    """Return the folders that links are wanted in, without the asset's own home."""
    title = title_after(found, wanted)
    folders = (said.value.folder for said in wanted.links if not _at_home(found.asset, title, said.value))
    return tuple(dict.fromkeys(folders))


def _at_home(asset: Asset, title: str, link: LinkWanted) -> bool:
    return link.present and is_home(asset, title, link.folder, title if link.title is ABSENT else link.title)


def plan_asset(
    found: Found,
    wanted: AssetWanted | None,
    commands: Sequence[CommandWanted],
    live: LiveTarget,
    memory: Mapping[str, Json],
) -> tuple[Target, tuple[str, ...]]:
    """Return the target, and warnings. Raises ``PlanningError`` with all that is wrong with it."""
    scene = _scene(found, wanted, live, memory)
    draft = Draft()
    draft.look(*found.looked)
    _run_all([*_aspects(scene, found, wanted, draft), *(_command(scene, command, draft) for command in commands)])
    _check_requests(found.server, draft)
    by_id = found.address.namespace
    target = Target(
        server=found.server.name,
        database=found.database,
        kind="asset",
        name=found.title,
        folder=found.asset.folder,
        address=found.address,
        address_after=found.address if by_id else Address(scene.title),
        link_id=found.asset.link_id,
        create_time=found.create_time,
        rate=found.asset.rate,
        link_folders=_link_folders(live.links),
    )
    return _drafted(target, draft, live), tuple(draft.warnings)


def plan_channel(
    server: ServerSpec, channel: RssChannel, wanted: RssWanted, memory: Mapping[str, Json]
) -> tuple[Target, tuple[str, ...]]:
    """Return the target of a channel, and warnings."""
    draft = Draft()
    draft.warnings += wanted.notes
    plan_items(RssScene(server, channel, memory, wanted.still), wanted.items, wanted.exactly, draft)
    _check_requests(server, draft)
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
    return _drafted(target, draft, live), tuple(draft.warnings)


def _drafted(target: Target, draft: Draft, live: LiveTarget) -> Target:
    if not draft.changes:
        return target  # only counted, never kept: its fingerprint would be made for nothing
    looked = tuple(sorted(draft.looked))
    return replace(
        target,
        changes=tuple(draft.changes),
        requests=draft.requests(),
        looked=looked,
        fingerprint=fingerprint(looked, live),
        wait=draft.wait,
        emptied=tuple(draft.emptied),
    )


def _scene(found: Found, wanted: AssetWanted | None, live: LiveTarget, memory: Mapping[str, Json]) -> Scene:
    before = asset_path(found.database, found.address, dialect=found.server.dialect)
    title = title_after(found, wanted)
    renamed = title != found.title and not found.address.namespace
    after = asset_path(found.database, Address(title), dialect=found.server.dialect) if renamed else before
    lossy = wanted.lossy if wanted else False
    return Scene(found.server, found.database, before, after, title, found.asset, live, memory, lossy)


def _link_folders(links: Sequence[Link] | None) -> tuple[Folder, ...]:
    return tuple(dict.fromkeys(link.folder for link in links or ()))


# The aspects of one asset --------------------------------------------------------------------------------------

Step = Callable[[], None]


def _aspects(scene: Scene, found: Found, wanted: AssetWanted | None, draft: Draft) -> Iterator[Step]:
    if wanted is None:
        return
    scene = replace(scene, still=wanted.still)
    draft.warnings += wanted.notes
    if not wanted.present:
        yield lambda: plan_deletion(scene, wanted.source, draft)
        return
    title, restore, segmentation = wanted.title, wanted.restore, wanted.segmentation
    if title is not None:
        yield lambda: plan_title(scene, found.title, title, draft)
    if restore is not None:
        yield lambda: plan_restore(scene, restore, draft)
    yield lambda: plan_fields(scene, wanted.fields, draft)
    yield lambda: plan_xmp(scene, wanted.xmp, draft)
    yield lambda: _check_in_point(scene, wanted, draft)
    exactly = wanted.exactly
    if segmentation is not None:
        yield lambda: _check_either(wanted)
        yield lambda: plan_segmentation(scene, segmentation, exactly.segments, draft)
    elif wanted.segments or exactly.segments:
        yield lambda: plan_segments(scene, wanted.segments, exactly.segments, draft)
    if wanted.markers or exactly.markers:
        yield lambda: plan_markers(scene, wanted.markers, exactly, draft)
    yield lambda: plan_links(scene, wanted.links, exactly.links, draft)


def _command(scene: Scene, command: CommandWanted, draft: Draft) -> Step:
    return lambda: plan_command(scene, command, draft)


def _check_either(wanted: AssetWanted) -> None:
    if wanted.segments and wanted.segmentation:
        raise refuse(
            f"segments are wanted one by one ({wanted.segments[0].source.place}) and as a segmentation "
            f"({wanted.segmentation.source.place})",
            wanted.segments[0].source,
            "say one of the two",
        )


def _check_in_point(scene: Scene, wanted: AssetWanted, draft: Draft) -> None:
    """Refuse to move the in point together with positions that the server counts from it."""
    counted = wanted.segments or wanted.markers or wanted.segmentation or wanted.exactly.markers
    moved = [change for change in draft.changes if change.aspect == "field" and change.key == "first_frame"]
    if scene.server.dialect.position_origin == "in" and moved and counted:
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


def _check_requests(server: ServerSpec, draft: Draft) -> None:
    """Refuse a request whose line is longer than the server takes: it would be cut, or refused half-way."""
    for request in draft.requests():
        length = requests.request_line_length(request)
        if length > server.request_line:
            change = draft.changes[request.changes[0]]
            raise refuse(
                f"{change.aspect} {change.key}: its request line has {length} bytes, and the cap is "
                f"{server.request_line}",
                change.source,
                "write a shorter value",
            )
