"""The plan and the result as an HTML page: what it shows without scripts, its data, and that nothing can break out."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode, b64encode
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
from typing import Any

import pytest
from msgspec import structs

from msauto.model.plan import Plan, Request, Target, TargetContext
from msauto.model.result import Result, TargetResult
from msauto.model.snapshot import Effect, Json
from msauto.plugins.pages import html
from msauto.plugins.pages.html import clip_data, embed_list, link_ids
from msauto.report.clip_timeline import StillPlace
from msauto.report.layout import Layout
from tests.shown_items import shown_marker, shown_segment
from tests.unit.report.made_plans import (
    NTSC,
    change,
    check_golden,
    episode,
    film,
    lost,
    mixed_result,
    plan_of,
    whole_plan,
    without_assets,
)

HOSTILE = '</script><script>alert(1)</script><!--<img src=x onerror="alert(1)">\u2028\u202e&amp; javascript:alert(1)'


def page_of(plan: Plan) -> str:
    return "".join(html.render_plan(plan))


def data_of(page: str) -> list[Any]:
    """Read the data as the browser does."""
    found = re.search(
        r'<script type="application/json" id="data"([^>]*)>(.*?)</script>', page, re.DOTALL
    )
    assert found is not None
    text = zlib.decompress(b64decode(found[2])).decode() if "deflate" in found[1] else found[2]
    values: list[Any] = json.loads(text)
    return values


class Elements(HTMLParser):
    """The elements and attributes of a page, as a browser without scripts finds them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.attributes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        self.attributes |= {name for name, _ in attrs}


@pytest.mark.usefixtures("in_oslo")
def test_pages_read_as_agreed() -> None:
    check_golden("plan.html", without_assets(page_of(whole_plan())))
    check_golden("result.html", without_assets("".join(html.render_result(mixed_result()))))


def test_the_policy_allows_the_style_and_the_script_of_the_page_alone() -> None:
    page = page_of(plan_of(episode()))
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    hashes = []
    for element in ("style", "script"):
        (text,) = re.findall(rf"<{element}>(.*?)</{element}>", page, re.DOTALL)
        hashes.append(b64encode(sha256(text.encode()).digest()).decode())
    assert unescape(policy[1]) == (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    assert not any(name.startswith("on") or name == "style" for name in Elements(page).attributes)
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize("frame", [None, 5])
def test_the_policy_allows_the_pictures_of_the_page_alone(frame: int | None) -> None:
    page = "".join(html.render_plan(plan_of(film()), Layout(stills={StillPlace(0, frame): b"png"})))
    assert "; img-src data:; base-uri" in page
    assert page.count("data:image/png;base64,cG5n") == (1 if frame else 2)


def test_hostile_texts_stay_texts() -> None:
    calm = change(
        "add", "marker", "General@5", None, {"frame": 5, "track": "General", "title": "x"}
    )
    wild = structs.replace(
        calm, key=f"{HOSTILE}@5", after={"frame": 5, "track": HOSTILE, "title": HOSTILE}
    )
    targets = (
        structs.replace(film(), name=name, folder=name, changes=(each, *film().changes))
        for name, each in (("x", calm), (HOSTILE, wild))
    )
    pages = [page_of(plan_of(target)) for target in targets]
    assert Elements(pages[0]).found == Elements(pages[1]).found
    assert not re.search("[\u2028\u202e]", pages[1])
    (target,) = data_of(pages[1])
    shown = (
        '"'
        + HOSTILE.replace('"', r"\"").replace("\u2028", r"\u2028").replace("\u202e", r"\u202e")
        + '"'
    )
    assert target["name"] == shown
    assert [item[3] for item in target["clip"]["items"]] == [[shown, 5, 0, shown]]


def test_without_scripts_the_page_shows_every_deletion_and_the_groups() -> None:
    marked = [
        structs.replace(
            film(), name=f"EP{number:03}", changes=(change("change", "field", "comment", "a", "b"),)
        )
        for number in range(1, 301)
    ]
    gone = [structs.replace(film(), name=f"Promo {number}") for number in range(70)]
    text = page_of(plan_of(*marked, *gone)).partition("<script")[0]
    assert all(f">Promo {number}</a>" in text for number in range(70))
    assert "studio-b · ARCHIVE · 300 assets with the same changes" in text
    assert "EP001…EP300 (300)" in text
    assert text.count("in Promos") >= 4


def test_an_error_of_many_targets_is_shown_once() -> None:
    down = [
        structs.replace(lost(), name=f"EP{number}", error="no answer\n→ check it")
        for number in range(5)
    ]
    text = page_of(plan_of(*down)).partition("<script")[0]
    assert text.count("no answer<br>→ check it") == 1
    assert "EP0…EP4 (5)" in text


def test_many_different_targets_are_in_the_list_alone() -> None:
    def target(number: int) -> Target:
        frames = [bit for bit in range(7) if number >> bit & 1]
        changes = (
            change("add", "marker", f"General@{at}", None, {"frame": at, "track": "General"})
            for at in frames
        )
        return structs.replace(film(), name=f"T {number}", changes=tuple(changes))

    page = page_of(plan_of(*map(target, range(1, 128))))
    shown = page.count('<section class="group">')
    assert 50 < shown < 127
    assert f"{127 - shown} targets more: the list of all targets shows them" in page
    assert [each.get("group") for each in data_of(page)] == [*range(shown), *[None] * (127 - shown)]


def test_large_data_is_deflated_and_the_same() -> None:
    items = [{"name": f"Story {number} <&>", "text": "Новости " * 3} for number in range(5000)]
    page = "".join(embed_list(items))
    assert len(page) < 100_000
    assert 'data-encoding="deflate"' in page
    assert data_of(page) == items
    assert data_of("".join(embed_list(items[:3]))) == items[:3]
    assert data_of("".join(embed_list([]))) == []


def test_links_are_distinct_and_stable() -> None:
    targets = [
        film(),
        structs.replace(film(), name="A/B #1"),
        film(),
        structs.replace(film(), database="", kind="rss_channel"),
    ]
    assert list(link_ids(targets).values()) == [
        "studio-b/ARCHIVE/Promo+1",
        "studio-b/ARCHIVE/A%2FB+%231",
        "studio-b/ARCHIVE/Promo+1~2",
        "studio-b/rss_channel/Promo+1",
    ]


def test_a_result_has_the_outcome_of_each_request_and_what_was_verified() -> None:
    result = mixed_result()
    changed = structs.replace(result.targets[3], seen=1, unseen=("command",))
    targets = data_of(
        "".join(html.render_result(structs.replace(result, targets=(*result.targets[:3], changed))))
    )
    assert [each["status"] for each in targets] == [
        "failed",
        "unverified",
        "not attempted",
        "changed",
    ]
    assert [each["result"] for each in targets[0]["requests"]] == [
        ["done", "200"],
        ["failed", r"500 · sent 2 times · Error: no\x1b[2J"],
        ["not sent", ""],
    ]
    assert (
        targets[3]["verified"] == "1 change verified by reading again; cannot be read back: command"
    )
    told = structs.replace(result.targets[0], message="request 2 of 3: Error: no\x1b[2J")
    targets = data_of("".join(html.render_result(structs.replace(result, targets=(told,)))))
    assert targets[0]["requests"][1]["result"] == ["failed", "500 · sent 2 times"]


def test_what_failed_for_one_reason_is_shown_once() -> None:
    failed = [
        TargetResult(structs.replace(film(), name=f"EP{number}"), "failed", "the disk is full")
        for number in range(5)
    ]
    text = "".join(html.render_result(Result("r", plan_of(), tuple(failed)))).partition("<script")[
        0
    ]
    assert "Not as desired: 5 targets" in text
    assert "EP0…EP4 (5)" in text
    assert text.count("the disk is full") == 1


def test_a_changed_target_with_a_note_is_not_counted_as_not_done() -> None:
    noted = TargetResult(film(), "changed", notes=("link changed meanwhile, and no task names it",))
    failed = TargetResult(structs.replace(film(), name="EP1"), "failed", "the disk is full")
    for targets, heading in (
        ((failed, noted), "Not as desired: 1 target"),
        ((noted,), "Changed meanwhile"),
    ):
        text = "".join(html.render_result(Result("r", plan_of(), targets))).partition("<script")[0]
        assert f"<h2>{heading}</h2>" in text
        assert text.count("link changed meanwhile") == 1
        assert ("1 target not as desired" in text) == (failed in targets)


def test_an_interrupted_run_says_so_at_the_top_and_many_playbooks_are_counted() -> None:
    plan = plan_of(film())
    options = structs.replace(plan.options, playbooks=tuple(f"{name}.yml" for name in "abcdefgh"))
    done = (TargetResult(film(), "changed"),)
    run = Result("r", structs.replace(plan, options=options), done, interrupted=True)
    text = "".join(html.render_result(run)).partition("<script")[0]
    assert '<span class="status interrupted">interrupted<' in text
    assert "and 5 more" in text


# Timelines -----------------------------------------------------------------------------------------------------


def clip(*changes: Any, context: TargetContext | None = None) -> Any:
    return clip_data(
        Target("a", "NEWS", "asset", "Film", rate=NTSC, changes=changes, context=context)
    )


def test_a_timeline_has_what_changes_and_what_stays() -> None:
    before: Json = {"uid": 9, "frame": 750, "track": "Cue Point", "title": "Break"}
    context = TargetContext(
        9000, (shown_segment(2, 100, 50, "Rest"), shown_marker(3, 7, "General"))
    )
    moved = change(
        "change", "marker", "uid 9", before, {"uid": 9, "frame": 775, "track": "Cue Point"}
    )
    split = change("delete", "segment", "1", {"number": 1, "start": 0, "duration": 100}, None)
    assert clip(moved, split, change("change", "field", "comment", "", "x"), context=context) == {
        "frames": 9000,
        "rate": [30000, 1001],
        "items": [
            ["change", "uid 9", ("Cue Point", 750, 0, "Break"), ("Cue Point", 775, 0, "Break")],
            ["delete", "1", ("Segments", 0, 100, ""), None],
            ["", "2", ("Segments", 100, 50, "Rest")],
            ["", "uid 3", ("General", 7, 0, "")],
        ],
    }


def test_a_marker_keeps_the_title_that_no_task_names() -> None:
    moved = change("change", "marker", "General@9", {"uid": 4, "frame": 5}, {"uid": 4, "frame": 9})
    effect = Effect("marker", "4", {"frame": 5, "track": "General", "title": "Break"}, {"frame": 9})
    target = Target(
        "a",
        "NEWS",
        "asset",
        "Film",
        changes=(moved,),
        requests=(Request("POST", "/", (0,), None, (effect,)),),
    )
    timeline = clip_data(target)
    assert timeline is not None
    assert timeline["items"] == [
        ["change", "uid 4", ("General", 5, 0, "Break"), ("General", 9, 0, "Break")]
    ]


def test_a_segmentation_is_drawn_piece_by_piece() -> None:
    old: Json = [{"number": 4, "start": 0, "duration": 90, "title": "Old"}]
    whole = change(
        "change", "segmentation", "40", old, {"duration": 40, "pieces": 3, "title": "Part"}
    )
    assert clip(whole, context=TargetContext(100))["items"] == [
        ["delete", "4", ("Segments", 0, 90, "Old"), None],
        ["add", "1", None, ("Segments", 0, 40, "Part")],
        ["add", "2", None, ("Segments", 40, 40, "Part")],
        ["add", "3", None, ("Segments", 80, 20, "Part")],
    ]


def test_in_and_out_points_are_drawn_and_other_fields_are_not() -> None:
    assert clip(change("change", "field", "first_frame", "0", 250))["items"] == [
        ["change", "first_frame", ("In and out", 0, 0, "In"), ("In and out", 250, 0, "In")]
    ]
    assert clip(change("change", "field", "first_frame", "", "")) is None
    assert clip(change("change", "field", "comment", "0", "250")) is None


@pytest.mark.parametrize("frames", [None, 50])
def test_the_length_covers_the_changes_if_the_clip_reports_none(frames: int | None) -> None:
    added = change("add", "marker", "General@79", None, {"frame": 79, "track": "General"})
    assert clip(added, context=TargetContext(frames))["frames"] == (frames or 80)


@pytest.mark.scale
def test_five_thousand_targets_stay_under_a_megabyte() -> None:
    def target(number: int) -> Target:
        comment = change(
            "change", "field", "comment", f"raw {number * 31}", f"Ready {number * 17 % 997}"
        )
        after: Json = {"frame": number, "track": "Cue Point", "title": f"Break {number}"}
        changes = (comment, change("add", "marker", f"Cue Point@{number}", None, after))
        return structs.replace(
            episode(), name=f"Story {number * 7919 % 100_000}", changes=changes, emptied=()
        )

    assert len(page_of(plan_of(*map(target, range(5000))))) < 1_000_000
