"""``msauto validate``: all errors of playbooks and inventories, without a server."""

from __future__ import annotations

import sys

import click

from msauto.cli.flags import Flags, shared_flags
from msauto.cli.output import colour_on, give, say
from msauto.playbook.resolve import validate
from msauto.report.json import dump, problems_json
from msauto.report.text import render_problems


@click.command("validate")
@click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="PATH...")
@shared_flags
def command(*, flags: Flags, paths: tuple[str, ...]) -> int:
    """Find every error of playbooks and inventories that can be found without a server."""
    problems = validate(paths, flags.options)
    if flags.format == "json":
        give(dump(problems_json(problems)))
    elif problems:
        give(render_problems(problems, colour=colour_on(sys.stdout, no_color=flags.no_color)))
    else:
        say("No errors found.")
    return 1 if problems else 0
