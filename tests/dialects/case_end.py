"""What a case's store must hold afterwards, from the desired state and the store before: the oracle of the runs.

It is the contract as plain dicts: no minimality, no requests, nothing of msauto. ``ANY`` stands for what a
server chooses (uids, numbers, link ids); ``Loose`` for items of which only what is named is known.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from fractions import Fraction
from typing import Any

from msauto.plugins.simulator.embedded import SimDialect
from tests.dialects.case_seed import Case, file_of

Store = dict[str, Any]
POSITIONS = frozenset({"first_frame", "last_frame", "icon_pos"})
MARKER_FIELDS = ("title", "comment", "user", "keywords", "rating")


class Anything:
    """Equal to whatever the server chooses."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "ANY"


ANY = Anything()


@dataclass(frozen=True)
class Either:
    """One of some values: what a switch of the server decides."""

    values: tuple[Any, ...]

    def __eq__(self, other: object) -> bool:
        return other in self.values

    def __hash__(self) -> int:
        return 0


class Loose(dict[str, Any]):
    """An item of which only what is named is known."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and all(
            value == other.get(name) for name, value in self.items()
        )

    __hash__ = None


def end_of(case: Case, before: Store, server: SimDialect) -> Store:
    """Return the store that must be there afterwards; ``before`` and the answer as :func:`plain_store` has them."""
    end = deepcopy(before)
    news = next((each for each in end["databases"] if each["name"] == "NEWS"), None)
    if news is not None and case.assets:
        _AssetEnd(case, news, server).play()
    for args in case.channels:
        _channel_end(case, end, args, server)
    changed = end != before
    for module, args in case.runs:
        _run_end(case, news, module, args, changed)
    return end


# Assets ---------------------------------------------------------------------------------------------------------


@dataclass
class _AssetEnd:
    case: Case
    news: Store
    server: SimDialect

    def play(self) -> None:
        found = [
            (clip, args) for args in self.case.assets if (clip := self._clip(args)) is not None
        ]
        for clip in {id(clip): clip for clip, _ in found}.values():
            self._play_clip(clip, [args for each, args in found if each is clip])

    def _play_clip(self, clip: Store, tasks: Sequence[Store]) -> None:
        told = [args for args in tasks if args.get("unfinalized") != "skip" or clip["finalized"]]
        if any(args.get("state") == "absent" for args in told):
            self.news["clips"].remove(clip)
            return
        for args in told:
            clip["entries"][0]["title"] = (
                args["title"] if "was" in args else clip["entries"][0]["title"]
            )
        exactly = {name: args for args in told for name in args.get("exactly", ())}
        fields = {name: value for args in told for name, value in args.get("fields", {}).items()}
        for name, value in fields.items():
            value = (
                frames(value, clip, told[0].get("origin", 0))
                if name in POSITIONS and value != ""
                else value
            )
            clip["entries"][0]["fields"][name] = text_of(value)
        for name, values in ((n, v) for args in told for n, v in args.get("xmp", {}).items()):
            lists = [
                args["xmp"][name]
                for args in told
                if isinstance(args.get("xmp", {}).get(name), list)
            ]
            every = [text_of(value) for each in lists for value in each]
            # Lists of several tasks are one, each value once; blanks around a value do not count.
            united = list(dict.fromkeys(value.strip() for value in every))
            clip["xmp"][name] = (
                [text_of(values)]
                if isinstance(values, str)
                else united
                if len(lists) > 1
                else every
            )
        if any("restore" in args for args in told):
            clip["on_disk"] = True
        self._segments(clip, _all(told, "segments"), "segments" in exactly)
        for args in (each for each in told if "segmentation" in each):
            self._grid(clip, args["segmentation"], "segments" in exactly, bool(args.get("lossy")))
        tracks = next(
            (args["exactly"]["markers"].get("tracks") for args in told if _narrowed(args)), None
        )
        self._markers(clip, _all(told, "markers"), "markers" in exactly, tracks)
        home = clip["entries"][0]["title"]
        named = [
            home if text_of(args["title"]) == text_of(home) else args["title"] for args in told
        ]
        links = [
            {"title": name, **each}
            for name, args in zip(named, told, strict=True)
            for each in args.get("links", ())
        ]
        self._links(clip, links, "links" in exactly)

    def _clip(self, args: Store) -> Store | None:
        """The clip of exactly this title; of its other form where that one alone is there; else of a former title."""
        clips: list[Store] = self.news["clips"]
        if args.get("state") == "absent":
            place = {"title": args["title"]} | (
                {"folder": path_of(args["folder"])} if "folder" in args else {}
            )
            return next((clip for clip in clips if Loose(place) == clip["entries"][0]), None)
        former = [
            name
            for each in self.case.assets
            if each["title"] == args["title"]
            for name in each.get("was", [])
        ]
        for name in (args["title"], *former):
            exact = [clip for clip in clips if clip["entries"][0]["title"] == name]
            forms = [
                clip for clip in clips if text_of(clip["entries"][0]["title"]) == text_of(name)
            ]
            if exact or forms:
                return (exact or forms)[0]
        return next(
            (
                clip
                for clip in clips
                if any(each["title"] == args["title"] for each in clip["entries"])
            ),
            None,
        )

    # Segments: the number is the identity; else start and duration, else the title. Twins go by their number alone.

    def _segments(self, clip: Store, desired: Sequence[Store], only: bool) -> None:
        absent = [each for each in desired if each.get("state") == "absent"]
        removed = {each["number"] for each in absent if each.keys() == {"number", "state"}}
        counts = Counter(each["number"] for each in clip["segments"])
        twins: list[Store] = []
        live: dict[int, Store] = {}
        for segment in clip["segments"]:
            number = segment["number"]
            if counts[number] == 1:
                live[number] = segment
            elif number not in removed:
                twins.append(segment)
        end: list[Store] = []
        for sourced in absent:
            gone = Loose(self._segment(clip, sourced))
            for number, each in [*live.items()]:
                if gone == each | {"titles": each["titles"][:1]}:
                    del live[number]
        for sourced in desired:
            if sourced in absent:
                continue
            want = self._segment(clip, sourced)
            matched = self._match(want, live) or self._moved(want, live)
            found = None if matched is None else live.pop(matched, None)
            base = self._interrupted(want) if found is None else found
            made: Store = base | want
            if found is not None and made != found:
                made |= {"titles": made["titles"][:1], "track": "", "rating": 0}
            end.append({"name": "", "track": "", "rating": 0} | made)
        stays = [] if only and desired else list(live.values())
        clip["segments"] = end + twins + stays
        if self.server.segment_numbers == "by_start":
            in_order = sorted(clip["segments"], key=lambda each: each["start"])
            for number, each in enumerate(in_order, 1):
                each["number"] = number

    def _segment(self, clip: Store, sourced: Store) -> Store:
        want: Store = {
            name: frames(sourced[name], clip) for name in ("start", "duration") if name in sourced
        }
        want |= (
            {"titles": [text] if (text := sourced["title"]) else []} if "title" in sourced else {}
        )
        return want | {name: sourced[name] for name in ("number", "keywords") if name in sourced}

    def _interrupted(self, want: Store) -> Store:
        """Return what a new segment had, if an interrupted run deleted it and did not create it again."""
        names = ("number",) if "number" in want else ("start", "duration")
        place = Loose({name: want[name] for name in names})
        had: Store = {"number": ANY}
        for name, between in self.case.ledger.items():
            if name.startswith("segment-between:") and place == between:
                had = between
                break
        titles = [had["title"]] if had.get("title") else []
        keywords = had.get("keywords") or ""
        return {"number": had["number"], "titles": titles, "keywords": keywords}

    def _match(self, want: Store, live: Mapping[int, Store]) -> int | None:
        if "number" in want:
            return int(want["number"])
        tests: tuple[Callable[[Store], bool], ...] = (
            lambda each: (each["start"], each["duration"]) == (want["start"], want["duration"]),
            lambda each: bool(want.get("titles")) and each["titles"][:1] == want["titles"],
        )
        return next((number for test in tests for number, each in live.items() if test(each)), None)

    def _moved(self, want: Store, live: Mapping[int, Store]) -> int | None:
        """Return the number of a segment that a run left at this place, and that others have moved."""
        if self.server.segment_numbers == "by_start" or "start" not in want:
            return None
        place = [want["start"], want.get("duration")]
        for number, each in live.items():
            was = self.case.ledger.get(f"left:segment:{number}", [{}])[0]
            is_ours = (
                each["start"] == place[0] or each["duration"] == place[1]
            )  # with both changed it is another's
            if is_ours and [was.get("start"), was.get("duration")] == place:
                return number
        return None

    def _grid(self, clip: Store, sourced: Store, only: bool, lossy: bool) -> None:
        step, title = frames(sourced["duration"], clip), sourced.get("title")
        live, end = list(clip["segments"]), []
        places = [
            (start, min(step, clip["frames"] - start)) for start in range(0, clip["frames"], step)
        ]
        is_there = {*places} <= {(each["start"], each["duration"]) for each in live}
        for index, place in enumerate(places):
            found = next(
                (each for each in live if (each["start"], each["duration"]) == place), None
            )
            if found is None:
                ours = self._moved(
                    {"start": place[0], "duration": place[1]},
                    {each["number"]: each for each in live},
                )
                found = next((each for each in live if each["number"] == ours), None)
            new = {"name": "", "titles": [], "track": "", "rating": 0, "keywords": ""}
            made: Store = (new if found is None else found) | {
                "number": ANY,
                "start": place[0],
                "duration": place[1],
            }
            if lossy and not is_there:
                made |= {"titles": made["titles"][:1], "track": "", "rating": 0}
            if title is not None:
                made["titles"] = Either(([title], [f"{title} {index + 1}"]))
            if self.server.segment_keywords == "hidden" and found is not None:
                made["keywords"] = ANY  # nobody can know them: interface, «Segments and markers»
            end.append(made)
            live = [each for each in live if each is not found]
        clip["segments"] = end + ([] if only else live)

    # Markers: the uid is the identity; without one, the track and the position.

    def _markers(
        self, clip: Store, desired: Sequence[Store], only: bool, tracks: Sequence[str] | None
    ) -> None:
        absent = [(each, "uid" in each) for each in desired if each.get("state") == "absent"]
        gone = [Loose(self._marker(clip, sourced)) for sourced, by_uid in absent if by_uid]
        live: list[Store] = sorted(
            (each for each in clip["markers"] if each not in gone), key=lambda each: each["uid"]
        )
        present = [each for each in desired if each.get("state") != "absent"]
        named = {each["uid"] for each in present if "uid" in each}
        for sourced in (each for each in present if "uid" in each):
            (found,) = (each for each in live if each["uid"] == sourced["uid"])
            found |= self._marker(clip, sourced)
        end: list[Store] = []
        for sourced in (each for each in present if "uid" not in each):
            want = {"track": track_of("General")} | self._marker(clip, sourced)
            places = [
                each
                for each in live
                if (each["pos"], each["track"]) == (want["pos"], want["track"])
            ]
            title = want.get("title", "")
            places = places or [
                each  # a run made it, and others have moved it
                for each in live
                if f"made:marker:{each['uid']}" in self.case.ledger
                and (each["title"], each["track"]) == (title, want["track"])
            ]
            if places:
                found = next((each for each in places if Loose(want) == each), places[0])
                found |= want
                named.add(found["uid"])
            else:
                end.append(dict.fromkeys(MARKER_FIELDS, "") | {"uid": ANY} | want)
        gone = [
            Loose({"track": track_of("General")} | self._marker(clip, each))
            for each, by_uid in absent
            if not by_uid
        ]
        live = [each for each in live if each not in gone]
        if only:
            kinds = None if tracks is None else set(map(track_of, tracks))
            live = [
                each
                for each in live
                if each["uid"] in named or (kinds and each["track"] not in kinds)
            ]
        clip["markers"] = end + live

    def _marker(self, clip: Store, sourced: Store) -> Store:
        want: Store = {}
        if "at" in sourced:
            want["pos"] = frames(sourced["at"], clip)
        if "track" in sourced:
            want["track"] = track_of(sourced["track"])
        for name in MARKER_FIELDS:
            if name in sourced:
                want[name] = text_of(sourced[name])
        if "rating" in want:
            want["rating"] = rating_of(want["rating"])
        for name, value in sourced.get("attributes", {}).items():
            want[name] = text_of(value) or ANY  # empty: or not there
        if "uid" in sourced:
            want["uid"] = sourced["uid"]
        return want

    # Links: folder and title.

    def _links(self, clip: Store, desired: Sequence[Store], only: bool) -> None:
        home, *links = clip["entries"]
        for sourced in desired:
            folder, title = path_of(sourced["folder"]), sourced["title"]
            there = [
                each
                for each in (home, *links)
                if (each["folder"], each["title"]) == (folder, title)
            ]
            if sourced.get("state") == "absent":
                links = [each for each in links if each not in there]
            elif not there:
                links.append({"link_id": ANY, "folder": folder, "title": title, "fields": {}})
                self._folder(folder)
        if only and desired:
            kept = [(path_of(each["folder"]), each.get("title", home["title"])) for each in desired]
            links = [each for each in links if (each["folder"], each["title"]) in kept]
        clip["entries"] = [home, *links]

    def _folder(self, folder: list[str]) -> None:
        above = [folder[: depth + 1] for depth in range(len(folder))]
        self.news["folders"] += [each for each in above if each not in self.news["folders"]]


def _all(told: Iterable[Store], name: str) -> list[Store]:
    return [each for args in told for each in args.get(name, [])]


def _narrowed(args: Store) -> bool:
    return isinstance(args.get("exactly"), dict)


# Channels -------------------------------------------------------------------------------------------------------


def _channel_end(case: Case, end: Store, args: Store, server: SimDialect) -> None:
    (channel,) = [each for each in end["channels"] if each["name"] == args["channel"]]
    by_file = case.sourced.get("dialect", {}).get("rss_guid") in {"file", "stem"}
    kept: list[Store] = []
    for sourced in args["items"]:
        guid = sourced.get("guid", "")
        file = file_of(guid, case) if guid else sourced["file"]
        found = [
            each
            for each in channel["items"]
            if (guid and each.get("guid") == guid)
            or (each["file"] == file and (by_file or not guid or isinstance(each, Loose)))
        ]
        channel["items"] = [each for each in channel["items"] if each not in found]
        if sourced.get("state") == "absent":
            continue
        if len(found) == 1 and (
            isinstance(found[0], Loose) or _says(sourced, found[0], server)
        ):  # put by a task before
            kept += found
        else:
            kept.append(_item_end(sourced, file, server))
    if args.get("exactly"):
        channel["items"] = [each for each in channel["items"] if not each.get("guid")]
    channel["items"] = kept + channel["items"]


def _says(sourced: Store, item: Store, server: SimDialect) -> bool:
    """Whether an item contains what is desired: as a text, or field by field."""
    shown = item["title"], item["description"]
    if "item" in sourced:
        want = sourced["item"]
        lines = "\n".join(line for line in (want.get("title"), want.get("description")) if line)
        fields = all(
            item.get(name) == want.get(name, "") for name in ("title", "link") if name in want
        )
        if server.rss_body == "text" and lines == shown[1]:
            return True
        return fields and want.get("description", shown[1]) == shown[1] and not _dated(want, item)
    text = sourced["text"]
    return text in (shown[1], "\n".join(part for part in shown if part)) or (
        text == shown[0] and not shown[1]
    )


def _dated(want: Store, item: Store) -> bool:
    """Whether an item has another date than desired."""
    if "pubDate" not in want:
        return False
    return not item["pub_date"] or parsedate_to_datetime(
        item["pub_date"]
    ) != datetime.fromisoformat(want["pubDate"])


def _item_end(sourced: Store, file: str, server: SimDialect) -> Store:
    if "item" in sourced:
        want = sourced["item"]
        lines = [line for line in (want.get("title", ""), want.get("description", "")) if line]
        descriptions = (want.get("description", ""), "\n".join(lines))
        return Loose(
            file=file,
            title=want.get("title", ""),
            description=Either(descriptions),
            link=want.get("link", ""),
        )
    text = sourced["text"]
    title, _, rest = text.partition("\n")
    return Loose(file=file, title=title, description=Either((text, rest)))


# What is run ----------------------------------------------------------------------------------------------------


def _run_end(case: Case, news: Store | None, module: str, args: Store, changed: bool) -> None:
    if news is None or module in {"thumbnail", "proxy"}:
        return
    if module == "xmp_batch":
        if not any(name.startswith(f"xmp_batch:{args['connector']} ") for name in case.ledger):
            news["connectors"][args["connector"]].append(args["content"])
        return
    clip = next(
        each for each in news["clips"] if each["entries"][0]["title"] == args.get("title", "Film")
    )
    key = "command:" + " ".join(
        [args["name"], *(f"{name}={value}" for name, value in args.get("params", {}).items())]
    )
    namespace, _, number = args.get("id", "").partition(":")
    address = {"ns": namespace, "id": number} if namespace else {}
    sent = {"command": args["name"], **address, **args.get("params", {})}
    done = args.get("run") == "once" and (key in case.ledger or sent in clip["partner"])
    if done or (args.get("run") == "changed" and not changed):
        return
    clip["partner"].append(sent)
    if args["name"] == "PARTNER_MOVE_TO_ASSET":
        clip["entries"][0]["folder"] = ["Cards", args["params"]["asset_id"]]
        news["folders"] += [["Cards"], clip["entries"][0]["folder"]]


# Values ---------------------------------------------------------------------------------------------------------


def frames(value: int | str, clip: Store, origin: int | str = 0) -> int:
    """Return a position as frames of the file: a number, or a time code without drop frame."""
    if isinstance(value, int) or value.isdecimal():
        count = int(value)
    else:
        hours, minutes, seconds, rest = map(int, value.split(":"))
        count = (3600 * hours + 60 * minutes + seconds) * round(Fraction(clip["rate"])) + rest
    return count - (frames(origin, clip) if origin else 0)


def path_of(folder: str) -> list[str]:
    """Return a folder's names, with the backslash rule of the interface."""
    names = folder.replace("\\\\", "\0").replace("\\/", "\1").split("/")
    return [name.replace("\1", "/").replace("\0", "\\") for name in names if name]


def text_of(value: object) -> str:
    """Return a text as it is compared: composed, with plain line ends, without blanks around."""
    return unicodedata.normalize("NFC", str(value)).replace("\r\n", "\n").strip()


def rating_of(text: str) -> str:
    """Return a marker's rating as it is compared: a number. 0 and other texts count as none."""
    return text.lstrip("0") if text.isdecimal() else ""


def track_of(name: str) -> str:
    """Return a track's name as it is compared: by its letters."""
    return name.replace(" ", "").casefold()
