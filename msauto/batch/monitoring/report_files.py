"""The dated report files of a batch."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from msauto.batch.batch_file import BatchFile
from msauto.batch.batch_result import BatchResult
from msauto.batch.batch_run import moment_of
from msauto.batch.batch_summary import SUMMARY_FORMS
from msauto.file_writing import write_file
from msauto.playbook.input_files import beside
from msauto.playbook.schema.batch import ReportArgs, ReportFormat

REPORT_MODE: Final = 0o640


def report_path(batch: BatchFile, args: ReportArgs, result: BatchResult, form: ReportFormat) -> Path:
    """Return the path of the report file of a run; its date is in the time zone of the schedule."""
    name = f"{batch.name}-{_started(batch, result):%Y-%m-%dT%H%M%S}.{SUMMARY_FORMS[form][0]}"
    return Path(beside(batch.file, args.dir)) / name


def write_report(batch: BatchFile, args: ReportArgs, result: BatchResult, form: ReportFormat) -> None:
    """Write the summary in a form, and remove files of this form older than ``keep_days``; raises ``OSError``."""
    path = report_path(batch, args, result, form)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, [SUMMARY_FORMS[form][1](result, batch.schedule.timezone)], REPORT_MODE)
    if args.keep_days is not None:
        oldest = f"{_started(batch, result).date() - timedelta(days=args.keep_days)}"
        name = re.compile(rf"{re.escape(batch.name)}-(\d{{4}}-\d\d-\d\d)T\d{{6}}{re.escape(path.suffix)}")
        for each in path.parent.iterdir():
            if (found := name.fullmatch(each.name)) and found[1] < oldest:
                each.unlink(missing_ok=True)


def _started(batch: BatchFile, result: BatchResult) -> datetime:
    return moment_of(result.started).astimezone(batch.schedule.zone)
