"""``tests/cases/<aspect>/*.json`` as end-to-end cases: the server's store and the playbook that a case describes.

A case declares what the store holds (``live``); the row decides how a server shows it. What the ledger of a case
holds is true of the store as well. Nothing of msauto's planning is used here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from msauto.plugins.simulator.embedded import (
    ServerState,
    SimDialect,
    SimMarker,
    SimSegment,
    Simulator,
    empty_state,
)
from msauto.plugins.simulator.embedded.state import Item

ROOT = Path(__file__).resolve().parents[1] / "cases"
NOT_WHOLE_WAY = frozenset(
    {"editorial", "errors", "language", "xml"}
)  # cases of texts and of answers, not of wanted and live
OF_ONE_SERVER = frozenset(
    f"rss_item/{name}"
    for name in (
        *(
            "address_in_a_text",
            "address_in_texts_only",
            "guid_and_another_file",
            "under_another_guid",
            "duplicates_one_by_one",
        ),  # not as desired
        *("body_differs", "forms_of_a_text", "other_file"),  # what a channel shows of a text
        *(
            "document_keeps_the_rest",
            "document_keeps_elements",
            "document_loses_what_cannot_be_written",
        ),  # what the simulator has not
        *(
            "no_guid_known_file",
            "no_guid_text_shows_its_stem",
            "no_guid_absent",
        ),  # what the ledger knows of a file
    )
)
"""Cases that are about a channel of the default dialect."""
RUNS = frozenset({"command", "thumbnail", "proxy", "xmp_batch"})
PLANNED = "planned"
CREATED = "2026-11-20T08:00:00"
RATES = {"0.0400000000": Fraction(25), "0.0333666667": Fraction(30000, 1001)}


@dataclass(frozen=True)
class Case:
    """One file of the cases."""

    path: Path
    sourced: Mapping[str, Any]

    @property
    def name(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}"

    @property
    def desired(self) -> list[dict[str, Any]]:
        desired = self.sourced["desired"]
        return desired if isinstance(desired, list) else [desired]

    @property
    def clips(self) -> list[dict[str, Any]]:
        live = self.sourced.get("live") or {}
        return [*([live] if "title" in live else []), *self.sourced.get("others", [])]

    @property
    def ledger(self) -> Mapping[str, Any]:
        ledger: Mapping[str, Any] = self.sourced.get("ledger", {})
        return ledger

    @property
    def assets(self) -> list[dict[str, Any]]:
        """The desired state of assets."""
        return [args for args in self.desired if "channel" not in args and not args.keys() & RUNS]

    @property
    def channels(self) -> list[dict[str, Any]]:
        """The desired state of channels."""
        return [args for args in self.desired if "channel" in args]

    @property
    def runs(self) -> list[tuple[str, dict[str, Any]]]:
        """What is run: modules with their arguments."""
        return [(name, args[name]) for args in self.desired for name in args if name in RUNS]


def load_cases() -> list[Case]:
    """Return every case that declares desired and live state."""
    files = sorted(path for path in ROOT.glob("*/*.json") if path.parent.name not in NOT_WHOLE_WAY)
    cases = [Case(path, json.loads(path.read_text(encoding="utf-8"))) for path in files]
    return [case for case in cases if case.name not in OF_ONE_SERVER]


def pins_of(case: Case) -> dict[str, str]:
    """Return the switches of the server that are what the case is about: rows keep them as the case has them."""
    server = case.sourced.get("server", {})
    numbers = case.sourced.get("dialect", {}).get("segment_numbers", "fixed")
    pins = {"segment_numbers": numbers, "our_segment_numbers": numbers}
    if case.name in {
        "asset/absent_by_a_link",
        "title/was_and_a_link_of_the_new_title",
        "title/former_title_is_that_of_a_link",
    }:
        pins["link_folder"] = "home"
    if "reported" in server:
        pins["link_fields"] = "hidden"
    if server.get("reports_keywords") is False:
        pins["segment_keywords"] = "hidden"
    if server.get("finds_links") is False:
        pins["link_titles"] = "nowhere"
    if server.get("reports_names") is False:
        pins["orig_name"] = "hidden"
    if any(clip.get("xmp", {}) is None for clip in case.clips):
        pins["xmp_shape"] = "unreadable"
    error = str(case.sourced.get("error", ""))
    told = [error, *case.sourced.get("warnings", [])]
    guids = [item.get("guid", "/") for item in _items(case)]
    ours = case.sourced.get("dialect", {}).get("rss_guid")
    shown = server.get("rss_guid", ours)
    if shown is not None:
        pins |= {"rss_guid": shown, "rss_body": "any", "our_rss_guid": ours or "item"}
    elif (
        any("/" in guid or guid.endswith((".txt", ".xml")) for guid in guids)
        or any("guid" in each for each in told)
        or any("file" in item for item in _items(case))
    ):
        pins |= {
            "rss_guid": "item",
            "rss_body": "any",
            "our_rss_guid": "item",
        }  # a guid that no file has
    if len(set(guids)) < len(guids):
        pins["rss_delete"] = server.get("rss_delete", "all")
    return pins


# The playbook ---------------------------------------------------------------------------------------------------


def tasks_of(case: Case, folder: Path) -> list[dict[str, Any]]:
    """Return the case's tasks, with the files that they name put into the playbook's folder."""
    tasks = [_task(args, folder) for args in case.desired]
    if "left_out" not in case.sourced:
        return tasks
    named = [
        {"name": f"task{number}.yml", **task, "tags": [PLANNED]}
        for number, task in enumerate(tasks, 1)
    ]
    return [*named, {"name": "left_out.yml", **_task(case.sourced["left_out"], folder)}]


def tags_of(case: Case) -> tuple[str, ...]:
    """Return the tags that choose the tasks which a case does not leave out."""
    return (PLANNED,) if "left_out" in case.sourced else ()


def _task(args: dict[str, Any], folder: Path) -> dict[str, Any]:
    module = next(iter(args))
    if module not in RUNS:
        return {"rss" if "channel" in args else "asset": args}
    if module == "xmp_batch":
        (folder / args[module]["src"]).write_text(args[module]["content"], encoding="utf-8")
    return {module: {name: value for name, value in args[module].items() if name != "content"}}


# The store ------------------------------------------------------------------------------------------------------


def put_case(sim: Simulator, case: Case, server: SimDialect) -> None:
    """Give the simulator the case's store and one server's habits."""
    sim.state, sim.dialect = _state_of(case), server
    sim.clear_log()


def _state_of(case: Case) -> ServerState:
    sourced = case.sourced.get("server", {})
    if "databases" in sourced:
        state = ServerState()
        for name in sourced["databases"]:
            state.add_database(name)
        return state
    state = empty_state()
    news = state.databases["NEWS"]
    news.connectors["DESK 2"] = []
    for folder in sourced.get("folders", []):
        news.make_folder(folder)
    for clip in case.clips:
        _put_clip(state, case, clip)
    state.handles = {
        name.partition(":")[2]: news.clip(title) for name, title in sourced.get("ids", {}).items()
    }
    live = case.sourced.get("live") or {}
    if "channel" in live:
        state.add_channel(live["channel"]).items = [_item(item, case) for item in live["items"]]
    bystander = news.add_clip("Bystander", "Elsewhere", frames=77, archive="$(archive)/b")
    bystander.home.fields.update(comment="mine", user_3="mine")
    bystander.markers, bystander.segments = (
        [SimMarker(1, 5, {"track": "General"})],
        [SimSegment(1, 0, 9, ["A"])],
    )
    bystander.xmp = {"dc:title": ["mine"]}
    return state


def _put_clip(state: ServerState, case: Case, sourced: Mapping[str, Any]) -> None:
    frames, rate = sourced.get("frames", 250), sourced.get("frame_time", "0.0400000000")
    clip = state.add_clip(
        sourced["title"],
        sourced.get("folder") or "",
        frames=frames or 250,
        rate=RATES[rate or "0.0400000000"],
        create_time=sourced.get("create_time", CREATED),
        finalized=sourced.get("finalized", True),
        online=sourced.get("hires", "here") != "",
        archive=sourced.get("archive") or "",
        omitted=tuple(
            name for name, value in (("frames", frames), ("frame_time", rate)) if value is None
        ),
    )
    news = state.databases["NEWS"]
    for link in sourced.get("links", []):
        folder, _, title = link.rpartition("/")
        news.add_entry(clip, folder, title)
    clip.home.fields.update({**sourced.get("fields", {}), **_remembered(case, "field:")})
    clip.xmp = {**(sourced.get("xmp") or {}), **_remembered(case, "xmp:")}
    origin = (
        int(clip.home.fields.get("first_frame", 0))
        if case.sourced.get("dialect", {}).get("position_origin")
        else 0
    )
    clip.markers = [_marker(marker, origin) for marker in sourced.get("markers", [])]
    clip.segments = [_segment(segment, origin, case) for segment in sourced.get("segments", [])]


def _remembered(case: Case, prefix: str) -> dict[str, Any]:
    return {
        name.removeprefix(prefix): value
        for name, value in case.ledger.items()
        if name.startswith(prefix)
    }


def _marker(sourced: Mapping[str, Any], origin: int) -> SimMarker:
    fields = {name: str(value) for name, value in sourced.items() if name not in {"uid", "frame"}}
    return SimMarker(sourced["uid"], sourced["frame"] + origin, fields)


def _segment(sourced: Mapping[str, Any], origin: int, case: Case) -> SimSegment:
    titles = sourced.get("titles") or ([sourced["title"]] if "title" in sourced else [])
    kept = (_remembered(case, "segment:").get(str(sourced["number"])) or {}).get("keywords") or ""
    return SimSegment(
        sourced["number"],
        sourced["start"] + origin,
        sourced["duration"],
        list(titles),
        track=sourced.get("track", ""),
        rating=int(sourced.get("rating", 0)),
        keywords=sourced.get("keywords", kept),
    )


def _items(case: Case) -> list[dict[str, Any]]:
    live: dict[str, Any] = case.sourced.get("live") or {}
    items: list[dict[str, Any]] = live.get("items", [])
    return items


def _item(sourced: Mapping[str, Any], case: Case) -> Item:
    guid = sourced["guid"]
    body = f"{sourced['title']}\n{sourced.get('description', '')}".encode()
    title, description = sourced["title"], sourced.get("description", "")
    return Item(
        sourced.get("file") or file_of(guid, case),
        body,
        guid,
        title,
        description,
        sourced.get("link", ""),
        sourced.get("pubDate", ""),
    )


def file_of(guid: str, case: Case) -> str:
    """Return the file that an item came in: as a task names it, else by its guid."""
    for args in case.channels:
        for item in args["items"]:
            if item.get("guid") == guid and "/" in guid and item.get("state") != "absent":
                (put,) = (line for line in case.sourced["requests"] if line.startswith("PUT "))
                return unquote(
                    put.rpartition("/")[2]
                )  # what msauto makes of a guid that is no file name
            if item.get("guid") == guid:
                return str(item.get("file") or f"{guid}.{'xml' if 'item' in item else 'txt'}")
    return guid if guid.endswith((".txt", ".xml")) else f"{guid.replace('/', '-')}.txt"


# The ledger and the disk ----------------------------------------------------------------------------------------


def ledger_of(case: Case, folder: Path) -> dict[str, Any]:
    """Return what the ledger is to hold, with the sums of files that are put into the playbook's folder."""
    held = json.loads(json.dumps(case.ledger))
    held = {
        name.replace(":out/", f":{folder}/out/"): value for name, value in held.items()
    }  # as plans name files
    for name, was in case.sourced.get("disk", {}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(was.encode())
    for value in held.values():
        if isinstance(value, dict) and "sha256" in value:
            value["sha256"] = hashlib.sha256(value["sha256"].encode()).hexdigest()
    return dict(held)
