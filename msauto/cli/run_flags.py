"""The flags of ``plan``, ``apply`` and ``undo``, and what a command gets from them."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from msauto.api.attempts import Attempt
from msauto.api.loading import inputs_of_past_run
from msauto.api.run import RunOptions, allow, allowed_times
from msauto.cli.flags import Decorator, Flags, parse_seconds, with_options
from msauto.cli.output import print_message
from msauto.cli.watch import STDOUT, RunWatch
from msauto.errors import MsautoError
from msauto.playbook.change_windows import parse_window


@dataclass(frozen=True, slots=True)
class RunFlags:
    """How a run is planned, consented to and shown.

    ``out``, ``detailed_exitcode`` and ``stills`` are those of a plan that is not applied (``check``).
    """

    options: RunOptions
    attempt: Attempt
    watch: RunWatch = field(default_factory=RunWatch)
    yes: bool = False
    check: bool = False
    keep_going: bool = False
    out: str | None = None
    detailed_exitcode: bool = False
    stills: int = 0


def _parse_window(context: click.Context, option: click.Parameter, text: str | None) -> str | None:
    try:
        return None if text is None else str(parse_window(text))
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not a valid window: {error}", ctx=context, param=option) from None


def plan_flags(condition: str = "") -> tuple[Decorator, ...]:
    """Return the flags of a plan that is not applied; ``condition`` is put before their help."""
    return (
        click.option(
            "--out",
            type=click.Path(dir_okay=False),
            metavar="FILE",
            help=f"{condition}Write the plan to FILE, for msauto apply FILE; - is stdout.",
        ),
        click.option("--detailed-exitcode", is_flag=True, help=f"{condition}Exit with 2 if there are changes."),
    )


forget_pending_flag = click.option(
    "--forget-pending", is_flag=True, help="Drop what earlier runs left pending (handlers, commands in doubt)."
)
keep_going_flag = click.option(
    "--keep-going", is_flag=True, help="Leave out targets in error; the run then ends with 3."
)
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
        *,
        flags: Flags,
        watch: RunWatch,
        allow_delete: int | None,
        allow_remove: int | None,
        allow_requests: int | None,
        override_freeze: str | None,
        lock_timeout: float,
        window: str | None,
        run: str | None = None,
        resumed: str | None = None,
        **own: Any,
    ) -> Any:
        if override_freeze is not None and not override_freeze.strip():
            raise click.BadParameter("the reason is empty", param_hint="--override-freeze")
        if not own["check"] and (own["out"] is not None or own["detailed_exitcode"]):
            raise click.UsageError("--out and --detailed-exitcode need --check: the plan is not applied")
        attempt = click.get_current_context().find_object(Attempt)
        assert attempt is not None
        attempt.inputs, attempt.check = flags.inputs, own["check"]
        flags = with_output(flags, own["out"])
        flags = replace(flags, inputs=inputs_of_past_run(flags.inputs, undone=run, resumed=resumed))
        settings = flags.inputs.settings
        options = RunOptions(
            allow(settings.limits, allow_delete, allow_remove, allow_requests),
            allowed_times(settings, window, override_freeze=override_freeze),
            override_freeze,
            lock_timeout,
        )
        names = ("yes", "check", "keep_going", "out", "detailed_exitcode")
        given = RunFlags(options, attempt, watch, **{name: own.pop(name) for name in names})
        return function(flags=flags, given=given, **own)

    return with_options(command, _OPTIONS)


def recorded(function: Callable[..., int]) -> Callable[..., int]:
    """Record every call of a command that applies; apply it above ``shared_flags``, to record their errors as well."""

    @functools.wraps(function)
    def command(**given: Any) -> int:
        named = (f"{verb} {given[name]}" for name, verb in (("run", "undo"), ("resumed", "resume")) if given.get(name))
        folder: str | None = given["state_dir"]
        place = Path(os.path.expanduser(folder)) if folder else None  # noqa: PTH111 - no error for an unknown user
        attempt = Attempt(place, tuple(given.get("playbooks") or ()) or tuple(named), tell=print_message)
        click.get_current_context().obj = attempt
        return attempt.follow(functools.partial(function, **given))

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
