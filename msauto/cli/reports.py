"""How plans and results are shown on stdout."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass, replace
from typing import IO, Final

from msauto.api.forms import FORMS, report_name
from msauto.cli.output import can_draw, print_result, use_colour
from msauto.concurrency import SystemClock
from msauto.errors import MsautoError
from msauto.model.plan import Plan
from msauto.planning.saved_plan import plan_document
from msauto.report.clip_timeline import NO_STILLS, Stills
from msauto.report.json import dump_document, error_json
from msauto.report.layout import Layout
from msauto.version import __version__

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


def show_plan(
    plan: Plan,
    display: Display,
    *,
    keep_going: bool = False,
    error: MsautoError | None = None,
    stills: Stills = NO_STILLS,
) -> None:
    """Write the plan to stdout in the form of ``--format``; ``error``: why the command ends here, for JSON."""
    layout = replace(layout_of(display, keep_going=keep_going, error=error), stills=stills)
    print_result(FORMS[display.format].plan(plan, layout))


def layout_of(
    display: Display, *, keep_going: bool = False, error: MsautoError | None = None, stream: IO[str] | None = None
) -> Layout:
    """Return the layout for stdout, or another stream: its colour, width and signs, and the playbook's name."""
    return Layout(
        use_colour(stream or sys.stdout, no_color=display.no_color),
        display.verbosity,
        shutil.get_terminal_size((_WIDTH, 24)).columns,
        not can_draw(stream or sys.stdout),
        display.summary,
        report_name(display.playbook),
        keep_going,
        error,
    )


def print_problems(error: MsautoError | str, remedy: str = "") -> None:
    """Write the JSON document of a plan that cannot be made: it is empty except for the problems."""
    empty = Plan(SystemClock().now().isoformat(timespec="seconds"), __version__)
    print_result(dump_document(plan_document(empty) | error_json(error, remedy)))
