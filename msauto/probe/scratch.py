"""Trying on one asset what reading alone cannot show, and putting everything back.

Only things of our own are touched: a new segment, a new marker, and, restored to what they were, ``first_frame`` and
one XMP field. Before each write it is noted what it may leave behind; at the end, whatever happened meanwhile, the
asset is read again, what is ours is taken back, and what remains is told.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeVar

from msauto.errors import InDoubtError, MsautoError, NotFoundError, NotSentError, RefusedError, RejectedError
from msauto.interface import requests
from msauto.model.live import Asset, Folder, Link, Marker, Segment, whole
from msauto.model.plan import Address, Request
from msauto.model.ports import Clock
from msauto.model.server import ServerSpec
from msauto.probe.findings import ProbeNotes
from msauto.server.client import AsyncMediaServer
from msauto.server.reader import ServerReader

LONGEST_LINE: Final = 2**17
"""No growing line is longer than this."""

_SHIFT: Final = 7
_MARKER_FRAME: Final = 11
_LEAST_FRAMES: Final = 25
"""A clip must hold our marker, and that moved by the shift of the IN point."""

ROUNDS: Final = 3
"""So often a thing is taken back that is still seen when read again."""

_SETTLING: Final = 2.0
"""Seconds to wait after a lost answer, or for a write that was not seen: the server may still be at work."""

_PAUSES: Final = (0.1, 0.2, 0.4, 0.8, 1.5)
"""Seconds between looks at what was written: some servers show it late."""

_TAKEN_BACK: Final = "taken back"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TrialOptions:
    """What may be tried: the asset, an XMP field that may be written meanwhile, and a folder for links."""

    title: str
    xmp_field: str | None = None
    links: Folder | None = None


@dataclass(slots=True)
class ScratchAsset:
    """The asset that is tried on, as it was before, and what was put there since.

    ``made`` maps what a write may leave behind to words for a person; ``tell`` gets a line when something must be
    known at once. ``unseen`` are those of an accepted write that has not shown yet, ``slow`` the seconds that one took
    to show. ``afterwards`` put back what is not of the asset itself, and return what is left of it.
    """

    client: AsyncMediaServer
    database: str
    trial: TrialOptions
    before: Asset
    notes: ProbeNotes
    clock: Clock
    tell: Callable[[str], None]
    token: str = field(default_factory=lambda: f"msauto-probe-{secrets.token_hex(6)}")
    made: dict[str, str] = field(default_factory=dict)
    number: int = 0
    lost: bool = False
    unseen: set[str] = field(default_factory=set)
    slow: float = 0.0
    afterwards: list[Callable[[], Awaitable[tuple[str, ...]]]] = field(default_factory=list)

    @property
    def path(self) -> str:
        """The asset's path."""
        return self.client.path(self.database, self.trial.title)

    async def read(self) -> Asset:
        """Read the asset anew; raises where it is another one, or gone."""
        reader = ServerReader(self.client, clock=self.clock)
        asset = await reader.read_asset(self.database, Address(self.trial.title))
        if asset is None:
            raise NotFoundError(
                f"the scratch asset {self.trial.title!r} is not there",
                status=404,
                server=self.client.spec.name,
                remedy="name one that `msauto show assets` lists",
            )
        return asset

    async def write(self, request: Request, what: str, words: str) -> bool:
        """Send a write, noting first what it may leave behind; tell whether it was accepted."""
        self.made[what] = words
        try:
            await self.client.send(request)
        except RejectedError as error:
            if error.status in {401, 403, 407, 429, 502, 503, 504}:
                raise
            return False
        except NotSentError:
            raise
        except BaseException:  # a lost answer, or Ctrl-C while it was awaited: it may have been done
            self.lost = True
            raise
        self.unseen.add(what)
        return True

    async def look(self, what: str, read: Callable[[], Awaitable[T]], shows: Callable[[T], bool]) -> T:
        """Read until it shows what was written, or long enough; return what was read last.

        What was not accepted is not waited for.
        """
        waited = 0.0
        for pause in _PAUSES if what in self.unseen else ():
            live = await read()
            if shows(live):
                break
            await self.clock.sleep(pause)
            waited += pause
        else:
            live = await read()
        if shows(live):
            self.unseen.discard(what)
            self.slow = max(self.slow, waited)
        return live

    async def settle(self) -> None:
        """Wait until the server must have shown what it was told: longer where something never showed."""
        late = 2 * self.slow
        await self.clock.sleep(max(late, _SETTLING) if self.lost or self.unseen else late)

    def segments(self, asset: Asset) -> list[Segment]:
        """Return our own segments."""
        return [segment for segment in asset.segments if segment.number == self.number]

    def markers(self, asset: Asset) -> list[Marker]:
        """Return our own markers: new ones that hold our word, or stand where only ours is."""
        known = {marker.uid for marker in self.before.markers}
        new = [marker for marker in asset.markers if marker.uid not in known]
        named = [marker for marker in new if any(self.token in text for text in marker.fields.values())]
        return named or ([new[0]] if "marker" in self.made and len(new) == 1 else [])


def spec_for_trial(spec: ServerSpec) -> ServerSpec:
    """Return the spec with which lines of any length may be asked."""
    return replace(spec, request_line=LONGEST_LINE + 1024)


async def open_bench(
    client: AsyncMediaServer,
    database: str,
    trial: TrialOptions,
    notes: ProbeNotes,
    *,
    clock: Clock,
    tell: Callable[[str], None],
    refuse: Callable[[Asset, tuple[Link, ...] | None], None],
    all_links: bool,
) -> ScratchAsset:
    """Read the asset; raise ``RefusedError`` for one that is still recorded, or that ``refuse`` does not let through.

    ``all_links``: find the asset's links for ``refuse``, which may take a listing of the whole database.
    """
    reader = ServerReader(client, clock=clock)
    asset = await reader.read_asset(database, Address(trial.title))
    if asset is None:
        raise MsautoError(
            f"{client.spec.name} has no asset {trial.title!r} in {database}",
            remedy="name one that `msauto show assets` lists",
        )
    if asset.finalized is False:
        raise RefusedError(f"{trial.title!r} is still being recorded: nothing is tried on it", remedy="name another")
    refuse(asset, await reader.read_links(database, asset) if all_links else asset.links)
    bench = ScratchAsset(client, database, trial, asset, notes, clock, tell)
    bench.number = max((segment.number for segment in asset.segments), default=0) + 1
    return bench


# Segments and markers ------------------------------------------------------------------------------------------


async def try_segments(bench: ScratchAsset) -> None:
    """Does CREATESEGMENT on an existing number overwrite (dialect ``segment_update``)?"""
    start = _free_frames(bench.before)
    if start is None:
        bench.notes.miss("segment_update", "no two frames of the asset are free of segments: name another asset")
        return
    words = f"segment {bench.number}, titled {bench.token}"
    first = requests.create_segment(bench.path, bench.number, start, 1, {"title": bench.token})
    await bench.write(first, "segment", words)
    made = bench.segments(await bench.look("segment", bench.read, lambda live: bool(bench.segments(live))))
    if [(each.start, each.duration) for each in made] != [(start, 1)]:
        bench.notes.miss("segment_update", f"a new segment was not shown as it was made: {_spans(made)}")
        return
    again = requests.create_segment(bench.path, bench.number, start, 2, {"title": bench.token})
    accepted = await bench.write(again, "segment", words)
    asset = await bench.look("segment", bench.read, lambda live: bench.segments(live) != made)
    bench.unseen.discard("segment")  # a server may well take it and keep the old one
    live = [(each.start, each.duration) for each in bench.segments(asset)]
    value = "overwrite" if live == [(start, 2)] else "recreate"
    answer = "accepted" if accepted else "refused"
    shown = "the new one alone" if value == "overwrite" else "both" if len(live) > 1 else "the old one"
    bench.notes.learn("segment_update", value, f"CREATESEGMENT on an existing number: {answer}; it shows {shown}")


async def try_markers(bench: ScratchAsset) -> None:
    """Are unsent fields of a marker kept (dialect ``marker_update``), and where do positions count from?"""
    if (bench.before.frames or 0) < _LEAST_FRAMES:
        for key in ("marker_update", "position_origin"):
            bench.notes.miss(key, f"the asset has fewer than {_LEAST_FRAMES} frames: name another")
        return
    fields = {"title": bench.token, "comment": "kept?", "user": "msauto", "keywords": "a b"}
    create = requests.create_marker(bench.path, requests.NEW_MARKER, _MARKER_FRAME, "Cue Point", fields)
    await bench.write(create, "marker", f"a marker titled {bench.token}")
    made = bench.markers(await bench.look("marker", bench.read, lambda live: bool(bench.markers(live))))
    if len(made) != 1:
        for key in ("marker_update", "position_origin"):
            bench.notes.miss(key, "a new marker was not shown")
        return
    await _change_marker(bench, made[0])
    await _move_in_point(bench)


async def _change_marker(bench: ScratchAsset, marker: Marker) -> None:
    title = f"{bench.token} changed"
    change = requests.create_marker(bench.path, marker.uid, fields={"title": title})
    accepted = await bench.write(change, "marker", f"a marker titled {bench.token}")
    asset = await bench.look("marker", bench.read, lambda live: marker not in bench.markers(live))
    bench.unseen.discard("marker")  # a server may well take it and change nothing
    live = next((each for each in bench.markers(asset) if each.uid == marker.uid), None)
    if live is None or live.fields.get("title") != title:
        answer = "accepted, and nothing changed" if accepted else "refused"
        bench.notes.learn("marker_update", "full", f"CREATEMARKER with uid and title alone: {answer}")
        return
    lost = [name for name, value in marker.fields.items() if name != "title" and live.fields.get(name) != value]
    lost += ["frame"] if live.frame != marker.frame else []
    told = f"cleared {', '.join(lost)}" if lost else f"kept {', '.join(sorted(marker.fields.keys() - {'title'}))}"
    bench.notes.learn("marker_update", "full" if lost else "changed", f"CREATEMARKER with uid and title alone {told}")


async def _move_in_point(bench: ScratchAsset) -> None:
    old = _in_point(bench.before)
    live = await bench.read()
    marker = next(iter(bench.markers(live)), None)
    if old is None or marker is None:
        bench.notes.miss("position_origin", "first_frame is not reported, so that it could not be put back")
        return
    move = requests.set_field(bench.path, "first_frame", str(old + _SHIFT))
    await bench.write(move, "first_frame", f"first_frame {old + _SHIFT} instead of {old}")
    moved = await bench.look("first_frame", bench.read, lambda asset: _in_point(asset) == old + _SHIFT)
    shown = next((each.frame for each in bench.markers(moved) if each.uid == marker.uid), None)
    if _in_point(moved) != old + _SHIFT or shown is None:
        bench.notes.miss("position_origin", "SETFIELD first_frame did not move the IN point")
        return
    evidence = f"IN point {old} → {old + _SHIFT}: a marker at {marker.frame} shows at {shown}"
    if shown in {marker.frame, marker.frame - _SHIFT}:
        bench.notes.learn("position_origin", "file" if shown == marker.frame else "in", evidence)
    else:
        bench.notes.miss("position_origin", f"neither from the file's first frame nor from the IN point: {evidence}")


def _in_point(asset: Asset) -> int | None:
    return whole(asset.attributes.get("first_frame"))


def _free_frames(asset: Asset) -> int | None:
    """Return the first of two frames that no segment covers: some servers refuse segments that overlap."""
    at = 0
    for segment in sorted(asset.segments, key=lambda each: each.start):
        if segment.start - at >= 2:
            return at
        at = max(at, segment.start + segment.duration)
    return at if (asset.frames or 0) - (_in_point(asset) or 0) - at >= 2 else None


def _spans(segments: list[Segment]) -> str:
    return ", ".join(f"{each.start}+{each.duration}" for each in segments) or "none"


# Restoring -----------------------------------------------------------------------------------------------------


async def put_back(bench: ScratchAsset) -> tuple[str, ...]:
    """Take back what is ours, read the asset again, and return what is left: nothing, if all is as before."""
    if not bench.made:
        return ()
    await bench.settle()
    unseen = [bench.made[what] for what in sorted(bench.unseen)]
    left: list[str] = []
    undoing: list[Callable[[], Awaitable[tuple[str, ...]]]] = [*bench.afterwards, partial(_put_asset_back, bench)]
    for undo in undoing:
        try:
            left += await undo()
        except MsautoError as error:
            words = "; ".join(bench.made.values())
            left.append(f"it cannot be told what is left ({error.message}); look for: {words}")
    if bench.lost:
        bench.tell("An answer was lost: the server may still do what was asked. Look once more for " + _all(bench))
    elif unseen:
        bench.tell(f"The server took what it has not shown: look once more, later, for {'; '.join(unseen)}")
    return tuple(dict.fromkeys(left))


async def _put_asset_back(bench: ScratchAsset) -> tuple[str, ...]:
    for _ in range(ROUNDS):
        undoing = _undoing(bench, await bench.read())
        if not undoing:
            break
        for request in undoing:
            await send_anyhow(bench, request)
        bench.unseen.add(_TAKEN_BACK)
        await bench.look(_TAKEN_BACK, bench.read, lambda live: not _undoing(bench, live))
    return _left(bench, await bench.read())


def _undoing(bench: ScratchAsset, live: Asset) -> list[Request]:
    found = [requests.delete_segment(bench.path, each.number) for each in bench.segments(live)[:1]]
    found += [requests.delete_marker(bench.path, each.uid) for each in bench.markers(live)]
    old = bench.before.attributes.get("first_frame")
    if "first_frame" in bench.made and old is not None and live.attributes.get("first_frame") != old:
        found.append(requests.set_field(bench.path, "first_frame", old))
    return found


async def send_anyhow(bench: ScratchAsset, request: Request) -> None:
    """Send what takes something back; whether it worked is seen by reading."""
    try:
        await bench.client.send(request)
    except InDoubtError:
        await bench.clock.sleep(_SETTLING)
    except RejectedError:
        return  # what is left is told


def _left(bench: ScratchAsset, live: Asset) -> tuple[str, ...]:
    """Return how the asset differs from before, in what a trial could have changed."""
    before = bench.before
    segments = [f"segment {each.number}" for each in live.segments if each not in before.segments]
    segments += [f"segment {each.number} is gone" for each in before.segments if each not in live.segments]
    markers = [f"marker {each.uid}" for each in live.markers if each not in before.markers]
    markers += [f"marker {each.uid} is gone" for each in before.markers if each not in live.markers]
    old, new = (asset.attributes.get("first_frame") for asset in (before, live))
    return (*segments, *markers, *([f"first_frame {new} instead of {old}"] if old != new else []))


def _all(bench: ScratchAsset) -> str:
    return "; ".join(bench.made.values()) + f" of {bench.trial.title!r}"
