"""What the second media server does: commands and files for feeds (interface, «Asset commands», «RSS add data»)."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from datetime import datetime
from email.utils import format_datetime

from tests.acceptance.other_world import (
    LINK_FIELDS,
    MARKER_FIELDS,
    Clip,
    Habits,
    Refusal,
    World,
    not_found,
    origin,
    split_escaped,
)

Args = dict[str, str]
TRACKS = {
    "General", "Secondary Event", "Cue Point", "Goto Cue", "Game Time", "Icon", "Picture", "Profanity Start",
    "Profanity End",
}  # fmt: skip


def run(habits: Habits, world: World, clip: Clip, name: str, params: list[tuple[str, str]]) -> None:
    """Run a command on a clip; what it does not know it refuses."""
    args = dict(params)
    if len(args) != len(params):
        raise Refusal(400, "a parameter twice")
    if name not in _COMMANDS:
        raise Refusal(400, f"unknown command {name}")
    _COMMANDS[name](habits, world, clip, args)


def _frames(text: str) -> int:
    if not text.isdigit():
        raise Refusal(400, f"{text!r} is no number of frames")
    return int(text)


def _known(args: Args, *names: str) -> None:
    if set(args) - set(names):
        raise Refusal(400, f"unknown parameters {sorted(set(args) - set(names))}")


def _set_field(habits: Habits, world: World, clip: Clip, args: Args) -> None:
    name, value = args["name"], args["val"]
    if name == "clip_name":
        if world.find(value) not in (None, clip):
            raise Refusal(409, "there is such a clip")
        clip["title"] = value
    elif name in LINK_FIELDS:
        clip["fields"][name] = value
    else:
        raise Refusal(400, f"no field {name}")


def _set_xmp(habits: Habits, world: World, clip: Clip, args: Args) -> None:
    clip["xmp"].update({name: value.split(",") if value else [] for name, value in args.items()})


def _create_segment(habits: Habits, world: World, clip: Clip, args: Args) -> None:
    number, start, long = int(args.pop("seg_num")), _frames(args.pop("start_frame")), _frames(args.pop("duration"))
    start += origin(habits, clip)
    _known(args, "title", "keywords")
    if not 0 < long <= clip["frames"] - start:
        raise Refusal(400, "beyond the clip")
    if number in clip["segments"] and habits.seg_clash != "overwrite":
        raise Refusal(409, f"there is a segment {number}")
    end = start + long
    overlaps = [s for s in clip["segments"].values() if s["start"] < end and start < s["start"] + s["duration"]]
    if habits.seg_clash == "overlap" and overlaps:
        raise Refusal(409, "segments overlap")
    clip["segments"][number] = {"start": start, "duration": long, **{name: text for name, text in args.items() if text}}


def _delete_segment(habits: Habits, world: World, clip: Clip, args: Args) -> None:
    if clip["segments"].pop(int(args["seg_num"]), None) is None:
        raise Refusal(habits.gone_answer, "Object not found")


def _divide(habits: Habits, world: World, clip: Clip, args: Args) -> None:
    long, end = _frames(args["duration"]), clip["frames"]
    title = {"title": args["title"]} if "title" in args else {}
    starts = enumerate(range(0, end, long), 1)
    clip["segments"] = {number: {"start": at, "duration": min(long, end - at), **title} for number, at in starts}


def _create_marker(habits: Habits, world: World, clip: Clip, args: Args) -> None:
    uid, markers = int(args.pop("uid")), clip["markers"]
    _known(args, "frame", *MARKER_FIELDS)
    if uid != -1 and uid not in markers:
        raise not_found()
    if args.get("track", "General") not in TRACKS:
        raise Refusal(400, f"no track {args['track']}")
    old = markers.get(uid, {})
    kept = old if habits.marker_unsent == "keep" else {}
    place = _frames(args.pop("frame")) + origin(habits, clip) if "frame" in args else old["pos"]
    if place >= clip["frames"]:
        raise Refusal(400, "beyond the clip")
    uid = max((*markers, habits.uid_start - 1)) + 1 if uid == -1 else uid
    markers[uid] = {**kept, **args, "pos": place}


def _delete_marker(habits: Habits, world: World, clip: Clip, args: Args) -> None:
    if clip["markers"].pop(int(args["uid"]), None) is None:
        raise Refusal(habits.gone_answer, "Object not found")


def _copy_link(habits: Habits, world: World, clip: Clip, args: Args) -> None:
    folder = split_escaped(args["folder"])
    if folder and folder not in world.folders:
        if not habits.new_folder:
            raise not_found()
        world.make_folder("/".join(folder))
    same = [link for link in clip["links"] if (link["folder"], link["title"]) == (folder, args["title"])]
    if same and not habits.twin:
        raise Refusal(409, "there is such a link")
    clip["links"].append({"folder": folder, "title": args["title"], "link_id": world.next_id()})


def _restore(habits: Habits, world: World, clip: Clip, args: Args) -> None:
    if not clip["archive"]:
        raise Refusal(400, "not archived")
    clip["hires"] = "$(video_path)/back.mxf"


_COMMANDS: dict[str, Callable[[Habits, World, Clip, Args], None]] = {
    "SETFIELD": _set_field,
    "SETUSERFIELDS": _set_xmp,
    "CREATESEGMENT": _create_segment,
    "DELETESEGMENT": _delete_segment,
    "CREATESEGMENTATION": _divide,
    "CREATEMARKER": _create_marker,
    "DELETEMARKER": _delete_marker,
    "COPYLINK": _copy_link,
    "RESTORE": _restore,
}


def take_file(habits: Habits, items: list[dict[str, str]], file: str, body: bytes) -> None:
    """Take a file into a channel: a text, or an XML document with one item."""
    stem, _, ending = file.rpartition(".")
    text, item = body.decode("utf-8"), {"file": file}
    if ending == "xml":
        item |= {child.tag: child.text or "" for child in ET.fromstring(text)}
    else:
        item |= {name: text for name in ("title", "description") if habits.rss_text in (name, "both")}
    item["guid"] = {"item": item.get("guid") or stem, "file": file, "stem": stem}[habits.rss_guid]
    if habits.rss_date == "rfc822" and item.get("pubDate", "").startswith("20"):
        item["pubDate"] = format_datetime(datetime.fromisoformat(item["pubDate"]))
    at = next((index for index, old in enumerate(items) if old["guid"] == item["guid"]), len(items))
    items[at : at + 1] = [item]


def drop_item(habits: Habits, items: list[dict[str, str]], guid: str) -> None:
    """Drop an item of a channel."""
    left = [item for item in items if item["guid"] != guid]
    if len(left) == len(items):
        raise Refusal(habits.gone_answer, "Object not found")
    items[:] = left
