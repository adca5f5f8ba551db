"""The entry point: finds the command, and turns every error into a message and an exit code, in this one place.

Exit codes (the contract, «Commands»): 0 fine · 1 error, nothing written · 2 ``plan --detailed-exitcode`` found
changes · 3 apply ended with something failed, unverified or not as wanted · 4 refused, a person must decide ·
5 locked by another run · 130 interrupted.
"""

from __future__ import annotations

import difflib
import os
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Final

import click

from msauto.cli.early_interrupt import load
from msauto.cli.output import OutputError, ReaderGoneError, colour_on, say
from msauto.cli.signals import handler_given_back
from msauto.errors import LockedError, MsautoError, RefusedError
from msauto.version import __version__

COMMANDS: Final[Mapping[str, str]] = {
    "plan": "Show what would change; writes nothing.",
    "apply": "Make the assets what the playbooks say.",
    "validate": "Find all errors, without a server.",
    "export": "Write what a server holds as playbooks.",
    "show": "Show what a server holds.",
    "history": "List the runs, or tell all about one.",
    "undo": "Take a run back.",
    "vars": "Show the variables of a host, and who wins.",
    "probe": "Learn how a server answers: its dialect.",
    "simulate": "Run a media server to try playbooks on.",
    "demo": "Show it all, in a scratch folder.",
    "schema": "Print a JSON Schema, for editors and CI.",
    "doc": "The reference, in the terminal.",
    "init": "Make a new automation repository.",
    "completion": "Print the completion script of a shell.",
}
"""In the order that a newcomer meets them, with their short help; each is the module ``msauto.cli.<name>``, which has a
``command``. (Who asks for all short helps need not load them all.)"""


class Commands(click.Group):
    """Loads a command's module only when it is called, so that ``msauto --help`` answers at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the contract."""
        del ctx
        return list(COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; one that is misspelled is told with the nearest there is."""
        near = difflib.get_close_matches(args[0], COMMANDS, n=1)
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if not near:
                raise
            raise click.UsageError(f"{error.message.rstrip('.')}: did you mean {near[0]!r}?", ctx) from None

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the one command that was asked for."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = load(f"msauto.cli.commands.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without loading them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


_EPILOG = """\b
New here?   msauto demo        the whole story, nothing to set up
            msauto init DIR    a repository to begin with
            msauto doc         the reference
\b
Exit codes: 0 fine, 1 error and nothing written, 2 plan --detailed-exitcode
found changes, 3 applied but not all is as wanted, 4 refused: a person must
decide, 5 locked by another run, 130 interrupted.
"""


@click.group(
    cls=Commands,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name="msauto")
def group() -> None:
    """Say in YAML what state the assets of a media server should have; look at the difference; let it be so."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; never raises on bad input, a bad server or Ctrl-C."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _open_closed_streams()
    with handler_given_back(signal.SIG_IGN if argv is None else None):
        return _exit_code(arguments)


def _open_closed_streams() -> None:
    """Give a closed stdin, stdout or stderr (``>&-``) somewhere to go, before a file of ours gets its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - for as long as we live


def _exit_code(arguments: list[str]) -> int:
    try:
        return _run(arguments)
    except (KeyboardInterrupt, click.exceptions.Abort) as stop:
        words = str(stop.__cause__ or "") if isinstance(stop, click.exceptions.Abort) else str(stop)  # click wraps it
        say(f"Interrupted: {words}" if words else "Interrupted.")
        return 130
    except ReaderGoneError:
        return 0  # nothing more can be said, and it is no failure of ours
    except click.ClickException as error:
        if _wants_document(arguments) and not isinstance(error, click.exceptions.NoArgsIsHelpError):
            _give_problems(error.format_message(), "see --help")
        say(_usage(error))
        return 1
    except MsautoError as error:
        if _wants_document(arguments) and not error.shown:
            _give_problems(error)
        return _tell(error, no_color="--no-color" in arguments)
    except Exception as error:  # noqa: BLE001 - the last line of defence: a bug of ours must not look like one of theirs
        return _tell_bug(error)


_DOCUMENTS: Final = frozenset({"plan", "apply", "undo"})


def _wants_document(arguments: list[str]) -> bool:
    """Tell whether a program reads stdout: the JSON of a plan, also where there is none, for it tells why."""
    given = [after for flag, after in pairwise([*arguments, ""]) if flag == "--format"]
    given += [each.removeprefix("--format=") for each in arguments if each.startswith("--format=")]
    return arguments[:1] != [] and arguments[0] in _DOCUMENTS and given[-1:] == ["json"]


def _give_problems(error: MsautoError | str, remedy: str = "") -> None:
    from msauto.cli.runs.planning import give_problems

    with suppress(OutputError):  # the error itself is told on stderr
        give_problems(error, remedy)


def _run(arguments: list[str]) -> int:
    code = group.main(args=arguments, prog_name="msauto", standalone_mode=False)
    sys.stdout.flush()
    return code if isinstance(code, int) else 0


def _usage(error: click.ClickException) -> str:
    """Return what click says: the help where nothing was asked for, else what is wrong and where the help is."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return error.format_message()
    message = f"Error: {error.format_message()}"
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"{message}\n  → see {context.command_path} --help" if context else message


def _tell(error: MsautoError, *, no_color: bool) -> int:
    from msauto.report.text import render_error

    say(render_error(error, colour=colour_on(sys.stderr, no_color=no_color)))
    if isinstance(error, RefusedError):
        return 4
    return 5 if isinstance(error, LockedError) else 1


def _tell_bug(error: Exception) -> int:
    if os.environ.get("MSAUTO_DEBUG"):
        traceback.print_exc()
    say(
        f"Error: msauto itself failed: {type(error).__name__}: {error}\n"
        "  → this is a bug of msauto: report it with the output of the same command under MSAUTO_DEBUG=1"
    )
    return 1
