"""What ``plan`` and ``apply`` share: resolving, planning, showing and keeping a plan."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TextIO

from msauto.aio import SystemClock, make_plan
from msauto.cli.flags import STDOUT, Flags
from msauto.cli.interruptible import run_async
from msauto.cli.output import colour_on, give, say
from msauto.cli.runs.allowed_times import with_state
from msauto.errors import MsautoError, PlanningError
from msauto.ledger import Ledger
from msauto.model.limits import Limits
from msauto.model.plan import Plan
from msauto.planning.saved_plans.plan_file import plan_to_json
from msauto.playbook.resolve import resolve
from msauto.report import html, markdown, text
from msauto.report.json import dump, error_json
from msauto.report.sentences import plural
from msauto.secrets.redactor import redact_plan
from msauto.version import __version__


def plan_now(flags: Flags, limits: Limits | None = None) -> Plan:
    """Resolve the playbooks and plan them, writing nothing: the ledger is only read."""
    resolved = resolve(flags.options)
    with Ledger.open(flags.state_dir, readonly=True) as ledger:
        plan = run_async(
            make_plan(
                resolved,
                memory=ledger.memory,
                clock=SystemClock(),
                forks=flags.forks,
                limits=limits or flags.settings.limits,
                forget_pending=flags.forget_pending,
            )
        )
        return with_state(plan, flags, ledger)


def show_plan(plan: Plan, flags: Flags, *, keep_going: bool = False, error: MsautoError | None = None) -> None:
    """Give the plan on stdout, in the form that was asked for; JSON also has the ``error`` for which it ends here."""
    if flags.format == "json":
        problems = error_json(error) if error is not None else {}
        if error is not None:
            error.shown = True
        give(dump(plan_to_json(plan) | problems))
    elif flags.format == "markdown":
        give(markdown.render_plan(plan))
    elif flags.format == "html":
        give(html.render_plan(plan))
    else:
        give(plan_text(plan, flags, sys.stdout, keep_going=keep_going))


def give_plan(
    plan: Plan, flags: Flags, *, out: str | None = None, detailed_exitcode: bool = False, keep_going: bool = False
) -> int:
    """Keep and show a plan that is not applied; return the exit code."""
    plan = redact_plan(plan)
    if out is not None:
        refuse_secrets(plan, out)
        if out != STDOUT:  # else it is shown, as JSON
            keep_plan(plan, out)
    show_plan(plan, flags, keep_going=keep_going)
    return tell_errors(plan, flags) or (2 if detailed_exitcode and plan.requests else 0)


def give_problems(error: MsautoError | str, remedy: str = "") -> None:
    """Give the document of a plan that could not be made: it is empty, and tells why."""
    empty = Plan(SystemClock().now().isoformat(timespec="seconds"), __version__)
    give(dump(plan_to_json(empty) | error_json(error, remedy)))


def tell_errors(plan: Plan, flags: Flags) -> int:
    """Return the exit code of a plan that is not applied; where its errors are only in a document, say that it has."""
    if not plan.errors:
        return 0
    if flags.format != "text":
        say(
            f"Error: {plural(plan.errors, 'target')} cannot be planned; nothing was sent\n"
            "  → the plan tells why; --keep-going applies the others"
        )
    return 1


def plan_text(plan: Plan, flags: Flags, stream: TextIO, *, keep_going: bool = False) -> str:
    """Return the plan as text for a stream: coloured and cut to the width where it is a terminal."""
    width = shutil.get_terminal_size().columns if stream.isatty() else None
    colour = colour_on(stream, no_color=flags.no_color)
    return text.render_plan(plan, colour=colour, verbosity=flags.verbosity, width=width, keep_going=keep_going)


def refuse_secrets(plan: Plan, path: str) -> None:
    """Raise if a request of a redacted plan sends a secret: a saved plan holds none, and could not be applied."""
    target = next((each for each in plan.targets if any(request.secret for request in each.requests)), None)
    if target is None:
        return
    change = next(target.changes[number] for each in target.requests if each.secret for number in each.changes)
    raise PlanningError(
        f"the plan cannot be kept in {path}: {target.name!r} ({change.aspect} {change.key}) is sent a secret, and no "
        "plan file holds one",
        place=change.source.place,
        remedy="apply the playbooks themselves: msauto apply PLAYBOOK",
    )


def keep_plan(plan: Plan, path: str) -> None:
    """Write the plan to a file, whole or not at all."""
    target = Path(path)
    part: Path | None = None
    try:
        if target.exists() and not target.is_file():
            target.write_text(dump(plan_to_json(plan)), encoding="utf-8")  # a pipe, say: there is nothing to replace
            return
        number, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)  # for its owner alone
        part = Path(name)
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(dump(plan_to_json(plan)))
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except OSError as error:
        if part is not None:
            part.unlink(missing_ok=True)
        raise MsautoError(
            f"the plan could not be kept in {path}: {error.strerror}", remedy="name a file that can be written"
        ) from error
