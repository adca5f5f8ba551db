"""Plans and results as planning and applying make them, for the tests of every form."""

from __future__ import annotations

import os
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

from msauto.model.desired import TaskSource
from msauto.model.identity import ClipIdentity
from msauto.model.plan import (
    Action,
    Basis,
    Body,
    Change,
    EmptiedList,
    Plan,
    PlannedServer,
    Refusal,
    Request,
    SkippedTarget,
    Target,
)
from msauto.model.result import Difference, RequestResult, Result, TargetResult
from msauto.model.snapshot import AspectName, Json
from msauto.report.layout import Layout
from msauto.report.text import render_plan

GOLDEN = Path(__file__).parent / "golden"
PAL = Fraction(25)
NTSC = Fraction(30000, 1001)


def check_golden(name: str, text: str) -> None:
    """Compare with ``golden/name``; ``MSAUTO_UPDATE_GOLDEN=1`` rewrites it (then read the difference)."""
    path = GOLDEN / name
    if os.environ.get("MSAUTO_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def without_assets(page: str) -> str:
    """Return a page without its style sheet, its script, and their hashes."""
    page = re.sub(r"(<style>|<script>).*?(</style>|</script>)", r"\1\2", page, flags=re.DOTALL)
    return re.sub(r"sha256-[\w+/=]+", "sha256-…", page)


def text_of(plan: Plan, **view: Any) -> str:
    """Return a plan as text; ``view`` as for ``Layout``."""
    return "".join(render_plan(plan, Layout(**view)))


def change(
    action: Action,
    aspect: AspectName,
    key: str,
    before: Json = None,
    after: Json = None,
    basis: Basis = "live",
    line: int = 9,
    **more: Any,
) -> Change:
    source = TaskSource("news.yml", line, 18, "Describe the episode")
    return Change(
        action,
        aspect,
        key,
        before,
        after,
        basis,
        more.pop("reversible", action != "run"),
        source,
        **more,
    )


def everyday() -> tuple[Change, ...]:
    """A change of every everyday aspect."""
    return (
        change("change", "title", "title", "Evening News raw", "Evening News"),
        change("change", "field", "comment", "raw", "Ready"),
        change("change", "field", "user_1", "Kanal 5", ""),
        change("change", "field", "first_frame", "0", 250),
        change("change", "field", "layer", "old", "new ", "ledger"),
        change("change", "field", "user_0", None, "Kanal 5", "none", reversible=False),
        change("change", "xmp", "dc:subject", ["news"], ["news", "evening", "a, b"]),
        change("change", "xmp", "dc:rights", None, ["Kanal 5"], "none"),
        change(
            "change",
            "segment",
            "1",
            {"start": 0, "duration": 18000, "title": "Part"},
            {"start": 0, "duration": 18750, "title": "Part 1"},
        ),
        change(
            "delete",
            "segment",
            "7",
            {"start": 18750, "duration": 50, "title": "Rest"},
            losses=1,
            line=20,
        ),
        change(
            "add",
            "marker",
            "Cue Point@18750",
            None,
            {
                "at": 18750,
                "track": "Cue Point",
                "title": "Ad break",
                "comment": "two\nlines",
                "rating": 3,
            },
        ),
        change(
            "change",
            "marker",
            "uid 9",
            {"at": 750, "title": "Stays"},
            {"at": 775, "title": "Stays"},
        ),
        change(
            "add",
            "link",
            "Playout/Tonight/Evening News",
            None,
            {"folder": "Playout/Tonight", "title": "Evening News"},
        ),
        change("run", "restore", "restore", None, "on disk"),
        change(
            "run", "command", "PARTNER_EXPORT_VERSION", None, {"ns": "title", "id": "Evening News"}
        ),
    )


def episode() -> Target:
    """An asset with a change of every everyday aspect."""
    path = "/storage/NEWS@Evening%20News?command="
    return Target(
        "studio-a",
        "NEWS",
        "asset",
        "Evening News",
        "Raw/2026",
        rate=PAL,
        wait=1800.0,
        changes=everyday(),
        requests=(
            Request("POST", f"{path}SETFIELD&name=comment&val=Ready", (1,)),
            Request("POST", f"{path}SETFIELD&name=first_frame&val=250", (3,)),
            Request("POST", f"{path}RESTORE", (13,)),
        ),
        emptied=(EmptiedList("segment", 4),),
    )


def film() -> Target:
    """A deleted clip with drop frame time code."""
    return Target(
        "studio-b",
        "ARCHIVE",
        "asset",
        "Promo 1",
        "Promos",
        rate=NTSC,
        clip=ClipIdentity(create_time="2026-11-12T10:00:00"),
        places=("Playout/Tonight/Promo 1",),
        changes=(
            change(
                "delete",
                "asset",
                "Promo 1",
                {"folder": "Promos", "frames": 1800, "create_time": "2026-11-12T10:00:00"},
                reversible=False,
            ),
        ),
        requests=(Request("DELETE", "/storage/ARCHIVE@Promo%201", (0,)),),
    )


def ticker() -> Target:
    """An RSS channel."""
    return Target(
        "studio-a",
        "",
        "rss_channel",
        "ticker",
        changes=(
            change(
                "change",
                "rss_item",
                "n-1",
                {"text": "Old"},
                {"text": "News: " + "very long " * 20 + "end"},
            ),
            change("delete", "rss_item", "n-0", {"title": "<b>T</b>", "description": "a | `b`"}),
        ),
        requests=(
            Request("PUT", "/rss/ticker/n-1.txt", (0,), Body.of("Новости".encode())),
            Request(
                "PUT", "/rss/ticker/n-2.bin", (0,), Body.of(b"\xff\x00", "application/octet-stream")
            ),
            Request("DELETE", "/rss/ticker?guid=n-0", (1,)),
        ),
    )


def lost() -> Target:
    """A target in error."""
    return Target(
        "studio-b",
        "NEWS",
        "asset",
        "Evening Newz",
        error="news.yml:31:14: NEWS has no asset «Evening Newz»\n  → did you mean «Evening News»?",
    )


def plan_of(*targets: Target, **more: Any) -> Plan:
    servers = (PlannedServer("studio-a", 12),)
    values: dict[str, Any] = {
        "created": "2026-11-20T18:00:00+01:00",
        "msauto": "0.1.0",
        "servers": servers,
    }
    return Plan(**(values | {"targets": targets} | more))


def whole_plan() -> Plan:
    """A plan that holds everything a plan can hold."""
    return plan_of(
        episode(),
        film(),
        ticker(),
        lost(),
        unchanged=12,
        skipped=(SkippedTarget("studio-b", "NEWS", "asset", "Trailer", "missing"),),
        servers=(PlannedServer("studio-a", 10), PlannedServer("studio-b", 2)),
        refusals=(
            Refusal("delete_assets", 0, 1, "--allow-delete 1"),
            Refusal("freeze", "Fri 18:00 to Sat 02:00", "now", "--override-freeze REASON"),
        ),
        warnings=(
            "studio-a tells no XMP fields:\nthey are sent whenever they differ from what we last wrote",
        ),
    )


def mixed_result() -> Result:
    """A run in which everything came that can come."""
    done = RequestResult("done", 200, tries=1)
    failed = TargetResult(
        episode(),
        "failed",
        "the server rejected a request",
        (
            done,
            RequestResult("failed", 500, "Error: no\x1b[2J", tries=2),
            RequestResult("not sent"),
        ),
        (
            Difference("field", "first_frame", 250, 0),
            Difference(
                "marker", "uid 9", {"at": 775, "title": "Stays"}, {"at": 750, "title": "Stays"}
            ),
            Difference("link", "Playout/Tonight/Evening News", {"folder": "Playout/Tonight"}, None),
            Difference("segment", "7", None, {"start": 18750}),
            Difference("field", "comment", "Ready", None),
        ),
    )
    unverified = TargetResult(
        film(), "unverified", "no answer came", (RequestResult("unverified", tries=1),)
    )
    waiting = TargetResult(
        ticker(), "not attempted", "interrupted", (RequestResult("not sent"),) * 3
    )
    changed = TargetResult(
        Target(
            "studio-c",
            "NEWS",
            "asset",
            "Новости дня",
            changes=(change("change", "field", "comment", "a", "b"),),
        ),
        "changed",
        requests=(done,),
    )
    plan = whole_plan()
    targets = (failed, unverified, waiting, changed)
    return Result("2026-11-20-1", plan, targets)
