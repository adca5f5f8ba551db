"""``msauto completion SHELL``: the script of click that completes commands, flags and files in a shell."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from msauto.cli.output import print_result

_SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "fish": FishComplete, "zsh": ZshComplete}


@click.command("completion")
@click.argument("shell", type=click.Choice(sorted(_SHELLS)))
def command(*, shell: str) -> None:
    """Print the completion script of a shell: eval "$(msauto completion bash)" in ~/.bashrc."""
    from msauto.cli.main import group

    complete = _SHELLS[shell](group, {}, "msauto", "_MSAUTO_COMPLETE")
    # source() would start a bash only to find its version.
    print_result(complete.source_template % complete.source_vars())
