"""Which cases a row makes impossible, and a part of the message of the refusal (interface, «What is not specified»).

One function a rule; each reads the desired and live state of the case, and the row, never a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

from msauto.plugins.simulator.embedded import SimDialect
from tests.dialects.case_end import path_of
from tests.dialects.case_seed import Case, file_of

BY_DIALECT: Mapping[str, tuple[str, ...]] = {
    "asset/absent_while_a_link_in_doubt_shows_it": ("Playout/Film tonight",),
    "link/absent_own_title": (),
    "link/absent_refused": (),
    "link/exactly_and_a_link_that_leads_nowhere": ("Playout/Film tonight",),
    "link/exactly_in_the_home_folder": (),
    "link/left_out_is_not_removed_by_exactly": ("the link Late/Film late",),
    "link/no_such_folder": (),
    "marker/named_before_the_in_point": (),
    "rss_item/text_hides_no_link": (),
    "rss_item/text_loses_a_link": (),
    "segment/in_point_moves_too": (),
    "segment/lossy_overwrite": ("track 'Rough'", "rating 3", "lossy: true"),
    "segment/lossy_titles": (),
    "together/all_errors_at_once": ("uid 8", "segment 1"),
}
"""Cases whose error depends on the dialect, with the phrases that occur in any. The rules below decide when."""

Ours = Mapping[str, str]
Rule = Callable[[Case, SimDialect, Ours], str]


def refusal(case: Case, server: SimDialect, ours: Ours) -> list[str]:
    """Return the words that the refusal must hold; none where the row leaves the case possible."""
    sourced = case.sourced.get(
        "error", [word for words in case.sourced.get("errors", []) for word in words]
    )
    words = list(BY_DIALECT.get(case.name, [sourced] if isinstance(sourced, str) else sourced))
    told = [word.replace("studio-a", "studio") for word in words if not word.startswith("task")]
    return [*told, *filter(None, (rule(case, server, ours) for rule in RULES))]


def _by_id(case: Case, server: SimDialect, _: Ours) -> str:
    named = any("id" in args for _, args in case.runs)
    return "not found" if named and server.ns_id == "no" else ""


def _folder(case: Case, _: SimDialect, ours: Ours) -> str:
    there = {tuple(path_of(folder)) for folder in case.sourced.get("server", {}).get("folders", [])}
    there |= {tuple(path_of(clip.get("folder") or "")) for clip in case.clips}
    desired = {
        tuple(path_of(link["folder"])) for link in _links(case) if link.get("state") != "absent"
    }
    return (
        "a link cannot be placed in it"
        if desired - there and ours["folder_missing"] == "refuse"
        else ""
    )


def _home(case: Case, server: SimDialect, _: Ours) -> str:
    """Where each entry reports its own folder, nothing shows which of two entries is the clip."""
    titles = {path_of(link)[-1] for clip in case.clips for link in clip.get("links", [])}
    consents = any(args.get("with_links") and "folder" not in args for args in case.assets)
    return (
        "which of them is the clip"
        if server.link_folder == "own" and consents and titles - {"Film"}
        else ""
    )


def _unlink(case: Case, server: SimDialect, ours: Ours) -> str:
    if "error" in case.sourced and case.name not in BY_DIALECT:
        return ""
    live = {tuple(path_of(link)) for clip in case.clips for link in clip.get("links", [])}
    named = {
        (*path_of(link["folder"]), link.get("title", "Film")): link.get("state")
        for link in _links(case)
    }
    only = any("links" in args.get("exactly", ()) for args in case.assets)
    gone = {link for link in live if named.get(link) == "absent" or (only and link not in named)}
    if gone and ours["link_delete"] == "refuse":
        return "no way to remove"
    if any(link[-1] == "Film" for link in gone):
        return "own title"
    homes = [tuple(path_of(clip.get("folder") or "")) for clip in case.clips]
    is_open = server.link_folder == "own" or any(link[:-1] in homes for link in gone)
    may_be_home = (
        gone
        and is_open
        and case.name not in BY_DIALECT.keys() - {"link/exactly_in_the_home_folder"}
    )
    return "which of the two is the clip" if may_be_home else ""


def _separator(case: Case, _: SimDialect, ours: Ours) -> str:
    values = [value for args in case.assets for value in args.get("xmp", {}).values()]
    texts = [text for value in values for text in ([value] if isinstance(value, str) else value)]
    return "list_separator" if any(ours["list_separator"] in text for text in texts) else ""


def _in_point(case: Case, _: SimDialect, ours: Ours) -> str:
    moves = any("first_frame" in args.get("fields", {}) for args in case.assets)
    counted = any(args.keys() & {"segments", "markers", "segmentation"} for args in case.assets)
    return "run of its own" if moves and counted and ours["position_origin"] == "in" else ""


def _before_in_point(case: Case, _: SimDialect, ours: Ours) -> str:
    in_points = [int(clip.get("fields", {}).get("first_frame", 0)) for clip in case.clips]
    named = [each["at"] for args in case.assets for each in args.get("markers", ()) if "at" in each]
    is_before = any(isinstance(at, int) and at < first for at in named for first in in_points)
    return "lies before the in point" if is_before and ours["position_origin"] == "in" else ""


def _text_loses(case: Case, _: SimDialect, ours: Ours) -> str:
    items = [item["item"] for args in case.channels for item in args["items"] if "item" in item]
    lost = any(item.keys() & {"link", "pubDate"} for item in items)
    return (
        "which cannot carry"
        if lost and not case.sourced.get("unchanged") and ours["rss_body"] == "text"
        else ""
    )


def _shown_file(case: Case, server: SimDialect, ours: Ours) -> str:
    """A guid that the channel shows for the file of another item."""
    if "error" in case.sourced or (server.rss_guid, ours["rss_guid"]) != ("file", "file"):
        return ""
    live = case.sourced.get("live") or {}
    shown_files = {file_of(item["guid"], case) for item in live.get("items", ())}
    items = [item for args in case.channels for item in args["items"] if "file" not in item]
    is_shown = any(item["guid"] in shown_files for item in items if item.get("state") != "absent")
    return "would show beside the live item" if is_shown else ""


def _version(case: Case, server: SimDialect, _: Ours) -> str:
    """A hidden field is written once, and a version that cannot write it is an error."""
    named = any("user_0" in args.get("fields", {}) for args in case.assets)
    return (
        "2.9.87" if named and "version" in case.sourced and server.link_fields == "hidden" else ""
    )


def _titles(case: Case, _server: SimDialect, _: Ours) -> str:
    """Further titles that a server does not report are unknown."""
    several = any(
        len(each.get("titles", [])) > 1 for clip in case.clips for each in clip.get("segments", [])
    )
    return "further titles" if several else ""


RULES: tuple[Rule, ...] = (
    _titles,
    _version,
    _by_id,
    _folder,
    _unlink,
    _home,
    _separator,
    _in_point,
    _before_in_point,
    _text_loses,
    _shown_file,
)


def told_by_server(end: Mapping[str, Any], before: Mapping[str, Any], server: SimDialect) -> bool:
    """Whether the server itself refuses the end: no key of ours knows a server that takes no overlapping segments."""
    if server.segment_overlap != "refuse" or end == before:
        return False
    return any(
        _overlap(clip["segments"]) for database in end["databases"] for clip in database["clips"]
    )


def _overlap(segments: Iterable[Mapping[str, Any]]) -> bool:
    spans = sorted((each["start"], each["start"] + each["duration"]) for each in segments)
    return any(one[1] > other[0] for one, other in pairwise(spans))


def _links(case: Case) -> list[dict[str, Any]]:
    return [link for args in case.assets for link in args.get("links", [])]
