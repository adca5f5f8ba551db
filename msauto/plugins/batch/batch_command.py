"""``msauto batch``: scheduled jobs from a ``batch.yml``."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, Final, TextIO

import click
from msgspec import structs

from msauto.api.inputs import ledger_place
from msauto.cli.flags import Display, flag, form_flag, layout_of, no_color_flag, option, parse_age
from msauto.cli.help import HelpGroup
from msauto.cli.output import (
    OutputError,
    ReaderGoneError,
    print_message,
    print_problems,
    print_result,
    report_missing_ledger,
    terminal_width,
    use_colour,
)
from msauto.codec import to_json
from msauto.errors import InputError, MsautoError, nearest
from msauto.exit_codes import ERROR, INCOMPLETE, OK
from msauto.ledger.ledger import Ledger
from msauto.playbook.settings import load_settings
from msauto.plugins.batch.batch_file import BatchFile, check_batch, load_batch, read_batch
from msauto.plugins.batch.batch_job import BatchLog, BatchSignals
from msauto.plugins.batch.batch_result import (
    JobStatus,
    id_of,
    last_result,
    show_status,
    status_of,
)
from msauto.plugins.batch.batch_run import BatchSession, JobChoice, open_batch
from msauto.plugins.batch.monitoring import Monitor
from msauto.plugins.batch.summary import render_json, render_text
from msauto.report.json import dump
from msauto.report.texts import plural

_batch_file = click.argument("file", type=click.Path(), metavar="FILE")


@click.group("batch", cls=HelpGroup)
def command() -> None:
    """Run scheduled jobs, each isolated, and check them."""


@command.command("run")
@_batch_file
@click.argument("names", nargs=-1, metavar="[JOB...]")
@option("--failed", "Run only jobs that failed, were skipped or were not attempted.")
@option("--now", "Also outside the window.")
@option("--check", "Plan only: write nothing anywhere.")
@form_flag
@flag("state_dir")
@flag("on")
@flag("secret_commands")
@no_color_flag
def run(
    *,
    file: str,
    names: tuple[str, ...],
    failed: bool,
    now: bool,
    check: bool,
    form: str,
    state_dir: str | None,
    no_color: bool,
    **given: Any,
) -> int:
    """Run the jobs in order, each isolated, within the limits and the window; show a summary.

    With JOBs or --failed only these. A job is applied as with `msauto apply --yes`.
    """
    chosen = JobChoice(names, failed, check)
    env = dict(os.environ)
    stderr = sys.stderr
    if is_journal(stderr, env):
        stderr = JournalStream(stderr)
    with redirect_stderr(stderr):
        batch = open_batch(file, state_dir, print_message, check=check)
        if now:
            batch = structs.replace(batch, window=None)
        job_names = [job.name for job in batch.jobs]
        for name in names:
            if name not in job_names:
                raise MsautoError(
                    f"job {name!r} not found in {file}", remedy=nearest(name, job_names)
                )
        layout = layout_of(Display(no_color=True), stream=sys.stderr)
        log = BatchLog(print_message, partial(print_message, rendered=True), layout)
        signals = BatchSignals()
        with signals.noted():
            session = BatchSession(batch, chosen, state_dir, signals, log, env=env, given=given)
            result = session.run()
    if form == "json":
        summary = render_json(result)
    else:
        layout = layout_of(Display(no_color=no_color))
        summary = render_text(result, session.ledger, layout=layout)
    try:
        print_result(summary)
    except OutputError as error:
        if not isinstance(error, ReaderGoneError):
            print_message(
                f"Error: {error.message}\n  → see what was done: msauto history {result.run}"
            )
            return result.code or INCOMPLETE
    return ERROR if result.code is None else result.code


@command.command("check")
@_batch_file
@form_flag
@option("--notify", "Send a test to every address.")
@flag("state_dir")
@no_color_flag
def check(*, file: str, form: str, notify: bool, state_dir: str | None, no_color: bool) -> int:
    """Find all errors of a batch file and its jobs that need no server; warnings do not change the exit code."""
    now = datetime.now(UTC)
    batch: BatchFile | None = None
    try:
        read = read_batch(file)
        batch, env = read.batch, dict(os.environ)
        problems = check_batch(read, env, now, state_dir)
        if notify and batch is not None:
            problems += Monitor(batch, env).unreachable_addresses()
    except InputError as error:
        problems = list(error.problems)
    code = print_problems(problems, form, no_color=no_color)
    if batch is not None and code == OK:
        start = batch.schedule.next_start(now).astimezone(batch.schedule.zone)
        starts = f"starts {plural(len(batch.jobs), 'job')} next on {start:%a %Y-%m-%d %H:%M %Z}"
        print_message(f"No errors found. {batch.name} {starts}.")
    return code


@command.command("status")
@click.argument("file", type=click.Path(), metavar="[FILE]", required=False)
@option("--max-age AGE", "Such as 26h, the default, or 7d.", callback=parse_age, default="26h")
@form_flag
@flag("state_dir")
@no_color_flag
def status(
    *, file: str | None, max_age: timedelta, form: str, state_dir: str | None, no_color: bool
) -> int:
    """Show the last outcome and why, the last success and the next start of each job; 3 if a success is older than AGE.

    Without FILE, show all batches of the ledger; 3 if it contains no batch.
    """
    now = datetime.now(UTC)
    batch = None if file is None else load_batch(file)
    place = ledger_place(state_dir, load_settings(None, Path(file or ".").parent))
    with Ledger.open(place, readonly=True) as ledger:
        rows = _statuses(ledger, batch, now, max_age)
    if batch is not None and state_dir is not None and not Ledger.exists(place):
        report_missing_ledger(state_dir)
    if form == "json":
        print_result(dump([to_json(row) for row in rows]))
    elif rows:
        colour = use_colour(sys.stdout, no_color=no_color)
        lines = show_status(rows, now, terminal_width(sys.stdout), colour=colour)
        print_result(f"{line}\n" for line in lines)
    else:
        missing = "" if Ledger.exists(place) else ", which does not exist"
        print_message(f"No batches in {ledger.name}{missing}.")
    is_late = any(row.late for row in rows)
    return INCOMPLETE if is_late or not rows else OK


def _statuses(
    ledger: Ledger, batch: BatchFile | None, now: datetime, max_age: timedelta
) -> list[JobStatus]:
    """Return the status of each job of a batch; without one, of those of all batches of the ledger."""
    if batch is not None:
        return list(status_of(last_result(ledger, batch.id), batch, now, max_age))
    rows: list[JobStatus] = []
    for known in dict.fromkeys(id_of(summary) for summary, _ in ledger.batches()):
        rows += status_of(last_result(ledger, known), None, now, max_age)
    return rows


# The journal of systemd -----------------------------------------------------------------------------------------------

_PRIORITIES: Final = {"Error": 3, "Warning": 4, "Refused": 4}
_INFO: Final = 6
_PROBLEMS: Final = (" problem.\n", " problems.\n")  # the end of a list of errors


def is_journal(stream: TextIO, env: Mapping[str, str]) -> bool:
    """Return whether a stream goes to the journal of systemd."""
    with suppress(OSError, ValueError):
        status = os.fstat(stream.fileno())
        return env.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"
    return False


class JournalStream(StringIO):
    """Writes each line to the journal with the priority of its message: 3 for an error, 4 for a warning, else 6."""

    def __init__(self, journal: TextIO) -> None:
        super().__init__()
        self._journal = journal
        self._in_line = False

    def write(self, text: str) -> int:
        """Write one message, or a part of the result of a job; the end of a line may follow."""
        head, _, _ = text.partition(":")
        if text.endswith(_PROBLEMS):
            head = "Error"
        mark = f"<{_PRIORITIES.get(head, _INFO)}>"
        if text:
            begin = "" if self._in_line else mark
            self._journal.write(begin + re.sub(r"\n(?!\Z)", f"\n{mark}", text))
            self._in_line = not text.endswith("\n")
        return len(text)

    def flush(self) -> None:
        """Write what is buffered."""
        self._journal.flush()
