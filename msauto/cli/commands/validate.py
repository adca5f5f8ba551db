"""``msauto validate``: all errors of playbooks and inventories, without a server."""

from __future__ import annotations

import sys

import click

from msauto.cli.flags import SERVERS, TASKS, Flags, shared_flags_of
from msauto.cli.help import HelpCommand
from msauto.cli.interrupts import importing
from msauto.cli.output import print_message, print_result, terminal_width, use_colour
from msauto.exit_codes import ERROR, OK


@click.command("validate", cls=HelpCommand)
@click.argument("paths", nargs=-1, type=click.Path(), metavar="[PATH]...")
@shared_flags_of("text", "json", "github", "gitlab", uses=(*SERVERS, *TASKS))
def command(*, flags: Flags, paths: tuple[str, ...]) -> int:
    """Find all errors of playbooks and inventories that need no server; warnings do not change the exit code.

    Without a PATH: `playbook` of msauto.toml, or playbooks/site.yml.
    """
    with importing():
        from msauto.playbook.validate import validate

    problems = validate(paths, flags.inputs.resolving)
    if flags.format == "json":
        from msauto.report.json import dump, problems_json

        print_result(dump(problems_json(problems)))
    elif flags.format == "gitlab":
        from msauto.report.ci_forms import problems_gitlab
        from msauto.report.json import dump

        print_result(dump(problems_gitlab(problems)))
    elif flags.format == "github" and problems:
        from msauto.report.ci_forms import render_github

        print_result(render_github(problems))
    elif problems:
        from msauto.report.text import render_problems

        colour = use_colour(sys.stdout, no_color=flags.no_color)
        print_result(render_problems(problems, colour=colour, width=terminal_width(sys.stdout)))
    else:
        print_message("No errors found.")
    return ERROR if any(problem.level == "error" for problem in problems) else OK
