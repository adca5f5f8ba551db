"""The flags that commands share, the value made from them, and how they let a result look.

Help and completion need the flags alone, so what a value is made with is imported when it is made.
"""

from __future__ import annotations

import functools
import re
import shutil
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import IO, TYPE_CHECKING, Any, Final

import click

from msauto.api.forms import FORMS, report_name
from msauto.cli.interrupts import importing
from msauto.cli.output import can_draw, print_message, use_colour
from msauto.concurrency import MOST_FORKS
from msauto.report.sanitizing import visible

if TYPE_CHECKING:
    from msauto.api.inputs import Inputs
    from msauto.report.layout import Layout

PLAN_FORMS: Final = tuple(form for form in FORMS if form != "junit")
"""The forms of ``msauto plan``: JUnit XML is for what came of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Display:
    """How a result is shown. ``summary`` shows only what decides of a plan; ``playbook`` names it."""

    format: str = "text"
    verbosity: int = 0
    no_color: bool = False
    summary: bool = False
    playbook: str = "plan"


_WIDTH = 100
"""Columns of text that does not go to a terminal, unless ``COLUMNS`` is set: as logs and mails show it."""


def layout_of(display: Display, *, keep_going: bool = False, stream: IO[str] | None = None) -> Layout:
    """Return the layout for stdout, or another stream: its colour, width and signs, and the playbook's name."""
    from msauto.ledger.locks import this_user
    from msauto.report.layout import Layout

    return Layout(
        use_colour(stream or sys.stdout, no_color=display.no_color),
        display.verbosity,
        shutil.get_terminal_size((_WIDTH, 24)).columns,
        not can_draw(stream or sys.stdout),
        display.summary,
        report_name(display.playbook),
        keep_going,
        by=this_user(),
    )


Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

_LONGEST = 86_400.0  # seconds: a day


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags(Display):
    """The shared flags: what is asked for, and how the result is shown (commands, «Shared flags»)."""

    inputs: Inputs


def parse_seconds(_context: click.Context, _option: click.Parameter, text: str) -> float:
    """Parse a number of seconds from 0 to a day: a callback for click."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= _LONGEST:  # also false for nan
        raise click.BadParameter(f"{text!r} is not a number of seconds from 0 to {_LONGEST:.0f} (a day)")
    return seconds


def parse_age(_context: click.Context, _option: click.Parameter, text: str | None) -> timedelta | None:
    """Parse a duration as playbooks write it, such as ``26h``: a callback for click."""
    from msauto.documents.value_types import duration  # pydantic takes long to import

    try:
        return None if text is None else duration.read(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not a duration such as 26h or 7d") from error


def with_options(function: Callable[..., Any], options: tuple[Decorator, ...]) -> Callable[..., Any]:
    """Give a function options, in the order of the help."""
    for option in reversed(options):
        function = option(function)
    return function


database_flag = click.option("-d", "--database", metavar="NAME", help="Media database (default: variable `database`).")


no_color_flag = click.option("--no-color", is_flag=True, help="No colour, as with NO_COLOR.")


SUMMARY_OPTION: Decorator = click.option("--summary", is_flag=True, help="Only counts, deletions, errors and refusals.")
_TARGET_OPTION: Decorator = click.option(
    "--target", "targets", multiple=True, metavar="TITLE", help="Only these targets, such as 'EP*' (repeatable)."
)


def _parse_cluster(_context: click.Context, _option: click.Parameter, text: str | None) -> str | None:
    if text is None or re.fullmatch(r"(dask|tls)://(\[[0-9A-Fa-f:.%]+\]|[^\s:/@\[\]]+):\d{1,5}", text):
        return text
    raise click.BadParameter(f"{text!r} is not the address of a Dask scheduler, such as dask://scheduler:8786")


on_flag: Decorator = click.option(
    "--on",
    callback=_parse_cluster,
    metavar="dask://HOST:PORT",
    help="Work on the workers of this Dask cluster (also tls://).",
)


SERVERS: Final = ("inventory", "server", "extra_vars", "limit")
TASKS: Final = ("tags", "skip_tags")
LEDGER: Final = ("state_dir",)
WORK: Final = (*SERVERS, *TASKS, *LEDGER, "forks", "verbose")


def shared_flags_of(*forms: str, uses: Collection[str] = WORK, more: tuple[Decorator, ...] = ()) -> Decorator:
    """Give a command the shared flags, with these choices of ``--format``, and ``more`` of them.

    The command gets them as one ``flags`` value beside its own arguments. It accepts all of them, so that a script can
    give every command the same; its help shows those that it ``uses``.
    """

    def option(*names: str, **look: Any) -> Decorator:
        name = names[-1].lstrip("-").replace("-", "_")
        return click.option(*names, hidden=name in WORK and name not in uses, **look)

    form = f"Result as {', '.join(forms[:-1])} or {forms[-1]}."
    options: tuple[Decorator, ...] = (
        option("-i", "--inventory", multiple=True, metavar="FILE|DIR", help="Inventory (repeatable)."),
        option("--server", metavar="URL", help="One server by its URL, without an inventory."),
        option("-e", "--extra-vars", multiple=True, metavar="K=V|@FILE", help="Variables of highest precedence."),
        option("-l", "--limit", metavar="PATTERN", help="Only these hosts."),
        option("-t", "--tags", multiple=True, metavar="TAGS", help="Only tasks with one of these tags."),
        option("--skip-tags", multiple=True, metavar="TAGS", help="No tasks with one of these tags."),
        option(
            "-f",
            "--forks",
            type=click.IntRange(1, MOST_FORKS),
            metavar="N",
            help="Targets at a time (default: connections).",
        ),
        option("--format", "form", type=click.Choice(forms), default="text", metavar="FORM", help=form),
        option("--state-dir", metavar="DIR", help="Folder of the ledger."),
        option("--config", metavar="FILE", help="Settings, instead of the nearest msauto.toml."),
        option("-v", "--verbose", count=True, help="Also the requests; -vv: also the source lines."),
        no_color_flag,
        *more,
    )

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def command(**given: Any) -> Any:
            shared = {name: given.pop(name) for name in _SHARED if name in given}
            name = "paths" if "paths" in given else "playbooks"
            if given.get(name) == () and not given.get("resumed"):
                given[name] = _usual_playbooks(shared["config"])
            return function(flags=_flags(shared, given), **given)

        return with_options(command, options)

    return decorate


_KEYWORDS = (
    "inventory", "server", "extra_vars", "limit", "tags", "skip_tags", "forks", "state_dir", "config", "on",
    "forget_pending",
)  # fmt: skip
_SHARED = (*_KEYWORDS, "targets", "form", "verbose", "no_color", "summary")
planning_flags = shared_flags_of(*PLAN_FORMS, more=(_TARGET_OPTION, on_flag, SUMMARY_OPTION))
"""The shared flags of a command that makes a plan."""


def run_planning_flags(uses: Collection[str] = WORK) -> Decorator:
    """Return the shared flags of a command that makes a plan, and shows what came of it."""
    return shared_flags_of(*FORMS, uses=uses, more=(_TARGET_OPTION, on_flag, SUMMARY_OPTION))


def _usual_playbooks(config: str | None) -> tuple[str, ...]:
    with importing():
        from msauto.api.inputs import usual_playbooks

    found = usual_playbooks(config)
    print_message(f"No playbook is named; using {visible(', '.join(found))}")
    return found


def _flags(shared: Mapping[str, Any], own: Mapping[str, Any]) -> Flags:
    """Return the value of the shared flags, with the settings file read; ``own`` are the command's own arguments."""
    keywords = {name: shared[name] for name in _KEYWORDS if name in shared}
    playbooks, paths = own.get("playbooks") or (), own.get("paths") or ()
    with importing():
        from msauto.api.keywords import inputs_of

    inputs = inputs_of(playbooks, target=shared.get("targets", ()), paths=paths, tell=print_message, **keywords)
    return Flags(
        inputs=inputs,
        format=shared["form"],
        verbosity=shared["verbose"],
        no_color=shared["no_color"],
        summary=shared.get("summary", False),
        playbook=next(iter(inputs.given.playbooks), "plan"),
    )
