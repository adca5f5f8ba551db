"""The dated report files of a batch, and other files that are written completely or not at all."""

from __future__ import annotations

import os
import re
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

from msauto.batch.batch_file import BatchFile
from msauto.batch.batch_result import BatchResult
from msauto.batch.batch_run import moment_of
from msauto.batch.batch_summary import SUMMARY_FORMS
from msauto.playbook.input_files import beside
from msauto.playbook.schema.batch import ReportArgs, ReportFormat


def report_path(batch: BatchFile, args: ReportArgs, result: BatchResult, form: ReportFormat) -> Path:
    """Return the path of the report file of a run; its date is in the time zone of the schedule."""
    name = f"{batch.name}-{_started(batch, result):%Y-%m-%dT%H%M%S}.{SUMMARY_FORMS[form][0]}"
    return Path(beside(batch.file, args.dir)) / name


def write_report(batch: BatchFile, args: ReportArgs, result: BatchResult, form: ReportFormat) -> None:
    """Write the summary in a form, and remove files of this form older than ``keep_days``; raises ``OSError``."""
    path = report_path(batch, args, result, form)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, SUMMARY_FORMS[form][1](result, batch.schedule.timezone))
    if args.keep_days is not None:
        oldest = f"{_started(batch, result).date() - timedelta(days=args.keep_days)}"
        name = re.compile(rf"{re.escape(batch.name)}-(\d{{4}}-\d\d-\d\d)T\d{{6}}{re.escape(path.suffix)}")
        for each in path.parent.iterdir():
            if (found := name.fullmatch(each.name)) and found[1] < oldest:
                each.unlink(missing_ok=True)


def write_file(path: Path, text: str, mode: int = 0o640) -> None:
    """Write a file, completely or not at all; raises ``OSError``."""
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")  # a pipe, for example: nothing to replace
        return
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _started(batch: BatchFile, result: BatchResult) -> datetime:
    return moment_of(result.started).astimezone(batch.schedule.zone)
