"""The summary of a batch in each form, as the golden files show it; ``MSAUTO_WRITE_CASES=1`` writes them."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import pytest
from msgspec import structs

from msauto.model.plan import SkippedTarget
from msauto.model.result import format_time
from msauto.plugins.batch.batch_result import (
    BatchResult,
    DifferingTarget,
    JobResult,
    JobStatus,
    SentMessage,
    batch_result_schema,
    show_status,
    status_of,
)
from msauto.plugins.batch.causes import Cause
from msauto.plugins.batch.summary import SUMMARY_FORMS
from tests.unit.report.made_plans import without_assets

GOLDEN = Path(__file__).parent / "golden"


pytestmark = pytest.mark.usefixtures("in_oslo")
STARTED, ENDED = "2026-11-20T02:10:01.000Z", "2026-11-20T02:12:01.500Z"
DRIFT = DifferingTarget(
    server="studio-a",
    database="NEWS",
    kind="asset",
    name="Evening | <News>",
    changes=("field comment", "marker uid 3"),
    nights=2,
    by=("anna",),
)
OVERWRITTEN = structs.replace(DRIFT, changes=('field comment "CALL `it`"',), nights=1)
RESULT = BatchResult(
    run="20261120T021000Z-cd34",
    batch="nightly",
    file="batch.yml",
    outcome="failed",
    code=3,
    scheduled="2026-11-20T02:10:00.000Z",
    started="2026-11-20T02:10:00.000Z",
    ended="2026-11-20T02:14:00.000Z",
    missed=("2026-11-19T02:10:00.000Z",),
    jobs=(
        JobResult(
            job="titles",
            outcome="ok",
            code=0,
            summary={"changed": 4, "unchanged": 20, "outside": 2},
            outside=(OVERWRITTEN, structs.replace(OVERWRITTEN, name="Kveldsnytt")),
            attempts=1,
            started=STARTED,
            ended=ENDED,
        ),
        JobResult(
            job="news",
            outcome="failed",
            code=3,
            reason="bergen: 39 not attempted: no connection: Connection refused; tromso: 1 not attempted: `it` & more",
            attempts=2,
            runs=("20261120T021002Z-ab12",),
            summary={"changed": 23, "not_attempted": 40},
            changed={"tromso": 23},
            skipped=(
                SkippedTarget("bergen", "PLAYOUT", "asset", "PROMO 008", "missing", repeated=True),
                SkippedTarget(
                    "tromso",
                    "PLAYOUT",
                    "asset",
                    "Jingle",
                    "gone",
                    run="20261118T021002Z-ef56",
                    at=STARTED,
                ),
            ),
            causes=(
                Cause(
                    server="bergen",
                    outcome="not attempted",
                    kind="no connection",
                    count=39,
                    names=("PROMO 001", "PROMO 002", "PROMO 003", "PROMO 004", "PROMO 005"),
                    message="no connection: Connection refused",
                    remedy="check that the server runs, its address and its port",
                ),
                Cause(
                    server="tromso",
                    outcome="not attempted",
                    kind="not found",
                    count=1,
                    names=("PROMO 007",),
                    message="asset 'PROMO 007' not found in `it` & <more>",
                    remedy="did you mean 'PROMO 007 final'?",
                ),
            ),
            started=STARTED,
            ended=ENDED,
        ),
        JobResult(job="archive", outcome="skipped", reason="needs news, which ended with 'failed'"),
        JobResult(
            job="drift",
            outcome="ok",
            code=0,
            attempts=1,
            drift=(DRIFT,),
            started=STARTED,
            ended=ENDED,
        ),
        JobResult(job="late", code=4, reason="the window 02:00-05:00 has closed"),
    ),
    deliveries=(
        SentMessage(
            kind="notice", to="json://…", events=("failed",), error="no answer within 8.0 s"
        ),
    ),
    drift_changed=True,
    msauto="0.1.0",
    user="msauto",
    host="automation",
)


@pytest.mark.parametrize("form", SUMMARY_FORMS)
def test_forms(form: str) -> None:
    ending, render = SUMMARY_FORMS[form]
    path, text = GOLDEN / f"summary.{ending}", without_assets(render(RESULT, None))
    if os.environ.get("MSAUTO_WRITE_CASES"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_the_page_begins_with_what_to_look_at_by_name() -> None:
    page = without_assets(SUMMARY_FORMS["html"][1](RESULT, None))
    before, _, jobs = page.partition('<ul class="jobs"')
    _, _, eyes = before.partition('id="eyes"')
    for words in (
        "bergen: 39 no connection",
        "PROMO 001",
        "changed outside by anna",
        "(for 2 nights",
    ):
        assert words in eyes
        assert words not in jobs.partition("</ul>")[0]
    rows = []
    for row in re.findall("<li>.*?</li>", eyes, flags=re.DOTALL):
        badge, job, _ = re.findall("<(?:span class|strong|span).*?>(.*?)</", row)
        rows.append((badge, job))
    assert rows == [
        ("not attempted", "news"),
        ("not attempted", "news"),
        ("not attempted", "late"),
        ("gone", "news"),
        ("skipped", "news"),
        ("skipped", "archive"),
        ("changed outside", "titles"),
        ("differs", "drift"),
    ]


def test_the_page_names_what_was_refused_where_a_server_was_lost_as_well() -> None:
    news = structs.replace(RESULT.jobs[1], outcome="refused", code=4)
    refused = structs.replace(news, reason="the limit is 0", remedy="allow it")
    page = SUMMARY_FORMS["html"][1](structs.replace(RESULT, jobs=(refused,)), None)
    eyes, _, _ = page.partition('<ul class="jobs"')
    assert "the limit is 0" in eyes


def test_a_batch_that_could_not_begin_is_red_in_each_form() -> None:
    jobs = (JobResult(job="titles"), JobResult(job="news"))
    result = structs.replace(
        RESULT, jobs=jobs, code=1, reason="the disk is full", deliveries=(), missed=()
    )
    for _, render in SUMMARY_FORMS.values():
        text = render(result, None)
        assert "nothing to do" not in text
        assert "the disk is full" in text


def test_warnings_of_a_plan_are_shown() -> None:
    job = structs.replace(RESULT.jobs[0], warnings=("the answer was lost", "x"))
    text = SUMMARY_FORMS["text"][1](structs.replace(RESULT, jobs=(job,)), None)
    assert "2 things were changed outside; 2 warnings: the answer was lost" in " ".join(
        text.split()
    )


def test_a_batch_without_jobs() -> None:
    missed = structs.replace(
        RESULT, outcome="missed", code=4, reason="outside the window", jobs=(), deliveries=()
    )
    assert SUMMARY_FORMS["text"][1](missed, None).splitlines() == [
        "nightly: missed: outside the window",
        "missed: Thu 2026-11-19 03:10 CET",
        "→ to run these jobs again: msauto batch run batch.yml --failed",
    ]


def test_a_month_of_missed_starts_is_one_line() -> None:
    starts = tuple(f"2026-11-{day:02}T02:10:00.000Z" for day in range(1, 20))
    late = structs.replace(RESULT, outcome="ok", code=0, missed=starts, jobs=(), deliveries=())
    assert SUMMARY_FORMS["text"][1](late, None).splitlines()[1:] == [
        "missed: 19 starts from Sun 2026-11-01 03:10 CET to Thu 2026-11-19 03:10 CET"
    ]


def test_after_an_error_of_the_batch_all_its_jobs_are_run_again() -> None:
    why = {"reason": "the disk is full", "remedy": "free some space", "state_dir": "my state"}
    jobs = tuple(JobResult(job=name) for name in "ab")
    more = {"missed": (), "deliveries": (), **why}
    full = structs.replace(RESULT, code=1, jobs=jobs, file="a b.yml", **more)
    assert SUMMARY_FORMS["text"][1](full, None).splitlines()[-2:] == [
        "→ free some space",
        "→ to run these jobs again: msauto batch run 'a b.yml' --state-dir 'my state'",
    ]


@pytest.mark.parametrize(
    "result", [RESULT, BatchResult(run="r", batch="b", file="f", started=STARTED)]
)
def test_the_document_passes_its_schema(result: BatchResult) -> None:
    jsonschema.validate(json.loads(SUMMARY_FORMS["json"][1](result, None)), batch_result_schema())


NOW = datetime(2026, 11, 20, tzinfo=UTC)


def shown(*statuses: JobStatus) -> list[str]:
    return [*show_status(statuses, NOW, 80, colour=False)]


def test_the_status_has_two_lines_a_job_and_names_each_cause() -> None:
    status = JobStatus(
        batch="nightly",
        job="news",
        outcome="failed",
        code=3,
        reason="the whole reason",
        causes=RESULT.jobs[1].causes,
        last_success="2026-11-18T02:12:00.000Z",
        late=True,
        next_start="2026-11-21T02:10:00.000Z",
    )
    assert shown(status) == [
        "nightly  news  failed (3)  39 no connection on bergen, 1 not found on tromso",
        "  last ok Wed 2026-11-18 03:12 CET (too long ago), next Sat 2026-11-21 03:10 CET",
    ]
    freeze = "2026-11-20 00:00 to 2026-11-22 00:00 CET (election)"
    frozen = structs.replace(status, frozen=freeze, causes=(), reason=99 * "x")
    first, _, third = shown(frozen)
    assert (len(first), first[-2:]) == (80, "x…")
    assert third == f"  frozen: {freeze}"
    refused = structs.replace(status, outcome="refused", code=4, reason="the limit is 0")
    assert "  the limit is 0; 39 no connection on bergen, " in shown(refused)[0]


def test_the_status_of_a_batch_that_runs() -> None:
    jobs = (RESULT.jobs[0], JobResult(job="news"), JobResult(job="archive"))
    rows = status_of(
        structs.replace(RESULT, jobs=jobs, outcome="running", code=None),
        None,
        NOW,
        timedelta(days=1),
    )
    assert [each.outcome for each in rows] == ["ok", "running", "waiting"]


def test_a_success_in_the_future_is_late() -> None:
    day = timedelta(days=1)
    for hours, late in ((-25, " (too long ago)"), (-23, ""), (0, ""), (1, " (in the future)")):
        success = JobResult(job="news", last_success=format_time(NOW + timedelta(hours=hours)))
        (row,) = status_of(structs.replace(RESULT, jobs=(success,), earlier=()), None, NOW, day)
        assert row.late == bool(late)
        assert f"CET{late}, next" in shown(row)[1]
