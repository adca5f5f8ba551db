"""Showing and keeping a plan."""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import IO

from msgspec import structs

from msauto.cli.exit_codes import ERROR
from msauto.cli.flags import Flags
from msauto.cli.output import can_draw, print_message, print_result, use_colour
from msauto.cli.report_forms import FORMS
from msauto.concurrency import SystemClock
from msauto.errors import MsautoError
from msauto.ledger import Ledger
from msauto.model.plan import Plan, Refusal
from msauto.planning.saved_plan import plan_document
from msauto.report.html.stills import NO_STILLS, Stills
from msauto.report.json import dump_document, error_json
from msauto.report.layout import Layout
from msauto.report.sentences import plural
from msauto.version import __version__

_WIDTH = 100
"""Columns of text that does not go to a terminal, unless ``COLUMNS`` is set: as logs and mails show it."""


def show_plan(
    plan: Plan, flags: Flags, *, keep_going: bool = False, error: MsautoError | None = None, stills: Stills = NO_STILLS
) -> None:
    """Write the plan to stdout in the form of ``--format``; ``error``: why the command ends here, for JSON."""
    layout = replace(layout_of(flags, keep_going=keep_going, error=error), stills=stills)
    print_result(FORMS[flags.format].plan(plan, layout))


def layout_of(
    flags: Flags, *, keep_going: bool = False, error: MsautoError | None = None, stream: IO[str] | None = None
) -> Layout:
    """Return the layout for stdout, or another stream: its colour, width and signs, and the playbook's name."""
    playbook = next(iter(flags.given.playbooks), "plan")
    return Layout(
        use_colour(stream or sys.stdout, no_color=flags.no_color),
        flags.verbosity,
        shutil.get_terminal_size((_WIDTH, 24)).columns,
        not can_draw(stream or sys.stdout),
        flags.summary,
        re.sub(r"[^A-Za-z0-9_.]+", "-", Path(playbook).stem),
        keep_going,
        error,
    )


def report_errors(plan: Plan, flags: Flags) -> int:
    """Return the exit code of a plan with errors; report on stderr that only the document on stdout names them."""
    if flags.format != "text":
        print_message(
            f"Error: cannot plan {plural(plan.errors, 'target')}; nothing was sent\n"
            "  → the plan shows the errors; --keep-going applies the other targets"
        )
    return ERROR


def print_problems(error: MsautoError | str, remedy: str = "") -> None:
    """Write the JSON document of a plan that cannot be made: it is empty except for the problems."""
    empty = Plan(SystemClock().now().isoformat(timespec="seconds"), __version__)
    print_result(dump_document(plan_document(empty) | error_json(error, remedy)))


def with_state_refusal(plan: Plan, flags: Flags, ledger: Ledger) -> Plan:
    """Return the plan, refused if the settings require a ledger and this one is empty."""
    settings = flags.settings
    if not settings.require_state or not ledger.empty:
        return plan
    found = "mount the folder that holds it" if isinstance(flags.ledger, Path) else "check `url` under [state]"
    remedy = f"{found}; for the very first run, set `require = false` under [state]"
    refusal = Refusal("state", str(settings.file), str(flags.ledger), remedy)
    return structs.replace(plan, refusals=(*plan.refusals, refusal))
