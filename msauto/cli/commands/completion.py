"""``msauto completion SHELL``: the script that lets a shell complete commands, flags and files; click's own."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from msauto.cli.output import give

_SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "fish": FishComplete, "zsh": ZshComplete}


@click.command("completion", short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(sorted(_SHELLS)))
def command(*, shell: str) -> None:
    """Print the completion script of a shell: eval "$(msauto completion bash)" in ~/.bashrc."""
    from msauto.cli.main import group

    complete = _SHELLS[shell](group, {}, "msauto", "_MSAUTO_COMPLETE")
    # Not source(): that starts a bash only to ask for its version.
    give(complete.source_template % complete.source_vars())
