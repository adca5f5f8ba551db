"""The entry point: finds the command, and turns every error into a message and an exit code."""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain, pairwise
from pathlib import Path
from typing import Final

import click

from msauto import sockets
from msauto.cli.help import HelpGroup
from msauto.cli.interrupts import importing, restored_handler
from msauto.cli.output import (
    OutputError,
    ReaderGoneError,
    print_message,
    print_result,
    terminal_width,
    use_colour,
)
from msauto.errors import MsautoError, bug_text, did_you_mean, exit_code_of
from msauto.exit_codes import ERROR, INTERRUPTED, OK
from msauto.version import __version__

SECTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "Plan and apply": {
        "plan": "Show what would change.",
        "apply": "Bring the assets to the desired state.",
        "validate": "Find errors without a server.",
        "show": "Show live state.",
        "export": "Write live state as playbooks.",
    },
    "Past runs": {
        "history": "List the runs, or show one.",
        "report": "Show a past run again, in any form.",
        "undo": "Undo a run.",
        "state": "Check or copy the ledger.",
    },
    "Every night": {},
    "Set up": {
        "init": "Create an automation repository.",
        "vars": "Show the variables of a host and their precedence.",
        "schema": "Print a JSON Schema, for editors and CI.",
        "completion": "Print the completion script of a shell.",
    },
    "Try and learn": {
        "doc": "Show the reference.",
    },
}
"""The commands of the kernel in the order of the help, with their short help; those of plugins follow in their section.

Each is ``msauto.cli.commands.<name>.command``. A new command is a module with a ``command``, and its row here.
"""
COMMANDS: Final = {
    name: words for commands in SECTIONS.values() for name, words in commands.items()
}


class Commands(HelpGroup):
    """Loads the module of a command only when it is called, so that ``msauto --help`` is fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the help."""
        rows = chain.from_iterable(self.sections(ctx).values())
        return [name for name, _ in rows]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command, of the kernel or of a plugin."""
        del ctx
        if cmd_name in COMMANDS:
            place, short_help = f"msauto.cli.commands.{cmd_name}:command", COMMANDS[cmd_name]
        else:
            brought: sockets.PluginCommand | None = sockets.place_of("commands", cmd_name)
            if brought is None:
                if sockets.home_of("commands", cmd_name):
                    raise sockets.missing("commands", cmd_name)
                return None
            place, short_help = brought.place, brought.short_help
        with importing():
            command: click.Command = sockets.load_place(place)
        command.short_help = short_help
        return command

    def sections(self, ctx: click.Context) -> Mapping[str, Sequence[tuple[str, str]]]:
        """Return the list of commands without loading them."""
        del ctx
        listed = {section: [*commands.items()] for section, commands in SECTIONS.items()}
        for name, brought in sockets.names_of("commands").items():
            listed.setdefault(brought.section, []).append((name, brought.short_help))
        return {section: commands for section, commands in listed.items() if commands}


_EPILOG = """\b
New here?   msauto demo        a complete example, nothing to set up
            msauto init        a repository to begin with
            msauto doc         the reference

\b
Exit codes: 0 fine, 1 error and nothing written, 2 plan --detailed-exitcode
found changes, 3 applied but not everything is as desired, 4 refused: you
must decide, 5 locked by another run, 130 interrupted.
"""


@click.group(
    cls=Commands,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name="msauto")
def group() -> None:
    """Declare the desired state of the assets of media servers in YAML, review the plan, and apply it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; never raises on bad input, a bad server or Ctrl-C."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    # They would be searched for, and see secrets.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # Most objects of a command stay: looking at them again takes longest.
    gc.set_threshold(50_000, 20, 100)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed (``>&-``): no file of ours may get its number
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - open until the exit
    if os.environ.get("_MSAUTO_COMPLETE"):
        return _complete(os.environ["_MSAUTO_COMPLETE"])
    final_handler = signal.SIG_IGN if argv is None else None
    with restored_handler(final_handler):
        return _exit_code(arguments)


def _complete(instruction: str) -> int:
    """Answer a shell that completes; an error must not disturb its command line."""
    with suppress(Exception):
        from msauto.cli.commands.completion import answer

        found = answer(instruction, group)
        if found is not None:
            click.echo(found)
            return OK
    return ERROR


def _exit_code(arguments: list[str]) -> int:
    no_color = "--no-color" in arguments
    try:
        _check_dashes(arguments)
        colour = use_colour(sys.stdout, no_color=no_color)
        code = group.main(args=arguments, prog_name="msauto", standalone_mode=False, color=colour)
        sys.stdout.flush()
        return code if isinstance(code, int) else OK
    except (KeyboardInterrupt, click.exceptions.Abort) as stop:
        # Click wraps the interrupt.
        cause = stop.__cause__ if isinstance(stop, click.exceptions.Abort) else stop
        reason = str(cause or "")
        message = f"Interrupted: {reason}" if reason else "Interrupted."
        print_message(message)
        return INTERRUPTED
    except ReaderGoneError:
        return OK
    except click.exceptions.NoArgsIsHelpError as error:
        shown = error.format_message()
        if not use_colour(sys.stderr, no_color=no_color):
            shown = click.unstyle(shown)
        print_message(shown, rendered=True)
    except click.ClickException as error:
        if _wants_document(arguments):
            _print_problems(error.format_message(), "see --help")
        print_message(_usage(error))
    except MsautoError as error:
        return _report(error, arguments)
    except Exception as error:  # noqa: BLE001 - a bug of msauto must not look like an error of the user
        print_message(
            f"Error: {bug_text(error)}\n"
            "  → this is a bug of msauto: report it with the output of the same command under MSAUTO_DEBUG=1"
        )
    return ERROR


def _check_dashes(arguments: list[str]) -> None:
    """Raise ``UsageError`` for a long flag with one dash, before its letters are read as short flags."""
    if any(re.match(r"-[^-][\s\S]", argument) for argument in arguments):
        from msauto.cli.other_tools import one_dash_flag

        wrong = one_dash_flag(arguments)
        if wrong is not None:
            raise click.UsageError(wrong)


def _wants_document(arguments: list[str]) -> bool:
    """Return whether a program reads stdout: it gets the JSON of a plan also if planning fails, with the reasons."""
    if not arguments or arguments[0] not in {"plan", "apply", "undo"}:
        return False
    given = [after for flag, after in pairwise([*arguments, ""]) if flag == "--format"]
    given += [
        argument.removeprefix("--format=")
        for argument in arguments
        if argument.startswith("--format=")
    ]
    return given[-1:] == ["json"]


def _print_problems(error: MsautoError | str, remedy: str = "") -> None:
    """Write the JSON document of a plan that cannot be made: it is empty except for the problems."""
    from msauto.concurrency import SystemClock
    from msauto.model.plan import Plan
    from msauto.planning.saved_plan import plan_document
    from msauto.report.json import dump_document, error_json

    empty = Plan(SystemClock().now().isoformat(timespec="seconds"), __version__)
    with suppress(OutputError):  # stderr gets the error in any case
        print_result(dump_document(plan_document(empty) | error_json(error, remedy)))


def _usage(error: click.ClickException) -> str:
    """Return the message of click, and where the help is."""
    message = f"Error: {error.format_message()}"
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return message
    remedy = ""
    if isinstance(error, click.NoSuchOption):
        message = f"Error: no such option: {error.option_name}"
        remedy = _instead_of(error.option_name, context)
    return f"{message}\n  → {remedy or f'see {context.command_path} --help'}"


def _instead_of(flag: str, context: click.Context) -> str:
    """Return what to use instead of an unknown flag; empty if that is not known."""
    from msauto.cli.other_tools import FLAGS

    if context.command is group:
        return f"flags follow the command: msauto COMMAND {flag}"
    flags: list[str] = []
    for param in context.command.get_params(context):
        if isinstance(param, click.Option) and not param.hidden:
            flags += param.opts
        if isinstance(param, click.Argument) and flag in {
            f"--{param.name}",
            f"--{(param.metavar or '').lower()}",
        }:
            return (
                f"write it without the flag: {context.command_path} {param.make_metavar(context)}"
            )
    return FLAGS.get(flag) or did_you_mean(flag, flags, cutoff=0.7)


def _report(error: MsautoError, arguments: list[str]) -> int:
    from msauto.report.text import render_error

    if _wants_document(arguments) and not error.shown:
        _print_problems(error)
    colour = use_colour(sys.stderr, no_color="--no-color" in arguments)
    shown = render_error(error, colour=colour, width=terminal_width(sys.stderr))
    print_message(shown, rendered=True)
    return exit_code_of(error)
