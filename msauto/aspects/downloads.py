"""Files that are fetched of an asset if they are missing, or differ from what was fetched: stills and viewing copies.

Positions of stills count from the clip's first frame, as everywhere in a playbook; GETICON counts from the in point
(interface, «PNG thumbnail», «Web proxy»). Asking for a viewing copy makes the server work: never while planning.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from msgspec import structs

from msauto.aspects.arguments import OF_HANDLERS, TaskArguments
from msauto.aspects.aspect import Operation
from msauto.aspects.plan_builder import PlanContext, Trigger, length_of, refuse
from msauto.aspects.positions import to_frames, to_point, to_wire
from msauto.documents.strict_model import Model, key, need
from msauto.documents.value_types import Name, Opt, Pos, Text, Value, between
from msauto.file_access import name_in_repository
from msauto.model import requests
from msauto.model.desired import DesiredDownload, Position
from msauto.model.plan import Request, TargetId
from msauto.model.snapshot import Effect, Json
from msauto.primitives.decimals import read_whole


class Download(Operation):
    """A file that is fetched of an asset, and fetched again once the clip or what was asked for differs.

    It changes nothing on the server.
    """

    for_good = "the file stays where it was saved"

    def has_file(
        self, context: PlanContext, run: DesiredDownload, asked: Mapping[str, Json], cause: Trigger
    ) -> bool:
        """Return whether a file is on disk as it was fetched of this clip; a handler fetches it again."""
        context.builder.look(*length_of(context.asset))
        remembered = context.memory.get(f"{self.name}:{run.dest}")
        if cause.handler or not isinstance(remembered, dict):
            return False
        on_disk = context.files.get(run.dest)
        as_fetched = {**_made_from(context, asked), "sha256": on_disk}
        return on_disk is not None and remembered == as_fetched

    def fetch(
        self,
        context: PlanContext,
        run: DesiredDownload,
        asked: dict[str, Json],
        request: Request,
        cause: Trigger,
    ) -> None:
        """Add a download as what is run, with what its file is made from."""
        self._check_replaced(context, run)
        number = context.builder.run(self.name, run.dest, asked, run.source, cause)
        effect = Effect(self.name, run.dest, None, _made_from(context, asked), visible=False)
        context.builder.send(cause.phase, structs.replace(request, dest=run.dest), [number], effect)

    def _check_replaced(self, context: PlanContext, run: DesiredDownload) -> None:
        """Refuse to replace a file that is not as a run fetched it."""
        on_disk = context.files.get(run.dest)
        remembered = context.memory.get(f"{self.name}:{run.dest}")
        fetched_by_us = {context.fetched.get(run.dest)}
        if isinstance(remembered, dict):
            fetched_by_us.add(str(remembered.get("sha256")))
        if on_disk is not None and on_disk not in fetched_by_us:
            remedy = "remove it, or use another `dest`: only a file is replaced that is as msauto fetched it"
            raise refuse(f"{run.dest} exists, and is not as msauto fetched it", run.source, remedy)


def fetched_file(dest: str) -> TargetId:
    """Return under what the ledger keeps the content of a file that was fetched, for whichever clip."""
    return TargetId("", "", "database", f"file {name_in_repository(Path(dest))}")


def _made_from(context: PlanContext, asked: Mapping[str, Json]) -> dict[str, Json]:
    """Return what a file of a clip is made from: where that is the same, so is the file."""
    asset = context.asset
    created = asset.attributes.get("create_time")
    clip: dict[str, Json] = {
        "link_id": asset.link_id,
        "create_time": created,
        "frames": asset.frames,
    }
    return {"asked": dict(asked), "clip": clip}


# Stills -------------------------------------------------------------------------------------------------------------

_Pixels = Annotated[int, between(1, 16_384)]  # four times the width of 4K


class ThumbnailOnly(Model):
    """A still image of the asset that changed."""

    hints: ClassVar = OF_HANDLERS

    pos: Opt[Pos] = key("position of the image: a time code or frames")
    dur: Opt[Pos] = key("duration of the composition, for graphic templates")
    w: Opt[_Pixels] = key("width in pixels; default: the original width")
    h: Opt[_Pixels] = key("height in pixels; default: the original height")
    params: Opt[dict[str, Value[Text]]] = key("values for the elements of a graphic template")
    dest: Value[Name] = need("file to write, relative to the playbook")


class DesiredThumbnail(DesiredDownload, frozen=True):
    """A still of an asset as a file."""

    aspect: ClassVar = "thumbnail"
    pos: Position | None = None
    dur: Position | None = None
    w: int | None = None
    h: int | None = None
    params: tuple[tuple[str, str], ...] = ()


class Thumbnails(Download):
    """Stills, by their files."""

    name = "thumbnail"
    module = ThumbnailOnly

    def declare(self, task: TaskArguments) -> DesiredThumbnail:
        """Return the still that a task asks for."""
        args = task.args
        return DesiredThumbnail(
            task.source(),
            task.dest(),
            pos=None if args.pos is None else Position(args.pos),
            dur=None if args.dur is None else Position(args.dur),
            w=args.w,
            h=args.h,
            params=tuple((args.params or {}).items()),
        )

    def run(self, context: PlanContext, desired: DesiredThumbnail, cause: Trigger) -> None:
        """Fetch the still, unless the file on disk was fetched from this clip with the same parameters."""
        asset = context.asset
        source = desired.source
        find_position = to_point if asset.frames else to_frames
        pos = None if desired.pos is None else find_position(desired.pos, asset, source)
        dur = None if desired.dur is None else to_frames(desired.dur, asset, source)
        params = dict(desired.params)
        asked: dict[str, Json] = {}
        for name, value in (("pos", pos), ("dur", dur), ("w", desired.w), ("h", desired.h)):
            if value is not None:
                asked[name] = value
        if params:
            asked["params"] = {**params}
        for name in params:
            if asset.parameters and name not in asset.parameters:
                raise refuse(
                    f"the graphic template {context.title!r} has no element {name!r}",
                    source,
                    f"it has: {', '.join(sorted(asset.parameters))}",
                )
        if self.has_file(context, desired, asked, cause):
            return
        requests.require(context.server, requests.Feature.THUMBNAIL)
        if pos is not None:
            context.builder.look("field first_frame")
            pos = to_wire(pos, _in_point_after(context), source)
        request = requests.get_thumbnail(
            context.path, pos=pos, dur=dur, w=desired.w, h=desired.h, params=params
        )
        self.fetch(context, desired, asked, request, cause)


def _in_point_after(context: PlanContext) -> int:
    """Return the in point that the clip has by then: GETICON counts from it."""
    for change in context.builder.changes:
        if change.aspect == "field" and change.key == "first_frame":
            return read_whole(str(change.after)) or 0
    return context.asset.in_point


# Viewing copies -----------------------------------------------------------------------------------------------------


class ProxyOnly(Model):
    """A viewing copy of the asset that changed."""

    hints: ClassVar = OF_HANDLERS

    profile: Value[Literal["WP1", "WP2", "WP3", "WP4", "WP5", "WP6", "WP7", "WP8"]] = need(
        "web profile"
    )
    dest: Value[Name] = need("file to write, relative to the playbook")


class DesiredProxy(DesiredDownload, frozen=True):
    """A viewing copy of an asset as a file."""

    aspect: ClassVar = "proxy"
    profile: str


class Proxies(Download):
    """Viewing copies, by their files."""

    name = "proxy"
    module = ProxyOnly

    def declare(self, task: TaskArguments) -> DesiredProxy:
        """Return the copy that a task asks for."""
        return DesiredProxy(task.source(), task.dest(), task.args.profile)

    def run(self, context: PlanContext, desired: DesiredProxy, cause: Trigger) -> None:
        """Fetch the copy, unless the file on disk was fetched from this clip with the same profile."""
        asked: dict[str, Json] = {"profile": desired.profile}
        if not self.has_file(context, desired, asked, cause):
            self.fetch(
                context, desired, asked, requests.get_proxy(context.path, desired.profile), cause
            )
