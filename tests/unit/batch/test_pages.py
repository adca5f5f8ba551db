"""The pages of the nights: the page of each, and the index of the last ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from msgspec import structs

from msauto.ledger.ledger import Ledger
from msauto.plugins.batch.batch_file import load_batch
from msauto.plugins.batch.batch_result import BatchResult, DifferingTarget, JobResult, record_result
from msauto.plugins.batch.causes import Cause
from msauto.plugins.batch.monitoring import Monitor
from msauto.plugins.batch.pages import page_name, render_index
from msauto.plugins.batch.schedule import Schedule

OSLO = ZoneInfo("Europe/Oslo")
SCHEDULE = Schedule(time(3, 10), "Europe/Oslo")
LAST = datetime(2026, 11, 26, 2, 10, tzinfo=UTC)
PAGES = 'name: nightly\nschedule: {at: "03:10", tz: Europe/Oslo}\npages: %s\njobs: {news: {playbooks: p.yml}}\n'

EDITED = DifferingTarget(
    server="tromso", database="NEWS", kind="asset", name="EP001", changes=("field comment",)
)


def night(days_ago: int, *jobs: JobResult, failed: bool = False) -> BatchResult:
    started = LAST - timedelta(days=days_ago)
    return BatchResult(
        run=f"{started:%Y%m%dT%H%M%SZ}-ab12",
        batch="nightly",
        file="batch.yml",
        outcome="failed" if failed else "ok",
        code=3 if failed else 0,
        started=f"{started:%Y-%m-%dT%H:%M:%S}.000Z",
        ended=f"{started:%Y-%m-%dT%H:%M:%S}.500Z",
        jobs=jobs or (JobResult(job="news", outcome="ok", code=0, changed={"oslo": 4}),),
    )


def bad_night(days_ago: int) -> BatchResult:
    cause = Cause(
        server="bergen",
        outcome="not attempted",
        count=39,
        names=("A <1>",),
        message="no connection",
    )
    changed = {"oslo": 40, "tromso": 2}
    news = JobResult(
        job="news", outcome="failed", code=3, changed=changed, outside=(EDITED,), causes=(cause,)
    )
    differing = DifferingTarget(
        server="oslo", database="N", kind="asset", name="A", changes=("field comment",)
    )
    drift = JobResult(job="drift", outcome="ok", code=0, drift=(differing,))
    return night(days_ago, news, drift, failed=True)


def index_of(results: Sequence[BatchResult], without: int = 0) -> str:
    pages = {f"{page_name(each, OSLO)}.html" for each in results[: len(results) - without]}
    return "".join(render_index(results, SCHEDULE, pages))


def test_the_index_has_the_last_90_nights_each_with_its_page() -> None:
    page = index_of([night(days) for days in range(100)], without=95)
    strip, _, listed = page.partition('class="jobs of-nights"')
    assert strip.count("<li>") == listed.count("<li>") == 90
    for days, name in (
        (0, "nightly-2026-11-26T031000.html"),
        (4, "nightly-2026-11-22T031000.html"),
    ):
        assert strip.count(f'href="{name}"') == listed.count(f'href="{name}"') == 1, days
    assert page.count("href=") == 2 * 5


def test_a_night_shows_what_was_done_on_each_server() -> None:
    page = index_of([bad_night(0), night(1)])
    assert (
        " · bergen: 39 not attempted · oslo: 40 changed, 1 differing · tromso: 2 changed, 1 changed outside</span>"
        in page
    )
    columns = page.partition("<ol>")[2].partition("</ol>")[0].split("<li>")[1:]
    heights = [
        re.findall(r'<rect class="(\w+)" x="(\d+)" y="[\d.]+" width="3" height="([\d.]+)"', each)
        for each in columns
    ]
    assert heights == [
        [
            ("failed", "4", "36.0"),
            ("changed", "0", "36.0"),
            ("differs", "8", "2"),
            ("changed", "0", "36.0"),
            ("outside", "12", "18.0"),
        ],
        [("changed", "0", "3.6")],
    ]
    assert all(each.count("<svg") == 3 for each in columns)


def test_the_index_names_the_jobs_that_were_not_ok() -> None:
    _, _, listed = index_of([bad_night(0), night(1)]).partition('class="jobs of-nights"')
    assert listed.count("news failed") == 1
    assert "drift ok" not in listed


def test_what_was_not_written_counts_once() -> None:
    causes = tuple(
        Cause(
            server=server,
            outcome="not attempted",
            count=count,
            names=("A",),
            message="no connection",
        )
        for server, count in (("bergen", 39), ("tromso", 2))
    )
    outside = (structs.replace(EDITED, server="oslo"),)
    news = JobResult(
        job="news",
        outcome="failed",
        code=3,
        summary={"not_attempted": 39},
        causes=causes[:1],
        outside=outside,
    )
    drift = JobResult(job="drift", outcome="failed", code=1, causes=causes, outside=outside)
    page = index_of([night(0, news, drift, failed=True)])
    assert (
        " · bergen: 39 not attempted · oslo: 1 changed outside · tromso: 2 not attempted</span>"
        in page
    )


def test_a_status_has_a_shape_and_not_only_a_colour() -> None:
    page = index_of([bad_night(0), night(1)])
    assert '<span class="status failed" aria-hidden="true">✕</span>' in page
    assert '<span class="status ok" aria-hidden="true">●</span>' in page


def test_the_index_has_no_markup_of_its_own_names() -> None:
    cause = Cause(server="<b>", outcome="failed", count=1, names=("A",), message="x")
    page = index_of(
        [night(0, JobResult(job="news", outcome="failed", code=3, causes=(cause,)), failed=True)]
    )
    assert "<b>" not in page
    assert "&lt;b&gt;: 1 failed" in page


def test_each_night_is_kept_and_old_ones_go(tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    for name in (
        "nightly-2026-11-01T031000.html",
        "other-2026-11-01T031000.html",
        "nightly-2026-11-25T031000.html",
    ):
        (folder / name).write_text("old", encoding="utf-8")
    path = tmp_path / "batch.yml"
    path.write_text(PAGES % "{dir: pages, keep_days: 10}", encoding="utf-8")
    batch = load_batch(str(path))
    with Ledger.open(tmp_path / "state") as ledger:
        for each in (night(25), night(1), bad_night(0)):
            record_result(ledger, each, str(tmp_path), batch.id[1])
    (sent,) = Monitor(batch, {}, ledger=tmp_path / "state").ended(bad_night(0))
    assert (sent.kind, sent.error) == ("report", "")
    kept = [
        "nightly-2026-11-25T031000.html",
        "nightly-2026-11-26T031000.html",
        "other-2026-11-01T031000.html",
    ]
    assert sorted(each.name for each in folder.iterdir()) == ["index.html", *kept]
    index = (folder / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'<span><a href="([^"]*)"', index) == [kept[1], kept[0]]
    assert index.partition('class="jobs of-nights"')[2].count("<li>") == 3
    page = (folder / kept[1]).read_text(encoding="utf-8")
    policies = [
        re.findall(r'Content-Security-Policy" content="([^"]*)"', each) for each in (index, page)
    ]
    assert len(policies[0]) == 1
    assert page.count('href="index.html"') == 1
    assert policies[0] == policies[1]


def test_pages_may_be_a_folder_alone(tmp_path: Path) -> None:
    path = tmp_path / "batch.yml"
    path.write_text(PAGES % "nights", encoding="utf-8")
    Monitor(load_batch(str(path)), {}).ended(night(0))
    assert sorted(each.name for each in (tmp_path / "nights").iterdir()) == [
        "index.html",
        "nightly-2026-11-26T031000.html",
    ]
