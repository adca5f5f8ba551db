"""The trials on a scratch asset, one function for each question."""

from __future__ import annotations

from functools import partial
from operator import eq, ne
from typing import Final

from msauto.errors import InDoubtError, NotSentError, RejectedError
from msauto.interface import requests
from msauto.interface.requests import query, request_line_length
from msauto.model.live import Asset, Marker
from msauto.model.plan import Request
from msauto.probe.scratch_asset import LONGEST_LINE, ROUNDS, ScratchAsset, send_anyhow
from msauto.server.answers import RawAnswer
from msauto.server.xmp import parse_xmp

_SEPARATORS: Final = (",", ";", "|")
_FIRST_LINE: Final = 1000
_GRAIN: Final = 64
"""The precision of the longest line, in bytes."""

_TRIES: Final = 2
_BREATH: Final = 0.2  # seconds in which the end of a kept connection arrives

_SHIFT: Final = 7
_MARKER_FRAME: Final = 11
_LEAST_FRAMES: Final = 25
"""A clip must have room for our marker, also after the shift of the IN point."""


# Segments and markers ------------------------------------------------------------------------------------------


async def try_segments(bench: ScratchAsset) -> None:
    """Does CREATESEGMENT on an existing number overwrite (dialect ``segment_update``)?"""
    start = _free_frames(bench.before)
    if start is None:
        bench.notes.miss("no two frames of the asset are free of segments: name another asset", "segment_update")
        return
    words = f"segment {bench.number}, titled {bench.token}"
    first = requests.create_segment(bench.path, bench.number, start, 1, {"title": bench.token})
    await bench.write(first, "segment", words)
    made = bench.segments(await bench.look("segment", bench.read, lambda live: bool(bench.segments(live))))
    if [(each.start, each.duration) for each in made] != [(start, 1)]:
        spans = ", ".join(f"{each.start}+{each.duration}" for each in made) or "none"
        bench.notes.miss(f"a new segment was not shown as it was made: {spans}", "segment_update")
        return
    again = requests.create_segment(bench.path, bench.number, start, 2, {"title": bench.token})
    accepted = await bench.write(again, "segment", words)
    asset = await bench.look("segment", bench.read, lambda live: bench.segments(live) != made)
    bench.unseen.discard("segment")  # a server may accept it and keep the old one
    live = [(each.start, each.duration) for each in bench.segments(asset)]
    value = "overwrite" if live == [(start, 2)] else "recreate"
    answer = "accepted" if accepted else "refused"
    shown = "the new one alone" if value == "overwrite" else "both" if len(live) > 1 else "the old one"
    bench.notes.learn("segment_update", value, f"CREATESEGMENT on an existing number: {answer}; it shows {shown}")


async def try_markers(bench: ScratchAsset) -> None:
    """Are unsent fields of a marker kept (dialect ``marker_update``), and where do positions count from?"""
    keys = ("marker_update", "position_origin")
    if (bench.before.frames or 0) < _LEAST_FRAMES:
        bench.notes.miss(f"the asset has fewer than {_LEAST_FRAMES} frames: name another", *keys)
        return
    fields = {"title": bench.token, "comment": "kept?", "user": "msauto", "keywords": "a b"}
    create = requests.create_marker(bench.path, requests.NEW_MARKER, _MARKER_FRAME, "Cue Point", fields)
    await bench.write(create, "marker", f"a marker titled {bench.token}")
    made = bench.markers(await bench.look("marker", bench.read, lambda live: bool(bench.markers(live))))
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
    live = next((each for each in bench.markers(asset) if each.uid == marker.uid), None)
    if live is None or live.fields.get("title") != title:
        answer = "accepted, and nothing changed" if accepted else "refused"
        bench.notes.learn("marker_update", "full", f"CREATEMARKER with uid and title alone: {answer}")
        return
    lost = [name for name, value in marker.fields.items() if name != "title" and live.fields.get(name) != value]
    lost += ["frame"] if live.frame != marker.frame else []
    effect = f"cleared {', '.join(lost)}" if lost else f"kept {', '.join(sorted(marker.fields.keys() - {'title'}))}"
    bench.notes.learn("marker_update", "full" if lost else "changed", f"CREATEMARKER with uid and title alone {effect}")


async def _move_in_point(bench: ScratchAsset) -> None:
    old = bench.before.first_frame
    live = await bench.read()
    marker = next(iter(bench.markers(live)), None)
    if old is None or marker is None:
        bench.notes.miss("first_frame is not reported, so that it could not be put back", "position_origin")
        return
    move = requests.set_field(bench.path, "first_frame", str(old + _SHIFT))
    await bench.write(move, "first_frame", f"first_frame {old + _SHIFT} instead of {old}")
    moved = await bench.look("first_frame", bench.read, lambda asset: asset.first_frame == old + _SHIFT)
    shown = next((each.frame for each in bench.markers(moved) if each.uid == marker.uid), None)
    if moved.first_frame != old + _SHIFT or shown is None:
        bench.notes.miss("SETFIELD first_frame did not move the IN point", "position_origin")
        return
    evidence = f"IN point {old} → {old + _SHIFT}: a marker at {marker.frame} shows at {shown}"
    if shown in {marker.frame, marker.frame - _SHIFT}:
        bench.notes.learn("position_origin", "file" if shown == marker.frame else "in", evidence)
    else:
        bench.notes.miss(f"neither from the file's first frame nor from the IN point: {evidence}", "position_origin")


def _free_frames(asset: Asset) -> int | None:
    """Return the first of two frames that no segment covers: some servers refuse segments that overlap."""
    at = 0
    for segment in sorted(asset.segments, key=lambda each: each.start):
        if segment.start - at >= 2:
            return at
        at = max(at, segment.start + segment.duration)
    return at if (asset.frames or 0) - (asset.first_frame or 0) - at >= 2 else None


# XMP ------------------------------------------------------------------------------------------------------------


async def try_separators(bench: ScratchAsset) -> None:
    """Which separator makes several values of one text (dialect ``list_separator``)?"""
    name = bench.trial.xmp_field
    if name is None:
        bench.notes.miss("no field to try it on: --xmp-field NAME", "list_separator")
        return
    before = await _values(bench, name)
    if before is None or len(before) > 1 or any(sign in value for value in before for sign in _SEPARATORS):
        why = "cannot be read" if before is None else f"holds {before!r}, which could not be put back for certain"
        bench.notes.miss(f"the field {name} {why}: name one that holds no list", "list_separator")
        return
    old = before[0] if before else ""
    bench.afterwards.append(lambda: _restore_field(bench, name, old))
    shown: list[str] = []
    live: tuple[str, ...] | None = before
    for sign in _SEPARATORS:
        written = live
        await bench.write(_write(bench, name, f"one{sign}two"), "xmp", f"values of {name} instead of {old!r}")
        live = await bench.look("xmp", lambda: _values(bench, name), partial(ne, written))
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
    desired = (old,) if old else ()
    if not old and "xmp" in bench.made:
        bench.report(
            f"The field {name} had no value. If it did not exist before, it stays empty, because no request deletes it"
        )
    for _ in range(ROUNDS):
        if await _values(bench, name) == desired:
            return ()
        await send_anyhow(bench, _write(bench, name, old))
        bench.unseen.add("xmp")
        await bench.look("xmp", lambda: _values(bench, name), partial(eq, desired))
    live = await _values(bench, name)
    return () if live == desired else (f"the field {name} is {list(live or ())} instead of {list(desired)}",)


# Long lines -----------------------------------------------------------------------------------------------------


async def try_lines(bench: ScratchAsset) -> None:
    """How long may a request line be (``request_line``)? Sends reads of growing length."""
    longest, refused = 0, 0
    length = _FIRST_LINE
    while length <= LONGEST_LINE and not refused:
        longest, refused = (length, 0) if await _takes(bench, length) else (longest, length)
        length *= 2
    if not longest:
        bench.notes.miss(f"not even a line of {_FIRST_LINE} bytes was answered", "request_line")
        return
    while refused and refused - longest > _GRAIN:
        middle = (longest + refused) // 2
        longest, refused = (middle, refused) if await _takes(bench, middle) else (longest, middle)
    beyond = f"{refused} were not" if refused else "longer ones were not tried"
    bench.notes.learn("request_line", longest, f"a line of {longest} bytes was answered, {beyond}", where="server")


async def _takes(bench: ScratchAsset, length: int) -> bool:
    """Return whether a read of this length is answered as a short one is. The extra parameter has no meaning.

    One closed connection shows nothing: servers close kept ones without notice.
    """
    bare = f"{bench.path}{query([('msauto', '')])}"
    request = Request("GET", bare + "x" * (length - request_line_length(Request("GET", bare))))
    for _ in range(_TRIES):
        try:
            return (await bench.client.ask(request)).status < 300
        except (InDoubtError, NotSentError):
            await bench.client.read(Request("GET", bench.path), lambda reply: reply)  # the server is still there
            await bench.clock.sleep(_BREATH)
    return False
