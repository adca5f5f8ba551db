"""The HTML report of many targets: how large it is, and how long a browser takes to show the first target."""

from __future__ import annotations

import tempfile
import time
from fractions import Fraction
from pathlib import Path

from msauto.model.desired import TaskSource
from msauto.model.plan import Change, Plan, Request, ShownItem, Target, TargetContext
from msauto.model.snapshot import Json
from msauto.plugins.pages import html
from tests.browser.chromium import launch

_RATES = (Fraction(25), Fraction(50), Fraction(30000, 1001), Fraction(60000, 1001))


def plan(size: int) -> Plan:
    """Return a plan in which every target has three changes with values of its own."""
    return Plan("2026-11-20T18:00:00+01:00", "0.1.0", targets=tuple(map(_target, range(size))))


def _target(number: int) -> Target:
    path = f"/storage/NEWS@Story%20{number * 7919 % 100_000:05}?command="
    source = TaskSource("news.yml", 9, 18, "Ready for air")
    marker: Json = {"frame": 5000 + number, "track": "Cue Point", "title": f"Ad break {number}"}
    part: dict[str, Json] = {
        "number": 1,
        "start": 0,
        "duration": 18_000 + number,
        "title": "Part 1",
    }
    return Target(
        f"studio-{number % 3}",
        "NEWS",
        "asset",
        f"Story {number * 7919 % 100_000:05}",
        f"Raw/2026/{number % 12 + 1:02}",
        rate=_RATES[number % 4],
        changes=(
            Change(
                "add", "marker", f"Cue Point@{5000 + number}", None, marker, "live", True, source
            ),
            Change(
                "change", "segment", "1", part, {**part, "duration": 19_000}, "live", True, source
            ),
            Change(
                "change",
                "field",
                "comment",
                f"raw {number}",
                f"Ready {number}",
                "live",
                True,
                source,
            ),
        ),
        requests=(
            Request(
                "POST",
                f"{path}CREATEMARKER&uid=-1&frame={5000 + number}&title=Ad%20break%20{number}",
                (0,),
            ),
            Request(
                "POST",
                f"{path}CREATESEGMENT&seg_num=1&start_frame=0&duration=19000&title=Part%201",
                (1,),
            ),
            Request("POST", f"{path}SETFIELD&name=comment&val=Ready%20{number}", (2,)),
        ),
        context=TargetContext(
            30_000 + number,
            (
                ShownItem("2", "Segments", 20_000, 5000, "Rest"),
                ShownItem("3", "General", 777, title="Slate"),
            ),
        ),
    )


def size(targets: int) -> dict[str, float]:
    """Return the kilobytes of the page."""
    return {"msauto": len("".join(html.render_plan(plan(targets))).encode()) / 1000, "mib": 0}


def opening(targets: int) -> dict[str, float]:
    """Return the seconds from opening the page until Chromium shows the first target; NaN without Chromium."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return {"msauto": float("nan"), "mib": 0}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "plan.html"
        file.write_text("".join(html.render_plan(plan(targets))), encoding="utf-8")
        browser = launch(playwright)
        if browser is None:
            return {"msauto": float("nan"), "mib": 0}
        page = browser.new_page()
        began = time.perf_counter()
        page.goto(file.as_uri())
        page.wait_for_selector("#detail-title")
        took = time.perf_counter() - began
        browser.close()
    return {"msauto": took, "mib": 0}
