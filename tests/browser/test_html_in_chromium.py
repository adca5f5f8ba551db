"""The HTML report as a reader sees it, in Chromium: lists, links, keys, timelines, print, accessibility, both schemes.

The pages come from the commands, planned and applied on the embedded server. ``MSAUTO_WRITE_PICTURES=1`` writes the
pictures of the documentation again.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from PIL import Image

from msauto.model.plan import Target
from msauto.model.timecode import DROP_FRAME_RATES, show_timecode
from msauto.plugins.batch import pages
from msauto.plugins.pages import html
from msauto.plugins.simulator.embedded import Simulator, state_from_seed
from tests.browser.chromium import chromium
from tests.unit.batch.test_pages import SCHEDULE, bad_night
from tests.unit.batch.test_pages import night as good_night
from tests.unit.report.made_plans import change, episode, film, mixed_result, plan_of, whole_plan

pytestmark = [pytest.mark.scale, pytest.mark.xdist_group("browser")]

HERE = Path(__file__).parent
IMAGES = HERE.parents[1] / "docs" / "images"
FILM = "studio-a/NEWS/Long+Film"
PAGE = "nightly-2026-11-19T031000.html"
SCHEMES = ("light", "dark")
WIDTHS = (1280, 800, 390)
NIGHT = {
    "name": "nightly",
    "schedule": {"at": "03:10", "tz": "Europe/Oslo"},
    "reports": {"dir": "reports", "formats": ["html"]},
    "pages": "pages",
    "jobs": {
        "yesterday": {"playbooks": "yesterday.yml"},
        "unknown": {"playbooks": "unknown.yml"},
        "after": {"playbooks": "evening.yml", "needs": "unknown"},
        "drift": {"playbooks": "checked.yml", "do": "plan"},
    },
}
HOSTILE = (
    "</script><script>alert(1)</script>",
    '<img src="http://203.0.113.1/x" onerror="alert(2)">',
    "<!-- <script>",
    "javascript:alert(3)",
    "\u202eevil\u2028\u2066",
    "'\"&amp;${alert(4)}",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the pages that the tests open."""
    folder = tmp_path_factory.mktemp("reports")
    with Simulator(state_from_seed("sample")) as server:
        inventory = {
            "all": {"hosts": {"studio-a": {"server": {"url": server.url}, "database": "NEWS"}}}
        }
        (folder / "inventory.yml").write_text(str(inventory), encoding="utf-8")
        for name in ("yesterday.yml", "evening.yml"):
            shutil.copy(HERE / name, folder)
        msauto(folder, "apply", "yesterday.yml", "-y")
        (folder / "plan.html").write_text(
            msauto(folder, "plan", "evening.yml", "--format", "html"), encoding="utf-8"
        )
        with_stills = msauto(folder, "plan", "evening.yml", "--format", "html", "--stills", "6")
        (folder / "stills.html").write_text(with_stills, encoding="utf-8")
        msauto(folder, "apply", "evening.yml", "-y", "--allow-delete", "2")
        (folder / "run.html").write_text(
            msauto(folder, "report", "last", "--format", "html"), encoding="utf-8"
        )
        (folder / "msauto.toml").write_text('inventory = "inventory.yml"', encoding="utf-8")
        (folder / "batch.yml").write_text(str(NIGHT), encoding="utf-8")
        for name, title in (("unknown.yml", "Nobody"), ("checked.yml", "Match 1")):
            task = {"asset": {"title": title, "fields": {"comment": "Checked"}}}
            (folder / name).write_text(str([{"hosts": "all", "tasks": [task]}]), encoding="utf-8")
        night = subprocess.run(
            called("batch", "run", "batch.yml"), cwd=folder, capture_output=True, check=False
        )
        assert night.returncode == 1, night.stderr.decode()
        shutil.copy(next((folder / "reports").iterdir()), folder / "night.html")
    write(
        folder / "nights.html",
        pages.render_index([bad_night(7), *map(good_night, range(8, 100))], SCHEDULE, {PAGE}),
    )
    write(folder / "everything.html", html.render_plan(whole_plan()))
    write(folder / "failed.html", html.render_result(mixed_result()))
    write(folder / "hostile.html", html.render_plan(plan_of(*map(hostile, HOSTILE))))
    write(folder / "large.html", html.render_plan(plan_of(*map(story, range(5000)))))
    return folder


def msauto(folder: Path, command: str, what: str, *words: str) -> str:
    inventory = ("-i", "inventory.yml") if command != "report" else ()
    program = called(command, what, *inventory, *words)
    environment = {**os.environ, "LOGNAME": "operator"}
    done = subprocess.run(
        program, cwd=folder, env=environment, capture_output=True, check=True, encoding="utf-8"
    )
    return done.stdout


def called(*words: str) -> list[str]:
    return [sys.executable, "-m", "msauto", *words, "--state-dir", "state"]


def write(path: Path, pieces: Iterable[str]) -> None:
    path.write_text("".join(pieces), encoding="utf-8")


def hostile(text: str) -> Target:
    marker = change("add", "marker", f"{text}@5", None, {"frame": 5, "track": text, "title": text})
    field = change("change", "field", "comment", text, f"{text} ")
    return structs.replace(
        episode(), name=text, folder=text, server=text, changes=(marker, field, *film().changes)
    )


def story(number: int) -> Target:
    server = ("studio-a", "studio-b")[number % 2]
    comment = change("change", "field", "comment", f"raw {number}", f"Ready {number * 31 % 997}")
    marker = change(
        "add",
        "marker",
        f"General@{number}",
        None,
        {"frame": number, "track": "General", "title": "x"},
    )
    changes = (comment, marker) if number % 5 == 0 else (comment,)
    return structs.replace(
        episode(), server=server, name=f"Story {number:04}", changes=changes, emptied=()
    )


def is_local(url: str) -> bool:
    """Return whether a request stays on this machine: for a page, or for a picture that it contains."""
    return url.startswith(("file:", "data:"))


class Opened:
    """A page of a report that is open, and what it asked for and complained about."""

    def __init__(self, page: Any, url: str) -> None:
        self.page = page
        self.trouble: list[str] = []
        page.on("console", lambda message: self.trouble.append(message.text))
        page.on("pageerror", lambda error: self.trouble.append(str(error)))
        page.on("dialog", lambda dialog: self.trouble.append(dialog.message))
        page.on(
            "request",
            lambda request: self.trouble.append(request.url) if not is_local(request.url) else None,
        )
        page.goto(url)

    def names(self) -> list[str]:
        """The targets of the list that have elements."""
        names: list[str] = self.page.locator("#list .entry .name").all_text_contents()
        return names

    @property
    def title(self) -> str:
        return str(self.page.locator("#detail-title").inner_text())

    @property
    def found(self) -> str:
        return str(self.page.locator("#found").inner_text())


@pytest.fixture
def open_report(browser: Any, reports: Path) -> Iterator[Any]:
    """Open a report; afterwards it must have asked for nothing and complained about nothing."""
    opened: list[Opened] = []

    def open_it(name: str, link: str = "", **settings: Any) -> Opened:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
        context.set_default_timeout(30_000)
        one = Opened(context.new_page(), f"{(reports / name).as_uri()}{link and '#' + link}")
        opened.append(one)
        if settings.get("java_script_enabled", True):
            one.page.wait_for_selector("#explorer:not([hidden]), .strip")
        return one

    yield open_it
    for one in opened:
        assert one.trouble == []
        one.page.context.close()


# The order of the page -----------------------------------------------------------------------------------------

WIDER_THAN_THE_WINDOW = """() => [...document.querySelectorAll("main *:not(.unseen, svg *)")]
    .filter((each) => each.getBoundingClientRect().right > innerWidth)
    .map((each) => each.outerHTML.slice(0, 100))"""


def top(report: Opened, selector: str) -> float:
    """Where the first of these elements begins, in pixels."""
    return float(report.page.locator(selector).first.bounding_box()["y"])


@pytest.mark.parametrize(
    "name", ["plan.html", "run.html", "everything.html", "failed.html", "large.html"]
)
def test_search_and_chips_are_first_then_the_list(open_report: Any, name: str) -> None:
    report = open_report(name)
    assert (
        0
        < top(report, "h1")
        < top(report, "#search")
        <= top(report, ".chip:visible") + 40
        < top(report, "#list .entry")
    )
    assert top(report, "#list .entry") + 52 < 900
    assert top(report, "#list .entry") < top(report, "main > section:not(#explorer)")


def test_the_header_has_who_what_when_and_the_status_in_colour(open_report: Any) -> None:
    for name, status, about in (("plan.html", "refused", "evening.yml"), ("run.html", "ok", "evening.yml"),
                                ("failed.html", "failed", ""), ("night.html", "failed", "nightly")):  # fmt: skip
        report = open_report(name)
        badge = report.page.locator(".about .status")
        assert badge.inner_text() == status
        assert badge.evaluate(
            "badge => getComputedStyle(badge).color !== getComputedStyle(document.body).color"
        )
        assert about in report.page.locator(".about").inner_text()
        assert ("@" in report.page.locator(".facts").inner_text()) == bool(about)
    assert "took " in report.page.locator(".facts").inner_text()


@pytest.mark.parametrize("width", WIDTHS)
def test_a_note_is_under_its_change_and_a_key_is_in_one_piece(open_report: Any, width: int) -> None:
    report = open_report("everything.html", viewport={"width": width, "height": 900})
    report.page.locator(".groups a", has_text="Evening News").first.click()
    for place in ("#detail", ".groups"):
        row = report.page.locator(f"{place} .changes li", has_text="PARTNER_EXPORT_VERSION").first
        key, note = row.locator(".key").bounding_box(), row.locator(".notes").bounding_box()
        assert key["height"] < 25
        assert note["y"] > row.bounding_box()["y"] + 10
        assert note["width"] > 200


def test_on_a_phone_a_target_opens_below_the_list(open_report: Any) -> None:
    report = open_report("plan.html", viewport={"width": 390, "height": 844}, has_touch=True)
    report.page.locator("#list .entry", has_text="30 assets").tap()
    assert report.title.startswith("30 assets: ")
    report.page.locator(".members a", has_text="Match 3").first.tap()
    assert report.title == "Match 3"
    assert report.page.locator("#detail-title").evaluate(
        "title => title.getBoundingClientRect().top < 200"
    )
    report.page.locator(".back").tap()
    assert report.page.locator("#search").evaluate(
        "field => field.getBoundingClientRect().top >= 0"
    )


def test_the_night_shows_each_job_and_its_targets(open_report: Any) -> None:
    report = open_report("night.html")
    jobs = report.page.locator(".jobs li")
    assert jobs.locator(".status").all_inner_texts() == ["ok", "failed", "skipped", "ok"]
    assert re.fullmatch(
        r"\w{3} \d{4}-\d\d-\d\d \d\d:\d\d \w+", jobs.locator("time").first.inner_text()
    )
    assert jobs.locator("button").count() == 3
    jobs.locator("button").first.click()
    assert report.title.startswith("Long Film")
    assert report.page.locator("#job").input_value() == "yesterday"
    assert report.page.locator("#detail .changes li").count() > 3
    report.page.click("#reset")
    report.page.click("#status .differs")
    assert report.title.startswith("Match 1")
    assert report.page.locator(".result li").all_inner_texts() == [
        "field comment",
        "it differs (new)",
    ]


def test_the_index_leads_to_the_page_of_each_night(open_report: Any) -> None:
    report = open_report("pages/index.html")
    assert report.page.locator(".strip li").count() == 1
    report.page.locator(".strip li a").click()
    report.page.wait_for_selector(".jobs time")
    assert report.page.locator(".jobs strong").all_inner_texts() == list(NIGHT["jobs"])
    report.page.go_back()
    report.page.locator(".of-nights a").click()
    report.page.wait_for_selector(".jobs time")


@pytest.mark.parametrize("width", WIDTHS)
def test_the_newest_night_is_in_view(open_report: Any, width: int) -> None:
    report = open_report("nights.html", viewport={"width": width, "height": 900})
    assert report.page.locator(".strip li").count() == 90
    newest = report.page.locator(".strip li").first.bounding_box()
    assert newest["x"] + newest["width"] <= width
    names, bars = (
        report.page.locator(place).nth(1).bounding_box()
        for place in (".servers-of span", ".strip svg")
    )
    assert names["y"] <= bars["y"] < bars["y"] + bars["height"] <= names["y"] + names["height"] + 42


# The list ------------------------------------------------------------------------------------------------------


def test_a_large_list_has_elements_for_the_rows_in_view_alone(open_report: Any) -> None:
    report = open_report("large.html")
    assert report.found == "5000 targets"
    assert 10 < len(report.names()) < 60
    report.page.locator("#list").evaluate("list => { list.scrollTop = list.scrollHeight; }")
    report.page.wait_for_selector("text=Story 4999")
    assert len(report.names()) < 60


def test_search_and_filters_narrow_the_list_together(open_report: Any) -> None:
    report = open_report("large.html")
    report.page.fill("#search", "raw STORY 4321")
    assert (report.found, report.title) == ("1 of 5000 targets", "Story 4321")
    report.page.select_option("#server", "studio-b")
    report.page.click("#action .add")
    assert report.page.get_attribute("#action .add", "aria-pressed") == "true"
    report.page.click("#reset")
    assert report.found == "5000 targets"
    report.page.click("#action .add")
    assert report.found == "1000 of 5000 targets"
    report.page.select_option("#aspect", "marker")
    report.page.select_option("#server", "studio-b")
    assert report.found == "500 of 5000 targets"
    report.page.fill("#search", "no such title")
    assert report.found == "0 of 5000 targets"
    assert report.page.locator("#none").is_visible()


def test_targets_with_equal_changes_are_one_row_that_opens(open_report: Any) -> None:
    report = open_report("plan.html")
    (row,) = [name for name in report.names() if "assets" in name]
    assert row.endswith("30 assets: Cue Point@33750") or row.startswith("▸ 30 assets: ")
    shut = len(report.names())
    report.page.locator("#list .entry", has_text="30 assets").click()
    assert report.title.startswith("30 assets: ")
    assert report.page.locator(".members a").count() == 30
    assert "Match 1" in report.names()
    assert report.page.locator("#list .entry").first.get_attribute("aria-setsize") == f"{shut + 30}"
    report.page.locator("#list").focus()
    report.page.keyboard.press("Enter")
    assert len(report.names()) == shut
    report.page.locator(".members a", has_text="Match 7").first.click()
    assert report.title == "Match 7"
    assert report.found == "34 targets"


def test_a_chip_counts_what_the_list_has_of_it(open_report: Any) -> None:
    report = open_report("night.html")
    for chip in report.page.locator(".chip").all():
        count = chip.locator(".count").inner_text()
        chip.click()
        assert report.found.startswith(f"{count} of "), chip.inner_text()
        chip.click()


def test_keys_move_search_and_clear(open_report: Any) -> None:
    report = open_report("large.html")
    for key, name in (("j", "0001"), ("j", "0002"), ("k", "0001")):
        report.page.keyboard.press(key)
        assert report.title == f"Story {name}"
    report.page.keyboard.press("/")
    report.page.keyboard.type("story 0777")
    assert report.title == "Story 0777"
    report.page.keyboard.press("Enter")
    report.page.keyboard.press("j")
    assert report.title == "Story 0777"
    report.page.keyboard.press("Escape")
    assert report.found == "5000 targets"
    for key, name in (
        ("ArrowDown", "0778"),
        ("ArrowUp", "0777"),
        ("Home", "0000"),
        ("End", "4999"),
    ):
        report.page.keyboard.press(key)
        assert report.title == f"Story {name}"
        assert report.page.get_attribute("#list", "aria-activedescendant") == f"row-{int(name)}"
        assert report.page.locator(f"#row-{int(name)}[aria-selected=true]").is_visible()


def test_a_link_opens_its_target_also_after_reload(open_report: Any) -> None:
    report = open_report("plan.html", FILM)
    assert report.title == "Long Film"
    report.page.keyboard.press("j")
    report.page.keyboard.press("j")
    after = report.title
    report.page.reload()
    report.page.wait_for_selector("#detail-title")
    assert report.title == after != "Long Film"
    report.page.fill("#search", "match 7")
    report.page.locator(".deletions a", has_text="Promo 2").click()
    assert report.title == "Promo 2"
    assert report.found == "34 targets"


def test_a_group_shows_its_targets(open_report: Any) -> None:
    report = open_report("plan.html")
    report.page.locator(".group", has_text="30 assets with the same changes").get_by_role(
        "button"
    ).click()
    assert report.found == "30 of 34 targets"
    assert report.title == "Match 1"
    report.page.click("#same")
    assert report.found == "34 targets"


def test_a_run_shows_what_came_of_targets_and_requests(open_report: Any) -> None:
    report = open_report("failed.html")
    report.page.click("#status .failed")
    assert report.found == "1 of 4 targets"
    assert report.title.startswith("Evening News")
    assert report.page.locator(".requests .status").all_text_contents() == [
        "done",
        "failed",
        "not sent",
    ]
    assert (
        "desired 00:00:10:00 (250), live 00:00:00:00 (0)"
        in report.page.locator(".result").inner_text()
    )
    report = open_report("run.html", FILM)
    assert "Done: 34 changed" in report.page.locator("h1").inner_text()
    assert report.page.locator(".view .join").count() == 3


# Timelines -----------------------------------------------------------------------------------------------------


def test_the_timeline_shows_what_moves_and_zooms(open_report: Any) -> None:
    report = open_report("plan.html", FILM)
    view = report.page.locator(".view")
    assert view.locator(".lane").all_text_contents() == [
        "Segments",
        "General",
        "Cue Point",
        "Game Time",
    ]
    assert view.locator(".join").count() == 3  # two segments and a marker
    assert view.locator(".item.delete").count() == 2
    assert report.page.locator(".range").inner_text() == "whole clip, 01:48:20:00"
    view.focus()
    for _ in range(3):
        report.page.keyboard.press("+")
    assert report.page.locator(".range").inner_text() == "00:47:23:19 – 01:00:56:06"
    report.page.keyboard.press("Home")
    assert report.page.locator(".range").inner_text().startswith("00:00:00:00 – ")
    report.page.keyboard.press("0")
    box = view.bounding_box()
    report.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    report.page.keyboard.down("Control")
    report.page.mouse.wheel(0, -100)
    report.page.keyboard.up("Control")
    report.page.wait_for_function(
        "!document.querySelector('.range').textContent.startsWith('whole')"
    )


def test_the_timeline_has_values_on_hover_and_in_a_table(open_report: Any) -> None:
    report = open_report("plan.html", FILM)
    report.page.locator(".item.change.after .pin").first.hover()
    tip = (
        "Marker uid 1, changed\n"
        "before00:40:00:00 (frame 60000), Cue Point, Ad break\n"
        "after00:54:10:00 (frame 81250), Cue Point, Ad break"
    )
    assert report.page.locator(".tip").inner_text() == tip
    report.page.locator("summary", has_text="Timeline as a table").click()
    report.page.locator(".as-table tbody tr").first.wait_for()  # the table is made when it opens
    rows = report.page.locator(".as-table tbody tr").all_inner_texts()
    assert len(rows) == 9
    assert (
        rows[-3] == "Segment 3\tremoved\t01:22:00:00 – 01:48:20:00, length 00:26:20:00, Part 3\t–"
    )


def test_stills_are_shown_with_their_time_codes(open_report: Any) -> None:
    report = open_report("stills.html", FILM)
    assert report.page.locator(".stills figcaption").all_inner_texts() == [
        "00:12:00:00",
        "00:26:00:00",
        "00:54:10:00",
        "01:44:30:00",
    ]
    loaded = "images => images.every(image => image.complete && image.naturalWidth === 192)"
    assert report.page.locator("img").count() == 6  # and those of the two deleted clips
    assert report.page.locator("img").evaluate_all(loaded)


def test_drop_frame_is_shown_where_the_rate_has_it(open_report: Any) -> None:
    report = open_report("plan.html", "studio-a/NEWS/Line+50%2525+literal")
    assert "00:01:00;02" in report.page.locator(".view .code").all_text_contents()


@pytest.mark.parametrize(
    "rate", [Fraction(24000, 1001), Fraction(25), *DROP_FRAME_RATES, Fraction(120)], ids=str
)
def test_the_time_code_of_the_scripts_is_that_of_python(open_report: Any, rate: Fraction) -> None:
    chance = random.Random(1)
    edges = [
        minutes * 60 * 60 + frame
        for minutes in (0, 1, 9, 10, 11, 599, 1439, 9999)
        for frame in range(-5, 6)
    ]
    frames = [
        *range(4000),
        *(max(0, each) for each in edges),
        *(chance.randrange(10**10) for _ in range(3000)),
        10**15 - 1,
    ]
    shown = open_report("plan.html").page.evaluate(
        """([frames, rate]) => frames.map((each) =>
             [showTimecode(each, rate), frameOfNumber(numberOfFrame(each, rate), rate)])""",
        [frames, [rate.numerator, rate.denominator]],
    )
    assert shown == [
        [show_timecode(each, rate, drop=rate in DROP_FRAME_RATES), each] for each in frames
    ]


# Harmless, accessible, printed ---------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_texts_do_nothing(open_report: Any, number: int) -> None:
    report = open_report("hostile.html")
    for _ in range(number):
        report.page.keyboard.press("j")
    report.page.locator("summary", has_text="Timeline as a table").click()
    assert report.page.locator("script").count() == 2
    assert report.page.locator("img, iframe, a[href^=javascript]").count() == 0
    text = report.page.locator("body").inner_text()
    assert not set("\u202e\u2028\u2066") & set(text)
    if HOSTILE[number].isprintable():
        assert HOSTILE[number].strip('"') in report.title.replace(r"\"", '"')


@pytest.mark.parametrize("name", ["plan.html", "everything.html", "failed.html", "large.html"])
def test_without_scripts_the_static_part_is_complete(open_report: Any, name: str) -> None:
    report = open_report(name, java_script_enabled=False)
    assert report.page.locator("h1").is_visible()
    assert not report.page.locator("#explorer").is_visible()
    assert not report.page.locator(".with-scripts").first.is_visible()
    assert report.page.locator(".groups .group").count() > 0
    if name == "plan.html":
        assert report.page.locator(".deletions a").all_inner_texts() == [
            "Promo 1",
            "Promo 2",
        ]
        assert "Match 1…Match 30 (30)" in report.page.locator(".groups").inner_text()
        assert "allow-delete 2" in report.page.locator(".refusal").inner_text()


def test_print_shows_every_deletion_and_no_controls(open_report: Any) -> None:
    report = open_report("plan.html", color_scheme="dark")
    report.page.emulate_media(media="print", color_scheme="dark")
    assert not report.page.locator("#explorer").is_visible()
    for name in ("Promo 1", "Promo 2"):
        assert report.page.locator(".deletions a", has_text=name).is_visible()
    assert (
        report.page.evaluate("getComputedStyle(document.body).backgroundColor")
        == "rgb(255, 255, 255)"
    )
    assert report.page.evaluate("getComputedStyle(document.body).color") == "rgb(28, 33, 39)"


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("stills.html", 1280),
        ("stills.html", 800),
        ("everything.html", 1280),
        ("failed.html", 800),
        ("large.html", 1280),
        ("everything.html", 390),
        ("night.html", 1280),
        ("night.html", 390),
        ("nights.html", 1280),
        ("nights.html", 390),
    ],
)
def test_axe_finds_nothing(open_report: Any, name: str, width: int, scheme: str) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="make scale installs axe-core"
    )
    report = open_report(
        name, color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True
    )
    if name == "stills.html":
        report.page.goto(f"{report.page.url.partition('#')[0]}#{FILM}")
        report.page.locator("summary", has_text="Timeline as a table").click()
    found = axe.Axe().run(report.page).response["violations"]
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == []


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_window(open_report: Any, width: int, scheme: str) -> None:
    for name in (
        "plan.html",
        "everything.html",
        "failed.html",
        "hostile.html",
        "night.html",
        "nights.html",
    ):
        report = open_report(name, color_scheme=scheme, viewport={"width": width, "height": 900})
        assert report.page.evaluate("document.documentElement.scrollWidth") <= width
        assert report.page.evaluate(WIDER_THAN_THE_WINDOW) == []


# Pictures of the documentation ---------------------------------------------------------------------------------

PICTURES = {
    "report-overview": ("plan.html", "", "light", (1280, 860)),
    "report-target": ("plan.html", FILM, "light", (1280, 900)),
    "report-target-dark": ("plan.html", FILM, "dark", (1280, 900)),
    "report-run": ("failed.html", "", "light", (1280, 700)),
}


@pytest.mark.parametrize("picture", PICTURES)
def test_the_documentation_has_its_pictures(open_report: Any, picture: str) -> None:
    name, link, scheme, (width, height) = PICTURES[picture]
    report = open_report(
        name, link, color_scheme=scheme, viewport={"width": width, "height": height}
    )
    shot = Image.open(BytesIO(report.page.screenshot()))
    assert shot.size == (width, height)
    path = IMAGES / f"{picture}.png"
    if os.environ.get("MSAUTO_WRITE_PICTURES"):
        path.parent.mkdir(exist_ok=True)
        shot.convert("RGB").quantize(200).save(path, optimize=True)
    assert path.is_file(), "write it with MSAUTO_WRITE_PICTURES=1"
    assert path.stat().st_size < 100_000
