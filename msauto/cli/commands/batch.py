"""``msauto batch``: scheduled jobs from a ``batch.yml``."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from msauto.batch.batch_file import BatchFile, load_batch
from msauto.batch.batch_summary import render_json, render_text
from msauto.batch.check import CheckContext, check_batch
from msauto.cli.exit_codes import ERROR, INCOMPLETE, OK
from msauto.cli.flags import no_color_flag, state_folder
from msauto.cli.output import OutputError, ReaderGoneError, print_message, print_result, use_colour
from msauto.cli.runs.batch_job import BatchSignals
from msauto.cli.runs.batch_session import BatchSession, JobChoice, open_batch
from msauto.errors import InputError
from msauto.report.json import dump, problems_json
from msauto.report.sentences import plural
from msauto.report.text import render_problems


def _parse_report(context: click.Context, option: click.Parameter, text: str | None) -> Path | None:
    if text is None:
        return None
    form, _, path = text.partition("=")
    if form != "junit" or not path:
        raise click.BadParameter(f"{text!r} is not junit=FILE", ctx=context, param=option)
    return Path(path)


@click.group("batch")
def command() -> None:
    """Run scheduled jobs, each isolated, and check them."""


@command.command("run")
@click.argument("file", type=click.Path(), metavar="FILE")
@click.argument("jobs", nargs=-1, metavar="[JOB...]")
@click.option("--failed", is_flag=True, help="Run only jobs that failed, were skipped or were not attempted.")
@click.option("--check", is_flag=True, help="Plan only: write nothing anywhere.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Form of the summary.")
@click.option("--report", callback=_parse_report, metavar="junit=FILE", help="Write the summary to FILE as well.")
@click.option("--state-dir", metavar="DIR", help="Folder of the ledger.")
@no_color_flag
def run(
    *,
    file: str,
    jobs: tuple[str, ...],
    failed: bool,
    check: bool,
    form: str,
    report: Path | None,
    state_dir: str | None,
    no_color: bool,
) -> int:
    """Run the jobs in order, each isolated, within the limits and the window; show a summary.

    With JOBs or --failed only these. A job is applied as with `msauto apply --yes`.
    """
    batch = open_batch(file, state_dir, check=check)
    signals = BatchSignals()
    with signals.noted():
        session = BatchSession(batch, JobChoice(jobs, failed, check), state_dir, signals, report=report)
        result = session.run()
    zone = batch.schedule.timezone
    colour = use_colour(sys.stdout, no_color=no_color)
    try:
        print_result(render_json(result, zone) if form == "json" else render_text(result, zone, colour=colour))
    except OutputError as error:
        if not isinstance(error, ReaderGoneError):
            print_message(f"Error: {error.message}\n  → see what was done: msauto history {result.run}")
            return result.code or INCOMPLETE
    return result.code if result.code is not None else ERROR


@command.command("check")
@click.argument("file", type=click.Path(), metavar="FILE")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Form of the result.")
@click.option("--state-dir", metavar="DIR", help="Folder of the ledger.")
@no_color_flag
def check(*, file: str, form: str, state_dir: str | None, no_color: bool) -> int:
    """Find all errors of a batch file and its jobs that need no server; warnings do not change the exit code."""
    now = datetime.now(UTC)
    batch: BatchFile | None = None
    try:
        batch = load_batch(file)
        context = CheckContext(dict(os.environ), now, lambda settings: state_folder(state_dir, settings))
        problems = check_batch(batch, context)
    except InputError as error:
        problems = list(error.problems)
    if form == "json":
        print_result(dump(problems_json(problems)))
    elif problems:
        print_result(render_problems(problems, colour=use_colour(sys.stdout, no_color=no_color)))
    failed = any(problem.level == "error" for problem in problems)
    if batch is not None and not failed:
        print_message(_next_start(batch, now))
    return ERROR if failed else OK


def _next_start(batch: BatchFile, now: datetime) -> str:
    start = batch.schedule.next_start(now).astimezone(batch.schedule.zone)
    return (
        f"No errors found. {batch.name} starts {plural(len(batch.jobs), 'job')} next on {start:%a %Y-%m-%d %H:%M %Z}."
    )
