"""The flags that commands share, the value made from them, and how they let a result look.

Help and completion need the flags alone, so what a value is made with is imported when it is made.
"""

from __future__ import annotations

import functools
import re
import shutil
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final

import click

from msauto import sockets
from msauto.api.forms import form_names, report_name
from msauto.api.options import OPTIONS, Option
from msauto.cli.interrupts import importing
from msauto.cli.output import can_draw, print_message, use_colour
from msauto.concurrency import MOST_FORKS
from msauto.primitives.decimals import read_decimal, read_whole, show_cut
from msauto.report.sanitizing import visible

if TYPE_CHECKING:
    from msauto.api.inputs import Inputs
    from msauto.report.layout import Layout

PLAN_FORMS: Final = tuple(form for form in form_names() if form != "junit")
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


def layout_of(
    display: Display, *, keep_going: bool = False, stream: IO[str] | None = None
) -> Layout:
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


def _parser(
    parse: Callable[[str], Any], words: str
) -> Callable[[click.Context, click.Parameter, str | None], Any]:
    """Return a callback for click: ``parse`` raises ``ValueError`` for a text that is not what ``words`` name."""

    def parsed(_context: click.Context, _option: click.Parameter, text: str | None) -> Any:
        if text is None:
            return None
        try:
            return parse(text)
        except ValueError as error:
            raise click.BadParameter(f"{text!r} is not {words.format(error)}") from None

    return parsed


def _seconds(text: str) -> float:
    seconds = read_decimal(text)
    if seconds is None or not 0 <= seconds <= _LONGEST:
        raise ValueError
    return float(seconds)


class WholeNumber(click.IntRange):
    """A whole number in ASCII digits, within bounds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read the text of an option."""
        number = read_whole(str(value))
        if number is None:
            self.fail(
                f"{show_cut(str(value))} is not a whole number of at most 9 digits.", param, ctx
            )
        return int(super().convert(number, param, ctx))


def _age(text: str) -> Any:
    from msauto.documents.value_types import duration  # pydantic takes long to import

    return duration.read(text)


def _cluster(text: str) -> str:
    if not re.fullmatch(
        r"[A-Za-z][A-Za-z0-9+.-]*://(\[[0-9A-Fa-f:.%]+\]|[^\s:/@\[\]]+):\d{1,5}", text
    ):
        raise ValueError
    return text


def _window(text: str) -> str:
    from msauto.playbook.change_windows import parse_window

    return str(parse_window(text))


parse_age: Final = _parser(_age, "a duration such as 26h or 7d")
"""Parses a duration as playbooks write it."""


def with_options(
    function: Callable[..., Any], options: tuple[Decorator, ...]
) -> Callable[..., Any]:
    """Give a function options, in the order of the help."""
    for decorate in reversed(options):
        function = decorate(function)
    return function


_KINDS: Final[Mapping[str, Mapping[str, Any]]] = {
    **{key: {"multiple": True} for key in ("sources", "variables", "texts", "tags")},
    "count": {"type": WholeNumber(0)},
    "forks": {"type": WholeNumber(1, MOST_FORKS)},
    "seconds": {
        "callback": _parser(_seconds, f"a number of seconds from 0 to {_LONGEST:.0f} (a day)"),
        "default": "0",
    },
    "hours": {"callback": _parser(_window, "a valid window: {}")},
    "cluster": {
        "callback": _parser(
            _cluster, "the address of a Dask scheduler, such as dask://scheduler:8786"
        )
    },
}
"""How the flag of an option reads what it takes; others are texts."""


def flag(keyword: str, **view: Any) -> Decorator:
    """Return the flag of an option; ``view`` as for ``click.option``."""
    row = OPTIONS[keyword]
    return option(
        row.usage, row.help, keyword, **{"type": None, **_KINDS.get(row.kind, {}), **view}
    )


def option(usage: str, words: str, keyword: str = "", **more: Any) -> Decorator:
    """Return a flag of some commands alone: its ``usage`` is that of the help, such as ``-n, --number N``.

    ``words``: its help. ``keyword``: the parameter, if it is not the name of the flag. ``more`` as for
    ``click.option``.
    """
    row = Option(keyword, "", usage)
    names = [*row.names, *filter(None, [keyword])]
    given: dict[str, Any] = {"help": words, "metavar": row.metavar}
    if row.metavar is None and "count" not in more:
        given["is_flag"] = True
    if row.metavar in _PATHS:
        given["type"] = _PATHS[row.metavar]
    return click.option(*names, **given | more)


_PATHS: Final = {"FILE": click.Path(dir_okay=False), "DIR": click.Path(file_okay=False)}
"""What the value of a flag is, by what the help calls it."""


form_flag: Decorator = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    help="Form of the result.",
)
no_color_flag: Decorator = option("--no-color", "No colour, as with NO_COLOR.")
summary_flag: Decorator = option("--summary", "Only counts, deletions, errors and refusals.")

SERVERS: Final = ("inventory", "server", "extra_vars", "limit")
LIVE: Final = (*SERVERS, "secret_commands")
"""The flags of a command that reaches servers."""
TASKS: Final = ("tags", "skip_tags")
WORK: Final = (*LIVE, *TASKS, "forks", "state_dir", "verbose")


class FormChoice(click.Choice[str]):
    """The forms of a command (``--format``): those that are listed, and those of others' plugins."""

    def __init__(self, forms: Sequence[str], socket: sockets.Socket) -> None:
        super().__init__(forms)
        self._socket = socket

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name of a form; an unknown one names the plugin that would bring it."""
        if value in self.choices or sockets.place_of(self._socket, value) is not None:
            return value
        home = sockets.home_of(self._socket, value)
        if home:
            self.fail(
                f"{value!r} comes with the plugin {home} of msauto, which is not installed",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)


def shared_flags_of(
    *forms: str,
    uses: Collection[str] = WORK,
    more: tuple[Decorator, ...] = (),
    socket: sockets.Socket | None = None,
) -> Decorator:
    """Give a command the shared flags, with these choices of ``--format``, and ``more`` of them.

    With a ``socket``, the forms that plugins bring for it can be chosen as well.

    The command gets them as one ``flags`` value beside its own arguments. It accepts all of them, so that a script can
    give every command the same; its help shows those that it ``uses``.
    """
    form = f"Result as {', '.join(forms[:-1])} or {forms[-1]}."
    verbose = "Also the requests; -vv: also the source lines."
    choice = click.Choice(forms) if socket is None else FormChoice(forms, socket)
    options: tuple[Decorator, ...] = (
        *(flag(keyword, hidden=keyword not in uses) for keyword in WORK if keyword in OPTIONS),
        flag("config"),
        option("--format FORM", form, "form", type=choice, default="text"),
        option("-v, --verbose", verbose, count=True, hidden="verbose" not in uses),
        no_color_flag,
        *more,
    )

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def command(**given: Any) -> Any:
            name = "paths" if "paths" in given else "playbooks"
            if given.get(name) == ():
                with importing():
                    from msauto.api.inputs import usual_playbooks

                given[name] = usual_playbooks(given["config"])
                print_message(f"No playbook is named; using {visible(', '.join(given[name]))}")
            own = {name: value for name, value in given.items() if name not in _SHARED}
            return function(flags=_flags(given), **own)

        return with_options(command, options)

    return decorate


_SHARED: Final = {option.keyword for option in OPTIONS.values() if option.field} | {
    "forks", "state_dir", "secret_commands", "on", "form", "verbose", "no_color", "summary",
}  # fmt: skip
"""What a command gets as its ``flags``."""


def run_planning_flags(*forms: str, uses: Collection[str] = WORK) -> Decorator:
    """Return the shared flags of a command that makes a plan; by default, it also shows what came of it."""
    more = (flag("target"), flag("on"), summary_flag)
    return shared_flags_of(*(forms or form_names()), uses=uses, more=more, socket="report_forms")


def _flags(given: Mapping[str, Any]) -> Flags:
    """Return the value of the shared flags, with the settings file read."""
    with importing():
        from msauto.api.keywords import inputs_of

    options = {name: value for name, value in given.items() if name in OPTIONS}
    inputs = inputs_of(**options, paths=given.get("paths") or (), tell=print_message)
    return Flags(
        inputs=inputs,
        format=given["form"],
        verbosity=given["verbose"],
        no_color=given["no_color"],
        summary=given.get("summary", False),
        playbook=next(iter(inputs.given.playbooks), "plan"),
    )
