"""``msauto probe``: learns the dialect of a live server, by reading or by trials on a scratch asset.

A trial changes only a new segment, a new marker, ``first_frame`` and one XMP field; the latter two are restored. What a
write may leave behind is noted before it. At the end the asset is read again, in any case, our changes are undone, and
what remains is reported. A new dialect key has its question in :mod:`.observations`, in ``_TRIALS``, or its reason in
``_NEVER_TRIED``.
"""

from __future__ import annotations

import asyncio
import dataclasses
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from operator import ne
from typing import Any, Final, NamedTuple, TypeVar

from msauto.circuit_breaker import UNINFORMATIVE_STATUSES
from msauto.concurrency import finish
from msauto.errors import (
    InDoubtError,
    MsautoError,
    NotFoundError,
    NotSentError,
    RefusedError,
    RejectedError,
    ServerError,
)
from msauto.model import requests
from msauto.model.live import Asset, Link, Marker, Segment
from msauto.model.plan import Address, Request
from msauto.model.ports import Clock
from msauto.model.server import Dialect, ServerSpec
from msauto.plugins.probe.observations import ProbeNotes, ProbeResult, ReadOnlyProbe
from msauto.server.client import AsyncMediaServer
from msauto.server.error_answers import RawAnswer
from msauto.server.parsers import parse_xmp
from msauto.server.reader import ServerReader

_ROUNDS: Final = 3
"""The number of attempts to undo a change."""

SETTLING: Final = 2.0
"""Seconds to wait after a lost answer, or for a write that is not visible: the server may still be working."""

PAUSES: Final = (0.1, 0.2, 0.4, 0.8, 1.5)
"""Seconds between reads of what was written: some servers show it late."""

T = TypeVar("T")
Refuse = Callable[[Asset, tuple[Link, ...] | None], None]
"""Gets the asset of a trial and its links, and raises for one that must not be changed."""


Trials = Mapping[Callable[[Any], Awaitable[None]], tuple[tuple[str, ...], str]]
"""Trials on a :class:`Scratch`, each with the keys that it answers, and its options besides ``--scratch``."""


class TrialOptions(NamedTuple):
    """The asset of a trial, and an XMP field that may be written."""

    title: str
    xmp_field: str | None = None


class TrialWords(NamedTuple):
    """What is reported of a trial; ``{0}`` is its :class:`Scratch`."""

    stopped: str = "Stopped. Undoing: {0.changed}"
    still: str = "Still undoing {0.changed} of {0.name!r}. Stopping once more leaves it there"
    left: str = "Left on {0.name!r}"
    unseen: str = "The server took what it has not shown: look once more, later, for {unseen}"


@dataclass(slots=True, kw_only=True)
class Scratch:
    """The asset or channel that a trial writes to, by its ``name``; ``report`` prints a line at once.

    ``made`` maps what a write may leave behind to its description. ``undoing`` undo it, and return what remains.
    ``unseen`` are accepted writes that are not visible yet, ``slowest`` the longest time in seconds until one was.
    ``lost``: an answer was lost, so that a write may still be done.
    """

    client: AsyncMediaServer
    name: str
    notes: ProbeNotes
    clock: Clock
    report: Callable[[str], None]
    words: TrialWords = field(default_factory=TrialWords)
    token: str = field(default_factory=lambda: f"msauto-probe-{secrets.token_hex(6)}")
    made: dict[str, str] = field(default_factory=dict)
    undoing: list[Callable[[], Awaitable[tuple[str, ...]]]] = field(default_factory=list)
    unseen: set[str] = field(default_factory=set)
    slowest: float = 0.0
    lost: bool = False

    @property
    def changed(self) -> str:
        """What writes may have left behind."""
        return "; ".join(self.made.values())

    async def look(
        self, what: str, read: Callable[[], Awaitable[T]], shows: Callable[[T], bool]
    ) -> T:
        """Read until the write is visible, for a limited time; return the last state.

        Does not wait for a write that was not accepted.
        """
        pauses = PAUSES if what in self.unseen else ()
        waited = 0.0
        live = await read()
        for pause in pauses:
            if shows(live):
                break
            await self.clock.sleep(pause)
            waited += pause
            live = await read()
        if shows(live):
            self.unseen.discard(what)
            self.slowest = max(self.slowest, waited)
        return live

    async def settle(self) -> None:
        """Wait until the server must have finished: longer if some write was never visible."""
        seconds = 2 * self.slowest
        if self.lost or self.unseen:
            seconds = max(seconds, SETTLING)
        await self.clock.sleep(seconds)


@dataclass(slots=True, kw_only=True)
class ScratchAsset(Scratch):
    """The asset of a trial: its state before, and the number of a new segment."""

    database: str
    xmp_field: str | None
    before: Asset = field(init=False)
    number: int = 0

    @property
    def path(self) -> str:
        """The asset's path."""
        return self.client.path(self.database, self.name)

    async def open(self, refuse: Refuse, *, all_links: bool) -> None:
        """Read the asset; raise ``RefusedError`` for one that is still being recorded, or that ``refuse`` refuses.

        ``all_links``: find the links of the asset for ``refuse``, which may need a listing of the whole database.
        """
        asset = await self.read()
        if asset.finalized is False:
            why = f"{self.name!r} is still being recorded: nothing is tried on it"
            raise RefusedError(why, remedy="name another")
        if asset.unread_items:
            why = f"{self.name!r}: {asset.unread_items[0].number}: nothing is tried on it"
            raise RefusedError(why, remedy="name another")
        links = asset.links
        if all_links:
            reader = ServerReader(self.client, clock=self.clock)
            links = await reader.read_links(self.database, asset)
        refuse(asset, links)
        self.before = asset
        self.number = max((segment.number for segment in asset.segments), default=0) + 1
        self.undoing.append(partial(_put_asset_back, self))

    async def read(self) -> Asset:
        """Read the asset; raise ``NotFoundError`` if the server has none."""
        reader = ServerReader(self.client, clock=self.clock)
        asset = await reader.read_asset(self.database, Address(self.name))
        if asset is None:
            raise NotFoundError(
                f"{self.database} has no asset {self.name!r}",
                status=404,
                server=self.client.spec.name,
                remedy="name one that `msauto show assets` lists",
            )
        return asset

    async def write(self, request: Request, what: str, words: str) -> bool:
        """Note what a write may leave behind, and send it; return whether it was accepted."""
        self.made[what] = words
        try:
            await self.client.send(request)
        except RejectedError as error:
            if error.status in UNINFORMATIVE_STATUSES:
                raise
            return False
        except NotSentError:
            raise
        except BaseException:  # a lost answer, or Ctrl-C: it may have been done
            self.lost = True
            raise
        self.unseen.add(what)
        return True

    def segments(self, asset: Asset) -> list[Segment]:
        """Return our own segments: those with our token, or else new ones with our number."""
        named = [segment for segment in asset.segments if segment.title == self.token]
        if named:
            return named
        spans_before = {_span(segment) for segment in self.before.segments}
        ours = []
        for segment in asset.segments:
            if segment.number == self.number and _span(segment) not in spans_before:
                ours.append(segment)
        return ours

    def markers(self, asset: Asset) -> list[Marker]:
        """Return our own markers: new ones with our token, or the only new one."""
        uids_before = {marker.uid for marker in self.before.markers}
        new = [marker for marker in asset.markers if marker.uid not in uids_before]
        named = [marker for marker in new if self.token in "\n".join(marker.fields.values())]
        if named:
            return named
        return new if "marker" in self.made and len(new) == 1 else []


def _span(segment: Segment) -> tuple[int, int]:
    return segment.start, segment.duration


# Restoring -----------------------------------------------------------------------------------------------------


async def put_back(bench: Scratch) -> tuple[str, ...]:
    """Undo our changes, read the asset again, and return what remains: nothing, if it is unchanged."""
    await bench.settle()
    remains: list[str] = []
    for undo in bench.undoing:
        try:
            remains += await undo()
        except MsautoError as error:
            remains.append(
                f"it is unknown what remains ({error.message}); look for: {bench.changed}"
            )
    unseen = [bench.made[what] for what in sorted(bench.unseen & bench.made.keys())]
    if bench.lost:
        what = f"{bench.changed} of {bench.name!r}"
        bench.report(
            f"An answer was lost: the server may still do what was asked. Look once more for {what}"
        )
    elif unseen:
        bench.report(bench.words.unseen.format(bench, unseen="; ".join(unseen)))
    return tuple(dict.fromkeys(remains))


async def _put_asset_back(bench: ScratchAsset) -> tuple[str, ...]:
    """Undo what was made; return how the asset differs from before, in what a trial could have changed."""
    before = bench.before
    live = await take_back(bench, bench.read, partial(_undoing, bench))
    remains = [
        *_differing(before.segments, live.segments, lambda segment: f"segment {segment.number}"),
        *_differing(before.markers, live.markers, lambda marker: f"marker {marker.uid}"),
    ]
    old = before.attributes.get("first_frame")
    new = live.attributes.get("first_frame")
    if old != new:
        remains.append(f"first_frame {new} instead of {old}")
    return tuple(remains)


def _differing(before: Sequence[T], live: Sequence[T], name: Callable[[T], str]) -> list[str]:
    """Name the items that are new or changed, and those that are gone."""
    differing = [name(item) for item in live if item not in before]
    differing += [f"{name(item)} is gone" for item in before if item not in live]
    return differing


async def take_back(
    bench: Scratch, read: Callable[[], Awaitable[T]], undoing: Callable[[T], Sequence[Request]]
) -> T:
    """Send what undoes our changes until nothing is left to undo, at most ``_ROUNDS`` times; return the last state."""
    for _ in range(_ROUNDS):
        undo_requests = undoing(await read())
        if not undo_requests:
            break
        for request in undo_requests:
            with suppress(RejectedError):  # what remains is reported
                try:
                    await bench.client.send(request)
                except InDoubtError:
                    await bench.clock.sleep(SETTLING)
        bench.unseen.add("taken back")
        await bench.look("taken back", read, lambda live: not undoing(live))
    return await read()


def _undoing(bench: ScratchAsset, live: Asset) -> list[Request]:
    undoing = [
        requests.delete_segment(bench.path, segment.number) for segment in bench.segments(live)[:1]
    ]
    undoing += [requests.delete_marker(bench.path, marker.uid) for marker in bench.markers(live)]
    old = bench.before.attributes.get("first_frame")
    differs = old is not None and live.attributes.get("first_frame") != old
    if differs and "first_frame" in bench.made:
        undoing.append(requests.set_field(bench.path, "first_frame", str(old)))
    return undoing


_SEPARATORS: Final = (",", ";", "|")
_SHIFT: Final = 7
_MARKER_FRAME: Final = 11
_LEAST_FRAMES: Final = 25
"""A clip must have room for our marker, also after the shift of the IN point."""


# Segments and markers ------------------------------------------------------------------------------------------


async def try_segments(bench: ScratchAsset) -> None:
    """Are segments numbered by their starts, and does CREATESEGMENT on an existing number overwrite?"""
    keys = ("segment_update", "segment_numbers")
    start = _free_frames(bench.before)
    if start is None:
        bench.notes.miss(
            "no two frames of the asset are free of segments: name another asset", *keys
        )
        return
    made, _ = await _write_segment(bench, bench.number, start, 1)
    spans = [_span(segment) for segment in made]
    if spans != [(start, 1)]:
        shown = ", ".join(f"{at}+{duration}" for at, duration in spans) or "none"
        bench.notes.miss(f"a new segment was not shown as it was made: {shown}", *keys)
        return
    number = made[0].number
    _learn_numbers(bench, start, number)
    live, accepted = await _write_segment(bench, number, start, 2, instead_of=made)
    bench.unseen.discard("segment")  # a server may accept it and keep the old one
    value, shown = "recreate", "the old one"
    if [_span(segment) for segment in live] == [(start, 2)]:
        value, shown = "overwrite", "the new one alone"
    elif len(live) > 1:
        shown = "both"
    answer = "accepted" if accepted else "refused"
    bench.notes.learn(
        "segment_update", value, f"CREATESEGMENT on an existing number: {answer}; it shows {shown}"
    )


async def _write_segment(
    bench: ScratchAsset, number: int, start: int, duration: int, instead_of: Sequence[Segment] = ()
) -> tuple[list[Segment], bool]:
    """Send CREATESEGMENT; return our segments, once others are shown, and whether it was accepted."""
    create = requests.create_segment(bench.path, number, start, duration, {"title": bench.token})
    accepted = await bench.write(create, "segment", f"segment {bench.number}, titled {bench.token}")
    live = await bench.look(
        "segment", bench.read, lambda live: bench.segments(live) != [*instead_of]
    )
    return bench.segments(live), accepted


def _learn_numbers(bench: ScratchAsset, start: int, number: int) -> None:
    """Learn from the number that our segment shows: the last of a clip has the same one by either rule."""
    is_before_others = any(segment.start > start for segment in bench.before.segments)
    if number == bench.number and not is_before_others:
        bench.notes.miss(
            "the new segment was the last of the clip: name an asset with a later one",
            "segment_numbers",
        )
        return
    place = "before" if is_before_others else "after"
    value = "fixed" if number == bench.number else "by_start"
    evidence = f"CREATESEGMENT of number {bench.number} {place} others: it shows {number}"
    bench.notes.learn("segment_numbers", value, evidence)


async def try_markers(bench: ScratchAsset) -> None:
    """Are unsent fields of a marker kept (dialect ``marker_update``), and where do positions count from?"""
    keys = ("marker_update", "position_origin")
    if (bench.before.frames or 0) < _LEAST_FRAMES:
        bench.notes.miss(f"the asset has fewer than {_LEAST_FRAMES} frames: name another", *keys)
        return
    fields = {"title": bench.token, "comment": "kept?", "user": "msauto", "keywords": "a b"}
    create = requests.create_marker(
        bench.path, requests.NEW_MARKER, _MARKER_FRAME, "Cue Point", fields
    )
    await bench.write(create, "marker", f"a marker titled {bench.token}")
    made = bench.markers(
        await bench.look("marker", bench.read, lambda live: bool(bench.markers(live)))
    )
    if len(made) != 1:
        bench.notes.miss("a new marker was not shown", *keys)
        return
    await _change_marker(bench, made[0])
    await _move_in_point(bench)


async def _change_marker(bench: ScratchAsset, marker: Marker) -> None:
    title = f"{bench.token} changed"
    change = requests.create_marker(bench.path, marker.uid, fields={"title": title})
    accepted = await bench.write(change, "marker", f"a marker titled {bench.token}")
    asset = await bench.look("marker", bench.read, lambda live: marker not in bench.markers(live))
    bench.unseen.discard("marker")  # a server may accept it and change nothing
    live = _marker_of(marker.uid, bench.markers(asset))
    if live is None or live.fields.get("title") != title:
        answer = "accepted, and nothing changed" if accepted else "refused"
        bench.notes.learn(
            "marker_update", "full", f"CREATEMARKER with uid and title alone: {answer}"
        )
        return
    lost = []
    for name, text in marker.fields.items():
        if name != "title" and live.fields.get(name) != text:
            lost.append(name)
    if live.frame != marker.frame:
        lost.append("frame")
    unsent = sorted(marker.fields.keys() - {"title"})
    value, effect = "changed", f"kept {', '.join(unsent)}"
    if lost:
        value, effect = "full", f"cleared {', '.join(lost)}"
    bench.notes.learn("marker_update", value, f"CREATEMARKER with uid and title alone {effect}")


def _marker_of(uid: int, markers: Sequence[Marker]) -> Marker | None:
    for marker in markers:
        if marker.uid == uid:
            return marker
    return None


async def _move_in_point(bench: ScratchAsset) -> None:
    old = bench.before.first_frame
    markers = bench.markers(await bench.read())
    if old is None or not markers:
        bench.notes.miss(
            "first_frame is not reported, so that it could not be put back", "position_origin"
        )
        return
    marker = markers[0]
    new = old + _SHIFT
    move = requests.set_field(bench.path, "first_frame", str(new))
    await bench.write(move, "first_frame", f"first_frame {new} instead of {old}")
    asset = await bench.look("first_frame", bench.read, lambda live: live.first_frame == new)
    moved = _marker_of(marker.uid, bench.markers(asset))
    if asset.first_frame != new or moved is None:
        bench.notes.miss("SETFIELD first_frame did not move the IN point", "position_origin")
        return
    evidence = f"IN point {old} → {new}: a marker at {marker.frame} shows at {moved.frame}"
    if moved.frame == marker.frame:
        bench.notes.learn("position_origin", "file", evidence)
    elif moved.frame == marker.frame - _SHIFT:
        bench.notes.learn("position_origin", "in", evidence)
    else:
        bench.notes.miss(
            f"neither from the file's first frame nor from the IN point: {evidence}",
            "position_origin",
        )


def _free_frames(asset: Asset) -> int | None:
    """Return the first of two frames that no segment covers: some servers refuse segments that overlap."""
    at = 0
    for segment in sorted(asset.segments, key=_span):
        if segment.start - at >= 2:
            return at
        at = max(at, segment.start + segment.duration)
    length = (asset.frames or 0) - (asset.first_frame or 0)
    return at if length - at >= 2 else None


# XMP ------------------------------------------------------------------------------------------------------------


async def try_separators(bench: ScratchAsset) -> None:
    """Which separator makes several values of one text (dialect ``list_separator``)?"""
    name = bench.xmp_field
    if name is None:
        bench.notes.miss("no field to try it on: --xmp-field NAME", "list_separator")
        return
    live = await _values(bench, name)
    old = "".join(live or ())
    is_list = len(live or ()) > 1 or not set(old).isdisjoint(_SEPARATORS)
    if live is None or is_list:
        why = (
            "cannot be read"
            if live is None
            else f"holds {live!r}, which could not be put back for certain"
        )
        bench.notes.miss(f"the field {name} {why}: name one that holds no list", "list_separator")
        return
    bench.undoing.insert(0, partial(_restore_field, bench, name, old))
    shown: list[str] = []
    for sign in _SEPARATORS:
        await bench.write(
            _write(bench, name, f"one{sign}two"), "xmp", f"values of {name} instead of {old!r}"
        )
        live = await bench.look("xmp", partial(_values, bench, name), partial(ne, live))
        shown.append(f"one{sign}two is shown as {list(live or ())}")
        if live == ("one", "two"):
            bench.notes.learn("list_separator", sign, shown[-1])
            return
    bench.notes.miss("; ".join(shown), "list_separator")


async def _values(bench: ScratchAsset, name: str) -> tuple[str, ...] | None:
    """Return the values as the server separates them; ``None`` if they cannot be read."""

    def parse(reply: RawAnswer) -> tuple[str, ...] | None:
        fields = parse_xmp(reply.data, "", reply.charset, asked=name)
        return None if fields is None else fields.get(name, ())

    try:
        return await bench.client.read(requests.get_user_fields(bench.path, name), parse)
    except RejectedError:
        return None


def _write(bench: ScratchAsset, name: str, value: str) -> Request:
    return requests.command(bench.path, "SETUSERFIELDS", [(name, value)])


async def _restore_field(bench: ScratchAsset, name: str, old: str) -> tuple[str, ...]:
    desired = tuple(filter(None, [old]))
    if not old and "xmp" in bench.made:
        bench.report(
            f"The field {name} had no value. If it did not exist before, it stays empty, because no request deletes it"
        )
    back = _write(bench, name, old)
    live = await take_back(
        bench, partial(_values, bench, name), lambda live: [back] * (live != desired)
    )
    if live == desired:
        return ()
    return (f"the field {name} is {list(live or ())} instead of {list(desired)}",)


_TRIALS: Trials = {
    try_segments: (("segment_update", "segment_numbers"), ""),
    try_markers: (("marker_update", "position_origin"), ""),
    try_separators: (("list_separator",), " with --xmp-field NAME"),
}
"""The trials on an asset. Other keys: :mod:`.observations`."""

_NEVER_TRIED = {
    "folder_missing": "the trial would create a folder, which the interface cannot delete",
    "link_title": "the trial would make a link, which the interface cannot remove",
    "link_delete": "trying could delete the clip instead of its link",
    "shows_after": "one trial does not show how long it takes at most",
    "rss_update": "the trial would change a channel that is on air",
    "rss_body": "the trial would change a channel that is on air",
}


async def probe(
    spec: ServerSpec, database: str, *, title: str | None = None, xmp_field: str | None = None
) -> ProbeResult:
    """Return what reading shows; sends GET only, never for all of ``/storage`` or a web proxy.

    ``title`` is a clip to read, else one is searched for; ``xmp_field`` is a field that it has. Raises ``MsautoError``
    if the server cannot be reached, rejects the credentials, or has no such database.
    """
    async with AsyncMediaServer(spec, read_only=True) as client:
        notes = ProbeNotes(client.hide)
        await ReadOnlyProbe(client, database, notes, title=title, field=xmp_field).run()
    return result_of(spec, database, notes, None)


async def probe_by_trial(
    spec: ServerSpec,
    database: str,
    trial: TrialOptions,
    *,
    clock: Clock,
    report: Callable[[str], None],
    refuse: Refuse,
    all_links: bool = False,
) -> ProbeResult:
    """Read as :func:`probe` does, then try the rest on one asset, and undo the changes.

    Changes are undone after an error or interruption as well; ``left`` and ``report`` name what could not be undone.
    """
    title, xmp_field = trial
    async with AsyncMediaServer(spec) as client:
        notes = ProbeNotes(client.hide)
        bench = ScratchAsset(
            client=client,
            name=title,
            notes=notes,
            clock=clock,
            report=report,
            database=database,
            xmp_field=xmp_field,
        )
        await bench.open(refuse, all_links=all_links)
        await ReadOnlyProbe(client, database, notes, title=title, field=xmp_field).run()
        left = await try_all(bench, _TRIALS)
    return result_of(spec, database, notes, left)


async def try_all(bench: Scratch, trials: Trials) -> tuple[str, ...]:
    """Try, then undo all changes; return what is left.

    A first interruption of the undoing only prints a message; a second one stops, and names what to check.
    """
    stopped: BaseException | None = None
    try:
        for trial, (keys, _) in trials.items():
            with bench.notes.trying(*keys):
                await trial(bench)
    except ServerError as error:
        bench.report(f"The trial ends here: {error}")
        lost = isinstance(error, InDoubtError)
        why = "an answer was lost before" if lost else "the server could no longer be reached"
        for keys, _ in trials.values():
            bench.notes.miss(why, *keys)
    except BaseException as error:  # noqa: BLE001 - Ctrl-C as well: changes are always undone
        stopped = error
        if bench.made:
            bench.report(bench.words.stopped.format(bench))
    left: tuple[str, ...] = ()
    if bench.made:
        left, interrupted = await _put_back_surely(bench)
        if interrupted and stopped is None:
            stopped = asyncio.CancelledError()
    if stopped is not None:
        for remains in left:
            bench.report(f"{bench.words.left.format(bench)}: {remains}")
        raise stopped
    return left


async def _put_back_surely(bench: Scratch) -> tuple[tuple[str, ...], bool]:
    """Return what remains, and whether it was interrupted once."""
    still = bench.words.still.format(bench)
    try:
        return await finish(put_back(bench), partial(bench.report, still))
    except asyncio.CancelledError:
        what = f"{bench.changed} of {bench.name!r}"
        bench.report(f"Stopped while undoing: it is not known what is left. Look for {what}")
        raise


def result_of(
    spec: ServerSpec, database: str, notes: ProbeNotes, left: tuple[str, ...] | None
) -> ProbeResult:
    """Return the findings; the questions that neither reading nor a trial answered get the reason why."""
    for keys, options in _TRIALS.values():
        notes.miss(f"reading does not show it: --scratch TITLE{options} tries it", *keys)
    for key in dataclasses.fields(Dialect):
        notes.miss(_NEVER_TRIED.get(key.name, "msauto has no trial for it"), key.name)
    return ProbeResult(
        spec.name, database, tuple(notes.learned.values()), tuple(notes.missed.values()), left
    )
