"""``msauto validate``: all errors of playbooks and inventories, without a server."""

from __future__ import annotations

import sys

import click

from msauto.cli.flags import Flags, shared_flags_of
from msauto.cli.output import print_message, print_result, use_colour
from msauto.exit_codes import ERROR, OK
from msauto.playbook.validate import validate
from msauto.report.ci_forms import errors_first, problems_gitlab, render_github
from msauto.report.json import dump, problems_json
from msauto.report.text import render_problems


@click.command("validate")
@click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="PATH...")
@shared_flags_of("text", "json", "github", "gitlab")
def command(*, flags: Flags, paths: tuple[str, ...]) -> int:
    """Find all errors of playbooks and inventories that need no server; warnings do not change the exit code."""
    problems = validate(paths, flags.inputs.resolving)
    if flags.format == "json":
        print_result(dump(problems_json(problems)))
    elif flags.format == "gitlab":
        print_result(dump(problems_gitlab(errors_first(problems))))
    elif flags.format == "github" and problems:
        print_result(render_github(problems))
    elif problems:
        print_result(render_problems(problems, colour=use_colour(sys.stdout, no_color=flags.no_color)))
    else:
        print_message("No errors found.")
    return ERROR if any(problem.level == "error" for problem in problems) else OK
