"""The flags of ``plan``, ``apply`` and ``undo``, and what a command gets from them."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from msauto.cli.flags import Decorator, Flags, parse_seconds, with_options
from msauto.cli.interrupts import importing
from msauto.cli.output import print_message
from msauto.cli.watch import STDOUT, RunWatch
from msauto.errors import MsautoError

if TYPE_CHECKING:
    from msauto.api.attempts import Attempt
    from msauto.api.run import RunOptions


@dataclass(frozen=True, slots=True)
class RunFlags:
    """How a run is planned, consented to and shown.

    ``out``, ``detailed_exitcode`` and ``stills`` are those of a plan that is not applied (``check``).
    """

    options: RunOptions
    attempt: Attempt
    watch: RunWatch
    yes: bool = False
    check: bool = False
    out: str | None = None
    detailed_exitcode: bool = False
    stills: int = 0


def _parse_window(_context: click.Context, _option: click.Parameter, text: str | None) -> str | None:
    if text is None:
        return None
    from msauto.playbook.change_windows import parse_window

    try:
        return str(parse_window(text))
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not a valid window: {error}") from None


def plan_flags(condition: str = "") -> tuple[Decorator, ...]:
    """Return the flags of a plan that is not applied; ``condition`` is put before their help."""
    return (
        click.option(
            "--out",
            type=click.Path(dir_okay=False),
            metavar="FILE",
            help=f"{condition}Save the plan for `apply FILE`; - is stdout.",
        ),
        click.option("--detailed-exitcode", is_flag=True, help=f"{condition}Exit with 2 if there are changes."),
    )


forget_pending_flag = click.option(
    "--forget-pending", is_flag=True, help="Drop what earlier runs left pending (handlers, commands in doubt)."
)
keep_going_flag = click.option("--keep-going", is_flag=True, help="Leave out targets in error (a run ends with 3).")
window_flag = click.option(
    "--window",
    callback=_parse_window,
    metavar="HH:MM-HH:MM",
    help="Begin targets only in these hours, such as 23:00-05:30, in the time zone `tz` of msauto.toml.",
)
_OPTIONS: tuple[Decorator, ...] = (
    click.option("-y", "--yes", is_flag=True, help="Do not ask."),
    click.option("--check", is_flag=True, help="Plan only: the same as msauto plan."),
    *plan_flags("With --check: "),
    keep_going_flag,
    click.option("--allow-delete", type=click.IntRange(0), metavar="N", help="Assets that the run may delete."),
    click.option("--allow-remove", type=click.IntRange(0), metavar="N", help="List items that the run may lose."),
    click.option("--allow-requests", type=click.IntRange(0), metavar="N", help="Requests that the run may send."),
    click.option("--override-freeze", metavar="REASON", help="Apply during a freeze; the reason is recorded."),
    click.option(
        "--lock-timeout", callback=parse_seconds, default="0", metavar="SECONDS", help="Wait for another run."
    ),
    window_flag,
)


def run_flags(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flags of a run as one ``given`` value; apply it below ``shared_flags``."""

    @functools.wraps(function)
    def command(
        *, flags: Flags, watch: RunWatch, run: str | None = None, resumed: str | None = None, **own: Any
    ) -> Any:
        if own["override_freeze"] is not None and not own["override_freeze"].strip():
            raise click.BadParameter("the reason is empty", param_hint="--override-freeze")
        with importing():
            from msgspec import structs

            from msauto.api.attempts import Attempt
            from msauto.api.loading import with_past_runs
            from msauto.api.run import RunOptions

        consent = RunOptions(**{name: own[name] for name in RunOptions.__struct_fields__ if name in own})
        if not own["check"] and (own["out"] is not None or own["detailed_exitcode"]):
            raise click.UsageError("--out and --detailed-exitcode need --check: the plan is not applied")
        attempt = click.get_current_context().find_object(Attempt)
        assert attempt is not None
        attempt.inputs, attempt.check = flags.inputs, own["check"]
        flags, inputs = with_output(flags, own["out"]), flags.inputs
        given = structs.replace(
            inputs.given, undo=run or inputs.given.undo, resume=inputs.given.resume if resumed is None else resumed
        )
        attempt.inputs = with_past_runs(structs.replace(inputs, given=given))
        attempt.playbooks = attempt.inputs.named
        flags = replace(flags, inputs=attempt.inputs)
        shown = {name: own[name] for name in ("yes", "check", "out", "detailed_exitcode")}
        return function(flags=flags, given=RunFlags(consent, attempt, watch, **shown))

    return with_options(command, _OPTIONS)


def recorded(function: Callable[..., int]) -> Callable[..., int]:
    """Record every call of a command that applies; apply it above ``shared_flags``, to record their errors as well."""

    @functools.wraps(function)
    def command(**given: Any) -> int:
        with importing():
            from msauto.api.attempts import Attempt

        named = (f"{verb} {given[name]}" for name, verb in (("run", "undo"), ("resumed", "resume")) if given.get(name))
        folder: str | None = given["state_dir"]
        place = Path(os.path.expanduser(folder)) if folder else None  # noqa: PTH111 - no error for an unknown user
        attempt = Attempt(place, tuple(given.get("playbooks") or ()) or tuple(named), tell=print_message)
        click.get_current_context().obj = attempt
        with attempt.recorded():
            attempt.code = function(**given)
        return attempt.code

    return command


def with_output(flags: Flags, out: str | None) -> Flags:
    """Return the flags for a plan written to ``out``: on stdout there is only the plan file."""
    if out != STDOUT:
        return flags
    if flags.format not in {"text", "json"}:
        raise MsautoError(
            f"--out - and --format {flags.format} would both write to stdout",
            remedy="name a file with --out FILE, or remove --format",
        )
    return replace(flags, format="json")
