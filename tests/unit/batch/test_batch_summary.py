"""The summary of a batch in each form, as the golden files show it; ``MSAUTO_WRITE_CASES=1`` writes them."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import pytest
from lxml import etree
from msgspec import structs

from msauto.batch.batch_result import (
    BatchResult,
    DifferingTarget,
    JobResult,
    JobStatus,
    SentMessage,
    batch_result_schema,
    status_of,
    status_row,
)
from msauto.batch.summary import SUMMARY_FORMS
from msauto.model.result import format_time
from tests.unit.report.made_plans import without_assets

GOLDEN = Path(__file__).parent / "golden"
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
            summary={"changed": 4, "unchanged": 20},
            attempts=1,
            started=STARTED,
            ended=ENDED,
        ),
        JobResult(
            job="news",
            outcome="failed",
            code=3,
            reason="EP001: failed: the server rejected `it` & more",
            attempts=2,
            runs=("20261120T021002Z-ab12",),
            started=STARTED,
            ended=ENDED,
        ),
        JobResult(job="archive", outcome="skipped", reason="needs news, which ended with 'failed'"),
        JobResult(job="drift", outcome="ok", code=0, attempts=1, drift=(DRIFT,), started=STARTED, ended=ENDED),
        JobResult(job="late", code=4, reason="the window 02:00-05:00 has closed"),
    ),
    deliveries=(SentMessage(kind="notice", to="json://…", events=("failed",), error="no answer within 8.0 s"),),
    drift_changed=True,
    msauto="0.1.0",
    user="msauto",
    host="automation",
)


@pytest.mark.parametrize("form", SUMMARY_FORMS)
def test_forms(form: str) -> None:
    ending, render = SUMMARY_FORMS[form]
    path, text = GOLDEN / f"summary.{ending}", without_assets(render(RESULT, "Europe/Oslo", None))
    if os.environ.get("MSAUTO_WRITE_CASES"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_a_batch_that_could_not_begin_is_red_in_each_form() -> None:
    jobs = (JobResult(job="titles"), JobResult(job="news"))
    result = structs.replace(RESULT, jobs=jobs, code=1, reason="the disk is full", deliveries=(), missed=())
    for _, render in SUMMARY_FORMS.values():
        text = render(result, "Europe/Oslo", None)
        assert "nothing to do" not in text
        assert "the disk is full" in text
    suite = etree.fromstring(SUMMARY_FORMS["junit"][1](result, "Europe/Oslo", None).encode())
    assert (suite.get("tests"), suite.get("failures")) == ("2", "2")


def test_warnings_of_a_plan_are_shown() -> None:
    job = structs.replace(RESULT.jobs[0], warnings=("the answer was lost", "x"))
    text = SUMMARY_FORMS["text"][1](structs.replace(RESULT, jobs=(job,)), "Europe/Oslo", None)
    assert "4 changed, 20 unchanged; 2 warnings: the answer was lost" in text


def test_a_batch_without_jobs() -> None:
    missed = structs.replace(RESULT, outcome="missed", code=4, reason="outside the window", jobs=(), deliveries=())
    assert SUMMARY_FORMS["text"][1](missed, "Europe/Oslo", None).splitlines() == [
        "nightly: missed: outside the window",
        "missed: Thu 2026-11-19 03:10 CET",
    ]
    suite = etree.fromstring(SUMMARY_FORMS["junit"][1](missed, "UTC", None).encode())
    assert (suite.get("tests"), suite.get("failures"), suite[0].get("name")) == ("1", "1", "nightly")


@pytest.mark.parametrize("result", [RESULT, BatchResult(run="r", batch="b", file="f", started="x")])
def test_the_document_passes_its_schema(result: BatchResult) -> None:
    jsonschema.validate(json.loads(SUMMARY_FORMS["json"][1](result, "UTC", None)), batch_result_schema())


def test_a_row_of_the_status() -> None:
    status = JobStatus(
        batch="nightly",
        job="news",
        outcome="failed",
        code=3,
        reason="x",
        last_success="2026-11-18T02:12:00.000Z",
        late=True,
        next_start="2026-11-21T02:10:00.000Z",
        frozen="2026-11-20 00:00 to 2026-11-22 00:00 CET (election)",
    )
    assert " | ".join(status_row(status, "Europe/Oslo", datetime(2026, 11, 20, tzinfo=UTC))) == (
        "nightly | news | failed (3) | Wed 2026-11-18 03:12 CET (too long ago) | Sat 2026-11-21 03:10 CET"
        " | 2026-11-20 00:00 to 2026-11-22 00:00 CET (election)"
    )


def test_a_success_in_the_future_is_late() -> None:
    now, day = datetime(2026, 11, 20, tzinfo=UTC), timedelta(days=1)
    for hours, late in ((-25, " (too long ago)"), (-23, ""), (0, ""), (1, " (in the future)")):
        success = JobResult(job="news", last_success=format_time(now + timedelta(hours=hours)))
        (row,) = status_of(structs.replace(RESULT, jobs=(success,), earlier=()), None, now, day)
        assert row.late == bool(late)
        assert status_row(row, "UTC", now)[3].partition(" UTC")[2] == late
