"""The scripts of the shells, and the answers to them (``_MSAUTO_COMPLETE=bash_complete msauto``)."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from msauto.cli.shell_completion.command_index import light_group

VARIABLE: Final = "_MSAUTO_COMPLETE"
SHELLS: Final[dict[str, type[ShellComplete]]] = {"bash": BashComplete, "fish": FishComplete, "zsh": ZshComplete}
_CHANGED: Final = {
    # A title holds blanks, which bash must not take for the ends of words.
    "bash": ("COMPREPLY+=($value)", 'printf -v value %%q "$value"; COMPREPLY+=("$value")'),
    # A title may hold commas.
    "fish": ('string split ","', 'string split --max 1 ","'),
}


def script(shell: str, commands: click.Group) -> str:
    """Return the script of a shell."""
    complete = SHELLS[shell](commands, {}, "msauto", VARIABLE)
    # source() would start a bash only to find its version.
    return complete.source_template.replace(*_CHANGED.get(shell, ("", ""))) % complete.source_vars()


def answer(instruction: str, commands: click.Group) -> str | None:
    """Return what ``bash_complete`` or ``bash_source`` ask for; ``None`` for anything else."""
    shell, _, what = instruction.partition("_")
    if shell not in SHELLS or what not in {"complete", "source"}:
        return None
    if what == "source":
        return script(shell, commands)
    return SHELLS[shell](light_group(commands), {}, "msauto", VARIABLE).complete()
