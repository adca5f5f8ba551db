"""``msauto validate``: all errors of playbooks and inventories, without a server."""

from __future__ import annotations

import click

from msauto.cli.flags import SERVERS, TASKS, Flags, shared_flags_of
from msauto.cli.help import HelpCommand
from msauto.cli.interrupts import importing
from msauto.cli.output import print_message, print_problems


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
    if not problems and flags.format in {"text", "github"}:
        print_message("No errors found.")
    return print_problems(problems, flags.format, no_color=flags.no_color)
