"""``msauto validate``: all errors of playbooks and inventories, without a server."""

from __future__ import annotations

import sys

import click

from msauto.cli.flags import Flags, formats, shared_flags
from msauto.cli.output import colour_on, give, say
from msauto.playbook.validation.validate import validate
from msauto.report.json import dump, problems_json
from msauto.report.sarif import problems_sarif
from msauto.report.text import render_problems


@formats("text", "json", "sarif")
@click.command("validate", short_help="Find all errors, without a server.")
@click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="PATH...")
@shared_flags
def command(*, flags: Flags, paths: tuple[str, ...]) -> int:
    """Find every error of playbooks and inventories that can be found without a server; warnings fail nothing."""
    problems = validate(paths, flags.options)
    if flags.format == "json":
        give(dump(problems_json(problems)))
    elif flags.format == "sarif":
        give(dump(problems_sarif(problems)))
    elif problems:
        give(render_problems(problems, colour=colour_on(sys.stdout, no_color=flags.no_color)))
    else:
        say("No errors found.")
    return 1 if any(problem.level == "error" for problem in problems) else 0
