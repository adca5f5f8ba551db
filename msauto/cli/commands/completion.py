"""``msauto completion SHELL``: the script that completes commands, flags, hosts, tags, runs and titles in a shell."""

from __future__ import annotations

import click

from msauto.cli.output import print_result
from msauto.cli.shell_completion.command_index import light_group
from msauto.cli.shell_completion.complete import SHELLS, script


@click.command("completion")
@click.argument("shell", type=click.Choice(sorted(SHELLS)))
def command(*, shell: str) -> None:
    """Print the completion script of a shell: eval "$(msauto completion bash)" in ~/.bashrc."""
    from msauto.cli.main import group

    light_group(group)  # remembers the commands, so that the first answer comes soon as well
    print_result(script(shell, group))
