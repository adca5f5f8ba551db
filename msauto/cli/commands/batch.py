"""``msauto batch``: scheduled jobs from a ``batch.yml``."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime

import click

from msauto.batch.batch_file import BatchFile, load_batch
from msauto.batch.check import CheckContext, check_batch
from msauto.cli.exit_codes import ERROR, OK
from msauto.cli.flags import no_color_flag, state_folder
from msauto.cli.output import print_message, print_result, use_colour
from msauto.errors import InputError
from msauto.report.json import dump, problems_json
from msauto.report.sentences import plural
from msauto.report.text import render_problems


@click.group("batch")
def command() -> None:
    """Run scheduled jobs, each isolated, and check them."""


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
